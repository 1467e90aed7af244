"""A search pipeline that writes down what it does: BM25 and a dense source, their fusion, a reranker, the first page.

    pip install judged bm25s PyStemmer wordllama lightgbm
    python examples/pipeline.py DOCS QUERIES QRELS FOLDER

FOLDER gets traces.jsonl; then, for example: judged traces funnel QRELS FOLDER/traces.jsonl

Nothing is downloaded: the weights of WordLlama's vectors are in its package. The reranker (LambdaMART) learns from
judgments: each topic is ranked by a model that was trained on the other four fifths of the topics.
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
    """Two indexes of the same documents."""

    ids: list[str]
    words: list[set[str]]  # of each document
    titles: list[set[str]]
    bm25: bm25s.BM25
    vectors: np.ndarray[Any, np.dtype[np.float32]]  # of length 1
    model: Any

    @classmethod
    def of(cls, documents: dict[str, Text]) -> Sources:
        """Index documents."""
        whole = [f"{title} {text}" for title, text in documents.values()]
        bm25 = bm25s.BM25()
        bm25.index(_tokens(whole), show_progress=False)
        package = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
        vectors = model.embed(whole, norm=True)
        titles = [_words(title) for title, _ in documents.values()]
        return cls(list(documents), [_words(text) for text in whole], titles, bm25, vectors, model)

    def lexical(self, query: str) -> dict[int, float]:
        """Give the places of the first documents by BM25, with scores."""
        # without a backend it would take JAX where that is installed, and order equal scores otherwise
        how = {"k": min(CANDIDATES, len(self.ids)), "show_progress": False, "backend_selection": "numpy"}
        places, scores = self.bm25.retrieve(_tokens([query]), sorted=True, **how)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return {place: score for place, score in found if score > 0}

    def dense(self, query: str) -> dict[int, float]:
        """Give the places of the first documents by cosine."""
        cosine = self.vectors @ self.model.embed([query], norm=True)[0]
        return {place: float(cosine[place]) for place in np.argsort(-cosine, kind="stable")[:CANDIDATES].tolist()}


class Candidates(NamedTuple):
    """What the reranker is given for one topic: places in order, and their features."""

    bm25: dict[int, float]
    dense: dict[int, float]
    fused: dict[int, float]
    features: np.ndarray[Any, np.dtype[np.float64]]


def candidates(sources: Sources, query: str) -> Candidates:
    """Ask both sources, and fuse what they give by reciprocal ranks."""
    found = sources.lexical(query), sources.dense(query)
    ranks = [{place: rank for rank, place in enumerate(one, 1)} for one in found]
    both = dict.fromkeys(place for one in found for place in one)
    score = {place: sum(1 / (RRF_K + rank[place]) for rank in ranks if place in rank) for place in both}
    fused = {place: score[place] for place in sorted(both, key=lambda place: -score[place])[:CANDIDATES]}
    asked = _words(query)
    rows = [
        [
            found[0].get(place, 0.0),
            ranks[0].get(place, CANDIDATES + 1),
            found[1].get(place, 0.0),
            ranks[1].get(place, CANDIDATES + 1),
            score[place],
            len(asked & sources.titles[place]) / max(len(asked), 1),
            len(asked & sources.words[place]) / max(len(asked), 1),
            len(sources.words[place]),
        ]
        for place in fused
    ]
    return Candidates(*found, fused, np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURES)))


def reranked(topics: list[str], every: list[Candidates], qrels: Qrels, ids: list[str]) -> list[list[float]]:
    """Score each topic's candidates by a model that other topics trained."""
    grades = {(query, doc): grade for query, doc, grade in _judgments(qrels)}
    labels = [
        [max(int(grades.get((topic, ids[place]), 0)), 0) for place in one.fused]
        for topic, one in zip(topics, every, strict=True)
    ]
    fold = np.random.default_rng(0).permutation(len(topics)) % FOLDS
    options = {
        "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 20, "verbose": -1,
        "seed": 0, "deterministic": True, "num_threads": 1, "lambdarank_truncation_level": 20,
    }  # fmt: skip
    scores: list[list[float]] = [[] for _ in topics]
    for held in range(FOLDS):
        train = [at for at in range(len(topics)) if fold[at] != held and every[at].fused and any(labels[at])]
        data = lightgbm.Dataset(
            np.concatenate([every[at].features for at in train]),
            np.concatenate([labels[at] for at in train]),
            group=[len(labels[at]) for at in train],
        )
        model = lightgbm.train(options, data, num_boost_round=120)
        for at in np.flatnonzero(fold == held).tolist():
            if every[at].fused:
                scores[at] = model.predict(every[at].features).tolist()
    return scores


def run(documents: dict[str, Text], queries: dict[str, str], qrels: Qrels, path: Path) -> Recorder:
    """Ask every query, and write down what each stage passed on."""
    sources = Sources.of(documents)
    topics = list(queries)
    every = [candidates(sources, queries[topic]) for topic in topics]
    scores = reranked(topics, every, qrels, sources.ids)
    recorder = Recorder(path)
    for topic, one, score in zip(topics, every, scores, strict=True):
        with recorder.query(topic, queries[topic]) as trace:
            for name, found in (("bm25", one.bm25), ("dense", one.dense)):
                trace.stage(name, "candidates", [(sources.ids[place], value) for place, value in found.items()])
            trace.stage("fuse", "fuse", [(sources.ids[place], value) for place, value in one.fused.items()])
            features = [dict(zip(FEATURES, row, strict=True)) for row in one.features.tolist()]
            order = sorted(zip(one.fused, score, features, strict=True), key=lambda row: -row[1])
            listed = [{"id": sources.ids[place], "score": value, "features": known} for place, value, known in order]
            trace.stage("rerank", "rerank", listed, model="lambdamart")
            trace.stage("shown", "shown", [row["id"] for row in listed[:SHOWN]])
    return recorder


def _judgments(qrels: Qrels) -> zip[tuple[str, str, float]]:
    return zip(*(qrels.table[name].to_pylist() for name in ("query_id", "doc_id", "relevance")), strict=True)


def _tokens(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


def _words(text: str) -> set[str]:
    words = (word.strip(".,:;?()/'") for word in text.lower().split())
    return set(Stemmer.Stemmer("english").stemWords([word for word in words if word and word not in STOPWORDS_EN]))


def main(docs: str, queries: str, judgments: str, folder: str) -> None:
    """Run the pipeline over files."""
    made = Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    (made / "traces.jsonl").unlink(missing_ok=True)
    topics = Topics.read(queries)
    asked = {row["query_id"]: row["text"] for row in topics.table.to_pylist()}
    recorder = run(dict(Texts.read(docs).documents), asked, Qrels.read(judgments), made / "traces.jsonl")
    print(f"{recorder.path}: {len(asked)} queries, {recorder.faults} faults")


if __name__ == "__main__":
    main(*sys.argv[1:])
