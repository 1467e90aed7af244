"""The difference of a ratio between two arms, adjusted for what the same users did before: CUPED, also for ratios."""

from __future__ import annotations

import math
from typing import NamedTuple

from judged.stats.ratio_difference import RatioSums


class Arm(NamedTuple):
    """One arm of a test: the sums over its users after exposure, before it, and the correlation of the two ratios."""

    after: RatioSums
    before: RatioSums | None = None  # None: nothing is known of the time before
    rho: float = 0.0  # of `judged.stats.ratio_difference.correlation`

    @property
    def covariance(self) -> float:
        """Covariance of the two ratios."""
        return self.rho * self.after.error * self.before.error if self.before else 0.0


class RelativeDifference(NamedTuple):
    """A difference as a share of the absolute value of the baseline: it has the sign of the difference."""

    value: float  # value, low, high: all NaN where the baseline's interval holds 0
    low: float
    high: float


NO_RELATIVE = RelativeDifference(math.nan, math.nan, math.nan)


class AdjustedDifference(NamedTuple):
    """A difference, its standard error, and what the adjustment did."""

    value: float
    error: float
    theta: float  # 0: not adjusted
    reduction: float  # share of the variance that the adjustment removed

    base: float = math.nan  # the first arm's ratio, its standard error, and the covariance of the difference with it
    base_error: float = math.nan
    base_covariance: float = math.nan

    @property
    def relative_error(self) -> float:
        """Standard error of ``value / |base|`` by the delta method; NaN if the baseline is 0."""
        if not self.base:
            return math.nan
        squares = (
            self.error**2 / self.base**2
            - 2.0 * self.value * self.base_covariance / self.base**3
            + self.value**2 * self.base_error**2 / self.base**4
        )
        return math.sqrt(max(squares, 0.0)) if math.isfinite(squares) else math.nan

    def relative(self, critical: float) -> RelativeDifference:
        """Return ``value / |base|`` with Fieller's interval; `critical`: half its width in standard errors.

        The interval excludes 0 exactly where ``value +- critical * error`` does, on the same side. There is no relative
        difference where the baseline's own interval, ``base +- critical * base_error``, holds 0: neither its sign nor
        its size is known.

        >>> loss = AdjustedDifference(5.0, 1.0, 0.0, 0.0, base=-10.0, base_error=1.0, base_covariance=-1.0)
        >>> [round(part, 3) for part in loss.relative(1.96)]  # from -10 to -5
        [0.5, 0.378, 0.582]
        >>> loss.relative(10.0).value
        nan
        """
        a = self.base**2 - (critical * self.base_error) ** 2
        if not a > 0 or not math.isfinite(a) or not math.isfinite(self.value):
            return NO_RELATIVE
        b = self.value * self.base - critical**2 * self.base_covariance
        c = self.value**2 - (critical * self.error) ** 2
        root = math.sqrt(max(b * b - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
        ends = (low, high) if self.base > 0 else (-high, -low)
        return RelativeDifference(self.value / abs(self.base), *ends)


def adjusted_difference(first: Arm, second: Arm) -> AdjustedDifference:
    """Return the second arm's ratio minus the first one's, minus what the two already differed by before.

    ``theta`` is the coefficient that leaves the least variance (Deng et al., WSDM 2013), with ratios in the place of
    means and their variances by the delta method. Without a time before in both arms nothing is adjusted.

    Half of each user's clicks were there before:

    >>> arm = RatioSums(100, 40, 100, 40, 100, 40)
    >>> made = adjusted_difference(Arm(arm, arm, 0.5), Arm(RatioSums(100, 50, 100, 50, 100, 50), arm, 0.5))
    >>> [round(number, 4) for number in (made.value, made.theta, made.reduction)]
    [0.1, 0.5052, 0.25]
    """
    value = second.after.value - first.after.value
    variance = first.after.error**2 + second.after.error**2
    theta = 0.0
    if first.before and second.before:
        spread = first.before.error**2 + second.before.error**2
        theta = (first.covariance + second.covariance) / spread if spread > 0 else 0.0
    if not math.isfinite(theta):
        theta = 0.0
    left = variance
    if theta and first.before and second.before:
        value -= theta * (second.before.value - first.before.value)
        left = max(variance - theta * (first.covariance + second.covariance), 0.0)
    shared = first.after.error**2 - theta * first.covariance  # minus the covariance of difference and baseline
    reduction = 1.0 - left / variance if variance > 0 else 0.0
    return AdjustedDifference(value, math.sqrt(left), theta, reduction, first.after.value, first.after.error, -shared)
