"""A reranker for `judged experiment`: LambdaMART (pip install lightgbm), trained on the sample's judgments.

Every topic is ranked by a model that was trained on the other four fifths of the topics: its own judgments have no
part in it. The first query waits for the training, so that it shows in the cold latency and in no other.
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
from judged.pipelines.experiments.engines import engine_named

FOLDS, DEPTH = 5, 100
OPTIONS = {
    "objective": "lambdarank", "learning_rate": 0.05, "num_leaves": 7, "min_data_in_leaf": 20, "verbose": -1,
    "seed": 0, "deterministic": True, "num_threads": 1,
}  # fmt: skip


def score(query: str, candidates: list[Candidate]) -> list[float]:
    """Score candidates, which come in the order of the engine: what judged asks of a reranker."""
    models, fold = _trained()
    return models[fold.get(query, 0)].predict(_features(query, candidates)).tolist()


def _features(query: str, candidates: list[Candidate]) -> np.ndarray[Any, np.dtype[np.float64]]:
    asked = _words(query)
    best = max((one.score for one in candidates), default=1.0)
    rows = [
        (
            one.score,
            one.score / best,
            rank,
            len(asked & _words(one.title)) / max(len(asked), 1),
            len(asked & _words(one.text)) / max(len(asked), 1),
            len(asked & _words(one.text[:100])),
            len(one.text),
        )
        for rank, one in enumerate(candidates, 1)
    ]
    return np.array(rows, dtype=np.float64)


@cache
def _trained() -> tuple[list[Any], dict[str, int]]:
    """Train a model without each fold of topics; give them, and the fold of each query."""
    texts, topics = Texts.read(sample.FOLDER / "docs.jsonl.gz"), sample.topics()
    grades = {
        (row["query_id"], row["doc_id"]): max(int(row["relevance"]), 0) for row in sample.qrels().table.to_pylist()
    }
    queries = topics.table["query_id"].to_pylist()
    fold = (np.random.default_rng(0).permutation(len(queries)) % FOLDS).tolist()
    rows, labels = [], []
    with tempfile.TemporaryDirectory() as folder:
        engine = engine_named("sqlite")()
        engine.build(texts.documents, {name: one.default for name, one in engine.settings.items()}, Path(folder))
        for query in queries:
            hits = engine.search(topics.text(query), DEPTH)
            rows.append(_features(topics.text(query), [Candidate(*hit, *texts.documents[hit[0]]) for hit in hits]))
            labels.append([grades.get((query, doc), 0) for doc, _ in hits])
        engine.close()
    models = []
    for held in range(FOLDS):
        train = [at for at, own in enumerate(fold) if own != held and any(labels[at])]
        data = lightgbm.Dataset(
            np.concatenate([rows[at] for at in train]),
            np.concatenate([labels[at] for at in train]),
            group=[len(labels[at]) for at in train],
        )
        models.append(lightgbm.train(OPTIONS, data, num_boost_round=100))
    return models, {topics.text(query): own for query, own in zip(queries, fold, strict=True)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
