"""Read attribute tables of topics or documents from files; columns are strings, float64, or bool."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import arrow_table, parquet_table
from judged.data.column_names import check_unique_names, known_names
from judged.data.compute import pc, unescape_csv
from judged.data.index import decode_dictionary, id_column, id_text
from judged.data.json_rows import json_kind, json_lines, load_json
from judged.data.topic_files import check_column_count, normalize_name
from judged.errors import InputError, JudgedWarning
from judged.results.decimals import is_number, read_number, resembles_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from judged.results.types import Table

_NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_IDS = known_names("attributes")
ENTITIES = {"query_id": "topic", "doc_id": "document"}
"""Noun for the rows of a table, by the name of its id column."""


@dataclass(frozen=True)
class _LoadedTable:
    """A table before its columns are typed, with the line of each row if the format has lines."""

    table: Table
    where: str
    lines: Iterable[int] | None = None

    def line(self, row: int) -> int | None:
        return None if self.lines is None else next(islice(self.lines, row, None))


def read_attributes(path: str | Path, id_name: str = "query_id") -> Table:
    """Read an attribute table from a file: CSV, TSV, JSON, JSONL, Parquet or Arrow (Feather), compressed or not."""
    # The format is detected from the file extension and the content. JSON is `{id: {...}}` or a list of records.
    # `path` may be `-` for standard input. `id_name` is `query_id` or `doc_id`; the aliases in `_IDS` are recognized.
    # Returns the id column as `id_name`, then the other columns in file order: string, float64 or bool.
    where = files.STDIN if str(path) == "-" else str(path)
    file = files.local(path)
    try:
        loaded = _read(file, where, id_name)
        check_column_count(loaded.table.num_columns, where)
        attributes = typed_attributes(loaded.table, id_name, where)
        _check_ids(attributes[id_name], loaded, id_name)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:  # the file is damaged
        raise _unreadable_error(where, id_name, str(error)) from None
    return attributes


def typed_attributes(table: Table, id_name: str, where: str) -> Table:
    """Return the table with normalized names, the id column first, and all other columns typed."""
    names = [normalize_name(name) for name in table.column_names]
    check_unique_names(names, where)
    id_position = find_id_column(names, id_name)
    if id_position is None:
        raise InputError(
            f"no {id_name} among the columns {', '.join(names)[:80]}",
            fix=f"name the columns in the first line, including {id_name}",
            path=where,
        )
    try:
        columns = {id_name: id_column(table.column(id_position), id_name)}
        for position, name in enumerate(names):
            if position != id_position:
                has_lists = id_name == "query_id" and pa.types.is_list(table.column(position).type)
                columns[name] = (text_list_column if has_lists else typed_column)(table.column(position), name)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=where) from None
    return pa.table(columns)


def record_with_id(id_name: str, record_id: str, fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Add the id to the fields of a record from ``{id: {...}}``."""
    if str(fields.get(id_name, record_id)) != record_id:
        problem = f"the record of {ENTITIES[id_name]} {record_id} has another {id_name}: {fields[id_name]!r:.40}"
        raise InputError(problem, fix=f"remove {id_name} from the record, or correct {id_name}", path=where)
    return {id_name: record_id, **{key: value for key, value in fields.items() if key != id_name}}


def find_id_column(names: Iterable[str], id_name: str) -> int | None:
    """Return the position of the id column, by its known names in order of preference; None if it is missing.

    >>> find_id_column(["query", "qid", "domain"], "query_id"), find_id_column(["length"], "doc_id")
    (1, None)
    """
    plain = [normalize_name(name) for name in names]
    return next((plain.index(name) for name in _IDS[id_name] if name in plain), None)


def text_list_column(column: Any, name: str) -> Any:
    """Strip and deduplicate the texts in each list; an empty list becomes null.

    >>> text_list_column(pa.array([["a", " a", "b"], [], None]), "x").to_pylist()
    [['a', 'b'], None, None]
    """
    kind = column.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"the column {name} must contain lists of texts, got lists of {kind}", fix="use lists of texts"
        )
    stripped = ([text.strip() for text in texts or () if text and text.strip()] for texts in column.to_pylist())
    return pa.array([list(dict.fromkeys(texts)) or None for texts in stripped], pa.list_(pa.string()))


def typed_column(column: Any, name: str) -> Any:
    """Convert a column to string, float64 or bool; empty text and NaN become null.

    >>> [typed_column(pa.array(texts), "x").to_pylist() for texts in (["3", ""], ["007", "1"], ["true", "False"])]
    [[3.0, None], ['007', '1'], [True, False]]
    """
    # Text is converted only if every value is a number, or every value is true or false. A leading zero (`007`) marks
    # a code, which stays text, and so do dates.
    column = decode_dictionary(column)
    kind = column.type
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False)
        if pc.any(pc.is_inf(numbers)).as_py():
            problem = f"the column {name} must contain finite numbers, got infinity"
            raise InputError(problem, fix="write finite numbers, or leave the cells empty")
        return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        problem = f"the column {name} must contain text, numbers, or true/false, got the data type {kind}"
        raise InputError(problem, fix="convert the column to text or numbers, with one value in each row")
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return _infer_type(pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts), name)


