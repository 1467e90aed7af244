"""Confidence intervals for means over topics: one row per quantity, one column per topic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.spelling import use_one_of
from judged.stats.inputs import check_resampling
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from judged.results.types import Floats, Ints

IntervalName: TypeAlias = Literal["adjusted", "t", "bootstrap", "none"]
_PSEUDO_TOPIC = 0.5  # weight of the pseudo-topic at the bounds; this and the next are calibrated in docs/calibration.md
_SKEWNESS = 1 / 3  # applied share of the correction for skewness, whose estimate from few topics is rough
_MAX_NUMBERS = 1 << 22  # numbers in memory at a time
_ROUNDING = 1e-12  # times the largest mean: the last bits of a matrix product depend on the shapes


@dataclass(frozen=True)
class IntervalMethod:
    """Method of confidence intervals, which is reported with the results.

    >>> IntervalMethod().words, IntervalMethod("bootstrap", 0.9).words
    ('95% CI: t interval adjusted for skewness and score range', '90% CI: bootstrap, 2000 resamples, seed 0')
    """

    # `adjusted`: Student's t with half a pseudo-topic, split equally between the lowest and the highest possible score
    # if the measure has both, and a third of the correction for skewness. `t`: Student's t. `bootstrap`: BCa (Efron
    # 1987), with the same resamples for all runs and measures with the same topics. `none`: no intervals.
    name: IntervalName = "adjusted"
    level: float = 0.95  # nominal coverage
    resamples: int = 2000  # of the bootstrap
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in get_args(IntervalName):
            raise InputError(f"unknown interval method {self.name!r}", fix=use_one_of(get_args(IntervalName)))
        if not 0 < self.level < 1:
            fix = "use 0.95, for example; to set the lowest relevant grade, use `rel` (--rel)"
            raise InputError(f"the confidence level must be between 0 and 1, got {self.level}", fix=fix)
        check_resampling(self.resamples, self.seed)

    @property
    def words(self) -> str:
        """Description of the method for captions; empty for `none`."""
        method = {
            "adjusted": "t interval adjusted for skewness and score range",
            "t": "Student's t",
            "bootstrap": f"bootstrap, {self.resamples} resamples, seed {self.seed}",
        }
        return f"{self.level:.0%} CI: {method[self.name]}" if self.name != "none" else ""


def mean_intervals(values: Floats, method: IntervalMethod, bounds: ArrayLike = (np.nan, np.nan)) -> Floats:
    """Compute a confidence interval for the mean of each row.

    Parameters
    ----------
    values
        (R, T): NaN for missing values.
    method
        Method, level, resamples, and seed.
    bounds
        Lowest and highest possible value; NaN if unbounded.

    Returns
    -------
    array
        (R, 2): limits; NaN if there are too few values.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.2, 0.4, 0.5], [1, 1, 1, 1]])
    >>> mean_intervals(scores, IntervalMethod("t")).round(3).tolist()
    [[0.009, 0.591], [nan, nan]]
    >>> mean_intervals(scores, IntervalMethod(), (0, 1)).round(3).tolist()
    [[0.037, 0.726], [0.4, 1.0]]
    """
    # docs/calibration.md has the coverage of each method on scores of real runs. `values`: (S, T), S quantities over T
    # topics, NaN for topics that do not count. `bounds`: (S, 2), or (2,) for all rows: lowest and highest value that a
    # topic can have, NaN without one; a bound is ignored if a value is beyond it. Only `adjusted` uses bounds. Returns
    # (S, 2): low and high. NaN for rows with fewer than two topics, and for constant rows without bounds: a constant
    # sample does not show that the population is constant.
    limits = np.full((len(values), 2), np.nan)
    topics = values.shape[1]
    if method.name == "none" or topics < 2:
        return limits
    row_bounds = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (len(values), 2))
    size = max(_MAX_NUMBERS // topics, 1)
    for start in range(0, len(values), size):
        rows = slice(start, start + size)
        limits[rows] = _row_intervals(values[rows], method, row_bounds[rows])
    return limits


def _row_intervals(values: Floats, method: IntervalMethod, bounds: Floats) -> Floats:
    limits = np.full((len(values), 2), np.nan)
    is_counted = ~np.isnan(values)
    n = is_counted.sum(axis=1)
    mean = np.where(is_counted, values, 0.0).sum(axis=1) / np.maximum(n, 1)
    lowest, highest = (
        np.where(is_counted, values, np.inf).min(axis=1),
        np.where(is_counted, values, -np.inf).max(axis=1),
    )
    if method.name == "adjusted":
        valid_bounds = np.where(np.stack([lowest >= bounds[:, 0], highest <= bounds[:, 1]], axis=1), bounds, np.nan)
        rows = np.flatnonzero((n > 1) & ((lowest < highest) | ~np.isnan(valid_bounds).any(axis=1)))
        limits[rows] = adjusted(values[rows], valid_bounds[rows], method.level)
        return limits
    rows = np.flatnonzero((n > 1) & (lowest < highest))
    deviations = np.where(is_counted, values - mean[:, None], 0.0)
    if method.name == "t":
        error = np.sqrt((deviations[rows] ** 2).sum(axis=1) / (n[rows] - 1) / n[rows])
        half_width = error * _t_quantiles(method.level, n[rows] - 1)
        limits[rows] = np.stack([mean[rows] - half_width, mean[rows] + half_width], axis=1)
    elif len(rows):
        masks, mask_index = np.unique(is_counted[rows], axis=0, return_inverse=True)
        for i, mask in enumerate(masks):
            same_topics = rows[mask_index.ravel() == i]  # rows with the same topics share their resamples
            resampled_means = _resampled_means(values[np.ix_(same_topics, mask)], method)
            for row, resampled in zip(same_topics.tolist(), resampled_means, strict=True):
                limits[row] = bca_limits(resampled, float(mean[row]), acceleration(deviations[row]), method.level)
    return limits


def adjusted(values: Floats, bounds: ArrayLike, level: float) -> Floats:
    """Compute Student's interval with half a pseudo-topic at the bounds, shifted by the correction for skewness."""
    # `values`: (S, T), at least two topics per row without NaN. `bounds`: (S, 2) or (2,), limits of the mean, NaN
    # without one. The interval is within the bounds and contains the mean. NaN for a constant row without bounds. The
    # shift is a share of the first Edgeworth term of Student's t, skewness (2 q^2 + 1) / (6 sqrt(n)) (Hall 1992).
    row_bounds = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (len(values), 2))
    is_counted = ~np.isnan(values)
    n = is_counted.sum(axis=1)
    mean = np.where(is_counted, values, 0.0).sum(axis=1) / n
    is_bounded = ~np.isnan(row_bounds).any(axis=1)
    weight = np.where(is_bounded, _PSEUDO_TOPIC, 0.0)
    low, high = (np.where(is_bounded, bound, 0.0) for bound in row_bounds.T)
    effective_n = n + weight
    center = (n * mean + weight * (low + high) / 2) / effective_n
    deviations = np.where(is_counted, values - center[:, None], 0.0)
    second, third = (
        (deviations**power).sum(axis=1) + weight / 2 * ((low - center) ** power + (high - center) ** power)
        for power in (2, 3)
    )
    error = np.sqrt(second / (effective_n - 1) / effective_n)
    with np.errstate(invalid="ignore"):
        skewness = third / effective_n / (second / effective_n) ** 1.5
    quantile = _t_quantiles(level, np.where(is_bounded, n, n - 1))
    shift = np.clip(_SKEWNESS * skewness * (2 * quantile**2 + 1) / (6 * np.sqrt(effective_n)), -quantile, quantile)
    limits = center[:, None] + error[:, None] * (shift[:, None] + np.stack([-quantile, quantile], axis=1))
    limits = np.stack([np.fmax(limits[:, 0], row_bounds[:, 0]), np.fmin(limits[:, 1], row_bounds[:, 1])], axis=1)
    return np.stack([np.minimum(limits[:, 0], mean), np.maximum(limits[:, 1], mean)], axis=1)


