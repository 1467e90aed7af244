"""The SQL that takes what a mapping names out of a table of records: each expression once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from judged.online.engine import literal
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.mapping_file import RENAMED, Condition, MappingFile, Section, Value
from judged.online.readers.paths import SPECIAL, Finder, Place
from judged.online.readers.raw import DUCKDB
from judged.online.readers.values import (
    TEXT_LIMIT,
    WITHOUT_OFFSET,
    Found,
    Kind,
    first_of,
    sql_without_offset,
    text_of,
    value_of,
)

ORDINAL_OF_FILE = 100_000_000_000_000
ORDINAL_OF_ROW = 10_000
"""Where there is no time, ordinals: room for so many events in a row, and for ten thousand million rows in a file."""

_TYPES = {one.name: one.type for one in (*RAW_QUERY, *RAW_EVENT)} | {
    "team": "string",
    "offset": "int64",
    "base": "int64",
    "propensity_convention": "string",
}
_BY_TYPE: dict[str, Kind] = {
    "string": "word", "int64": "whole", "int32": "page", "float64": "real", "boolean": "flag", "array<string>": "list",
    "array<float64>": "numbers", "array<int32>": "numbers",
}  # fmt: skip
_BY_NAME: dict[str, Kind] = {"query": "text", "time_ms": "time", "dwell_ms": "millis", "latency_ms": "duration"}
_FARTHEST = 2_000_000_000
_BITS = 60


@dataclass(frozen=True)
class Check:
    """What may be wrong with a row: the rule, the column, where it was looked for, and the column that says whether."""

    rule: str
    column: str
    written: str
    bad: str
    note: str = ""


@dataclass(frozen=True)
class Records:
    """A table of records, as it is written.

    Parameters
    ----------
    table
        SQL that stands behind FROM.
    columns
        Its columns by name; and ``#record``, ``#id``, where it has such.
    file, row
        SQL of where a row comes from.
    files
        The numbers of its files.
    index
        SQL of the name of the index that the row is of; empty: none.
    lost
        SQL of what is wrong with a row, null for most; empty: nothing can be.
    whole
        SQL of the hash of a whole record; empty: that of all columns.
    lines
        It is JSON, where any row may have any member.
    done
        Called when all was taken out.
    """

    table: str
    columns: Mapping[str, Place]
    file: str
    row: str
    files: tuple[int, ...]
    index: str = ""
    lost: str = ""
    whole: str = ""
    lines: bool = False
    done: Callable[[], object] = field(default=lambda: None)


class Select:
    """What is taken out of a table.

    Parameters
    ----------
    mapping
        What it is taken by.
    columns
        The table's columns.
    wanted
        All paths that will be asked for.
    flat
        Parts of paths may be columns.
    outer
        What is taken out of the records whose items these are.
    """

    def __init__(
        self,
        mapping: MappingFile,
        columns: Mapping[str, Place],
        wanted: Iterable[str],
        *,
        flat: bool = False,
        outer: Select | None = None,
    ) -> None:
        self.mapping, self.columns, self.outer = mapping, columns, outer
        self.finder = Finder(columns, wanted, mapping.flat or () if flat else None)
        self._columns: dict[str, str] = {}
        self._inner: dict[str, str] = {}
        self._bad: dict[str, int] = {}
        self.typed = True

    def kept(self, sql: str) -> str:
        """Give the column that holds an expression."""
        return self._columns.setdefault(sql, f"{'i' if self.outer else 'c'}{len(self._columns)}")

    def is_nothing(self, column: str) -> bool:
        """Say whether a column is that of no value."""
        return self._columns.get("NULL") == column

    def places(self, path: str) -> list[Place]:
        """Give the places of a path, words for nothing taken away."""
        if self.outer is not None and not path.startswith("@"):
            return [replace(one, sql=self.outer.kept(one.sql), level=0) for one in self.outer.places(path)]
        found = self.finder.find(path)
        self.typed = self.typed and not any(one.parsed for one in found)
        return [self._clean(one) for one in found]

    def _clean(self, place: Place) -> Place:
        words, text = self.mapping.null, text_of(place)
        if not words or (place.type not in {"varchar", "json"} and (text is None or set(words) <= {"", "NULL"})):
            return place
        if words == ("",) and place.type == "varchar":
            return replace(place, sql=f"nullif({place.sql}, '')")
        return replace(place, sql=f"CASE WHEN {text} NOT IN ({_listing(words)}) THEN {place.sql} END")

    def text(self, value: Value) -> str:
        """Write the SQL of a value as text."""
        if value.constant is not None:
            return literal(value.constant)
        if value.at is not None:
            index = f"TRY_CAST({self.text(Value(paths=(value.at,)))} AS BIGINT) + {1 - (self.mapping.rank_base or 0)}"
            return f"CASE WHEN {index} >= 1 THEN ({self.list(value)})[{index}] END"  # below 1 it counts from the end
        if value.between is not None and not value.joined:
            return f"array_to_string({self.list(value)}, {literal(value.between)})"
        each = [_first([_as_text(place) for place in self.places(path)]) for path in value.paths]
        if not value.joined:
            return _first(each)
        self.typed = False
        return f" || {literal('/' if value.between is None else value.between)} || ".join(f"({one})" for one in each)

    def list(self, value: Value) -> str:
        """Write the SQL of a value as a list of texts; null where there is none."""
        places = [place for path in value.paths for place in self.places(path)]
        return value_of(places, "list", value).sql

    def items(self, value: Value) -> str:
        """Write the SQL of a value as a list of JSON."""
        self.typed = False
        each: list[str] = []
        for place in (place for path in value.paths for place in self.places(path)):
            if isinstance(place.shape, tuple):
                each.append(f"list_transform({place.sql}, lambda e: to_json(e))")
                continue
            text = _as_text(place)
            listed = value_of([place], "list", value).sql
            json = f"prefix(ltrim({text}), '[') AND json_valid({text})"
            whole = f"list_transform({listed}, lambda e: to_json(e))"
            each.append(f"CASE WHEN {json} THEN json_extract({text}, '$[*]') ELSE {whole} END")
        return f"CAST({_first(each)} AS JSON[])"  # also where no record has it, and it is nothing

    def condition(self, one: Condition) -> str:
        """Write the SQL of a condition: true or false."""
        text = self.text(Value(paths=(one.path,)))
        if one.filled is not None:
            return f"{'' if one.filled else 'NOT '}coalesce({text} NOT IN ('', '{{}}', '[]'), false)"
        if one.out:
            return f"coalesce({text} NOT IN ({_listing(one.out)}), true)"
        number = f"TRY_CAST({text} AS DOUBLE)"
        bounds = {">": one.above, ">=": one.least, "<=": one.most}
        tests = [f"{number} {sign} {bound!r}" for sign, bound in bounds.items() if bound is not None]
        if tests:
            return f"coalesce(isfinite({number}) AND {' AND '.join(tests)}, false)"
        return f"coalesce({text} IN ({_listing(one.among)}), false)" if one.among else "true"

    def all_of(self, conditions: Sequence[Condition]) -> str:
        """Write the SQL of several conditions."""
        return " AND ".join(map(self.condition, conditions))

    def column(self, name: str, value: Value) -> tuple[str, list[Check]]:
        """Take a column of ours: what holds it, and what may be wrong with it."""
        found, checks = self._found(name, value)
        column = self.kept(found.sql)
        written = next(iter(value.all_paths), "")
        if found.given:
            rule = "odd-time" if name == "time_ms" else "wrong-type"
            checks.append(Check(rule, name, written, self._marked(f"{self._seen(found.given)} AND {column} IS NULL")))
        if name == "time_ms" and value.format == "auto":
            checks += self._without_offset(value, column, written)
        return column, checks

    def _without_offset(self, value: Value, column: str, written: str) -> Iterable[Check]:
        for place in (place for path in value.paths for place in self.places(path)):
            text = text_of(place)
            if place.type in WITHOUT_OFFSET:
                yield Check("no-offset", "time_ms", written, "true")
            elif text and place.type in {"varchar", "json"} and (mark := sql_without_offset(text, "varchar")):
                bad = self._marked(f"{self._seen(mark)} AND {column} IS NOT NULL")
                yield Check("no-offset", "time_ms", written, bad)

    def _seen(self, sql: str) -> str:
        """Give the name that an expression has while rows are made."""
        return self._inner.setdefault(sql, f"{'j' if self.outer else 'm'}{len(self._inner)}")

    def _marked(self, sql: str) -> str:
        number = self._bad.setdefault(sql, len(self._bad))
        return f"(_bad{number // _BITS} & {1 << number % _BITS}) <> 0"

    def _found(self, name: str, value: Value) -> tuple[Found, list[Check]]:
        kind = _BY_NAME.get(name) or _BY_TYPE[_TYPES[name]]
        checks: list[Check] = []
        if value.constant is not None:
            return Found(f"CAST({literal(value.constant)} AS {DUCKDB[_TYPES[name]]})"), checks
        if value.alternatives:
            each = [self._found(name, one) for one in value.alternatives]
            return first_of([one for one, _ in each]), [check for _, more in each for check in more]
        if value.equals:
            return Found(f"coalesce({self.text(value)} IN ({_listing(value.equals)}), false)"), checks
        if value.joined or value.at is not None or value.between is not None:
            places = [Place(self.text(value), "varchar")]
        else:
            places = [place for path in value.paths for place in self.places(path)]
            if value.column and (place := self.finder.column(value.column)):
                places.append(place)
        places = list({one.sql: one for one in places}.values())
        if any(one.type in {"varchar", "json"} for one in places) and name == "time_ms":
            self.typed = False
        found = value_of(places, "filled" if value.filled else kind, value)
        if kind == "text":
            texts = [text for one in places if one.parsed and (text := text_of(one))]
            longer = [self._marked(self._seen(f"length({text}) > {TEXT_LIMIT}")) for text in texts]
            checks += [Check("long-text", name, "", bad) for bad in longer]
        if value.when and places:
            met = self.all_of(value.when)
            stands = " OR ".join(f"({place.sql}) IS NOT NULL" for place in places)
            unused = self._marked(self._seen(f"({stands}) AND NOT ({met})"))
            checks.append(Check("unused-value", name, value.paths[0], unused, value.note))
            given = f"({met}) AND {found.given}" if found.given else None
            found = Found(f"CASE WHEN {met} THEN {found.sql} END", given)
        return found, checks

    @property
    def bad(self) -> list[str]:
        """The columns whose bits say what is wrong with a row."""
        return [f"_bad{number}" for number in range(-(-len(self._bad) // _BITS))]

    def sql(self, source: str, columns: Sequence[str]) -> str:
        """Write the query: other columns by their expressions with AS, then what was asked for."""
        inner = [f"{sql} AS {name}" for sql, name in (self._columns | self._inner).items()]
        names = [one.rsplit(" AS ", 1)[1] for one in columns]
        bits = [f"CASE WHEN {sql} THEN {1 << number % _BITS} ELSE 0 END" for sql, number in self._bad.items()]
        bad = [
            f"CAST({' + '.join(bits[at * _BITS : (at + 1) * _BITS])} AS BIGINT) AS {name}"
            for at, name in enumerate(self.bad)
        ]
        taken = f"SELECT {', '.join([*columns, *inner])} FROM {self.finder.source(source)} AS _records"
        return f"SELECT {', '.join([*names, *self._columns.values(), *bad])} FROM ({taken})"


@dataclass(frozen=True)
class Taken:
    """What a section takes: its rows, as columns of a stage, and what may be wrong with them.

    Parameters
    ----------
    section
        The section.
    select
        Where its columns are: of its items, where it goes through a list.
    where, item_where
        What its records, and its items, must meet.
    items
        The column of the list that it goes through.
    columns
        SQL of our columns, by name.
    attributes
        SQL of the log's own attributes, in order.
    checks
        What may be wrong.
    needed
        Paths of which one must be in some of its rows, with the column that says whether it is.
    told
        The same of what tells its rows from others, in any row.
    """

    section: Section
    select: Select
    where: str
    item_where: str
    items: str
    columns: Mapping[str, str]
    attributes: Sequence[str]
    checks: Sequence[Check]
    needed: Mapping[tuple[str, ...], str]
    told: Mapping[tuple[str, ...], str]

    @property
    def names(self) -> Iterable[str]:
        """The columns of its table, where it is no table of lines."""
        columns = (self.select.outer or self.select).columns
        return (name for name in columns if "#record" not in columns and not name.startswith("#"))

    @property
    def kind(self) -> str:
        """What its rows are called in findings."""
        return "query" if self.section.kind == "queries" else "event"

    def gives(self, name: str) -> bool:
        """Say whether a column may hold anything."""
        return name in self.columns and not self.select.is_nothing(self.columns[name])

    def rows(self, stage: str, *, clock: bool, more: Sequence[str]) -> str:
        """Write the query of its rows: file, row, our columns, ``a_0`` and so on, and what is wrong with each."""
        source, nth = f"(SELECT * FROM {stage} WHERE {self.where})", "0"
        if self.items:
            nth = "nth"
            number = f"generate_subscripts({self.items}, 1) - 1 AS nth"
            source = f"(SELECT *, unnest({self.items}) AS element, {number} FROM {source})"
            outer = [f"{name} AS {name}" for name in ("file", "row", "nth", "record")]
            source = f"({self.select.sql(source, outer)})" + (f" WHERE {self.item_where}" if self.item_where else "")
        known = dict(self.columns)
        if not clock:
            after = int(self.kind == "event")  # the page comes before what was done on it
            known["time_ms"] = f"file::BIGINT * {ORDINAL_OF_FILE} + row * {ORDINAL_OF_ROW} + {nth} + {after}"
        if self.kind == "event":
            known["record"] = "record" if nth == "0" else "hash(record, nth) >> 1"
        if "offset" in known:
            passed = f"{known['offset']} BETWEEN 0 AND {_FARTHEST}"
            size = known.get("size", "NULL")
            known["first_rank"] = (
                f"coalesce({known.get('first_rank', 'NULL')}, CASE WHEN {passed} THEN {known['offset']} + 1 END)"
            )
            known["page"] = (
                f"coalesce({known.get('page', 'NULL')}, CASE WHEN {size} BETWEEN 1 AND 1000000 AND {passed} "
                f"THEN {known['offset']} // {size} + 1 END)"
            )
        if "ranks" in known:
            shift = 1 - (self.select.mapping.rank_base or 0)
            known["ranks"] = f"list_transform({known['ranks']}, lambda e: e + {shift})"
        raw = RAW_QUERY if self.kind == "query" else RAW_EVENT
        names = [one.name for one in raw if one.name not in {"file", "row"}]
        names += [
            one
            for one in ("team", "n_total", "object_id", "position", "propensity")
            if one in known and one not in names
        ]
        columns = [f"CAST({known.get(one, 'NULL')} AS {DUCKDB[_TYPES[one]]}) AS {one}" for one in names]
        columns += [f"CAST({sql} AS VARCHAR) AS a_{number}" for number, sql in enumerate(self.attributes)]
        columns += dict.fromkeys([*self.select.bad, *(one for one in self.needed.values() if one != "false"), *more])
        return f"SELECT CAST(file AS INTEGER) AS file, CAST(row AS BIGINT) AS row, {', '.join(columns)} FROM {source}"


def taken(section: Section, where: str, select: Select) -> Taken:
    """Take what a section names out of records, or out of the items of a list in them."""
    items = item_where = ""
    inner = select
    if section.each is not None:
        items = select.kept(select.items(section.each))
        columns = {"@": Place("element", "json"), "@index": Place("nth", "bigint")}
        wanted = [path for path in section.all_paths if path.startswith("@")]
        inner = Select(select.mapping, columns, wanted, outer=select)
        item_where = inner.all_of([one for one in section.where if one.path.startswith("@")])
        item_where = item_where and inner.kept(item_where)
    if rows := select.all_of([one for one in section.where if not one.path.startswith("@")]):
        where += f" AND {select.kept(rows)}"
    known: dict[str, str] = {}
    checks: list[Check] = []
    for name, value in section.columns.items():
        ours = RENAMED.get(name, name)
        known[ours], more = inner.column(ours, value)
        checks += more
    attributes = [inner.kept(inner.text(one)) for one in section.attributes.values()]
    needed = _needed([*section.columns.values(), *section.attributes.values()], inner)
    rows = [Value(paths=(one.path,)) for one in section.where if not one.path.startswith("@")]
    told = _needed([*rows, *([section.each] if section.each else [])], select)
    return Taken(section, inner, where, item_where, items, known, attributes, checks, needed, told)


def _needed(values: Iterable[Value], select: Select) -> dict[tuple[str, ...], str]:
    """Give the paths of which one must be in some row: a table's own columns are there."""
    groups: list[tuple[str, ...]] = []
    for value in [one for whole in values for one in (whole.alternatives or (whole,)) if not one.optional]:
        groups += [(path,) for path in value.paths] if value.joined else [value.paths] if value.paths else []
        groups += [(value.at,)] if value.at else []
    needed: dict[tuple[str, ...], str] = {}
    for paths in groups:
        if any(path in {*SPECIAL, "@"} for path in paths):
            continue
        places = [place for path in paths for place in select.places(path)]
        if not any(not place.parsed for place in places):
            there = " OR ".join(f"({place.sql}) IS NOT NULL" for place in places)
            needed[paths] = select.kept(there) if there else "false"
    return needed


def files_of(section: Section, files: Sequence[str]) -> list[int]:
    """Give the numbers of the files whose names fit a section."""
    names = [name.replace("\\", "/").rsplit("/", 1)[-1] for name in files]
    return [number for number, name in enumerate(names) if fnmatchcase(name, section.files)]


def _as_text(place: Place) -> str:
    return text_of(place) or f"CAST(to_json({place.sql}) AS VARCHAR)"


def _first(texts: Sequence[str]) -> str:
    return f"coalesce({', '.join(texts)})" if len(texts) > 1 else texts[0] if texts else "CAST(NULL AS VARCHAR)"


def _listing(texts: Iterable[str]) -> str:
    return ", ".join(literal(text) for text in texts)
