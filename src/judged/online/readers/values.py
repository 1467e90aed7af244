"""Values of a log as ours: texts, numbers, lists, and times in whatever form they are written.

Times are whole milliseconds since 1970 UTC, by one rule for text files, CSV and Parquet:

- Text: ISO 8601 with ``Z``, ``+02:00``, ``+0200``, ``+02`` or nothing (then it is taken as UTC); or a number.
- Numbers: seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size.
- Columns of type TIMESTAMP (taken as UTC), TIMESTAMP WITH TIME ZONE, DATE.

Parts of a millisecond are cut off. What lies before 1995 is no time of a log, but a clock that was never set, or a
number of something else: it becomes null. Times that lie ahead are kept; they are judged when the log is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.online.engine import literal
from judged.online.readers.paths import Place

if TYPE_CHECKING:
    from judged.online.readers.mapping_file import Value

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


Kind: TypeAlias = Literal[
    "word", "text", "time", "whole", "page", "millis", "duration", "real", "flag", "list", "numbers", "filled"
]
"""``word``: an id or name. ``text``: what a user typed. ``filled``: whether a list or object has anything in it."""

TEXT_LIMIT = 10_000
"""So many characters of a query's text are kept: a longer one is no search, and texts are compared with each other."""

NUMBERED = {"seconds": 1000.0, "milliseconds": 1.0, "microseconds": 0.001, "nanoseconds": 0.000001}
"""Units of times and durations, in milliseconds."""

_EXACT = 2**53
_TEXTS = frozenset({"varchar", "json"})


@dataclass(frozen=True)
class Found:
    """A column's value.

    Parameters
    ----------
    sql
        The value, null where there is none or it cannot be used.
    given
        Whether anything stood there, usable or not; None where nothing can be lost.
    """

    sql: str
    given: str | None = None


def value_of(places: Sequence[Place], kind: Kind, value: Value) -> Found:
    """Give the value of a column from the places where it may stand: the first that holds a usable one."""
    return first_of([Found(_MAKERS[kind](one, value), _given(one, kind)) for one in places])


def first_of(values: Sequence[Found]) -> Found:
    """Give the first of several values that can be used."""
    if not values:
        return Found("NULL")
    doubtful = [f"({one.given})" for one in values if one.given]
    sql = f"coalesce({', '.join(one.sql for one in values)})" if len(values) > 1 else values[0].sql
    return Found(sql, f"({' OR '.join(doubtful)})" if doubtful else None)


def text_of(place: Place) -> str | None:
    """Give a value as text; None where it is no single value."""
    if isinstance(place.shape, (dict, tuple)):
        return None
    if place.type == "json":
        return f"({place.sql} ->> '$')"
    return place.sql if place.type == "varchar" else f"CAST({place.sql} AS VARCHAR)"


def _may_fail(place: Place, kind: Kind) -> bool:
    if kind in {"word", "text"}:
        return place.parsed and kind == "word"
    if kind in {"time", "millis", "duration"}:
        return True
    if kind in {"list", "numbers"}:
        return not isinstance(place.shape, tuple)
    sound: dict[str, bool] = {
        "whole": place.type in INTEGERS,
        "flag": place.type == "boolean",
        "filled": True,
    }
    return not sound.get(kind, place.type in INTEGERS and kind == "real")


def _given(place: Place, kind: Kind) -> str | None:
    if not _may_fail(place, kind):
        return None
    text = text_of(place)
    if text is None or place.type not in _TEXTS:
        return f"{place.sql} IS NOT NULL"
    if kind == "word":  # all texts are words, but for what is no single value
        return f"prefix({text}, '[')" if place.container else f"prefix({text}, '{{') OR prefix({text}, '[')"
    return f"{text} <> ''" + (f" AND NOT prefix({text}, '{{')" if place.container else "")


def _word(place: Place, _: Value) -> str:
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR)"
    if place.parsed or place.type == "json":
        nested = f"(prefix({text}, '{{') OR prefix({text}, '[')) AND json_valid({text})"
        return f"CASE WHEN {nested} THEN NULL ELSE nullif({text}, '') END"
    return f"nullif({text}, '')"


def _text(place: Place, _: Value) -> str:
    text = text_of(place)
    return "CAST(NULL AS VARCHAR)" if text is None else f"left({text}, {TEXT_LIMIT})"


def _time(place: Place, value: Value) -> str:
    text = text_of(place)
    if value.format in {"auto", "utc"} or text is None:
        return sql_time(text or "NULL", "varchar") if place.type == "json" else sql_time(place.sql, place.type)
    if value.format == "order":
        return f"TRY_CAST({text} AS BIGINT)"
    if value.format in NUMBERED:
        # Whole numbers stay whole: a float cannot hold nanoseconds since 1970.
        per = NUMBERED[value.format]
        scale = f"* {int(per)}" if per >= 1 else f"// {round(1 / per)}"
        whole = f"TRY_CAST(CASE WHEN regexp_full_match({text}, '[+-]?[0-9]+') THEN {text} END AS HUGEINT) {scale}"
        parts = f"floor({_finite(f'TRY_CAST({text} AS DOUBLE)')} * {per!r} + 0.001)"
        return f"coalesce(TRY_CAST({whole} AS BIGINT), TRY_CAST({parts} AS BIGINT))"
    return f"(epoch_us(try_strptime({text}, {literal(value.format)})) // 1000)"


