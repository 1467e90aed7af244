"""Control limits for a series of estimates: which points differ by more than the series always did.

An error says how far a point would stray if only its own sample made it stray. Days differ more than that. Laney's
correction measures by how much, on the points themselves: limits stand three times ``error * sigma_z`` from the center
(Laney, Quality Engineering 2002). Three departures from his chart hold its rate where days are few, rare or alike:

- sigma_z is what *any* two points, divided by their errors, differ by (Gini's mean difference), not neighbors alone:
  days that resemble the day before would make that too small. Runs must be longer for the same reason.
- Where values have bounds, limits follow the skewness that a count has near them (Cornish and Fisher).
- Points that limits are not made of are held against those of a prediction, with Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Rule: TypeAlias = Literal["nelson-1", "nelson-2"]
Side: TypeAlias = Literal["above", "below"]

FEWEST = 8
"""So many points are needed for limits."""

RUN = 9
"""So many points in a row on one side of the center are a signal, or as many as have its chance, 2 / 2**9."""

_SIGMAS = 3.0
_WITHIN = 0.9986501019683699  # chance of a normal value below 3
_OF_TWO = 2.0 / math.sqrt(math.pi)  # mean absolute difference of two independent normal values, sigma 1
_SKEWEST = 1.5  # of more, about 0.4 events a day, Cornish and Fisher's lower limit would rise above none
_WEEKS = 4  # of days, from which on those of one weekday have a center of their own


@dataclass(frozen=True)
class Signal:
    """A point at which a rule of Nelson (Journal of Quality Technology 1984) speaks."""

    # `nelson-1`: a point outside the limits. `nelson-2`: nine points in a row, or more, on one side of the center; told
    # once a run, at its last point that it takes.
    rule: Rule
    point: int  # its index
    first: int  # index of the first point of the run; `point` itself for `nelson-1`
    side: Side  # `above` or `below`


@dataclass(frozen=True, eq=False)
class Control:
    """Limits of a series."""

    center: float  # weighted mean of the base; NaN where there are too few points
    sigma_z: float  # how much more points differ than their errors say: 1 if nothing but their own samples moves them
    # low, high: (n,) limits of each point; NaN where there are none
    low: Floats
    high: Floats
    errors: Floats  # (n,) the errors that the limits are made of
    base: int  # how many points center and limits come from
    run: int  # how many points in a row on one side are a signal: 9, or more where points resemble the one before
    signals: tuple[Signal, ...]  # in order of points


def control_limits(
    values: Floats,  # values, errors: (n,) estimates in order of time, with their standard errors. NaN: no point.
    errors: Floats,
    *,
    weights: Floats | None = None,
    base: Bools | None = None,  # (n,) which points center and limits come from; None: all
    bounds: tuple[float, float] = (-math.inf, math.inf),  # of values, (0, 1) for shares: limits are cut there
    usual: Floats | None = None,  # (n,) by how much points lie above the center as a rule: `weekly`; None: not at all
) -> Control:
    """Give the individuals chart of a series with Laney's correction, and its signals.

    >>> values = np.array([0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.29, 0.31, 0.30, 0.20])
    >>> found = control_limits(values, np.full(10, 0.01), base=np.arange(10) < 9)
    >>> round(found.center, 4), round(float(found.low[0]), 4), found.signals
    (0.3022, 0.2727, (Signal(rule='nelson-1', point=9, first=9, side='below'),))
    """
    # `weights`: (n,) sizes of the samples. Given, a point's error is taken from all points: the pooled one for its
    # size, as in the p chart. A day without a click then has an error, which its own sample does not have. None: the
    # errors as they are, the center weighted by `1 / errors**2`, and points without error left out. Returns without
    # limits and signals if the base has fewer than `FEWEST` points or does not vary.
    errors = errors if weights is None else pooled_errors(errors, weights, base)
    usable = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    chosen = usable if base is None else usable & base
    nothing = np.full(len(values), np.nan)
    none = Control(math.nan, math.nan, nothing, nothing, errors, int(chosen.sum()), RUN, ())
    if none.base < FEWEST:
        return none
    level = values if usual is None else values - usual
    counts = (1.0 / errors[chosen] ** 2) if weights is None else weights[chosen]
    center = float((level[chosen] * counts).sum() / counts.sum())
    z = (level[chosen] - center) / errors[chosen]
    sigma_z = _mean_difference(z) / _OF_TWO
    if sigma_z == 0:
        return none
    centers = center + (values - level)
    predicted = student_quantile(_WITHIN, none.base - 1) * math.sqrt(1.0 + 1.0 / none.base)
    sigmas = np.where(chosen, _SIGMAS, predicted)
    low, high = _limits(centers, np.where(usable, sigma_z * errors, np.nan), sigmas, bounds)
    run = _longest_by_chance(z)
    return Control(center, sigma_z, low, high, errors, none.base, run, _signals(values, centers, (low, high), run))


def _limits(centers: Floats, spread: Floats, sigmas: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Give limits so many sigmas from the centers, moved for the skewness of a count with this center and spread."""
    below, above = (np.maximum(room, spread / _SKEWEST) for room in (centers - bounds[0], bounds[1] - centers))
    moved = centers + spread * (spread / below - spread / above) * (_SIGMAS**2 - 1.0) / 6.0
    low, high = moved - sigmas * spread, moved + sigmas * spread
    return np.clip(low, *bounds), np.clip(high, *bounds)


