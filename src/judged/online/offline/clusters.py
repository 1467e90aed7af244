"""Intervals of statistics over pages that are not independent: what each unit (user) adds to an error, as a whole.

Sees only numbers. A statistic is taken as if each unit counted a little more or less than once: its derivative by that,
the unit's *influence*, is a sum over the unit's pages. The variance is the sum of the squares of the influences, times
``units / (units - 1)`` (the infinitesimal jackknife: Jaeckel 1972; of ratios and least squares it is the delta method
and the cluster-robust "sandwich", of areas under curves that of Obuchowski, Biometrics 1997, but for divisors).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.ratio import effective_units, exact_share_interval, ratio_error, ratio_interval

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Parameters
    ----------
    value
        NaN where it is undefined.
    low, high
        The interval; NaN where there is none: fewer than two units, or a value that is undefined.

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


UNKNOWN = Estimate(np.nan, np.nan, np.nan)


def by_unit(unit: Ints, column: Floats | Ints | Bools) -> Floats:
    """Add up a column by unit: (N,) and (N,) to (U,)."""
    return np.bincount(unit, column).astype(np.float64)


def ratio_estimate(
    above: Floats, below: Floats, level: float, *, share: bool = False, signed: bool = False
) -> Estimate:
    """Estimate a ratio of sums over units, with its interval.

    Parameters
    ----------
    above, below
        (U,): the sums of each unit. Units with nothing below do not count.
    level
        Of the interval.
    share
        Every row lies between 0 and 1.
    signed
        The numerator may be negative: the interval is symmetric.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> clicks, pages = np.array([1.0, 1.0, 0.0, 2.0]), np.array([1.0, 4.0, 2.0, 3.0])
    >>> str(ratio_estimate(clicks, pages, 0.95))
    '0.400 [0.080, 3.208]'
    """
    there = below > 0
    n, d = above[there], below[there]
    total = float(d.sum())
    if not total:
        return UNKNOWN
    value = float(n.sum()) / total
    error = ratio_error(len(d), float(n.sum()), total, float(n @ n), float(d @ d), float(n @ d))
    return _estimate(value, error, d, level, share=share, signed=signed)


def influenced(
    value: float, influence: Floats, size: Floats, level: float, *, share: bool = False, signed: bool = True
) -> Estimate:
    """Give a value the interval that its influences make.

    Parameters
    ----------
    value
        The statistic; NaN: it is undefined.
    influence
        (U,): of each unit.
    size
        (U,): how much each unit takes part; units of 0 do not count.
    level, share, signed
        As for `ratio_estimate`.

    Returns
    -------
    Estimate
    """
    there = size > 0
    units = int(there.sum())
    if np.isnan(value) or units < 2:
        return Estimate(value, np.nan, np.nan)
    own = influence[there]
    error = float(np.sqrt(own @ own * units / (units - 1)))
    return _estimate(value, error, size[there], level, share=share, signed=signed)


def _estimate(value: float, error: float, size: Floats, level: float, *, share: bool, signed: bool) -> Estimate:
    """Make the interval: units of very unequal size tell as little as fewer equal ones."""
    counted = effective_units(float(size.sum()), float(size @ size))
    if share and value in (0.0, 1.0):
        low, high = exact_share_interval(max(counted, 2.0), level, value) if len(size) > 1 else (np.nan, np.nan)
    else:
        low, high = ratio_interval(value, error, len(size), level, share=share, effective=counted, signed=signed)
    return Estimate(value, low, high)
