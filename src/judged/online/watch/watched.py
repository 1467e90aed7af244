"""One series against its baseline: quality apart from the mix, points that tell enough, and since when it is off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judged.online.statistics.allocation import critical_value, prior_size
from judged.online.statistics.control import FEWEST, baseline, cusum, delay, threshold
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, RelativeDifference
from judged.results import counted, listed
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.watch.config import DayPoint, Event, Meaning, WatchConfig
    from judged.results.types import Bools, Floats


Decision: TypeAlias = Literal["roll back", "keep", "keep watching", "nothing is known"]
Fate: TypeAlias = Literal["harmed", "fine", "open"]
_BEFORE = 28  # days before a deployment that it is held against, at most
_EXPECTED = 7  # points after which intervals are narrowest
_ALPHA = 0.05


@dataclass(frozen=True)
class Guard:
    """One series before and after a deployment: its relative change with an interval for any day, and what it costs.

    ``state``: whether it lost more than the margin (``harmed``), surely not (``fine``), or may have (``open``).
    ``a_day``: of what the series counts, how much is lost each day, where it may be harmed; else NaN.
    """

    series: str
    part: str
    relative: float
    ci: tuple[float, float]
    state: Fate
    a_day: float


@dataclass(frozen=True)
class Rollback:
    """What follows for a deployment."""

    event: Event
    decision: Decision
    guards: tuple[Guard, ...]
    margin: float

    def __str__(self) -> str:
        harmed = [name_of(one) for one in self.guards if one.state == "harmed"]
        waiting = [one for one in self.guards if one.state == "open"]
        said = f"{self.event.what} of {self.event.date}: {self.decision}"
        if harmed:
            return f"{said}. {listed(harmed)} got worse by more than {100 * self.margin:g} %."
        if self.decision == "nothing is known":
            return (
                f"{said}: no series with a direction has a baseline of {FEWEST} points, {FEWEST} points in the"
                f" {_BEFORE} days before the deployment, and a point after it."
            )
        if not waiting:
            return f"{said}. Nothing got worse by {100 * self.margin:g} %."
        costs = [f"{one.a_day:,.0f} a day of {name_of(one)}" for one in waiting if one.a_day >= 1]
        wait = f" To wait costs some {listed(costs)}, if what was seen goes on." if costs else ""
        named = listed(list(map(name_of, waiting)))
        return f"{said}. {named} may have lost more than {100 * self.margin:g} %.{wait}"


def rollbacks(found: Sequence[Watched], config: WatchConfig) -> Iterator[Rollback]:
    """Decide for each deployment by the series that have a better side; of the mix nobody is to blame."""
    deploys = sorted((event for event in config.event if event.deploy), key=lambda event: event.date)
    for at, event in enumerate(deploys):
        later = deploys[at + 1].date if at + 1 < len(deploys) else None
        guarded = [one for one in found if one.part != MIX and one.better and one.points]
        made = [_guard(one, event, later, config.margin_relative, _ALPHA / len(guarded)) for one in guarded]
        guards = tuple(one for one in made if one)
        if not guards:
            decision: Decision = "nothing is known"
        elif any(one.state == "harmed" for one in guards):
            decision = "roll back"
        else:
            decision = "keep" if all(one.state == "fine" for one in guards) else "keep watching"
        yield Rollback(event, decision, guards, config.margin_relative)


def _guard(one: Watched, event: Event, later: date | None, margin: float, alpha: float) -> Guard | None:
    """Compare what came after a deployment, up to the next one, with the weeks before, in each point's own noise."""
    known = [point for point in one.points if point.value == point.value and point.sigma > 0]
    day = event.date.toordinal()
    before = [point for point in known if day - _BEFORE <= point.start.toordinal() <= day - one.days]
    after = [point for point in known if point.start.toordinal() >= day and (later is None or point.start < later)]
    if insufficiency(len(before), "verdict", min_units=FEWEST) or not after:  # only points before estimate the variance
        return None
    excess = [np.array([point.value - point.expected for point in points]) for points in (before, after)]
    sigma = [np.array([point.sigma for point in points]) for points in (before, after)]
    weights = [1.0 / side**2 for side in sigma]
    means = [float((x * w).sum() / w.sum()) for x, w in zip(excess, weights, strict=True)]
    alike = math.sqrt((1.0 + one.alike) / (1.0 - one.alike))
    n, df = len(after), len(before) - 1
    # like one coefficient of n days whose standard error includes that of the days before
    errors = [alike / math.sqrt(float(side.sum())) for side in weights]
    critical = critical_value(n + df, df, prior_size(_EXPECTED + df, alpha), alpha)
    if not math.isfinite(critical):
        return None
    level = float((np.array([point.expected for point in before]) * weights[0]).sum() / weights[0].sum()) + means[0]
    made = AdjustedDifference(
        means[1] - means[0], math.hypot(*errors), 0.0, 0.0, level, errors[0], base_covariance=-(errors[0] ** 2)
    )
    relative = made.relative(critical)
    state = _state(made, relative, critical, one.better, margin)
    lost = -one.better * made.value * one.size / one.days
    a_day = lost if state != "fine" and lost > 0 else math.nan
    return Guard(one.series, one.part, relative.value, relative[1:], state, a_day)


