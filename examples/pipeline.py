"""Run a search pipeline that writes traces: BM25 and dense retrieval, fusion, a reranker, and the first page.

    pip install judged bm25s PyStemmer wordllama lightgbm
    python examples/pipeline.py DOCS QUERIES QRELS FOLDER

FOLDER gets traces.jsonl; then, for example: judged traces funnel QRELS FOLDER/traces.jsonl

The example downloads no files, because WordLlama's package contains the weights of its vectors. The reranker
(LambdaMART) is trained on judgments by cross-validation: the model of each topic is trained on the other four fifths
of the topics.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
import lightgbm
import numpy as np
import Stemmer
import wordllama
from bm25s.stopwords import STOPWORDS_EN

from judged.data import Qrels, Topics
from judged.data.texts import Text, Texts
from judged.pipelines.traces import Recorder

CANDIDATES, SHOWN, FOLDS, RRF_K = 100, 10, 5, 60
FEATURES = ("bm25", "bm25_rank", "cosine", "dense_rank", "fused", "title_overlap", "text_overlap", "length")


class Sources(NamedTuple):
    """Two indexes of the same documents. Rows identify documents."""

    ids: list[str]
    words: list[set[str]]  # by document
    titles: list[set[str]]
    bm25: bm25s.BM25
    vectors: np.ndarray[Any, np.dtype[np.float32]]  # unit length
    model: Any

    @classmethod
    def of(cls, documents: dict[str, Text]) -> Sources:
        """Index documents."""
        full_texts = [f"{title} {text}" for title, text in documents.values()]
        bm25 = bm25s.BM25()
        bm25.index(_tokens(full_texts), show_progress=False)
        package = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
        vectors = model.embed(full_texts, norm=True)
        titles = [_words(title) for title, _ in documents.values()]
        return cls(list(documents), [_words(text) for text in full_texts], titles, bm25, vectors, model)

    def lexical(self, query: str) -> dict[int, float]:
        """Return the rows of the best documents by BM25, with scores."""
        # By default, bm25s uses JAX if it is installed, which orders equal scores differently.
        options = {"k": min(CANDIDATES, len(self.ids)), "show_progress": False, "backend_selection": "numpy"}
        rows, scores = self.bm25.retrieve(_tokens([query]), sorted=True, **options)
        hits = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return {row: score for row, score in hits if score > 0}

    def dense(self, query: str) -> dict[int, float]:
        """Return the rows of the best documents by cosine similarity."""
        cosine = self.vectors @ self.model.embed([query], norm=True)[0]
        return {row: float(cosine[row]) for row in np.argsort(-cosine, kind="stable")[:CANDIDATES].tolist()}


class Candidates(NamedTuple):
    """Input of the reranker for one topic: rows in order, and features."""

    bm25: dict[int, float]
    dense: dict[int, float]
    fused: dict[int, float]
    features: np.ndarray[Any, np.dtype[np.float64]]


def candidates(sources: Sources, query: str) -> Candidates:
    """Search both indexes, and fuse the results by reciprocal rank fusion."""
    results = sources.lexical(query), sources.dense(query)
    ranks = [{row: rank for rank, row in enumerate(hits, 1)} for hits in results]
    all_rows = dict.fromkeys(row for hits in results for row in hits)
    fused_scores = {row: sum(1 / (RRF_K + rank[row]) for rank in ranks if row in rank) for row in all_rows}
    fused = {row: fused_scores[row] for row in sorted(all_rows, key=lambda row: -fused_scores[row])[:CANDIDATES]}
    query_words = _words(query)
    feature_rows = [
        [
            results[0].get(row, 0.0),
            ranks[0].get(row, CANDIDATES + 1),
            results[1].get(row, 0.0),
            ranks[1].get(row, CANDIDATES + 1),
            fused_scores[row],
            len(query_words & sources.titles[row]) / max(len(query_words), 1),
            len(query_words & sources.words[row]) / max(len(query_words), 1),
            len(sources.words[row]),
        ]
        for row in fused
    ]
    return Candidates(
        *results, fused, np.array(feature_rows, dtype=np.float64).reshape(len(feature_rows), len(FEATURES))
    )


def rerank(topics: list[str], candidates_by_topic: list[Candidates], qrels: Qrels, ids: list[str]) -> list[list[float]]:
    """Score each topic's candidates by a model trained on other topics."""
    grades = {(query, doc): grade for query, doc, grade in _judgments(qrels)}
    labels = [
        [max(int(grades.get((topic, ids[row]), 0)), 0) for row in topic_candidates.fused]
        for topic, topic_candidates in zip(topics, candidates_by_topic, strict=True)
    ]
    fold = np.random.default_rng(0).permutation(len(topics)) % FOLDS
    options = {
        "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 20, "verbose": -1,
        "seed": 0, "deterministic": True, "num_threads": 1, "lambdarank_truncation_level": 20,
    }  # fmt: skip
    scores: list[list[float]] = [[] for _ in topics]
    for test_fold in range(FOLDS):
        train = [
            i for i in range(len(topics)) if fold[i] != test_fold and candidates_by_topic[i].fused and any(labels[i])
        ]
        data = lightgbm.Dataset(
            np.concatenate([candidates_by_topic[i].features for i in train]),
            np.concatenate([labels[i] for i in train]),
            group=[len(labels[i]) for i in train],
        )
        model = lightgbm.train(options, data, num_boost_round=120)
        for i in np.flatnonzero(fold == test_fold).tolist():
            if candidates_by_topic[i].fused:
                scores[i] = model.predict(candidates_by_topic[i].features).tolist()
    return scores


