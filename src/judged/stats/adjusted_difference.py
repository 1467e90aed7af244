"""The difference of a ratio between two arms, adjusted for what the same users did before: CUPED, also for ratios."""

from __future__ import annotations

import math
from typing import NamedTuple

from judged.stats.ratio_difference import RatioSums


class Arm(NamedTuple):
    """One arm of a test: the sums over its users after exposure, before it, and how the two ratios go together."""

    after: RatioSums
    before: RatioSums | None = None  # None: nothing is known of the time before
    rho: float = 0.0  # of `judged.stats.ratio_difference.correlation`

    @property
    def covariance(self) -> float:
        """Of the two ratios."""
        return self.rho * self.after.error * self.before.error if self.before else 0.0


class AdjustedDifference(NamedTuple):
    """A difference, its standard error, and what the adjustment did."""

    value: float
    error: float
    theta: float  # 0: not adjusted
    reduction: float  # share of the variance that the adjustment took away

    relative: float  # of the first arm's ratio; NaN where that is not above 0
    relative_error: float

    base: float = math.nan  # the first arm's ratio, its standard error, and the covariance of the difference with it
    base_error: float = math.nan
    base_covariance: float = math.nan

    def relative_interval(self, critical: float) -> tuple[float, float]:
        """Give Fieller's interval of the relative difference: it leaves out 0 where that of the difference does.

        Where the first arm's ratio may be 0, the end away from 0 is infinite.
        """
        low, high = self.value - critical * self.error, self.value + critical * self.error
        a = self.base**2 - (critical * self.base_error) ** 2
        if not a > 0 and not (low > 0 or high < 0):
            return -math.inf, math.inf
        if not math.isfinite(a) or a == 0:
            return (math.inf, math.inf) if low > 0 else (-math.inf, -math.inf)
        b = self.value * self.base - critical**2 * self.base_covariance
        root = math.sqrt(max(b * b - a * low * high, 0.0))
        ends = (b - root) / a, (b + root) / a
        return ends if a > 0 else (ends[0], math.inf) if low > 0 else (-math.inf, ends[1])


def adjusted_difference(first: Arm, second: Arm) -> AdjustedDifference:
    """Give the second arm's ratio less the first one's, less what the two already differed by before.

    ``theta`` is the one that leaves the least variance (Deng et al., WSDM 2013), with ratios in the place of means and
    their variances by the delta method. Without a time before in both arms nothing is adjusted.

    Half of each user's clicks were there before:

    >>> arm = RatioSums(100, 40, 100, 40, 100, 40)
    >>> made = adjusted_difference(Arm(arm, arm, 0.5), Arm(RatioSums(100, 50, 100, 50, 100, 50), arm, 0.5))
    >>> [round(number, 4) for number in (made.value, made.theta, made.reduction)]
    [0.1, 0.5052, 0.25]
    """
    plain = second.after.value - first.after.value
    variance = first.after.error**2 + second.after.error**2
    theta = 0.0
    if first.before and second.before:
        spread = first.before.error**2 + second.before.error**2
        theta = (first.covariance + second.covariance) / spread if spread > 0 else 0.0
    if not math.isfinite(theta):
        theta = 0.0
    value, left = plain, variance
    if theta and first.before and second.before:
        value -= theta * (second.before.value - first.before.value)
        left = max(variance - theta * (first.covariance + second.covariance), 0.0)
    base = first.after.value
    shared = first.after.error**2 - theta * first.covariance  # less the covariance of difference and base
    if base > 0:
        relative = left / base**2 + 2.0 * value * shared / base**3 + value**2 * first.after.error**2 / base**4
        told = (value / base, math.sqrt(max(relative, 0.0)))
    else:
        told = (math.nan, math.nan)
    reduction = 1.0 - left / variance if variance > 0 else 0.0
    return AdjustedDifference(value, math.sqrt(left), theta, reduction, *told, base, first.after.error, -shared)
