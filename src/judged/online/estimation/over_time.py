"""A metric over time: estimates by period, control limits, signals, and changes of level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.online.layout import OnlineEstimate
from judged.online.metrics import OnlineMetric
from judged.online.statistics.changes import LevelChange, change_points
from judged.online.statistics.control import MIN_POINTS, Control, control_limits, weekday_effects
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.results.types import Bools

PeriodLength: TypeAlias = Literal["hour", "day", "week", "month"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_MAX_OUTSIDE = 0.05  # largest share of a complete period that may lie outside of the log
_BOUNDED = ("share", "reciprocal rank")


@dataclass(frozen=True)
class SeriesPoint:
    """Metric in one period.

    Parameters
    ----------
    start_ms
        Start of the period, in milliseconds since 1970 UTC.
    estimate
        Estimate of the metric.
    complete
        Whether the log covers the period; if not, it has no limits.
    low_limit, high_limit
        Control limits for a period of its size; NaN: none.
    """

    start_ms: int
    estimate: OnlineEstimate
    complete: bool
    low_limit: float
    high_limit: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Series(Control):
    """Metric over time with control limits.

    Parameters
    ----------
    metric
        The metric.
    period
        Length of a period; weeks start on the weekday of the first point.
    points
        Periods with rows, in order of time.
    changes
        Changes of the level.
    alpha
        Probability of detecting a change in a series without one; up to twice as large for autocorrelated days.
    """

    metric: OnlineMetric
    period: PeriodLength
    points: tuple[SeriesPoint, ...]
    changes: tuple[LevelChange, ...]
    alpha: float


def build_series(
    points: Sequence[tuple[int, OnlineEstimate]],
    *,
    period: PeriodLength,
    covered: tuple[int, int] | None = None,
    warm_up: int | None = None,
    alpha: float = 0.01,
    seed: int = 0,
) -> Series:
    """Build the series of a metric from its estimates by period.

    Parameters
    ----------
    points
        Start of each period, in milliseconds since 1970 UTC, with the estimate; in order of time.
    period
        Length of a period.
    covered
        First and last time in the log. A period of which more than 5% lies outside is incomplete: it is shown, but it
        has no limits and does not contribute to them. None: all periods are complete.
    warm_up
        Number of complete periods at the start that determine center and limits. None: those before the first change of
        level, or all if there is no change or it comes too early.
    alpha
        Probability of detecting a change of level in a series without one.
    seed
        Seed of the resampling test for changes.

    Raises
    ------
    InputError
        If there are no points, they have different metrics or are not in order, or `warm_up` is too small.
    """
    _check_points(points, period, warm_up)
    estimates = [estimate for _, estimate in points]
    complete = np.array([_is_complete(start, period, covered) for start, _ in points])
    metric = estimates[0].metric
    sizes = np.array([estimate.denominator for estimate in estimates], dtype=np.float64)
    values = np.where(complete & (sizes > 0), [estimate.value for estimate in estimates], np.nan)
    errors = np.where(complete, [estimate.error for estimate in estimates], np.nan)
    # 0 is Monday.
    weekdays = (np.array([start for start, _ in points]) // 86_400_000 + 3) % 7  # 1970 began on a Thursday
    seasonal = weekday_effects(values, sizes, weekdays) if period == "day" else np.zeros(len(points))
    # Weekdays are removed first: a weekend would look like a change of level.
    changes = change_points(values - seasonal, sizes, alpha=alpha, seed=seed)
    base = _select_base(complete, warm_up, changes)
    bounds = (0.0, 1.0 if metric.unit in _BOUNDED else math.inf)
    control = control_limits(values, errors, weights=sizes, base=base, bounds=bounds, seasonal=seasonal)
    lows, highs = (np.where(complete, limits, np.nan).tolist() for limits in (control.low, control.high))
    series_points = [
        SeriesPoint(start, estimate, bool(is_complete), low, high)
        for (start, estimate), is_complete, low, high in zip(points, complete.tolist(), lows, highs, strict=True)
    ]
    # `Series` has all fields of `Control`, and its own.
    control_fields: Any = vars(control)
    points_tuple = tuple(series_points)
    return Series(**control_fields, metric=metric, period=period, points=points_tuple, changes=changes, alpha=alpha)


def _select_base(complete: Bools, warm_up: int | None, changes: Sequence[LevelChange]) -> Bools:
    """Select the periods that determine the limits: those before the first change of level, if they are enough."""
    if warm_up is not None:
        return complete & (np.cumsum(complete) <= warm_up)
    before = complete & (np.arange(len(complete)) < (changes[0].point if changes else len(complete)))
    return before if before.sum() >= MIN_POINTS else complete


def period_end(start_ms: int, period: PeriodLength) -> int:
    """Return the start of the next period, in milliseconds since 1970 UTC.

    >>> period_end(0, "day"), period_end(31 * 86_400_000, "month")
    (86400000, 5097600000)
    """
    if period != "month":
        return start_ms + _LENGTHS[period] // timedelta(milliseconds=1)
    start = _EPOCH + timedelta(milliseconds=start_ms)
    next_start = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1, day=1)
    return (next_start - _EPOCH) // timedelta(milliseconds=1)


def format_start(start_ms: int, period: PeriodLength) -> str:
    """Format the start of a period, in UTC.

    >>> format_start(86_400_000, "week"), format_start(3_600_000, "hour"), format_start(0, "month")
    ('1970-01-02', '1970-01-01 01:00', '1970-01')
    """
    start = _EPOCH + timedelta(milliseconds=start_ms)
    return start.strftime({"hour": "%Y-%m-%d %H:%M", "month": "%Y-%m"}.get(period, "%Y-%m-%d"))


def _check_points(points: Sequence[tuple[int, OnlineEstimate]], period: str, warm_up: int | None) -> None:
    if period not in get_args(PeriodLength):
        raise InputError(f"there is no period {period!r}", fix=use_one_of(get_args(PeriodLength)))
    if not points:
        raise InputError("no period has data", fix="check the times of the log and the filters")
    starts = [start for start, _ in points]
    if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
        raise InputError(
            "periods must be in order of time and distinct", fix="sort the periods, with one point per period"
        )
    if len({str(estimate.metric) for _, estimate in points}) > 1:
        raise InputError("all points of a series must have the same metric", fix="build one series per metric")
    if warm_up is not None and warm_up < MIN_POINTS:
        problem = f"`warm_up` must be at least {MIN_POINTS} periods, got {warm_up}"
        raise InputError(problem, fix="use 20 or more periods, if possible")


def _is_complete(start_ms: int, period: PeriodLength, covered: tuple[int, int] | None) -> bool:
    if covered is None:
        return True
    end_ms = period_end(start_ms, period)
    outside_ms = max(0, covered[0] - start_ms) + max(0, end_ms - 1 - covered[1])
    return outside_ms <= _MAX_OUTSIDE * (end_ms - start_ms)
