"""Intervals of statistics over pages that are not independent: the units (users) are resampled as a whole.

Sees only numbers. A statistic is a function of how often each unit counts: one draw of units serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.stats.interval import IntervalMethod, acceleration, bca_limits
from judged.stats.resampling import ResampledTopics

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Floats

    Statistics: TypeAlias = Callable[[Floats], Floats]
    """Weights of units, (b, U), to the value of each statistic, (b, K); NaN where one is undefined."""

_JACKKNIFED = 400  # units: of more, the skewness of the statistic no longer moves the interval
_KNOWN = 0.9  # of the resamples must give a value


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Parameters
    ----------
    value
        NaN where it is undefined.
    low, high
        The interval; NaN where there is none: one unit, or a statistic that too many resamples leave undefined.

    Examples
    --------
    >>> str(Estimate(0.5, 0.25, 0.75)), str(Estimate(0.5, float("nan"), float("nan")))
    ('0.500 [0.250, 0.750]', '0.500')
    """

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (np.isnan(self.low) or np.isnan(self.high))

    def excludes(self, value: float) -> bool:
        """Whether the interval leaves out a value."""
        return self.known and not self.low <= value <= self.high

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "-"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.known else f"{self.value:.3f}"


def cluster_estimates(statistics: Statistics, units: int, method: IntervalMethod) -> list[Estimate]:
    """Compute statistics, and their intervals by resampling units.

    Bias-corrected and accelerated percentiles (Efron 1987) of the cluster bootstrap: units are drawn with replacement,
    each with all its pages.

    Parameters
    ----------
    statistics
        From the weights of units, (b, U), to values (b, K).
    units
        How many units there are: U.
    method
        Level, resamples and seed.

    Returns
    -------
    list of K `Estimate`

    Examples
    --------
    >>> pages, clicks = np.array([1.0, 4.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0, 2.0])
    >>> rate = cluster_estimates(lambda weights: (weights @ clicks / (weights @ pages))[:, None], 4, IntervalMethod())
    >>> str(rate[0])
    '0.400 [0.143, 0.750]'
    """
    observed = statistics(np.ones((1, units)))[0]
    if units < 2:
        return [Estimate(float(value), np.nan, np.nan) for value in observed]
    drawn = np.concatenate(
        [statistics(block) for block in ResampledTopics(units, method.resamples, method.seed).blocks()]
    )
    pulls = _pulls(statistics, units, len(observed))
    return [_estimate(float(observed[at]), drawn[:, at], pulls[:, at], method.level) for at in range(len(observed))]


def _pulls(statistics: Statistics, units: int, count: int) -> Floats:
    """Give how far each unit pulls each statistic: the mean without one unit, minus that without this one."""
    if units > _JACKKNIFED:
        return np.zeros((1, count))
    left_out = statistics(1.0 - np.eye(units))
    known = ~np.isnan(left_out)
    filled = np.where(known, left_out, 0.0)
    mean = filled.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, mean - left_out, 0.0)


def _estimate(observed: float, drawn: Floats, pulls: Floats, level: float) -> Estimate:
    known = drawn[~np.isnan(drawn)]
    if np.isnan(observed) or len(known) < _KNOWN * len(drawn):
        return Estimate(observed, np.nan, np.nan)
    skew = acceleration(pulls) if np.abs(pulls).max() > 0 else 0.0
    low, high = bca_limits(known, observed, skew, level).tolist()
    return Estimate(observed, low, high)