def _mean_difference(z: Floats) -> float:
    """Give the mean absolute difference of any two values."""
    n = len(z)
    return float((2.0 * np.arange(n) - n + 1.0) @ np.sort(z)) * 2.0 / (n * (n - 1))


def _longest_by_chance(z: Floats) -> int:
    """Give how many points in a row on one side are as rare as nine where points do not resemble the one before."""
    alike = float(np.clip((z[1:] * z[:-1]).sum() / (z * z).sum(), 0.0, 0.95))
    same_side = 0.5 + math.asin(alike) / math.pi
    return math.ceil(1 + (RUN - 1) * math.log(0.5) / math.log(same_side) - 1e-9)


def weekly(values: Floats, weights: Floats, weekdays: Ints) -> Floats:
    """Give by how much the days of each weekday lie above the mean of all, as far as chance does not explain it.

    >>> days = np.arange(28) % 7
    >>> weekly(np.where(days < 5, 0.3, 0.2) + 0.001 * (np.arange(28) // 14), np.ones(28), days)[:7].round(3).tolist()
    [0.029, 0.029, 0.029, 0.029, 0.029, -0.071, -0.071]
    """
    # Means of weekdays, drawn together by the factor `1 - 1 / F`, F being that of an analysis of variance: without a
    # pattern hardly anything is left of them. `weekdays`: (n,) from 0 to 6. Returns 0 where a weekday has fewer than
    # `_WEEKS` days with a value.
    known = np.isfinite(values) & (weights > 0)
    x, w, day = values[known], weights[known], weekdays[known]
    if np.bincount(day, minlength=7).min() < _WEEKS:
        return np.zeros(len(values))
    sums = np.bincount(day, w, minlength=7)
    means, center = np.bincount(day, w * x, minlength=7) / sums, float((w * x).sum() / w.sum())
    between, within = float((sums * (means - center) ** 2).sum()) / 6.0, float((w * (x - means[day]) ** 2).sum())
    shrunk = max(0.0, 1.0 - within / (len(x) - 7) / between) if between > 0 else 0.0
    return (shrunk * (means - center))[weekdays]


def pooled_errors(errors: Floats, weights: Floats, base: Bools | None = None) -> Floats:
    """Give each point the error that the points have together for a sample of its size.

    >>> pooled_errors(np.array([0.1, 0.1, 0.0]), np.array([100.0, 100.0, 25.0])).round(4).tolist()
    [0.0816, 0.0816, 0.1633]
    """
    # `sqrt(mean(w * error**2) / w)` over the points of the base that have an error; NaN for points without weight.
    known = np.isfinite(errors) & (weights > 0) & (True if base is None else base)
    if not known.any():
        return np.full(len(errors), np.nan)
    pooled = float((weights[known] * errors[known] ** 2).mean())
    return np.sqrt(pooled / np.where(weights > 0, weights, np.nan))


def _signals(values: Floats, centers: Floats, limits: tuple[Floats, Floats], length: int) -> tuple[Signal, ...]:
    """Apply both rules; a point that is missing neither ends a run nor counts in it."""
    signals: list[Signal] = []
    run: list[int] = []
    last = 0
    for at, (value, center, low, high) in enumerate(zip(values, centers, *limits, strict=True)):
        if math.isnan(low):
            continue
        side = int(value > center) - int(value < center)
        run = [*run, at] if side == last and side != 0 else [at]
        last = side
        name: Side = "above" if side > 0 else "below"
        if not low <= value <= high:
            signals.append(Signal("nelson-1", at, at, name))
        if len(run) == length:
            signals.append(Signal("nelson-2", at, run[0], name))
    return tuple(signals)


_PATHS, _YEAR, _BEFORE = 1000, 365, 20
_WEEKDAYS_FROM = 28  # days of a baseline, from which weekdays have centers of their own
_MOST_ALIKE = 0.8
_KEPT = 0.8  # of the declared rate: the rest is for what days do that the simulation does not


@dataclass(frozen=True, eq=False)
class Baseline:
    """What the points of a frozen baseline say: `center`, and `z`, by which all points lie above it in their own noise.

    ``errors``: (n,) what one standard deviation of each point is, in the metric's unit. ``alike``: how much a point
    resembles the one before, with an allowance for not knowing it. ``days``: points of the baseline. All NaN where they
    are too few, or do not vary.
    """

    center: float
    z: Floats
    errors: Floats
    alike: float
    days: int


def baseline(values: Floats, errors: Floats, sizes: Floats, weekdays: Ints, base: Bools) -> Baseline:
    """Standardize points of a series by those of its baseline: weekdays, noise beyond that of the sample (Laney).

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
    if math.isnan(made.center):
        nothing = np.full(len(values), np.nan)
        return Baseline(math.nan, nothing, nothing, math.nan, made.base)
    spread = made.sigma_z * made.errors * _left(inside, sizes, usual)
    z = (values - usual - made.center) / spread
    inner = z[base & np.isfinite(z)]
    alike = float((inner[1:] * inner[:-1]).sum() / (inner * inner).sum())
    allowed = min(max(alike + 1.0 / math.sqrt(len(inner)), 0.0), _MOST_ALIKE)
    return Baseline(made.center, z, spread, allowed, made.base)


def _left(values: Floats, sizes: Floats, usual: Floats) -> float:
    """Say by how much noise is larger than what centers of weekdays left of it, as they took some away."""
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
    centers = np.stack([inside[day::weekdays].mean(axis=0) for day in range(weekdays)])
    free = noise[: days + _YEAR] - centers[np.arange(days + _YEAR) % weekdays]
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
