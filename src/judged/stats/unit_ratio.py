"""Ratio of two sums over units, with the interval and the test that few active units cannot fool.

The delta method takes its variance at the estimated ratio. A unit with most of the rows pulls the ratio to its own, so
its residual is near 0, and the variance misses it: without any difference, one user with 3,000 of 3,897 lists makes a
95% interval that leaves out 0 in 95% of samples. Here the variance is taken at the hypothesis: the residuals
``n - R d`` of a tested ratio R have mean 0 whatever the units' sizes, and a t-test of them is inverted (Fieller, 1954).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.ratio import ratio_error

if TYPE_CHECKING:
    from judged._types import Floats, Ints


@dataclass(frozen=True)
class UnitRatio:
    """Sums over units, from which a ratio, its test, and its interval follow.

    Parameters
    ----------
    units
        Number of units.
    numerator, denominator
        Sums over all units.
    squares
        Sums over units of numerator squared, numerator times denominator, and denominator squared.

    Examples
    --------
    Three users with 1, 0 and 2 clicks on 2, 1 and 4 pages. Against a ratio of 0 the residuals are 1, 0, 2, with mean 1
    and standard deviation 1: t is 1 / (1 / sqrt(3)).

    >>> ratio = UnitRatio.of(np.array([1.0, 0.0, 2.0]), np.array([2.0, 1.0, 4.0]))
    >>> round(ratio.value, 4), round(ratio.t(0.0), 4)
    (0.4286, 1.7321)
    """

    units: int
    numerator: float
    denominator: float
    squares: tuple[float, float, float]

    @classmethod
    def of(cls, numerators: Floats, denominators: Floats) -> UnitRatio:
        """Add up the sums of each unit: (units,) and (units,)."""
        n, d = numerators, denominators
        squares = float(n @ n), float(n @ d), float(d @ d)
        return cls(len(n), float(n.sum()), float(d.sum()), squares)

    @classmethod
    def of_rows(cls, unit: Ints, values: Floats) -> UnitRatio:
        """Compute the mean of rows whose unit is given by any integer code: (rows,) and (rows,)."""
        _, code = np.unique(unit, return_inverse=True)
        numerators, denominators = np.bincount(code, values), np.bincount(code)
        return cls.of(numerators.astype(np.float64), denominators.astype(np.float64))

    @property
    def value(self) -> float:
        """The ratio; NaN if the denominator is 0."""
        return self.numerator / self.denominator if self.denominator else math.nan

    @property
    def error(self) -> float:
        """Standard error by the delta method; NaN for fewer than two units."""
        nn, nd, dd = self.squares
        return ratio_error(self.units, self.numerator, self.denominator, nn, dd, nd)

    @property
    def effective(self) -> float:
        """Number of units with equal denominators that are as informative (Kish)."""
        return self.denominator**2 / self.squares[2] if self.squares[2] else 0.0

    def t(self, null: float) -> float:
        """Return the t statistic of the residuals from a ratio; 0 if they do not vary."""
        nn, nd, dd = self.squares
        total = self.numerator - null * self.denominator
        squares = nn - 2.0 * null * nd + null * null * dd
        spread = squares - total * total / self.units if self.units else 0.0
        if self.units < 2 or spread <= 1e-12 * squares:
            return 0.0
        return total / math.sqrt(self.units * spread / (self.units - 1.0))

    def interval(self, critical: float) -> tuple[float, float]:
        """Return the ratios whose t statistic is at most `critical` in size; NaN if they have no bounds."""
        if self.units < 2 or not math.isfinite(critical):
            return math.nan, math.nan
        nn, nd, dd = self.squares
        # |t(R)| <= c is a quadratic inequality in R: (1 + q / k) (N - R D)**2 <= q (nn - 2 R nd + R**2 dd) with
        # q = c**2 k / (k - 1) for k units.
        q = critical * critical * self.units / (self.units - 1.0)
        scale = 1.0 + q / self.units
        a = scale * self.denominator**2 - q * dd
        b = scale * self.numerator * self.denominator - q * nd
        c = scale * self.numerator**2 - q * nn
        if not a > 1e-12 * self.denominator**2:  # denominators vary so much that no ratio can be ruled out
            return math.nan, math.nan
        root = math.sqrt(max(b * b - a * c, 0.0))
        return (b - root) / a, (b + root) / a
