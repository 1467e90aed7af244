"""Standard errors and intervals of ratios of sums over unequal units: clicks per page, over users.

The rows of a log are not independent, because rows of the same user are correlated. So all functions use sums by unit
(user), and a unit is one observation.

Two standard corrections give intervals their nominal coverage. If a few users have most of the rows, variance and
degrees of freedom use Kish's effective number of users. Because estimates of rare shares and of amounts are skewed,
intervals are computed on the logit scale for shares, and on the log scale for other positive values.

Amounts (money, seconds) need more: only users with an amount inform about its variance. Degrees of freedom are then at
most ``(R / error)**2``, the number of equal amounts with this error, and the upper limit is raised for the skewness
that remains on the log scale. Below two there is no interval. docs/calibration.md has the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.student import student_quantile
from judged.stats.sufficiency import MIN_UNITS, insufficiency

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


_EPSILON = float(np.finfo(np.float64).eps)
_MIN_AMOUNTS = 1.999  # one user's amount has no variance; two equal amounts are 2 within rounding
_MIN_TAIL_UNITS = 2.0  # expected effective units beyond a quantile, on the side with fewer
_EXACT_DF = 100  # degrees of freedom up to which the quantile of Student's t is exact, not an expansion


def ratio_error(units: float, sum_n: float, sum_d: float, sum_nn: float, sum_dd: float, sum_nd: float) -> float:
    """Compute the standard error of R = sum_n / sum_d by the delta method, with units as clusters.

    Three users with 1, 0 and 2 clicks on 2, 1 and 4 pages:

    >>> round(ratio_error(3, 3, 7, 5, 21, 10), 6)
    0.093522
    """
    # With n and d the sums of one unit, and sample variances (divisor `units - 1`), `Var(R) = (s_nn / D**2 + s_dd N**2
    # / D**4 - 2 s_nd N / D**3) / units` where N and D are means over units (Deng, Knoblich and Lu, KDD 2018). The
    # equivalent variance of `n - R d` has less cancellation. `units`: number of units with d > 0. NaN for fewer than
    # two units, and if `sum_d` is 0.
    sums = (np.asarray(value, dtype=np.float64) for value in (units, sum_n, sum_d, sum_nn, sum_dd, sum_nd))
    return float(ratio_errors(*sums))


def ratio_errors(units: Floats, sum_n: Floats, sum_d: Floats, sum_nn: Floats, sum_dd: Floats, sum_nd: Floats) -> Floats:
    """Compute `ratio_error` elementwise, for arrays that broadcast."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = sum_n / sum_d
        squares = sum_nn - 2.0 * ratio * sum_nd + ratio**2 * sum_dd
        largest = sum_nn + 2.0 * np.abs(ratio * sum_nd) + ratio**2 * sum_dd
        squares = np.where(
            squares <= 4.0 * _EPSILON * np.sqrt(units) * largest, 0.0, squares
        )  # rounding error of the sums
        errors = np.sqrt(squares * units / (units - 1.0)) / np.abs(sum_d)
    return np.where((units >= 2) & (sum_d != 0), errors, np.nan)


def effective_units(sum_d: float, sum_dd: float) -> float:
    """Compute Kish's effective number of units: the number of equal units with the same precision.

    Two users with a page each, and one with eight:

    >>> round(effective_units(10, 66), 2)
    1.52
    """
    # `sum_d**2 / sum_dd`: the number of units if all have the same d, otherwise less (Kish 1965; for degrees of freedom
    # of clusters: Carter, Schnepel and Steigerwald 2017). NaN without units.
    return float(sum_d) ** 2 / float(sum_dd) if sum_dd > 0 else math.nan


