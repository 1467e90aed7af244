"""The difference of two ratios of sums over units that may be the same: of two slices or periods of one log."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from judged.stats.ratio import effective_units, ratio_error, ratio_interval, ratio_intervals

_STEPS = 20  # of halving, down to a p-value's fifth digit
_FAR = 1e100  # as far as an end may lie: squares of it are numbers
_NORMAL = NormalDist()


@dataclass(frozen=True)
class RatioSums:
    """Sums over units of a numerator n and a denominator d, of their squares, and of their product."""

    units: float  # that have any of the two
    n: float
    d: float
    nn: float
    dd: float
    nd: float

    @property
    def value(self) -> float:
        """The ratio; NaN of nothing."""
        return self.n / self.d if self.d else math.nan

    @property
    def error(self) -> float:
        """Its standard error over units."""
        return ratio_error(self.units, self.n, self.d, self.nn, self.dd, self.nd)

    @property
    def squares(self) -> float:
        """The sum over units of the squares of ``n - value * d``."""
        return max(self.nn - 2.0 * self.value * self.nd + self.value**2 * self.dd, 0.0)

    @property
    def effective(self) -> float:
        """Kish's effective number of units; NaN where there are none."""
        return effective_units(self.d, self.dd)

    def interval(self, level: float, *, share: bool, counted: bool) -> tuple[float, float]:
        """Give the interval of the ratio."""
        kinds = {"share": share, "counted": counted}
        return ratio_interval(self.value, self.error, self.units, level, effective=self.effective, **kinds)


@dataclass(frozen=True)
class RatioDifference:
    """The second ratio minus the first, with its uncertainty."""

    value: float
    low: float  # low, high: its interval; NaN where one of the two ratios has none
    high: float
    p: float  # the least alpha at which the interval of level 1 - alpha leaves out 0; NaN where there is none


def correlation(first: RatioSums, second: RatioSums, nn: float, nd: float, dn: float, dd: float) -> float:
    """Give the correlation of two ratios by the units that both have.

    ``nn``, ``nd``, ``dn``, ``dd``: sums over these units of the products of numerators and denominators, of the first
    ratio and the second.

    Two users whose clicks (1 of 2, 0 of 2) are the same in both periods:

    >>> same = RatioSums(units=2, n=1, d=4, nn=1, dd=8, nd=2)
    >>> correlation(same, same, nn=1, nd=2, dn=2, dd=8)
    1.0
    """
    product = nn - second.value * nd - first.value * dn + first.value * second.value * dd
    scale = math.sqrt(first.squares * second.squares)
    return max(-1.0, min(1.0, product / scale)) if scale > 0 else 0.0


def ratio_difference(
    first: RatioSums,
    second: RatioSums,
    level: float,
    *,
    rho: float = 0.0,
    share: bool,
    counted: bool = False,
) -> RatioDifference:
    """Give the second ratio less the first, with an interval made of theirs, and the p-value that fits it.

    The interval is the square-and-add one of Newcombe (Statistics in Medicine 1998) with the correlation that Zou
    (Statistics in Medicine 2007) adds: ends lie as far from the difference as those of both ratios from theirs.

    >>> few, many = RatioSums(100, 20, 100, 20, 100, 20), RatioSums(100, 40, 100, 40, 100, 40)
    >>> made = ratio_difference(few, many, 0.95, share=True)
    >>> [round(number, 3) for number in (made.value, made.low, made.high, made.p)]
    [0.2, 0.07, 0.321, 0.003]
    """
    # `rho`: of `correlation`. `share`, `counted`: as for `ratio_interval`.
    kinds = {"share": np.array(share), "counted": np.array(counted)}
    value = second.value - first.value
    # both ratios in one call, as the search for the p-value computes their intervals at many levels
    both = [(ratio.value, ratio.error, ratio.units, ratio.effective) for ratio in (first, second)]
    columns = (np.array(column, dtype=np.float64) for column in zip(*both, strict=True))
    values, errors, units, effective = columns

    def ends(confidence: float) -> tuple[float, float]:
        (low, lower), (high, upper) = (
            side.tolist()
            for side in ratio_intervals(values, errors, units, effective, confidence, **kinds, signed=False)
        )
        below, above = min(second.value - lower, _FAR), min(upper - second.value, _FAR)
        beside, beyond = min(high - first.value, _FAR), min(first.value - low, _FAR)
        down = below**2 + beside**2 - 2.0 * rho * below * beside
        up = above**2 + beyond**2 - 2.0 * rho * above * beyond
        return value - math.sqrt(max(down, 0.0)), value + math.sqrt(max(up, 0.0))

    low, high = ends(level)
    if math.isnan(low) or math.isnan(high):
        return RatioDifference(value, math.nan, math.nan, math.nan)
    if value == 0:
        return RatioDifference(value, low, high, 1.0)

    def leaves_out(alpha: float) -> bool:
        lower, upper = ends(1.0 - alpha)
        return lower > 0 or upper < 0

    # on the scale of normal quantiles, where the ends are nearly straight lines
    least, most = 0.0, 8.0
    if leaves_out(2.0 * _NORMAL.cdf(-most)):
        return RatioDifference(value, low, high, 2.0 * _NORMAL.cdf(-most))
    for _ in range(_STEPS):
        middle = (least + most) / 2.0
        least, most = (middle, most) if leaves_out(2.0 * _NORMAL.cdf(-middle)) else (least, middle)
    return RatioDifference(value, low, high, 2.0 * _NORMAL.cdf(-least))
