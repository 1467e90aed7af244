"""The records of a file: JSON lines, JSON, batches of OTLP, or the rows of a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import parquet_batches
from judged.pipelines.traces.attributes import is_encodable, parsed

if TYPE_CHECKING:
    from judged._types import Batch

Row: TypeAlias = Mapping[str, Any]

_ROWS = 256  # of Parquet, made into objects at a time
_LONGEST = 1 << 28  # bytes of a line: an export may be one object


def records(path: Path) -> Iterator[tuple[str, Row | None]]:
    """Give each record with its place (file:line, or file and number); None for one that is no JSON object."""
    for place, row in _raw(files.local(path), str(path)):
        if not isinstance(row, Mapping):
            yield place, None
        else:
            for inner in _unpacked(cast("Row", row)):
                yield place, inner if isinstance(inner, Mapping) else None


def _raw(path: Path, where: str) -> Iterator[tuple[str, Any]]:
    head = files.head(path, 64).lstrip()
    if head.startswith(b"PAR1"):
        rows = (row for batch in parquet_batches(path, where, list) for row in _rows(batch))
        yield from ((f"{where}, row {number}", row) for number, row in enumerate(rows, 1))
    elif head.startswith(b"[") or (head.startswith(b"{") and _first_line_breaks_off(path)):
        yield from ((f"{where}, record {number}", row) for number, row in enumerate(_elements(path, where), 1))
    else:
        yield from ((f"{where}:{number}", parsed(line)) for number, line in _lines(path))


def _first_line_breaks_off(path: Path) -> bool:
    """Tell whether objects are written over several lines each, as consoles show them: then a brace stands alone."""
    _, line = next(_lines(path))
    return line.strip() == b"{"


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    for block in files.blocks(path, longest=_LONGEST):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            if line.strip():
                yield number, line


def _elements(path: Path, where: str) -> Iterator[Any]:
    """Read a JSON list, or objects behind one another, one at a time: they never lie in memory together."""
    text, decoder = files.text(path, where, longest=_LONGEST), json.JSONDecoder()
    start = text.index("[") + 1 if text.lstrip().startswith("[") else 0
    while True:
        while start < len(text) and text[start] in " \t\r\n,":
            start += 1
        if start >= len(text) or text[start] == "]":
            return
        try:
            element, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            yield None
            return
        yield element if is_encodable(element, text) else None


def _rows(batch: Batch) -> Iterator[Row]:
    columns = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in batch.columns]
    table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    for start in range(0, table.num_rows, _ROWS):
        for row in table.slice(start, _ROWS).to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def _unpacked(row: Row) -> Iterator[Any]:
    """Take the records out of a batch of OTLP, an answer of Phoenix, or a bulk request or dump of OpenSearch."""
    if "resourceSpans" in row:
        for batch in _list(row, "resourceSpans"):
            for scope in _list(batch, "scopeSpans"):
                yield from _list(scope, "spans")
    elif isinstance(row.get("data"), list):
        yield from _list(row, "data")
    elif not (len(row) == 1 and isinstance(row.get("index", row.get("create")), Mapping)):  # a line of a bulk request
        yield row["_source"] if "_index" in row and "_source" in row else row


def _list(row: Any, name: str) -> list[Any]:
    """Give a list of an object; what has none is one element that cannot be read."""
    found = cast("Row", row).get(name) if isinstance(row, Mapping) else None
    return cast("list[Any]", found) if isinstance(found, list) else [None]
