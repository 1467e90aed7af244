"""Slices by time, all in UTC: points of a series (``hour``, ``day``, ``week``), and parts of the week and the day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from judged.errors import InputError
from judged.online.engine import Relation
from judged.online.slicing.columns import Cut

if TYPE_CHECKING:
    from judged._types import Ints

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

HOURS = tuple(f"{at:02}" for at in range(24))
_HOUR = 3_600_000  # milliseconds
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
_TO_MONDAY = 3  # days from Monday to Thursday, on which 1970 began
_NAME = re.compile(r"-?\d{4,}-\d\d-\d\d(?:T\d\d)?")


class _Clock(NamedTuple):
    """How time is cut: buckets of so many milliseconds, moved by so many; and what bucket number n is called."""

    size: int
    moved: int
    named: Callable[[Ints], list[str]]
    order: tuple[str, ...] = ()


def _dates(days: Ints) -> list[str]:
    return np.datetime_as_string(days.astype("datetime64[D]")).tolist()


_CLOCKS = {
    "hour": _Clock(_HOUR, 0, lambda hours: np.datetime_as_string(hours.astype("datetime64[h]")).tolist()),
    "day": _Clock(_DAY, 0, _dates),
    "week": _Clock(_WEEK, _TO_MONDAY * _DAY, lambda weeks: _dates(weeks * 7 - _TO_MONDAY)),
    "weekday": _Clock(_DAY, 0, lambda days: [WEEKDAYS[at] for at in ((days + _TO_MONDAY) % 7).tolist()], WEEKDAYS),
    "hour of week": _Clock(
        _HOUR,
        _TO_MONDAY * _DAY,
        lambda hours: [f"{WEEKDAYS[at // 24]} {at % 24:02}" for at in (hours % 168).tolist()],
        tuple(f"{day} {hour}" for day in WEEKDAYS for hour in HOURS),
    ),
    "hour of day": _Clock(_HOUR, 0, lambda hours: [f"{at:02}" for at in (hours % 24).tolist()], HOURS),
}
BY_TIME = tuple(_CLOCKS)
"""Names of slices by time."""


def by_time(serp: Relation, name: str) -> Cut:
    """Cut by when the page was asked for.

    ``hour`` is named as 2024-05-31T09, ``day`` as 2024-05-31, ``week`` as its Monday: in the order of time if sorted.

    Parameters
    ----------
    serp
        Pages.
    name
        One of `BY_TIME`.
    """
    clock = _CLOCKS[name]
    bucket = f"CAST(floor((time_ms + {clock.moved}) / {clock.size}.0) AS BIGINT)"
    found = serp.engine.arrow(f"SELECT DISTINCT {bucket} AS bucket FROM {serp} ORDER BY bucket")
    names = clock.named(found["bucket"].to_numpy())
    known = serp.engine.register(pa.table({"bucket": found["bucket"], "slice": pa.array(names, pa.string())}))
    sql = f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {known} AS k ON k.bucket = {bucket}"
    return Cut(sql, clock.order or tuple(names), "UTC", all_kept=True)


def bucket_starts(names: Iterable[str]) -> tuple[int, ...]:
    """Give when hours, days or weeks begin that are slices: milliseconds since 1970.

    Raises
    ------
    InputError
        If one is no date or hour.

    Examples
    --------
    >>> bucket_starts(["1970-01-02", "1970-01-02T01"])
    (86400000, 90000000)
    """
    return tuple(_start(name) for name in names)


def _start(name: str) -> int:
    try:
        if _NAME.fullmatch(name):
            return int(np.datetime64(name, "ms").astype(np.int64))
    except ValueError:
        pass
    raise InputError(f"{name!r} is no hour, day or week", fix="slice by hour, day or week: 2024-05-31T09")
