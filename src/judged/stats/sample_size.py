"""Power of tests over topics, and how many topics are needed: Sakai's topic set size design, with exact distributions.

Sakai (2014 and 2016, Information Retrieval Journal 19) took approximations of Nagata (2003) that a spreadsheet can
compute; here the noncentral t and F distributions themselves are used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.stats.pairing import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

Design: TypeAlias = Literal["two-way", "one-way"]
_LARGE = 1_000_000  # topics; from here on the distributions are those of infinitely many
_HALVINGS = 200


def power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Give the probability that the two-sided paired t-test finds a true difference significant.

    Parameters
    ----------
    difference
        The true mean difference.
    sd
        The standard deviation of the differences between topics.
    n
        Topics.
    alpha
        The level of the test.

    Returns
    -------
    float
        From alpha (no difference) to 1. NaN for fewer than two topics, and if both difference and deviation are 0.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> round(power(0.5, 1.0, 34), 4)
    0.8078
    """
    _check(sd=sd, alpha=alpha)
    if n < 2 or (sd == 0 and difference == 0):
        return math.nan
    if sd == 0:
        return 1.0
    return _power_of_t(math.sqrt(n) * abs(difference) / sd, n - 1, alpha)


def power_anova(
    difference: float, sd: float, systems: int, n: int, alpha: float = 0.05, *, design: Design = "two-way"
) -> float:
    """Give the least probability that an ANOVA sees that systems differ, when the best and the worst are so far apart.

    >>> round(power_anova(0.5, 0.5, systems=3, n=21, design="one-way"), 4)
    0.8148
    """
    # `difference`: between the true means of the best and the worst system. The others are taken to stand in the
    # middle, which is the hardest case (Sakai 2016). `sd`: the standard deviation of the residuals: of scores within a
    # system for `one-way`, of what is left after systems and topics for `two-way`. `design`: `two-way`: all systems on
    # the same topics. `one-way`: the topics are not accounted for. Returns NaN for fewer than two topics, and if both
    # difference and deviation are 0.
    _check(sd=sd, alpha=alpha, systems=systems, design=design)
    if n < 2 or (sd == 0 and difference == 0):
        return math.nan
    if sd == 0:
        return 1.0
    between, within = _degrees(systems, n, design)
    return _power_of_f(n * difference**2 / (2 * sd**2), between, within, alpha)


def minimum_detectable(sd: float, n: int, alpha: float = 0.05, power: float = 0.8) -> float:
    """Give the smallest true difference that the two-sided paired t-test finds significant with this probability.

    Parameters
    ----------
    sd
        The standard deviation of the differences between topics.
    n
        Topics.
    alpha, power
        The level of the test; the probability of finding the difference, above alpha.

    Returns
    -------
    float
        NaN for fewer than two topics, or a deviation that is NaN; 0 if the deviation is 0.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> round(minimum_detectable(0.1, 43), 4)
    0.0437
    """
    _check(sd=sd, alpha=alpha, power=power)
    if n < 2 or math.isnan(sd):
        return math.nan
    return _noncentrality_of_t(n, alpha, power) * sd / math.sqrt(n)


