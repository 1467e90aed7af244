"""Create a collection and runs: a good run, an equally good run, and runs with known losses on known topics.

Each document has a latent quality, and a run orders documents by quality and noise. Two samples of the noise are
exchangeable, so neither run is better on any topic. Losses are added to a sample, so their topics and kinds are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    Kind = Literal["candidates", "ranking", "both"]
    Lists = dict[str, list[str]]

KINDS: tuple[Kind, ...] = ("candidates", "ranking", "both")
DEPTH, PAGE, LENGTH = 40, 10, 48
_MERIT = (0.0, 3.0, 3.6, 4.2)  # by grade, in standard deviations of the noise of the others


@dataclass(frozen=True)
class Planted:
    """Judgments, latent quality of documents, and attributes of topics."""

    qrels: dict[str, dict[str, int]]
    merit: dict[str, dict[str, float]]
    attributes: dict[str, dict[str, str]]
    seed: int

    @property
    def topics(self) -> list[str]:
        return list(self.qrels)

    def run(self, draw: int, noise: float = 0.4) -> Lists:
        """Order the documents of each topic by quality and noise; each draw is as good as any other."""
        rng = np.random.default_rng([self.seed, draw])
        planted: Lists = {}
        for topic, merits in self.merit.items():
            docs = list(merits)
            scores = np.array([merits[doc] for doc in docs]) + noise * rng.standard_normal(len(docs))
            planted[topic] = [docs[i] for i in np.argsort(-scores)[:LENGTH]]
        return planted


def planted(seed: int, topics: int = 200) -> Planted:
    """Create a collection: 4 to 12 relevant documents per topic with grades 1 to 3, most of them on the first page."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    merit: dict[str, dict[str, float]] = {}
    attributes: dict[str, dict[str, str]] = {}
    for i in range(topics):
        topic = f"q{i:03}"
        grades = rng.integers(1, 4, size=rng.integers(4, 13))
        judged = {f"{topic}r{n}": int(grade) for n, grade in enumerate(grades)}
        judged |= {f"{topic}n{n}": 0 for n in range(12)}
        others = [f"{topic}u{n}" for n in range(LENGTH)]
        qrels[topic] = judged
        merit[topic] = {doc: _MERIT[judged.get(doc, 0)] + rng.standard_normal() for doc in [*judged, *others]}
        attributes[topic] = {
            "domain": ("law", "news", "code", "shop")[i % 4],
            "size": "rare" if i % 10 == 0 else "usual",
            "luck": f"g{rng.integers(6)}",
        }
    return Planted(qrels, merit, attributes, seed)


def damaged(planted: Planted, run: Lists, topics: Iterable[str], kind: Kind, severity: float, seed: int = 0) -> Lists:
    """Damage these topics: take relevant documents away, push them below the page, or half of each.

    ``severity`` is the share of relevant documents that are hit, at least one.
    """
    rng = np.random.default_rng([planted.seed, seed, 7])
    hit = {topic: _damaged(run[topic], planted.qrels[topic], kind, severity, rng) for topic in topics}
    return {topic: hit.get(topic, docs) for topic, docs in run.items()}


def _damaged(
    docs: list[str], judged: dict[str, int], kind: Kind, severity: float, rng: np.random.Generator
) -> list[str]:
    relevant = [doc for doc in docs[:DEPTH] if judged.get(doc, 0) > 0]
    rng.shuffle(relevant)
    half = len(relevant) // 2 if kind == "both" else len(relevant)
    gone = _some(relevant[:half], severity) if kind != "ranking" else []
    low = _some(relevant[half:] if kind == "both" else relevant, severity) if kind != "candidates" else []
    remaining = [doc for doc in docs if doc not in gone]
    for doc in low:
        i = remaining.index(doc)
        if i < PAGE:
            below = [place for place in range(PAGE, DEPTH - 4) if judged.get(remaining[place], 0) == 0]
            to = int(rng.choice(below))
            remaining[i], remaining[to] = remaining[to], remaining[i]
    return remaining


def _some(docs: list[str], severity: float) -> list[str]:
    return docs[: max(1, round(severity * len(docs)))] if docs else []


def ndcg(grades: list[int], judged: dict[str, int]) -> float:
    """Compute nDCG@10 independently of the library."""
    ideal = sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:PAGE]
    best = sum(grade / np.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    return sum(grade / np.log2(rank + 1) for rank, grade in enumerate(grades[:PAGE], 1)) / best


def levels(docs: list[str], judged: dict[str, int]) -> tuple[float, float]:
    """The best score that the candidates allow, and the score."""
    grades = [judged.get(doc, 0) for doc in docs]
    return ndcg(sorted(grades[:DEPTH], reverse=True), judged), ndcg(grades, judged)
