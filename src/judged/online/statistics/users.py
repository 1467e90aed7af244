"""Cluster bootstrap of ratios over users, and differences between arms adjusted for pre-exposure behavior (CUPED).

In a resample, each unit has a Poisson(1) weight (Chamandy, Muralidharan, Najmi, and Naidu, Google 2012), so that units
can be processed in blocks. Intervals are studentized (Efron and Tibshirani 1993, section 12.5): of the usual bootstrap
intervals they have the best coverage for few users, rare events, and skewed spend.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling
from judged.stats.ratio import RatioSums, exact_share_interval
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from judged.results.types import Floats


_UNITS = 4096  # units per block: determines the random bits of each unit, so changing it would change all results
_WEIGHTS = 1 << 20  # weights in memory at a time: they fit into a CPU cache
_MAX_PRODUCTS = 2e11  # about ten seconds
_ROUNDING = 1e-12  # largest variance, relative to its largest term, that is due to rounding
_SUMS = 5  # per ratio: the residual n - R d, the denominator d, and their squares and product


def bootstrap_intervals(
    numerators: Floats, denominators: Floats, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Compute studentized bootstrap intervals of ratios of sums over units.

    >>> clicks, pages = np.array([[1.0], [0.0], [2.0], [1.0]]), np.array([[2.0], [1.0], [4.0], [3.0]])
    >>> bootstrap_intervals(clicks, pages, resamples=200).round(2).tolist()
    [[0.0, 1.0]]
    """
    # `numerators`, `denominators`: (units, ratios) sums of each unit; 0 and 0 for a unit that a ratio does not count.
    # All ratios share the at least 100 resamples, so that an interval does not depend on the other ratios. The result
    # is (ratios, 2): NaN for fewer than three units, or effective units, or without variance; infinite if too few
    # resamples vary. If no numerator is negative, limits are at least 0. If none exceeds its denominator either, the
    # ratio is a share: limits are at most 1, and those of 0 and 1 are `exact_share_interval`.
    check_resampling(resamples, seed)
    units, ratios = numerators.shape
    if units * ratios * float(resamples) * _SUMS > _MAX_PRODUCTS:
        problem = f"a bootstrap of {resamples} resamples of {ratios} metrics over {units} units takes too long"
        fix = "use fewer resamples or metrics, or the delta method, which agrees with the bootstrap for many units"
        raise InputError(problem, fix=fix)
    limits = np.full((ratios, 2), np.nan)
    counted = ((numerators != 0) | (denominators != 0)).sum(axis=0)
    totals = denominators.sum(axis=0)
    squares = (denominators**2).sum(axis=0)
    effective = np.divide(totals**2, squares, out=np.zeros(ratios), where=squares > 0)
    min_units = MIN_UNITS["interval"]
    estimable = np.flatnonzero((counted >= min_units) & (totals > 0) & (effective >= min_units * (1.0 - 1e-9)))
    if len(estimable) == 0:
        return limits
    n, d = numerators[:, estimable], denominators[:, estimable]
    value = n.sum(axis=0) / totals[estimable]
    sums = _resampled_sums(n, d, value, resamples, seed)
    errors = np.sqrt(((n - value * d) ** 2).sum(axis=0)) / totals[estimable]
    lower_bounds = np.where((n >= 0).all(axis=0), 0.0, -np.inf)
    upper_bounds = np.where((n >= 0).all(axis=0) & (n <= d).all(axis=0), 1.0, np.inf)
    for i, ratio in enumerate(estimable.tolist()):
        t_low, t_high = _t_limits(sums[:, :, i], level)
        if upper_bounds[i] == 1 and value[i] in {0.0, 1.0}:
            limits[ratio] = exact_share_interval(int(counted[ratio]), level, float(value[i]))
            continue
        is_constant = errors[i] <= 1e-15 * abs(value[i])
        if is_constant:
            continue
        low, high = value[i] - t_high * errors[i], value[i] - t_low * errors[i]
        limits[ratio] = max(low, lower_bounds[i]), min(high, upper_bounds[i])
    return limits


