"""The SQL that turns records into our rows, as a mapping says. All names and texts in it are quoted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from judged.online.engine import identifier, literal
from judged.online.reading.loading import DUCKDB
from judged.online.reading.mapping_file import NUMBERED, RENAMED, Section, Value
from judged.online.reading.mapping_path import exists, json_of, resolved
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY
from judged.online.reading.times import sql_time

ORDINAL_OF_FILE = 100_000_000_000_000
ORDINAL_OF_ROW = 10_000
"""Where there is no time, ordinals: room for so many events in a row, and for ten thousand million rows in a file."""

_TYPES = {one.name: one.type for one in (*RAW_QUERY, *RAW_EVENT)} | {"team": "string"}
_OF_A_RESULT = {"hit_ids": "object_id", "teams": "team", "propensities": "propensity"}


@dataclass(frozen=True)
class Records:
    """The table of records: its name, its columns where these are known, and the words for nothing."""

    name: str
    columns: Collection[str]
    null: tuple[str, ...]
    files: tuple[str, ...]
    clock: bool
    rank_base: int


def files_of(section: Section, files: Sequence[str]) -> list[int]:
    """Give the numbers of the files whose names fit a section."""
    names = [name.replace("\\", "/").rsplit("/", 1)[-1] for name in files]
    return [number for number, name in enumerate(names) if fnmatchcase(name, section.files)]


def chosen(section: Section, records: Records) -> str:
    """Select the records of a section, or the items that its ``each`` goes through."""
    numbers = list(map(str, files_of(section, records.files)))
    where = [f"file IN ({', '.join(numbers)})" if numbers else "false"]
    where += [_condition(section, number, records) for number in range(len(section.where))]
    if section.each is None:
        return f"SELECT *, 0 AS nth FROM {records.name} WHERE {' AND '.join(where)}"
    items = f"SELECT *, {_list(section.each, records, json=True)} AS items FROM {records.name}"
    each = (
        f"SELECT * EXCLUDE (items), unnest(items) AS element, generate_subscripts(items, 1) - 1 AS nth FROM ({items})"
    )
    return f"SELECT * FROM ({each}) WHERE {' AND '.join(where)}"


def made(section: Section, records: Records) -> str:
    """Select the rows of a section: file, row, our columns, attributes, and ``odd``: columns that were unreadable."""
    raw = RAW_QUERY if section.kind == "queries" else RAW_EVENT
    values = {RENAMED.get(name, name): value for name, value in section.columns.items()}
    texts, columns, odd = [], [], []
    for name, value in values.items():
        text, shown = f"t_{name}", _converted(name, value)
        texts.append(f"{_list(value, records) if _listed(name) else _text(value, records)} AS {text}")
        columns.append(f"{shown} AS {name}")
        if _checked(name, value):
            odd.append(f"CASE WHEN {text} IS NOT NULL AND {name} IS NULL THEN {literal(name)} END")
    names = list(values)
    for number, value in enumerate(section.attributes.values()):
        texts.append(f"{_text(value, records)} AS {_attribute(number)}")
        names.append(_attribute(number))
    if not records.clock:
        after = int(section.kind == "events")  # the page comes before what was done on it
        columns.append(f"file * {ORDINAL_OF_FILE} + (row) * {ORDINAL_OF_ROW} + nth + {after} AS time_ms")
        names.append("time_ms")
    if section.kind == "events":
        texts.append("(hash(doc, nth) >> 1) AS record")
        names.append("record")
    inner = f"SELECT file, row, nth{''.join(', ' + text for text in texts)} FROM ({chosen(section, records)})"
    outer = f"SELECT *{''.join(', ' + column for column in columns)} FROM ({inner})"
    rest = [
        f"NULL::{DUCKDB[one.type]} AS {one.name}" for one in raw if one.name not in {"file", "row", "time_ms", *names}
    ]
    if "time_ms" not in values and records.clock:
        rest.append("NULL::BIGINT AS time_ms")
    listed = f"list_filter([{', '.join(odd)}]::VARCHAR[], lambda one: one IS NOT NULL)"
    return f"SELECT file, row, {', '.join([*names, *rest])}, {listed} AS odd FROM ({outer})"


def grouped(section: Section, rows: str, rank_base: int) -> str:
    """Make pages of rows that are one result each: the rows of one ``query_id``, in order of their positions.

    A row without a position and an object is a page without results, as a left join of results to pages writes it.
    """
    skipped = {"file", "row", "query_id", "time_ms", "first_rank", "ranks", *_OF_A_RESULT}
    listed = "list({} ORDER BY position, file, row) FILTER (position IS NOT NULL)".format
    shift = 1 - rank_base
    gaps = "max(position) - min(position) + 1 <> count(position)"
    doubled = "count(DISTINCT position) <> count(position)"
    columns = [
        "min(file) AS file",
        "arg_min(row, (file, row)) AS row",
        "query_id",
        "min(time_ms) AS time_ms",
        f"nullif(min(position) + {shift}, 1) AS first_rank",
        f"CASE WHEN {gaps} OR {doubled} THEN {listed(f'position + {shift}')} END AS ranks",
        f"coalesce({listed('object_id')}, []) AS hit_ids",
    ]
    for name, of in _OF_A_RESULT.items():
        if name != "hit_ids":
            there = of in section.columns
            columns.append(f"{listed(of) if there else f'NULL::{DUCKDB[_TYPES[name]]}'} AS {name}")
    names = [one.name for one in RAW_QUERY if one.name not in skipped]
    names += [_attribute(number) for number in range(len(section.attributes))]
    columns += [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    return f"SELECT {', '.join(columns)}, {doubled} AS doubled FROM {rows} WHERE NOT ({ASTRAY}) GROUP BY query_id"


def clicked_pages(section: Section, rows: str) -> str:
    """Make pages of rows that are one click each: the rows of one ``query_id``; what stood on them nobody says."""
    names = [one.name for one in RAW_QUERY if one.name not in {"file", "row", "query_id", "time_ms"}]
    names += [_attribute(number) for number in range(len(section.attributes))]
    columns = [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    keys = "min(file) AS file, arg_min(row, (file, row)) AS row, query_id, min(time_ms) AS time_ms"
    return f"SELECT {keys}, {', '.join(columns)} FROM {rows} WHERE query_id IS NOT NULL GROUP BY query_id"


ASTRAY = "query_id IS NULL OR (position IS NULL AND object_id IS NOT NULL)"
"""A row of a result that no place is known for."""


def absent(values: Iterable[Value], records: Records) -> dict[str, str]:
    """Give a test for each path that must be there, or for those of which one must: true where a record has it."""
    tests: dict[str, str] = {}
    for value in values:
        if value.optional:
            continue
        all_of = [value.paths] if not value.joined else [(path,) for path in value.paths]
        for paths in [*all_of, *([(value.at,)] if value.at else [])]:
            found = [exists(resolved(path, records.columns)) for path in paths]
            if found and None not in found:
                tests[paths[0]] = " OR ".join(str(one) for one in found)
    return tests


def _attribute(number: int) -> str:
    """Name an attribute while rows are made: its own name might be that of a column."""
    return f"a_{number}"


def _condition(section: Section, number: int, records: Records) -> str:
    condition = section.where[number]
    text = _text(Value(paths=(condition.path,)), records)
    if condition.filled is not None:
        return f"{'' if condition.filled else 'NOT '}{_is_filled(text)}"
    if condition.out:
        return f"coalesce({text} NOT IN ({_listing(condition.out)}), true)"
    return f"coalesce({text} IN ({_listing(condition.among)}), false)" if condition.among else "true"


def _listing(texts: Collection[str]) -> str:
    return ", ".join(literal(text) for text in texts)


def _is_filled(text: str) -> str:
    return f"coalesce({text} NOT IN ('', '{{}}', '[]'), false)"


def _clean(text: str, records: Records) -> str:
    """Make null of the words for nothing."""
    if not records.null:
        return text
    return f"CASE WHEN {text} NOT IN ({_listing(records.null)}) THEN {text} END"


def _text(value: Value, records: Records) -> str:
    """Write the SQL of a value as text."""
    if value.constant is not None:
        return literal(value.constant)
    if value.at is not None:
        place = _text(Value(paths=(value.at,)), records)
        index = f"TRY_CAST({place} AS BIGINT) + {1 - records.rank_base}"
        return (
            f"CASE WHEN {index} >= 1 THEN ({_list(value, records)})[{index}] END"  # below 1 it would count from the end
        )
    if value.between is not None and not value.joined:
        return f"array_to_string({_list(value, records)}, {literal(value.between)})"
    found = [
        _clean(f"json_extract_string({json_of(resolved(path, records.columns))}, '$')", records) for path in value.paths
    ]
    if value.joined:
        between = literal("/" if value.between is None else value.between)
        text = f" || {between} || ".join(f"({one})" for one in found)
    else:
        text = f"coalesce({', '.join(found)})" if len(found) > 1 else found[0]
    if value.equals:
        return f"CAST(coalesce({text} IN ({_listing(value.equals)}), false) AS VARCHAR)"
    return f"CAST({_is_filled(text)} AS VARCHAR)" if value.filled else text


def _list(value: Value, records: Records, *, json: bool = False) -> str:
    """Write the SQL of a value as a list of texts (of JSON, by wish); null where there is none."""
    if value.constant is not None:
        return f"[{f'to_json({literal(value.constant)})' if json else literal(value.constant)}]"
    found: list[str] = []
    for path in value.paths:
        understood = resolved(path, records.columns)
        items = json_of(understood)
        if not understood.many:
            items = _items(items, value, records)
        found.append(items)
    listed = f"coalesce({', '.join(found)})" if len(found) > 1 else found[0]
    return listed if json else f"list_transform({listed}, lambda e: json_extract_string(e, '$'))"


def _items(json: str, value: Value, records: Records) -> str:
    """Take a JSON list apart, or a text: by its separator, as JSON that was written into it, or as the only item."""
    text = f"json_extract_string({json}, '$')"
    cut = f"string_split({text}, {literal(value.separator)})" if value.separator else f"[{text}]"
    written = f"json_extract(TRY_CAST({text} AS JSON), '$[*]')"
    return (
        f"CASE WHEN json_type({json}) = 'ARRAY' THEN json_extract({json}, '$[*]') "
        f"WHEN ({_clean(text, records)}) IS NULL THEN NULL "
        f"WHEN prefix({text}, '[') AND json_valid({text}) THEN {written} "
        f"ELSE list_transform({cut}, lambda e: to_json(e)) END"
    )


def _listed(name: str) -> bool:
    return _TYPES[name].startswith("array")


def _checked(name: str, value: Value) -> bool:
    return value.constant is None and (_TYPES[name] in {"int64", "int32", "float64", "boolean"})


def _converted(name: str, value: Value) -> str:
    """Write the SQL that turns the text ``t_name`` into the column's type, null where it cannot be read."""
    text, kind = f"t_{name}", _TYPES[name]
    if name == "time_ms":
        return _time(text, value)
    if name in RENAMED.values():
        number = f"{_number(text)} * {NUMBERED[value.unit]!r}"
        return f"TRY_CAST(CASE WHEN {number} >= 0 THEN {number} END AS {DUCKDB[kind]})"
    if kind == "boolean":
        yes, no = "'true', '1', 'yes', 't', 'y'", "'false', '0', 'no', 'f', 'n'"
        return f"CASE WHEN lower({text}) IN ({yes}) THEN true WHEN lower({text}) IN ({no}) THEN false END"
    if kind in {"int64", "int32"}:
        return f"CASE WHEN {_number(text)} = floor({_number(text)}) THEN TRY_CAST({text} AS {DUCKDB[kind]}) END"
    if kind == "float64":
        return _number(text)
    if kind in {"array<float64>", "array<int32>"}:
        return f"list_transform({text}, lambda one: {_number('one')})"
    return text


