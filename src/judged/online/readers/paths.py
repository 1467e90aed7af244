"""Where values are: paths through records, and the SQL of what stands there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from judged.online.engine import identifier, literal


@dataclass(frozen=True)
class Step:
    """One step of a path: to a member, to the n-th item, to all items, or to the item with a member of some value."""

    kind: Literal["key", "item", "all", "having"]
    name: str = ""
    value: str = ""


SPECIAL = ("#row", "#id", "#file", "@index")
"""The record's own name, its id in the index, the name of its file, and the number of an item from 0."""

_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_BRACKET = re.compile(r"\[(?:(?P<item>\d{1,9})|(?P<key>[^\]=\[]+)=(?P<value>[^\]]*))?\]")


@cache
def parsed(path: str) -> tuple[Step, ...]:
    """Understand a path: its steps, the first of them to a column or a member of the record.

    ``a.b`` is the member b of the member a; ``a[2]`` the third item of a list, ``a[]`` all of them, ``a[key=x]`` the
    first whose member ``key`` is x. A backslash before a dot or bracket takes away its meaning. ``@`` is what an
    ``each`` goes through.

    Raises
    ------
    ValueError
        If it makes no sense.

    Examples
    --------
    >>> [step.kind for step in parsed("params[key=term].value.text")]
    ['key', 'having', 'key', 'key']
    >>> [step.name for step in parsed("@.id")]
    ['@', 'id']
    """
    if path in SPECIAL:
        return (Step("key", path),)
    if not path:
        raise ValueError("is empty")
    item = path.startswith("@")
    rest = path[1:].removeprefix(".") if item else path
    steps = [Step("key", "@")] if item else []
    at = 0
    while at < len(rest):
        if bracket := _BRACKET.match(rest, at):
            steps.append(_bracket(bracket))
            at = bracket.end()
        elif name := _NAME.match(rest, at + 1 if steps and rest[at] == "." else at):
            steps.append(Step("key", _named(name[0])))
            at = name.end()
        else:
            raise ValueError(f"cannot be understood at {rest[at:]!r}")
    kinds = [step.kind for step in steps]
    if "all" in kinds and {"all", "having"} & set(kinds[kinds.index("all") + 1 :]):
        raise ValueError("goes through lists in lists")
    return tuple(steps)


def is_many(path: str) -> bool:
    """Say whether a path gives a list."""
    return any(step.kind == "all" for step in parsed(path))


def keys_of(path: str) -> tuple[str, ...]:
    """Give the names that a path begins with, up to its first bracket."""
    steps = parsed(path)
    return tuple(step.name for step in steps[: next((n for n, one in enumerate(steps) if one.kind != "key"), None)])


def _named(text: str) -> str:
    name = re.sub(r"\\(.)", r"\1", text)
    if '"' in name or "\\" in name or "\x00" in name:
        raise ValueError("has a quotation mark or backslash in a name")
    return name


def _bracket(match: re.Match[str]) -> Step:
    if match["item"] is not None:
        return Step("item", match["item"])
    if match["key"] is not None:
        return Step("having", _named(match["key"]), match["value"])
    return Step("all")


def followed(json: str, steps: Sequence[Step]) -> tuple[str, bool]:
    """Write the SQL of what steps lead to from JSON, and whether that is a list of JSON."""
    inside = "$"
    for number, step in enumerate(steps):
        items = f"json_extract({json}, {literal(inside + '[*]')})"
        if step.kind == "all":
            rest = f"json_extract(e, {literal('$' + ''.join(map(_inside, steps[number + 1 :])))})"
            there = f"json_type(json_extract({json}, {literal(inside)})) = 'ARRAY'"
            return f"CASE WHEN {there} THEN list_transform({items}, lambda e: {rest}) END", True  # absent is not empty
        if step.kind == "having":
            member = f"json_extract_string(e{number}, {literal('$' + _inside(step))})"
            json, inside = f"list_filter({items}, lambda e{number}: {member} = {literal(step.value)})[1]", "$"
        else:
            inside += _inside(step)
    return (json if inside == "$" else f"json_extract({json}, {literal(inside)})"), False


def _inside(step: Step) -> str:
    return f"[{step.name}]" if step.kind == "item" else f'."{step.name}"'


