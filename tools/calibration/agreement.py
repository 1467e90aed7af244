"""Coverage of 95% intervals of coefficients of agreement, with n judged documents.

Each judge copies the true grade with some probability, and otherwise draws a grade by its frequency. There are two
judges for Cohen's kappa and three for Krippendorff's alpha (ordinal). *A rare grade*: 85% and 15%. *Topics*: n topics
with 1 to 30 documents each (Pareto 1.2) and different copy rates; intervals are over topics. *None*: share of samples
without an interval, which the coverage excludes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration import CoverageCell
from judged.stats.agreement import Agreement, cohen_kappa, krippendorff_alpha

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (5, 10, 20, 50, 100)


class Judging(NamedTuple):
    """How often a judge copies the true grade, and how frequent each grade is."""

    copied: float
    shares: tuple[float, ...]
    topics: bool = False


SITUATIONS = {
    "two grades": Judging(0.7, (0.5, 0.5)),
    "four grades": Judging(0.6, (0.5, 0.25, 0.15, 0.1)),
    "high agreement": Judging(0.93, (0.6, 0.4)),
    "by chance": Judging(0.0, (0.7, 0.3)),
    "a rare grade": Judging(0.7, (0.85, 0.15)),
    "topics": Judging(0.6, (0.5, 0.3, 0.2), topics=True),
}


def judged(rng: np.random.Generator, how: Judging, n: int, judges: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Let judges grade n things, or those of n topics: (things, judges), and the topics."""
    grades, topic, copied = len(how.shares), None, np.array(how.copied)
    if how.topics:
        topic = np.repeat(np.arange(n), np.minimum(np.ceil(rng.pareto(1.2, n) + 1e-9), 30).astype(np.int64))
        copied, n = rng.beta(2 * how.copied, 2 * (1 - how.copied), n)[topic][:, None], len(topic)
    true = rng.choice(grades, size=(n, 1), p=how.shares)
    own = rng.choice(grades, size=(n, judges), p=how.shares)
    return np.where(rng.random((n, judges)) < copied, true, own).astype(np.float64), topic


def coefficient(method: str, table: np.ndarray, groups: np.ndarray | None = None) -> Agreement:
    """Measure how far the judges agree."""
    if method == "kappa":
        return cohen_kappa(table[:, 0], table[:, 1], groups=groups)
    return krippendorff_alpha(table, groups=groups)


def held(method: str, situation: str, n: int, trials: int) -> float:
    """Give the share of samples whose interval holds the truth, which is read off 200,000 things."""
    return rates(method, situation, n, trials)[0]


def rates(method: str, situation: str, n: int, trials: int) -> tuple[float, float]:
    """Give the same, and the share of samples without an interval."""
    how, judges = SITUATIONS[situation], 2 if method == "kappa" else 3
    rng = np.random.default_rng(n)
    many, _ = judged(rng, how, 200_000, judges)
    truth = coefficient(method, many, np.zeros(len(many), dtype=np.int64)).value
    intervals = [coefficient(method, *judged(rng, how, n, judges)).interval for _ in range(trials)]
    holds = [ends[0] <= truth <= ends[1] for ends in intervals if ends is not None]
    return float(np.mean(holds)) if len(holds) >= trials / 10 else np.nan, 1 - len(holds) / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Measure how often intervals hold the truth."""
    for method in ("kappa", "alpha"):
        for situation in SITUATIONS:
            for n in SIZES:
                rate, none = rates(method, situation, n, trials)
                if not np.isnan(rate):
                    yield CoverageCell(method, situation, n, rate, trials)
                yield CoverageCell(f"{method}, none", situation, n, none, trials)
