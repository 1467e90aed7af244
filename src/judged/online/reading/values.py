"""Values of a log as the types of our columns: SQL that gives null for what is no such value, and says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judged.online.reading.shapes import Place
from judged.online.reading.times import INTEGERS, REALS, sql_time

Kind: TypeAlias = Literal[
    "word", "text", "time", "whole", "page", "millis", "seconds", "real", "flag", "list", "numbers", "filled"
]
"""``word``: an id or name. ``text``: what a user typed. ``filled``: whether a list or object has anything in it."""

TEXT_LIMIT = 10_000
"""So many characters of a query's text are kept: a longer one is no search, and texts are compared with each other."""

_EXACT = 2**53
_NESTED = frozenset({"list", "map"})


@dataclass(frozen=True)
class Value:
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


def value_of(places: Sequence[Place], kind: Kind) -> Value:
    """Give the value of a column from the places where it may stand: the first that holds a usable one.

    >>> value_of([], "whole").sql
    'NULL'
    """
    made = [(place, _MAKERS[kind](place)) for place in places]
    if not made:
        return Value("NULL")
    sql = ", ".join(sql for _, sql in made)
    doubtful = [f"({_given(place, kind)})" for place, _ in made if _may_fail(place, kind)]
    return Value(f"coalesce({sql})" if len(made) > 1 else sql, f"({' OR '.join(doubtful)})" if doubtful else None)


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
    if kind == "time":
        return True
    if kind in {"list", "numbers"}:
        return not isinstance(place.shape, tuple)
    sound: dict[str, bool] = {
        "whole": place.type in INTEGERS,
        "millis": place.type in INTEGERS,
        "flag": place.type == "boolean",
        "filled": True,
    }
    return not sound.get(kind, place.type in INTEGERS and kind in {"real", "seconds"})


def _given(place: Place, kind: Kind) -> str:
    text = text_of(place)
    if text is None or place.type not in {"varchar", "json"}:
        return f"{place.sql} IS NOT NULL"
    if kind == "word":  # all texts are words, but for what is no single value
        return f"prefix({text}, '[')" if place.container else f"prefix({text}, '{{') OR prefix({text}, '[')"
    return f"{text} <> ''" + (f" AND NOT prefix({text}, '{{')" if place.container else "")


def _word(place: Place) -> str:
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR)"
    if place.parsed or place.type == "json":
        nested = f"(prefix({text}, '{{') OR prefix({text}, '[')) AND json_valid({text})"
        return f"CASE WHEN {nested} THEN NULL ELSE nullif({text}, '') END"
    return f"nullif({text}, '')"


def _text(place: Place) -> str:
    text = text_of(place)
    return "CAST(NULL AS VARCHAR)" if text is None else f"left({text}, {TEXT_LIMIT})"


def _time(place: Place) -> str:
    return sql_time(text_of(place) or "NULL", "varchar") if place.type == "json" else sql_time(place.sql, place.type)


def _number(place: Place) -> str | None:
    """Give a number as DOUBLE; null where it is none."""
    if place.type in INTEGERS or place.type in REALS:
        return f"CAST({place.sql} AS DOUBLE)"
    if place.type in {"varchar", "json"}:
        return f"TRY_CAST({text_of(place)} AS DOUBLE)"
    return None


def _whole(place: Place) -> str:
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


def _page(place: Place) -> str:
    whole = _whole(place)
    return f"CASE WHEN {whole} BETWEEN 1 AND 2147483647 THEN {whole} END"


def _millis(place: Place, factor: int = 1) -> str:
    number = _number(place)
    if number is None:
        return "CAST(NULL AS BIGINT)"
    return f"CASE WHEN abs({number}) <= 9e12 THEN CAST(round({number} * {factor}) AS BIGINT) END"


def _seconds(place: Place) -> str:
    return _millis(place, 1000)


def _real(place: Place) -> str:
    number = _number(place)
    return "CAST(NULL AS DOUBLE)" if number is None else f"CASE WHEN isfinite({number}) THEN {number} END"


def _flag(place: Place) -> str:
    if place.type == "boolean":
        return place.sql
    if place.type in INTEGERS or place.type in REALS:
        return f"CASE WHEN {place.sql} = 1 THEN true WHEN {place.sql} = 0 THEN false END"
    text = text_of(place)
    if text is None:
        return "CAST(NULL AS BOOLEAN)"
    text = f"lower(trim({text}))"
    return f"CASE WHEN {text} IN ('true', '1', 'yes') THEN true WHEN {text} IN ('false', '0', 'no') THEN false END"


def _list(place: Place) -> str:
    """Read a list, a list written as JSON, or ids with commas, semicolons, bars or blanks between them."""
    if isinstance(place.shape, tuple) and place.shape[0] == "list":
        return f"CAST({place.sql} AS VARCHAR[])"
    text = f"CAST({place.sql} AS VARCHAR)" if place.type == "json" else text_of(place)
    if text is None:
        return "CAST(NULL AS VARCHAR[])"
    bare = rf"trim(regexp_replace({text}, '[\[\]()''" "]', '', 'g'), ' ,;|' || chr(9) || chr(10) || chr(13))"
    return (
        f"CASE WHEN prefix(ltrim({text}), '[') AND json_valid({text}) THEN from_json({text}, '[\"VARCHAR\"]') "
        f"WHEN trim({text}) IN ('', 'null') OR prefix(ltrim({text}), '{{') THEN NULL "
        f"WHEN {bare} = '' THEN CAST([] AS VARCHAR[]) "
        rf"ELSE string_split_regex({bare}, '[\s,;|]+') END"
    )


def _numbers(place: Place) -> str:
    if isinstance(place.shape, tuple) or place.type not in {"varchar", "json"}:
        return f"TRY_CAST({_list(place)} AS DOUBLE[])"
    text = f"CAST({place.sql} AS VARCHAR)"
    listed = f"CASE WHEN prefix(ltrim({text}), '[') AND json_valid({text}) THEN from_json({text}, '[\"DOUBLE\"]') END"
    return f"coalesce({listed}, TRY_CAST({_list(place)} AS DOUBLE[]))"


def _filled(place: Place) -> str:
    if place.type == "boolean":
        return place.sql
    if isinstance(place.shape, dict):
        parts = " OR ".join(f'{place.sql}."{name.replace(chr(34), chr(34) * 2)}" IS NOT NULL' for name in place.shape)
        return f"CASE WHEN {place.sql} IS NOT NULL THEN ({parts or 'false'}) END"
    if isinstance(place.shape, tuple):
        return f"(len({place.sql}) > 0)" if place.shape[0] == "list" else f"(cardinality({place.sql}) > 0)"
    text = f"CAST({place.sql} AS VARCHAR)"
    empty = "('', '{}', '[]', 'null', 'false', '0')"
    return f"(lower(regexp_replace({text}, '\\s', '', 'g')) NOT IN {empty})"


_MAKERS: dict[Kind, Callable[[Place], str]] = {
    "word": _word,
    "text": _text,
    "time": _time,
    "whole": _whole,
    "page": _page,
    "millis": _millis,
    "seconds": _seconds,
    "real": _real,
    "flag": _flag,
    "list": _list,
    "numbers": _numbers,
    "filled": _filled,
}