Shape: TypeAlias = "str | dict[str, Shape] | tuple[str, Shape]"
"""A type of DuckDB: a name in lower case, a struct's fields, or ``("list", inner)`` and ``("map", of the values)``."""

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
        Each column's place, by name; ``#record`` is the JSON that all others come from, where there is such.
    wanted
        All paths that will be asked for: JSON text is parsed once for all of them.
    flat
        Names of objects whose parts may be columns, with them in front or without: ``event_attributes`` for
        ``event_attributes.position.ordinal`` and ``position_ordinal``. None: a column is known by its own name alone.

    Examples
    --------
    >>> finder = Finder({"a": Place("a", {"b": "bigint"}), "c": Place("c", "varchar")}, ["a.b", "c.d"])
    >>> [place.sql for place in finder.find("a.b") + finder.find("c.d")]
    ['a."b"', '_judged_0."d"']
    """

    def __init__(
        self, columns: Mapping[str, Place], wanted: Iterable[str], flat: Collection[str] | None = None
    ) -> None:
        self._columns = dict(columns)
        self._flat: dict[str, Place] = {}
        for name, place in columns.items() if flat is not None else ():
            self._flat.setdefault(plain(name), place)
        self._left_out = flat or ()
        self._root = tree(wanted)
        self._parsed: dict[str, Place] = {}
        self._texts: dict[str, Place] = {}
        self.layers: list[list[str]] = []

    def find(self, path: str) -> list[Place]:
        """Give the places of a path, the one that is to be believed first in front."""
        if path in self._columns and path not in self._root.inner:
            return [self._columns[path]]
        steps = parsed(path)
        names = keys_of(path)
        found: list[Place] = []
        if names[0] in self._columns:
            found += self._walk(self._columns[names[0]], self._root.inner[names[0]], steps[1:])
        if not found and "#record" in self._columns and not names[0].startswith("@") and path not in SPECIAL:
            found.append(_within(self._columns["#record"], steps))  # names that differ in case alone
        for cut in range(1, len(names) + 1) if self._flat else ():
            shorter = names[1:cut] if names[0] in self._left_out else ()
            for name in ("_".join(names[:cut]), "_".join(shorter)):
                if name in self._flat and not (cut == 1 and names[0] in self._columns):
                    found += self._walk(self._flat[name], self._node(names[:cut]), steps[cut:])
        return list({place.sql: place for place in found}.values())

    def column(self, name: str) -> Place | None:
        """Give a flat column."""
        return self._flat.get(name)

    def source(self, table: str) -> str:
        """Give the table with what was parsed, layer on layer: to be asked when all paths were found."""
        for layer in self.layers:
            table = f"(SELECT *, {', '.join(layer)} FROM {table})"
        return table

    def _node(self, names: Sequence[str]) -> _Node:
        node = self._root
        for name in names:
            node = node.inner.get(name, _Node())
        return node

    def _walk(self, place: Place, node: _Node, rest: Sequence[Step]) -> list[Place]:
        if not rest:
            return [replace(place, container=bool(node.inner))]
        if rest[0].kind != "key":
            return [_within(place, rest)]
        if place.type in _TEXTS:
            place = self._parse(place, node)
        name = rest[0].name
        if isinstance(place.shape, dict):
            if name not in place.shape:
                return [_within(self._texts[place.sql], rest)] if place.sql in self._texts else []
            sql, shape = f"{place.sql}.{identifier(name)}", place.shape[name]
        elif isinstance(place.shape, tuple) and place.shape[0] == "map":
            sql, shape = f"map_extract({place.sql}, {literal(name)})[1]", place.shape[1]
        else:
            return []
        return self._walk(Place(sql, shape, place.level, place.parsed), node.inner.get(name, _Node()), rest[1:])

    def _parse(self, place: Place, node: _Node) -> Place:
        if place.sql not in self._parsed:
            shape = structure(node)
            alias = f"_judged_{len(self._parsed)}"
            while len(self.layers) <= place.level:
                self.layers.append([])
            self.layers[place.level].append(f"{object_of(place.sql, shape)} AS {alias}")
            self._parsed[place.sql] = Place(alias, shape, place.level + 1, parsed=True)
            self._texts[alias] = place
        return self._parsed[place.sql]


def _within(place: Place, steps: Sequence[Step]) -> Place:
    """Follow steps with the database's functions of JSON: through lists, and where names differ in case alone."""
    if place.type == "varchar":
        start = f"left(ltrim({place.sql}), 1) IN ('{{', '[') AND json_valid({place.sql})"
        json = f"CASE WHEN {start} THEN CAST({place.sql} AS JSON) END"
    else:
        json = place.sql if place.type == "json" else f"to_json({place.sql})"
    sql, many = followed(json, steps)
    if many:
        return Place(f"list_transform({sql}, lambda e: e ->> '$')", ("list", "varchar"), place.level, parsed=True)
    return Place(sql, "json", place.level, parsed=True)


def object_of(text: str, shape: Shape) -> str:
    """Write the parsing of a text into a struct: null where it is no JSON object."""
    wanted = literal(json.dumps(_names(shape)))
    return f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN from_json({text}, {wanted}) END"


def tree(wanted: Iterable[str]) -> _Node:
    """Put paths into a tree, up to where each goes into a list."""
    root = _Node()
    for path in wanted:
        node = root
        for name in keys_of(path):
            node = node.inner.setdefault(name, _Node())
        node.wanted = True
    return root


def structure(node: _Node) -> dict[str, Shape]:
    """Give the shape that JSON is parsed into: what is wanted whole stays text, and is parsed again where need be.

    Of names that differ in case alone the first is in it: the others, and the empty name, are no fields of a struct.
    """
    inner = {name.lower(): name for name in reversed(node.inner) if name}
    names = ((name, one) for name, one in node.inner.items() if inner.get(name.lower()) == name)
    return {name: "varchar" if one.wanted or not one.inner else structure(one) for name, one in names}


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
