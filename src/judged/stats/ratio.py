"""Errors and intervals of ratios of sums over units that differ: clicks by pages, over users.

The rows of a log are not independent: those of one user resemble one another. Everything here therefore works on sums
by unit, and a unit (a user) is what is counted as one observation.

Two things make the plain interval ``R +- t * error`` miss the truth more often than it says, and are put right with
standard means. Where a few users have most of the rows, variance and degrees of freedom follow Kish's effective number
of users. Estimates of rare shares and of money are skewed: intervals are made on the logit scale for shares, on the
logarithmic one for other values above 0.

Amounts (money, seconds) take more: how much they vary is known from those users alone that have any. Degrees of freedom
are then at most ``(R / error)**2``, the number of equal amounts that would leave this error, and the upper end is
raised for the skewness that a logarithm leaves; below two, there is no telling, and no interval. How often intervals
hold the truth: docs/calibration.md.
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
# Of one user's amount nobody can tell how much it varies; two equal ones are 2 but for rounding.
_FEWEST_AMOUNTS = 1.999
_FEWEST_OUTSIDE = 2.0  # effective units that are expected beyond a quantile, on the side that has fewer
_TABLED = 100  # degrees of freedom up to which the quantile of Student's t is computed, not expanded


def ratio_error(units: float, sum_n: float, sum_d: float, sum_nn: float, sum_dd: float, sum_nd: float) -> float:
    """Give the standard error of R = sum_n / sum_d by the delta method, units being clusters.

    Three users with 1, 0 and 2 clicks on 2, 1 and 4 pages:

    >>> round(ratio_error(3, 3, 7, 5, 21, 10), 6)
    0.093522
    """
    # With n and d the sums of one unit, and sample variances (divisor `units - 1`), `Var(R) = (s_nn / D**2 + s_dd N**2
    # / D**4 - 2 s_nd N / D**3) / units` where N and D are means over units: Deng, Knoblich and Lu, KDD 2018. It is
    # computed in the equal form of `n - R d`, which cancels less. `units`: how many units there are with d > 0. Returns
    # at least 0; NaN for fewer than two units and where `sum_d` is 0.
    given = (np.asarray(value, dtype=np.float64) for value in (units, sum_n, sum_d, sum_nn, sum_dd, sum_nd))
    return float(ratio_errors(*given))


def ratio_errors(units: Floats, sum_n: Floats, sum_d: Floats, sum_nn: Floats, sum_dd: Floats, sum_nd: Floats) -> Floats:
    """Give `ratio_error` of each element: arrays of one shape, or that fit together."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = sum_n / sum_d
        squares = sum_nn - 2.0 * ratio * sum_nd + ratio**2 * sum_dd
        largest = sum_nn + 2.0 * np.abs(ratio * sum_nd) + ratio**2 * sum_dd
        squares = np.where(squares <= 4.0 * _EPSILON * np.sqrt(units) * largest, 0.0, squares)  # rounding of the sums
        errors = np.sqrt(squares * units / (units - 1.0)) / np.abs(sum_d)
    return np.where((units >= 2) & (sum_d != 0), errors, np.nan)


def effective_units(sum_d: float, sum_dd: float) -> float:
    """Give Kish's effective number of units: how many equal ones tell as much as these unequal ones.

    Two users with a page each, and one with eight:

    >>> round(effective_units(10, 66), 2)
    1.52
    """
    # `sum_d**2 / sum_dd`, at most the number of units, and that where all have the same d (Kish 1965; for degrees of
    # freedom of clusters: Carter, Schnepel and Steigerwald 2017). NaN where there are none.
    return float(sum_d) ** 2 / float(sum_dd) if sum_dd > 0 else math.nan


