"""The log's own query attributes: which become columns, and by what names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from judged.online.engine import identifier, literal
from judged.online.log import ATTRIBUTE_LIMIT, EVENT, RAW_EVENT, RAW_QUERY, SERP, SESSION, SHOWN
from judged.online.readers.mapping_file import MappingFile, Section
from judged.online.readers.paths import Place, keys_of, plain
from judged.online.readers.raw import Trouble, run
from judged.online.readers.sections import Select
from judged.online.readers.values import text_of

if TYPE_CHECKING:
    from judged.online.engine import Engine

_TAKEN = frozenset(one.name for table in (RAW_QUERY, RAW_EVENT, SERP, SHOWN, EVENT, SESSION) for one in table)
_LONGEST = 64
_BRACKETS = 500
"""Attributes with more objects and lists inside are not looked at: the database and Python descend into them level by
level, and would run out of stack in those that stand in one another by the thousand."""

_STRUCTURES = 10_000
"""So many different shapes of attributes are looked at, the commonest first."""


@dataclass(frozen=True)
class Attribute:
    """One attribute: its name in the log, and its column."""

    name: str
    column: str

    def sql_in(self, own: Own) -> str:
        """Give the SQL of its value."""
        if self.name in own.columns:
            return f"q.{own.columns[self.name]}"
        if own.as_json:
            value = f"q._own.{identifier(self.name)}"
            return f"CASE WHEN left({value}, 1) IN ('{{', '[') AND json_valid({value}) THEN NULL ELSE {value} END"
        return "CAST(NULL AS VARCHAR)"


@dataclass(frozen=True)
class Own:
    """The attributes of a table: name to column, and the column of the JSON object that holds others."""

    columns: Mapping[str, str]
    as_json: str = ""

    def source(self, table: str, chosen: Sequence[Attribute]) -> str:
        """Give the table, with the chosen members of the object taken out."""
        if not self.as_json or not chosen:
            return table
        wanted = literal(json.dumps({one.name: "VARCHAR" for one in chosen}))
        return f"(SELECT *, from_json({self.as_json}, {wanted}) AS _own FROM {table})"


def own_of(select: Select, section: Section, columns: Mapping[str, Place], *, flat: bool, bare: bool) -> Own:
    """Find all members of the section's object of attributes that it does not name.

    Parameters
    ----------
    flat
        They may be columns of a table.
    bare
        The table holds nothing but queries: where it has no such object, its other columns are attributes.
    """
    if not section.others:
        return Own({})
    known = _known(select.mapping, section.others)
    found: list[tuple[str, Place]] = []
    as_json = ""
    whole = select.places(section.others)
    for place in whole:
        text = text_of(place)
        if isinstance(place.shape, dict):
            names = ((name, Place(f"{place.sql}.{identifier(name)}", shape)) for name, shape in place.shape.items())
            found += [(name, one) for name, one in names if name not in known]
        elif isinstance(place.shape, tuple) and place.shape[0] == "map":
            as_json = f"CAST(to_json({place.sql}) AS VARCHAR)"
        elif text:
            as_json = f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN {text} END"
    if flat:
        found += _flat(select.mapping, section, columns, bare=bare and not whole)
    scalars = [(name, place) for name, place in found if not isinstance(place.shape, (dict, tuple))]
    unique = dict(reversed(scalars))
    return Own({name: select.kept(unique[name].sql) for name, _ in scalars}, as_json and select.kept(as_json))


def _known(mapping: MappingFile, others: str) -> set[str]:
    names = (keys_of(path) for path in mapping.all_paths)
    return {keys[1] for keys in names if keys[0] == others and len(keys) > 1}


def _flat(
    mapping: MappingFile, section: Section, columns: Mapping[str, Place], *, bare: bool
) -> Iterable[tuple[str, Place]]:
    """Give columns named ``query_attributes.x``; and, in a table without that column, all that nothing else names."""
    others = section.others
    paths = [keys_of(path) for path in mapping.all_paths]
    known = _known(mapping, others) | {keys[0] for keys in paths} | set(section.ignored)
    known |= {"_".join(keys[1:]) for keys in paths if keys[0] == others}
    known |= {value.column for one in mapping.sections for value in one.columns.values()}
    taken = set(map(plain, known | ({mapping.base.column} if mapping.base else set())))
    for name, place in columns.items():
        own = name[len(others) + 1 :] if name.lower().startswith((others + ".", others + "_")) else ""
        if own and plain(own) not in taken:
            yield own, place
        elif not own and bare and not name.startswith("#") and plain(name) not in taken:
            yield name, place


def attributes_of(
    tables: Sequence[tuple[str, Own]], mapping: MappingFile, engine: Engine
) -> tuple[tuple[Attribute, ...], tuple[Trouble, ...]]:
    """Choose the attributes that become columns: those with single values, the commonest first.

    Returns
    -------
    attributes, trouble
        At most ATTRIBUTE_LIMIT; and what was left out.
    """
    known = {name for one in mapping.sections if one.others for name in _known(mapping, one.others)}
    counts: Counter[str] = Counter()
    for table, own in tables:
        counts.update(dict.fromkeys(own.columns, 1))
        if own.as_json:
            counts.update(_scalars(table, own.as_json, known, engine))
    chosen: list[Attribute] = []
    left: list[str] = []
    used = {name.lower() for name in (*_TAKEN, *(name for one in mapping.sections for name in one.attributes))}
    seen: set[str] = set()
    for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        column = name if name.lower() not in used else f"attribute_{name}"
        if len(chosen) >= ATTRIBUTE_LIMIT or not _usable(name) or name.lower() in seen or column.lower() in used:
            left.append(name)
            continue
        used.add(column.lower())
        seen.add(name.lower())
        chosen.append(Attribute(name, column))
    return tuple(chosen), _left_out(left, counts)


def _usable(name: str) -> bool:
    return bool(name.strip()) and len(name) <= _LONGEST and name.isprintable()


def _scalars(table: str, column: str, known: set[str], engine: Engine) -> Counter[str]:
    """Count the names that have single values, by the shapes of the JSON objects they stand in."""
    flat = f"strlen({column}) - strlen(translate({column}, '{{[', '')) <= {_BRACKETS}"
    shapes = run(
        engine,
        f"SELECT json_structure({column})::VARCHAR AS shape, count(*) AS n FROM {table} "
        f"WHERE {flat} GROUP BY shape ORDER BY n DESC, shape LIMIT {_STRUCTURES}",
    )
    counts: Counter[str] = Counter()
    for text, rows in shapes:
        shape: Any = json.loads(text) if text else None
        for name, kind in cast("dict[str, Any]", shape).items() if isinstance(shape, dict) else ():
            if isinstance(kind, str) and kind != "NULL" and name not in known:
                counts[name] += rows
    return counts


def _left_out(names: Sequence[str], counts: Counter[str]) -> tuple[Trouble, ...]:
    if not names:
        return ()
    listed = ", ".join(repr(name)[:40] for name in names[:5])
    more = f"{len(names)} query attributes are no columns: {listed}"
    return (Trouble.of("mapping", "attributes-left-out", "query", rows=sum(counts[name] for name in names), more=more),)
