"""A made pipeline that can be damaged: what is done to it is written down here, and nothing of how that is found.

Every topic has 40 documents of its own, 8 of them relevant (grades 1 to 3), dated evenly over two years. Two sources
each index three quarters of them and score what they hold (0.8 a grade, and noise of one); the better score of the two
merges them, a reranker with a better view of grades orders the first 30, and the first ten are shown. Users are shown
each list 50 times and click by grade, a little less further down.
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
    """A pipeline's traces, and all that is known about what they hold."""

    qrels: dict[str, dict[str, int]]
    traces: Traces
    documents: dict[str, dict[str, str]]
    attributes: dict[str, dict[str, str]]
    clicks: list[dict[str, object]]
    gone: frozenset[str]  # deleted
    unindexed: frozenset[str]  # in no index
    unrecorded: frozenset[str]  # topics


def world(damage: str, seed: int) -> World:
    """Run the pipeline over all topics, with one thing damaged."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    documents: dict[str, dict[str, str]] = {}
    attributes: dict[str, dict[str, str]] = {}
    clicks: list[dict[str, object]] = []
    spans: list[Span] = []
    gone, unindexed, unrecorded = set[str](), set[str](), set[str]()
    for number in range(TOPICS):
        topic = f"t{number}"
        docs = [f"{topic}-{one}" for one in range(DOCUMENTS)]
        grade = np.concatenate([rng.integers(1, 4, RELEVANT), np.zeros(DOCUMENTS - RELEVANT, dtype=np.int64)])
        days = rng.integers(0, 730, DOCUMENTS)
        attributes[topic] = {"class": CLASSES[number % len(CLASSES)]}
        qrels[topic] = dict(zip(docs, grade.tolist(), strict=True))
        for doc, ago in zip(docs, days.tolist(), strict=True):
            documents[doc] = {"date": (TODAY - dt.timedelta(days=ago)).isoformat()}
        lost = rng.random(DOCUMENTS) < 0.25
        there = ~lost if damage in {"content removed", "lost shard"} else np.ones(DOCUMENTS, dtype=np.bool_)
        if damage == "stopped index":
            there = days >= (TODAY - STOPPED).days
        gone |= {doc for doc, kept in zip(docs, there, strict=True) if not kept and damage == "content removed"}
        unindexed |= {doc for doc, kept in zip(docs, there, strict=True) if not kept and damage != "content removed"}
        merged = np.full(DOCUMENTS, -np.inf)
        for source in ("sparse", "dense"):
            holds = there & (rng.random(DOCUMENTS) < 0.75)
            score = 0.8 * grade + rng.normal(size=DOCUMENTS)
            if source == "dense" and damage == "shifted scores":
                score += 1.5
            found = [at for at in np.argsort(-score, kind="stable").tolist() if holds[at]][:20]
            listed = _listed(docs, score, found)
            if source == "dense" and damage == "unrecorded" and rng.random() < 1 / 3:
                unrecorded.add(topic)
                spans.append(Span(topic, topic, source, "candidates", (), None))
            else:
                spans.append(Span(topic, topic, source, "candidates", (), listed))
            merged[found] = np.maximum(merged[found], score[found])
        depth = 8 if damage == "cut candidates" else 30
        first = [at for at in np.argsort(-merged, kind="stable").tolist() if merged[at] > -np.inf][:depth]
        spans.append(Span(topic, topic, "merge", "fuse", ("sparse", "dense"), _listed(docs, merged, first)))
        better = grade + 0.3 * np.where(np.isinf(merged), 0.0, merged) + 0.7 * rng.normal(size=DOCUMENTS)
        if damage == "class ranker" and attributes[topic]["class"] == "broad":
            better = rng.normal(size=DOCUMENTS)
        order = sorted(first, key=lambda at, by=better: -by[at])
        spans.append(Span(topic, topic, "rerank", "rerank", ("merge",), _listed(docs, better, order)))
        spans.append(Span(topic, topic, "shown", "shown", ("rerank",), _listed(docs, better, order[:10])))
        for rank, at in enumerate(order[:10], 1):
            chance = 0.5 / rank if damage == "clicks by position" else (0.03 + 0.2 * grade[at]) * rank**-0.3
            times = int(rng.binomial(50, chance))
            clicks.append({"query_id": topic, "doc_id": docs[at], "clicks": times})
    parts = frozenset(gone), frozenset(unindexed), frozenset(unrecorded)
    return World(qrels, Traces(tuple(spans), damage), documents, attributes, clicks, *parts)


def _listed(
    docs: list[str], score: np.ndarray[tuple[int], np.dtype[np.float64]], order: list[int]
) -> tuple[Document, ...]:
    return tuple(Document(docs[at], rank, float(score[at])) for rank, at in enumerate(order, 1))
