"""The TOML mapping file, which maps the columns of a log to those of judged: data model, parser, and validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError
from judged.online.log import ACTIONS, PROPENSITY_CONVENTIONS, RAW_EVENT, RAW_QUERY
from judged.online.readers.paths import is_list_path, leading_names
from judged.online.readers.values import UNIT_MS
from judged.results.types import cached_property

SectionKind: TypeAlias = Literal["queries", "events"]

RENAMED = {"time": "time_ms", "latency": "latency_ms", "dwell": "dwell_ms"}
"""Columns that a mapping names without a unit, because it declares the unit of the log."""

EXTRA_COLUMNS = {"queries": ("offset",), "events": ("n_total",)}
"""Values that are no columns of the raw table: results before the page; the result count that an event reports."""

_INTERNAL_COLUMNS = frozenset({"file", "row", "record"})
_RESULT_COLUMNS = ("object_id", "position", "team", "propensity")
_LIST_COLUMNS = frozenset({"hit_ids", "ranks", "teams", "propensities"})
FORMATS = ("jsonl", "csv", "tsv", "parquet")


@dataclass(frozen=True)
class RowCondition:
    """Condition on a value: allowed or excluded texts, presence, or numeric bounds."""

    path: str
    allowed: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    filled: bool | None = None
    above: float | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class ValueSource:
    """Source of a column's values."""

    paths: tuple[str, ...] = ()
    alternatives: tuple[ValueSource, ...] = ()
    constant: str | None = None
    is_join: bool = False  # whether the values of all paths are joined to one text
    between: str | None = None  # text between joined values
    index_path: str | None = None  # path of the position in a list
    is_last_page: bool = False  # whether it is the last page before the event with the same values at the paths
    empty: bool = False  # whether a missing list is an empty one
    separators: tuple[str, ...] = ()
    lenient: bool = False  # whether several separators, and brackets around the list, are possible
    format: str = "auto"
    unit: str = "milliseconds"
    equals: tuple[str, ...] = ()  # texts that count as true
    filled: bool = False  # whether the value is true if a list or object is not empty
    column: str = ""
    when: tuple[RowCondition, ...] = ()
    note: str = ""  # message about values that are not used because of `when`
    optional: bool = False
    expected: bool = False

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """All paths that the value needs."""
        paths = [path for alternative in self.alternatives for path in alternative.all_paths]
        paths += [self.index_path] if self.index_path else []
        return (*self.paths, *paths, *(condition.path for condition in self.when))


@dataclass(frozen=True)
class MappingSection:
    """A ``[[queries]]`` or ``[[events]]`` section: which rows it selects, and their columns."""

    kind: SectionKind
    columns: Mapping[str, ValueSource]
    attributes: Mapping[str, ValueSource] = field(default_factory=dict[str, ValueSource])
    attribute_object: str = ""  # path of an object whose other members are attributes, too
    ignored: tuple[str, ...] = ()
    where: tuple[RowCondition, ...] = ()
    file_pattern: str = "*"
    index_pattern: str = ""
    key_paths: tuple[str, ...] = ()  # a record with a value at one of them belongs to this section
    fallback_paths: tuple[str, ...] = ()  # the same if no section has a value at its identifying paths
    rows: str = "pages"  # what a row of the log is: one of "pages", "results" and "clicks"
    each: ValueSource | None = None

    @cached_property
    def last_page_source(self) -> ValueSource | None:
        """Source of the values that an event has in common with the last page before it."""
        source = self.columns.get("query_id", ValueSource())
        return next((option for option in (source, *source.alternatives) if option.is_last_page), None)

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """All paths that the section needs."""
        sources = [*self.columns.values(), *self.attributes.values(), *([self.each] if self.each else [])]
        paths = [path for source in sources for path in source.all_paths]
        paths += [condition.path for condition in self.where]
        paths += [*self.key_paths, *self.fallback_paths]
        return (*paths, *([self.attribute_object] if self.attribute_object else []))


