"""The log's own query attributes: which become columns, and by what names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from judged.online.engine import identifier
from judged.online.reading.loading import run
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY, Trouble
from judged.online.reading.ubi_fields import KNOWN_ATTRIBUTES
from judged.online.reading.ubi_sql import Reading
from judged.online.tables import ATTRIBUTE_LIMIT, EVENT, SERP, SESSION, SHOWN

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

    def sql_in(self, reading: Reading) -> str:
        """Give the SQL of its value."""
        if self.name in reading.attributes:
            return f"q.{identifier(reading.attributes[self.name])}"
        if reading.as_json:
            value = f"q._own.{identifier(self.name)}"
            return f"CASE WHEN left({value}, 1) IN ('{{', '[') AND json_valid({value}) THEN NULL ELSE {value} END"
        return "CAST(NULL AS VARCHAR)"


def attributes_of(
    stages: Sequence[tuple[str, Reading]], engine: Engine
) -> tuple[tuple[Attribute, ...], tuple[Trouble, ...]]:
    """Choose the attributes that become columns: those with single values, the commonest first.

    Returns
    -------
    attributes, trouble
        At most ATTRIBUTE_LIMIT; and what was left out.
    """
    counts: Counter[str] = Counter()
    for table, reading in stages:
        counts.update(dict.fromkeys(reading.attributes, 1))
        if reading.as_json:
            counts.update(_scalars(table, engine))
    chosen: list[Attribute] = []
    left: list[str] = []
    used = {name.lower() for name in _TAKEN}
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


def _scalars(table: str, engine: Engine) -> Counter[str]:
    """Count the names that have single values, by the shapes of the JSON objects they stand in."""
    flat = f"strlen(_attributes) - strlen(translate(_attributes, '{{[', '')) <= {_BRACKETS}"
    shapes = run(
        engine,
        f"SELECT json_structure(_attributes)::VARCHAR AS shape, count(*) AS n FROM {table} "
        f"WHERE _kind = 'query' AND {flat} GROUP BY shape ORDER BY n DESC, shape LIMIT {_STRUCTURES}",
    )
    counts: Counter[str] = Counter()
    for text, rows in shapes:
        shape: Any = json.loads(text) if text else None
        for name, kind in cast("dict[str, Any]", shape).items() if isinstance(shape, dict) else ():
            if isinstance(kind, str) and kind != "NULL" and name not in KNOWN_ATTRIBUTES:
                counts[name] += rows
    return counts


def _left_out(names: Sequence[str], counts: Counter[str]) -> tuple[Trouble, ...]:
    if not names:
        return ()
    listed = ", ".join(repr(name)[:40] for name in names[:5])
    return (
        Trouble(
            "attributes-left-out",
            "query",
            sum(counts[name] for name in names),
            lost=False,
            problem=f"{len(names)} query attributes are no columns: {listed}",
            fix=f"use at most {ATTRIBUTE_LIMIT}, with short names that differ in more than their case",
        ),
    )