def _t_quantiles(level: float, dfs: Ints) -> Floats:
    """Return Student's two-sided quantile for each number of degrees of freedom."""
    distinct, inverse = np.unique(dfs, return_inverse=True)
    return np.array([student_quantile((1 + level) / 2, df) for df in distinct.tolist()])[inverse.ravel()]


def acceleration(deviations: Floats) -> float:
    """Compute Efron's acceleration for a mean: a sixth of the skewness of the sum."""
    scaled = deviations / np.abs(deviations).max()
    return float((scaled**3).sum() / (6.0 * (scaled**2).sum() ** 1.5))


def _resampled_means(values: Floats, method: IntervalMethod) -> Floats:
    """Return the mean of each row in each resample of the topics: (S, B)."""
    topics = values.shape[1]
    return np.concatenate([values @ weights.T / topics for weights in resampling_weights(topics, method)], axis=1)


def resampling_weights(topics: int, method: IntervalMethod) -> Iterator[Floats]:
    """Yield how often each topic is drawn in each resample, in blocks of (b, T)."""
    rng = np.random.default_rng(method.seed)
    block_size = min(max(_MAX_NUMBERS // topics, 1), 128)
    for start in range(0, method.resamples, block_size):
        size = min(block_size, method.resamples - start)
        topics_drawn = rng.integers(topics, size=(size, topics), dtype=np.int32)
        yield np.stack([np.bincount(sample, minlength=topics) for sample in topics_drawn]).astype(np.float64)


def bca_limits(means: Floats, observed: float, acceleration: float, level: float) -> Floats:
    """Return the bias-corrected and accelerated percentiles of resampled means (Efron 1987)."""
    from statistics import NormalDist  # slow to import

    normal = NormalDist()
    is_equal = np.abs(means - observed) <= _ROUNDING * np.abs(means).max()
    share_below = (np.count_nonzero((means < observed) & ~is_equal) + 0.5 * np.count_nonzero(is_equal)) / len(means)
    smallest = 0.5 / len(means)
    bias = normal.inv_cdf(min(max(share_below, smallest), 1 - smallest))
    z_level = -normal.inv_cdf((1 - level) / 2)
    probabilities: list[float] = []
    for z in (bias - z_level, bias + z_level):
        shift = z / (1 - acceleration * z) if acceleration * z < 1 else math.copysign(math.inf, z)
        probabilities.append(normal.cdf(bias + shift))
    return np.quantile(means, probabilities)