def ratio_interval(
    value: float,
    error: float,
    units: float,  # how many units they are made over: `units - 1` degrees of freedom of Student's t
    level: float,  # the share of samples whose interval holds the true value, above 0 and below 1
    *,
    share: bool,
    counted: bool = False,
    effective: float | None = None,
    signed: bool = False,
) -> tuple[float, float]:
    """Give the interval of a ratio of sums over units.

    >>> [round(end, 4) for end in ratio_interval(3.0, 0.2, 50, 0.95, share=False)]
    [2.6238, 3.515]
    >>> [round(end, 4) for end in ratio_interval(3.0, 0.2, 50, 0.95, share=False, counted=True)]
    [2.6238, 3.4301]
    >>> [round(end, 4) for end in ratio_interval(3.0, 0.2, 50, 0.95, share=False, signed=True)]
    [2.5981, 3.4019]
    >>> [round(end, 4) for end in ratio_interval(0.02, 0.02, 50, 0.95, share=True)]
    [0.0026, 0.1369]
    """
    # `share`: every row of the ratio lies between 0 and 1. The interval is then made on the logit scale, and so never
    # leaves them; of a share that is exactly 0 or 1, `exact_share_interval`. `signed`: the numerator may be negative:
    # the interval is the plain one, `value +- t * error`. Otherwise that of a value above 0 that is no share is made on
    # the logarithmic scale, `value * exp(+- t * error / value)`. `counted`: the numerator is a number of events. Where
    # there are none, the interval ends where that would still happen with the chance `(1 - level) / 2`, had each unit
    # that has events one a row. Neither a share nor counted: an amount; none tells nothing. Returns low and high; NaN
    # for fewer than three units or effective units, for amounts that are all 0, and for amounts of fewer than two
    # units' worth, and where the error is 0, except for counts of 0 and shares of 0 or 1.
    counts = units if effective is None else effective
    values, errors, users, told = (np.array(number, dtype=np.float64) for number in (value, error, units, counts))
    kinds = {"share": np.array(share), "counted": np.array(counted)}
    low, high = ratio_intervals(values, errors, users, told, level, **kinds, signed=signed)
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
    """Give `ratio_interval` of each element: arrays of one shape, or that fit together."""
    counts = np.zeros((), dtype=bool) if counted is None else counted
    missed = (1.0 - level) / 2.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        effective = np.minimum(effective, units)
        amount = ~share & ~counts & (value > 0) & (error > 0) & (not signed)
        amounts = np.where(amount, (value / error) ** 2, np.inf)
        df = np.minimum(effective - 1.0, amounts)
        half = np.where(error == 0, 0.0, _widened(error, units, effective) * student_quantiles(1.0 - missed, df))
        low, high = value - half, value + half
        if not signed:
            times, skewed = np.exp(half / value), np.where(amount, np.exp(1.0 / amounts + 1.0 / effective), 1.0)
            above = (value > 0) & ~share
            low, high = np.where(above, value / times, low), np.where(above, value * times * skewed, high)
        odds, times = value / (1.0 - value), np.exp(half / (value * (1.0 - value)))
        inside = share & (value > 0) & (value < 1)
        low = np.where(inside, np.fmin(odds / (odds + times), value), low)  # rounding must not carry it past the value
        high = np.where(inside, np.fmax(1.0 / (1.0 + 1.0 / odds / times), value), high)
        none, each = share & (value <= 0), share & (value >= 1)
        low = np.where(none, 0.0, np.where(each, missed ** (1.0 / units), low))
        high = np.where(none, 1.0 - missed ** (1.0 / units), np.where(each, 1.0, high))
        nothing = ~share & (value == 0) & (error == 0)
        high = np.where(nothing & counts, -math.log(missed) / units, high)
    known = _enough(units, effective) & ~np.isnan(value) & ~np.isnan(error)
    known &= (amounts >= _FEWEST_AMOUNTS) & (counts | ~nothing)
    known &= (error > 0) | none | each | nothing  # without variance only bounds from the range are left
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _enough(units: Floats, effective: Floats) -> Bools:
    """Return where `judged.stats.sufficiency.insufficiency` finds enough units, and effective ones, for an interval."""
    least = MIN_UNITS["interval"]
    return (units >= least) & ~(effective < least * (1.0 - 1e-9))


def _widened(error: Floats, units: Floats, effective: Floats) -> Floats:
    """Divide by `effective - 1` in place of `units - 1`."""
    return error * np.sqrt((1.0 - 1.0 / units) / (1.0 - 1.0 / effective))


def exact_share_interval(units: float, level: float, value: float) -> tuple[float, float]:
    """Give the interval of Clopper and Pearson for a share that is 0 or 1 for all units.

    >>> [round(end, 4) for end in exact_share_interval(100, 0.95, 0)]
    [0.0, 0.0362]
    """
    # Its open end is where that would still happen with the chance `(1 - level) / 2`: that power of `1 / units`.
    # Returns NaN for fewer than three units.
    return ratio_interval(float(value > 0), 0.0, units, level, share=True)


