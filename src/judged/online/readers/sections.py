"""SQL that selects the values a mapping names from a table of records. Each expression is computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from judged.online.engine import literal
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.mapping_file import RENAMED, MappingFile, MappingSection, RowCondition, ValueSource
from judged.online.readers.paths import SPECIAL, Location, LocationFinder
from judged.online.readers.raw import DUCKDB_TYPES
from judged.online.readers.values import (
    TEXT_LIMIT,
    WITHOUT_OFFSET,
    ColumnValue,
    ValueKind,
    column_value,
    first_usable,
    sql_without_offset,
    text_sql,
)

# Ordinals of logs without times: 10,000 events fit into one row, and 10 billion rows into one file.
_FILE_ORDINALS = 100_000_000_000_000
_ROW_ORDINALS = 10_000

_TYPES = {column.name: column.type for column in (*RAW_QUERY, *RAW_EVENT)} | {
    "team": "string",
    "offset": "int64",
    "base": "int64",
    "propensity_convention": "string",
}
_KIND_BY_TYPE: dict[str, ValueKind] = {
    "string": "word", "int64": "whole", "int32": "page", "float64": "real", "boolean": "flag", "array<string>": "list",
    "array<float64>": "numbers", "array<int32>": "numbers",
}  # fmt: skip
_KIND_BY_NAME: dict[str, ValueKind] = {
    "query": "text", "time_ms": "time", "dwell_ms": "millis", "latency_ms": "duration",
}  # fmt: skip
_MAX_OFFSET = 2_000_000_000  # below 2^31, as ranks are 32-bit integers
_FLAG_BITS = 60  # failed checks in one BIGINT


@dataclass(frozen=True)
class RowCheck:
    """A check of rows: its rule, column, and path in the log, the SQL condition of a failure, and an own message."""

    rule: str
    column: str
    path: str
    failure: str
    note: str = ""


@dataclass(frozen=True)
class RecordTable:
    """A table of records, before the mapping is applied.

    Parameters
    ----------
    table
        SQL of the table, for FROM.
    columns
        Columns by name, with ``#record`` and ``#id`` if there are any.
    file, row
        SQL of the file number and row number of a record.
    file_numbers
        Numbers of the files.
    index
        SQL of the name of a record's search index. Empty: no index.
    problem
        SQL of the rule that a record violates, or null. Empty: no record can.
    record_hash
        SQL of the hash of a record. Empty: the hash of all columns.
    is_json
        Whether records are JSON, where each can have any member.
    release
        Called after all values were selected.
    """

    table: str
    columns: Mapping[str, Location]
    file: str
    row: str
    file_numbers: tuple[int, ...]
    index: str = ""
    problem: str = ""
    record_hash: str = ""
    is_json: bool = False
    release: Callable[[], object] = field(default=lambda: None)


class SelectBuilder:
    """Builder of a SELECT whose columns are the values of a mapping.

    Parameters
    ----------
    mapping
        The mapping.
    columns
        Columns of the table.
    paths
        All paths that are needed.
    flat
        Whether members of objects may be columns.
    outer
        Builder for the records, if this builder is for the items of a list in them.
    """

    def __init__(
        self,
        mapping: MappingFile,
        columns: Mapping[str, Location],
        paths: Iterable[str],
        *,
        flat: bool = False,
        outer: SelectBuilder | None = None,
    ) -> None:
        self.mapping, self.columns, self.outer = mapping, columns, outer
        self.finder = LocationFinder(columns, paths, mapping.flat or () if flat else None)
        self._columns: dict[str, str] = {}
        self._inner_columns: dict[str, str] = {}
        self._failures: dict[str, int] = {}
        self.is_native = True

    def column_for(self, sql: str) -> str:
        """Return the name of the column for an expression. The same expression gets the same column."""
        return self._columns.setdefault(sql, f"{'i' if self.outer else 'c'}{len(self._columns)}")

    def is_null(self, column: str) -> bool:
        """Whether a column is always null."""
        return self._columns.get("NULL") == column

    def locations(self, path: str) -> list[Location]:
        """Return the locations of a path, with the mapping's words for missing values replaced by null."""
        if self.outer is not None and not path.startswith("@"):
            outer_locations = self.outer.locations(path)
            return [replace(outer, sql=self.outer.column_for(outer.sql), level=0) for outer in outer_locations]
        locations = self.finder.find(path)
        self.is_native = self.is_native and not any(location.is_parsed for location in locations)
        return [self._with_nulls(location) for location in locations]

    def _with_nulls(self, location: Location) -> Location:
        words, text = self.mapping.null, text_sql(location)
        if not words or (location.type not in {"varchar", "json"} and (text is None or set(words) <= {"", "NULL"})):
            return location
        if words == ("",) and location.type == "varchar":
            return replace(location, sql=f"nullif({location.sql}, '')")
        return replace(location, sql=f"CASE WHEN {text} NOT IN ({_literals(words)}) THEN {location.sql} END")

    def text(self, source: ValueSource) -> str:
        """Return SQL of a value as text."""
        if source.constant is not None:
            return literal(source.constant)
        if source.index_path is not None:
            position = self.text(ValueSource(paths=(source.index_path,)))
            first = 0 if source.index_path == "@index" else self.mapping.rank_base or 0
            index = f"TRY_CAST({position} AS BIGINT) + {1 - first}"
            # DuckDB counts indices below 1 from the end of the list.
            return f"CASE WHEN {index} >= 1 THEN ({self.text_list(source)})[{index}] END"
        if source.between is not None and not source.is_join:
            return f"array_to_string({self.text_list(source)}, {literal(source.between)})"
        texts = [_coalesce([_as_text(location) for location in self.locations(path)]) for path in source.paths]
        if not source.is_join:
            return _coalesce(texts)
        self.is_native = False
        glue = literal("/" if source.between is None else source.between)
        return f" || {glue} || ".join(f"({text})" for text in texts)

    def text_list(self, source: ValueSource) -> str:
        """Return SQL of a value as a list of texts, or null."""
        return column_value(self._all_locations(source), "list", source).sql

    def json_items(self, source: ValueSource) -> str:
        """Return SQL of a value as a list of JSON."""
        self.is_native = False
        lists: list[str] = []
        for location in self._all_locations(source):
            if isinstance(location.shape, tuple):
                lists.append(f"list_transform({location.sql}, lambda e: to_json(e))")
                continue
            text = _as_text(location)
            is_json = f"prefix(ltrim({text}), '[') AND json_valid({text})"
            texts = f"list_transform({column_value([location], 'list', source).sql}, lambda e: to_json(e))"
            lists.append(f"CASE WHEN {is_json} THEN json_extract({text}, '$[*]') ELSE {texts} END")
        return f"CAST({_coalesce(lists)} AS JSON[])"  # the cast gives NULL a type if no record has the list

    def _all_locations(self, source: ValueSource) -> list[Location]:
        return [location for path in source.paths for location in self.locations(path)]

    def condition(self, condition: RowCondition) -> str:
        """Return SQL of a condition. It is never null."""
        text = self.text(ValueSource(paths=(condition.path,)))
        if condition.filled is not None:
            return f"{'' if condition.filled else 'NOT '}coalesce({text} NOT IN ('', '{{}}', '[]'), false)"
        if condition.excluded:
            return f"coalesce({text} NOT IN ({_literals(condition.excluded)}), true)"
        number = f"TRY_CAST({text} AS DOUBLE)"
        bounds = {">": condition.above, ">=": condition.least, "<=": condition.most}
        tests = [f"{number} {operator} {bound!r}" for operator, bound in bounds.items() if bound is not None]
        if tests:
            return f"coalesce(isfinite({number}) AND {' AND '.join(tests)}, false)"
        return f"coalesce({text} IN ({_literals(condition.allowed)}), false)" if condition.allowed else "true"

    def all_conditions(self, conditions: Sequence[RowCondition]) -> str:
        """Return SQL that is true if all conditions are."""
        return " AND ".join(map(self.condition, conditions))

    def column(self, name: str, source: ValueSource) -> tuple[str, list[RowCheck]]:
        """Add a column of the raw tables. Return its name in the SELECT, and checks of its values."""
        value, checks = self._value(name, source)
        column = self.column_for(value.sql)
        path = next(iter(source.all_paths), "")
        if value.is_present:
            rule = "odd-time" if name == "time_ms" else "wrong-type"
            failure = self._flag(f"{self._inner_column(value.is_present)} AND {column} IS NULL")
            checks.append(RowCheck(rule, name, path, failure))
        if name == "time_ms" and source.format == "auto":
            checks += self._offset_checks(source, column, path)
        return column, checks

    def _offset_checks(self, source: ValueSource, column: str, path: str) -> Iterable[RowCheck]:
        for location in self._all_locations(source):
            text = text_sql(location)
            if location.type in WITHOUT_OFFSET:
                yield RowCheck("no-offset", "time_ms", path, "true")
            elif text and location.type in {"varchar", "json"} and (test := sql_without_offset(text, "varchar")):
                failure = self._flag(f"{self._inner_column(test)} AND {column} IS NOT NULL")
                yield RowCheck("no-offset", "time_ms", path, failure)

    def _inner_column(self, sql: str) -> str:
        """Return the name of an expression in the inner SELECT, where checks can use it."""
        return self._inner_columns.setdefault(sql, f"{'j' if self.outer else 'm'}{len(self._inner_columns)}")

    def _flag(self, failure: str) -> str:
        """Store a failed check as one bit of a flag column. Return the SQL condition that tests the bit."""
        number = self._failures.setdefault(failure, len(self._failures))
        return f"(_bad{number // _FLAG_BITS} & {1 << number % _FLAG_BITS}) <> 0"

    def _value(self, name: str, source: ValueSource) -> tuple[ColumnValue, list[RowCheck]]:
        kind = _KIND_BY_NAME.get(name) or _KIND_BY_TYPE[_TYPES[name]]
        checks: list[RowCheck] = []
        # The last page before an event is found when all pages are read.
        if source.constant is not None or source.is_last_page:
            constant = "NULL" if source.constant is None else literal(source.constant)
            return ColumnValue(f"CAST({constant} AS {DUCKDB_TYPES[_TYPES[name]]})"), checks
        if source.alternatives:
            alternatives = [self._value(name, alternative) for alternative in source.alternatives]
            checks = [check for _, alternative_checks in alternatives for check in alternative_checks]
            return first_usable([value for value, _ in alternatives]), checks
        if source.equals:
            return ColumnValue(f"coalesce({self.text(source)} IN ({_literals(source.equals)}), false)"), checks
        if source.is_join or source.index_path is not None or source.between is not None:
            locations = [Location(self.text(source), "varchar")]
        else:
            locations = self._all_locations(source)
            if source.column and (location := self.finder.flat_column(source.column)):
                locations.append(location)
        locations = list({location.sql: location for location in locations}.values())
        # Parsing a time as text is slow, so the result is stored in a table, not computed by a view.
        if any(location.type in {"varchar", "json"} for location in locations) and name == "time_ms":
            self.is_native = False
        value = column_value(locations, "filled" if source.filled else kind, source)
        if kind == "text":
            texts = [text for location in locations if location.is_parsed and (text := text_sql(location))]
            for text in texts:
                is_long = self._flag(self._inner_column(f"length({text}) > {TEXT_LIMIT}"))
                checks.append(RowCheck("long-text", name, "", is_long))
        if source.when and locations:
            condition = self.all_conditions(source.when)
            has_value = " OR ".join(f"({location.sql}) IS NOT NULL" for location in locations)
            is_unused = self._flag(self._inner_column(f"({has_value}) AND NOT ({condition})"))
            checks.append(RowCheck("unused-value", name, source.paths[0], is_unused, source.note))
            is_present = f"({condition}) AND {value.is_present}" if value.is_present else None
            value = ColumnValue(f"CASE WHEN {condition} THEN {value.sql} END", is_present)
        return value, checks

    @property
    def flag_columns(self) -> list[str]:
        """Names of the columns whose bits are failed checks."""
        return [f"_bad{number}" for number in range(-(-len(self._failures) // _FLAG_BITS))]

    def query(self, table: str, expressions: Sequence[str]) -> str:
        """Return the SELECT: further expressions (``... AS name``), the columns of the mapping, and flags."""
        # Two levels: the outer SELECT computes the flags from columns of the inner one, so that no expression
        # is computed twice.
        inner = [f"{sql} AS {name}" for sql, name in (self._columns | self._inner_columns).items()]
        names = [expression.rsplit(" AS ", 1)[1] for expression in expressions]
        bits = [f"CASE WHEN {sql} THEN {1 << number % _FLAG_BITS} ELSE 0 END" for sql, number in self._failures.items()]
        flags = [
            f"CAST({' + '.join(bits[number * _FLAG_BITS : (number + 1) * _FLAG_BITS])} AS BIGINT) AS {name}"
            for number, name in enumerate(self.flag_columns)
        ]
        records = f"SELECT {', '.join([*expressions, *inner])} FROM {self.finder.parsed_table(table)} AS _records"
        return f"SELECT {', '.join([*names, *self._columns.values(), *flags])} FROM ({records})"


@dataclass(frozen=True)
class SectionQuery:
    """Query of the rows of one section.

    Parameters
    ----------
    section
        The section.
    select
        Builder of its columns; that of the list items if the section has `each`.
    condition, item_condition
        SQL conditions of its records and of its list items.
    items
        Column with the list of `each`. Empty: no list.
    columns
        SQL of columns of the raw tables, by name.
    attributes
        SQL of the attributes that the section names, in order.
    checks
        Checks of its rows.
    required
        Groups of paths of which one needs a value in some row of the section, each with its SQL column.
    required_of_records
        The same for the paths that select the rows: in some row of all records.
    page_keys
        Columns that events have in common with the last page before them, by number.
    """

    section: MappingSection
    select: SelectBuilder
    condition: str
    item_condition: str
    items: str
    columns: Mapping[str, str]
    attributes: Sequence[str]
    checks: Sequence[RowCheck]
    required: Mapping[tuple[str, ...], str]
    required_of_records: Mapping[tuple[str, ...], str]
    page_keys: Mapping[int, str]

    @property
    def column_names(self) -> Iterable[str]:
        """Names of the log's columns; empty for JSON."""
        columns = (self.select.outer or self.select).columns
        return (name for name in columns if "#record" not in columns and not name.startswith("#"))

    @property
    def kind(self) -> str:
        """Name of the raw table, as in findings."""
        return "query" if self.section.kind == "queries" else "event"

    def has_values(self, name: str) -> bool:
        """Whether a column can have values."""
        return name in self.columns and not self.select.is_null(self.columns[name])

    def sql(self, table: str, *, has_time: bool, more_columns: Sequence[str]) -> str:
        """Return the SELECT: file, row, columns of the raw table, attributes as ``a_0``, ``a_1``, ..., and flags."""
        rows, item_number = f"(SELECT * FROM {table} WHERE {self.condition})", "0"
        if self.items:
            item_number = "nth"
            number = f"generate_subscripts({self.items}, 1) - 1 AS nth"
            rows = f"(SELECT *, unnest({self.items}) AS element, {number} FROM {rows})"
            keys = [f"{name} AS {name}" for name in ("file", "row", "nth", "record")]
            condition = f" WHERE {self.item_condition}" if self.item_condition else ""
            rows = f"({self.select.query(rows, keys)}){condition}"
        values = dict(self.columns)
        if not has_time:
            delay = int(self.kind == "event")  # an event follows the page that is logged in the same row
            values["time_ms"] = f"file::BIGINT * {_FILE_ORDINALS} + row * {_ROW_ORDINALS} + {item_number} + {delay}"
        if self.kind == "event":
            # The hash identifies duplicates. Each item of a list is an event of its own.
            values["record"] = "hash(record, nth) >> 1" if self.items else "record"
        if "offset" in values:
            offset, size = values["offset"], values.get("size", "NULL")
            first_rank, page = values.get("first_rank", "NULL"), values.get("page", "NULL")
            is_valid = f"{offset} BETWEEN 0 AND {_MAX_OFFSET}"
            values["first_rank"] = f"coalesce({first_rank}, CASE WHEN {is_valid} THEN {offset} + 1 END)"
            page_number = f"CASE WHEN {size} BETWEEN 1 AND 1000000 AND {is_valid} THEN {offset} // {size} + 1 END"
            values["page"] = f"coalesce({page}, {page_number})"
        if "ranks" in values:
            shift = 1 - (self.select.mapping.rank_base or 0)
            values["ranks"] = f"list_transform({values['ranks']}, lambda e: e + {shift})"
        # Rows of results or clicks also have columns that only `pages_from_results` uses.
        raw_table = RAW_QUERY if self.kind == "query" else RAW_EVENT
        names = [column.name for column in raw_table if column.name not in {"file", "row"}]
        extra = ("team", "n_total", "object_id", "position", "propensity")
        names += [name for name in extra if name in values and name not in names]
        columns = [f"CAST({values.get(name, 'NULL')} AS {DUCKDB_TYPES[_TYPES[name]]}) AS {name}" for name in names]
        columns += [f"CAST({sql} AS VARCHAR) AS a_{number}" for number, sql in enumerate(self.attributes)]
        columns += [f"{column} AS k_{number}" for number, column in self.page_keys.items()]
        required = [column for column in self.required.values() if column != "false"]
        columns += dict.fromkeys([*self.select.flag_columns, *required, *more_columns])
        return f"SELECT CAST(file AS INTEGER) AS file, CAST(row AS BIGINT) AS row, {', '.join(columns)} FROM {rows}"


def section_query(section: MappingSection, condition: str, select: SelectBuilder) -> SectionQuery:
    """Build the query of a section from records, or from the items of a list in them."""
    items = item_condition = ""
    inner = select
    item_conditions = [test for test in section.where if test.path.startswith("@")]
    record_conditions = [test for test in section.where if not test.path.startswith("@")]
    if section.each is not None:
        items = select.column_for(select.json_items(section.each))
        columns = {"@": Location("element", "json"), "@index": Location("nth", "bigint")}
        item_paths = [path for path in section.all_paths if path.startswith("@")]
        inner = SelectBuilder(select.mapping, columns, item_paths, outer=select)
        item_condition = inner.all_conditions(item_conditions)
        item_condition = item_condition and inner.column_for(item_condition)
    if sql := select.all_conditions(record_conditions):
        condition += f" AND {select.column_for(sql)}"
    values: dict[str, str] = {}
    checks: list[RowCheck] = []
    for name, source in section.columns.items():
        column = RENAMED.get(name, name)
        values[column], column_checks = inner.column(column, source)
        checks += column_checks
    attributes = [inner.column_for(inner.text(source)) for source in section.attributes.values()]
    paths = _required_paths([*section.columns.values(), *section.attributes.values()], inner)
    row_sources = [ValueSource(paths=(test.path,)) for test in record_conditions]
    row_paths = _required_paths([*row_sources, *([section.each] if section.each else [])], select)
    page_keys = {
        number: inner.column_for(inner.text(source))
        for number, source in enumerate(select.mapping.page_keys)
        if section.kind == "queries" or source == section.last_page_source
    }
    return SectionQuery(
        section, inner, condition, item_condition, items, values, attributes, checks, paths, row_paths, page_keys
    )


def _required_paths(sources: Iterable[ValueSource], select: SelectBuilder) -> dict[tuple[str, ...], str]:
    """Return groups of paths of which one needs a value in some row. A column of the table counts as present."""
    groups: list[tuple[str, ...]] = []
    alternatives = [alternative for source in sources for alternative in (source.alternatives or (source,))]
    for source in (source for source in alternatives if not source.optional):
        groups += [(path,) for path in source.paths] if source.is_join else [source.paths] if source.paths else []
        groups += [(source.index_path,)] if source.index_path else []
    required: dict[tuple[str, ...], str] = {}
    for paths in groups:
        if any(path in {*SPECIAL, "@"} for path in paths):
            continue
        locations = [location for path in paths for location in select.locations(path)]
        if all(location.is_parsed for location in locations):
            has_value = " OR ".join(f"({location.sql}) IS NOT NULL" for location in locations)
            required[paths] = select.column_for(has_value) if has_value else "false"
    return required


def matching_files(section: MappingSection, file_names: Sequence[str]) -> list[int]:
    """Return the numbers of the files that match the pattern of a section."""
    names = [name.replace("\\", "/").rsplit("/", 1)[-1] for name in file_names]
    return [number for number, name in enumerate(names) if fnmatchcase(name, section.file_pattern)]


def _as_text(location: Location) -> str:
    return text_sql(location) or f"CAST(to_json({location.sql}) AS VARCHAR)"


def _coalesce(expressions: Sequence[str]) -> str:
    if len(expressions) > 1:
        return f"coalesce({', '.join(expressions)})"
    return expressions[0] if expressions else "CAST(NULL AS VARCHAR)"


def _literals(texts: Iterable[str]) -> str:
    return ", ".join(map(literal, texts))
