"""A CUSUM whose false alarms are declared: its threshold is simulated for a baseline of so many days and their noise.

A CUSUM (Page, Biometrika 1954) adds up by how much more than `k` standard deviations each point lies on the bad side,
and begins anew when the sum falls below 0. Published thresholds take the centre and the spread for known and the points
for independent. Here the baseline is some weeks, days resemble the day before, and what is off in the baseline stays
off: so the threshold is the one at which simulated years, each with a baseline of its own, have the declared number of
alarms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.control import control_limits, weekly

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints

_PATHS, _YEAR, _BEFORE = 1000, 365, 20
_WEEKDAYS_FROM = 28  # days of a baseline, from which weekdays have centres of their own
_MOST_ALIKE = 0.8
_KEPT = 0.8  # of the declared rate: the rest is for what days do that the simulation does not


@dataclass(frozen=True, eq=False)
class Baseline:
    """What the points of a frozen baseline say: `centre`, and `z`, by which all points lie above it in their own noise.

    ``errors``: (n,) what one standard deviation of each point is, in the metric's unit. ``alike``: how much a point
    resembles the one before, with an allowance for not knowing it. ``days``: points of the baseline. All NaN where they
    are too few, or do not vary.
    """

    centre: float
    z: Floats
    errors: Floats
    alike: float
    days: int


def baseline(values: Floats, errors: Floats, sizes: Floats, weekdays: Ints, base: Bools) -> Baseline:
    """Standardise points of a series by those of its baseline: weekdays, noise beyond that of the sample (Laney).

    Parameters
    ----------
    values, errors, sizes
        (n,): of each day; NaN where there is nothing.
    weekdays
        (n,): 0 to 6.
    base
        (n,): which days the baseline is.
    """
    inside = np.where(base, values, np.nan)
    usual = weekly(inside, sizes, weekdays)
    made = control_limits(values, errors, weights=sizes, base=base, usual=usual)
    if math.isnan(made.centre):
        nothing = np.full(len(values), np.nan)
        return Baseline(math.nan, nothing, nothing, math.nan, made.base)
    spread = made.sigma_z * made.errors * _left(inside, sizes, usual)
    z = (values - usual - made.centre) / spread
    inner = z[base & np.isfinite(z)]
    alike = float((inner[1:] * inner[:-1]).sum() / (inner * inner).sum())
    allowed = min(max(alike + 1.0 / math.sqrt(len(inner)), 0.0), _MOST_ALIKE)
    return Baseline(made.centre, z, spread, allowed, made.base)


def _left(values: Floats, sizes: Floats, usual: Floats) -> float:
    """Say by how much noise is larger than what centres of weekdays left of it, as they took some away."""
    known = np.isfinite(values) & (sizes > 0)
    x, w, u, n = values[known], sizes[known], usual[known], int(known.sum())
    if not u.any():
        return 1.0
    drawn = float((w * u * u).sum() / (w * u * x).sum())  # together, by `weekly`, whose sum of w * u is 0
    return math.sqrt((n - 1.0) / (n - 1.0 - 6.0 * drawn * (2.0 - drawn)))


def cusum(z: Floats, k: float, threshold: float) -> tuple[Floats, Ints]:
    """Add up how far points lie below 0, and say of each since which one there is an alarm: -1 where there is none.

    An alarm ends when the sum is back at 0; the sum stops at twice the threshold, so that it gets there.

    >>> sums, since = cusum(np.array([0.0, -2.0, -3.0, 0.0, 9.0]), 0.5, 3.0)
    >>> sums.tolist(), since.tolist()
    ([0.0, 1.5, 4.0, 3.5, 0.0], [-1, -1, 1, 1, -1])
    """
    sums, since = np.zeros(len(z)), np.zeros(len(z), dtype=np.int64)
    total, first, alarm = 0.0, 0, False
    for at, value in enumerate(z.tolist()):
        if total == 0.0:
            first = at
        if not math.isnan(value):
            total = min(max(total - value - k, 0.0), 2.0 * threshold)
        alarm = total > 0.0 and (alarm or total > threshold)
        sums[at], since[at] = total, first if alarm else -1
    return sums, since


@cache
def threshold(days: int, alike: float, rate: float, k: float, seed: int = 0) -> float:
    """Give the threshold at which a year without any change has at most so many false alarms.

    Parameters
    ----------
    days
        Of the baseline.
    alike
        The correlation of a day's noise with that of the day before.
    rate
        False alarms a day.
    k
        As for `cusum`.
    seed
        Of the simulation.

    Examples
    --------
    A longer baseline allows a lower one:

    >>> threshold(28, 0.0, 0.001, 0.5) > threshold(90, 0.0, 0.001, 0.5) > 5
    True
    """
    rng = np.random.default_rng(seed)
    noise = _noise(rng, days + _YEAR, alike)
    weekdays = 7 if days >= _WEEKDAYS_FROM else 1
    inside = noise[:days]
    centres = np.stack([inside[day::weekdays].mean(axis=0) for day in range(weekdays)])
    free = noise[: days + _YEAR] - centres[np.arange(days + _YEAR) % weekdays]
    spread = np.sqrt((free[:days] ** 2).sum(axis=0) / (days - weekdays))
    after = free[days:] / spread
    low, high = 0.5, 200.0
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _alarms(after, k, middle) > _KEPT * rate * _YEAR else (low, middle)
    return high


@cache
def delay(
    shift: float, alike: float, k: float, level: float, share: float = 0.8, seed: int = 1, missing: float = 0.0
) -> float:
    """Return within how many days a share of the drops of a size is detected; infinite if it takes over a year.

    Parameters
    ----------
    shift
        How far the level fell, in standard deviations of a day.
    alike, k
        As for `threshold`.
    level
        The threshold.
    share
        Share of the drops that are to be detected.
    seed
        Of the simulation.
    missing
        Share of days without a value: they neither add to the sum nor end it.
    """
    rng = np.random.default_rng(seed)
    moved = _noise(rng, _YEAR, alike) - shift
    seen = rng.random((_YEAR, _PATHS)) >= missing
    total, found = np.zeros(_PATHS), np.full(_PATHS, math.inf)
    for day in range(_YEAR):
        total = np.where(seen[day], np.maximum(total - moved[day] - k, 0.0), total)
        found = np.where(np.isinf(found) & (total > level), day + 1.0, found)
    return float(np.sort(found)[math.ceil(share * _PATHS) - 1])


def _noise(rng: np.random.Generator, days: int, alike: float) -> Floats:
    """Draw (days, paths) of noise with variance 1 that resembles that of the day before."""
    drawn = rng.standard_normal((_BEFORE + days, _PATHS))
    new = math.sqrt(1.0 - alike * alike)
    for day in range(1, len(drawn)):
        drawn[day] = alike * drawn[day - 1] + new * drawn[day]
    return drawn[_BEFORE:]


def _alarms(z: Floats, k: float, level: float) -> float:
    """Count alarms a year, over simulated years, as `cusum` makes them."""
    total, alarm, begun = np.zeros(z.shape[1]), np.zeros(z.shape[1], dtype=bool), 0
    for values in z:
        total = np.minimum(np.maximum(total - values - k, 0.0), 2.0 * level)
        now = (total > 0.0) & (alarm | (total > level))
        begun += int((now & ~alarm).sum())
        alarm = now
    return begun / z.shape[1]
