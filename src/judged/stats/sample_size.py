"""Power of tests over topics, and how many topics are needed: Sakai's topic set size design, with exact distributions.

Sakai (2014 and 2016, Information Retrieval Journal 19) took approximations of Nagata (2003) that a spreadsheet can
compute; here the noncentral t and F distributions themselves are used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Find by bisection where the power, which rises, is as large."""
    low, high = 0.0, 1.0
    while _power_of_t(high, n - 1, alpha) < power:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if _power_of_t(middle, n - 1, alpha) < power else (low, middle)
    return high


def _power_of_t(noncentrality: float, df: int, alpha: float) -> float:
    """Give P(|T| > the critical value) for a noncentral T: T squared is a noncentral F with 1 and df degrees."""
    # Both tails at once, and the noncentral F of scipy.special keeps its digits where its noncentral t gives NaN.
    from scipy.special import fdtri, ncfdtr

    found = float(1 - ncfdtr(1, df, noncentrality**2, fdtri(1, df, 1 - alpha)))
    return 1.0 if math.isnan(found) else found  # NaN: too far out for its series


def _check(*, sd: float, alpha: float = 0.05, power: float = 0.8, difference: float = 1.0) -> None:
    if sd < 0 or math.isinf(sd):
        raise InputError(f"the standard deviation {sd} makes no sense", fix="give 0 or more")
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if difference == 0 or not math.isfinite(difference):
        raise InputError(f"the difference {difference} cannot be planned for", fix="give the least that matters")
