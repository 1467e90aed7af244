"""Simulated pipeline with optional damage, as ground truth for kinds of failure.

Each topic has its own 40 documents, 8 of them relevant (grades 1 to 3), with dates over two years. Two sources
index three quarters of them each, with scores of 0.8 per grade and standard normal noise; the higher score of the two
merges them, a reranker with less noise orders the top 30, and users see the top ten. Each list is shown 50 times,
and clicks depend on grades, with a slow decrease by rank.

The collection depends only on the seed, so that a damaged and an undamaged pipeline can be compared on the same
topics. Indexes, noise, and clicks also depend on the number of the release.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

import numpy as np

from judged.pipelines.traces import Document, Span, Traces

TODAY = dt.date(2026, 1, 1)
STOPPED = TODAY - dt.timedelta(days=200)
DAMAGES = {
    "nothing": "",
    "content removed": "a quarter of all documents is deleted from the corpus",
    "lost shard": "both sources lose the same quarter of all documents",
    "cut candidates": "the reranker is given 8 documents, not 30",
    "unrecorded": "of a third of the queries the candidates of one source are not written down",
    "shifted scores": "one source scores everything 1.5 higher",
    "stopped index": "what is dated later than 200 days ago is in no index",
    "class ranker": "queries of class broad are reranked by noise",
    "clicks by position": "users click by rank alone: half of them on the first, 1/rank of that on others",
}
TOPICS, DOCUMENTS, RELEVANT = 100, 40, 8
CLASSES = ("name", "how-to", "broad")


class World(NamedTuple):
    """Traces of a pipeline, and the ground truth."""

    qrels: dict[str, dict[str, int]]
    traces: Traces
    documents: dict[str, dict[str, str]]
    attributes: dict[str, dict[str, str]]
    clicks: list[dict[str, object]]
    deleted: frozenset[str]  # documents that are not in the corpus
    unindexed: frozenset[str]  # documents that are in no index
    unrecorded: frozenset[str]  # topics with an unrecorded stage


def simulate(damage: str, seed: int, release: int = 0) -> World:
    """Simulate a release of the pipeline over all topics, with one kind of damage."""
    # Separate generators: the number of draws of clicks and of unrecorded topics depends on the damage.
    rng, noise, users, damages = (np.random.default_rng([seed, number, release * (number > 0)]) for number in range(4))
    qrels: dict[str, dict[str, int]] = {}
    documents: dict[str, dict[str, str]] = {}
    attributes: dict[str, dict[str, str]] = {}
    clicks: list[dict[str, object]] = []
    spans: list[Span] = []
    deleted, unindexed, unrecorded = set[str](), set[str](), set[str]()
    for topic_index in range(TOPICS):
        topic = f"t{topic_index}"
        docs = [f"{topic}-{i}" for i in range(DOCUMENTS)]
        grades = np.concatenate([rng.integers(1, 4, RELEVANT), np.zeros(DOCUMENTS - RELEVANT, dtype=np.int64)])
        days = rng.integers(0, 730, DOCUMENTS)
        attributes[topic] = {"class": CLASSES[topic_index % len(CLASSES)]}
        qrels[topic] = dict(zip(docs, grades.tolist(), strict=True))
        for doc, age in zip(docs, days.tolist(), strict=True):
            documents[doc] = {"date": (TODAY - dt.timedelta(days=age)).isoformat()}
        is_lost = rng.random(DOCUMENTS) < 0.25
        is_indexed = ~is_lost if damage in {"content removed", "lost shard"} else np.ones(DOCUMENTS, dtype=np.bool_)
        if damage == "stopped index":
            is_indexed = days >= (TODAY - STOPPED).days
        deleted |= {
            doc for doc, indexed in zip(docs, is_indexed, strict=True) if not indexed and damage == "content removed"
        }
        unindexed |= {
            doc for doc, indexed in zip(docs, is_indexed, strict=True) if not indexed and damage != "content removed"
        }
        merged = np.full(DOCUMENTS, -np.inf)
        for source in ("sparse", "dense"):
            is_held = is_indexed & (noise.random(DOCUMENTS) < 0.75)
            scores = 0.8 * grades + noise.normal(size=DOCUMENTS)
            if source == "dense" and damage == "shifted scores":
                scores += 1.5
            top = [i for i in np.argsort(-scores, kind="stable").tolist() if is_held[i]][:20]
            documents_listed = _documents(docs, scores, top)
            if source == "dense" and damage == "unrecorded" and damages.random() < 1 / 3:
                unrecorded.add(topic)
                spans.append(Span(topic, topic, source, "candidates", (), None))
            else:
                spans.append(Span(topic, topic, source, "candidates", (), documents_listed))
            merged[top] = np.maximum(merged[top], scores[top])
        depth = 8 if damage == "cut candidates" else 30
        candidates = [i for i in np.argsort(-merged, kind="stable").tolist() if merged[i] > -np.inf][:depth]
        spans.append(Span(topic, topic, "merge", "fuse", ("sparse", "dense"), _documents(docs, merged, candidates)))
        rerank_scores = grades + 0.3 * np.where(np.isinf(merged), 0.0, merged) + 0.7 * noise.normal(size=DOCUMENTS)
        if damage == "class ranker" and attributes[topic]["class"] == "broad":
            rerank_scores = damages.normal(size=DOCUMENTS)
        order = sorted(candidates, key=(-rerank_scores).__getitem__)
        spans.append(Span(topic, topic, "rerank", "rerank", ("merge",), _documents(docs, rerank_scores, order)))
        spans.append(Span(topic, topic, "shown", "shown", ("rerank",), _documents(docs, rerank_scores, order[:10])))
        for rank, i in enumerate(order[:10], 1):
            click_rate = 0.5 / rank if damage == "clicks by position" else (0.03 + 0.2 * grades[i]) * rank**-0.3
            count = int(users.binomial(50, click_rate))
            clicks.append({"query_id": topic, "doc_id": docs[i], "clicks": count})
    damaged = frozenset(deleted), frozenset(unindexed), frozenset(unrecorded)
    return World(qrels, Traces(tuple(spans), damage), documents, attributes, clicks, *damaged)


def _documents(
    docs: list[str], scores: np.ndarray[tuple[int], np.dtype[np.float64]], order: list[int]
) -> tuple[Document, ...]:
    return tuple(Document(docs[i], rank, float(scores[i])) for rank, i in enumerate(order, 1))