def _resampled_sums(n: Floats, d: Floats, value: Floats, resamples: int, seed: int) -> Floats:
    """Sum n - R d, d, and their squares and product in each resample; shape (5, resamples, ratios)."""
    units, ratios = n.shape
    sums = np.zeros((resamples, _SUMS * ratios))
    table = _poisson_table()
    batch = max(1, _WEIGHTS // _UNITS)
    for start in range(0, units, _UNITS):
        block = slice(start, start + _UNITS)
        r, x = n[block] - value * d[block], d[block]
        terms = np.concatenate([r, x, r * r, r * x, x * x], axis=1)
        rng = np.random.default_rng((seed, start))
        weights = np.empty((batch, len(terms)))
        for first in range(0, resamples, batch):
            last = min(first + batch, resamples)
            bits = rng.integers(0, 1 << 16, size=(last - first, len(terms)), dtype=np.uint16)
            # All indices are in range; "clip" only skips the check.
            np.take(table, bits, out=weights[: last - first], mode="clip")
            sums[first:last] += weights[: last - first] @ terms
    return np.moveaxis(sums.reshape(resamples, _SUMS, ratios), 1, 0)


def _poisson_table() -> Floats:
    """Return a table that maps 16 random bits to a Poisson(1) variate, with probabilities exact to 1 / 65536."""
    shares = np.cumsum([math.exp(-1.0) / math.factorial(count) for count in range(12)])
    ends = np.rint(shares * (1 << 16)).astype(np.int64)
    return np.searchsorted(ends, np.arange(1 << 16), side="right").astype(np.float64)


def _t_limits(sums: Floats, level: float) -> tuple[float, float]:
    """Return the lower and upper quantiles over resamples of t, the deviation of the ratio over its standard error."""
    r, x, rr, rx, xx = (column[sums[1] > 0] for column in sums)
    deviation = r / x
    # Variance of r - deviation * x, with r and x the sums over a resample.
    largest = rr + deviation**2 * xx
    variance = rr - 2.0 * deviation * rx + deviation**2 * xx
    is_constant = variance <= _ROUNDING * largest
    is_zero = np.abs(r) <= math.sqrt(_ROUNDING) * np.sqrt(largest)
    t_of_constant = np.where(is_zero, 0.0, np.copysign(np.inf, deviation))
    t = np.sort(np.where(is_constant, t_of_constant, r / np.sqrt(np.where(is_constant, 1.0, variance))))
    rank = max(int((1.0 - level) / 2.0 * (len(t) + 1) + 1e-9), 1)
    return float(t[rank - 1]), float(t[-rank])


class Arm(NamedTuple):
    """Sums over the users of one arm after and before exposure, and the correlation of the two ratios."""

    after: RatioSums
    before: RatioSums | None = None  # None: no data from before exposure
    rho: float = 0.0  # of `judged.stats.ratio.correlation`

    @property
    def covariance(self) -> float:
        """Covariance of the two ratios."""
        return self.rho * self.after.error * self.before.error if self.before else 0.0


class RelativeDifference(NamedTuple):
    """Difference as a share of the absolute value of the baseline; it has the sign of the difference."""

    value: float  # value, low, high: all NaN if the baseline's interval includes 0
    low: float
    high: float


NO_RELATIVE = RelativeDifference(math.nan, math.nan, math.nan)


class AdjustedDifference(NamedTuple):
    """Difference with its standard error, and the effect of the adjustment."""

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
        # Delta method for d / b: var(d) / b**2 - 2 d cov(d, b) / b**3 + d**2 var(b) / b**4.
        squares = (
            self.error**2 / self.base**2
            - 2.0 * self.value * self.base_covariance / self.base**3
            + self.value**2 * self.base_error**2 / self.base**4
        )
        return math.sqrt(max(squares, 0.0)) if math.isfinite(squares) else math.nan

    def relative(self, critical: float) -> RelativeDifference:
        """Return ``value / |base|`` with Fieller's interval; `critical`: half its width in standard errors.

        The interval excludes 0 exactly if ``value +- critical * error`` does, on the same side. There is no relative
        difference if the baseline's own interval, ``base +- critical * base_error``, includes 0: neither its sign nor
        its size is known.

        >>> loss = AdjustedDifference(5.0, 1.0, 0.0, 0.0, base=-10.0, base_error=1.0, base_covariance=-1.0)
        >>> [round(number, 3) for number in loss.relative(1.96)]  # from -10 to -5
        [0.5, 0.378, 0.582]
        >>> loss.relative(10.0).value
        nan
        """
        # Fieller (JRSS B 1954): the limits are the roots r of (d - r b)**2 = c**2 var(d - r b), a r**2 - 2 b r + c = 0.
        a = self.base**2 - (critical * self.base_error) ** 2
        if not a > 0 or not math.isfinite(a) or not math.isfinite(self.value):
            return NO_RELATIVE
        b = self.value * self.base - critical**2 * self.base_covariance
        c = self.value**2 - (critical * self.error) ** 2
        root = math.sqrt(max(b * b - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
        limits = (low, high) if self.base > 0 else (-high, -low)
        return RelativeDifference(self.value / abs(self.base), *limits)


def adjusted_difference(first: Arm, second: Arm) -> AdjustedDifference:
    """Return the second arm's ratio minus the first one's, adjusted for their difference before exposure (CUPED).

    ``theta`` is the coefficient with the smallest variance (Deng, Xu, Kohavi and Walker, WSDM 2013, equation 4),
    applied to ratios, whose variances follow from the delta method. If an arm has no data from before, ``theta`` is 0.

    >>> before, after = RatioSums(100, 40, 100, 40, 100, 40), RatioSums(100, 50, 100, 50, 100, 50)
    >>> adjusted = adjusted_difference(Arm(before, before, 0.5), Arm(after, before, 0.5))
    >>> [round(number, 4) for number in (adjusted.value, adjusted.theta, adjusted.reduction)]
    [0.1, 0.5052, 0.25]
    """
    value = second.after.value - first.after.value
    variance = adjusted = first.after.error**2 + second.after.error**2
    theta = 0.0
    if first.before and second.before:
        variance_before = first.before.error**2 + second.before.error**2
        covariance = first.covariance + second.covariance
        # theta = cov(Y, X) / var(X), with the differences X before and Y after exposure; both arms share it.
        theta = covariance / variance_before if variance_before > 0 else 0.0
        if theta and math.isfinite(theta):
            value -= theta * (second.before.value - first.before.value)
            adjusted = max(variance - theta * covariance, 0.0)  # var(Y) (1 - rho**2), equation 5
        else:
            theta = 0.0
    # Arms are independent: the difference covaries with the first arm's ratio only through the first arm's own terms.
    base_covariance = theta * first.covariance - first.after.error**2
    reduction = 1.0 - adjusted / variance if variance > 0 else 0.0
    base = first.after
    return AdjustedDifference(value, math.sqrt(adjusted), theta, reduction, base.value, base.error, base_covariance)
