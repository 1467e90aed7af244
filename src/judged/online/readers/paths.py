"""Paths through records: their syntax, and SQL of the values that they lead to."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from judged.online.engine import identifier, literal


@dataclass(frozen=True)
class PathStep:
    """Step of a path: to a member, to the n-th item, to all items, or to the first item whose member has a value."""

    kind: Literal["key", "item", "all", "match"]
    name: str = ""
    value: str = ""


SPECIAL = ("#row", "#id", "#file", "@index")
"""File and row number of a record, its id in the search index, its file name, and the index of a list item from 0."""

_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_BRACKET = re.compile(r"\[(?:(?P<item>\d{1,9})|(?P<key>[^\]=\[]+)=(?P<value>[^\]]*))?\]")


@cache
def parse_path(path: str) -> tuple[PathStep, ...]:
    """Parse a path into steps. The first step leads to a column, or to a member of the record.

    ``a.b`` is the member b of the member a, ``a[2]`` the third item of a list, ``a[]`` all items, ``a[key=x]`` the
    first item whose member ``key`` is x. A backslash escapes a dot or bracket. ``@`` is an item of the list in
    ``each``.

    Raises
    ------
    ValueError
        If the path is invalid.

    Examples
    --------
    >>> [step.kind for step in parse_path("params[key=term].value.text")]
    ['key', 'match', 'key', 'key']
    >>> [step.name for step in parse_path("@.id")]
    ['@', 'id']
    """
    if path in SPECIAL:
        return (PathStep("key", path),)
    if not path:
        raise ValueError("is empty")
    is_item_path = path.startswith("@")
    text = path[1:].removeprefix(".") if is_item_path else path
    steps = [PathStep("key", "@")] if is_item_path else []
    position = 0
    while position < len(text):
        if bracket := _BRACKET.match(text, position):
            steps.append(_parse_bracket(bracket))
            position = bracket.end()
        elif name := _NAME.match(text, position + 1 if steps and text[position] == "." else position):
            steps.append(PathStep("key", _unescape(name[0])))
            position = name.end()
        else:
            raise ValueError(f"has a syntax error at {text[position:]!r}")
    kinds = [step.kind for step in steps]
    if "all" in kinds and {"all", "match"} & set(kinds[kinds.index("all") + 1 :]):
        raise ValueError("goes through nested lists")
    return tuple(steps)


def is_list_path(path: str) -> bool:
    """Whether a path leads to a list."""
    return any(step.kind == "all" for step in parse_path(path))


def leading_names(path: str) -> tuple[str, ...]:
    """Return the names that a path begins with, up to its first bracket."""
    steps = parse_path(path)
    first_bracket = next((i for i, step in enumerate(steps) if step.kind != "key"), None)
    return tuple(step.name for step in steps[:first_bracket])


def _unescape(text: str) -> str:
    name = re.sub(r"\\(.)", r"\1", text)
    if '"' in name or "\\" in name or "\x00" in name:
        raise ValueError("has a quotation mark or backslash in a name")
    return name


def _parse_bracket(match: re.Match[str]) -> PathStep:
    if match["item"] is not None:
        return PathStep("item", match["item"])
    if match["key"] is not None:
        return PathStep("match", _unescape(match["key"]), match["value"])
    return PathStep("all")


def _extract_sql(json: str, steps: Sequence[PathStep]) -> tuple[str, bool]:
    """Return SQL of the value that steps lead to from JSON, and whether it is a list of JSON."""
    json_path = "$"
    for i, step in enumerate(steps):
        items = f"json_extract({json}, {literal(json_path + '[*]')})"
        if step.kind == "all":
            member = f"json_extract(e, {literal('$' + ''.join(map(_json_path_step, steps[i + 1 :])))})"
            # Without this test a member that is absent would become an empty list.
            is_array = f"json_type(json_extract({json}, {literal(json_path)})) = 'ARRAY'"
            return f"CASE WHEN {is_array} THEN list_transform({items}, lambda e: {member}) END", True
        if step.kind == "match":
            member = f"json_extract_string(e{i}, {literal('$' + _json_path_step(step))})"
            json, json_path = f"list_filter({items}, lambda e{i}: {member} = {literal(step.value)})[1]", "$"
        else:
            json_path += _json_path_step(step)
    return (json if json_path == "$" else f"json_extract({json}, {literal(json_path)})"), False


def _json_path_step(step: PathStep) -> str:
    return f"[{step.name}]" if step.kind == "item" else f'."{step.name}"'


Shape: TypeAlias = "str | dict[str, Shape] | tuple[str, Shape]"
"""A type of DuckDB: a name in lower case, the fields of a struct, ``("list", items)`` or ``("map", values)``."""

_TEXT_TYPES = frozenset({"varchar", "json"})


@dataclass(frozen=True)
class Location:
    """Location of a value in a table.

    Parameters
    ----------
    sql
        SQL of the value.
    shape
        Type of the value.
    level
        Number of parsing layers that the value needs.
    is_parsed
        Whether it comes from JSON, so that it can have any type.
    may_be_object
        Whether it can be an object, because paths lead to members of it, too.
    """

    sql: str
    shape: Shape
    level: int = 0
    is_parsed: bool = False
    may_be_object: bool = False

    @property
    def type(self) -> str:
        """Name of a scalar type; ``nested`` for other types."""
        return self.shape if isinstance(self.shape, str) else "nested"


@dataclass
class _PathNode:
    is_end: bool = False
    children: dict[str, _PathNode] = field(default_factory=lambda: cast("dict[str, _PathNode]", {}))


class LocationFinder:
    """Finder of the values of paths in a table, which also collects the layers of SQL that parse JSON text.

    Parameters
    ----------
    columns
        Location of each column, by name. ``#record`` is the JSON of a record, if there is one.
    paths
        All paths that are needed. JSON text is parsed once for all of them.
    flat
        Names of objects whose members may be columns, with or without the name as a prefix: ``event_attributes`` for
        ``event_attributes.position.ordinal`` and ``position_ordinal``. None: only exact column names match.

    Examples
    --------
    >>> finder = LocationFinder({"a": Location("a", {"b": "bigint"}), "c": Location("c", "varchar")}, ["a.b", "c.d"])
    >>> [location.sql for location in finder.find("a.b") + finder.find("c.d")]
    ['a."b"', '_judged_0."d"']
    """

    def __init__(
        self, columns: Mapping[str, Location], paths: Iterable[str], flat: Collection[str] | None = None
    ) -> None:
        self._columns = dict(columns)
        self._flat: dict[str, Location] = {}
        for name, location in columns.items() if flat is not None else ():
            self._flat.setdefault(normalize_name(name), location)
        self._optional_prefixes = flat or ()
        self._root = path_tree(paths)
        self._parsed: dict[str, Location] = {}
        self._unparsed: dict[str, Location] = {}
        self.layers: list[list[str]] = []

    def find(self, path: str) -> list[Location]:
        """Return the locations of a path. If several have a value, the first applies."""
        # A column name can contain dots, as in flat exports of JSON.
        if path in self._columns and path not in self._root.children:
            return [self._columns[path]]
        steps = parse_path(path)
        names = leading_names(path)
        locations: list[Location] = []
        if names[0] in self._columns:
            locations += self._walk(self._columns[names[0]], self._root.children[names[0]], steps[1:])
        if not locations and "#record" in self._columns and not names[0].startswith("@") and path not in SPECIAL:
            # A struct has no two fields that differ only in case, so the second is extracted from the JSON text.
            locations.append(_extract(self._columns["#record"], steps))
        # A flat table has the whole object in one column, or members of it, or only the value. Shorter names come
        # first.
        for length in range(1, len(names) + 1) if self._flat else ():
            without_prefix = names[1:length] if names[0] in self._optional_prefixes else ()
            for name in ("_".join(names[:length]), "_".join(without_prefix)):
                if name in self._flat and not (length == 1 and names[0] in self._columns):
                    locations += self._walk(self._flat[name], self._node(names[:length]), steps[length:])
        return list({location.sql: location for location in locations}.values())

    def flat_column(self, name: str) -> Location | None:
        """Return the column with a normalized name, if columns may be members of objects."""
        return self._flat.get(name)

    def parsed_table(self, table: str) -> str:
        """Return SQL of the table with all layers of parsed JSON. Call it after all paths were found."""
        for layer in self.layers:
            table = f"(SELECT *, {', '.join(layer)} FROM {table})"
        return table

    def _node(self, names: Sequence[str]) -> _PathNode:
        node = self._root
        for name in names:
            node = node.children.get(name, _PathNode())
        return node

    def _walk(self, start: Location, node: _PathNode, steps: Sequence[PathStep]) -> list[Location]:
        if not steps:
            return [replace(start, may_be_object=bool(node.children))]
        if steps[0].kind != "key":
            return [_extract(start, steps)]
        parent = self._parse(start, node) if start.type in _TEXT_TYPES else start
        name = steps[0].name
        if isinstance(parent.shape, dict):
            if name not in parent.shape:
                return [_extract(self._unparsed[parent.sql], steps)] if parent.sql in self._unparsed else []
            sql, shape = f"{parent.sql}.{identifier(name)}", parent.shape[name]
        elif isinstance(parent.shape, tuple) and parent.shape[0] == "map":
            sql, shape = f"map_extract({parent.sql}, {literal(name)})[1]", parent.shape[1]
        else:
            return []
        child = Location(sql, shape, parent.level, parent.is_parsed)
        return self._walk(child, node.children.get(name, _PathNode()), steps[1:])

    def _parse(self, location: Location, node: _PathNode) -> Location:
        if location.sql not in self._parsed:
            shape = struct_fields(node)
            alias = f"_judged_{len(self._parsed)}"
            while len(self.layers) <= location.level:
                self.layers.append([])
            self.layers[location.level].append(f"{parse_object_sql(location.sql, shape)} AS {alias}")
            self._parsed[location.sql] = Location(alias, shape, location.level + 1, is_parsed=True)
            self._unparsed[alias] = location
        return self._parsed[location.sql]


def _extract(location: Location, steps: Sequence[PathStep]) -> Location:
    """Return the location that steps lead to, by JSON functions of the database instead of a parsed struct."""
    if location.type == "varchar":
        is_json = f"left(ltrim({location.sql}), 1) IN ('{{', '[') AND json_valid({location.sql})"
        json = f"CASE WHEN {is_json} THEN CAST({location.sql} AS JSON) END"
    else:
        json = location.sql if location.type == "json" else f"to_json({location.sql})"
    sql, is_list = _extract_sql(json, steps)
    if is_list:
        texts = f"list_transform({sql}, lambda e: e ->> '$')"
        return Location(texts, ("list", "varchar"), location.level, is_parsed=True)
    return Location(sql, "json", location.level, is_parsed=True)


def parse_object_sql(text: str, shape: Shape) -> str:
    """Return SQL that parses a text into a struct. It is null if the text is not a JSON object."""
    schema = literal(json.dumps(_json_schema(shape)))
    return f"CASE WHEN prefix(ltrim({text}), '{{') AND json_valid({text}) THEN from_json({text}, {schema}) END"


def path_tree(paths: Iterable[str]) -> _PathNode:
    """Build a tree of the leading names of paths."""
    root = _PathNode()
    for path in paths:
        node = root
        for name in leading_names(path):
            node = node.children.setdefault(name, _PathNode())
        node.is_end = True
    return root


def struct_fields(node: _PathNode) -> dict[str, Shape]:
    """Return the fields that JSON is parsed into. A member that is needed as a whole stays text.

    Of names that differ only in case the first is a field. The others and the empty name cannot be fields of a struct.
    """
    first_names = {name.lower(): name for name in reversed(node.children) if name}
    children = ((name, child) for name, child in node.children.items() if first_names.get(name.lower()) == name)
    return {name: "varchar" if child.is_end or not child.children else struct_fields(child) for name, child in children}


def _json_schema(shape: Shape) -> Any:
    return {name: _json_schema(inner) for name, inner in shape.items()} if isinstance(shape, dict) else "VARCHAR"


def normalize_name(name: str) -> str:
    """Return a column name in the form in which names are compared.

    >>> normalize_name("Event_Attributes.position.ordinal ")
    'event_attributes_position_ordinal'
    """
    return re.sub(r"[^0-9a-z]+", "_", name.strip().lower())


def shape_of_type(type: Any) -> Shape:
    """Convert a type of DuckDB's Python interface."""
    name = str(type.id)
    if str(type) == "JSON":
        return "json"
    if name == "struct":
        return {str(field): shape_of_type(inner) for field, inner in type.children}
    if name in {"list", "array"}:
        return "list", shape_of_type(type.children[0][1])
    if name == "map":
        return "map", shape_of_type(dict(type.children)["value"])
    return name