@dataclass(frozen=True)
class MappingFile:
    """A validated mapping."""

    path: str
    sections: tuple[MappingSection, ...]
    format: str = ""
    header: bool = True
    names: tuple[str, ...] = ()
    separator: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    null: tuple[str, ...] = ("",)
    flat: tuple[str, ...] | None = None
    ragged: bool = False
    json: tuple[str, ...] = ()  # members with JSON as text
    record_conditions: tuple[RowCondition, ...] = ()
    rank_base: int | None = None
    rank_base_source: ValueSource | None = None
    convention: str = ""  # of propensities, one of PROPENSITY_CONVENTIONS
    convention_source: ValueSource | None = None
    actions: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def all_paths(self) -> tuple[str, ...]:
        """All paths that the mapping needs."""
        paths = [path for section in self.sections for path in section.all_paths]
        paths += [condition.path for condition in self.record_conditions]
        sources = [source for source in (self.rank_base_source, self.convention_source) if source]
        return (*paths, *self.json, *(path for source in sources for path in source.all_paths))

    @cached_property
    def page_keys(self) -> tuple[ValueSource, ...]:
        """Sources of the values that events have in common with the last page before them."""
        sources = (section.last_page_source for section in self.sections if section.kind == "events")
        return tuple(dict.fromkeys(source for source in sources if source))


def packaged_mappings() -> tuple[str, ...]:
    """Return the names of the mappings that come with judged.

    >>> "ga4" in packaged_mappings(), "ubi" in packaged_mappings()
    (True, True)
    """
    folder = resources.files("judged.online.readers") / "mappings"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def mapping_text(mapping: str | Path, *, packaged_only: bool = False) -> tuple[str, str]:
    """Return the text and the file name of a mapping: a file, or the name of a packaged mapping.

    Raises
    ------
    InputError
        If it is neither, or not UTF-8.
    """
    if str(mapping) in packaged_mappings() and (packaged_only or not Path(mapping).exists()):
        file = resources.files("judged.online.readers") / "mappings" / f"{mapping}.toml"
        return file.read_text(encoding="utf-8"), f"{mapping}.toml"
    fix = f"use a TOML file, or one of the included mappings: {', '.join(packaged_mappings())}"
    return read_toml(mapping, fix), str(mapping)


def read_mapping(mapping: str | Path, *, packaged_only: bool = False) -> MappingFile:
    """Read and validate a mapping.

    Raises
    ------
    InputError
        If the file does not exist, is not TOML, or has an unknown key or invalid value.
    """
    return parse_mapping(*mapping_text(mapping, packaged_only=packaged_only))


def parse_mapping(text: str, path: str) -> MappingFile:
    """Parse and validate the text of a mapping; `path` is its name in messages."""
    return _MappingParser(path).parse(parse_toml(text, path))


def suggest_name(name: str, possible: Iterable[str]) -> str:
    """Return the most similar possible name and the list of all.

    >>> suggest_name("querry", ["query", "user_id"])
    "did you mean 'query'? Possible: query, user_id"
    """
    import difflib

    possible = list(possible)
    matches = difflib.get_close_matches(name, possible, 1, 0.5)
    names = ", ".join(possible[:60]) + (", ..." if len(possible) > 60 else "")
    return (f"did you mean {matches[0]!r}? " if matches else "") + f"Possible: {names or 'nothing'}"


def allowed_columns(kind: SectionKind, rows: str = "pages") -> tuple[str, ...]:
    """Return the names of the columns that a section can have."""
    mapping_names = {column: name for name, column in RENAMED.items()}
    raw_table = RAW_QUERY if kind == "queries" else RAW_EVENT
    columns = [column.name for column in raw_table if column.name not in _INTERNAL_COLUMNS]
    names = [*(mapping_names.get(column, column) for column in columns), *EXTRA_COLUMNS[kind]]
    if rows != "results":
        return tuple(names)
    return (*(name for name in names if name not in _LIST_COLUMNS and name != "first_rank"), *_RESULT_COLUMNS)


def _as_texts(value: Any) -> tuple[str, ...]:
    elements = cast("list[Any]", value if isinstance(value, list) else [value])
    return tuple(str(element).lower() if isinstance(element, bool) else str(element) for element in elements)


