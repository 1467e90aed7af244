"""Confidence intervals for means over topics. Sees only numbers: one row per quantity, one column per topic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from judged.results.types import Floats, Ints

IntervalName: TypeAlias = Literal["adjusted", "t", "bootstrap", "none"]
_PSEUDO_TOPIC = 0.5  # weight of what is added at the bounds; this and the next are chosen by docs/calibration.md
_SKEWNESS = 1 / 3  # share of the correction for skewness that is applied: of few topics its estimate is rough
_HELD = 1 << 22  # numbers worked on at a time
_ROUNDING = 1e-12  # of the largest mean: the last bits of a product of matrices depend on their shapes


@dataclass(frozen=True)
class IntervalMethod:
    """How intervals are made; it travels with the result.

    >>> IntervalMethod().words, IntervalMethod("bootstrap", 0.9).words
    ('95% interval: adjusted t', '90% interval: bootstrap, 2000 resamples, seed 0')
    """

    # `adjusted`: Student's t around the mean, with half a topic added that scores the lowest value and the highest in
    # equal parts, where the measure has both, and a third of the correction for skewness. `t`: Student's t as in
    # textbooks. `bootstrap`: bias-corrected and accelerated (Efron 1987), topics resampled; the same resamples for all
    # runs and measures that count the same topics. `none`: no intervals.
    name: IntervalName = "adjusted"
    level: float = 0.95  # the share of samples whose interval holds the true mean
    # resamples, seed: of the bootstrap
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in get_args(IntervalName):
            raise InputError(f"no interval method {self.name!r}", fix=f"use one of {', '.join(get_args(IntervalName))}")
        if not 0 < self.level < 1:
            fix = "0.95, say; the lowest relevant grade is rel (--rel)"
            raise InputError(f"the confidence level {self.level} is not between 0 and 1", fix=fix)
        check_resampling(self.resamples, self.seed)

    @property
    def words(self) -> str:
        """What an interval is, for captions; empty where there is none."""
        how = {
            "adjusted": "adjusted t",
            "t": "Student's t",
            "bootstrap": f"bootstrap, {self.resamples} resamples, seed {self.seed}",
        }
        return f"{self.level:.0%} interval: {how[self.name]}" if self.name != "none" else ""


def mean_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Give an interval for the mean of each row.

    >>> scores = np.array([[0.1, 0.2, 0.4, 0.5], [1, 1, 1, 1]])
    >>> mean_intervals(scores, IntervalMethod("t")).round(3).tolist()
    [[0.009, 0.591], [nan, nan]]
    >>> mean_intervals(scores, IntervalMethod(), (0, 1)).round(3).tolist()
    [[0.037, 0.726], [0.4, 1.0]]
    """
    # How often each method's intervals hold the true mean, on scores of real runs: docs/calibration.md. `values`: (S,
    # T): S quantities over T topics. NaN: the topic does not count for that quantity. `bounds`: (S, 2), or (2,) for all
    # rows: the lowest and highest value that a topic can have; NaN where there is none, and where a value lies beyond
    # it, it is no bound. Only `adjusted` uses them. Returns low and high. NaN for a row with fewer than two topics, and
    # for one whose values are all the same unless bounds say how far others could lie: such a sample shows no
    # variation, which is not to say that there is none.
    limits = np.full((len(values), 2), np.nan)
    topics = values.shape[1]
    if method.name == "none" or topics < 2:
        return limits
    ends = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (len(values), 2))
    size = max(_HELD // topics, 1)
    for start in range(0, len(values), size):
        part = slice(start, start + size)
        limits[part] = _intervals(values[part], method, ends[part])
    return limits


def _intervals(values: Floats, method: IntervalMethod, bounds: Floats) -> Floats:
    """Give the intervals of some rows."""
    limits = np.full((len(values), 2), np.nan)
    counted = ~np.isnan(values)
    n = counted.sum(axis=1)
    mean = np.where(counted, values, 0.0).sum(axis=1) / np.maximum(n, 1)
    lowest, highest = np.where(counted, values, np.inf).min(axis=1), np.where(counted, values, -np.inf).max(axis=1)
    if method.name == "adjusted":
        ends = np.where(np.stack([lowest >= bounds[:, 0], highest <= bounds[:, 1]], axis=1), bounds, np.nan)
        rows = np.flatnonzero((n > 1) & ((lowest < highest) | ~np.isnan(ends).any(axis=1)))
        limits[rows] = adjusted(values[rows], ends[rows], method.level)
        return limits
    rows = np.flatnonzero((n > 1) & (lowest < highest))
    deviation = np.where(counted, values - mean[:, None], 0.0)
    if method.name == "t":
        error = np.sqrt((deviation[rows] ** 2).sum(axis=1) / (n[rows] - 1) / n[rows])
        half = error * _quantiles(method.level, n[rows] - 1)
        limits[rows] = np.stack([mean[rows] - half, mean[rows] + half], axis=1)
    elif len(rows):
        masks, mask_of = np.unique(counted[rows], axis=0, return_inverse=True)
        for at, mask in enumerate(masks):
            alike = rows[mask_of.ravel() == at]  # one resample serves all rows that count the same topics
            means = _resampled_means(values[np.ix_(alike, mask)], method)
            for row, resampled in zip(alike.tolist(), means, strict=True):
                limits[row] = bca_limits(resampled, float(mean[row]), acceleration(deviation[row]), method.level)
    return limits


def adjusted(values: Floats, bounds: ArrayLike, level: float) -> Floats:
    """Give Student's interval with half a pseudo-topic at the bounds, moved against the skewness."""
    # `values`: (S, T), each row with two topics that count or more; NaN: a topic does not count. `bounds`: (S, 2) or
    # (2,), what the mean can be at the least and at most; NaN where there is no bound. Returns within the bounds, and
    # around the mean. NaN for a row without variation or bounds.
    ends = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (len(values), 2))
    counted = ~np.isnan(values)
    n = counted.sum(axis=1)
    mean = np.where(counted, values, 0.0).sum(axis=1) / n
    bounded = ~np.isnan(ends).any(axis=1)
    weight = np.where(bounded, _PSEUDO_TOPIC, 0.0)
    low, high = (np.where(bounded, end, 0.0) for end in ends.T)
    size = n + weight
    center = (n * mean + weight * (low + high) / 2) / size
    deviation = np.where(counted, values - center[:, None], 0.0)
    second, third = (
        (deviation**power).sum(axis=1) + weight / 2 * ((low - center) ** power + (high - center) ** power)
        for power in (2, 3)
    )
    error = np.sqrt(second / (size - 1) / size)
    with np.errstate(invalid="ignore"):
        skewness = third / size / (second / size) ** 1.5
    quantile = _quantiles(level, np.where(bounded, n, n - 1))
    shift = np.clip(_SKEWNESS * skewness * (2 * quantile**2 + 1) / (6 * np.sqrt(size)), -quantile, quantile)
    limits = center[:, None] + error[:, None] * (shift[:, None] + np.stack([-quantile, quantile], axis=1))
    limits = np.stack([np.fmax(limits[:, 0], ends[:, 0]), np.fmin(limits[:, 1], ends[:, 1])], axis=1)
    return np.stack([np.minimum(limits[:, 0], mean), np.maximum(limits[:, 1], mean)], axis=1)


