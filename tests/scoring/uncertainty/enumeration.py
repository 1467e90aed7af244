"""Enumerate ties: judge and score each order of the tied documents as a separate run."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged import Qrels
from judged.scoring.judging import judge
from strategies import facts

if TYPE_CHECKING:
    from judged import Judged
    from judged.scoring.measures import Measure

GRADES = (-2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0, 4.0)


def seeded(seed: int) -> Random:
    """Return a random number generator with a fixed seed."""
    return Random(seed)  # noqa: S311 - it keeps no secret


@dataclass(frozen=True)
class Case:
    """Judgments ``(doc, aspect, grade)`` and tied groups of documents, best first, of some topics."""

    labels: dict[str, list[tuple[str, str, float]]]
    groups: dict[str, list[list[str]]]
    depth: int | None

    def qrels(self, topics: dict[str, str]) -> Qrels:
        """Copy the judgments of topics under new names."""
        rows = [(name, *label) for name, topic in topics.items() for label in self.labels[topic]]
        columns = dict(zip(("query_id", "doc_id", "iteration", "relevance"), zip(*rows, strict=True), strict=True))
        return Qrels(pa.table({name: list(column) for name, column in columns.items()}))

    def judged(self) -> Judged:
        run = {
            topic: {doc: -float(i) for i, group in enumerate(groups) for doc in group}
            for topic, groups in self.groups.items()
        }
        return judge(self.qrels({topic: topic for topic in self.labels}), run, documents=self.facts())

    def facts(self) -> Any:
        return facts(
            self.groups and {t: dict.fromkeys(itertools.chain(*g)) for t, g in self.groups.items()},
            {topic: {doc: 0 for doc, *_ in labels} for topic, labels in self.labels.items()},
        )

    def orders(self, topic: str) -> Judged:
        """Judge every order of a topic's documents, each as a topic."""
        groups = self.groups.get(topic, [])
        orders = itertools.product(*(itertools.permutations(group) for group in groups))
        run = {
            f"o{i:06}": {doc: -float(rank) for rank, doc in enumerate(itertools.chain(*order))}
            for i, order in enumerate(orders)
        }
        others = {f"x{other}": other for other in self.labels}  # what is judged for another topic counts for Hole
        qrels = self.qrels(dict.fromkeys(run, topic) | others)
        return judge(qrels, run, depth=self.depth, documents=self.facts()).over("both")


def some_case(rng: Random, most: int = 720) -> Case:
    """Generate three topics with lists of up to eight documents; the run may lack one topic."""
    labels, groups = {}, {}
    aspects = rng.random() < 0.4
    for topic in ("a", "b", "c"):
        docs = [f"d{i}" for i in rng.sample(range(10), rng.randint(1, 8))]
        missing = [f"m{i}" for i in range(rng.randint(0, 3))]
        judged_docs = [doc for doc in docs if rng.random() < 0.7] + missing or docs[:1]
        grades = rng.choice([GRADES, (0.0, 1.0), (0.0, 1.0, 2.0), (-1.0, 1.0)])
        labels[topic] = [
            (doc, aspect, rng.choice(grades))
            for doc in judged_docs
            for aspect in (sorted(rng.sample("123", rng.randint(1, 2))) if aspects else ["0"])
        ]
        if topic == "c" and rng.random() < 0.3:
            continue
        groups[topic] = _cut_up(docs, rng, most)
    depth = rng.choice([None, None, None, rng.randint(1, 8)])
    return Case(labels, groups, depth)


def _cut_up(docs: list[str], rng: Random, most: int) -> list[list[str]]:
    while True:
        ends = [i for i in range(1, len(docs)) if rng.random() < 0.35]
        groups = [docs[a:b] for a, b in itertools.pairwise([0, *ends, len(docs)])]
        if math.prod(math.factorial(len(group)) for group in groups) <= most:
            return groups


def enumerated(judged: Judged, measure: Measure) -> tuple[float, float, float]:
    """Return the mean, minimum, and maximum score over the topics of a list."""
    scores = measure(judged)
    return float(np.mean(scores)), float(scores.min()), float(scores.max())


def tied(*grades: float | None, missing: tuple[float, ...] = ()) -> Judged:
    """Judge documents that all have one score."""
    labels = {f"d{i}": grade for i, grade in enumerate(grades) if grade is not None}
    labels |= {f"m{i}": grade for i, grade in enumerate(missing)}
    return judge({"q": labels}, {"q": {f"d{i}": 1.0 for i in range(len(grades))}})