def ratio_interval(
    value: float,
    error: float,
    units: float,  # number of units: `units - 1` degrees of freedom of Student's t
    level: float,  # nominal coverage, between 0 and 1
    *,
    share: bool,
    counted: bool = False,
    effective: float | None = None,
    signed: bool = False,
) -> tuple[float, float]:
    """Compute the confidence interval of a ratio of sums over units.

    >>> [round(limit, 4) for limit in ratio_interval(3.0, 0.2, 50, 0.95, share=False)]
    [2.6238, 3.515]
    >>> [round(limit, 4) for limit in ratio_interval(3.0, 0.2, 50, 0.95, share=False, counted=True)]
    [2.6238, 3.4301]
    >>> [round(limit, 4) for limit in ratio_interval(3.0, 0.2, 50, 0.95, share=False, signed=True)]
    [2.5981, 3.4019]
    >>> [round(limit, 4) for limit in ratio_interval(0.02, 0.02, 50, 0.95, share=True)]
    [0.0026, 0.1369]
    """
    # `share`: every row is between 0 and 1; the interval is computed on the logit scale, and by `exact_share_interval`
    # for a value of exactly 0 or 1. `signed`: the numerator can be negative; the interval is `value +- t * error`.
    # Otherwise it is computed on the log scale, `value * exp(+- t * error / value)`. `counted`: the numerator is a
    # number of events; without events, the upper limit is the rate at which this has probability `(1 - level) / 2` for
    # units with one event per row. Neither share nor counted: an amount. NaN for fewer than three (effective) units,
    # for amounts that are all 0 or have fewer than two effective units, and if the error is 0, except for counts of 0
    # and shares of 0 or 1.
    numbers = (value, error, units, units if effective is None else effective)
    values, errors, n, n_effective = (np.array(number, dtype=np.float64) for number in numbers)
    kinds = {"share": np.array(share), "counted": np.array(counted)}
    low, high = ratio_intervals(values, errors, n, n_effective, level, **kinds, signed=signed)
    return float(low), float(high)


def ratio_intervals(
    value: Floats,
    error: Floats,
    units: Floats,
    effective: Floats,
    level: float,
    *,
    share: Bools,
    counted: Bools | None = None,
    signed: bool = False,
) -> tuple[Floats, Floats]:
    """Compute `ratio_interval` elementwise, for arrays that broadcast."""
    is_count = np.zeros((), dtype=bool) if counted is None else counted
    tail = (1.0 - level) / 2.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        effective = np.minimum(effective, units)
        is_amount = ~share & ~is_count & (value > 0) & (error > 0) & (not signed)
        equal_amounts = np.where(is_amount, (value / error) ** 2, np.inf)
        df = np.minimum(effective - 1.0, equal_amounts)
        half = np.where(error == 0, 0.0, _rescale_error(error, units, effective) * student_quantiles(1.0 - tail, df))
        low, high = value - half, value + half
        if not signed:  # log scale
            skewness_factor = np.where(is_amount, np.exp(1.0 / equal_amounts + 1.0 / effective), 1.0)
            factor, is_positive = np.exp(half / value), (value > 0) & ~share
            low = np.where(is_positive, value / factor, low)
            high = np.where(is_positive, value * factor * skewness_factor, high)
        odds, odds_ratio = value / (1.0 - value), np.exp(half / (value * (1.0 - value)))  # logit scale
        is_proper = share & (value > 0) & (value < 1)
        low = np.where(is_proper, np.fmin(odds / (odds + odds_ratio), value), low)  # fmin: against rounding errors
        high = np.where(is_proper, np.fmax(1.0 / (1.0 + 1.0 / odds / odds_ratio), value), high)
        is_zero, is_one = share & (value <= 0), share & (value >= 1)
        low = np.where(is_zero, 0.0, np.where(is_one, tail ** (1.0 / units), low))
        high = np.where(is_zero, 1.0 - tail ** (1.0 / units), np.where(is_one, 1.0, high))
        is_empty = ~share & (value == 0) & (error == 0)
        high = np.where(is_empty & is_count, -math.log(tail) / units, high)
    is_valid = _has_enough_units(units, effective) & ~np.isnan(value) & ~np.isnan(error)
    is_valid &= (equal_amounts >= _MIN_AMOUNTS) & (is_count | ~is_empty)
    is_valid &= (error > 0) | is_zero | is_one | is_empty  # without variance, only these cases have valid bounds
    return np.where(is_valid, low, np.nan), np.where(is_valid, high, np.nan)