_TYPE_FIXES: dict[Any, str] = {
    str: "write a text", bool: "write true or false", float: "write a number", dict: "write a TOML table",
}  # fmt: skip
# The keys of each table, and their types: `list` is a list of texts, a tuple holds the allowed values, and None
# means that the type is checked elsewhere.
_FILE_KEYS: dict[str, Any] = {
    "format": FORMATS, "encoding": str, "header": bool, "columns": list, "separator": str, "quote": str, "null": list,
    "flat": list, "ragged": bool, "json": list, "must": dict,
}  # fmt: skip
_MAPPING_KEYS: dict[str, Any] = {
    "note": str, "file": dict, "rank_base": None, "propensity_convention": None, "optional": bool, "actions": dict,
    "queries": None, "events": None,
}  # fmt: skip
_SECTION_KEYS: dict[str, Any] = {
    "files": str, "index": str, "has": list, "or_has": list, "where": dict, "columns": dict,
}  # fmt: skip
_KIND_KEYS: dict[SectionKind, dict[str, Any]] = {
    "queries": _SECTION_KEYS | {"rows": ("pages", "results", "clicks"), "attributes": dict, "ignored": list},
    "events": _SECTION_KEYS | {"each": None},
}
_SOURCE_KEYS = ("path", "any", "join", "value", "last")
_VALUE_KEYS: dict[str, Any] = {
    "path": str, "any": None, "join": list, "value": None, "last": list, "empty": bool, "at": str, "between": str,
    "separator": None, "format": str, "unit": tuple(UNIT_MS), "equals": None, "filled": bool, "column": str,
    "when": dict, "note": str, "optional": bool, "expected": bool,
}  # fmt: skip
_CONDITION_KEYS: dict[str, Any] = {"not": None, "filled": bool, "above": float, "least": float, "most": float}