def _state(made: AdjustedDifference, relative: RelativeDifference, critical: float, better: int, margin: float) -> Fate:
    """Return whether a series surely lost more than the margin, surely not, or may have.

    Without a relative difference, the loss is compared with the margin of the largest level that the data allow.
    """
    if relative is NO_RELATIVE:
        gain, half = better * made.value, critical * made.error
        largest = abs(made.base) + critical * made.base_error
        return "harmed" if gain + half < -margin * largest else "fine" if gain - half >= 0 else "open"
    low, high = (relative.low, relative.high) if better > 0 else (-relative.high, -relative.low)
    return "harmed" if high < -margin else "fine" if low > -margin else "open"


def name_of(one: Guard | Watched) -> str:
    """Name a series and its part; the mix is called by the series."""
    return one.series if one.part in {QUALITY, MIX} else f"{one.series} of {one.part}"


State: TypeAlias = Literal["fine", "alarm", "mix moved", "not watched"]
QUALITY, MIX = "", "mix"
_EVENTS = 10  # of a share and of its complement, or equal sums of money, that a point should have in the mean
_LENGTHS = (1, 7, 14, 28)  # days of a point
_SAME = 1e-9  # of the largest value: what varies less is rounding
_K = (0.25, 1.5)  # standard deviations that a CUSUM takes off, at least and at most


@dataclass(frozen=True, eq=False)
class Days:
    """A series by day, without gaps: NaN where nothing is known of a day, or it is left out."""

    first: date
    values: Floats
    errors: Floats
    sizes: Floats


@dataclass(frozen=True)
class Point:
    """One point of a series: a day, or as many as bring enough events."""

    start: date
    value: float  # NaN: nothing is known of it, or it is left out
    expected: float  # by the baseline, for its weekday
    sigma: float  # the standard deviation of such a point
    inside: bool  # whether the baseline is made of it
    alarm: bool


@dataclass(frozen=True)
class Watched:
    """What a watch says of a series.

    Parameters
    ----------
    series, part
        Which: all pages, with the baseline's mix where classes are known (`part` is empty); the mix alone; or a class.
    state
        Its state today.
    why
        Why it is not watched.
    points
        In order of time.
    since
        Since when it is off; None where there is no alarm.
    center, level
        Of the baseline, and of the points since then; without an alarm, of the last week.
    within
        Days within which four of five losses of the margin are detected, with as many days missing as so far.
    better, days
        Whether more is better (1), less (-1), or neither (0); how many days a point has.
    size
        What a point counts of, in the mean: pages, queries, topics.
    alike
        How much a point resembles the one before it.
    """

    series: str
    part: str
    state: State
    why: str = ""
    points: tuple[Point, ...] = ()
    since: date | None = None
    center: float = math.nan
    level: float = math.nan
    within: float = math.nan
    better: int = 0
    days: int = 1
    size: float = math.nan
    alike: float = math.nan