def _has_enough_units(units: Floats, effective: Floats) -> Bools:
    """Return elementwise whether `judged.stats.sufficiency.insufficiency` allows an interval."""
    minimum = MIN_UNITS["interval"]
    return (units >= minimum) & ~(effective < minimum * (1.0 - 1e-9))


def _rescale_error(error: Floats, units: Floats, effective: Floats) -> Floats:
    """Replace the divisor `units - 1` of the variance by `effective - 1`."""
    return error * np.sqrt((1.0 - 1.0 / units) / (1.0 - 1.0 / effective))


def exact_share_interval(units: float, level: float, value: float) -> tuple[float, float]:
    """Compute the Clopper-Pearson interval of a share that is 0 or 1 for all units.

    >>> [round(limit, 4) for limit in exact_share_interval(100, 0.95, 0)]
    [0.0, 0.0362]
    """
    # For a value of 1, the lower limit x satisfies x**units == (1 - level) / 2. NaN for fewer than three units.
    return ratio_interval(float(value > 0), 0.0, units, level, share=True)


def woodruff(
    probability: float, error: float, units: float, level: float, *, effective: float | None = None
) -> tuple[float, float]:
    """Return the two probabilities whose quantiles are the limits of the interval of a quantile.

    >>> [round(limit, 3) for limit in woodruff(0.5, 0.05, 100, 0.95)]
    [0.397, 0.603]
    >>> woodruff(0.95, 0.05, 100, 0.95)
    (nan, nan)
    """
    # The share of rows at or below the estimated quantile is a ratio with an error over units. The quantile function
    # maps the interval of this share to values (Woodruff, JASA 1952). That interval is Clopper and Pearson's for the
    # number of independent rows with this error (Korn and Graubard, Survey Methodology 1998). `probability`: 0.5 for a
    # median. `error`: standard error of the share, by `ratio_error`; if it is 0, each unit counts as one row. NaN for
    # fewer than three (effective) units, and if all rows can be on one side of the quantile: for 0.95, with fewer than
    # 72 independent rows, or fewer than 40 effective units, of which 2 are expected above it. (An error that is too
    # small by chance would make correlated rows appear independent.)
    effective = units if effective is None else min(effective, units)
    min_effective = math.ceil(_MIN_TAIL_UNITS / min(probability, 1.0 - probability) - 1e-9)
    if insufficiency(units, effective_units=effective, min_effective_units=min_effective) or math.isnan(error):
        return math.nan, math.nan
    tail = (1.0 - level) / 2.0
    rows = effective
    if error > 0:
        rescaled = _rescale_error(*(np.array(number, dtype=np.float64) for number in (error, units, effective)))
        t, z = (float(student_quantiles(1.0 - tail, np.array(df))) for df in (effective - 1.0, math.inf))
        rows = probability * (1.0 - probability) / float(rescaled * t / z) ** 2
    if max(probability, 1.0 - probability) ** rows > tail:
        return math.nan, math.nan
    below, above = probability * rows, (1.0 - probability) * rows
    return 1.0 - _beta_quantile(1.0 - tail, above + 1.0, below), _beta_quantile(1.0 - tail, below + 1.0, above)


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Approximate an upper quantile of the beta distribution (Abramowitz and Stegun 26.5.22), for a, b > 1/2.

    >>> round(_beta_quantile(0.975, 4.0, 7.0), 3)  # exactly 0.652
    0.653
    """
    from statistics import NormalDist  # slow to import

    z = NormalDist().inv_cdf(probability)
    inverse_a, inverse_b = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h, lambda_ = 2.0 / (inverse_a + inverse_b), (z * z - 3.0) / 6.0
    w = -z * math.sqrt(h + lambda_) / h - (inverse_b - inverse_a) * (lambda_ + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return a / (a + b * math.exp(2.0 * w))


def student_quantiles(probability: float, df: Floats) -> Floats:
    """Compute quantiles of Student's t for any degrees of freedom from 1.

    >>> student_quantiles(0.975, np.array([1.0, 9.0, 9.5, 1e6])).round(4).tolist()
    [12.7062, 2.2622, 2.2443, 1.96]
    """
    # Exact for integers up to 100. Between them, interpolation in 1 / df is slightly conservative. Above, the expansion
    # around the normal quantile (Abramowitz and Stegun 26.7.5) is accurate to eight digits at usual levels.
    shape = np.shape(df)
    df = np.atleast_1d(np.maximum(df, 1.0))  # keeps NaN
    quantiles = np.full(df.shape, np.nan)
    is_small, is_large = df <= _EXACT_DF, df > _EXACT_DF
    if is_small.any():
        integers = np.unique(np.concatenate([np.floor(df[is_small]), np.ceil(df[is_small])])).astype(np.int64)
        exact = np.array([student_quantile(probability, integer) for integer in integers.tolist()])
        quantiles[is_small] = np.interp(-1.0 / df[is_small], -1.0 / integers, exact)
    if is_large.any():
        quantiles[is_large] = _expanded_quantiles(probability, df[is_large])
    return quantiles.reshape(shape)


def _expanded_quantiles(probability: float, df: Floats) -> Floats:
    """Expand the quantile of t around the normal quantile."""
    from statistics import NormalDist  # slow to import

    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    quantiles = np.zeros(len(df))
    for term in reversed(terms):
        quantiles = quantiles / df + term
    return quantiles


@dataclass(frozen=True)
class UnitRatio:
    """Sums over units for a ratio, its test, and its interval.

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
        """Build the sums from numerators and denominators by unit: (units,) each."""
        n, d = numerators, denominators
        squares = float(n @ n), float(n @ d), float(d @ d)
        return cls(len(n), float(n.sum()), float(d.sum()), squares)

    @classmethod
    def of_rows(cls, unit: Ints, values: Floats) -> UnitRatio:
        """Build the sums of the mean of rows; `unit` is an integer code of each row's unit: (rows,) each."""
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
        """Kish's effective number of units."""
        return self.denominator**2 / self.squares[2] if self.squares[2] else 0.0

    def t(self, null: float) -> float:
        """Return the t statistic of the residuals from a ratio; 0 if they do not vary."""
        nn, nd, dd = self.squares
        total = self.numerator - null * self.denominator
        squares = nn - 2.0 * null * nd + null * null * dd
        centered_squares = squares - total * total / self.units if self.units else 0.0
        if self.units < 2 or centered_squares <= 1e-12 * squares:
            return 0.0
        return total / math.sqrt(self.units * centered_squares / (self.units - 1.0))

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
        if not a > 1e-12 * self.denominator**2:  # denominators vary so much that no ratio can be rejected
            return math.nan, math.nan
        root = math.sqrt(max(b * b - a * c, 0.0))
        return (b - root) / a, (b + root) / a


