"""The TOML file that says which columns of a log are ours: read, and checked to the last key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError
from judged.online.reading.mapping_path import parsed
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY
from judged.online.tables import ACTIONS

Kind: TypeAlias = Literal["queries", "events"]

RENAMED = {"time": "time_ms", "latency": "latency_ms", "dwell": "dwell_ms"}
"""Columns that a mapping names without their unit, since it says itself what unit the log has."""

_KEPT = frozenset({"file", "row", "record"})
_RESULT = ("object_id", "position", "team", "propensity")
_LISTS = frozenset({"hit_ids", "ranks", "teams", "propensities", "first_rank"})
FORMATS = ("jsonl", "csv", "tsv", "parquet")
NUMBERED = {"seconds": 1000.0, "milliseconds": 1.0, "microseconds": 0.001, "nanoseconds": 0.000001}
"""Units of times and durations, in milliseconds."""


@dataclass(frozen=True)
class Value:
    """Where the value of one column comes from."""

    paths: tuple[str, ...] = ()
    constant: str | None = None
    joined: bool = False
    between: str | None = None
    at: str | None = None
    separator: str | None = None
    format: str = "auto"
    unit: str = "milliseconds"
    equals: tuple[str, ...] = ()
    filled: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Condition:
    """What a row must meet: the value is one of some, none of some, or there at all."""

    path: str
    among: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    filled: bool | None = None


@dataclass(frozen=True)
class Section:
    """One ``[[queries]]`` or ``[[events]]``: which rows, and what of them."""

    kind: Kind
    columns: Mapping[str, Value]
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    where: tuple[Condition, ...] = ()
    files: str = "*"
    results: bool = False
    clicks: bool = False
    each: Value | None = None


@dataclass(frozen=True)
class MappingFile:
    """A whole mapping, checked."""

    path: str
    sections: tuple[Section, ...]
    format: str = ""
    header: bool = True
    names: tuple[str, ...] = ()
    separator: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    null: tuple[str, ...] = ("",)
    rank_base: int | None = None
    actions: Mapping[str, str] = field(default_factory=dict[str, str])


def examples() -> tuple[str, ...]:
    """Name the mappings that come with judged.

    >>> "ga4" in examples(), "snowplow" in examples()
    (True, True)
    """
    folder = resources.files("judged.online.reading") / "examples"
    return tuple(sorted(one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml")))


def mapping_text(mapping: str | Path) -> tuple[str, str]:
    """Give the text of a mapping, and its name: a file, or the name of one that comes with judged.

    Raises
    ------
    InputError
        If it is neither, or is no UTF-8.
    """
    if str(mapping) in examples() and not Path(mapping).exists():
        file = resources.files("judged.online.reading") / "examples" / f"{mapping}.toml"
        return file.read_text(encoding="utf-8"), f"{mapping}.toml"
    fix = f"name a TOML file, or one of those that come with judged: {', '.join(examples())}"
    return read_toml(mapping, fix), str(mapping)


def read_mapping(mapping: str | Path) -> MappingFile:
    """Read a mapping.

    Raises
    ------
    InputError
        If there is none, it is no TOML, or something in it is unknown; the message gives the nearest name, and what
        is possible.
    """
    text, path = mapping_text(mapping)
    return _Checker(path).mapping(parse_toml(text, path))


def nearest(name: str, possible: Iterable[str]) -> str:
    """Write what somebody may have meant.

    >>> nearest("querry", ["query", "user_id"])
    "did you mean 'query'? Possible: query, user_id"
    """
    possible = list(possible)
    close = difflib.get_close_matches(name, possible, 1, 0.5)
    listed = ", ".join(possible[:60]) + (", ..." if len(possible) > 60 else "")
    return (f"did you mean {close[0]!r}? " if close else "") + f"Possible: {listed or 'nothing'}"


def possible_columns(kind: Kind, rows: str = "pages") -> tuple[str, ...]:
    """Name the columns that a section can fill."""
    ours = {long: short for short, long in RENAMED.items()}
    names = [
        ours.get(one.name, one.name) for one in (RAW_QUERY if kind == "queries" else RAW_EVENT) if one.name not in _KEPT
    ]
    if rows == "pages":
        return tuple(names)
    return tuple(name for name in names if name not in _LISTS) + (_RESULT if rows == "results" else ())


def _texts(value: Any) -> tuple[str, ...]:
    many = cast("list[Any]", value if isinstance(value, list) else [value])
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in many)


class _Checker:
    """Turns what TOML says into our types; says where it is wrong."""

    def __init__(self, path: str) -> None:
        self._path = path

    def _wrong(self, problem: str, fix: str) -> InputError:
        return InputError(problem, fix=fix, path=self._path)

    def _table(self, given: Any, where: str, possible: Iterable[str] | None = None) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self._wrong(f"{where} is no table", "write it as a TOML table")
        table = cast("dict[str, Any]", given)
        if possible is not None:
            possible = tuple(possible)
            for key in table:
                if key not in possible:
                    raise self._wrong(f"{where} has an unknown key {key!r}", nearest(key, possible))
        return table

    def _typed(self, given: Any, type: type[Any] | tuple[type[Any], ...], where: str, fix: str) -> Any:
        if not isinstance(given, type):
            raise self._wrong(f"{where} is {given!r}", fix)
        return given

    def _one_of(self, given: Any, possible: Iterable[str], where: str) -> str:
        possible = tuple(possible)
        if given not in possible:
            raise self._wrong(f"{where} is {given!r}", nearest(str(given), possible))
        return str(given)

    def _text_list(self, given: Any, where: str) -> tuple[str, ...]:
        items = cast("list[Any]", given) if isinstance(given, list) else []
        if not isinstance(given, list) or not all(isinstance(one, str) for one in items):
            raise self._wrong(f"{where} is no list of texts", 'write it like ["a", "b"]')
        return tuple(items)

    def mapping(self, given: dict[str, Any]) -> MappingFile:
        table = self._table(given, "the mapping", ("note", "file", "rank_base", "actions", "queries", "events"))
        file = self._table(
            table.get("file", {}), "[file]", ("format", "encoding", "header", "columns", "separator", "quote", "null")
        )
        sections = tuple(self._sections(table, "queries")) + tuple(self._sections(table, "events"))
        if not sections:
            raise self._wrong("the mapping has neither [queries] nor [events]", "say which rows are what")
        base = table.get("rank_base")
        if base not in {None, 0, 1} or isinstance(base, bool):
            raise self._wrong(f"rank_base is {base!r}", "write 0 or 1: the position of the first result")
        by_rank = any(value.at for one in sections for value in one.columns.values())
        if base is None and (by_rank or any(one.results or "ranks" in one.columns for one in sections)):
            problem = "rows = 'results', ranks and at = ... need rank_base"
            raise self._wrong(problem, "write rank_base = 0 or rank_base = 1")
        self._clock(sections)
        return MappingFile(
            path=self._path,
            sections=sections,
            rank_base=base,
            actions=self._actions(table.get("actions", {}), sections),
            **self._file(file),
        )

    def _file(self, file: dict[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        if "format" in file:
            known["format"] = self._one_of(file["format"], FORMATS, "format")
        if "encoding" in file:
            known["encoding"] = self._encoding(self._typed(file["encoding"], str, "encoding", "write a name: cp1252"))
        if "header" in file:
            known["header"] = self._typed(file["header"], bool, "header", "write true or false")
        for key in ("separator", "quote"):
            if key in file:
                known[key] = self._typed(file[key], str, key, "write one character")
                if len(known[key]) > 1 or (key == "separator" and not known[key]):
                    raise self._wrong(f"{key} is {known[key]!r}", "write one character")
        if "null" in file:
            known["null"] = self._text_list(file["null"], "null")
        if "columns" in file:
            known["names"] = self._text_list(file["columns"], "columns")
            if len(set(known["names"])) < len(known["names"]):
                raise self._wrong("columns names one twice", "name each once")
        return known

    def _encoding(self, name: str) -> str:
        """Check that an encoding is known, and writes lines, commas and brackets as ASCII does: lines are cut first."""
        signs = "\n\r\t,;{}[]\"'"
        try:
            as_ascii = signs.encode(name) == signs.encode("ascii")
        except (LookupError, ValueError):
            as_ascii = False
        if not as_ascii:
            fix = "write one such as cp1252 or latin-1, or convert the file to UTF-8"
            raise self._wrong(f"encoding is {name!r}, which is not one of texts that hold ASCII", fix)
        return name

    def _actions(self, given: Any, sections: Iterable[Section]) -> dict[str, str]:
        table = self._table(given, "[actions]")
        constants = {
            one.columns["action"].constant
            for one in sections
            if one.kind == "events" and one.columns["action"].constant
        }
        known = {name: name for name in constants if name in ACTIONS}
        return known | {name: self._one_of(ours, ACTIONS, f"the action {name!r}") for name, ours in table.items()}

    def _clock(self, sections: Iterable[Section]) -> None:
        """Refuse a mixture of clocks and ordinals."""
        formats = {one.columns["time"].format == "order" if "time" in one.columns else None for one in sections}
        if len(formats) > 1 and (True in formats):
            raise self._wrong(
                "some sections have the time format 'order' and some do not", "give all sections the same kind of time"
            )

    def _sections(self, table: dict[str, Any], kind: Kind) -> Iterable[Section]:
        given = table.get(kind, [])
        many = cast("list[Any]", given if isinstance(given, list) else [given])
        for one in many:
            yield self._section(one, kind)

    def _section(self, given: Any, kind: Kind) -> Section:
        keys = (
            ("files", "where", "rows", "columns", "attributes")
            if kind == "queries"
            else ("files", "where", "each", "columns")
        )
        table = self._table(given, f"[{kind}]", keys)
        rows = self._one_of(table.get("rows", "pages"), ("pages", "results", "clicks"), "rows")
        columns = self._values(table.get("columns", {}), f"[{kind}.columns]", possible_columns(kind, rows))
        needed = {"results": ("query_id", "object_id", "position"), "clicks": ("query_id",)}.get(rows, ())
        needed = ("action",) if kind == "events" else needed
        for name in needed:
            if name not in columns:
                raise self._wrong(f"[{kind}.columns] does not say what {name!r} is", f'write {name} = "..."')
        attributes = self._values(table.get("attributes", {}), f"[{kind}.attributes]", None)
        taken = {one.name for one in RAW_QUERY} & set(attributes)
        if taken:
            raise self._wrong(f"the attribute {min(taken)!r} has the name of a column", "call it something else")
        lowered = [name.lower() for name in attributes]
        if len(set(lowered)) < len(lowered):
            raise self._wrong("two attributes differ in case alone", "call one something else")
        each = table.get("each")
        return Section(
            kind=kind,
            columns=columns,
            attributes=attributes,
            where=tuple(
                self._condition(path, value) for path, value in self._table(table.get("where", {}), "where").items()
            ),
            files=self._typed(table.get("files", "*"), str, "files", "write a pattern such as 'clicks*.csv'"),
            results=rows == "results",
            clicks=rows == "clicks",
            each=None if each is None else self._value(each, "each", listed=True),
        )

    def _condition(self, path: str, given: Any) -> Condition:
        if parsed(self._checked(path, "where")).many:
            raise self._wrong(f"where: the path {path!r} gives a list", "compare one value, such as a[0]")
        if not isinstance(given, dict):
            return Condition(path, among=_texts(given))
        table = self._table(cast("Any", given), f"where {path!r}", ("not", "filled"))
        filled = table.get("filled")
        if filled is not None:
            self._typed(filled, bool, f"where {path!r}: filled", "write true or false")
        return Condition(path, out=_texts(table["not"]) if "not" in table else (), filled=filled)

    def _values(self, given: Any, where: str, possible: Iterable[str] | None) -> dict[str, Value]:
        table = self._table(given, where, possible)
        return {
            name: self._value(one, f"{where} {name}", listed=name in _LISTS - {"first_rank"})
            for name, one in table.items()
        }

    def _value(self, given: Any, where: str, *, listed: bool) -> Value:
        value = self._value_of(given, where)
        taken_apart = (listed or value.between is not None or value.at is not None) and not value.joined
        if not taken_apart and any(parsed(path).many for path in value.paths):
            raise self._wrong(f"{where} is one value, and the path gives a list", "write a[0], or between = ' '")
        return value

    def _value_of(self, given: Any, where: str) -> Value:
        if isinstance(given, str):
            return Value(paths=(self._checked(given, where),))
        keys = (
            "path", "any", "join", "value", "at", "between", "separator", "format", "unit", "equals", "filled",
            "optional",
        )  # fmt: skip
        table = self._table(given, where, keys)
        sources = [key for key in ("path", "any", "join", "value") if key in table]
        if len(sources) != 1:
            raise self._wrong(f"{where} does not say from where", "write exactly one of path, any, join and value")
        source = sources[0]
        if source == "value":
            return Value(constant=_texts(table["value"])[0])
        paths = self._text_list([table["path"]] if source == "path" else table[source], f"{where}: {source}")
        if not paths:
            raise self._wrong(f"{where}: {source} is empty", "name at least one path")
        texts = {
            key: self._typed(table[key], str, f"{where}: {key}", "write a text")
            for key in ("between", "separator")
            if key in table
        }
        flags = {
            key: self._typed(table[key], bool, f"{where}: {key}", "write true or false")
            for key in ("filled", "optional")
            if key in table
        }
        return Value(
            paths=tuple(self._checked(path, where) for path in paths),
            joined=source == "join",
            equals=_texts(table["equals"]) if "equals" in table else (),
            format=self._time_format(table.get("format", "auto"), where),
            unit=self._one_of(table.get("unit", "milliseconds"), NUMBERED, f"{where}: unit"),
            at=self._checked(self._typed(table["at"], str, f"{where}: at", "write a path"), where)
            if "at" in table
            else None,
            **texts,
            **flags,
        )

    def _time_format(self, given: Any, where: str) -> str:
        if isinstance(given, str) and "%" in given:
            return given
        possible = ("auto", *NUMBERED, "order")
        if given not in possible:
            raise self._wrong(
                f"{where}: format is {given!r}", f"{nearest(str(given), possible)}, or a pattern such as %Y%m%d%H%M%S"
            )
        return str(given)

    def _checked(self, path: str, where: str) -> str:
        try:
            parsed(path)
        except ValueError as error:
            raise self._wrong(
                f"{where}: the path {path!r} {error}", "write it like a.b, a[], a[0] or a[key=x].b"
            ) from None
        return path
