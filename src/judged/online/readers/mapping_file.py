"""The TOML file that says which columns of a log are ours: read, and checked to the last key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError
from judged.online.log import ACTIONS, CONVENTIONS, RAW_EVENT, RAW_QUERY
from judged.online.readers.paths import is_many, keys_of
from judged.online.readers.values import NUMBERED
from judged.results.types import cached_property

Kind: TypeAlias = Literal["queries", "events"]

RENAMED = {"time": "time_ms", "latency": "latency_ms", "dwell": "dwell_ms"}
"""Columns that a mapping names without their unit, since it says itself what unit the log has."""

BESIDE = {"queries": ("offset",), "events": ("n_total",)}
"""What a section may say that is no column: results passed over before the page; results found, as an event says it."""

_KEPT = frozenset({"file", "row", "record"})
_RESULT = ("object_id", "position", "team", "propensity")
_LISTS = frozenset({"hit_ids", "ranks", "teams", "propensities", "first_rank"})
FORMATS = ("jsonl", "csv", "tsv", "parquet")


@dataclass(frozen=True)
class Condition:
    """What a row must meet: the value is one of some, none of some, there at all, or a number within bounds."""

    path: str
    among: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    filled: bool | None = None
    above: float | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Value:
    """Where the value of one column comes from."""

    paths: tuple[str, ...] = ()
    alternatives: tuple[Value, ...] = ()
    constant: str | None = None
    joined: bool = False
    between: str | None = None
    at: str | None = None
    separators: tuple[str, ...] = ()
    loose: bool = False  # several separators are possible, and brackets around the items
    format: str = "auto"
    unit: str = "milliseconds"
    equals: tuple[str, ...] = ()
    filled: bool = False
    column: str = ""
    when: tuple[Condition, ...] = ()
    note: str = ""  # what to say where `when` is not met
    optional: bool = False
    expected: bool = False

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """Every path that is looked at."""
        inner = [path for one in self.alternatives for path in one.all_paths]
        return (*self.paths, *inner, *([self.at] if self.at else []), *(one.path for one in self.when))


@dataclass(frozen=True)
class Section:
    """One ``[[queries]]`` or ``[[events]]``: which rows, and what of them."""

    kind: Kind
    columns: Mapping[str, Value]
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    others: str = ""  # all other members of this object are attributes
    ignored: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    files: str = "*"
    index: str = ""
    has: tuple[str, ...] = ()
    or_has: tuple[str, ...] = ()
    results: bool = False
    clicks: bool = False
    each: Value | None = None

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """Every path that is looked at."""
        values = [*self.columns.values(), *self.attributes.values(), *([self.each] if self.each else [])]
        paths = [path for one in values for path in one.all_paths] + [one.path for one in self.where]
        return (*paths, *self.has, *self.or_has, *([self.others] if self.others else []))


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
    flat: tuple[str, ...] | None = None
    ragged: bool = False
    json: tuple[str, ...] = ()  # members that are JSON written as text
    must: tuple[Condition, ...] = ()
    rank_base: int | None = None
    base: Value | None = None  # the log says it itself
    convention: str = ""  # of propensities: one of CONVENTIONS
    logged_convention: Value | None = None  # where the log declares it itself
    actions: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """Every path that is looked at."""
        paths = [path for one in self.sections for path in one.all_paths] + [one.path for one in self.must]
        logged = [path for value in (self.base, self.logged_convention) if value for path in value.all_paths]
        return (*paths, *self.json, *logged)


def packaged() -> tuple[str, ...]:
    """Name the mappings that come with judged.

    >>> "ga4" in packaged(), "ubi" in packaged()
    (True, True)
    """
    folder = resources.files("judged.online.readers") / "mappings"
    return tuple(sorted(one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml")))


def mapping_text(mapping: str | Path, *, packaged_alone: bool = False) -> tuple[str, str]:
    """Give the text of a mapping, and its name: a file, or the name of one that comes with judged.

    Raises
    ------
    InputError
        If it is neither, or is no UTF-8.
    """
    if str(mapping) in packaged() and (packaged_alone or not Path(mapping).exists()):
        file = resources.files("judged.online.readers") / "mappings" / f"{mapping}.toml"
        return file.read_text(encoding="utf-8"), f"{mapping}.toml"
    fix = f"name a TOML file, or one of those that come with judged: {', '.join(packaged())}"
    return read_toml(mapping, fix), str(mapping)


def read_mapping(mapping: str | Path, *, packaged_alone: bool = False) -> MappingFile:
    """Read a mapping.

    Raises
    ------
    InputError
        If there is none, it is no TOML, or something in it is unknown; the message gives the nearest name, and what
        is possible.
    """
    text, path = mapping_text(mapping, packaged_alone=packaged_alone)
    return _Checker(path).mapping(parse_toml(text, path))


def nearest(name: str, possible: Iterable[str]) -> str:
    """Write what somebody may have meant.

    >>> nearest("querry", ["query", "user_id"])
    "did you mean 'query'? Possible: query, user_id"
    """
    import difflib

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
    names += BESIDE[kind]
    if rows == "pages":
        return tuple(names)
    return tuple(name for name in names if name not in _LISTS) + (_RESULT if rows == "results" else ())


def _texts(value: Any) -> tuple[str, ...]:
    many = cast("list[Any]", value if isinstance(value, list) else [value])
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in many)


_SAID: dict[Any, str] = {
    str: "write a text",
    bool: "write true or false",
    float: "write a number",
    dict: "write it as a TOML table",
}
_FILE: dict[str, Any] = {
    "format": FORMATS,
    "encoding": str,
    "header": bool,
    "columns": list,
    "separator": str,
    "quote": str,
    "null": list,
    "flat": list,
    "ragged": bool,
    "json": list,
    "must": dict,
}
_MAPPING: dict[str, Any] = {
    "note": str,
    "file": dict,
    "rank_base": None,
    "propensity_convention": None,
    "optional": bool,
    "actions": dict,
    "queries": None,
    "events": None,
}
_SECTION: dict[str, Any] = {
    "files": str,
    "index": str,
    "has": list,
    "or_has": list,
    "where": dict,
    "columns": dict,
}
_KINDS: dict[Kind, dict[str, Any]] = {
    "queries": _SECTION | {"rows": ("pages", "results", "clicks"), "attributes": dict, "ignored": list},
    "events": _SECTION | {"each": None},
}
_SOURCES = ("path", "any", "join", "value")
_VALUE: dict[str, Any] = {
    "path": str,
    "any": None,
    "join": list,
    "value": None,
    "at": str,
    "between": str,
    "separator": None,
    "format": str,
    "unit": tuple(NUMBERED),
    "equals": None,
    "filled": bool,
    "column": str,
    "when": dict,
    "note": str,
    "optional": bool,
    "expected": bool,
}
_CONDITION: dict[str, Any] = {"not": None, "filled": bool, "above": float, "least": float, "most": float}
"""What may stand in each table, and its type: a list is one of texts, a tuple is of what is possible, None is more."""


class _Checker:
    """Turns what TOML says into our types; says where it is wrong."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._optional = False

    def _wrong(self, problem: str, fix: str) -> InputError:
        return InputError(problem, fix=fix, path=self._path)

    def _table(self, given: Any, where: str, possible: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Check that a table has known keys alone, and values of their types."""
        table: dict[str, Any] = self._typed(given, dict, where, "is no table")
        if possible is None:
            return table
        for key, value in table.items():
            if key not in possible:
                raise self._wrong(f"{where} has an unknown key {key!r}", nearest(key, possible))
            self._typed(value, possible[key], f"{where}: {key}")
        return table

    def _typed(self, given: Any, kind: Any, where: str, problem: str = "") -> Any:
        if isinstance(kind, tuple):
            possible = cast("tuple[str, ...]", kind)
            if given not in possible:
                raise self._wrong(f"{where} is {given!r}", nearest(str(given), possible))
        elif kind is list:
            many = cast("list[Any]", given) if isinstance(given, list) else [None]
            if not all(isinstance(one, str) for one in many):
                raise self._wrong(f"{where} is no list of texts", 'write it like ["a", "b"]')
        elif kind is not None and not isinstance(given, (int, float) if kind is float else kind):
            raise self._wrong(f"{where} {problem or f'is {given!r}'}", _SAID[kind])
        return given

    def mapping(self, given: dict[str, Any]) -> MappingFile:
        table = self._table(given, "the mapping", _MAPPING)
        self._optional = table.get("optional", False)
        file = self._file(dict(self._table(table.get("file", {}), "[file]", _FILE)))
        sections = tuple(one for kind in _KINDS for one in self._sections(table.get(kind, []), kind))
        if not sections:
            raise self._wrong("the mapping has neither [queries] nor [events]", "say which rows are what")
        base, stated = table.get("rank_base"), None
        if isinstance(base, (dict, str)):
            base, stated = None, self._value(cast("Any", base), "rank_base", listed=False)
        if base not in {None, 0, 1} or isinstance(base, bool):
            raise self._wrong(f"rank_base is {base!r}", "write 0 or 1: the position of the first result")
        by_rank = any(value.at for one in sections for value in one.columns.values())
        if base is None and (by_rank or any(one.results or "ranks" in one.columns for one in sections)):
            problem = "rows = 'results', ranks and at = ... need rank_base"
            raise self._wrong(problem, "write rank_base = 0 or rank_base = 1")
        ordinal = {one.columns["time"].format == "order" if "time" in one.columns else None for one in sections}
        if len(ordinal) > 1 and True in ordinal:
            problem = "some sections have the time format 'order' and some do not"
            raise self._wrong(problem, "give all sections the same kind of time")
        actions = self._actions(table.get("actions", {}), sections)
        convention, logged = self._convention(table.get("propensity_convention", ""))
        return MappingFile(
            self._path, sections, rank_base=base, base=stated, actions=actions, convention=convention,
            logged_convention=logged, **file,
        )  # fmt: skip

    def _convention(self, given: Any) -> tuple[str, Value | None]:
        """Return the declared convention of propensities, and where the log declares it itself."""
        if isinstance(given, dict):
            return "", self._value(cast("Any", given), "propensity_convention", listed=False)
        if given not in {"", *CONVENTIONS}:
            fix = f"write {', '.join(map(repr, CONVENTIONS))}, or {{ path = ... }} if the log declares it"
            raise self._wrong(f"propensity_convention is {given!r:.60}", fix)
        return given, None

    def _file(self, file: dict[str, Any]) -> dict[str, Any]:
        for key in {"separator", "quote"} & set(file):
            if len(file[key]) > 1 or (key == "separator" and not file[key]):
                raise self._wrong(f"{key} is {file[key]!r}", "write one character")
        names = file.pop("columns", [])
        if len(set(names)) < len(names):
            raise self._wrong("columns names one twice", "name each once")
        self._encoding(file.get("encoding", "utf-8"))
        known = {key: tuple(value) if isinstance(value, list) else value for key, value in file.items()}
        return known | {"names": tuple(names), "must": self._conditions(file.get("must", {}), "must")}

    def _encoding(self, name: str) -> None:
        """Check that an encoding is known, and writes lines, commas and brackets as ASCII does: lines are cut first."""
        signs = "\n\r\t,;{}[]\"'"
        try:
            as_ascii = signs.encode(name) == signs.encode("ascii")
        except (LookupError, ValueError):
            as_ascii = False
        if not as_ascii:
            fix = "write one such as cp1252 or latin-1, or convert the file to UTF-8"
            raise self._wrong(f"encoding is {name!r}, which is not one of texts that hold ASCII", fix)

    def _actions(self, table: dict[str, Any], sections: Iterable[Section]) -> dict[str, str]:
        constants = (one.columns["action"].constant for one in sections if one.kind == "events")
        known = {name: name for name in constants if name and name in ACTIONS}
        return known | {name: self._typed(ours, ACTIONS, f"the action {name!r}") for name, ours in table.items()}

    def _sections(self, given: Any, kind: Kind) -> Iterable[Section]:
        for one in cast("list[Any]", given if isinstance(given, list) else [given]):
            yield self._section(self._table(one, f"[{kind}]", _KINDS[kind]), kind)

    def _section(self, table: dict[str, Any], kind: Kind) -> Section:
        rows = table.get("rows", "pages")
        columns = self._values(table.get("columns", {}), f"[{kind}.columns]", possible_columns(kind, rows))
        needed = {"results": ("query_id", "object_id", "position"), "clicks": ("query_id",)}.get(rows, ())
        for name in ("action",) if kind == "events" else needed:
            if name not in columns:
                raise self._wrong(f"[{kind}.columns] does not say what {name!r} is", f'write {name} = "..."')
        own = dict(table.get("attributes", {}))
        others = self._typed(own.pop("*", ""), str, f"[{kind}.attributes] '*'")
        attributes = self._values(own, f"[{kind}.attributes]", None)
        if taken := {one.name for one in RAW_QUERY} & set(attributes):
            raise self._wrong(f"the attribute {min(taken)!r} has the name of a column", "call it something else")
        if len({name.lower() for name in attributes}) < len(attributes):
            raise self._wrong("two attributes differ in case alone", "call one something else")
        each = table.get("each")
        return Section(
            kind=kind,
            columns=columns,
            attributes=attributes,
            others=self._checked(others, "'*'") if others else "",
            ignored=tuple(table.get("ignored", ())),
            where=self._conditions(table.get("where", {}), "where"),
            files=table.get("files", "*"),
            index=table.get("index", ""),
            has=self._paths(table.get("has", []), "has"),
            or_has=self._paths(table.get("or_has", []), "or_has"),
            results=rows == "results",
            clicks=rows == "clicks",
            each=None if each is None else self._value(each, "each", listed=True),
        )

    def _conditions(self, given: dict[str, Any], where: str) -> tuple[Condition, ...]:
        return tuple(self._condition(path, value, where) for path, value in given.items())

    def _condition(self, path: str, given: Any, where: str) -> Condition:
        if is_many(self._checked(path, where)):
            raise self._wrong(f"{where}: the path {path!r} gives a list", "compare one value, such as a[0]")
        if not isinstance(given, dict):
            return Condition(path, among=_texts(given))
        table = dict(self._table(cast("Any", given), f"{where} {path!r}", _CONDITION))
        return Condition(path, out=_texts(table.pop("not")) if "not" in table else (), **table)

    def _values(self, table: dict[str, Any], where: str, possible: Iterable[str] | None) -> dict[str, Value]:
        self._table(table, where, None if possible is None else dict.fromkeys(possible))
        listed = _LISTS - {"first_rank"}
        return {name: self._value(one, f"{where} {name}", listed=name in listed) for name, one in table.items()}

    def _value(self, given: Any, where: str, *, listed: bool) -> Value:
        value = self._value_of({"path": given} if isinstance(given, str) else given, where, listed=listed)
        taken_apart = (listed or value.between is not None or value.at is not None) and not value.joined
        if not taken_apart and any(map(is_many, value.paths)):
            raise self._wrong(f"{where} is one value, and the path gives a list", "write a[0], or between = ' '")
        return value

    def _value_of(self, given: Any, where: str, *, listed: bool) -> Value:
        table: dict[str, Any] = {"optional": self._optional, **self._table(given, where, _VALUE)}
        sources = [key for key in _SOURCES if key in table]
        if len(sources) != 1:
            raise self._wrong(f"{where} does not say from where", "write exactly one of path, any, join and value")
        source = table.pop(sources[0])
        if sources[0] == "value":
            return Value(constant=_texts(source)[0])
        alternatives: tuple[Value, ...] = ()
        if sources[0] == "any" and isinstance(source, list) and dict in map(type, cast("list[Any]", source)):
            alternatives = tuple(self._value(one, f"{where}: any", listed=listed) for one in cast("list[Any]", source))
            source = []
        paths = self._paths([source] if sources[0] == "path" else source, f"{where}: {sources[0]}")
        if not paths and not alternatives:
            raise self._wrong(f"{where}: {sources[0]} is empty", "name at least one path")
        if "at" in table:
            self._checked(table["at"], where)
        if "%" not in table.get("format", ""):
            possible = ("auto", "utc", *NUMBERED, "order", "%Y%m%d%H%M%S")
            self._typed(table.get("format", "auto"), possible, f"{where}: format")
        cuts = table.pop("separator", ())
        loose = isinstance(cuts, list)
        return Value(
            paths=paths,
            alternatives=alternatives,
            joined=sources[0] == "join",
            equals=_texts(table.pop("equals")) if "equals" in table else (),
            separators=tuple(self._typed([cuts] if isinstance(cuts, str) else list(cuts), list, f"{where}: separator")),
            loose=loose,
            when=self._conditions(table.pop("when", {}), f"{where}: when"),
            **table,
        )

    def _paths(self, given: Any, where: str) -> tuple[str, ...]:
        return tuple(self._checked(path, where) for path in self._typed(given, list, where))

    def _checked(self, path: str, where: str) -> str:
        try:
            keys_of(path)
        except ValueError as error:
            fix = "write it like a.b, a[], a[0] or a[key=x].b"
            raise self._wrong(f"{where}: the path {path!r} {error}", fix) from None
        return path
