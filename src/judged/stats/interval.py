"""Confidence intervals for means over topics. Sees only numbers: one row a quantity, one column a topic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged._types import Floats

IntervalName: TypeAlias = Literal["bootstrap", "t", "none"]
_CHUNK = 128  # resamples held at a time
_ROUNDING = 1e-12  # of the largest mean: the last bits of a product of matrices depend on their shapes


@dataclass(frozen=True)
class IntervalMethod:
    """How intervals are made; it travels with the result.

    Parameters
    ----------
    method
        ``bootstrap``: bias-corrected and accelerated (Efron 1987), topics resampled; the same resamples for
        all runs and measures that count the same topics. ``t``: mean and Student's t. ``none``: no intervals.
    level
        The share of samples whose interval holds the true mean.
    resamples, seed
        Of the bootstrap.

    Raises
    ------
    InputError
        If a value makes no sense.
    """

    method: IntervalName = "bootstrap"
    level: float = 0.95
    resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(IntervalName):
            raise InputError(f"no interval method {self.method!r}", fix=f"one of {', '.join(get_args(IntervalName))}")
        if not 0 < self.level < 1:
            raise InputError(f"the confidence level {self.level} is not between 0 and 1", fix="0.95, say")
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} is below 0", fix="give a whole number from 0")
        if self.resamples < 100:
            raise InputError(f"{self.resamples} resamples are too few", fix="at least 100")


def mean_intervals(values: Floats, method: IntervalMethod) -> Floats:
    """Give an interval for the mean of each row.

    Parameters
    ----------
    values
        (S, T): S quantities over T topics. NaN: the topic does not count for that quantity.
    method
        How.

    Returns
    -------
    (S, 2) float64
        Low and high; NaN for a row with fewer than two topics. A row whose values are all the same gets
        that value twice: the sample shows no variation.

    Examples
    --------
    >>> mean_intervals(np.array([[0.1, 0.2, 0.4, 0.5]]), IntervalMethod("t")).round(3).tolist()
    [[0.009, 0.591]]
    """
    limits = np.full((len(values), 2), np.nan)
    if method.method == "none" or values.shape[1] < 2:
        return limits
    counted = ~np.isnan(values)
    n = counted.sum(axis=1)
    filled = np.where(counted, values, 0.0)
    mean = filled.sum(axis=1) / np.maximum(n, 1)
    deviation = np.where(counted, values - mean[:, None], 0.0)
    squares = (deviation**2).sum(axis=1)
    level = (np.where(counted, values, np.inf).min(axis=1) == np.where(counted, values, -np.inf).max(axis=1)) & (n > 1)
    limits[level] = mean[level, None]
    rows = np.flatnonzero((n > 1) & ~level)
    if method.method == "t":
        for row in rows.tolist():
            half = student_quantile((1 + method.level) / 2, int(n[row]) - 1) * np.sqrt(
                squares[row] / (n[row] - 1) / n[row]
            )
            limits[row] = mean[row] - half, mean[row] + half
    elif len(rows):
        masks, mask_of = np.unique(counted[rows], axis=0, return_inverse=True)
        for at, mask in enumerate(masks):
            alike = rows[mask_of.ravel() == at]  # one resample serves all rows that count the same topics
            means = _resampled_means(values[np.ix_(alike, mask)], method)
            for row, resampled in zip(alike.tolist(), means, strict=True):
                limits[row] = bca_limits(resampled, float(mean[row]), acceleration(deviation[row]), method.level)
    return limits


def acceleration(deviation: Floats) -> float:
    """Give Efron's acceleration for a mean: a sixth of the skewness of the sum."""
    scaled = deviation / np.abs(deviation).max()
    return float((scaled**3).sum() / (6.0 * (scaled**2).sum() ** 1.5))


def _resampled_means(values: Floats, method: IntervalMethod) -> Floats:
    """Give the mean of each row in each resample of the topics: (S, B)."""
    topics = values.shape[1]
    rng = np.random.default_rng(method.seed)
    means: list[Floats] = []
    for start in range(0, method.resamples, _CHUNK):
        size = min(_CHUNK, method.resamples - start)
        drawn = rng.integers(topics, size=(size, topics), dtype=np.int32)
        times = np.stack([np.bincount(draw, minlength=topics) for draw in drawn]).astype(np.float64)
        means.append(values @ times.T / topics)
    return np.concatenate(means, axis=1)


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
