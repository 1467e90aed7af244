"""Times of a log: whatever form they are written in, as whole milliseconds since 1970 UTC.

One rule for all: it is SQL of DuckDB, and text files, CSV and Parquet are read with the same expression.

- Text: ISO 8601 with ``Z``, ``+02:00``, ``+0200``, ``+02`` or nothing (then it is taken as UTC); or a number.
- Numbers: seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size.
- Columns of type TIMESTAMP (taken as UTC), TIMESTAMP WITH TIME ZONE, DATE.

Parts of a millisecond are cut off. What lies before 1995 is no time of a log, but a clock that was never set, or a
number of something else: it becomes null. Times that lie ahead are kept; they are judged when the log is made.
"""

from __future__ import annotations

EARLIEST = 788_918_400_000
"""1 January 1995: no search log is older."""

INTEGERS = frozenset({
    "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint",
})  # fmt: skip
REALS = frozenset({"float", "double", "decimal"})
TEXTS = frozenset({"varchar", "json", "enum"})
WITHOUT_OFFSET = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "date"})
_CLOCKS = WITHOUT_OFFSET | {"timestamp with time zone"}

_NUMBER = r"[+]?[0-9]+([.][0-9]*)?([eE][+]?[0-9]+)?"
_WHOLE = "[0-9]{1,18}|[0-8][0-9]{18}"
_ISO = (
    r"^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?) ?(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_SHORTEST, _LONGEST = 8, 64
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
_UTC = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z"
_OFFSET = _UTC[:-1] + "[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?"


def sql_time(value: str, type: str) -> str:
    """Give the SQL that turns a value into milliseconds, null where it is no time.

    Parameters
    ----------
    value
        SQL of the value.
    type
        Its type in DuckDB, in lower case: ``varchar``, ``bigint``, ``timestamp with time zone``.

    Examples
    --------
    >>> sql_time("t", "boolean")
    'CAST(NULL AS BIGINT)'
    """
    if type in TEXTS:
        found = _of_text(value)
    elif type in INTEGERS:
        found = _of_whole(f"TRY_CAST({value} AS BIGINT)" if "huge" in type or type == "ubigint" else value)
    elif type in REALS:
        found = _of_real(f"CAST({value} AS DOUBLE)")
    elif type in _CLOCKS:
        found = _milliseconds(value)
    else:
        return "CAST(NULL AS BIGINT)"
    return f"nullif(greatest({found}, {EARLIEST - 1}), {EARLIEST - 1})"  # greatest() passes over null


def sql_without_offset(value: str, type: str) -> str | None:
    """Give the SQL that says whether a time lacks an offset, so that UTC was assumed; None where that cannot be."""
    if type in TEXTS:
        return f"(NOT suffix({value}, 'Z') AND regexp_full_match(trim({value}), '{_DAY}([Tt ]{_CLOCK})?'))"
    return f"({value} IS NOT NULL)" if type in WITHOUT_OFFSET else None


def _milliseconds(time: str) -> str:
    """Give whole milliseconds, what is left over cut off: later versions of DuckDB would round."""
    return f"(epoch_us({time}) // 1000)"


def _of_whole(number: str) -> str:
    """Tell the unit by the size: as seconds 1e11 is the year 5138, as milliseconds it is 1973."""
    return (
        f"CASE WHEN {number} < 0 THEN NULL WHEN {number} < 100000000000 THEN CAST({number} AS BIGINT) * 1000 "
        f"WHEN {number} < 100000000000000 THEN CAST({number} AS BIGINT) "
        f"WHEN {number} < 100000000000000000 THEN CAST({number} AS BIGINT) // 1000 "
        f"ELSE CAST({number} AS BIGINT) // 1000000 END"
    )


def _of_real(number: str) -> str:
    """Do the same for a number with a fraction; a millionth of a second makes up for what a float cannot hold."""
    milliseconds = (
        f"CASE WHEN {number} < 1e11 THEN {number} * 1000 WHEN {number} < 1e14 THEN {number} "
        f"WHEN {number} < 1e17 THEN {number} / 1000 ELSE {number} / 1000000 END"
    )
    return f"CASE WHEN {number} BETWEEN 0 AND 9e18 THEN CAST(floor({milliseconds} + 0.001) AS BIGINT) END"


def _of_text(value: str) -> str:
    """Read the two forms that nearly all logs have at once, and the others by their parts."""
    text = f"trim({value})"
    part = "regexp_extract({text}, '{iso}', {group})".format
    day, clock, zone = (part(text=text, iso=_ISO, group=group) for group in (1, 2, 3))
    time, blank = f"coalesce(nullif(replace({clock}, ',', '.'), ''), '00:00')", "' '"
    tail = f"CASE substr({value}, -3, 1) WHEN ':' THEN 6 WHEN '+' THEN 3 WHEN '-' THEN 3 ELSE 5 END"
    ending = f"right({value}, {tail})"
    return (
        f"CASE WHEN regexp_full_match({value}, '{_UTC}') THEN {_milliseconds(f'TRY_CAST({value} AS TIMESTAMP)')} "
        f"WHEN regexp_full_match({value}, '{_OFFSET}') THEN "
        f"{_milliseconds(f'TRY_CAST(left({value}, length({value}) - {tail}) AS TIMESTAMP)')} - {_offset(ending)} "
        f"WHEN length({value}) > {_LONGEST} THEN NULL "
        f"WHEN regexp_full_match({text}, '{_WHOLE}') THEN {_of_whole(f'TRY_CAST({text} AS BIGINT)')} "
        f"WHEN regexp_full_match({text}, '{_NUMBER}') THEN {_of_real(f'TRY_CAST({text} AS DOUBLE)')} "
        f"WHEN length({text}) >= {_SHORTEST} THEN "
        f"{_milliseconds(f'TRY_CAST({day} || {blank} || {time} AS TIMESTAMP)')} - {_offset(zone)} END"
    )


def _offset(zone: str) -> str:
    """Give the milliseconds that a zone is ahead of UTC; null where the hours or minutes make no sense."""
    hours = f"TRY_CAST(substr({zone}, 2, 2) AS BIGINT)"
    minutes = f"coalesce(TRY_CAST(right(nullif(substr({zone}, 4), ''), 2) AS BIGINT), 0)"
    return (
        f"CASE WHEN NOT regexp_matches({zone}, '^[+-]') THEN 0 WHEN {hours} < 24 AND {minutes} < 60 THEN "
        f"({hours} * 60 + {minutes}) * CASE WHEN prefix({zone}, '-') THEN -60000 ELSE 60000 END END"
    )