def days_of(points: Sequence[DayPoint], first: date, last: date, left_out: Bools) -> Days:
    """Lay out the points of a series, one a day."""
    values, errors, sizes = (np.full((last - first).days + 1, np.nan) for _ in range(3))
    for point in points:
        at = (date.fromisoformat(point.day) - first).days
        if 0 <= at < len(values) and not left_out[at]:
            values[at], errors[at], sizes[at] = point.value, point.error, point.denominator
    return Days(first, values, errors, sizes)


def parted(whole: Days, parts: dict[str, Days], base: Bools) -> tuple[Days, Days]:
    """Part a ratio in quality, its value with the baseline's mix of classes, and mix, what is left of it.

    A class that a day lacks has its value of the baseline there, without error; one that the baseline lacks is all mix.
    """
    parts = {name: one for name, one in parts.items() if np.nansum(one.sizes[base]) > 0}
    if not parts:
        return replace(whole, values=np.full_like(whole.values, np.nan)), whole
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.array([np.nansum(one.sizes[base]) for one in parts.values()])
        usual = np.array([np.nansum((one.values * one.sizes)[base]) for one in parts.values()]) / sizes
    shares = sizes / sizes.sum()
    values = np.stack(
        [np.where(np.isnan(one.values), mean, one.values) for one, mean in zip(parts.values(), usual, strict=True)]
    )
    errors = np.stack([np.nan_to_num(one.errors) for one in parts.values()])
    known = np.isfinite(whole.values)
    quality = np.where(known, shares @ values, np.nan)
    error = np.where(known, np.sqrt(shares**2 @ errors**2), np.nan)
    return replace(whole, values=quality, errors=error), replace(whole, values=whole.values - quality)


