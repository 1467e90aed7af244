"""Points of a performance matrix: slices and topics by two measures, and on which side of the cuts they lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.changes import Mean, mean_of
from judged.stats.inputs import ROUNDING, check_share
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.parts import TopicSubset
    from judged.results.types import Bools, Floats

HEALTHY, RANKING, COVERAGE, BOTH = QUADRANTS = ("healthy", "ranking problem", "coverage problem", "both problems")
"""By the cuts: high on both axes; low on y alone; low on x alone; low on both."""
LOW, HIGH, OPEN = "below", "above", "not told apart"
NOTHING = "nothing relevant"
SHORT = dict(zip((*QUADRANTS, OPEN), ("healthy", "ranking", "coverage", "both", "?"), strict=True))
"""Quadrants in tables."""


@dataclass(frozen=True)
class MatrixChoices:
    """The choices of a performance matrix."""

    level: float = 0.95  # of the intervals; those that class slices are corrected for how many there are
    fdr: float = 0.1  # the false discovery rate of topics that are said to have lost
    # resamples, seed: of tests
    resamples: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("confidence level", self.level, low=0.5)
        check_share("false discovery rate", self.fdr)

    def corrected(self, looks: int) -> float:
        """Give the level of intervals of which so many are looked at (Bonferroni)."""
        return 1 - (1 - self.level) / max(looks, 1)


@dataclass(frozen=True)
class Axis(Mean):
    """One measure of a point, with the interval by which it is classed."""

    # `below` or `above` the cut, where the whole interval is; else `not told apart`. Empty: not classed.
    side: str = ""


@dataclass(frozen=True)
class Point:
    """A run over all topics, or over a slice."""

    run: str
    slice: str
    n: int  # how many have both scores
    small: bool  # whether the slice has too few topics to be classed: it is shown, without intervals
    x: Axis  # the two measures
    y: Axis  # the two measures
    judged: float  # the mean share of judged documents among the first 10; NaN where it is not known
    quadrant: str  # what the intervals show: one of `QUADRANTS`, or `not told apart`; empty where nothing is classed
    every: bool  # whether these are all topics


def points_of(
    run: str,
    values: Floats,  # (3, T): x, y, and the judged share
    where: Sequence[TopicSubset],
    cuts: tuple[float, float],
    ranges: Sequence[tuple[float, float]],
    choices: MatrixChoices,
    *,
    wholes: int = 0,
) -> tuple[Point, ...]:
    """Make a point for all topics and one for each slice."""
    # `wholes`: how many runs are classed as a whole, by intervals that are corrected for their number; 0: this one is
    # not, as its own means are the cuts.
    has_both = ~np.isnan(values[:2]).any(axis=0)
    few = [some.small or insufficiency(int((some.mask & has_both).sum()), "verdict") is not None for some in where]
    looks = 2 * sum(not small and not some.is_all for some, small in zip(where, few, strict=True))
    spread = _spread(values[:2])
    points: list[Point] = []
    for some, lacking in zip(where, few, strict=True):
        both = values[:2, some.mask & has_both]
        limits, small = np.full((2, 2), math.nan), lacking and not some.is_all
        if not small:
            limits = _intervals(both, spread, choices.corrected(2 * wholes if some.is_all else looks))
            limits = np.clip(limits, *np.array(ranges).T[:, :, None])
        classed = (wholes > 0 or not some.is_all) and not lacking
        x, y = (
            Axis(mean_of(row), low, high, _side(low, high, cut) if classed else "")
            for row, (low, high), cut in zip(both, limits.tolist(), cuts, strict=True)
        )
        quadrant = _quadrant(x.side, y.side) if classed else ""
        judged = mean_of(values[2, some.mask])
        points.append(Point(run, some.name, both.shape[1], small, x, y, judged, quadrant, some.is_all))
    return tuple(points)


def _intervals(values: Floats, spread: Floats, level: float) -> Floats:
    """Give Student's t interval for the mean of each row, (2, 2), with the row's own spread or a wider one."""
    # Ten topics that happen to be alike, all of them found, say, show no spread at all, and their own interval would
    # lie away from any cut: slices of a run that was never sliced were so told apart two or three times as often as
    # declared, and by the bootstrap no less often. The spread of all topics holds the level.
    n = values.shape[1]
    if insufficiency(n):
        return np.full((2, 2), math.nan)
    half = student_quantile((1 + level) / 2, n - 1) * np.fmax(_spread(values), spread) / math.sqrt(n)
    means = values.mean(axis=1)
    return np.stack([means - half, means + half], axis=1)


def _spread(values: Floats) -> Floats:
    """Give the standard deviation of each row over the topics that have both; NaN for fewer than two."""
    both = values[:, ~np.isnan(values).any(axis=0)]
    return both.std(axis=1, ddof=1) if both.shape[1] > 1 else np.full(len(values), math.nan)


def _side(low: float, high: float, cut: float) -> str:
    """Tell on which side of the cut an interval lies; one without width may lie on it."""
    slack = ROUNDING * max(abs(low), abs(high), abs(cut))
    if high < cut - slack:
        return LOW
    return HIGH if low > cut + slack else OPEN


def _quadrant(x: str, y: str) -> str:
    """Name what two axes show: a problem is what is shown to be low, health what is shown to be high."""
    if LOW in {x, y}:
        return BOTH if x == y else RANKING if y == LOW else COVERAGE
    return HEALTHY if x == y == HIGH else OPEN


def topic_quadrants(values: Floats, cuts: tuple[float, float], barren: Bools | None = None) -> tuple[str, ...]:
    """Class topics by the cuts alone: (2, T). A single topic has no interval: this describes, and proves nothing.

    >>> topic_quadrants(np.array([[0.9, 0.9, 0.1], [0.8, 0.1, 0.1]]), (0.5, 0.5))
    ('healthy', 'ranking problem', 'both problems')
    """
    # Topics that are `barren` (T,) have nothing relevant: nothing can be missed, and nothing ranked badly.
    slack = [ROUNDING * max(1.0, abs(cut)) for cut in cuts]
    x, y = values
    low_x, low_y = x < cuts[0] - slack[0], y < cuts[1] - slack[1]
    names = np.array([[HEALTHY, RANKING], [COVERAGE, BOTH]], dtype=object)[low_x.astype(int), low_y.astype(int)]
    if barren is not None:
        names = np.where(barren, NOTHING, names)
    return tuple(np.where(np.isnan(x) | np.isnan(y), "", names).tolist())
