"""Read and write small tables as records in several formats: costs, latencies, reviewed lists."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import arrow_table, parquet_table
from judged.data.column_names import check_unique_names
from judged.data.compute import pc
from judged.data.json_rows import json_kind, json_lines, load_json
from judged.data.rows import table_of
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.decimals import counted
from judged.results.escaping import csv_text
from judged.results.files import atomic_write, raise_write_error
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from judged.results.types import Table

    Record = tuple[int | None, dict[str, Any]]


def read_records(path: str | Path, *, key: str = "") -> Iterator[Record]:
    """Yield the records of a file with their 1-based lines, or None for formats without lines."""
    # The format is detected from the content. With `key`, JSON may also be `{name: {...}}`, and the name becomes the
    # value of this key in the record. Cells of CSV are not converted, and missing cells are empty.
    where = files.STDIN if str(path) == "-" else str(path)
    file = files.local(path)
    head = files.head(file).lstrip()
    try:
        if head.startswith((b"PAR1", b"ARROW1")):
            table = (parquet_table if head.startswith(b"PAR1") else arrow_table)(file, where)
            yield from ((None, row) for row in _rows(table, where))
        elif not head.startswith((b"{", b"[")):
            yield from _delimited(files.text(file, where), where)
        elif json_kind(head.decode(errors="replace"), where) == "jsonl":
            yield from ((line, dict(record)) for line, record in json_lines(file, where))
        else:
            yield from _json(load_json(file, where), where, key)
    except (pa.ArrowException, OSError, csv.Error) as error:
        problem = f"the table cannot be read ({error})"
        raise InputError(problem, fix="use CSV, TSV, JSON, JSONL, Parquet or Arrow", path=where) from None


def records_of(data: Any, where: str, description: str, fix: str, *, key: str = "") -> Iterator[Record]:
    """Yield the records of a file, a data frame or a list of dicts, with the line or the number of each."""
    if isinstance(data, (str, Path)):
        yield from read_records(data, key=key)
    elif hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.Table):
        yield from enumerate(_rows(table_of(data), where), 1)
    elif isinstance(data, Iterable) and not isinstance(data, (bytes, Mapping)):
        for number, row in enumerate(cast("Iterable[Any]", data), 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{row!r:.40} is not a row of {description}", fix=fix, path=where)
            yield number, dict(cast("Mapping[Any, Any]", row))
    else:
        raise InputError(f"an object of type {type(data).__name__} contains no {description}", fix=fix, path=where)


def _rows(table: Table, where: str) -> list[dict[str, Any]]:
    check_unique_names(table.column_names, where)
    return table.to_pylist()


def _json(data: Any, where: str, key: str) -> Iterator[Record]:
    records: list[tuple[str, dict[str, str], Any]]  # location for messages, fields of the name, record
    if isinstance(data, dict) and key:
        records = [(f"{key} {name}", {key: name}, record) for name, record in cast("dict[str, Any]", data).items()]
    elif isinstance(data, list):
        records = [(f"record {number}", {}, record) for number, record in enumerate(cast("list[Any]", data), 1)]
    else:
        raise InputError("this JSON contains no list of records", fix='write [{"name": ...}, ...]', path=where)
    for location, name_fields, record in records:
        if not isinstance(record, dict):
            problem = f"{location} must be an object, got {json.dumps(record)[:40]}"
            raise InputError(problem, fix='write {"name": ...}', path=where)
        if duplicates := name_fields.keys() & cast("dict[str, Any]", record).keys():
            problem = f"{location}: the field {min(duplicates)!r} is also the key of the record"
            raise InputError(problem, fix="leave the field out", path=where)
        yield None, {**name_fields, **cast("dict[str, Any]", record)}


def _delimited(text: str, where: str) -> Iterator[Record]:
    first_line = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max("\t,;", key=first_line.count))
    header = [name.strip() for name in next(reader, [])]
    check_unique_names([name for name in header if name], where, 1)
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(header):
            problem = f"{counted(len(row), 'field')}, expected {len(header)}"
            fix = "write as many fields as the header in all rows"
            raise InputError(problem, fix=fix, path=where, line=reader.line_num)
        cells = [*map(csv_text, row), *[""] * (len(header) - len(row))]  # spreadsheets omit trailing empty cells
        yield reader.line_num, dict(zip(header, cells, strict=True))


_MAX_NUMBER = 2**53  # integers up to this are exact in JSON
_SUFFIXES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz"})  # other files are ignored without a note


@dataclass(frozen=True)
class TableSet:
    """Schemas of several related tables, with keys, defaults, and allowed values.

    Parameters
    ----------
    schemas, keys
        Schema and key columns by table name. A table without a key may have duplicate rows.
    defaults
        Value of an empty cell, by (table, column) or by column. A key column without a default is required.
    enums
        Allowed values by (table, column). Such a column is required unless it has a default.
    numbered
        By table: a column that is numbered if it is empty, and the columns within whose values it starts at 1.
    """

    schemas: Mapping[str, pa.Schema]
    keys: Mapping[str, tuple[str, ...]]
    defaults: Mapping[Any, Any] = field(default_factory=dict[Any, Any])
    enums: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict[tuple[str, str], tuple[str, ...]])
    numbered: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict[str, tuple[str, tuple[str, ...]]])

    def of(self, tables: Mapping[str, Table], name: str, where: str) -> Table:
        """Return one of the tables; empty if it is missing."""
        self.check_name(name, where)
        return tables[name] if name in tables else self.schemas[name].empty_table()

    def check_name(self, name: str, where: str) -> None:
        """Raise InputError if there is no table of this name."""
        if name not in self.schemas:
            raise InputError(f"there is no table {name!r}", fix=use_one_of(self.schemas), path=where)

    def check(
        self, tables: Mapping[str, Table], where: str, references: Iterable[tuple[str, Sequence[str], str]]
    ) -> None:
        """Check table names, keys, allowed values, and foreign keys: (table, columns, referenced table)."""
        for name in tables:
            self.check_name(name, where)
        for name, key in self.keys.items():
            counts = self.of(tables, name, where).group_by(list(key)).aggregate([([], "count_all")])
            if (duplicates := counts.filter(pc.greater(counts["count_all"], 1))).num_rows:
                problem = f"the table {name} has several rows of {_format_key(duplicates, key)}"
                raise InputError(problem, fix="keep one of these rows", path=where)
        for (name, column), allowed in self.enums.items():
            if unknown := set(self.of(tables, name, where)[column].unique().to_pylist()) - set(allowed):
                fix = use_one_of(allowed)
                raise InputError(f"the table {name} has the invalid {column} {unknown.pop()!r}", fix=fix, path=where)
        for name, key, other_name in references:
            other_keys = self.of(tables, other_name, where).select(key)
            missing = self.of(tables, name, where).select(key).join(other_keys, list(key), join_type="left anti")
            if missing.num_rows:
                problem = (
                    f"the table {name} has {(key_text := _format_key(missing, key))}, but the table {other_name} has no"
                    f" row of {key_text}"
                )
                raise InputError(problem, fix=f"add the row to {other_name}, or remove the row from {name}", path=where)

    def table(self, name: str, data: Any) -> Table:
        """Create one table from any object that `pyarrow.table` accepts, a list of dicts, or a path."""
        self.check_name(name, "<tables>")
        if not isinstance(data, (str, Path, list, tuple)):
            return self.typed(name, pa.table(data), f"<{name}>")
        where = str(data) if isinstance(data, (str, Path)) else f"<{name}>"
        return self.of_records(name, records_of(data, where, f"the table {name}", "use a list of dicts"), where)

    def typed(self, name: str, table: Table, where: str) -> Table:
        """Convert a table to its schema, with all columns."""
        return self.of_records(name, ((None, row) for row in table.to_pylist()), where)

    def of_records(self, name: str, records: Iterable[Record], where: str) -> Table:
        """Create one table from records, each with its line or None.

        Raises
        ------
        InputError
            If a required value is missing or a value has a wrong type.
        """
        schema, rows, counts = self.schemas[name], [], Counter[tuple[Any, ...]]()
        types = {field.name: field.type for field in schema}
        for line, record in records:
            row = {column: self._cell(name, column, record.get(column), types[column], where, line) for column in types}
            if name in self.numbered:
                column, group_columns = self.numbered[name]
                group = tuple(row[group_column] for group_column in group_columns)
                counts[group] += 1
                row[column] = counts[group] if row[column] is None else row[column]
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=schema)

    def _cell(self, name: str, column: str, value: Any, data_type: Any, where: str, line: int | None) -> Any:
        """Convert one cell to the type of its column."""
        if value is None or (isinstance(value, str) and not value.strip()):
            if (name, column) in self.defaults or column in self.defaults:
                return self.defaults.get((name, column), self.defaults.get(column))
            is_numbered = self.numbered.get(name, ("",))[0] == column
            if (name, column) in self.enums or (column in self.keys.get(name, ()) and not is_numbered):
                raise InputError(f"{name}: a row has no {column}", fix=f"add its {column}", path=where, line=line)
            return None
        try:
            return _parse_cell(value, data_type)
        except (KeyError, ValueError, TypeError, OverflowError):
            descriptions = ((pa.types.is_integer, "an integer"), (pa.types.is_boolean, "true or false"),
                            (pa.types.is_floating, "a number"), (pa.types.is_list, "a list of ids"))  # fmt: skip
            expected = next((text for is_type, text in descriptions if is_type(data_type)), "one text or number")
            problem = f"{name}: {column} is {value!r:.40}"
            raise InputError(problem, fix=f"write {expected}", path=where, line=line) from None

    def read(self, folder: Path) -> tuple[dict[str, Table], tuple[Note, ...]]:
        """Read a folder with one file for each table; return the tables, and notes about content that was ignored."""
        files: dict[str, Path] = {}
        for file in sorted(folder.iterdir()):
            name = file.name.partition(".")[0]
            if name in self.schemas and name in files:
                fix = f"remove {files[name].name} or {file.name}"
                raise InputError(f"the table {name} is in two files", fix=fix, path=str(folder))
            files[name] = file
        tables, notes = dict[str, Any](), list[Note]()
        for name in (name for name in self.schemas if name in files):
            rows = list(read_records(files[name]))
            tables[name] = self.of_records(name, rows, str(files[name]))
            if unknown := sorted({column for _, row in rows for column in row} - set(self.schemas[name].names)):
                text = f"{files[name].name}: unknown columns are ignored: {', '.join(unknown)}"
                notes.append(Note("unknown-columns", text))
            if not rows:
                notes.append(Note("empty-table", f"{files[name].name}: the table has no rows"))
        unread_files = [
            file.name for name, file in files.items() if name not in self.schemas and file.suffix in _SUFFIXES
        ]
        if unread_files:
            text = f"unknown files are ignored: {', '.join(unread_files)}"
            notes.append(Note("unknown-files", text))
        return tables, tuple(notes)

    def write(
        self,
        tables: Mapping[str, Table],
        folder: str | Path,
        names: Collection[str],
        order: Mapping[str, Sequence[str]],
    ) -> None:
        """Write the tables in `names` as JSON Lines, sorted by the columns in `order`, or else by their keys.

        Equal tables are written as equal bytes. Empty cells are omitted.

        Raises
        ------
        JudgedError
            If the folder cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in (name for name in self.schemas if name in tables and name in names):
                if other_formats := [file.name for file in folder.glob(f"{name}.*") if file.name != f"{name}.jsonl"]:
                    fix = f"move {other_formats[0]} to another folder, or use another folder"
                    raise InputError(
                        f"the folder already has a table {name}", fix=fix, path=str(folder / other_formats[0])
                    )
                with atomic_write(folder / f"{name}.jsonl") as temporary, temporary.open("w", encoding="utf-8") as file:
                    sort_columns = order.get(name, self.keys.get(name, ()))
                    sort_keys = [(column, "ascending") for column in sort_columns]
                    table = tables[name].sort_by(sort_keys) if sort_keys else tables[name]
                    for row in table.to_pylist():
                        record = {column: value for column, value in row.items() if value is not None}
                        file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise_write_error(folder, error)


def _format_key(rows: Table, key: Sequence[str]) -> str:
    return ", ".join(f"{column} {value!r}" for column, value in rows.select(key).to_pylist()[0].items())


def _parse_cell(value: Any, data_type: Any) -> Any:
    if isinstance(value, str) and pa.types.is_string(data_type):  # the most frequent case
        return value
    if pa.types.is_list(data_type):
        return [str(element) for element in value] if isinstance(value, (list, tuple)) else str(value).split()
    if pa.types.is_boolean(data_type):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]
    if pa.types.is_integer(data_type):
        number = int(value)
        if abs(number) > _MAX_NUMBER or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        return number
    if pa.types.is_floating(data_type):
        number = float(value)
        if not abs(number) <= _MAX_NUMBER:
            raise ValueError
        return number
    if isinstance(value, (list, tuple, Mapping)):
        raise TypeError
    return str(value)
