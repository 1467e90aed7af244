"""Slices by a column of the log, and selection of pages by a condition on its columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.attributes import Bands
from judged.data.expression import Expression
from judged.errors import InputError
from judged.online.engine import Relation, identifier, literal
from judged.online.log import SERP
from judged.online.metrics import format_parameter

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.blocks import Note
    from judged.results.types import Floats, Ints


@dataclass(frozen=True)
class SliceQuery:
    """SQL that assigns pages to slices.

    Parameters
    ----------
    sql
        Query for ``serp`` and ``slice``, one row per page; null: unknown.
    order
        Slices in display order; empty: numeric or alphabetical order.
    note
        Note for the reader of the results.
    keeps_all
        Whether rare slices are kept, because they are points of a series.
    warnings
        Notes of the result.
    """

    sql: str
    order: tuple[str, ...] = ()
    note: str = ""
    keeps_all: bool = False
    warnings: tuple[Note, ...] = ()


def band_sql(number: str, bands: Bands) -> str:
    """Return the SQL of the band that a number is in; null for null."""
    bands_below = zip(bands.starts, bands.names[:-1], strict=True)
    cases = [f"WHEN {number} < {start!r} THEN {literal(name)}" for start, name in bands_below]
    return f"CASE WHEN {number} IS NULL THEN NULL {' '.join(cases)} ELSE {literal(bands.names[-1])} END"


_KINDS = {"VARCHAR": "O", "BOOLEAN": "b", **dict.fromkeys(("BIGINT", "INTEGER", "SMALLINT", "DOUBLE"), "f")}
_KEYS = ("serp", "session", "user")


def pages_where(log: InteractionLog, where: str) -> tuple[Relation, str]:
    """Select the pages that meet a condition. Events on them, and following pages, are those of the whole log.

    Parameters
    ----------
    log
        The log.
    where
        Expression (`judged.data.expression.Expression`) over columns of `serp`, including the log's own attributes.

    Returns
    -------
    matching : Relation
        ``serp`` of each page.
    description : str
        The condition, and the number of pages that meet it.

    Raises
    ------
    InputError
        If the expression is invalid, or no page meets it.
    """
    # Keys are internal numbers, without a meaning for the user.
    columns = {*(column.name for column in SERP), *log.attributes}
    sql_types = {name: kind for name, kind in log.serp.types.items() if name in columns and name not in _KEYS}
    kinds = {name: _KINDS.get(kind, "O" if kind.startswith("ENUM") else "") for name, kind in sql_types.items()}
    condition = Expression(where).sql({name: kind for name, kind in kinds.items() if kind})
    matching = log.engine.keep(f"SELECT serp FROM {log.serp} WHERE {condition}", "matching")
    counts_sql = f"SELECT (SELECT count(*) FROM {matching}) AS matching, (SELECT count(*) FROM {log.serp}) AS pages"
    counts = log.engine.rows(counts_sql)[0]
    if not counts["matching"]:
        raise InputError(
            f"no page matches the condition {where!r:.80}", fix="use another condition", path=", ".join(log.files)
        )
    return matching, f"{where}: {counts['matching']:,} of {counts['pages']:,} pages"


MAX_VALUES = 30
"""Largest number of values with one slice each."""

# Prefixes of the names of SQL types.
_NUMBERS = ("BIGINT", "DECIMAL", "DOUBLE", "FLOAT", "HUGEINT", "INTEGER", "SMALLINT", "TINYINT", "U")

_DEFAULT_PARTS = 4


def by_column(serp: Relation, name: str, cuts_text: str = "") -> SliceQuery:
    """Slice pages by a column.

    Texts and booleans have one slice per value; blank texts are unknown. Numbers have one slice per value up to
    `MAX_VALUES` distinct values, and four parts with equally many pages beyond.

    Parameters
    ----------
    serp
        Pages.
    name
        The column.
    cuts_text
        For numbers: ``:10,100`` for ranges that start at these numbers, ``/4`` for that many parts with equally many
        pages, except for ties. Texts are converted to numbers then.

    Raises
    ------
    InputError
        If the ranges or parts are invalid, or the column holds neither texts nor numbers nor booleans.
    """
    column, sql_type = identifier(name), serp.types[name]
    is_text = sql_type == "VARCHAR" or sql_type.startswith("ENUM")
    if is_text and not cuts_text:
        return SliceQuery(f"SELECT serp, nullif(trim({column}), '') AS slice FROM {serp}")
    if sql_type == "BOOLEAN" and not cuts_text:
        name_sql = f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"
        return SliceQuery(f"SELECT serp, {name_sql} AS slice FROM {serp}", ("false", "true"))
    if not is_text and not sql_type.startswith(_NUMBERS):
        problem = f"a slicing column must hold texts, numbers, or booleans, but {name} is {sql_type}"
        raise InputError(problem, fix="slice by another column")
    # JSON and CSV may store a number as text; other texts, and NaN, are unknown.
    number_sql = f"TRY_CAST({column} AS DOUBLE)"
    numbers = serp.engine.query(
        f"SELECT serp, CASE WHEN isnan({number_sql}) THEN NULL ELSE {number_sql} END AS number FROM {serp}"
    )
    if cuts_text.startswith(":"):
        return _slice_by_ranges(numbers, _parse_bounds(name, cuts_text[1:]))
    values, counts = _count_values(numbers)
    if not cuts_text and len(values) <= MAX_VALUES:
        return _slice_by_values(numbers, values)
    parts = _parse_parts(name, cuts_text[1:]) if cuts_text else _DEFAULT_PARTS
    bounds = equal_parts(values, counts, parts)
    notes = [f"{name} has {len(values):,} distinct values: split into groups of equal size"] if not cuts_text else []
    if len(bounds) + 1 < parts and len(values):
        parts_text = f"there are {len(bounds) + 1} groups" if bounds else "there is one group"
        notes.append(f"many pages have the same value of {name}, so {parts_text} instead of {parts}")
    return replace(_slice_by_ranges(numbers, bounds, round_labels=True), note="; ".join(notes))


def equal_parts(values: Floats, counts: Ints, parts: int) -> tuple[float, ...]:
    """Return the numbers at which to split values into parts of equal size, except for ties.

    Parameters
    ----------
    values, counts
        (N,) distinct numbers in increasing order, and the frequency of each.
    parts
        2 or more.

    Returns
    -------
    starts
        At most ``parts - 1`` numbers: the first of each part but the first part.

    Examples
    --------
    >>> import numpy as np
    >>> equal_parts(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, 1, 1]), 2)
    (3.0,)
    >>> equal_parts(np.array([0.0, 5.0]), np.array([9, 1]), 4)  # nine of ten values are 0, so no part starts above 0
    ()
    """
    if not len(values):
        return ()
    ends = np.cumsum(counts)
    total = int(ends[-1])
    # Number of values below the start of each part, rounded up.
    ranks = [-(-part * total // parts) for part in range(1, parts)]
    starts = {float(values[np.searchsorted(ends, rank, side="right")]) for rank in ranks if rank < total}
    return tuple(sorted(starts - {float(values[0])}))


def _parse_bounds(name: str, text: str) -> tuple[float, ...]:
    try:
        bounds = tuple(float(part) for part in text.split(","))
    except ValueError:
        bounds = ()
    increasing = list(bounds) == sorted(set(bounds)) and all(map(math.isfinite, bounds))
    if not increasing or not 1 <= len(bounds) < MAX_VALUES:
        problem = (
            f"the starts of ranges must be a list of 1 to {MAX_VALUES - 1} numbers in increasing order, got {text!r}"
        )
        raise InputError(problem, fix=f"use {name}:10,100, for example")
    return bounds


def _parse_parts(name: str, text: str) -> int:
    if not text.strip().isdecimal() or not 2 <= int(text) <= MAX_VALUES:
        problem = f"the number of groups must be from 2 to {MAX_VALUES}, got {text!r}"
        raise InputError(problem, fix=f"use {name}/4, for example")
    return int(text)


def _slice_by_ranges(numbers: Relation, bounds: tuple[float, ...], *, round_labels: bool = False) -> SliceQuery:
    labels = [format_parameter(bound) for bound in bounds]
    if round_labels:  # bounds that are not integers get six digits, unless two labels would be equal
        rounded = [label if bound.is_integer() else f"{bound:g}" for bound, label in zip(bounds, labels, strict=True)]
        labels = rounded if len(set(rounded)) == len(rounded) else labels
    between = [f"{low} to <{high}" for low, high in pairwise(labels)]
    names = (f"<{labels[0]}", *between, f">={labels[-1]}") if labels else ("all",)
    return SliceQuery(f"SELECT serp, {band_sql('number', Bands(bounds, names))} AS slice FROM {numbers}", names)


def _count_values(numbers: Relation) -> tuple[Floats, Ints]:
    counts = numbers.engine.arrow(
        f"SELECT number, count(*) AS pages FROM {numbers} WHERE number IS NOT NULL GROUP BY number ORDER BY number"
    )
    return counts["number"].to_numpy(), counts["pages"].to_numpy()


def _slice_by_values(numbers: Relation, values: Floats) -> SliceQuery:
    names = [format_parameter(value) if math.isfinite(value) else str(value) for value in values.tolist()]
    slice_table = pa.table({"number": pa.array(values, pa.float64()), "slice": pa.array(names, pa.string())})
    names_by_number = numbers.engine.register(slice_table)
    join = f"LEFT JOIN {names_by_number} AS k ON k.number = n.number"
    return SliceQuery(f"SELECT n.serp, k.slice FROM {numbers} AS n {join}", tuple(names))


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

HOURS = tuple(f"{hour:02}" for hour in range(24))
_HOUR = 3_600_000  # milliseconds
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
_TO_MONDAY = 3  # 1970-01-01 was a Thursday, three days after a Monday
_NAME = re.compile(r"-?\d{4,}-\d\d-\d\d(?:T\d\d)?")


class _TimeBuckets(NamedTuple):
    """Time buckets: `size` and `offset` in milliseconds, and the names of buckets by their number."""

    size: int
    offset: int
    format_names: Callable[[Ints], list[str]]
    order: tuple[str, ...] = ()


def _dates(days: Ints) -> list[str]:
    return np.datetime_as_string(days.astype("datetime64[D]")).tolist()


_TIME_BUCKETS = {
    "hour": _TimeBuckets(_HOUR, 0, lambda hours: np.datetime_as_string(hours.astype("datetime64[h]")).tolist()),
    "day": _TimeBuckets(_DAY, 0, _dates),
    "week": _TimeBuckets(_WEEK, _TO_MONDAY * _DAY, lambda weeks: _dates(weeks * 7 - _TO_MONDAY)),
    "weekday": _TimeBuckets(_DAY, 0, lambda days: [WEEKDAYS[i] for i in (days + _TO_MONDAY) % 7], WEEKDAYS),
    "hour of week": _TimeBuckets(
        _HOUR,
        _TO_MONDAY * _DAY,
        lambda hours: [f"{WEEKDAYS[hour // 24]} {hour % 24:02}" for hour in (hours % 168).tolist()],
        tuple(f"{day} {hour}" for day in WEEKDAYS for hour in HOURS),
    ),
    "hour of day": _TimeBuckets(_HOUR, 0, lambda hours: [f"{hour:02}" for hour in (hours % 24).tolist()], HOURS),
}
BY_TIME = tuple(_TIME_BUCKETS)
"""Names of slices by time."""


def by_time(serp: Relation, name: str) -> SliceQuery:
    """Slice pages by their time.

    ``hour`` is named 2024-05-31T09, ``day`` 2024-05-31, and ``week`` as its Monday, so that sorting gives the order of
    time.

    Parameters
    ----------
    serp
        Pages.
    name
        One of `BY_TIME`.
    """
    buckets = _TIME_BUCKETS[name]
    # floor, not integer division: times before 1970 are negative.
    bucket_sql = f"CAST(floor((time_ms + {buckets.offset}) / {buckets.size}.0) AS BIGINT)"
    distinct_buckets = serp.engine.arrow(f"SELECT DISTINCT {bucket_sql} AS bucket FROM {serp} ORDER BY bucket")
    names = buckets.format_names(distinct_buckets["bucket"].to_numpy())
    slice_table = pa.table({"bucket": distinct_buckets["bucket"], "slice": pa.array(names, pa.string())})
    names_by_bucket = serp.engine.register(slice_table)
    sql = f"SELECT p.serp, k.slice FROM {serp} AS p LEFT JOIN {names_by_bucket} AS k ON k.bucket = {bucket_sql}"
    return SliceQuery(sql, buckets.order or tuple(names), "UTC", keeps_all=True)


def bucket_starts(names: Iterable[str]) -> tuple[int, ...]:
    """Return the start of slices that are hours, days, or weeks, in milliseconds since 1970.

    Raises
    ------
    InputError
        If a name is not a date or hour.

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
    raise InputError(
        f"{name!r} is not an hour, day, or week",
        fix="use slices by hour, day, or week, with names such as 2024-05-31T09",
    )