def watched(
    name: tuple[str, str], days: Days, meaning: Meaning, config: WatchConfig, rate: float, *, told: State = "alarm"
) -> Watched:
    """Watch one series: `rate` false alarms a day and side."""
    series, part = name
    length = _length(days, meaning)
    if not length:
        return Watched(series, part, "not watched", f"it has fewer than {_EVENTS} events in {_LENGTHS[-1]} days")
    days = _pooled(days, length)
    number = len(days.values)
    starts = [days.first.toordinal() + length * at for at in range(number)]
    ends = np.array(starts) + length - 1
    base = (np.array(starts) >= config.baseline_from.toordinal()) & (ends <= config.baseline_to.toordinal())
    weekdays = np.array(starts) % 7 if length == 1 else np.zeros(number, dtype=np.int64)
    made = baseline(days.values, days.errors, days.sizes, weekdays, base)
    inside = days.values[base & np.isfinite(days.values)]
    if len(inside) < FEWEST:
        why = f"the baseline has {len(inside)} of the {FEWEST} points of {counted(length, 'day')} that it takes"
        return Watched(series, part, "not watched", why)
    if np.ptp(inside) <= _SAME * np.abs(inside).max():
        return _constant(name, days, base, meaning, config)
    if math.isnan(made.center):
        return Watched(series, part, "not watched", "its baseline does not tell how much its points vary")
    usual = days.values - made.z * made.errors
    shift = config.margin_relative * abs(made.center) / float(np.nanmedian(made.errors[base]))
    k = round(min(max(shift / 2.0, _K[0]), _K[1]), 2)
    alike = round(made.alike, 2)
    level = threshold(made.days, alike, rate * length, k)
    since = np.full(number, -1)
    after = np.where(np.array(starts) > config.baseline_to.toordinal(), made.z, np.nan)
    for side in (meaning.better,) if meaning.better else (1, -1):
        since = np.maximum(since, cusum(side * after, k, level)[1])
    alarm = since[-1] >= 0
    seen = np.flatnonzero(np.isfinite(days.values))
    rows = slice(int(since[-1]) if alarm else int(seen[-max(7 // length, 1) :][0]), None)
    return Watched(
        series, part, told if alarm else "fine",
        points=tuple(
            Point(date.fromordinal(start), value, expected, sigma, bool(within), bool(off >= 0))
            for start, value, expected, sigma, within, off in zip(
                starts, days.values.tolist(), usual.tolist(), made.errors.tolist(), base, since, strict=True
            )
        ),
        since=date.fromordinal(starts[int(since[-1])]) if alarm else None,
        center=made.center,
        level=_mean(days, rows),
        within=delay(round(shift, 2), alike, k, level, missing=_missing(days.values)) * length,
        better=meaning.better,
        days=length,
        size=float(np.nanmean(days.sizes)),
        alike=alike,
    )  # fmt: skip


def _constant(name: tuple[str, str], days: Days, base: Bools, meaning: Meaning, config: WatchConfig) -> Watched:
    """Watch a series that never varied in its baseline: whatever is worse by more than the margin is a change."""
    center = float(days.values[base & np.isfinite(days.values)][0])
    with np.errstate(invalid="ignore"):
        gap = days.values - center
        bad = np.abs(gap) if not meaning.better else -meaning.better * gap
        off = bad > max(config.margin_relative * abs(center), 1e-12)
    off &= ~base
    known = np.flatnonzero(np.isfinite(days.values))
    alarm = bool(off[known[-1]])
    first = int(known[-1])
    while alarm and first in known and off[first]:
        first -= 1
    starts = [date.fromordinal(days.first.toordinal() + at) for at in range(len(days.values))]
    return Watched(
        *name, "alarm" if alarm else "fine",
        points=tuple(
            Point(start, float(value), center, 0.0, bool(inside), bool(one))
            for start, value, inside, one in zip(starts, days.values, base, off, strict=True)
        ),
        since=starts[first + 1] if alarm else None, center=center, level=float(days.values[known[-1]]), within=1.0,
        better=meaning.better, size=float(np.nanmean(days.sizes)), alike=0.0,
    )  # fmt: skip


def _missing(values: Floats) -> float:
    """Return the share of points without a value between the first and the last one, rounded up to 5%."""
    seen = np.flatnonzero(np.isfinite(values))
    span = int(seen[-1] - seen[0]) + 1
    return math.ceil(20.0 * (1.0 - len(seen) / span) - 1e-9) / 20.0


def _mean(days: Days, rows: slice) -> float:
    values, sizes = days.values[rows], np.where(np.isnan(days.values[rows]), 0.0, np.nan_to_num(days.sizes[rows]))
    return float(np.nansum(values * sizes) / sizes.sum()) if sizes.sum() > 0 else math.nan


def _length(days: Days, meaning: Meaning) -> int:
    """Return how many days make a point: 1, or for rare shares and money as many as bring enough events; 0: none do.

    Money counts as many events as equal sums would leave its error: of unequal ones more are needed.
    """
    if not (meaning.share or meaning.amount):
        return 1
    known = np.isfinite(days.values)
    values, errors, sizes = (part[known] for part in (days.values, days.errors, days.sizes))
    if meaning.share:
        each = float((np.minimum(values, 1.0 - values) * sizes).mean())
    else:
        squares = float((errors * sizes) @ (errors * sizes))
        each = float(values @ sizes) ** 2 / squares / len(values) if squares > 0 else math.inf
    return next((length for length in _LENGTHS if each * length >= _EVENTS), 0)


def _pooled(days: Days, length: int) -> Days:
    """Put so many days together, from the first on; what is left over waits for more."""
    if length == 1:
        return days
    number = len(days.values) // length
    values, errors, sizes = (
        one[: number * length].reshape(number, length) for one in (days.values, days.errors, days.sizes)
    )
    weights = np.where(np.isnan(values), 0.0, np.nan_to_num(sizes))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        value = np.nansum(values * weights, axis=1) / total
        error = np.sqrt(np.nansum((errors * weights) ** 2, axis=1)) / total
    return Days(days.first, value, error, np.where(total > 0, total, np.nan))
