"""One series against its baseline: quality and mix effects, pooling of days, alarms, and rollback of deployments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy as np

from judged.online.statistics.allocation import critical_value, prior_size
from judged.online.statistics.control import MIN_POINTS, cusum, delay, fit_baseline, threshold
from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, RelativeDifference
from judged.results import Headline, Show, counted, listed
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.online.watch.config import DayPoint, Event, SeriesKind, WatchConfig
    from judged.results.headline import Status
    from judged.results.types import Bools, Floats


Decision: TypeAlias = Literal["roll back", "keep", "keep watching", "no data"]
RELATIVE_CHANGE = Show(lambda share: f"{100 * share:+.1f}%", "float64")
"""Format of a change as a share of the baseline."""
GUARD_STATUSES: dict[str, Status] = {"harmed": "worse", "ok": "same", "inconclusive": "unknown"}
"""Status of each state of a guard."""
GuardState: TypeAlias = Literal["harmed", "ok", "inconclusive"]
_BEFORE = 28  # largest number of days before a deployment that it is compared with
_EXPECTED = 7  # number of points after a deployment for which always-valid intervals are narrowest
_ALPHA = 0.05


@dataclass(frozen=True)
class Guard:
    """One series before and after a deployment: its relative change with an always-valid interval, and its daily loss.

    ``state``: whether the loss surely exceeds the margin (``harmed``), surely does not (``ok``), or may
    (``inconclusive``).
    ``loss_per_day``: loss per day in the unit that the series counts, if it may be harmed; else NaN.
    """

    series: str
    part: str
    relative: float
    ci: tuple[float, float]
    state: GuardState
    loss_per_day: float


@dataclass(frozen=True)
class Rollback:
    """Decision on rolling back a deployment."""

    event: Event
    decision: Decision
    guards: tuple[Guard, ...]
    margin: float
    since: date | None = None  # first day of the uninterrupted period until now with the decision to roll back

    @property
    def headline(self) -> Headline:
        """Decision, with the largest relative change among the harmed series, or among all series."""
        label, value, ci = "", None, None
        harmed = [guard for guard in self.guards if guard.state == "harmed"]
        if guards := harmed or self.guards:
            guard = max(guards, key=lambda row: 0.0 if math.isnan(row.relative) else abs(row.relative))
            has_interval = all(map(math.isfinite, guard.ci))
            label, value, ci = (
                f"change of {display_name(guard)} since the deployment",
                guard.relative,
                guard.ci if has_interval else None,
            )
        margin = f"{100 * self.margin:g}%"
        status, reason = {
            "roll back": ("worse", f"{counted(len(harmed), 'series', 'series')} got worse by more than {margin}"),
            "keep": ("better", f"no series got worse by {margin} or more"),
            "keep watching": ("unknown", f"a loss of more than {margin} is not excluded yet"),
            "no data": ("unknown", f"a decision requires {MIN_POINTS} points before the deployment"),
        }[self.decision]
        sentence = f"Deployment on {self.event.date}: {reason}."
        return Headline(
            cast("Status", status),
            self.decision,
            sentence,
            label,
            value,
            RELATIVE_CHANGE,
            ci,
            1.0 - _ALPHA,
            reference=0.0,
        )

    @property
    def reason(self) -> str:
        """Reason of the decision."""
        harmed = [display_name(guard) for guard in self.guards if guard.state == "harmed"]
        undecided = [guard for guard in self.guards if guard.state == "inconclusive"]
        if harmed:
            return f"{listed(harmed)} got worse by more than {100 * self.margin:g}%."
        if self.decision == "no data":
            before = (
                f"{MIN_POINTS} points in the {_BEFORE} days before the deployment, and a point after the deployment"
            )
            return f"No series with a preferred direction has a baseline of {MIN_POINTS} points, {before}."
        if not undecided:
            return f"For all series, the confidence interval excludes a loss of {100 * self.margin:g}% or more."
        costs = [
            f"{guard.loss_per_day:,.0f} of {display_name(guard)}" for guard in undecided if guard.loss_per_day >= 1
        ]
        cost_text = f" Estimated loss per day: {listed(costs)}." if costs else ""
        names = listed(list(map(display_name, undecided)))
        return f"{names} may be worse by more than {100 * self.margin:g}%.{cost_text}"

    def __str__(self) -> str:
        since = f" since {self.since}" if self.since else ""
        return f"Deployment {self.event.description} on {self.event.date}: {self.decision}{since}. {self.reason}"


def rollbacks(series: Sequence[WatchedSeries], config: WatchConfig) -> Iterator[Rollback]:
    """Yield the decision on each deployment, by the series with a direction, except the mix, which it cannot cause."""
    deployments = sorted((event for event in config.event if event.deploy), key=lambda event: event.date)
    for i, event in enumerate(deployments):
        # A deployment is judged by the points up to the next one.
        next_date = deployments[i + 1].date if i + 1 < len(deployments) else None
        directed = [row for row in series if row.part != MIX and row.better and row.points]
        alpha = _ALPHA / max(len(directed), 1)  # Bonferroni over the series of a deployment
        candidates = [_guard(row, event, next_date, config.margin_relative, alpha) for row in directed]
        guards = tuple(guard for guard in candidates if guard)
        states = {guard.state for guard in guards}
        if not guards:
            decision: Decision = "no data"
        elif "harmed" in states:
            decision = "roll back"
        else:
            decision = "keep" if states == {"ok"} else "keep watching"
        since = min(
            (_harmed_since(row, event, next_date, config.margin_relative, alpha) for row, guard in
             zip(directed, candidates, strict=True) if guard and guard.state == "harmed"), default=None,
        )  # fmt: skip
        yield Rollback(event, decision, guards, config.margin_relative, since)


def _harmed_since(series: WatchedSeries, event: Event, next_date: date | None, margin: float, alpha: float) -> date:
    """Return the first day of the uninterrupted period, up to the last day, in which a series is seen as harmed."""
    ends = [date.fromordinal(point.start.toordinal() + series.days - 1) for point in series.points]
    since = ends[-1]
    for count, day in reversed(list(enumerate(ends, 1))):
        guard = _guard(replace(series, points=series.points[:count]), event, next_date, margin, alpha)
        if guard is None or guard.state != "harmed":
            break
        since = day
    return since


def _guard(series: WatchedSeries, event: Event, next_date: date | None, margin: float, alpha: float) -> Guard | None:
    """Compare the points from a deployment to the next one with those of the weeks before; None: too few points."""
    points = [point for point in series.points if point.value == point.value and point.sigma > 0]
    day = event.date.toordinal()
    before = [point for point in points if day - _BEFORE <= point.start.toordinal() <= day - series.days]
    since = [point for point in points if point.start.toordinal() >= day]
    after = [point for point in since if next_date is None or point.start < next_date]
    # Only the points before the deployment estimate the variance, so their number is checked.
    if insufficiency(len(before), "verdict", min_units=MIN_POINTS) or not after:
        return None
    deviations = [np.array([point.value - point.expected for point in side]) for side in (before, after)]
    weights = [1.0 / np.array([point.sigma for point in side]) ** 2 for side in (before, after)]
    means = [float((x * w).sum() / w.sum()) for x, w in zip(deviations, weights, strict=True)]
    # Standard deviation of the mean of a long AR(1) process with autocorrelation rho, relative to independent points.
    inflation = math.sqrt((1.0 + series.autocorrelation) / (1.0 - series.autocorrelation))
    n, df = len(after), len(before) - 1
    errors = [inflation / math.sqrt(float(side.sum())) for side in weights]
    critical = critical_value(n + df, df, prior_size(_EXPECTED + df, alpha), alpha)
    if not math.isfinite(critical):
        return None
    level = float(np.average([point.expected for point in before], weights=weights[0])) + means[0]
    value, error, covariance = means[1] - means[0], math.hypot(*errors), -(errors[0] ** 2)
    difference = AdjustedDifference(value, error, 0.0, 0.0, level, errors[0], covariance)
    relative = difference.relative(critical)
    state = _state(difference, relative, critical, series.better, margin)
    loss_per_day = -series.better * difference.value * series.size / series.days
    loss_per_day = loss_per_day if state != "ok" and loss_per_day > 0 else math.nan
    return Guard(series.series, series.part, relative.value, relative[1:], state, loss_per_day)


def _state(
    difference: AdjustedDifference, relative: RelativeDifference, critical: float, better: int, margin: float
) -> GuardState:
    """Return whether the loss of a series exceeds the margin: surely, surely not, or undecided.

    Without a relative difference, the loss is compared with the margin of the largest baseline level the data allow.
    """
    if relative is NO_RELATIVE:
        benefit, half_width = better * difference.value, critical * difference.error
        limit = margin * (abs(difference.base) + critical * difference.base_error)
        return "harmed" if benefit + half_width < -limit else "ok" if benefit - half_width >= 0 else "inconclusive"
    low, high = (relative.low, relative.high) if better > 0 else (-relative.high, -relative.low)
    return "harmed" if high < -margin else "ok" if low > -margin else "inconclusive"


def display_name(row: Guard | WatchedSeries) -> str:
    """Return the name of a series with its part; the mix has the name of the series."""
    return row.series if row.part in {QUALITY, MIX} else f"{row.series} of {row.part}"


State: TypeAlias = Literal["ok", "alarm", "mix changed", "not monitored"]
QUALITY, MIX = "", "mix"
# Mean number of events per point, and of non-events for a share, or of equal amounts of money: with fewer, points are
# too skewed for the normal approximation of the CUSUM.
_EVENTS = 10
_LENGTHS = (1, 7, 14, 28)  # days per point
_ROUNDING = 1e-9  # largest range, relative to the largest value, that is due to rounding
_K = (0.25, 1.5)  # smallest and largest reference value k of the CUSUM, in standard deviations


@dataclass(frozen=True, eq=False)
class DailySeries:
    """Series by day, without gaps; NaN for days without data and excluded days."""

    first: date
    values: Floats
    errors: Floats
    sizes: Floats


@dataclass(frozen=True)
class WatchedPoint:
    """One point of a series: a day, or several days that together have enough events."""

    start: date
    value: float  # NaN: no data, or excluded
    expected: float  # value of the baseline on this weekday
    sigma: float  # standard deviation of the point, if nothing changed
    inside: bool  # whether it belongs to the baseline
    alarm: bool


@dataclass(frozen=True)
class WatchedSeries:
    """State of a watched series.

    Parameters
    ----------
    series, part
        Name of the series; "" for all pages (with the baseline's mix, if there are slices), ``mix``, or a slice.
    state
        Its state today.
    reason
        Why it is not watched.
    points
        In order of time.
    since
        Start of the alarm; None: no alarm.
    center, level
        Mean of the baseline, and of the points since the alarm; without an alarm, of the last week.
    detection_days
        Days within which 80% of losses of the size of the margin are detected, with the current share of missing
        days.
    better, days
        Direction: more is better (1), less (-1), or neither (0); days per point.
    size
        Mean denominator of a point: pages, queries, topics.
    autocorrelation
        Lag-1 autocorrelation of the points.
    """

    series: str
    part: str
    state: State
    reason: str = ""
    points: tuple[WatchedPoint, ...] = ()
    since: date | None = None
    center: float = math.nan
    level: float = math.nan
    detection_days: float = math.nan
    better: int = 0
    days: int = 1
    size: float = math.nan
    autocorrelation: float = math.nan


def arrange_by_day(points: Sequence[DayPoint], first: date, last: date, excluded: Bools) -> DailySeries:
    """Arrange the points of a series by day."""
    values, errors, sizes = (np.full((last - first).days + 1, np.nan) for _ in range(3))
    for point in points:
        i = (date.fromisoformat(point.day) - first).days
        if 0 <= i < len(values) and not excluded[i]:
            values[i], errors[i], sizes[i] = point.value, point.error, point.denominator
    return DailySeries(first, values, errors, sizes)


def split_quality_and_mix(
    overall: DailySeries, slices: dict[str, DailySeries], in_baseline: Bools
) -> tuple[DailySeries, DailySeries]:
    """Split a ratio into quality, its value with the baseline's mix of slices, and mix, the remainder.

    A slice without data on a day has its baseline value there, with an error of 0. A slice without data in the baseline
    counts as mix.
    """
    slices = {name: series for name, series in slices.items() if np.nansum(series.sizes[in_baseline]) > 0}
    if not slices:
        return replace(overall, values=np.full_like(overall.values, np.nan)), overall
    sizes = np.array([np.nansum(series.sizes[in_baseline]) for series in slices.values()])
    sums = np.array([np.nansum((series.values * series.sizes)[in_baseline]) for series in slices.values()])
    shares, baseline_values = sizes / sizes.sum(), (sums / sizes)[:, None]
    values = np.stack([series.values for series in slices.values()])
    values = np.where(np.isnan(values), baseline_values, values)
    errors = np.stack([np.nan_to_num(series.errors) for series in slices.values()])
    has_value = np.isfinite(overall.values)
    quality = np.where(has_value, shares @ values, np.nan)
    error = np.where(has_value, np.sqrt(shares**2 @ errors**2), np.nan)
    return replace(overall, values=quality, errors=error), replace(overall, values=overall.values - quality)


def watch_series(
    name: tuple[str, str], days: DailySeries, kind: SeriesKind, config: WatchConfig, rate: float, *,
    alarm_state: State = "alarm",
) -> WatchedSeries:  # fmt: skip
    """Watch one series; `rate`: false alarms per day and side."""
    series, part = name
    length = _days_per_point(days, kind)
    if not length:
        reason = f"the series has fewer than {_EVENTS} events per {_LENGTHS[-1]} days"
        return WatchedSeries(series, part, "not monitored", reason)
    days = _pool_days(days, length)
    starts = np.array([days.first.toordinal() + length * i for i in range(len(days.values))])
    in_baseline = (starts >= config.baseline_from.toordinal()) & (starts + length - 1 <= config.baseline_to.toordinal())
    weekdays = starts % 7 if length == 1 else np.zeros(len(starts), dtype=np.int64)
    baseline = fit_baseline(days.values, days.errors, days.sizes, weekdays, in_baseline)
    values = days.values[in_baseline & np.isfinite(days.values)]
    if len(values) < MIN_POINTS:
        points = f"at least {MIN_POINTS} points (one point per {counted(length, 'day')})"
        return WatchedSeries(series, part, "not monitored", f"the baseline must have {points}, got {len(values)}")
    if np.ptp(values) <= _ROUNDING * np.abs(values).max():
        return _watch_constant(name, days, in_baseline, kind, config)
    if math.isnan(baseline.center):
        return WatchedSeries(series, part, "not monitored", "the variance of the baseline cannot be estimated")
    expected = days.values - baseline.z * baseline.errors
    # Shift to detect, in standard deviations of a point; the reference value k of a CUSUM is half of it.
    shift = config.margin_relative * abs(baseline.center) / float(np.nanmedian(baseline.errors[in_baseline]))
    # Rounded, so that the simulated thresholds and delays are cached.
    k, autocorrelation = round(min(max(shift / 2.0, _K[0]), _K[1]), 2), round(baseline.autocorrelation, 2)
    level = threshold(baseline.days, autocorrelation, rate * length, k)
    # Points of the baseline give no alarm.
    z = np.where(starts > config.baseline_to.toordinal(), baseline.z, np.nan)
    since = np.full(len(starts), -1)
    for side in (kind.better,) if kind.better else (1, -1):
        since = np.maximum(since, cusum(side * z, k, level)[1])
    alarm = since[-1] >= 0
    valid = np.flatnonzero(np.isfinite(days.values))
    # Points since the alarm, or those of the last seven days with data.
    current = slice(int(since[-1]) if alarm else int(valid[-max(7 // length, 1) :][0]), None)
    dates = [date.fromordinal(start) for start in starts.tolist()]
    columns = dates, days.values.tolist(), expected.tolist(), baseline.errors.tolist(), in_baseline.tolist()
    return WatchedSeries(
        series, part, alarm_state if alarm else "ok",
        points=tuple(map(WatchedPoint, *columns, (since >= 0).tolist())),
        since=dates[int(since[-1])] if alarm else None,
        center=baseline.center,
        level=_weighted_mean(days, current),
        detection_days=delay(round(shift, 2), autocorrelation, k, level, missing=_missing_share(days.values)) * length,
        better=kind.better, days=length, size=float(np.nanmean(days.sizes)), autocorrelation=autocorrelation,
    )  # fmt: skip


def _watch_constant(
    name: tuple[str, str], days: DailySeries, in_baseline: Bools, kind: SeriesKind, config: WatchConfig
) -> WatchedSeries:
    """Watch a series without variance in its baseline: any worsening beyond the margin is an alarm."""
    center = float(days.values[in_baseline & np.isfinite(days.values)][0])
    with np.errstate(invalid="ignore"):
        deviation = days.values - center
        worsening = -kind.better * deviation if kind.better else np.abs(deviation)
        is_worse = worsening > max(config.margin_relative * abs(center), 1e-12)
    is_worse &= ~in_baseline
    last = int(np.flatnonzero(np.isfinite(days.values))[-1])
    alarm, start = bool(is_worse[last]), last
    while alarm and is_worse[start - 1]:  # a day without data ends the alarm, like one without a loss
        start -= 1
    dates = [date.fromordinal(days.first.toordinal() + i) for i in range(len(days.values))]
    columns = zip(dates, days.values.tolist(), in_baseline.tolist(), is_worse.tolist(), strict=True)
    return WatchedSeries(
        *name, "alarm" if alarm else "ok",
        points=tuple(WatchedPoint(day, value, center, 0.0, inside, worse) for day, value, inside, worse in columns),
        since=dates[start] if alarm else None, center=center, level=float(days.values[last]), detection_days=1.0,
        better=kind.better, size=float(np.nanmean(days.sizes)), autocorrelation=0.0,
    )  # fmt: skip


def _missing_share(values: Floats) -> float:
    """Return the share of points without a value between the first and the last one, rounded up to 5%."""
    valid = np.flatnonzero(np.isfinite(values))
    span = int(valid[-1] - valid[0]) + 1
    return math.ceil(20.0 * (1.0 - len(valid) / span) - 1e-9) / 20.0


def _weighted_mean(days: DailySeries, rows: slice) -> float:
    values, sizes = days.values[rows], np.where(np.isnan(days.values[rows]), 0.0, np.nan_to_num(days.sizes[rows]))
    return float(np.nansum(values * sizes) / sizes.sum()) if sizes.sum() > 0 else math.nan


def _days_per_point(days: DailySeries, kind: SeriesKind) -> int:
    """Return the days per point: 1, or enough for rare shares and money to have `_EVENTS` events; 0: even 28 do not.

    For money, the number of events is that of equal amounts with the same standard error.
    """
    if not (kind.share or kind.amount):
        return 1
    valid = np.isfinite(days.values)
    values, errors, sizes = (column[valid] for column in (days.values, days.errors, days.sizes))
    if kind.share:
        events_per_day = float((np.minimum(values, 1.0 - values) * sizes).mean())
    else:
        squares = float((errors * sizes) @ (errors * sizes))
        events_per_day = float(values @ sizes) ** 2 / squares / len(values) if squares > 0 else math.inf
    return next((length for length in _LENGTHS if events_per_day * length >= _EVENTS), 0)


def _pool_days(days: DailySeries, length: int) -> DailySeries:
    """Pool consecutive days into points, from the first day on; remaining days wait for more."""
    if length == 1:
        return days
    rows = len(days.values) // length
    columns = days.values, days.errors, days.sizes
    values, errors, sizes = (column[: rows * length].reshape(rows, length) for column in columns)
    # Days without a value have no weight, even if their size is known.
    weights = np.where(np.isnan(values), 0.0, np.nan_to_num(sizes))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        pooled_values = np.nansum(values * weights, axis=1) / total
        pooled_errors = np.sqrt(np.nansum((errors * weights) ** 2, axis=1)) / total
    return DailySeries(days.first, pooled_values, pooled_errors, np.where(total > 0, total, np.nan))
