"""Means of few true values and many predicted ones: prediction-powered inference with a tuned weight (2311.01453)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling, check_share
from judged.stats.inputs import spread as spread_of
from judged.stats.interval import adjusted
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats

LEAST = 25
"""Known values from which the interval holds its level, as simulations show (docs/calibrated-judges.md)."""


@dataclass(frozen=True)
class Corrected:
    """A mean of true values, helped by predictions."""

    value: float
    interval: tuple[float, float] | None  # None where the known values do not vary
    weight: float  # how far predictions are believed: 0, the known values alone, to 1
    known: float  # the mean of the known values alone
    known_interval: tuple[float, float] | None
    n: int  # known values
    predicted: int  # values that are only predicted
    worth: float  # how many more known values would narrow the interval as much
    worth_interval: tuple[float, float] | None  # bootstrap percentiles; None with too few known values
    level: float

    @property
    def holds(self) -> bool:
        """Whether there are enough known values for the interval to hold its level."""
        return self.n >= LEAST

    @property
    def sentence(self) -> str:
        """Say what the predictions are worth."""
        if self.worth_interval is None:
            return f"too little data to say what the predictions are worth beside {self.n} known values"
        low, high = self.worth_interval
        if low <= 0:
            return f"the predictions are worth none of the {self.n} known values (up to {high:.0f} are not ruled out)"
        return f"the predictions are worth {self.worth:.0f} known values more [{low:.0f}, {high:.0f}], beside {self.n}"


def prediction_powered(
    known: ArrayLike,
    predicted: ArrayLike,
    others: ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (math.nan, math.nan),
    resamples: int = 1000,
    seed: int = 0,
) -> Corrected:
    """Estimate a mean from known values, their predictions, and predictions where nothing is known.

    The units must be a random sample of those that the mean is of, and which are known must have been chosen at random.
    With weight w the estimate is ``w * mean(others) + mean(known - w * predicted)``: whatever the predictions are like,
    it is unbiased for a weight that is given. The weight that makes its variance least, ``cov(known, predicted) /
    ((1 + n / N) var(predicted))``, is estimated of the same units and kept between 0 and 1: that costs the residual
    variance one degree of freedom, and a bias that shrinks as 1/n.

    With `bounds`, intervals are adjusted as those of means are (`judged.stats.interval`): half a value is added at the
    bounds, so that a judge that fails on few units, none of which is known, is allowed for; and a third of the
    correction for skewness. Without bounds they are Student's with n - 1 degrees of freedom, which hold less than their
    level where few values carry the error.

    Parameters
    ----------
    known, predicted : (n,) float64
        True and predicted values of the same units, at least three.
    others : (N,) float64
        Predicted values of the units without a known one, at least two; units with one must not be among them.
    level
        Of the interval.
    bounds
        Lowest and highest possible value, of known and predicted ones alike; NaN: not known.
    resamples, seed
        Of the bootstrap over units that says what the predictions are worth.

    Raises
    ------
    InputError
        If there are too few values, or shapes do not fit.

    Examples
    --------
    >>> known = np.array([0.2, 0.5, 0.4, 0.9])
    >>> found = prediction_powered(known, known + 0.1, [0.4, 0.5, 0.7, 0.6, 0.8, 0.5], resamples=100)
    >>> round(found.value, 4), round(found.weight, 4), round(found.known, 4)
    (0.4833, 1.0, 0.5)
    """
    check_resampling(resamples, seed)
    check_share("level", level)
    y, f, rest = (np.asarray(one, dtype=np.float64) for one in (known, predicted, others))
    if y.shape != f.shape or y.ndim != 1 or rest.ndim != 1:
        raise InputError(f"shapes {y.shape}, {f.shape}, {rest.shape} do not fit", fix="give (n,), (n,) and (N,)")
    if not all(np.isfinite(one).all() for one in (y, f, rest)):
        raise InputError("a value is not a finite number", fix="leave its unit out")
    n, size = len(y), len(rest)
    if n < 3 or size < 2:
        problem = f"{n} known values and {size} that are only predicted are too few"
        raise InputError(problem, fix="give at least three and two")
    value, variance, weight = (float(one[0]) for one in _estimated(y[None], f[None], rest[None]))
    alone = float(y.var(ddof=1) / n)
    low, high = bounds
    of_rest = weight**2 * float(rest.var(ddof=1)) / size
    ends = _interval(
        value, y - weight * f, variance - of_rest, of_rest, (low - weight * high, high - weight * low), level
    )
    mean = float(y.mean())
    ends_known = _interval(mean, y, alone, 0.0, bounds, level)
    chance = np.random.default_rng(seed)
    rows, columns = chance.integers(0, n, (resamples, n)), chance.integers(0, size, (resamples, size))
    drawn = y[rows]
    _, spread, _ = _estimated(drawn, f[rows], rest[columns])
    worths = _worth(drawn.var(axis=1, ddof=1) / n, spread, n)
    with np.errstate(invalid="ignore"):  # between two infinite ones: infinite
        limits = np.nan_to_num(np.quantile(worths, [(1 - level) / 2, (1 + level) / 2]), nan=math.inf)
    untold = insufficiency(n, "verdict", variance=spread_of(y))
    return Corrected(
        value=value,
        interval=ends,
        weight=weight,
        known=mean,
        known_interval=ends_known,
        n=n,
        predicted=size,
        worth=float(_worth(np.array([alone]), np.array([variance]), n)[0]),
        worth_interval=None if untold else (float(limits[0]), float(limits[1])),
        level=level,
    )


def _interval(
    value: float, residuals: Floats, variance: float, more: float, bounds: tuple[float, float], level: float
) -> tuple[float, float] | None:
    """Return an interval around a value whose error is that of the mean of residuals, with this variance, and more.

    Parameters
    ----------
    more
        Variance of what is added to the mean of the residuals.
    bounds
        Of the residuals; NaN: none.
    """
    n = len(residuals)
    if insufficiency(n, variance=spread_of(residuals) or variance + more):
        return None
    if not all(map(math.isfinite, bounds)) or residuals.min() < bounds[0] or residuals.max() > bounds[1]:
        half = student_quantile((1 + level) / 2, n - 1) * math.sqrt(variance + more)
        return value - half, value + half
    low, high = adjusted(residuals[None], bounds, level)[0] - residuals.mean()
    half = student_quantile((1 + level) / 2, n) * math.sqrt(more)  # independent errors: their squares add up
    return value - math.hypot(low, half), value + math.hypot(high, half)


def _estimated(y: Floats, f: Floats, rest: Floats) -> tuple[Floats, Floats, Floats]:
    """Give estimate, variance and weight of each row: (B, n), (B, n) and (B, N) to (B,) each."""
    n, size = y.shape[1], rest.shape[1]
    covariance = ((y - y.mean(axis=1, keepdims=True)) * (f - f.mean(axis=1, keepdims=True))).sum(axis=1) / (n - 1)
    spread = np.concatenate([f, rest], axis=1).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.clip(np.where(spread > 0, covariance / ((1 + n / size) * spread), 0.0), 0.0, 1.0)
    left = y - weight[:, None] * f
    degrees = n - 1 - ((weight > 0) & (weight < 1))
    residual = ((left - left.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / degrees
    variance = weight**2 * rest.var(axis=1, ddof=1) / size + residual / n
    return weight * rest.mean(axis=1) + left.mean(axis=1), variance, weight


def _worth(alone: Floats, variance: Floats, n: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(variance > 0, alone / variance, np.where(alone > 0, np.inf, 1.0))
    return np.maximum(n * (ratio - 1), 0.0)