def run(documents: dict[str, Text], queries: dict[str, str], qrels: Qrels, path: Path) -> Recorder:
    """Search all queries, and record the output of each stage."""
    sources = Sources.of(documents)
    topics = list(queries)
    candidates_by_topic = [candidates(sources, queries[topic]) for topic in topics]
    scores = rerank(topics, candidates_by_topic, qrels, sources.ids)
    recorder = Recorder(path)
    for topic, topic_candidates, score in zip(topics, candidates_by_topic, scores, strict=True):
        with recorder.query(topic, queries[topic]) as trace:
            for name, hits in (("bm25", topic_candidates.bm25), ("dense", topic_candidates.dense)):
                trace.stage(name, "candidates", [(sources.ids[row], value) for row, value in hits.items()])
            trace.stage("fuse", "fuse", [(sources.ids[row], value) for row, value in topic_candidates.fused.items()])
            feature_rows = [dict(zip(FEATURES, row, strict=True)) for row in topic_candidates.features.tolist()]
            order = sorted(zip(topic_candidates.fused, score, feature_rows, strict=True), key=lambda row: -row[1])
            ranking = [{"id": sources.ids[row], "score": value, "features": features} for row, value, features in order]
            trace.stage("rerank", "rerank", ranking, model="lambdamart")
            trace.stage("shown", "shown", [row["id"] for row in ranking[:SHOWN]])
    return recorder


def _judgments(qrels: Qrels) -> zip[tuple[str, str, float]]:
    return zip(*(qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance")), strict=True)


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


def _words(text: str) -> set[str]:
    words = (word.strip(".,:;?()/'") for word in text.lower().split())
    return set(Stemmer.Stemmer("english").stemWords([word for word in words if word and word not in STOPWORDS_EN]))


def main(docs: str, queries: str, judgments: str, folder: str) -> None:
    """Run the pipeline on files."""
    output_folder = Path(folder)
    output_folder.mkdir(parents=True, exist_ok=True)
    (output_folder / "traces.jsonl").unlink(missing_ok=True)
    topics = Topics.read(queries)
    query_texts = {row["query_id"]: row["text"] for row in topics.table.to_pylist()}
    recorder = run(dict(Texts.read(docs).documents), query_texts, Qrels.read(judgments), output_folder / "traces.jsonl")
    print(f"{recorder.path}: {len(query_texts)} queries, {recorder.faults} faults")


if __name__ == "__main__":
    main(*sys.argv[1:])
