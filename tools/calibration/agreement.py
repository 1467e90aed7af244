"""Share of samples of n judged things whose 95 % interval holds the coefficient of the judges.

Each judge copies a true grade with some probability, and draws one by its frequency otherwise: two judges for Cohen's
kappa, three for Krippendorff's alpha (ordinal). *Rare* grades: 85 and 15 %. Samples in which the coefficient, or its
interval, is undefined do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration import Measured
from judged.stats.agreement import Agreement, cohen_kappa, krippendorff_alpha

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (5, 10, 20, 50, 100)


class Judging(NamedTuple):
    """How often a judge copies the true grade, and how frequent each grade is."""

    copied: float
    shares: tuple[float, ...]


SITUATIONS = {
    "two grades": Judging(0.7, (0.5, 0.5)),
    "four grades": Judging(0.6, (0.5, 0.25, 0.15, 0.1)),
    "high agreement": Judging(0.93, (0.6, 0.4)),
    "by chance": Judging(0.0, (0.7, 0.3)),
    "a rare grade": Judging(0.7, (0.85, 0.15)),
}


def judged(rng: np.random.Generator, how: Judging, n: int, judges: int) -> np.ndarray:
    """Let judges grade n things: (n, judges)."""
    grades = len(how.shares)
    true = rng.choice(grades, size=(n, 1), p=how.shares)
    own = rng.choice(grades, size=(n, judges), p=how.shares)
    return np.where(rng.random((n, judges)) < how.copied, true, own).astype(np.float64)


def coefficient(method: str, table: np.ndarray, groups: np.ndarray | None = None) -> Agreement:
    """Measure how far the judges agree."""
    if method == "kappa":
        return cohen_kappa(table[:, 0], table[:, 1], groups=groups)
    return krippendorff_alpha(table, groups=groups)


def held(method: str, situation: str, n: int, trials: int) -> float:
    """Give the share of samples whose interval holds the truth, which is read off 200,000 things."""
    how, judges = SITUATIONS[situation], 2 if method == "kappa" else 3
    rng = np.random.default_rng(n)
    many = judged(rng, how, 200_000, judges)
    truth = coefficient(method, many, np.zeros(len(many), dtype=np.int64)).value
    holds: list[bool] = []
    for _ in range(trials):
        interval = coefficient(method, judged(rng, how, n, judges)).interval
        if interval is not None:
            holds.append(interval[0] <= truth <= interval[1])
    return float(np.mean(holds))


def measure(trials: int) -> Iterator[Measured]:
    """Measure how often intervals hold the truth."""
    for method in ("kappa", "alpha"):
        for situation in SITUATIONS:
            for n in SIZES:
                yield Measured(method, situation, n, held(method, situation, n, trials), trials)