class _MappingParser:
    """Parser and validator of a mapping. `where` is the name of a place in the file, for messages."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._optional = False

    def _error(self, problem: str, fix: str) -> InputError:
        return InputError(problem, fix=fix, path=self._path)

    def _check_table(self, value: Any, where: str, keys: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a table after checking that all its keys are known and its values have their types."""
        table: dict[str, Any] = self._check_type(value, dict, where, "is not a table")
        if keys is None:
            return table
        for key, member in table.items():
            if key not in keys:
                raise self._error(f"{where} has an unknown key {key!r}", suggest_name(key, keys))
            self._check_type(member, keys[key], f"{where}: {key}")
        return table

    def _check_type(self, value: Any, kind: Any, where: str, problem: str = "") -> Any:
        if isinstance(kind, tuple):
            allowed = cast("tuple[str, ...]", kind)
            if value not in allowed:
                raise self._error(f"{where} is {value!r}", suggest_name(str(value), allowed))
        elif kind is list:
            elements = cast("list[Any]", value) if isinstance(value, list) else [None]
            if not all(isinstance(element, str) for element in elements):
                raise self._error(f"{where} must be a list of texts", 'write a list, such as ["a", "b"]')
        elif kind is not None and not isinstance(value, (int, float) if kind is float else kind):
            raise self._error(f"{where} {problem or f'is {value!r}'}", _TYPE_FIXES[kind])
        return value

    def parse(self, content: dict[str, Any]) -> MappingFile:
        table = self._check_table(content, "the mapping", _MAPPING_KEYS)
        self._optional = table.get("optional", False)
        file = self._parse_file(dict(self._check_table(table.get("file", {}), "[file]", _FILE_KEYS)))
        sections = tuple(section for kind in _KIND_KEYS for section in self._parse_sections(table.get(kind, []), kind))
        if not sections:
            raise self._error("the mapping has neither [queries] nor [events]", "add a section for queries or events")
        rank_base, rank_base_source = table.get("rank_base"), None
        if isinstance(rank_base, (dict, str)):
            rank_base_source = self._parse_value(cast("Any", rank_base), "rank_base", is_list=False)
            rank_base = None
        # In Python True == 1, but `rank_base = true` is a mistake.
        if rank_base not in {None, 0, 1} or isinstance(rank_base, bool):
            raise self._error(f"rank_base is {rank_base!r}", "write 0 or 1, the position of the first result")
        has_positions = any(
            section.rows == "results"
            or "ranks" in section.columns
            or any(source.index_path not in {None, "@index"} for source in section.columns.values())
            for section in sections
        )
        positions = [source for section in sections for name, source in section.columns.items() if name == "position"]
        if rank_base == 1 and any(source.paths == ("@index",) for source in positions):
            problem = 'position = "@index" counts from 0, but rank_base is 1'
            raise self._error(problem, 'write rank_base = 0; at = "@index" does not depend on rank_base')
        if rank_base is None and has_positions:
            problem = (
                "rank_base is required if the mapping has rows = 'results', the column `ranks`, or a key `at` other"
                " than '@index'"
            )
            raise self._error(problem, "write rank_base = 0 or rank_base = 1")
        times = [section.columns.get("time") for section in sections]
        uses_order = {time and time.format == "order" for time in times}
        if len(uses_order) > 1 and True in uses_order:
            problem = "only some sections have the time format 'order'"
            raise self._error(problem, "use 'order' in all sections or in none")
        actions = self._parse_actions(table.get("actions", {}), sections)
        convention, convention_source = self._parse_convention(table.get("propensity_convention", ""))
        return MappingFile(
            self._path, sections, rank_base=rank_base, rank_base_source=rank_base_source, actions=actions,
            convention=convention, convention_source=convention_source, **file,
        )  # fmt: skip

    def _parse_convention(self, value: Any) -> tuple[str, ValueSource | None]:
        """Return the convention of propensities, or the source of its declaration in the log."""
        if isinstance(value, dict):
            return "", self._parse_value(cast("Any", value), "propensity_convention", is_list=False)
        if value not in {"", *PROPENSITY_CONVENTIONS}:
            fix = (
                f"write {', '.join(map(repr, PROPENSITY_CONVENTIONS))}, or {{ path = ... }} if a field of the log"
                " has the convention"
            )
            raise self._error(f"propensity_convention is {value!r:.60}", fix)
        return value, None

    def _parse_file(self, file: dict[str, Any]) -> dict[str, Any]:
        for key in {"separator", "quote"} & set(file):
            if len(file[key]) > 1 or (key == "separator" and not file[key]):
                raise self._error(f"{key} must be one character, got {file[key]!r}", "write one character")
        names = file.pop("columns", [])
        if len(set(names)) < len(names):
            raise self._error("[file] columns has a duplicate name", "use each name once")
        self._check_encoding(file.get("encoding", "utf-8"))
        conditions = self._parse_conditions(file.pop("must", {}), "must")
        options = {key: tuple(value) if isinstance(value, list) else value for key, value in file.items()}
        return options | {"names": tuple(names), "record_conditions": conditions}

    def _check_encoding(self, name: str) -> None:
        # Bytes are split into lines before they are decoded, so separators must have their ASCII codes.
        delimiters = "\n\r\t,;{}[]\"'"
        try:
            is_ascii_superset = delimiters.encode(name) == delimiters.encode("ascii")
        except (LookupError, ValueError):
            is_ascii_superset = False
        if not is_ascii_superset:
            fix = "use an encoding such as cp1252 or latin-1, or convert the file to UTF-8"
            raise self._error(f"encoding is {name!r}, which is unknown or not compatible with ASCII", fix)

    def _parse_actions(self, table: dict[str, Any], sections: Iterable[MappingSection]) -> dict[str, str]:
        constants = (section.columns["action"].constant for section in sections if section.kind == "events")
        actions = {name: name for name in constants if name and name in ACTIONS}
        return actions | {
            name: self._check_type(action, ACTIONS, f"the action {name!r}") for name, action in table.items()
        }

    def _parse_sections(self, value: Any, kind: SectionKind) -> Iterable[MappingSection]:
        for table in cast("list[Any]", value if isinstance(value, list) else [value]):
            yield self._parse_section(self._check_table(table, f"[{kind}]", _KIND_KEYS[kind]), kind)

    def _parse_section(self, table: dict[str, Any], kind: SectionKind) -> MappingSection:
        rows = table.get("rows", "pages")
        columns = self._parse_values(table.get("columns", {}), f"[{kind}.columns]", allowed_columns(kind, rows))
        required = {"results": ("query_id", "object_id", "position"), "clicks": ("query_id",)}.get(rows, ())
        for name in ("action",) if kind == "events" else required:
            if name not in columns:
                raise self._error(f"[{kind}.columns] must have {name!r}", f'write {name} = "..."')
        attribute_table = dict(table.get("attributes", {}))
        attribute_object = self._check_type(attribute_table.pop("*", ""), str, f"[{kind}.attributes] '*'")
        attributes = self._parse_values(attribute_table, f"[{kind}.attributes]", None)
        if reserved := {column.name for column in RAW_QUERY} & set(attributes):
            raise self._error(
                f"the attribute {min(reserved)!r} has the same name as a column of judged", "use another name"
            )
        if len({name.lower() for name in attributes}) < len(attributes):
            raise self._error("two attribute names differ only in upper and lower case", "rename one of the attributes")
        each = table.get("each")
        return MappingSection(
            kind, columns, attributes, self._check_path(attribute_object, "'*'") if attribute_object else "",
            ignored=tuple(table.get("ignored", ())),
            where=self._parse_conditions(table.get("where", {}), "where"),
            file_pattern=table.get("files", "*"), index_pattern=table.get("index", ""),
            key_paths=self._check_paths(table.get("has", []), "has"),
            fallback_paths=self._check_paths(table.get("or_has", []), "or_has"),
            rows=rows, each=None if each is None else self._parse_value(each, "each", is_list=True),
        )  # fmt: skip

    def _parse_conditions(self, table: dict[str, Any], where: str) -> tuple[RowCondition, ...]:
        return tuple(self._parse_condition(path, value, where) for path, value in table.items())

    def _parse_condition(self, path: str, value: Any, where: str) -> RowCondition:
        if is_list_path(self._check_path(path, where)):
            raise self._error(f"{where}: the path {path!r} leads to a list", "compare one value, such as a[0]")
        if not isinstance(value, dict):
            return RowCondition(path, allowed=_as_texts(value))
        table = dict(self._check_table(cast("Any", value), f"{where} {path!r}", _CONDITION_KEYS))
        return RowCondition(path, excluded=_as_texts(table.pop("not")) if "not" in table else (), **table)

    def _parse_values(self, table: dict[str, Any], where: str, allowed: Iterable[str] | None) -> dict[str, ValueSource]:
        self._check_table(table, where, None if allowed is None else dict.fromkeys(allowed))
        return {
            name: self._parse_value(value, f"{where} {name}", is_list=name in _LIST_COLUMNS)
            for name, value in table.items()
        }

    def _parse_value(self, value: Any, where: str, *, is_list: bool) -> ValueSource:
        source = self._parse_source({"path": value} if isinstance(value, str) else value, where, is_list=is_list)
        uses_list = is_list or source.between is not None or source.index_path is not None
        if not (uses_list and not source.is_join) and any(map(is_list_path, source.paths)):
            raise self._error(
                f"{where} must be one value, but the path leads to a list",
                "use one item, as in a[0], or join all with between = ' '",
            )
        return source

    def _parse_source(self, value: Any, where: str, *, is_list: bool) -> ValueSource:
        table: dict[str, Any] = {"optional": self._optional, **self._check_table(value, where, _VALUE_KEYS)}
        keys = [key for key in _SOURCE_KEYS if key in table]
        if len(keys) != 1:
            problem = (
                f"{where} must have exactly one of path, any, join, last, and value, got {' and '.join(keys) or 'none'}"
            )
            raise self._error(problem, "use one of them")
        source = table.pop(keys[0])
        if keys[0] == "value":
            return ValueSource(constant=_as_texts(source)[0])
        alternatives: tuple[ValueSource, ...] = ()
        # `any` is a list of paths, or a list of sources with their own options.
        if keys[0] == "any" and isinstance(source, list) and dict in map(type, cast("list[Any]", source)):
            alternatives = tuple(
                self._parse_value(alternative, f"{where}: any", is_list=is_list)
                for alternative in cast("list[Any]", source)
            )
            source = []
        paths = self._check_paths([source] if keys[0] == "path" else source, f"{where}: {keys[0]}")
        if not paths and not alternatives:
            raise self._error(f"{where}: {keys[0]} is empty", "name at least one path")
        if "at" in table:
            table["index_path"] = self._check_path(table.pop("at"), where)
        if "%" not in table.get("format", ""):
            formats = ("auto", "utc", *UNIT_MS, "order", "%Y%m%d%H%M%S")
            self._check_type(table.get("format", "auto"), formats, f"{where}: format")
        separators = table.pop("separator", ())
        separator_list = [separators] if isinstance(separators, str) else list(separators)
        return ValueSource(
            paths=paths,
            alternatives=alternatives,
            is_join=keys[0] in {"join", "last"},
            is_last_page=keys[0] == "last",
            equals=_as_texts(table.pop("equals")) if "equals" in table else (),
            separators=tuple(self._check_type(separator_list, list, f"{where}: separator")),
            lenient=isinstance(separators, list),
            when=self._parse_conditions(table.pop("when", {}), f"{where}: when"),
            **table,
        )

    def _check_paths(self, paths: Any, where: str) -> tuple[str, ...]:
        return tuple(self._check_path(path, where) for path in self._check_type(paths, list, where))

    def _check_path(self, path: str, where: str) -> str:
        try:
            leading_names(path)
        except ValueError as error:
            fix = "write a path, such as a.b, a[], a[0], or a[key=x].b"
            raise self._error(f"{where}: the path {path!r} {error}", fix) from None
        return path