def _finite(number: str) -> str:
    return f"CASE WHEN isfinite({number}) THEN {number} END"


def _number(place: Place) -> str:
    """Give a number as DOUBLE; null where it is none."""
    if place.type in INTEGERS or place.type in REALS:
        return f"CAST({place.sql} AS DOUBLE)"
    if place.type in _TEXTS:
        return f"TRY_CAST({text_of(place)} AS DOUBLE)"
    return "CAST(NULL AS DOUBLE)"


def _whole(place: Place, _: Value) -> str:
    if place.type in INTEGERS:
        return f"TRY_CAST({place.sql} AS BIGINT)"
    number = _number(place)
    exact = f"CASE WHEN {number} = floor({number}) AND abs({number}) <= {_EXACT} THEN CAST({number} AS BIGINT) END"
    if place.type not in _TEXTS:
        return exact
    text = f"trim({text_of(place)})"
    return f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]{{1,18}}') THEN TRY_CAST({text} AS BIGINT) ELSE {exact} END"


def _page(place: Place, _: Value) -> str:
    whole = _whole(place, _)
    return f"CASE WHEN {whole} BETWEEN 1 AND 2147483647 THEN {whole} END"


def _millis(place: Place, value: Value) -> str:
    number = _number(place)
    factor = NUMBERED[value.unit]
    return f"CASE WHEN {number} BETWEEN 0 AND 9e12 THEN CAST(round({number} * {factor!r}) AS BIGINT) END"


def _duration(place: Place, value: Value) -> str:
    number = f"{_real(place, value)} * {NUMBERED[value.unit]!r}"
    return f"CASE WHEN {number} >= 0 THEN {number} END"


def _real(place: Place, _: Value) -> str:
    return f"({_finite(_number(place))})"


def _flag(place: Place, _: Value) -> str:
    if place.type == "boolean":
        return place.sql
    if place.type in INTEGERS or place.type in REALS:
        return f"CASE WHEN {place.sql} = 1 THEN true WHEN {place.sql} = 0 THEN false END"
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS BOOLEAN)"
    text = f"lower(trim({text}))"
    yes, no = "('true', '1', 'yes', 't', 'y')", "('false', '0', 'no', 'f', 'n')"
    return f"CASE WHEN {text} IN {yes} THEN true WHEN {text} IN {no} THEN false END"


def _list(place: Place, value: Value) -> str:
    """Read a list, a list written as JSON, or items with separators between them; a text without these is one item."""
    if isinstance(place.shape, tuple) and place.shape[0] == "list":
        return f"CAST({place.sql} AS VARCHAR[])"
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR[])"
    json = f"WHEN prefix(ltrim({text}), '[') AND json_valid({text}) THEN from_json({text}, '[\"VARCHAR\"]')"
    empty = f"{text} IS NULL OR trim({text}) IN ('', 'null')"
    nothing = f"WHEN {empty} OR (prefix(ltrim({text}), '{{') AND json_valid({text})) THEN NULL"
    if not value.loose:
        cut = f"string_split({text}, {literal(value.separators[0])})" if value.separators else f"[{text}]"
        return f"CASE {json} {nothing} ELSE {cut} END"
    signs = "".join(value.separators)
    blank = r"\s" if " " in signs else ""
    between = f"[{blank}{re.escape(signs.replace(' ', ''))}]+"
    edges = f"{literal(signs)} || ' ' || chr(9) || chr(10) || chr(13)"
    bare = rf"trim(regexp_replace({text}, '[\[\]()'']', '', 'g'), {edges})"
    return (
        f"CASE {json} {nothing} WHEN {bare} = '' THEN CAST([] AS VARCHAR[]) "
        f"ELSE string_split_regex({bare}, {literal(between)}) END"
    )


def _numbers(place: Place, value: Value) -> str:
    if isinstance(place.shape, tuple) and place.shape[1] in INTEGERS | REALS:
        return f"CAST({place.sql} AS DOUBLE[])"
    number = _finite("TRY_CAST(e AS DOUBLE)")
    return f"list_transform({_list(place, value)}, lambda e: {number})"


def _filled(place: Place, _: Value) -> str:
    if place.type == "boolean":
        return place.sql
    if isinstance(place.shape, dict):
        parts = " OR ".join(f'{place.sql}."{name.replace(chr(34), chr(34) * 2)}" IS NOT NULL' for name in place.shape)
        return f"CASE WHEN {place.sql} IS NOT NULL THEN ({parts or 'false'}) END"
    if isinstance(place.shape, tuple):
        return f"(len({place.sql}) > 0)" if place.shape[0] == "list" else f"(cardinality({place.sql}) > 0)"
    text = text_of(place)
    empty = "('', '{}', '[]', 'null', 'false', '0')"
    return f"(lower(regexp_replace({text}, '\\s', '', 'g')) NOT IN {empty})"


_MAKERS: dict[Kind, Callable[[Place, Value], str]] = {
    "word": _word,
    "text": _text,
    "time": _time,
    "whole": _whole,
    "page": _page,
    "millis": _millis,
    "duration": _duration,
    "real": _real,
    "flag": _flag,
    "list": _list,
    "numbers": _numbers,
    "filled": _filled,
}
