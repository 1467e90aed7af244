"""The bootstrap of ratios over clusters: whole users are drawn, with all their rows.

Each unit counts Poisson(1) times in a resample (Chamandy, Muralidharan, Najmi and Naidu, Google 2012), so that units
can be worked on in blocks. The interval is the studentized one (Efron and Tibshirani 1993, 12.5): of the usual
bootstrap intervals it is the one that holds its level best for few users, rare shares and skewed money.
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


_UNITS = 4096  # in one block: it decides which unit gets which random bits, so that it never changes
_WEIGHTS = 1 << 20  # held at a time: they stay in a cache
_WORK = 2e11  # products summed: some ten seconds
_LEVEL = 1e-12  # of the largest term, what is left of a variance by rounding
_SUMS = 5  # of each ratio: what is off, the denominator, and the three products of the two


def bootstrap_intervals(
    numerators: Floats, denominators: Floats, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Give studentized bootstrap intervals of ratios of sums over units.

    >>> clicks, pages = np.array([[1.0], [0.0], [2.0], [1.0]]), np.array([[2.0], [1.0], [4.0], [3.0]])
    >>> bootstrap_intervals(clicks, pages, resamples=200).round(2).tolist()
    [[0.0, 1.0]]
    """
    # `numerators`, `denominators`: (units, ratios) sums of each unit; 0 and 0 for a unit that does not count for a
    # ratio. `level`: the share of samples whose interval holds the true value. `resamples`, `seed`: how many resamples,
    # at least 100, and of what they are drawn. All ratios share them, and a ratio's interval does not depend on what
    # stands beside it. Returns low and high; NaN where fewer than three
    # units, or effective units, count, or nothing varies. Where no numerator is negative, low
    # is at least 0; where none is above its denominator either, it is a share: high is at most 1, and the interval of
    # one that is 0 or 1 is `exact_share_interval`. Infinite where too few resamples vary.
    check_resampling(resamples, seed)
    units, ratios = numerators.shape
    if units * ratios * float(resamples) * _SUMS > _WORK:
        raise InputError(
            f"{resamples} resamples of {ratios} metrics over {units} units are too many",
            fix="fewer resamples or metrics, or the delta method, which agrees with the bootstrap for so many units",
        )
    limits = np.full((ratios, 2), np.nan)
    counted = ((numerators != 0) | (denominators != 0)).sum(axis=0)
    totals = denominators.sum(axis=0)
    squares = (denominators**2).sum(axis=0)
    effective = np.divide(totals**2, squares, out=np.zeros(ratios), where=squares > 0)
    least = MIN_UNITS["interval"]
    told = np.flatnonzero((counted >= least) & (totals > 0) & (effective >= least * (1.0 - 1e-9)))
    if len(told) == 0:
        return limits
    n, d = numerators[:, told], denominators[:, told]
    value = n.sum(axis=0) / totals[told]
    sums = _resampled_sums(n, d, value, resamples, seed)
    errors = np.sqrt(((n - value * d) ** 2).sum(axis=0)) / totals[told]
    lowest = np.where((n >= 0).all(axis=0), 0.0, -np.inf)
    highest = np.where((n >= 0).all(axis=0) & (n <= d).all(axis=0), 1.0, np.inf)
    for at, ratio in enumerate(told.tolist()):
        below, above = _t_limits(sums[:, :, at], level)
        if highest[at] == 1 and value[at] in {0.0, 1.0}:
            limits[ratio] = exact_share_interval(int(counted[ratio]), level, float(value[at]))
            continue
        flat = errors[at] <= 1e-15 * abs(value[at])
        if flat:  # without variance there is nothing to draw an interval from
            continue
        low, high = value[at] - above * errors[at], value[at] - below * errors[at]
        limits[ratio] = max(low, lowest[at]), min(high, highest[at])
    return limits


def _resampled_sums(n: Floats, d: Floats, value: Floats, resamples: int, seed: int) -> Floats:
    """Sum, in each resample: (5, resamples, ratios), of n - R d, of d, and of their squares and product."""
    units, ratios = n.shape
    sums = np.zeros((resamples, _SUMS * ratios))
    table = _poisson_table()
    size = max(1, _WEIGHTS // _UNITS)
    for start in range(0, units, _UNITS):
        part = slice(start, start + _UNITS)
        off, below = n[part] - value * d[part], d[part]
        terms = np.concatenate([off, below, off * off, off * below, below * below], axis=1)
        rng = np.random.default_rng((seed, start))
        weights = np.empty((size, len(terms)))
        for first in range(0, resamples, size):
            last = min(first + size, resamples)
            bits = rng.integers(0, 1 << 16, size=(last - first, len(terms)), dtype=np.uint16)
            np.take(table, bits, out=weights[: last - first], mode="clip")  # no number is out of range
            sums[first:last] += weights[: last - first] @ terms
    return np.moveaxis(sums.reshape(resamples, _SUMS, ratios), 1, 0)


def _poisson_table() -> Floats:
    """Give a table that turns 16 random bits into a Poisson(1) number, right to 1 / 65536."""
    shares = np.cumsum([math.exp(-1.0) / math.factorial(count) for count in range(12)])
    ends = np.rint(shares * (1 << 16)).astype(np.int64)
    return np.searchsorted(ends, np.arange(1 << 16), side="right").astype(np.float64)


def _t_limits(sums: Floats, level: float) -> tuple[float, float]:
    """Give the lower and upper points of t = (ratio - its value) / its error over resamples."""
    off, below, squares, products, below_squares = (column[sums[1] > 0] for column in sums)
    moved = off / below
    largest = squares + moved**2 * below_squares
    variance = squares - 2.0 * moved * products + moved**2 * below_squares
    level_sample = variance <= _LEVEL * largest
    far = np.where(np.abs(off) <= math.sqrt(_LEVEL) * np.sqrt(largest), 0.0, np.copysign(np.inf, moved))
    t = np.sort(np.where(level_sample, far, off / np.sqrt(np.where(level_sample, 1.0, variance))))
    rank = max(int((1.0 - level) / 2.0 * (len(t) + 1) + 1e-9), 1)
    return float(t[rank - 1]), float(t[-rank])


class Arm(NamedTuple):
    """One arm of a test: the sums over its users after exposure, before it, and the correlation of the two ratios."""

    after: RatioSums
    before: RatioSums | None = None  # None: nothing is known of the time before
    rho: float = 0.0  # of `judged.stats.ratio.correlation`

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
