"""Prediction-powered inference for means: few known values, many predictions, a tuned weight (PPI++, 2311.01453)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling, check_share, spread
from judged.stats.interval import adjusted
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats

MIN_N = 25
"""Number of known values from which the interval has its nominal coverage (docs/calibrated-judges.md)."""


@dataclass(frozen=True)
class PredictionPoweredMean:
    """Mean of known values, improved by predictions."""

    value: float
    interval: tuple[float, float] | None  # None if the known values do not vary
    weight: float  # lambda of PPI++: from 0 (known values only) to 1
    known_mean: float  # mean of the known values only
    known_interval: tuple[float, float] | None
    n: int  # known values
    predicted: int  # units with a prediction only
    worth: float  # number of additional known values that would reduce the variance equally
    worth_interval: tuple[float, float] | None  # bootstrap percentiles; None with too few known values
    level: float

    @property
    def holds(self) -> bool:
        """Whether there are enough known values for the nominal coverage."""
        return self.n >= MIN_N

    @property
    def sentence(self) -> str:
        """Value of the predictions in one sentence."""
        if self.worth_interval is None:
            return f"there are too few data to estimate how much the predictions improve on the {self.n} known values"
        low, high = self.worth_interval
        if low <= 0:
            return (
                f"the predictions add no significant information to the {self.n} known values (upper limit: as much"
                f" as {high:.0f} more known values)"
            )
        return (
            f"the predictions add as much information as {self.worth:.0f} more known values"
            f" ({self.level:.0%} CI [{low:.0f}, {high:.0f}]) would add to the {self.n} known values"
        )


def prediction_powered(
    known: ArrayLike,
    predicted: ArrayLike,
    others: ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (math.nan, math.nan),
    resamples: int = 1000,
    seed: int = 0,
) -> PredictionPoweredMean:
    """Estimate a mean from known values, their predictions, and predictions of other units.

    The units must be a random sample of the population, and the known ones a random sample of the units. With weight w
    the estimate is ``w * mean(others) + mean(known - w * predicted)``, which is unbiased for any fixed w and any
    predictions. The weight with the smallest variance, ``cov(known, predicted) / ((1 + n / N) var(predicted))``, is
    estimated from the same units and clipped to 0 to 1. This costs the residual variance one degree of freedom, and
    adds a bias of order 1/n.

    With `bounds`, intervals are adjusted like those of means (`judged.stats.interval`): half a pseudo-value at the
    bounds accounts for large errors too rare to be among the known values, and a third of the correction for skewness
    is applied. Without bounds they are Student's with n - 1 degrees of freedom, whose coverage is too low if few values
    have large errors.

    Parameters
    ----------
    known, predicted : (n,) float64
        True and predicted values of the same units, at least three.
    others : (N,) float64
        Predicted values of other units, without a known value; at least two.
    level
        Confidence level of the intervals.
    bounds
        Lowest and highest possible value, known or predicted; NaN: unknown.
    resamples, seed
        Of the bootstrap over units for `worth_interval`.

    Raises
    ------
    InputError
        If there are too few values, or shapes differ.

    Examples
    --------
    >>> known = np.array([0.2, 0.5, 0.4, 0.9])
    >>> mean = prediction_powered(known, known + 0.1, [0.4, 0.5, 0.7, 0.6, 0.8, 0.5], resamples=100)
    >>> round(mean.value, 4), round(mean.weight, 4), round(mean.known_mean, 4)
    (0.4833, 1.0, 0.5)
    """
    check_resampling(resamples, seed)
    check_share("level", level)
    # y, f, n, N as in the paper: known values, predictions, and numbers of units
    y, f, f_others = (np.asarray(values, dtype=np.float64) for values in (known, predicted, others))
    if y.shape != f.shape or y.ndim != 1 or f_others.ndim != 1:
        problem = f"shapes must be (n,), (n,), and (N,), got {y.shape}, {f.shape}, and {f_others.shape}"
        raise InputError(problem, fix="pass one prediction per known value")
    if not all(np.isfinite(values).all() for values in (y, f, f_others)):
        raise InputError("values must be finite", fix="remove units without a finite value")
    n, n_others = len(y), len(f_others)
    if n < 3 or n_others < 2:
        problem = f"at least 3 known values and 2 predictions for unknown values are required, got {n} and {n_others}"
        raise InputError(problem, fix="add units")
    value, variance, weight = (float(estimate[0]) for estimate in _estimate(y[None], f[None], f_others[None]))
    known_variance = float(y.var(ddof=1) / n)
    low, high = bounds
    others_variance = weight**2 * float(f_others.var(ddof=1)) / n_others
    residual_bounds = low - weight * high, high - weight * low
    interval = _sum_interval(value, y - weight * f, variance - others_variance, others_variance, residual_bounds, level)
    mean = float(y.mean())
    known_interval = _sum_interval(mean, y, known_variance, 0.0, bounds, level)
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, n, (resamples, n)), rng.integers(0, n_others, (resamples, n_others))
    resampled = y[rows]
    _, variances, _ = _estimate(resampled, f[rows], f_others[columns])
    extra = _extra_known_values(resampled.var(axis=1, ddof=1) / n, variances, n)
    with np.errstate(invalid="ignore"):  # interpolation between two infinite values gives NaN
        limits = np.nan_to_num(np.quantile(extra, [(1 - level) / 2, (1 + level) / 2]), nan=math.inf)
    shortage = insufficiency(n, "verdict", variance=spread(y))
    return PredictionPoweredMean(
        value=value,
        interval=interval,
        weight=weight,
        known_mean=mean,
        known_interval=known_interval,
        n=n,
        predicted=n_others,
        worth=float(_extra_known_values(np.array([known_variance]), np.array([variance]), n)[0]),
        worth_interval=None if shortage else (float(limits[0]), float(limits[1])),
        level=level,
    )


def _sum_interval(
    value: float, residuals: Floats, variance: float, others_variance: float, bounds: tuple[float, float], level: float
) -> tuple[float, float] | None:
    """Compute an interval for the mean of residuals, with this variance, plus an independent normal error.

    `bounds` are those of the residuals; NaN: none.
    """
    n = len(residuals)
    if insufficiency(n, variance=spread(residuals) or variance + others_variance):
        return None
    if not all(map(math.isfinite, bounds)) or residuals.min() < bounds[0] or residuals.max() > bounds[1]:
        half_width = student_quantile((1 + level) / 2, n - 1) * math.sqrt(variance + others_variance)
        return value - half_width, value + half_width
    low, high = adjusted(residuals[None], bounds, level)[0] - residuals.mean()
    half_width = student_quantile((1 + level) / 2, n) * math.sqrt(
        others_variance
    )  # independent errors: their squares add up
    return value - math.hypot(low, half_width), value + math.hypot(high, half_width)


def _estimate(y: Floats, f: Floats, f_others: Floats) -> tuple[Floats, Floats, Floats]:
    """Return estimate, variance, and weight of each row: (B, n), (B, n), and (B, N) to (B,) each."""
    n, n_others = y.shape[1], f_others.shape[1]
    covariance = ((y - y.mean(axis=1, keepdims=True)) * (f - f.mean(axis=1, keepdims=True))).sum(axis=1) / (n - 1)
    f_variance = np.concatenate([f, f_others], axis=1).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.clip(np.where(f_variance > 0, covariance / ((1 + n / n_others) * f_variance), 0.0), 0.0, 1.0)
    residuals = y - weight[:, None] * f
    df = n - 1 - ((weight > 0) & (weight < 1))
    residual_variance = ((residuals - residuals.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / df
    variance = weight**2 * f_others.var(axis=1, ddof=1) / n_others + residual_variance / n
    return weight * f_others.mean(axis=1) + residuals.mean(axis=1), variance, weight


def _extra_known_values(known_variance: Floats, variance: Floats, n: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, known_variance / variance, np.where(known_variance > 0, np.inf, 1.0))
    return np.maximum(n * (ratio - 1), 0.0)
