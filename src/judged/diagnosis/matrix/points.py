"""Points of a performance matrix: means over slices by two measures, and their quadrants."""

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
"""Quadrants: high on both axes; low on y only; low on x only; low on both."""
LOW, HIGH, UNDECIDED = "below", "above", "undecided"
NO_RELEVANT = "no relevant documents"
SHORT = dict(zip((*QUADRANTS, UNDECIDED), ("healthy", "ranking", "coverage", "both", "?"), strict=True))
"""Short forms of quadrants for tables."""


@dataclass(frozen=True)
class MatrixChoices:
    """Options of `matrix`."""

    level: float = 0.95  # of the intervals shown; those that classify slices are corrected for their number
    fdr: float = 0.1  # false discovery rate of the topics reported as lost
    # resamples, seed: of the randomization tests
    resamples: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_share("confidence level", self.level, low=0.5)
        check_share("false discovery rate", self.fdr)

    def corrected(self, intervals: int) -> float:
        """Return the level of each of several simultaneous intervals (Bonferroni)."""
        return 1 - (1 - self.level) / max(intervals, 1)


@dataclass(frozen=True)
class MatrixAxis(Mean):
    """Mean of a point by one measure, with the interval that classifies it."""

    # `below` or `above` if the whole interval is on this side of the cut, else UNDECIDED; empty if not classified
    side: str = ""


@dataclass(frozen=True)
class MatrixPoint:
    """Run over all topics, or over a slice."""

    run: str
    slice: str
    n: int  # number of topics with both scores
    small: bool  # whether the slice has too few topics to be classified; it is shown without intervals
    x: MatrixAxis
    y: MatrixAxis
    judged: float  # mean share of judged documents in the top 10; NaN if unknown
    quadrant: str  # by the intervals: one of `QUADRANTS`, or UNDECIDED; empty if not classified
    is_overall: bool  # whether the topics are all topics
    # of a class with its own measure on y and its own cuts
    measure: str = ""
    cuts: tuple[float, float] = (math.nan, math.nan)


def run_points(
    run: str,
    values: Floats,  # (3, T): x, y, and the judged share
    topic_sets: Sequence[TopicSubset],
    cuts: tuple[float, float],
    ranges: Sequence[tuple[float, float]],
    options: MatrixChoices,
    *,
    classified_runs: int = 0,
    slice_intervals: int | None = None,
) -> tuple[MatrixPoint, ...]:
    """Compute the points of a run over all topics and over each slice."""
    # `classified_runs`: number of runs that are classified over all topics; their intervals are corrected for it.
    # 0: this run is not classified, because its own means are the cuts.
    # `slice_intervals`: number of intervals of slices that are corrected together. None: those of these slices.
    has_both = ~np.isnan(values[:2]).any(axis=0)
    sizes = [int((topics.mask & has_both).sum()) for topics in topic_sets]
    too_few = [part.small or bool(insufficiency(n, "verdict")) for part, n in zip(topic_sets, sizes, strict=True)]
    slice_intervals = slice_intervals or 2 * sum(
        not is_few and not topics.is_all for topics, is_few in zip(topic_sets, too_few, strict=True)
    )
    spread = _row_spread(values[:2])
    points: list[MatrixPoint] = []
    for topics, is_few in zip(topic_sets, too_few, strict=True):
        selected = values[:2, topics.mask & has_both]
        limits, small = np.full((2, 2), math.nan), is_few and not topics.is_all
        if not small:
            level = options.corrected(2 * classified_runs if topics.is_all else slice_intervals)
            limits = np.clip(_intervals(selected, spread, level), *np.array(ranges).T[:, :, None])
        is_classified = (classified_runs > 0 or not topics.is_all) and not is_few
        x, y = (
            MatrixAxis(mean_of(row), low, high, _side_of_cut(low, high, cut) if is_classified else "")
            for row, (low, high), cut in zip(selected, limits.tolist(), cuts, strict=True)
        )
        quadrant = _quadrant(x.side, y.side) if is_classified else ""
        judged = mean_of(values[2, topics.mask])
        points.append(MatrixPoint(run, topics.name, selected.shape[1], small, x, y, judged, quadrant, topics.is_all))
    return tuple(points)


def _intervals(values: Floats, spread: Floats, level: float) -> Floats:
    """Compute Student's t interval of the mean of each row, (2, 2), from the larger of its own spread and `spread`."""
    # A small slice can have no spread by chance, for example if all ten topics score 1. With its own spread only, its
    # interval would exclude every cut: in simulations with random slices, two to three times as many slices as declared
    # were then classified, with the bootstrap as well. The spread of all topics keeps the level.
    n = values.shape[1]
    if insufficiency(n):
        return np.full((2, 2), math.nan)
    half = student_quantile((1 + level) / 2, n - 1) * np.fmax(_row_spread(values), spread) / math.sqrt(n)
    means = values.mean(axis=1)
    return np.stack([means - half, means + half], axis=1)


def _row_spread(values: Floats) -> Floats:
    """Return the standard deviation of each row over the topics with both scores; NaN for fewer than two."""
    defined = values[:, ~np.isnan(values).any(axis=0)]
    return defined.std(axis=1, ddof=1) if defined.shape[1] > 1 else np.full(len(values), math.nan)


def _side_of_cut(low: float, high: float, cut: float) -> str:
    """Return the side of the cut on which the whole interval lies. An interval of width 0 may lie on the cut."""
    tolerance = ROUNDING * max(abs(low), abs(high), abs(cut))
    if high < cut - tolerance:
        return LOW
    return HIGH if low > cut + tolerance else UNDECIDED


def _quadrant(x: str, y: str) -> str:
    """Classify a point: a problem requires a side shown to be low, and healthy requires both shown to be high."""
    if LOW in {x, y}:
        return BOTH if x == y else RANKING if y == LOW else COVERAGE
    return HEALTHY if x == y == HIGH else UNDECIDED


def topic_quadrants(values: Floats, cuts: tuple[float, float], no_relevant: Bools | None = None) -> tuple[str, ...]:
    """Classify topics by their scores, shape (2, T), and the cuts. Without intervals, this is descriptive only.

    >>> topic_quadrants(np.array([[0.9, 0.9, 0.1], [0.8, 0.1, 0.1]]), (0.5, 0.5))
    ('healthy', 'ranking problem', 'both problems')
    """
    # `no_relevant`: mask (T,) of topics without a relevant document, on which no loss is possible.
    tolerances = [ROUNDING * max(1.0, abs(cut)) for cut in cuts]
    x, y = values
    low_x, low_y = x < cuts[0] - tolerances[0], y < cuts[1] - tolerances[1]
    names = np.array([[HEALTHY, RANKING], [COVERAGE, BOTH]], dtype=object)[low_x.astype(int), low_y.astype(int)]
    if no_relevant is not None:
        names = np.where(no_relevant, NO_RELEVANT, names)
    return tuple(np.where(np.isnan(x) | np.isnan(y), "", names).tolist())
