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
    if base > 0:
        shared = first.after.error**2 - theta * first.covariance  # less the covariance of difference and base
        relative = left / base**2 + 2.0 * value * shared / base**3 + value**2 * first.after.error**2 / base**4
        told = (value / base, math.sqrt(max(relative, 0.0)))
    else:
        told = (math.nan, math.nan)
    return AdjustedDifference(value, math.sqrt(left), theta, 1.0 - left / variance if variance > 0 else 0.0, *told)