_STEPS = 20  # of bisection: p-values have five accurate digits
_MAX_DISTANCE = 1e100  # its square does not overflow
_NORMAL = NormalDist()


@dataclass(frozen=True)
class RatioSums:
    """Sums over units of a numerator n and a denominator d, of their squares, and of their product."""

    units: float  # with a numerator or a denominator
    n: float
    d: float
    nn: float
    dd: float
    nd: float

    @property
    def value(self) -> float:
        """The ratio; NaN if the denominator is 0."""
        return self.n / self.d if self.d else math.nan

    @property
    def error(self) -> float:
        """Standard error of the ratio over units."""
        return ratio_error(self.units, self.n, self.d, self.nn, self.dd, self.nd)

    @property
    def squares(self) -> float:
        """Sum over units of the squares of ``n - value * d``."""
        return max(self.nn - 2.0 * self.value * self.nd + self.value**2 * self.dd, 0.0)

    @property
    def effective(self) -> float:
        """Kish's effective number of units; NaN without units."""
        return effective_units(self.d, self.dd)

    def interval(self, level: float, *, share: bool, counted: bool) -> tuple[float, float]:
        """Compute the interval of the ratio; see `ratio_interval`."""
        kinds = {"share": share, "counted": counted}
        return ratio_interval(self.value, self.error, self.units, level, effective=self.effective, **kinds)


