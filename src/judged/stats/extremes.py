"""Distributions of the largest of many differences between means: the studentised range, and Dunnett's.

Both are the same double integral. Given the scale, the chance that some difference of standard normal means is
greater than w is an integral over one mean; the estimated scale has the distribution of sqrt(chi square / df).
scipy has the first only, a hundredth of a second a value, and computes upper tails as 1 minus the rest, which
leaves noise below 1e-12; here every term is positive, so that small p-values keep their digits.

The trapezoidal rule converges exponentially for such bells, wherever its points lie. So all quantiles
share one set of points, evenly spaced in log w, and the integral over the scale is one product of matrices.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Floats

    Tail: TypeAlias = Callable[[Floats], Floats]

_STEP = 0.1  # between the points of the integral over a mean; 0.25 is too far for 1000 systems
_REACH = 9.0  # standard deviations of a normal beyond which nothing is left
_WIDEST = 54.0  # no range of normals is as wide with a probability that a float can hold
_LEAST = 1e-9  # below this a quantile is taken for it: p is 1 but for as little
_BLOCK = 1 << 20  # numbers held at a time


def studentised_range_tail(q: Floats, systems: int, df: float) -> Floats:
    """Give P(Q > q) for the studentised range of `systems` means.

    >>> round(float(studentised_range_tail(np.array([3.578]), 3, 20)[0]), 4)
    0.05
    """
    # Harter (1960) gives 3.578 as the upper 5% point for 3 means and 20 degrees of freedom.
    # `q`: (P,), from 0; infinite gives 0, NaN stays. `systems`: at least 2. `df`: of the variance: from 1 to infinity.
    return _studentised(q, df, lambda width: _range_tail(width, systems))


def baseline_tail(q: Floats, systems: int, df: float) -> Floats:
    """Give the chance that of `systems` means besides a baseline some differ from it by more than q standard errors.

    >>> round(float(baseline_tail(np.array([2.578 * 2**0.5]), 4, 30)[0]), 4)
    0.05
    """
    # Dunnett (1964) gives 2.58 as the two-sided 5% point for 4 means besides the baseline and 30 degrees of freedom.
    # As for the range, of one mean, so that Dunnett's t is `q / sqrt(2)`: the differences are correlated by 1/2.
    return _studentised(q, df, lambda width: _baseline_tail(width, systems))


@lru_cache(maxsize=256)
def studentised_range_critical(systems: int, df: float, probability: float) -> float:
    """Give the q that the studentised range exceeds with this probability.

    >>> round(studentised_range_critical(3, 20, 0.05), 4)
    3.5779
    """
    return _critical(lambda q: studentised_range_tail(q, systems, df), probability)


@lru_cache(maxsize=256)
def baseline_critical(systems: int, df: float, probability: float) -> float:
    """Give the q of `baseline_tail` that is exceeded with this probability.

    >>> round(baseline_critical(4, 30, 0.05) / 2**0.5, 2)
    2.58
    """
    return _critical(lambda q: baseline_tail(q, systems, df), probability)


def _critical(tail: Tail, probability: float) -> float:
    """Look for the quantile between ever closer points."""
    low, high = 0.0, 1.0
    while tail(np.array([high]))[0] > probability:
        low, high = high, 2.0 * high
    for _ in range(12):
        points = np.linspace(low, high, 33)[1:-1]
        above = tail(points) > probability
        low = float(points[above][-1]) if above.any() else low
        high = float(points[~above][0]) if not above.all() else high
    return (low + high) / 2.0


def _range_tail(width: Floats, systems: int) -> Floats:
    """Give the chance that standard normals lie further apart than each width: (N,)."""
    # The highest is at z: all others lie below it, but not all of them within the width.
    from scipy.special import ndtr

    z = _points(-_REACH, float(width.max()) / 2.0 + _REACH, _STEP)
    below = ndtr(z)
    with np.errstate(divide="ignore"):
        missed = -np.expm1((systems - 1) * np.log1p(-np.minimum(ndtr(z - width[:, np.newaxis]) / below, 1.0)))
    return missed @ (systems * _density(z) * below ** (systems - 1))


def _baseline_tail(width: Floats, systems: int) -> Floats:
    """Give the chance that of standard normals some lie further than each width from another one: (N,)."""
    from scipy.special import ndtr

    reach = float(width.max()) / 2.0 + _REACH
    z = _points(-reach, reach, _STEP)
    outside = ndtr(z - width[:, np.newaxis]) + ndtr(-z - width[:, np.newaxis])
    with np.errstate(divide="ignore"):
        missed = -np.expm1(systems * np.log1p(-np.minimum(outside, 1.0)))
    return missed @ _density(z)


def _points(first: float, last: float, step: float) -> Floats:
    """Give the multiples of the step from one number to another, ends included."""
    return np.arange(math.floor(first / step), math.ceil(last / step) + 1, dtype=np.float64) * step


def _density(z: Floats) -> Floats:
    """Give the density of a standard normal, times the step."""
    return np.exp(-z * z / 2.0) * (_STEP / math.sqrt(2.0 * math.pi))


def _studentised(q: Floats, df: float, tail: Tail) -> Floats:
    """Average a tail over the estimated scale: (P,)."""
    found = np.where(q > 0, 0.0, 1.0)
    found[np.isnan(q)] = np.nan
    wanted, back = np.unique(q[(q > 0) & np.isfinite(q)], return_inverse=True)
    size = 4096
    pieces = [_averaged(np.maximum(wanted[at : at + size], _LEAST), df, tail) for at in range(0, len(wanted), size)]
    if pieces:
        found[(q > 0) & np.isfinite(q)] = np.minimum(np.concatenate(pieces), 1.0)[back.ravel()]
    return found


def _averaged(q: Floats, df: float, tail: Tail) -> Floats:
    """Average a tail over the estimated scale, for rising quantiles: (P,)."""
    if math.isinf(df):
        return _tails(q, tail)
    spread = 1.0 / math.sqrt(2.0 * df)  # of the logarithm of the scale
    step = min(0.6 * spread, 0.15)
    left, right = max(12.0 * spread, 45.0 / df), 10.0 * spread
    whole = float(_log_scale_density(_points(-left, right, step), df).sum())
    first = math.log(q[0]) - 0.5 * math.log1p(q[0] ** 2 / (2.0 * df)) - left  # small scales weigh in far tails
    last = min(math.log(_WIDEST), math.log(q[-1]) + right)
    points = _points(first, last, step)
    found, size = np.zeros(len(q)), max(64, _BLOCK // max(len(q), 256))
    for start in range(0, len(points), size):
        some = points[start : start + size]
        found += _log_scale_density(some - np.log(q)[:, np.newaxis], df) @ _tails(np.exp(some), tail)
    return found / whole


def _tails(width: Floats, tail: Tail) -> Floats:
    """Give the tail at each width, a block at a time; 0 where a float cannot hold it."""
    found = np.zeros(len(width))
    held = np.flatnonzero(width <= _WIDEST)
    for start in range(0, len(held), 4096):
        some = held[start : start + 4096]
        found[some] = tail(width[some])
    return found


def _log_scale_density(x: Floats, df: float) -> Floats:
    """Give the density of the logarithm of sqrt(chi square / df), up to a factor."""
    return np.exp(df * (x - np.expm1(2.0 * x) / 2.0))
