"""Where a value stands in a record: in structs, maps, JSON text or flat columns, as SQL over the record's table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from judged.online.engine import identifier, literal

Shape: TypeAlias = "str | dict[str, Shape] | tuple[str, Shape]"
"""A type of DuckDB: a name in lower case, a struct's fields, or ``("list", inner)`` and ``("map", of the values)``."""

Path: TypeAlias = tuple[str, ...]
_TEXTS = frozenset({"varchar", "json"})


@dataclass(frozen=True)
class Place:
    """A value within reach of a query.

    Parameters
    ----------
    sql
        The value.
    shape
        Its type.
    level
        How many layers of parsing it needs below it.
    parsed
        It was taken out of JSON, where anything may stand.
    container
        An object may rightly stand here too: its parts are looked for as well.
    """

    sql: str
    shape: Shape
    level: int = 0
    parsed: bool = False
    container: bool = False

    @property
    def type(self) -> str:
        """The name of a single value's type; ``nested`` for all others."""
        return self.shape if isinstance(self.shape, str) else "nested"


@dataclass
class _Node:
    wanted: bool = False
    inner: dict[str, _Node] = field(default_factory=lambda: cast("dict[str, _Node]", {}))


class Finder:
    """Finds the places of values in the columns of a table, and the layers of SQL that parse what is JSON text.

    Parameters
    ----------
    columns
        Each column's place, by name.
    wanted
        All paths that will be asked for: JSON text is parsed once for all of them.
    flat
        Paths may also be columns: ``event_attributes.position.ordinal``, ``position_ordinal``.

    Examples
    --------
    >>> finder = Finder({"a": Place("a", {"b": "bigint"}), "c": Place("c", "varchar")}, [("a", "b"), ("c", "d")])
    >>> [place.sql for place in finder.find(("a", "b")) + finder.find(("c", "d"))]
    ['a."b"', '_judged_0."d"']
    """

    def __init__(self, columns: Mapping[str, Place], wanted: Iterable[Path], *, flat: bool = False) -> None:
        self._columns = dict(columns)
        self._flat: dict[str, Place] = {}
        for name, place in columns.items() if flat else ():
            self._flat.setdefault(plain(name), place)
        self._root = tree(wanted)
        self._parsed: dict[str, Place] = {}
        self.layers: list[list[str]] = []

    def find(self, path: Path) -> list[Place]:
        """Give the places of a path, the one that is to be believed first in front."""
        found: list[Place] = []
        if path[0] in self._columns:
            found += self._walk(self._columns[path[0]], self._root.inner[path[0]], path[1:])
        for cut in range(1, len(path) + 1) if self._flat else ():
            shorter = path[1:cut] if path[0] in {"event_attributes", "query_attributes"} else ()
            for name in ("_".join(path[:cut]), "_".join(shorter)):
                if name in self._flat and not (cut == 1 and path[0] in self._columns):
                    found += self._walk(self._flat[name], self._node(path[:cut]), path[cut:])
        return list({place.sql: place for place in found}.values())

    def column(self, name: str) -> Place | None:
        """Give a flat column."""
        return self._flat.get(name)

    def source(self, table: str) -> str:
        """Give the table with what was parsed, layer on layer: to be asked when all paths were found."""
        for layer in self.layers:
            table = f"(SELECT *, {', '.join(layer)} FROM {table})"
        return table

    def _node(self, path: Path) -> _Node:
        node = self._root
        for name in path:
            node = node.inner.get(name, _Node())
        return node

    def _walk(self, place: Place, node: _Node, rest: Path) -> list[Place]:
        if not rest:
            container = bool(node.inner)
            return [Place(place.sql, place.shape, place.level, place.parsed, container)]
        if place.type in _TEXTS:
            place = self._parse(place, node)
        if isinstance(place.shape, dict):
            if rest[0] not in place.shape:
                return []
            sql, shape = f"{place.sql}.{identifier(rest[0])}", place.shape[rest[0]]
        elif isinstance(place.shape, tuple) and place.shape[0] == "map":
            sql, shape = f"map_extract({place.sql}, {literal(rest[0])})[1]", place.shape[1]
        else:
            return []
        return self._walk(Place(sql, shape, place.level, place.parsed), node.inner.get(rest[0], _Node()), rest[1:])

    def _parse(self, place: Place, node: _Node) -> Place:
        if place.sql not in self._parsed:
            shape = structure(node)
            alias = f"_judged_{len(self._parsed)}"
            while len(self.layers) <= place.level:
                self.layers.append([])
            self.layers[place.level].append(f"{object_of(place.sql, shape)} AS {alias}")
            self._parsed[place.sql] = Place(alias, shape, place.level + 1, parsed=True)
        return self._parsed[place.sql]


def object_of(text: str, shape: Shape) -> str:
    """Write the parsing of a text into a struct: null where it is no JSON object."""
    wanted = literal(json.dumps(_names(shape)))
    return f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN from_json({text}, {wanted}) END"


def tree(wanted: Iterable[Path]) -> _Node:
    """Put paths into a tree."""
    root = _Node()
    for path in wanted:
        node = root
        for name in path:
            node = node.inner.setdefault(name, _Node())
        node.wanted = True
    return root


def structure(node: _Node) -> dict[str, Shape]:
    """Give the shape that JSON is parsed into: what is wanted whole stays text, and is parsed again where need be."""
    return {name: "varchar" if one.wanted or not one.inner else structure(one) for name, one in node.inner.items()}


def _names(shape: Shape) -> Any:
    return {name: _names(one) for name, one in shape.items()} if isinstance(shape, dict) else "VARCHAR"


def plain(name: str) -> str:
    """Give a column's name in the form that flat names are compared in.

    >>> plain("Event_Attributes.position.ordinal ")
    'event_attributes_position_ordinal'
    """
    return re.sub(r"[^0-9a-z]+", "_", name.strip().lower())


def shape_of(type: Any) -> Shape:
    """Give the shape of a type that DuckDB's Python interface describes."""
    name = str(type.id)
    if str(type) == "JSON":
        return "json"
    if name == "struct":
        return {str(field): shape_of(inner) for field, inner in type.children}
    if name in {"list", "array"}:
        return "list", shape_of(type.children[0][1])
    if name == "map":
        return "map", shape_of(dict(type.children)["value"])
    return name