def woodruff(
    probability: float, error: float, units: float, level: float, *, effective: float | None = None
) -> tuple[float, float]:
    """Give the two probabilities whose quantiles bound the interval of a quantile.

    >>> [round(end, 3) for end in woodruff(0.5, 0.05, 100, 0.95)]
    [0.397, 0.603]
    >>> woodruff(0.95, 0.05, 100, 0.95)
    (nan, nan)
    """
    # The share of rows at or below the estimated quantile is a ratio with an error over units; its interval is carried
    # over to values by the quantile function (Woodruff, JASA 1952). That of the share is the one of Clopper and Pearson
    # for as many independent rows as would leave this error (Korn and Graubard, Survey Methodology 1998).
    # `probability`: of the quantile: 0.5 for a median. `error`: standard error of the share of rows at or below the
    # estimate, of `ratio_error`; where it is 0, each unit is taken for one row. Returns between 0 and 1; NaN for fewer
    # than three units or effective units, and where all rows may lie on one side of the quantile: of 0.95, below 72
    # independent ones, or below 40 effective units, of which 2 are expected above it. An error that is too small by
    # chance makes rows seem independent that are not.
    effective = units if effective is None else min(effective, units)
    outside = min(probability, 1.0 - probability)
    least = math.ceil(_FEWEST_OUTSIDE / outside - 1e-9)
    if insufficiency(units, effective_units=effective, min_effective_units=least) or math.isnan(error):
        return math.nan, math.nan
    missed = (1.0 - level) / 2.0
    rows = effective
    if error > 0:
        widened = _widened(*(np.array(number, dtype=np.float64) for number in (error, units, effective)))
        t, z = (float(student_quantiles(1.0 - missed, np.array(df))) for df in (effective - 1.0, math.inf))
        rows = probability * (1.0 - probability) / float(widened * t / z) ** 2
    if max(probability, 1.0 - probability) ** rows > missed:
        return math.nan, math.nan
    below, above = probability * rows, (1.0 - probability) * rows
    return 1.0 - _beta_quantile(1.0 - missed, above + 1.0, below), _beta_quantile(1.0 - missed, below + 1.0, above)


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Approximate an upper quantile of the beta distribution (Abramowitz and Stegun 26.5.22), for a and b above 1/2.

    >>> round(_beta_quantile(0.975, 4.0, 7.0), 3)  # exactly 0.652
    0.653
    """
    from statistics import NormalDist  # its fractions take a while to import

    z = NormalDist().inv_cdf(probability)
    of_a, of_b = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h, bend = 2.0 / (of_a + of_b), (z * z - 3.0) / 6.0
    w = -z * math.sqrt(h + bend) / h - (of_b - of_a) * (bend + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return a / (a + b * math.exp(2.0 * w))


def student_quantiles(probability: float, df: Floats) -> Floats:
    """Give quantiles of Student's t for any degrees of freedom, none below 1.

    >>> student_quantiles(0.975, np.array([1.0, 9.0, 9.5, 1e6])).round(4).tolist()
    [12.7062, 2.2622, 2.2443, 1.96]
    """
    # Whole ones up to 100 are exact. Between them it is interpolated in 1 / df, which is a little too wide, and above
    # them expanded around the normal quantile (Abramowitz and Stegun 26.7.5; to eight digits at usual levels).
    shape = np.shape(df)
    df = np.atleast_1d(np.maximum(df, 1.0))  # NaN stays
    quantiles = np.full(df.shape, np.nan)
    few, many = df <= _TABLED, df > _TABLED
    if few.any():
        whole = np.unique(np.concatenate([np.floor(df[few]), np.ceil(df[few])])).astype(np.int64)
        tabled = np.array([student_quantile(probability, freedom) for freedom in whole.tolist()])
        quantiles[few] = np.interp(-1.0 / df[few], -1.0 / whole, tabled)
    if many.any():
        quantiles[many] = _expanded(probability, df[many])
    return quantiles.reshape(shape)


def _expanded(probability: float, df: Floats) -> Floats:
    """Expand the quantile of t around the normal one."""
    from statistics import NormalDist  # its fractions take a while to import

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