def _infer_type(texts: Any, name: str) -> Any:
    if texts.null_count == len(texts):
        return texts
    lower = pc.utf8_lower(texts)
    if pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(["true", "false"]))).as_py():
        return pc.equal(lower, "true")
    if pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py():
        try:
            return pa.array([None if text is None else read_number(text) for text in texts.to_pylist()], pa.float64())
        except ValueError:  # a number is out of the range of float64
            pass
    _warn_about_mixed_numbers(texts, name)
    return texts


def _warn_about_mixed_numbers(texts: Any, name: str) -> None:
    """Warn if a column is read as text although most values look like numbers, unless it has codes such as 007."""
    counts = Counter(texts.drop_null().to_pylist())
    if any(text.isdigit() and text[0] == "0" and text != "0" for text in counts):
        return
    total = counts.total()
    invalid = [text for text in counts if not (re.match(_NUMBER, text) and is_number(text))]
    if 2 * sum(count for text, count in counts.items() if resembles_number(text)) > total:
        warnings.warn(
            f"the column {name} is read as text: {sum(counts[text] for text in invalid)} of {total} values are not"
            f" numbers, such as {invalid[0]!r:.40}; write numbers as 1.5, and leave cells without a value empty",
            JudgedWarning,
            stacklevel=2,
        )


def _read(file: Path, where: str, id_name: str) -> _LoadedTable:
    ending = where.lower().removesuffix(".gz")
    head = files.head(file)
    if head.startswith(b"PAR1") or ending.endswith((".parquet", ".pq")):
        return _LoadedTable(parquet_table(file, where), where)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or ending.endswith((".arrow", ".feather")):
        return _LoadedTable(arrow_table(file, where), where)
    text = files.text(file, where)
    start = text.lstrip()
    if not start:
        raise InputError("this file is empty", fix=f"use a file with a column {id_name}", path=where)
    if ending.endswith((".jsonl", ".ndjson")) or json_kind(start, where) == "jsonl":
        return _table_of_records(json_lines(file, where), where, id_name)
    if ending.endswith(".json") or start.startswith(("{", "[")):
        return _table_of_records(_json_records(load_json(file, where), where, id_name), where, id_name)
    return _read_delimited(text, where, id_name)


