"""SQL of a log's values as column types: texts, numbers, lists, and times in all usual formats.

Times are whole milliseconds since 1970 UTC, by the same rules for text files, CSV and Parquet:

- Text: ISO 8601 with ``Z``, ``+02:00``, ``+0200``, ``+02``, or no offset (then UTC is assumed); or a number.
- Numbers: seconds, milliseconds, microseconds or nanoseconds since 1970, distinguished by magnitude.
- Columns of type TIMESTAMP (UTC is assumed), TIMESTAMP WITH TIME ZONE, DATE.

Fractions of a millisecond are truncated. A time before 1995 becomes null: it comes from a clock that was never set, or
the number is no time. Times in the future are kept, and checked when the log is prepared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.online.engine import identifier, literal
from judged.online.readers.paths import Location

if TYPE_CHECKING:
    from judged.online.readers.mapping_file import ValueSource

EARLIEST = 788_918_400_000  # 1 January 1995; no search log is older

INTEGERS = frozenset({
    "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint",
})  # fmt: skip
REALS = frozenset({"float", "double", "decimal"})
TEXTS = frozenset({"varchar", "json", "enum"})
WITHOUT_OFFSET = frozenset({"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "date"})
_CLOCKS = WITHOUT_OFFSET | {"timestamp with time zone"}

_NUMBER = r"[+]?[0-9]+([.][0-9]*)?([eE][+]?[0-9]+)?"
_INTEGER = "[0-9]{1,18}|[0-8][0-9]{18}"
_ISO = (
    r"^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?) ?(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
)
_MIN_TIME_LENGTH, _MAX_TIME_LENGTH = 8, 64
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?"
_UTC = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z"
_OFFSET = _UTC[:-1] + "[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?"


def sql_time(value: str, type: str) -> str:
    """Return SQL that converts a value to milliseconds since 1970. It is null if the value is not a time.

    Parameters
    ----------
    value
        SQL of the value.
    type
        DuckDB type of the value in lower case: ``varchar``, ``bigint``, ``timestamp with time zone``.

    Examples
    --------
    >>> sql_time("t", "boolean")
    'CAST(NULL AS BIGINT)'
    """
    if type in TEXTS:
        time_ms = _time_from_text(value)
    elif type in INTEGERS:
        time_ms = _time_from_integer(f"TRY_CAST({value} AS BIGINT)" if "huge" in type or type == "ubigint" else value)
    elif type in REALS:
        time_ms = _time_from_real(f"CAST({value} AS DOUBLE)")
    elif type in _CLOCKS:
        time_ms = _milliseconds(value)
    else:
        return "CAST(NULL AS BIGINT)"
    # greatest() ignores nulls, so nullif turns both missing and too early times into null.
    return f"nullif(greatest({time_ms}, {EARLIEST - 1}), {EARLIEST - 1})"


def sql_without_offset(value: str, type: str) -> str | None:
    """Return SQL that tests whether a time has no offset, so that UTC was assumed. Return None if the type has one."""
    if type in TEXTS:
        return f"(NOT suffix({value}, 'Z') AND regexp_full_match(trim({value}), '{_DAY}([Tt ]{_CLOCK})?'))"
    return f"({value} IS NOT NULL)" if type in WITHOUT_OFFSET else None


def _milliseconds(time: str) -> str:
    # Integer division truncates. A cast would round in later versions of DuckDB.
    return f"(epoch_us({time}) // 1000)"


def _time_from_integer(number: str) -> str:
    # The unit follows from the magnitude: 1e11 is the year 5138 in seconds, and 1973 in milliseconds.
    return (
        f"CASE WHEN {number} < 0 THEN NULL WHEN {number} < 100000000000 THEN CAST({number} AS BIGINT) * 1000 "
        f"WHEN {number} < 100000000000000 THEN CAST({number} AS BIGINT) "
        f"WHEN {number} < 100000000000000000 THEN CAST({number} AS BIGINT) // 1000 "
        f"ELSE CAST({number} AS BIGINT) // 1000000 END"
    )


def _time_from_real(number: str) -> str:
    milliseconds = (
        f"CASE WHEN {number} < 1e11 THEN {number} * 1000 WHEN {number} < 1e14 THEN {number} "
        f"WHEN {number} < 1e17 THEN {number} / 1000 ELSE {number} / 1000000 END"
    )
    # 0.001 compensates for the rounding error of a float, which would otherwise truncate to the millisecond before.
    return f"CASE WHEN {number} BETWEEN 0 AND 9e18 THEN CAST(floor({milliseconds} + 0.001) AS BIGINT) END"


def _time_from_text(value: str) -> str:
    """Return SQL that parses a time."""
    text = f"trim({value})"
    part = "regexp_extract({text}, '{iso}', {group})".format
    day, clock, zone = (part(text=text, iso=_ISO, group=group) for group in (1, 2, 3))
    time, blank = f"coalesce(nullif(replace({clock}, ',', '.'), ''), '00:00')", "' '"
    tail = f"CASE substr({value}, -3, 1) WHEN ':' THEN 6 WHEN '+' THEN 3 WHEN '-' THEN 3 ELSE 5 END"
    ending = f"right({value}, {tail})"
    # The first two cases are the usual formats. TRY_CAST parses them much faster than the regular expressions below.
    return (
        f"CASE WHEN regexp_full_match({value}, '{_UTC}') THEN {_milliseconds(f'TRY_CAST({value} AS TIMESTAMP)')} "
        f"WHEN regexp_full_match({value}, '{_OFFSET}') THEN "
        f"{_milliseconds(f'TRY_CAST(left({value}, length({value}) - {tail}) AS TIMESTAMP)')} - {_offset(ending)} "
        f"WHEN length({value}) > {_MAX_TIME_LENGTH} THEN NULL "
        f"WHEN regexp_full_match({text}, '{_INTEGER}') THEN {_time_from_integer(f'TRY_CAST({text} AS BIGINT)')} "
        f"WHEN regexp_full_match({text}, '{_NUMBER}') THEN {_time_from_real(f'TRY_CAST({text} AS DOUBLE)')} "
        f"WHEN length({text}) >= {_MIN_TIME_LENGTH} THEN "
        f"{_milliseconds(f'TRY_CAST({day} || {blank} || {time} AS TIMESTAMP)')} - {_offset(zone)} END"
    )


def _offset(zone: str) -> str:
    """Return SQL of the offset from UTC in milliseconds. It is null for impossible hours or minutes."""
    hours = f"TRY_CAST(substr({zone}, 2, 2) AS BIGINT)"
    minutes = f"coalesce(TRY_CAST(right(nullif(substr({zone}, 4), ''), 2) AS BIGINT), 0)"
    return (
        f"CASE WHEN NOT regexp_matches({zone}, '^[+-]') THEN 0 WHEN {hours} < 24 AND {minutes} < 60 THEN "
        f"({hours} * 60 + {minutes}) * CASE WHEN prefix({zone}, '-') THEN -60000 ELSE 60000 END END"
    )


ValueKind: TypeAlias = Literal[
    "word", "text", "time", "whole", "page", "millis", "duration", "real", "flag", "list", "numbers", "filled"
]
"""``word``: an id or name. ``text``: text of a query. ``filled``: whether a list or object is not empty."""

TEXT_LIMIT = 10_000  # longer texts of queries are cut: texts are compared pairwise, and none is a real query

UNIT_MS = {"seconds": 1000.0, "milliseconds": 1.0, "microseconds": 0.001, "nanoseconds": 0.000001}
"""Milliseconds per unit of time."""

_MAX_EXACT = 2**53  # largest integer up to which a float represents all integers
_TEXT_TYPES = frozenset({"varchar", "json"})


@dataclass(frozen=True)
class ColumnValue:
    """Value of a column.

    Parameters
    ----------
    sql
        SQL of the value. It is null for a missing or invalid value.
    is_present
        SQL that tests whether there was a value, valid or not. None: no value can be invalid.
    """

    sql: str
    is_present: str | None = None


def column_value(locations: Sequence[Location], kind: ValueKind, source: ValueSource) -> ColumnValue:
    """Return the value of a column: the first valid value at its locations."""
    to_sql = _SQL_BY_KIND[kind]
    value = first_usable(
        [ColumnValue(to_sql(location, source), _present_sql(location, kind)) for location in locations]
    )
    return ColumnValue(f"coalesce({value.sql}, [])") if source.empty else value


def first_usable(values: Sequence[ColumnValue]) -> ColumnValue:
    """Return the first value that is not null."""
    if not values:
        return ColumnValue("NULL")
    tests = [f"({value.is_present})" for value in values if value.is_present]
    sql = f"coalesce({', '.join(value.sql for value in values)})" if len(values) > 1 else values[0].sql
    return ColumnValue(sql, f"({' OR '.join(tests)})" if tests else None)


def text_sql(location: Location) -> str | None:
    """Return SQL of a value as text. Return None if it is a list or object."""
    if isinstance(location.shape, (dict, tuple)):
        return None
    if location.type == "json":
        return f"({location.sql} ->> '$')"
    return location.sql if location.type == "varchar" else f"CAST({location.sql} AS VARCHAR)"


def _may_fail(location: Location, kind: ValueKind) -> bool:
    if kind in {"word", "text"}:
        return location.is_parsed and kind == "word"
    if kind in {"time", "millis", "duration"}:
        return True
    if kind in {"list", "numbers"}:
        return not isinstance(location.shape, tuple)
    is_always_valid: dict[str, bool] = {
        "whole": location.type in INTEGERS,
        "flag": location.type == "boolean",
        "filled": True,
    }
    return not is_always_valid.get(kind, location.type in INTEGERS and kind == "real")


def _present_sql(location: Location, kind: ValueKind) -> str | None:
    if not _may_fail(location, kind):
        return None
    text = text_sql(location)
    if text is None or location.type not in _TEXT_TYPES:
        return f"{location.sql} IS NOT NULL"
    if kind == "word":  # any text is a valid word, except a list or an object
        is_list = f"prefix({text}, '[')"
        return is_list if location.may_be_object else f"prefix({text}, '{{') OR {is_list}"
    return f"{text} <> ''" + (f" AND NOT prefix({text}, '{{')" if location.may_be_object else "")


def _word(location: Location, _: ValueSource) -> str:
    text = text_sql(location)
    if text is None:
        return "CAST(NULL AS VARCHAR)"
    if location.is_parsed or location.type == "json":
        nested = f"(prefix({text}, '{{') OR prefix({text}, '[')) AND json_valid({text})"
        return f"CASE WHEN {nested} THEN NULL ELSE nullif({text}, '') END"
    return f"nullif({text}, '')"


def _text(location: Location, _: ValueSource) -> str:
    text = text_sql(location)
    return "CAST(NULL AS VARCHAR)" if text is None else f"left({text}, {TEXT_LIMIT})"


def _time(location: Location, source: ValueSource) -> str:
    text = text_sql(location)
    if source.format in {"auto", "utc"} or text is None:
        return sql_time(text or "NULL", "varchar") if location.type == "json" else sql_time(location.sql, location.type)
    if source.format == "order":
        return f"TRY_CAST({text} AS BIGINT)"
    if source.format in UNIT_MS:
        # Whole numbers are not converted to floats, which cannot represent nanoseconds since 1970.
        milliseconds = UNIT_MS[source.format]
        scale = f"* {int(milliseconds)}" if milliseconds >= 1 else f"// {round(1 / milliseconds)}"
        integer = f"TRY_CAST(CASE WHEN regexp_full_match({text}, '[+-]?[0-9]+') THEN {text} END AS HUGEINT) {scale}"
        fractional = f"floor({_finite(f'TRY_CAST({text} AS DOUBLE)')} * {milliseconds!r} + 0.001)"
        return f"coalesce(TRY_CAST({integer} AS BIGINT), TRY_CAST({fractional} AS BIGINT))"
    return f"(epoch_us(try_strptime({text}, {literal(source.format)})) // 1000)"


def _finite(number: str) -> str:
    return f"CASE WHEN isfinite({number}) THEN {number} END"


def _number(location: Location) -> str:
    if location.type in INTEGERS or location.type in REALS:
        return f"CAST({location.sql} AS DOUBLE)"
    if location.type in _TEXT_TYPES:
        return f"TRY_CAST({text_sql(location)} AS DOUBLE)"
    return "CAST(NULL AS DOUBLE)"


def _integer(location: Location, _: ValueSource) -> str:
    if location.type in INTEGERS:
        return f"TRY_CAST({location.sql} AS BIGINT)"
    number = _number(location)
    # A float is used only if it is an exact integer.
    exact = f"CASE WHEN {number} = floor({number}) AND abs({number}) <= {_MAX_EXACT} THEN CAST({number} AS BIGINT) END"
    if location.type not in _TEXT_TYPES:
        return exact
    text = f"trim({text_sql(location)})"
    return f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]{{1,18}}') THEN TRY_CAST({text} AS BIGINT) ELSE {exact} END"


def _page(location: Location, _: ValueSource) -> str:
    integer = _integer(location, _)
    return f"CASE WHEN {integer} BETWEEN 1 AND 2147483647 THEN {integer} END"


def _millis(location: Location, source: ValueSource) -> str:
    number = _number(location)
    factor = UNIT_MS[source.unit]
    return f"CASE WHEN {number} BETWEEN 0 AND 9e12 THEN CAST(round({number} * {factor!r}) AS BIGINT) END"


def _duration(location: Location, source: ValueSource) -> str:
    number = f"{_real(location, source)} * {UNIT_MS[source.unit]!r}"
    return f"CASE WHEN {number} >= 0 THEN {number} END"


def _real(location: Location, _: ValueSource) -> str:
    return f"({_finite(_number(location))})"


def _flag(location: Location, _: ValueSource) -> str:
    if location.type == "boolean":
        return location.sql
    if location.type in INTEGERS or location.type in REALS:
        return f"CASE WHEN {location.sql} = 1 THEN true WHEN {location.sql} = 0 THEN false END"
    text = text_sql(location)
    if text is None:
        return "CAST(NULL AS BOOLEAN)"
    text = f"lower(trim({text}))"
    # Other words are neither, and become null.
    true_words, false_words = "('true', '1', 'yes', 't', 'y')", "('false', '0', 'no', 'f', 'n')"
    return f"CASE WHEN {text} IN {true_words} THEN true WHEN {text} IN {false_words} THEN false END"


def _list(location: Location, source: ValueSource) -> str:
    if isinstance(location.shape, tuple) and location.shape[0] == "list":
        return f"CAST({location.sql} AS VARCHAR[])"
    text = text_sql(location)
    if text is None:
        return "CAST(NULL AS VARCHAR[])"
    # A list can be written as JSON. A text without separators is a list of one.
    json = f"WHEN prefix(ltrim({text}), '[') AND json_valid({text}) THEN from_json({text}, '[\"VARCHAR\"]')"
    empty = f"{text} IS NULL OR trim({text}) IN ('', 'null')"
    no_list = f"WHEN {empty} OR (prefix(ltrim({text}), '{{') AND json_valid({text})) THEN NULL"
    if not source.lenient:
        split = f"string_split({text}, {literal(source.separators[0])})" if source.separators else f"[{text}]"
        return f"CASE {json} {no_list} ELSE {split} END"
    # Lists printed by other programs may have brackets, quotation marks, and any of the separators.
    separators = "".join(source.separators)
    blank = r"\s" if " " in separators else ""
    separator_run = f"[{blank}{re.escape(separators.replace(' ', ''))}]+"
    padding = f"{literal(separators)} || ' ' || chr(9) || chr(10) || chr(13)"
    stripped = rf"trim(regexp_replace({text}, '[\[\]()'']', '', 'g'), {padding})"
    return (
        f"CASE {json} {no_list} WHEN {stripped} = '' THEN CAST([] AS VARCHAR[]) "
        f"ELSE string_split_regex({stripped}, {literal(separator_run)}) END"
    )


def _numbers(location: Location, source: ValueSource) -> str:
    if isinstance(location.shape, tuple) and location.shape[1] in INTEGERS | REALS:
        return f"CAST({location.sql} AS DOUBLE[])"
    number = _finite("TRY_CAST(e AS DOUBLE)")
    return f"list_transform({_list(location, source)}, lambda e: {number})"


def _filled(location: Location, _: ValueSource) -> str:
    if location.type == "boolean":
        return location.sql
    if isinstance(location.shape, dict):
        has_member = " OR ".join(f"{location.sql}.{identifier(name)} IS NOT NULL" for name in location.shape)
        return f"CASE WHEN {location.sql} IS NOT NULL THEN ({has_member or 'false'}) END"
    if isinstance(location.shape, tuple):
        return f"(len({location.sql}) > 0)" if location.shape[0] == "list" else f"(cardinality({location.sql}) > 0)"
    text = text_sql(location)
    empty = "('', '{}', '[]', 'null', 'false', '0')"
    return f"(lower(regexp_replace({text}, '\\s', '', 'g')) NOT IN {empty})"


_SQL_BY_KIND: dict[ValueKind, Callable[[Location, ValueSource], str]] = {
    "word": _word, "text": _text, "time": _time, "whole": _integer, "page": _page, "millis": _millis,
    "duration": _duration, "real": _real, "flag": _flag, "list": _list, "numbers": _numbers, "filled": _filled,
}  # fmt: skip