def _number(text: str) -> str:
    """Read a number; infinity and NaN are none."""
    return f"CASE WHEN isfinite(TRY_CAST({text} AS DOUBLE)) THEN TRY_CAST({text} AS DOUBLE) END"


def _time(text: str, value: Value) -> str:
    if value.format == "auto":
        return sql_time(text, "varchar")
    if value.format == "order":
        return f"TRY_CAST({text} AS BIGINT)"
    if value.format in NUMBERED:
        # Whole numbers stay whole: a float cannot hold nanoseconds since 1970.
        per = NUMBERED[value.format]
        scale = f"* {int(per)}" if per >= 1 else f"// {round(1 / per)}"
        whole = f"TRY_CAST(CASE WHEN regexp_full_match({text}, '[+-]?[0-9]+') THEN {text} END AS HUGEINT) {scale}"
        parts = f"floor({_number(text)} * {per!r} + 0.001)"
        return f"coalesce(TRY_CAST({whole} AS BIGINT), TRY_CAST({parts} AS BIGINT))"
    return f"(epoch_us(try_strptime({text}, {literal(value.format)})) // 1000)"


def kept_columns(section: Section, attributes: Mapping[str, None], rank_base: int) -> str:
    """Name the columns of the raw table, in order; attributes that the section does not have are null."""
    raw = RAW_QUERY if section.kind == "queries" else RAW_EVENT
    ranks = "ranks" if section.results else f"list_transform(ranks, lambda one: one + {1 - rank_base})"
    ours = [f"CAST({ranks if one.name == 'ranks' else one.name} AS {DUCKDB[one.type]}) AS {one.name}" for one in raw]
    numbers = {name: number for number, name in enumerate(section.attributes)}
    more = [
        f"{_attribute(numbers[name]) if name in numbers else 'CAST(NULL AS VARCHAR)'} AS {identifier(name)}"
        for name in attributes
    ]
    return ", ".join(ours + more)
