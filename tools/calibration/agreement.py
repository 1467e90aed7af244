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
    """Judges of a situation: probability of copying the true grade, and frequencies of grades."""

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


def sample_grades(
    rng: np.random.Generator, judging: Judging, n: int, judges: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return grades of n documents, or of n topics, of shape (documents, judges), and the topics."""
    grades, topic, copied = len(judging.shares), None, np.array(judging.copied)
    if judging.topics:
        topic = np.repeat(np.arange(n), np.minimum(np.ceil(rng.pareto(1.2, n) + 1e-9), 30).astype(np.int64))
        copied, n = rng.beta(2 * judging.copied, 2 * (1 - judging.copied), n)[topic][:, None], len(topic)
    true_grades = rng.choice(grades, size=(n, 1), p=judging.shares)
    random_grades = rng.choice(grades, size=(n, judges), p=judging.shares)
    return np.where(rng.random((n, judges)) < copied, true_grades, random_grades).astype(np.float64), topic


def coefficient(method: str, table: np.ndarray, groups: np.ndarray | None = None) -> Agreement:
    """Return the agreement of the judges."""
    if method == "kappa":
        return cohen_kappa(table[:, 0], table[:, 1], groups=groups)
    return krippendorff_alpha(table, groups=groups)


def coverage(method: str, situation: str, n: int, trials: int) -> float:
    """Return the coverage of the interval."""
    return rates(method, situation, n, trials)[0]


def rates(method: str, situation: str, n: int, trials: int) -> tuple[float, float]:
    """Return the coverage, with a true value from 200,000 documents, and the share of samples without an interval."""
    judging, judges = SITUATIONS[situation], 2 if method == "kappa" else 3
    rng = np.random.default_rng(n)
    large, _ = sample_grades(rng, judging, 200_000, judges)
    truth = coefficient(method, large, np.zeros(len(large), dtype=np.int64)).value
    intervals = [coefficient(method, *sample_grades(rng, judging, n, judges)).interval for _ in range(trials)]
    is_covered = [interval[0] <= truth <= interval[1] for interval in intervals if interval is not None]
    return float(np.mean(is_covered)) if len(is_covered) >= trials / 10 else np.nan, 1 - len(is_covered) / trials


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield the coverage of each coefficient."""
    for method in ("kappa", "alpha"):
        for situation in SITUATIONS:
            for n in SIZES:
                rate, no_interval = rates(method, situation, n, trials)
                if not np.isnan(rate):
                    yield CoverageCell(method, situation, n, rate, trials)
                yield CoverageCell(f"{method}, none", situation, n, no_interval, trials)