def _quantiles(level: float, freedom: Ints) -> Floats:
    """Give Student's quantile of a two-sided interval for each number of degrees of freedom."""
    kinds, kind_of = np.unique(freedom, return_inverse=True)
    return np.array([student_quantile((1 + level) / 2, df) for df in kinds.tolist()])[kind_of.ravel()]


def acceleration(deviation: Floats) -> float:
    """Give Efron's acceleration for a mean: a sixth of the skewness of the sum."""
    scaled = deviation / np.abs(deviation).max()
    return float((scaled**3).sum() / (6.0 * (scaled**2).sum() ** 1.5))


def _resampled_means(values: Floats, method: IntervalMethod) -> Floats:
    """Give the mean of each row in each resample of the topics: (S, B)."""
    topics = values.shape[1]
    return np.concatenate([values @ times.T / topics for times in times_drawn(topics, method)], axis=1)


def times_drawn(topics: int, method: IntervalMethod) -> Iterator[Floats]:
    """Give how often each topic is drawn in each resample, some resamples at a time: (b, T)."""
    rng = np.random.default_rng(method.seed)
    chunk = min(max(_HELD // topics, 1), 128)
    for start in range(0, method.resamples, chunk):
        size = min(chunk, method.resamples - start)
        drawn = rng.integers(topics, size=(size, topics), dtype=np.int32)
        yield np.stack([np.bincount(draw, minlength=topics) for draw in drawn]).astype(np.float64)


def bca_limits(means: Floats, observed: float, acceleration: float, level: float) -> Floats:
    """Read the bias-corrected and accelerated percentiles off the resampled means."""
    from statistics import NormalDist  # its fractions take a while to import

    normal = NormalDist()
    equal = np.abs(means - observed) <= _ROUNDING * np.abs(means).max()
    below = (np.count_nonzero((means < observed) & ~equal) + 0.5 * np.count_nonzero(equal)) / len(means)
    edge = 0.5 / len(means)
    bias = normal.inv_cdf(min(max(below, edge), 1 - edge))
    edge_z = -normal.inv_cdf((1 - level) / 2)
    probabilities: list[float] = []
    for z in (bias - edge_z, bias + edge_z):
        stretched = z / (1 - acceleration * z) if acceleration * z < 1 else math.copysign(math.inf, z)
        probabilities.append(normal.cdf(bias + stretched))
    return np.quantile(means, probabilities)