def topics_needed_t(difference: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Give how many topics the two-sided paired t-test needs to find a true difference with this probability.

    >>> topics_needed_t(0.5, 1.0), topics_needed_t(0.05, 0.1)
    (34, 34)
    """
    # `difference`: the true mean difference, not 0. Its sign does not matter. Returns at least 2.
    _check(sd=sd, alpha=alpha, power=power, difference=difference)
    return _fewest(lambda n: (_noncentrality_of_t(n, alpha, power) * sd / difference) ** 2)


def topics_needed_anova(
    difference: float,
    sd: float,
    systems: int,
    alpha: float = 0.05,
    power: float = 0.8,
    *,
    design: Design = "two-way",
) -> int:
    """Give how many topics an ANOVA needs to see that systems differ, when the best and the worst are so far apart.

    >>> topics_needed_anova(0.5, 0.5, systems=3, design="one-way"), topics_needed_anova(0.5, 0.5, systems=3)
    (21, 21)
    """
    # Parameters are those of `power_anova` and `topics_needed_t`. Sakai's design for one-way ANOVA, and for two-way
    # ANOVA without replication; his recommendation is the one-way design also where the topics are the same.
    _check(sd=sd, alpha=alpha, power=power, difference=difference, systems=systems, design=design)
    per_unit = 2 * sd**2 / difference**2
    return _fewest(lambda n: per_unit * _noncentrality_of_f(*_degrees(systems, n, design), alpha, power))


def topics_needed_interval(width: float, sd: float, level: float = 0.95) -> int:
    """Give how many topics make the interval of a difference as narrow as this, on average (Sakai 2014).

    >>> topics_needed_interval(0.5, 0.5)
    18
    """
    # `width`: from the lower to the upper limit of Student's interval for the mean difference, above 0.
    from scipy.special import gammaln, stdtrit

    check_share("level", level)
    if not 0 < width < math.inf:
        raise InputError(f"the width {width} is not above 0", fix="give a positive width")
    _check(sd=sd)

    def needed(n: int) -> float:
        shrunk = math.sqrt(2 / (n - 1)) * math.exp(gammaln(n / 2) - gammaln((n - 1) / 2)) if n < _LARGE else 1.0
        quantile = float(stdtrit(n - 1, (1 + level) / 2))
        return (2 * quantile * sd * shrunk / width) ** 2  # the mean of a sample's deviation is below the true one

    return _fewest(needed)


def _fewest(needed: Callable[[int], float]) -> int:
    """Find the smallest n of at least 2 that is as much as is needed with the degrees of freedom of n."""
    if (most := needed(_LARGE)) > _LARGE:
        return math.ceil(most)
    low, high = 1, 2
    while needed(high) > high:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) > middle else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _noncentrality_of_t(n: int, alpha: float, power: float) -> float:
    return _solved(lambda value: _power_of_t(value, n - 1, alpha), power)


def _noncentrality_of_f(between: int, within: int, alpha: float, power: float) -> float:
    return _solved(lambda value: _power_of_f(value, between, within, alpha), power)


def _power_of_t(noncentrality: float, df: int, alpha: float) -> float:
    """Give P(|T| > the critical value) for a noncentral T: T squared is a noncentral F with 1 and df degrees."""
    # Both tails at once, and the noncentral F of scipy.special keeps its digits where its noncentral t gives NaN.
    return _power_of_f(noncentrality**2, 1, df, alpha)


def _power_of_f(noncentrality: float, between: int, within: int, alpha: float) -> float:
    """Give P(F > the critical value) for a noncentral F."""
    from scipy.special import fdtri, ncfdtr

    found = float(1 - ncfdtr(between, within, noncentrality, fdtri(between, within, 1 - alpha)))
    return 1.0 if math.isnan(found) else found  # NaN: too far out for its series


def _solved(rising: Callable[[float], float], target: float) -> float:
    """Find where a rising function reaches the target, by bisection."""
    low, high = 0.0, 1.0
    while rising(high) < target:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if rising(middle) < target else (low, middle)
    return high


def _degrees(systems: int, n: int, design: Design) -> tuple[int, int]:
    return systems - 1, (systems - 1) * (n - 1) if design == "two-way" else systems * (n - 1)


def _check(
    *,
    sd: float,
    alpha: float = 0.05,
    power: float = 0.8,
    difference: float = 1.0,
    systems: int = 2,
    design: Design = "two-way",
) -> None:
    if sd < 0 or math.isinf(sd):
        raise InputError(f"the standard deviation {sd} makes no sense", fix="give 0 or more")
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if difference == 0 or not math.isfinite(difference):
        raise InputError(f"the difference {difference} cannot be planned for", fix="give the least that matters")
    if systems < 2:
        raise InputError(f"{systems} systems are too few", fix="give at least 2")
    if design not in get_args(Design):
        raise InputError(f"no design {design!r}", fix=f"one of {', '.join(get_args(Design))}")
