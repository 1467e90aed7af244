"""Small tables that people write, as records, in any usual format: costs, latencies, reviewed lists."""

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
from judged.data.compute import pc
from judged.data.json_rows import json_kind, json_lines, load
from judged.data.layout import refuse_same_names
from judged.data.rows import table_of
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.escaping import csv_text
from judged.results.files import atomic_write, raise_write_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from judged.results.types import Table

    Record = tuple[int | None, dict[str, Any]]


def read_records(path: str | Path, *, key: str = "") -> Iterator[Record]:
    """Read the records of a file, one after the other; its format is found by content, compressed or not."""
    # `key`: JSON may then also be `{name: {...}}`: the name stands in the record under this key. Yields the 1-based
    # line, None where there are none. Cells stand as they are, columns that a row lacks are empty.
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
            yield from _json(load(file, where), where, key)
    except (pa.ArrowException, OSError, csv.Error) as error:
        problem = f"no table can be read from it ({error})"
        raise InputError(problem, fix="give CSV, TSV, JSON, JSONL, Parquet or Arrow", path=where) from None


def records_of(data: Any, where: str, what: str, fix: str, *, key: str = "") -> Iterator[Record]:
    """Give the records of a file, a data frame or a list of dicts, each with its line or its place."""
    if isinstance(data, (str, Path)):
        yield from read_records(data, key=key)
    elif hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.Table):
        yield from enumerate(_rows(table_of(data), where), 1)
    elif isinstance(data, Iterable) and not isinstance(data, (bytes, Mapping)):
        for at, row in enumerate(cast("Iterable[Any]", data), 1):
            if not isinstance(row, Mapping):
                raise InputError(f"{row!r:.40} is not a row of {what}", fix=fix, path=where)
            yield at, dict(cast("Mapping[Any, Any]", row))
    else:
        raise InputError(f"a {type(data).__name__} holds no {what}", fix=fix, path=where)


def _rows(table: Table, where: str) -> list[dict[str, Any]]:
    refuse_same_names(table.column_names, where)
    return table.to_pylist()


def _json(data: Any, where: str, key: str) -> Iterator[Record]:
    known: list[tuple[str, Any]]
    if isinstance(data, dict) and key:
        known = [(f"{key} {name}", one) for name, one in cast("dict[str, Any]", data).items()]
        names = [{key: name} for name in cast("dict[str, Any]", data)]
    elif isinstance(data, list):
        known = [(f"record {at}", one) for at, one in enumerate(cast("list[Any]", data), 1)]
        names = [dict[str, str]() for _ in known]
    else:
        raise InputError("this JSON holds no list of records", fix='write [{"name": ...}, ...]', path=where)
    for (place, record), name in zip(known, names, strict=True):
        if not isinstance(record, dict):
            problem = f"{place}: {json.dumps(record)[:40]} is not a record"
            raise InputError(problem, fix='write {"name": ...}', path=where)
        if doubled := name.keys() & cast("dict[str, Any]", record).keys():
            problem = f"{place}: it has a field {min(doubled)!r} beside the name that it stands under"
            raise InputError(problem, fix="leave the field out", path=where)
        yield None, {**name, **cast("dict[str, Any]", record)}


def _delimited(text: str, where: str) -> Iterator[Record]:
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max("\t,;", key=first.count))
    header = [name.strip() for name in next(reader, [])]
    refuse_same_names([name for name in header if name], where, 1)
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) > len(header):
            problem = f"{len(row)} fields where {len(header)} are expected"
            fix = "give every row the columns of the first"
            raise InputError(problem, fix=fix, path=where, line=reader.line_num)
        cells = [*map(csv_text, row), *[""] * (len(header) - len(row))]  # spreadsheets leave empty cells out
        yield reader.line_num, dict(zip(header, cells, strict=True))


_LARGEST = 2**53  # what any reader of JSON holds exactly
_SUFFIXES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz"})  # of files that may be meant as tables


