"""A metric over time: its points with intervals, what is usual for it, what is not, and where its level changed."""

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
from judged.online.statistics.changes import Change, change_points
from judged.online.statistics.control import FEWEST, Control, control_limits, weekly

if TYPE_CHECKING:
    from judged.results.types import Bools

Every: TypeAlias = Literal["hour", "day", "week", "month"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_UNCOVERED = 0.05  # of a period: the log begins or ends that far inside it, and it is not complete
_BOUNDED = ("share", "reciprocal rank")


@dataclass(frozen=True)
class Point:
    """One period.

    Parameters
    ----------
    start_ms
        When it begins.
    estimate
        The metric in it.
    complete
        False: the log begins or ends within it.
    low_limit, high_limit
        What is usual for a period of its size; NaN where there are no limits.
    """

    start_ms: int
    estimate: OnlineEstimate
    complete: bool
    low_limit: float
    high_limit: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Series(Control):
    """One metric over time, and the limits of what is usual for it.

    Parameters
    ----------
    metric
        The metric.
    every
        How long a period is; weeks begin where the first point does.
    points
        The periods in order. Those without rows are not among them.
    changes
        Where the level changed.
    alpha
        The chance of finding a change in a series that has none, up to twice that where days resemble the day before.
    """

    metric: OnlineMetric
    every: Every
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    alpha: float


def series_of(
    points: Sequence[tuple[int, OnlineEstimate]],
    *,
    every: Every,
    covered: tuple[int, int] | None = None,
    warm_up: int | None = None,
    alpha: float = 0.01,
    seed: int = 0,
) -> Series:
    """Put a metric's estimates by period together.

    Parameters
    ----------
    points
        When each period begins, in milliseconds since 1970 UTC, and the metric in it. In order of time.
    every
        How long a period is.
    covered
        First and last time in the log. A period of which more than a twentieth lies outside is not complete: it is
        shown, and neither makes limits nor is held against them. None: all are complete.
    warm_up
        So many complete periods at the beginning make center and limits; None: those before the first change of level,
        or all where there is none or it comes too soon.
    alpha
        The chance of finding a change of level in a series that has none.
    seed
        Of the random orders that changes are tested with.

    Raises
    ------
    InputError
        If there are no points, they are of several metrics or not in order, or `warm_up` is too small.
    """
    _check(points, every, warm_up)
    estimates = [estimate for _, estimate in points]
    complete = np.array([_is_complete(start, every, covered) for start, _ in points])
    metric = estimates[0].metric
    sizes = np.array([one.denominator for one in estimates], dtype=np.float64)
    values = np.where(complete & (sizes > 0), [one.value for one in estimates], np.nan)
    errors = np.where(complete, [one.error for one in estimates], np.nan)
    weekdays = (np.array([start for start, _ in points]) // 86_400_000 + 3) % 7  # 1970 began on a Thursday
    usual = weekly(values, sizes, weekdays) if every == "day" else np.zeros(len(points))
    changes = change_points(values - usual, sizes, alpha=alpha, seed=seed)
    base = _base(complete, warm_up, changes)
    bounds = (0.0, 1.0 if metric.unit in _BOUNDED else math.inf)
    control = control_limits(values, errors, weights=sizes, base=base, bounds=bounds, usual=usual)
    lows, highs = (np.where(complete, limits, np.nan).tolist() for limits in (control.low, control.high))
    made = [
        Point(start, estimate, bool(whole), low, high)
        for (start, estimate), whole, low, high in zip(points, complete.tolist(), lows, highs, strict=True)
    ]
    limits: Any = vars(control)
    return Series(**limits, metric=metric, every=every, points=tuple(made), changes=changes, alpha=alpha)


def _base(complete: Bools, warm_up: int | None, changes: Sequence[Change]) -> Bools:
    """Choose the periods that say what is usual: what came before the level changed, if it is enough."""
    if warm_up is not None:
        return complete & (np.cumsum(complete) <= warm_up)
    before = complete & (np.arange(len(complete)) < (changes[0].point if changes else len(complete)))
    return before if before.sum() >= FEWEST else complete


def period_end(start_ms: int, every: Every) -> int:
    """Give the beginning of the next period, in milliseconds since 1970 UTC.

    >>> period_end(0, "day"), period_end(31 * 86_400_000, "month")
    (86400000, 5097600000)
    """
    if every != "month":
        return start_ms + _LENGTHS[every] // timedelta(milliseconds=1)
    start = _EPOCH + timedelta(milliseconds=start_ms)
    later = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1, day=1)
    return (later - _EPOCH) // timedelta(milliseconds=1)


def written_start(start_ms: int, every: Every) -> str:
    """Write the beginning of a period, in UTC.

    >>> written_start(86_400_000, "week"), written_start(3_600_000, "hour"), written_start(0, "month")
    ('1970-01-02', '1970-01-01 01:00', '1970-01')
    """
    start = _EPOCH + timedelta(milliseconds=start_ms)
    return start.strftime({"hour": "%Y-%m-%d %H:%M", "month": "%Y-%m"}.get(every, "%Y-%m-%d"))


def _check(points: Sequence[tuple[int, OnlineEstimate]], every: str, warm_up: int | None) -> None:
    """Refuse what makes no series."""
    if every not in get_args(Every):
        raise InputError(f"no period {every!r}", fix=f"one of {', '.join(get_args(Every))}")
    if not points:
        raise InputError("there is no period with rows", fix="check the log's times and the filters")
    starts = [start for start, _ in points]
    if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
        raise InputError("the periods are not in order of time", fix="sort them, one point a period")
    if len({str(one.metric) for _, one in points}) > 1:
        raise InputError("the points are of several metrics", fix="one series a metric")
    if warm_up is not None and warm_up < FEWEST:
        raise InputError(f"{warm_up} periods are too few for limits", fix=f"at least {FEWEST}, better 20")


def _is_complete(start_ms: int, every: Every, covered: tuple[int, int] | None) -> bool:
    """Whether the log covers the period, but for a twentieth of it."""
    if covered is None:
        return True
    end_ms = period_end(start_ms, every)
    outside = max(0, covered[0] - start_ms) + max(0, end_ms - 1 - covered[1])
    return outside <= _UNCOVERED * (end_ms - start_ms)