def _json_records(data: Any, where: str, id_name: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the records of ``{id: {...}}`` or of a list of objects."""
    entity, fix = ENTITIES[id_name], f'write {{"id": {{"name": ...}}}}, or [{{"{id_name}": ...}}]'
    if isinstance(data, dict):
        for record_id, record in cast("dict[str, Any]", data).items():
            if not isinstance(record, dict):
                problem = f"the value of {entity} {record_id} must be an object, got {json.dumps(record)[:40]}"
                raise InputError(problem, fix=fix, path=where)
            yield None, record_with_id(id_name, record_id, cast("dict[str, Any]", record), where)
        return
    if not isinstance(data, list):
        raise InputError(f"this JSON contains no records of {entity}s", fix=fix, path=where)
    for number, record in enumerate(cast("list[Any]", data), 1):
        if not isinstance(record, dict):
            raise InputError(f"record {number} must be an object, got {json.dumps(record)[:40]}", fix=fix, path=where)
        yield None, record


def _table_of_records(
    records: Iterable[tuple[int | None, Mapping[str, Any]]], where: str, id_name: str
) -> _LoadedTable:
    """Build a table with all fields of all records as columns."""
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    key, count = "", 0
    for line, record in records:
        if key not in record:
            id_position = find_id_column(record, id_name)
            key = "" if id_position is None else list(record)[id_position]
        prefix = f"record {count + 1}: " if line is None else ""
        if not key:
            problem = f"{prefix}no {id_name} among the fields {', '.join(record)[:80]}"
            raise InputError(problem, fix=f"use a field named {id_name}", path=where, line=line)
        for name, value in record.items():
            if name == key:
                continue
            is_text_list = isinstance(value, list) and all(isinstance(element, str) for element in value)
            if isinstance(value, (dict, list)) and value and not (is_text_list and id_name == "query_id"):
                lists = ", or a list of texts" if id_name == "query_id" else ""
                problem = f"{prefix}{name} must be one value{lists}, got {json.dumps(value)[:40]}"
                raise InputError(problem, fix=f"use one text, number or true/false{lists}", path=where, line=line)
            if name not in columns:
                check_column_count(len(columns) + 1, where, line)  # before the memory of a column is allocated
                columns[name] = [None] * count
            columns[name].append(None if value in ({}, []) else value)
        columns.setdefault(id_name, [None] * count).append(_parse_id(record[key], id_name, prefix, where, line))
        count += 1
        for column in columns.values():
            column.extend([None] * (count - len(column)))
        lines.extend(() if line is None else (line,))
    if not columns:
        raise InputError("this file is empty", fix=f"write records with {id_name}", path=where)
    arrays = {name: _array(values, name, where) for name, values in columns.items()}
    return _LoadedTable(pa.table({id_name: arrays.pop(id_name), **arrays}), where, lines or None)


def _parse_id(value: Any, id_name: str, prefix: str, where: str, line: int | None) -> str:
    try:
        return id_text(value, id_name)
    except InputError as error:
        raise InputError(prefix + error.problem, fix=error.fix, path=where, line=line) from None


def _array(values: list[Any], name: str, where: str) -> Any:
    """Convert values to an Arrow array; values of mixed types become JSON text."""
    present = [value for value in values if value is not None]
    texts = [value if value is None or isinstance(value, (str, list)) else json.dumps(value) for value in values]
    try:
        if any(isinstance(value, list) for value in present):
            lists = [text if isinstance(text, list) or text is None else [text] for text in texts]
            return pa.array(lists, pa.list_(pa.string()))
        if present and all(isinstance(value, bool) for value in present):
            return pa.array(values, pa.bool_())
        if present and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present):
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        problem = f"a text of {name} has an unpaired surrogate (invalid Unicode)"
        raise InputError(problem, fix="correct the text", path=where) from None
    except OverflowError:
        raise InputError(
            f"the column {name} has a number that is too large", fix="write a smaller number", path=where
        ) from None


def _read_delimited(text: str, where: str, id_name: str) -> _LoadedTable:
    """Read CSV with commas or semicolons, or TSV, in which quotation marks have no special meaning."""
    from pyarrow import csv as arrow_csv

    header_line = text.split("\n", 1)[0]
    delimiter = next((candidate for candidate in "\t,;" if candidate in header_line), ",")
    is_tsv = delimiter == "\t"
    header = next(_rows(header_line, delimiter), (1, [""]))[1]
    if any(not name.strip() for name in header):
        raise InputError("a column has no name", fix="name every column in the first line", path=where, line=1)
    check_column_count(len(header), where, 1)
    positions = list(map(str, range(len(header))))  # names that are unique even if those of the header are not
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text.encode()),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char=False if is_tsv else '"', newlines_in_values=not is_tsv
            ),
            read_options=arrow_csv.ReadOptions(column_names=positions, skip_rows=1),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(positions, pa.string())),
        ).rename_columns(header)
        table = table if is_tsv else unescape_csv(table)
    except pa.ArrowInvalid as error:
        for line, row in _rows(text, delimiter):
            if len(row) != len(header):
                problem = f"{len(row)} fields, but the header has {len(header)} ({', '.join(header)[:60]})"
                raise InputError(problem, fix="correct the line", path=where, line=line) from None
        raise _unreadable_error(where, id_name, str(error)) from None
    return _LoadedTable(table, where, (line for line, _ in islice(_rows(text, delimiter), 1, None)))


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and fields of each row: for error messages only, as it is slower than Arrow's reader."""
    if delimiter == "\t":
        yield from ((line, row.split("\t")) for line, row in enumerate(text.split("\n"), 1) if row)
        return
    reader = csv.reader(re.split(r"(?<=\n)", text), delimiter=delimiter)
    previous_end = 0
    for row in reader:
        if row:
            yield previous_end + 1, row
        previous_end = reader.line_num


def _check_ids(ids: Any, loaded: _LoadedTable, id_name: str) -> None:
    """Raise InputError with the line if an id is empty or appears twice."""
    entity = ENTITIES[id_name]
    empty_row = pc.index(pc.equal(ids, ""), value=True).as_py()
    if empty_row >= 0:
        raise InputError(
            f"the {id_name} is empty", fix="fill in the id", path=loaded.where, line=loaded.line(empty_row)
        )
    if len(pc.unique(ids)) == len(ids):
        return
    earlier: set[str] = set()
    for row, record_id in enumerate(ids.to_pylist()):
        if record_id in earlier:
            problem, line = f"{entity} {record_id} appears twice", loaded.line(row)
            raise InputError(problem, fix=f"keep one row per {entity}", path=loaded.where, line=line)
        earlier.add(record_id)


def _unreadable_error(where: str, id_name: str, reason: str) -> InputError:
    return InputError(
        f"the table of {ENTITIES[id_name]}s cannot be read ({reason.splitlines()[0]})",
        fix=f"use CSV, TSV, JSON, JSONL, Parquet or Arrow with a column {id_name}",
        path=where,
    )
