"""Rerank candidates in `judged experiment` with LambdaMART (pip install lightgbm), trained on the sample's judgments.

Each topic is ranked by a model that was trained on the other four fifths of the topics, without its own judgments. The
first query waits for the training, which affects only the cold latency.
"""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from judged.data import sample
from judged.data.texts import Texts
from judged.pipelines.experiments import Candidate
from judged.pipelines.experiments.engines import find_engine

FOLDS, DEPTH = 5, 100
OPTIONS = {
    "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 7, "min_data_in_leaf": 20, "verbose": -1,
    "seed": 0, "deterministic": True, "num_threads": 1,
}  # fmt: skip


def score(query: str, candidates: list[Candidate]) -> list[float]:
    """Score candidates, which are in the order of the engine (interface of a reranker)."""
    models, fold = _train_models()
    return models[fold.get(query, 0)].predict(_features(query, candidates)).tolist()


def _features(query: str, candidates: list[Candidate]) -> np.ndarray[Any, np.dtype[np.float64]]:
    query_words = _words(query)
    best_score = max((candidate.score for candidate in candidates), default=1.0)
    rows = [
        (
            candidate.score,
            candidate.score / best_score,
            rank,
            len(query_words & _words(candidate.title)) / max(len(query_words), 1),
            len(query_words & _words(candidate.text)) / max(len(query_words), 1),
            len(query_words & _words(candidate.text[:100])),
            len(candidate.text),
        )
        for rank, candidate in enumerate(candidates, 1)
    ]
    return np.array(rows, dtype=np.float64)


@cache
def _train_models() -> tuple[list[Any], dict[str, int]]:
    """Train a model without each fold of topics; return the models, and the fold of each query."""
    texts, topics = Texts.read(sample.FOLDER / "docs.jsonl.gz"), sample.topics()
    grades = {
        (row["query_id"], row["doc_id"]): max(int(row["relevance"]), 0) for row in sample.qrels().table.to_pylist()
    }
    queries = topics.table["query_id"].to_pylist()
    fold = (np.random.default_rng(0).permutation(len(queries)) % FOLDS).tolist()
    rows, labels = [], []
    with tempfile.TemporaryDirectory() as folder:
        engine = find_engine("sqlite")()
        engine.build(
            texts.documents, {name: setting.default for name, setting in engine.settings.items()}, Path(folder)
        )
        for query in queries:
            hits = engine.search(topics.text(query), DEPTH)
            rows.append(_features(topics.text(query), [Candidate(*hit, *texts.documents[hit[0]]) for hit in hits]))
            labels.append([grades.get((query, doc), 0) for doc, _ in hits])
        engine.close()
    models = []
    for test_fold in range(FOLDS):
        train = [i for i, query_fold in enumerate(fold) if query_fold != test_fold and any(labels[i])]
        data = lightgbm.Dataset(
            np.concatenate([rows[i] for i in train]),
            np.concatenate([labels[i] for i in train]),
            group=[len(labels[i]) for i in train],
        )
        models.append(lightgbm.train(OPTIONS, data, num_boost_round=100))
    return models, {topics.text(query): query_fold for query, query_fold in zip(queries, fold, strict=True)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
