"""UBI as SQL: a table of records, of whatever shape, turned into our columns, with what could not be read marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from judged.online.engine import identifier, literal
from judged.online.reading.loading import DUCKDB
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY
from judged.online.reading.shapes import Finder, Path, Place, plain
from judged.online.reading.times import WITHOUT_OFFSET, sql_without_offset
from judged.online.reading.ubi_fields import (
    ATTRIBUTES,
    BASES,
    COUNTS,
    DWELL_TIME,
    EVENT_FIELDS,
    KNOWN_ATTRIBUTES,
    KNOWN_COLUMNS,
    OFFSET,
    PAGE_EXITS,
    QUERY_FIELDS,
    Field,
)
from judged.online.reading.values import TEXT_LIMIT, Value, text_of, value_of

Holds: TypeAlias = Literal["records", "query", "event", "mixed"]
"""Lines of both kinds, a table of one kind, or a table whose events are the rows with an action."""

TYPES = {one.name: DUCKDB[one.type] for one in (*RAW_QUERY, *RAW_EVENT)}
EXTRA = (*BASES, COUNTS, DWELL_TIME, OFFSET)
WANTED: tuple[Path, ...] = (
    *(path for one in (*QUERY_FIELDS, *EVENT_FIELDS, *EXTRA) for path in one.paths),
    (ATTRIBUTES,),
    ("query",),
)
"""All places that are looked at; the attributes whole, and the request to OpenSearch, which is JSON inside JSON."""


_NOT_LEFT = f"coalesce(lower(action) NOT IN ({', '.join(map(literal, PAGE_EXITS))}), true)"


@dataclass(frozen=True)
class Records:
    """A table of records, as it is written.

    Parameters
    ----------
    table
        SQL that stands behind FROM.
    holds
        What its rows are.
    columns
        Its columns by name.
    file, row
        SQL of where a row comes from.
    kind
        SQL that gives ``query``, ``event``, or what is wrong with the row; only of records.
    event_id
        SQL of an event's name where the record itself has none.
    whole
        SQL of the hash of a whole record; empty: that of all columns.
    flat
        Parts of structs may be columns of their own.
    """

    table: str
    holds: Holds
    columns: Mapping[str, Place]
    file: str
    row: str
    kind: str = ""
    event_id: str = "NULL"
    whole: str = ""
    flat: bool = True


@dataclass(frozen=True)
class Check:
    """A bit of the column `_bad`: what it says about the row, and when it is set.

    Parameters
    ----------
    rule, column
        What is wrong, with which column.
    mark
        SQL over the record that must hold,
    also
        and SQL over our columns that must hold too.
    """

    rule: str
    column: str
    mark: str
    also: str


@dataclass(frozen=True)
class Reading:
    """How a table of records is read.

    Parameters
    ----------
    sql
        The query.
    columns
        Which of our columns it gives; the others are null.
    checks
        What the bits of the column `_bad` mean.
    attributes
        Columns that are attributes of the log's own: name to column.
    as_json
        Attributes stand in the column `_attributes`, as text.
    costly
        Texts are parsed in it: it is better run once and kept than run whenever a column is needed.
    no_offset
        The times' own type has no offset.
    extras
        Which of `EXTRA` it gives.
    """

    sql: str
    columns: frozenset[str]
    checks: tuple[Check, ...]
    attributes: Mapping[str, str]
    as_json: bool
    costly: bool
    no_offset: bool
    extras: frozenset[str]


def reading_of(records: Records) -> Reading:
    """Write the query that turns records into our columns."""
    finder = Finder(records.columns, WANTED, flat=records.flat)
    fields = {one.name: one for one in _fields(records.holds)}
    places = {name: _places(finder, one) for name, one in fields.items()}
    extra = {one.name: _places(finder, one) for one in EXTRA}
    values = {name: value_of(found, fields[name].kind) for name, found in places.items()}
    values |= {one.name: value_of(extra[one.name], one.kind) for one in EXTRA}
    attributes, as_json = _attributes(records, finder)
    checks = _checks(places, values)
    columns = [f"{records.file} AS file", f"{records.row} AS row", f"{_kind(records, values)} AS _kind"]
    columns += [f"{one.sql} AS {identifier(name)}" for name, one in values.items() if name != "event_id"]
    if "event_id" in values:
        columns.append(f"coalesce({values['event_id'].sql}, {records.event_id}) AS event_id")
    columns.append(f"{records.whole or _hash(place.sql for place in records.columns.values())} AS record")
    columns += [f"CAST({place.sql} AS VARCHAR) AS {identifier(column)}" for column, place in attributes.values()]
    columns += [f"{as_json} AS _attributes"] if as_json else []
    columns += [f"({one.mark}) AS _mark_{at}" for at, one in enumerate(checks)]
    inner = f"SELECT {', '.join(columns)} FROM {finder.source(records.table)} AS _records"
    bits = [f"_mark_{at} AND {one.also}" for at, one in enumerate(checks)]
    return Reading(
        sql=_outer(inner, values, bits, [column for column, _ in attributes.values()], as_json),
        columns=frozenset(name for name, one in values.items() if one.sql != "NULL"),
        checks=tuple(checks),
        attributes={name: column for name, (column, _) in attributes.items()},
        as_json=bool(as_json),
        costly=bool(finder.layers) or any(place.type in {"varchar", "json"} for place in places["time_ms"]),
        no_offset=any(place.type in WITHOUT_OFFSET for place in places["time_ms"]),
        extras=frozenset(name for name, found in extra.items() if found),
    )


def _hash(columns: Iterable[str]) -> str:
    return f"(hash({', '.join(columns)}) >> 1)"


def _fields(holds: Holds) -> Sequence[Field]:
    if holds in {"query", "event"}:
        return QUERY_FIELDS if holds == "query" else EVENT_FIELDS
    return list({one.name: one for one in (*QUERY_FIELDS, *EVENT_FIELDS)}.values())


def _places(finder: Finder, one: Field) -> list[Place]:
    found = [place for path in one.paths for place in finder.find(path)]
    found += [place for name in one.columns if (place := finder.column(name))]
    return list({place.sql: place for place in found}.values())


def _kind(records: Records, values: Mapping[str, Value]) -> str:
    if records.holds == "mixed":
        return f"CASE WHEN {values['action'].sql} IS NULL THEN 'query' ELSE 'event' END"
    return records.kind or f"'{records.holds}'"


def _checks(places: Mapping[str, Sequence[Place]], values: Mapping[str, Value]) -> list[Check]:
    """Say what may be wrong with the values: where nothing can be, nothing is asked, and no column is read for it."""
    checks = [
        Check("odd-time" if name == "time_ms" else "wrong-type", name, one.given, f"{identifier(name)} IS NULL")
        for name, one in values.items()
        if one.given
    ]
    for place in places["time_ms"]:
        text = text_of(place)
        if text and place.type in {"varchar", "json"} and (mark := sql_without_offset(text, "varchar")):
            checks.append(Check("no-offset", "time_ms", mark, "time_ms IS NOT NULL"))
    checks += [
        Check("long-text", "query", f"length({text}) > {TEXT_LIMIT}", "true")
        for place in places["query"]
        if place.parsed and (text := text_of(place))
    ]
    if values["dwell_time"].sql != "NULL" and "action" in values:
        checks.append(Check("dwell-time", "dwell_ms", "true", f"dwell_time IS NOT NULL AND {_NOT_LEFT}"))
    return checks


def _outer(
    inner: str, values: Mapping[str, Value], bits: Sequence[str], attributes: Sequence[str], as_json: str
) -> str:
    """Give all columns of ours, the bits in one number, and what is made from two columns."""
    made = {
        "dwell_ms": f"coalesce(dwell_ms, CASE WHEN NOT {_NOT_LEFT} THEN dwell_time END)",
        "first_rank": 'coalesce(first_rank, CASE WHEN "offset" BETWEEN 0 AND 2000000000 THEN "offset" + 1 END)',
        "page": 'coalesce(page, CASE WHEN size BETWEEN 1 AND 1000000 AND "offset" BETWEEN 0 AND 2000000000 '
        'THEN "offset" // size + 1 END)',
    }  # fmt: skip
    columns = ["CAST(file AS INTEGER) AS file", "CAST(row AS BIGINT) AS row", "_kind"]
    for name, kind in TYPES.items():
        if name in {"file", "row"}:
            continue
        sql = made.get(name, identifier(name)) if name in values or name == "record" else "NULL"
        columns.append(f"CAST({sql} AS {kind}) AS {identifier(name)}")
    columns += [f"CAST({one} AS BIGINT) AS _{one}" for one in ("base", "found")]
    columns += [identifier(one) for one in attributes]
    columns.append("_attributes" if as_json else "CAST(NULL AS VARCHAR) AS _attributes")
    mask = " + ".join(f"CASE WHEN {bit} THEN {1 << at} ELSE 0 END" for at, bit in enumerate(bits))
    columns.append(f"CAST({mask or '0'} AS BIGINT) AS _bad")
    return f"SELECT {', '.join(columns)} FROM ({inner})"


def _attributes(records: Records, finder: Finder) -> tuple[dict[str, tuple[str, Place]], str]:
    """Find the log's own attributes: columns, or the JSON text that holds them."""
    if records.holds == "event":
        return {}, ""
    whole = finder.find((ATTRIBUTES,))
    found: list[tuple[str, Place]] = []
    as_json = ""
    for place in whole:
        text = text_of(place)
        if isinstance(place.shape, dict):
            names = ((name, Place(f"{place.sql}.{identifier(name)}", shape)) for name, shape in place.shape.items())
            found += [(name, one) for name, one in names if name not in KNOWN_ATTRIBUTES]
        elif isinstance(place.shape, tuple) and place.shape[0] == "map":
            as_json = f"CAST(to_json({place.sql}) AS VARCHAR)"
        elif text:
            as_json = f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN {text} END"
    if records.flat:
        found += _flat_attributes(records, bare=not whole)
    scalars = [(name, place) for name, place in found if not isinstance(place.shape, (dict, tuple))]
    unique = dict(reversed(scalars))
    return {name: (f"_attribute_{at}", unique[name]) for at, name in enumerate(dict(scalars))}, as_json


def _flat_attributes(records: Records, *, bare: bool) -> list[tuple[str, Place]]:
    """Give columns named ``query_attributes.x``; and, in a table of queries without that column, the unknown ones."""
    found: list[tuple[str, Place]] = []
    known = {plain(one) for one in KNOWN_ATTRIBUTES | KNOWN_COLUMNS}
    flat = {plain(name.partition(".")[2]) for name in KNOWN_ATTRIBUTES} | known
    flat |= {"_".join(path[1:]) for one in (*QUERY_FIELDS, *BASES) for path in one.paths if path[0] == ATTRIBUTES}
    flat |= {name for one in QUERY_FIELDS for name in one.columns}
    for name, place in records.columns.items():
        own = name[len(ATTRIBUTES) + 1 :] if name.lower().startswith((ATTRIBUTES + ".", ATTRIBUTES + "_")) else ""
        if own and plain(own) not in flat:
            found.append((own, place))
        elif not own and bare and records.holds == "query" and plain(name) not in flat:
            found.append((name, place))
    return found