@dataclass(frozen=True)
class TableSet:
    """The columns of several tables, of what each has one row, and what stands where nothing was given.

    Parameters
    ----------
    schemas, keys
        By name of the table. A table without a key may have equal rows.
    usual
        What an empty cell holds, by (table, column) or column; a column of a key that is not here must be given.
    words
        What a column may hold, by (table, column); such a column must be given, unless it is usual.
    counted
        A column that counts the rows within others where it is not given, by table.
    """

    schemas: Mapping[str, pa.Schema]
    keys: Mapping[str, tuple[str, ...]]
    usual: Mapping[Any, Any] = field(default_factory=dict[Any, Any])
    words: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict[tuple[str, str], tuple[str, ...]])
    counted: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict[str, tuple[str, tuple[str, ...]]])

    def of(self, tables: Mapping[str, Table], name: str, where: str) -> Table:
        """Give one of the tables, with no rows where there is none."""
        self.check_name(name, where)
        return tables[name] if name in tables else self.schemas[name].empty_table()

    def check_name(self, name: str, where: str) -> None:
        """Refuse the name of a table that there is not."""
        if name not in self.schemas:
            raise InputError(f"there is no table {name!r}", fix=f"use one of {', '.join(self.schemas)}", path=where)

    def check(self, tables: Mapping[str, Table], where: str, known: Iterable[tuple[str, Sequence[str], str]]) -> None:
        """Refuse unknown tables and words, rows that stand twice, and (table, columns) whose rows another one lacks."""
        for name in tables:
            self.check_name(name, where)
        for name, key in self.keys.items():
            counts = self.of(tables, name, where).group_by(list(key)).aggregate([([], "count_all")])
            if (again := counts.filter(pc.greater(counts["count_all"], 1))).num_rows:
                raise InputError(f"{name}: there are two rows of {_said(again, key)}", fix="leave one", path=where)
        for (name, column), words in self.words.items():
            if strange := set(self.of(tables, name, where)[column].unique().to_pylist()) - set(words):
                fix = f"use one of {', '.join(words)}"
                raise InputError(f"{name}: no {column} {strange.pop()!r}", fix=fix, path=where)
        for name, key, other in known:
            theirs = self.of(tables, other, where).select(key)
            strange = self.of(tables, name, where).select(key).join(theirs, list(key), join_type="left anti")
            if strange.num_rows:
                problem = f"{name}: {other} has no row of {_said(strange, key)}"
                raise InputError(problem, fix=f"give it, or leave this out of {name}", path=where)

    def table(self, name: str, given: Any) -> Table:
        """Read one table, of anything that Arrow takes, a list of dicts, or the path of one."""
        self.check_name(name, "<tables>")
        if not isinstance(given, (str, Path, list, tuple)):
            return self.typed(name, pa.table(given), f"<{name}>")
        where = str(given) if isinstance(given, (str, Path)) else f"<{name}>"
        return self.of_records(name, records_of(given, where, f"the table {name}", "give rows"), where)

    def typed(self, name: str, table: Table, where: str) -> Table:
        """Give a table all its columns, of their types."""
        return self.of_records(name, ((None, row) for row in table.to_pylist()), where)

    def of_records(self, name: str, records: Iterable[Record], where: str) -> Table:
        """Make one of the tables of records, each with its line or None.

        Raises
        ------
        InputError
            If a record lacks what its table needs; it names the line.
        """
        schema, rows, counts = self.schemas[name], [], Counter[tuple[Any, ...]]()
        for line, record in records:
            row = {column: self._cell(name, column, record.get(column), where, line) for column in schema.names}
            if name in self.counted:
                column, within = self.counted[name]
                place = tuple(row[part] for part in within)
                counts[place] += 1
                row[column] = counts[place] if row[column] is None else row[column]
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=schema)

    def _cell(self, name: str, column: str, value: Any, where: str, line: int | None) -> Any:
        """Read one cell as its column's type."""
        if value is None or (isinstance(value, str) and not value.strip()):
            if (name, column) in self.usual or column in self.usual:
                return self.usual.get((name, column), self.usual.get(column))
            if (name, column) in self.words or column in self.keys.get(name, ()):
                raise InputError(f"{name}: a row has no {column}", fix=f"give its {column}", path=where, line=line)
            return None
        type_ = self.schemas[name].field(column).type
        try:
            return _read(value, type_)
        except (KeyError, ValueError, TypeError, OverflowError):
            kinds = ((pa.types.is_integer, "a whole number"), (pa.types.is_boolean, "true or false"),
                     (pa.types.is_floating, "a number"), (pa.types.is_list, "a list of ids"))  # fmt: skip
            kind = next((said for is_it, said in kinds if is_it(type_)), "one text or number")
            raise InputError(f"{name}: {column} is {value!r:.40}", fix=f"write {kind}", path=where, line=line) from None

    def read(self, folder: Path) -> tuple[dict[str, Table], tuple[Note, ...]]:
        """Read a folder with a file for each table, as CSV, TSV, JSON, JSON Lines or Parquet, and what was not read."""
        files: dict[str, Path] = {}
        for file in sorted(folder.iterdir()):
            name = file.name.partition(".")[0]
            if name in self.schemas and name in files:
                raise InputError(
                    f"the table {name} is there twice",
                    fix=f"leave one of {files[name].name}, {file.name}",
                    path=str(folder),
                )
            files[name] = file
        tables, notes = dict[str, Any](), list[Note]()
        for name in (name for name in self.schemas if name in files):
            rows = list(read_records(files[name]))
            tables[name] = self.of_records(name, rows, str(files[name]))
            if strange := sorted({column for _, row in rows for column in row} - set(self.schemas[name].names)):
                text = f"{files[name].name}: columns that mean nothing here, and are not read: {', '.join(strange)}"
                notes.append(Note("columns-not-read", text))
            if not rows:
                notes.append(Note("empty-table", f"{files[name].name}: there is no row in it"))
        others = [file.name for name, file in files.items() if name not in self.schemas and file.suffix in _SUFFIXES]
        if others:
            text = f"files that are none of the tables, and are not read: {', '.join(others)}"
            notes.append(Note("files-not-read", text))
        return tables, tuple(notes)

    def write(
        self,
        tables: Mapping[str, Table],
        folder: str | Path,
        names: Collection[str],
        order: Mapping[str, Sequence[str]],
    ) -> None:
        """Write each table that is there as JSON Lines, its rows in an `order` or that of their keys.

        Equal tables give equal bytes. Cells that are empty are left out; tables that are not named stay as they are.

        Raises
        ------
        JudgedError
            If nothing can be written there.
        """
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name in (name for name in self.schemas if name in tables and name in names):
                if others := [file.name for file in place.glob(f"{name}.*") if file.name != f"{name}.jsonl"]:
                    fix = f"move {others[0]} away, or name another folder"
                    raise InputError(f"the folder has a table {name} already", fix=fix, path=str(place / others[0]))
                with atomic_write(place / f"{name}.jsonl") as part, part.open("w", encoding="utf-8") as file:
                    by = order.get(name, self.keys.get(name, ()))
                    table = tables[name].sort_by([(column, "ascending") for column in by]) if by else tables[name]
                    for row in table.to_pylist():
                        known = {column: value for column, value in row.items() if value is not None}
                        file.write(json.dumps(known, ensure_ascii=False) + "\n")
        except OSError as error:
            raise_write_error(place, error)


def _said(rows: Table, key: Sequence[str]) -> str:
    return ", ".join(f"{column} {value!r}" for column, value in rows.select(key).to_pylist()[0].items())


def _read(value: Any, type_: Any) -> Any:
    if pa.types.is_list(type_):
        return [str(one) for one in value] if isinstance(value, (list, tuple)) else str(value).split()
    if pa.types.is_boolean(type_):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[str(value).lower()]
    if pa.types.is_integer(type_):
        number = int(value)
        if abs(number) > _LARGEST or (isinstance(value, float) and not value.is_integer()):
            raise ValueError
        return number
    if pa.types.is_floating(type_):
        number = float(value)
        if not abs(number) <= _LARGEST:
            raise ValueError
        return number
    if isinstance(value, (list, tuple, Mapping)):
        raise TypeError
    return str(value)
