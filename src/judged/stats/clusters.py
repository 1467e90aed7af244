"""The bootstrap of ratios over clusters: whole users are drawn, with all their rows.

Each unit counts Poisson(1) times in a resample (Chamandy, Muralidharan, Najmi and Naidu, Google 2012), so that units
can be worked on in blocks. The interval is the studentised one (Efron and Tibshirani 1993, 12.5): of the usual
bootstrap intervals it is the one that holds its level best for few users, rare shares and skewed money.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import check_resampling
from judged.stats.ratio import exact_share_interval
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from judged._types import Floats

_UNITS = 4096  # in one block: it decides which unit gets which random bits, so that it never changes
_WEIGHTS = 1 << 20  # held at a time: they stay in a cache
_WORK = 2e11  # products summed: some ten seconds
_LEVEL = 1e-12  # of the largest term, what is left of a variance by rounding
_SUMS = 5  # of each ratio: what is off, the denominator, and the three products of the two


def bootstrap_intervals(
    numerators: Floats, denominators: Floats, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Give studentised bootstrap intervals of ratios of sums over units.

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