@dataclass(frozen=True)
class RatioDifference:
    """Second ratio minus the first, with its interval and p-value."""

    value: float
    low: float  # NaN if one of the ratios has no interval
    high: float
    p: float  # smallest alpha for which the interval of level 1 - alpha excludes 0; NaN without interval


def correlation(first: RatioSums, second: RatioSums, nn: float, nd: float, dn: float, dd: float) -> float:
    """Compute the correlation of the estimates of two ratios from the units that they share.

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
    first: RatioSums, second: RatioSums, level: float, *, rho: float = 0.0, share: bool, counted: bool = False
) -> RatioDifference:
    """Compute the second ratio minus the first, with an interval from those of both, and the matching p-value.

    The interval is Newcombe's square-and-add (MOVER) interval (Statistics in Medicine 1998) with the correlation of Zou
    (Statistics in Medicine 2007): distances of the limits from the estimates are combined as for variances.

    >>> few, many = RatioSums(100, 20, 100, 20, 100, 20), RatioSums(100, 40, 100, 40, 100, 40)
    >>> difference = ratio_difference(few, many, 0.95, share=True)
    >>> [round(number, 3) for number in (difference.value, difference.low, difference.high, difference.p)]
    [0.2, 0.07, 0.321, 0.003]
    """
    # `rho`: from `correlation`. `share`, `counted`: as for `ratio_interval`.
    kinds = {"share": np.array(share), "counted": np.array(counted)}
    value = second.value - first.value
    # both ratios in one call, as the search for the p-value computes their intervals at many levels
    rows = [(ratio.value, ratio.error, ratio.units, ratio.effective) for ratio in (first, second)]
    values, errors, units, effective = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))

    def limits(confidence: float) -> tuple[float, float]:
        # u and l: distances of the upper and the lower limit of each ratio from its estimate
        lows, highs = ratio_intervals(values, errors, units, effective, confidence, **kinds, signed=False)
        l_1, l_2 = np.minimum(values - lows, _MAX_DISTANCE).tolist()
        u_1, u_2 = np.minimum(highs - values, _MAX_DISTANCE).tolist()
        lower_square = l_2**2 + u_1**2 - 2.0 * rho * l_2 * u_1
        upper_square = u_2**2 + l_1**2 - 2.0 * rho * u_2 * l_1
        return value - math.sqrt(max(lower_square, 0.0)), value + math.sqrt(max(upper_square, 0.0))

    low, high = limits(level)
    if math.isnan(low) or math.isnan(high):
        return RatioDifference(value, math.nan, math.nan, math.nan)
    if value == 0:
        return RatioDifference(value, low, high, 1.0)

    def excludes_zero(alpha: float) -> bool:
        lower, upper = limits(1.0 - alpha)
        return lower > 0 or upper < 0

    # bisection on the scale of normal quantiles, on which the limits are nearly linear
    z_low, z_high = 0.0, 8.0
    if excludes_zero(2.0 * _NORMAL.cdf(-z_high)):
        return RatioDifference(value, low, high, 2.0 * _NORMAL.cdf(-z_high))
    for _ in range(_STEPS):
        middle = (z_low + z_high) / 2.0
        z_low, z_high = (middle, z_high) if excludes_zero(2.0 * _NORMAL.cdf(-middle)) else (z_low, middle)
    return RatioDifference(value, low, high, 2.0 * _NORMAL.cdf(-z_low))
