"""Small tables that people write, as records, in any usual format: costs, latencies, reviewed lists."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import arrow_table, parquet_table
from judged.data.columns import refuse_same_names
from judged.data.json_rows import json_kind, json_lines, load
from judged.data.rows import table_of
from judged.errors import InputError
from judged.results.escaping import csv_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Table

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
