"""Values of a log as the types of our columns: SQL that gives null for what is no such value, and says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judged.online.engine import literal
from judged.online.readers.shapes import Place
from judged.online.readers.times import INTEGERS, REALS, sql_time

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
class Manner:
    """How a value is written.

    Parameters
    ----------
    format
        Of times: ``auto``, ``utc`` (the same, where all are UTC), ``order``, a unit, or a pattern of ``strptime``.
    unit
        Of durations.
    separators
        Between the items of a list that is written as text.
    loose
        Any of the separators may stand there, and brackets and quotation marks around.
    """

    format: str = "auto"
    unit: str = "milliseconds"
    separators: tuple[str, ...] = ()
    loose: bool = False


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


def value_of(places: Sequence[Place], kind: Kind, manner: Manner = Manner()) -> Found:
    """Give the value of a column from the places where it may stand: the first that holds a usable one.

    >>> value_of([], "whole").sql
    'NULL'
    """
    return first_of([Found(_MAKERS[kind](one, manner), _given(one, kind)) for one in places])


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


def _word(place: Place, _: Manner) -> str:
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR)"
    if place.parsed or place.type == "json":
        nested = f"(prefix({text}, '{{') OR prefix({text}, '[')) AND json_valid({text})"
        return f"CASE WHEN {nested} THEN NULL ELSE nullif({text}, '') END"
    return f"nullif({text}, '')"


def _text(place: Place, _: Manner) -> str:
    text = text_of(place)
    return "CAST(NULL AS VARCHAR)" if text is None else f"left({text}, {TEXT_LIMIT})"


def _time(place: Place, manner: Manner) -> str:
    text = text_of(place)
    if manner.format in {"auto", "utc"} or text is None:
        return sql_time(text or "NULL", "varchar") if place.type == "json" else sql_time(place.sql, place.type)
    if manner.format == "order":
        return f"TRY_CAST({text} AS BIGINT)"
    if manner.format in NUMBERED:
        # Whole numbers stay whole: a float cannot hold nanoseconds since 1970.
        per = NUMBERED[manner.format]
        scale = f"* {int(per)}" if per >= 1 else f"// {round(1 / per)}"
        whole = f"TRY_CAST(CASE WHEN regexp_full_match({text}, '[+-]?[0-9]+') THEN {text} END AS HUGEINT) {scale}"
        parts = f"floor({_finite(f'TRY_CAST({text} AS DOUBLE)')} * {per!r} + 0.001)"
        return f"coalesce(TRY_CAST({whole} AS BIGINT), TRY_CAST({parts} AS BIGINT))"
    return f"(epoch_us(try_strptime({text}, {literal(manner.format)})) // 1000)"


def _finite(number: str) -> str:
    return f"CASE WHEN isfinite({number}) THEN {number} END"


def _number(place: Place) -> str | None:
    """Give a number as DOUBLE; null where it is none."""
    if place.type in INTEGERS or place.type in REALS:
        return f"CAST({place.sql} AS DOUBLE)"
    if place.type in _TEXTS:
        return f"TRY_CAST({text_of(place)} AS DOUBLE)"
    return None


def _whole(place: Place, _: Manner) -> str:
    if place.type in INTEGERS:
        return f"TRY_CAST({place.sql} AS BIGINT)"
    number = _number(place)
    if number is None:
        return "CAST(NULL AS BIGINT)"
    exact = f"CASE WHEN {number} = floor({number}) AND abs({number}) <= {_EXACT} THEN CAST({number} AS BIGINT) END"
    if place.type in REALS:
        return exact
    text = f"trim({text_of(place)})"
    return f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]{{1,18}}') THEN TRY_CAST({text} AS BIGINT) ELSE {exact} END"


def _page(place: Place, _: Manner) -> str:
    whole = _whole(place, _)
    return f"CASE WHEN {whole} BETWEEN 1 AND 2147483647 THEN {whole} END"


def _millis(place: Place, manner: Manner) -> str:
    number = _number(place)
    if number is None:
        return "CAST(NULL AS BIGINT)"
    factor = NUMBERED[manner.unit]
    return f"CASE WHEN {number} BETWEEN 0 AND 9e12 THEN CAST(round({number} * {factor!r}) AS BIGINT) END"


def _duration(place: Place, manner: Manner) -> str:
    number = f"{_real(place, manner)} * {NUMBERED[manner.unit]!r}"
    return f"CASE WHEN {number} >= 0 THEN {number} END"


def _real(place: Place, _: Manner) -> str:
    number = _number(place)
    return "CAST(NULL AS DOUBLE)" if number is None else f"({_finite(number)})"


def _flag(place: Place, _: Manner) -> str:
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


def _list(place: Place, manner: Manner) -> str:
    """Read a list, a list written as JSON, or items with separators between them; a text without these is one item."""
    if isinstance(place.shape, tuple) and place.shape[0] == "list":
        return f"CAST({place.sql} AS VARCHAR[])"
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR[])"
    json = f"WHEN prefix(ltrim({text}), '[') AND json_valid({text}) THEN from_json({text}, '[\"VARCHAR\"]')"
    empty = f"{text} IS NULL OR trim({text}) IN ('', 'null')"
    nothing = f"WHEN {empty} OR (prefix(ltrim({text}), '{{') AND json_valid({text})) THEN NULL"
    if not manner.loose:
        cut = f"string_split({text}, {literal(manner.separators[0])})" if manner.separators else f"[{text}]"
        return f"CASE {json} {nothing} ELSE {cut} END"
    signs = "".join(manner.separators)
    blank = r"\s" if " " in signs else ""
    between = f"[{blank}{re.escape(signs.replace(' ', ''))}]+"
    edges = f"{literal(signs)} || ' ' || chr(9) || chr(10) || chr(13)"
    bare = rf"trim(regexp_replace({text}, '[\[\]()'']', '', 'g'), {edges})"
    return (
        f"CASE {json} {nothing} WHEN {bare} = '' THEN CAST([] AS VARCHAR[]) "
        f"ELSE string_split_regex({bare}, {literal(between)}) END"
    )


def _numbers(place: Place, manner: Manner) -> str:
    if isinstance(place.shape, tuple) and place.shape[1] in INTEGERS | REALS:
        return f"CAST({place.sql} AS DOUBLE[])"
    number = _finite("TRY_CAST(e AS DOUBLE)")
    return f"list_transform({_list(place, manner)}, lambda e: {number})"


def _filled(place: Place, _: Manner) -> str:
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


_MAKERS: dict[Kind, Callable[[Place, Manner], str]] = {
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
