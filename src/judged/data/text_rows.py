"""Rows of a text file whose lines are fields between delimiters: TREC files, CSV, TSV.

Each block is parsed with Arrow's CSV parser. If the parser fails, or the block has content that Arrow would misread
(quotes, comments, invalid UTF-8), the block is parsed line by line in Python, which is slower and can report the line
of an error. A property test checks that both parsers return the same rows.
"""

from __future__ import annotations

import os
import re
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from judged.data import files
from judged.data.compute import pc
from judged.data.layout import (
    COMMENT_FIX,
    MAX_EXACT_INTEGER,
    NUMERIC_COLUMNS,
    Layout,
    LineError,
    is_data,
    parse_field,
    split_line,
    without_header,
)
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from judged.data.rows import Part, Progress
    from judged.results.types import Batch, Floats


_MAX_LINE_BYTES = 2 << 20  # ids, numbers, and possibly a text
_BLANKS = re.compile(rb"[ \t\v\f]+")
_ESCAPED_CELL = re.compile(rb"(?:^|[,\n])[ \t]*'[=+\-@'\t\r]")  # cells written by `judged.results.escaping.csv_cell`
_NUMBER_SIGN = re.compile(rb"^[ \t\v\f]*#[^ \t\v\f\n]", re.MULTILINE)
# Leading and trailing blanks, and comments. The lookbehind starts each match at the first of several blanks, as the run
# time would be quadratic otherwise.
_IGNORED = re.compile(rb"^[ \t\v\f]*(#[^\n]*)?|[ \t\v\f](?<![ \t\v\f]{2})[ \t\v\f]*$", re.MULTILINE)


class Record(NamedTuple):
    """One line of a text file: its 1-based number and its fields by column name."""

    line: int
    fields: dict[str, str]


@dataclass(frozen=True)
class TextRows:
    """The rows of a text file, read block by block."""

    path: Path
    layout: Layout
    where: str
    block: int = field(default=files.BLOCK, repr=False)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Path of the file."""
        return (self.path,)

    @property
    def has_scores(self) -> bool:
        """Whether there is a field of scores, or of ranks, which are converted to scores."""
        return bool({"score", "rank"} & set(self.layout.names))

    @property
    def has_ranks(self) -> bool:
        """Whether there is a field of ranks."""
        return "rank" in self.layout.names

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Yield each block as a part, which is parsed when it is called."""
        is_before_header = self.layout.header
        for block in files.blocks(self.path, progress, self.block, longest=_MAX_LINE_BYTES, returns=True):
            body, has_header = without_header(block) if is_before_header else (block, True)
            is_before_header = not has_header
            if body:
                yield lambda body=body: self._parse(body, columns)

    def _parse(self, block: bytes, columns: tuple[str, ...]) -> Batch:
        names = [name for name in columns if name in self.layout.names]
        if "score" in columns and "score" not in names and "rank" in self.layout.names:
            batch = self._parse(block, tuple(dict.fromkeys([*names, "rank"])))
            scores = pc.negate(pc.cast(batch.column("rank"), pa.float64()))
            return pa.record_batch({**columns_of(batch), "score": scores}).select([*names, "score"])
        batch = self._parse_with_arrow(block, names)
        return self._parse_lines(block, names) if batch is None else batch

    def _parse_with_arrow(self, block: bytes, names: list[str]) -> Batch | None:
        """Parse the block with Arrow; None if Arrow could misread it."""
        if not is_utf8(block):
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if len(self.layout.delimiter) > 1:
            return None
        if self.layout.strict:
            has_quotes = self.layout.delimiter == "," and (b'"' in block or _ESCAPED_CELL.search(block))
            return None if has_quotes else parse_with_arrow(block, self.layout, names)
        batch = None
        if is_single_spaced(block, self.layout.delimiter):
            batch = parse_with_arrow(block, self.layout, names)
        if batch is None and not _NUMBER_SIGN.search(block):
            cleaned = _BLANKS.sub(b" ", _IGNORED.sub(b"", block))
            batch = parse_with_arrow(cleaned, replace(self.layout, delimiter=" "), names)
        return batch

    def _parse_lines(self, block: bytes, names: list[str]) -> Batch:
        columns: dict[str, list[Any]] = {name: [] for name in names}
        try:
            for raw in block.splitlines():
                if fields := split_line(raw, self.layout):
                    for name in names:
                        columns[name].append(parse_field(name, fields.get(name, "")))
        except ValueError:
            self._raise_at_line(names)
            raise
        return pa.record_batch({name: pa.array(column, _arrow_type(name)) for name, column in columns.items()})

    def _raise_at_line(self, names: list[str]) -> None:
        """Read the file from its start and raise InputError with the number of the first invalid line."""
        for record in self.lines():
            for name in names:
                try:
                    parse_field(name, record.fields.get(name, ""))
                except ValueError as error:
                    raise self.error(str(error), f"write a number as the {name}", record.line) from None

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Yield all lines except the header and empty lines as bytes, with their 1-based numbers."""
        number, is_before_header = 0, self.layout.header
        for block in files.blocks(self.path, longest=_MAX_LINE_BYTES, returns=True):
            for raw in block.splitlines():
                number += 1
                if is_before_header and is_data(raw):
                    is_before_header = False
                elif raw and not is_before_header:
                    yield number, raw

    def lines(self) -> Iterator[Record]:
        """Yield all rows as text with their line numbers; raise InputError at the first invalid line."""
        for number, raw in self.numbered():
            try:
                fields = split_line(raw, self.layout)
            except UnicodeDecodeError:
                raise self.error("this file is not UTF-8", "save the file as UTF-8", number, "not-utf8") from None
            except ValueError as error:
                rule = error.rule if isinstance(error, LineError) else ""
                fix = COMMENT_FIX if rule == "comment-or-row" else f"complete or remove the line: {self.layout}"
                raise self.error(str(error), fix, number, rule) from None
            if fields:
                yield Record(number, fields)

    def error(self, problem: str, fix: str, line: int, rule: str = "") -> InputError:
        """Return an InputError for a line of this file."""
        return InputError(problem, fix=fix, path=self.where, line=line, rule=rule)

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Return the line number of the nth row of this pair by reading the file again."""
        count = 0
        for number, fields in self.lines():
            if fields["query_id"] == query_id and fields["doc_id"] == doc_id:
                count += 1
                if count == nth:
                    return number
        return None


def _arrow_type(name: str) -> Any:
    if name == "rank":
        return pa.int64()
    return pa.float64() if name in NUMERIC_COLUMNS else pa.string()


T = TypeVar("T")

_THREADS = max(1, min(os.cpu_count() or 1, 8))


def map_in_order(parts: Iterable[Part], work: Callable[[Batch], T]) -> Iterator[T]:
    """Apply `work` to the batch of each part in threads and yield the results in order, without empty batches."""
    # Arrow and NumPy release the GIL, so that reading, parsing and ranking overlap. A single part needs no thread.
    remaining = iter(parts)
    first, second = next(remaining, None), next(remaining, None)
    if first is None:
        return

    def process(part: Part) -> T | None:
        batch = part()
        return work(batch) if batch.num_rows else None

    results = [process(first)] if second is None else _map_in_threads(chain((first, second), remaining), process)
    yield from (result for result in results if result is not None)


def _map_in_threads(parts: Iterable[Part], process: Callable[[Part], T | None]) -> Iterator[T | None]:
    from concurrent.futures import ThreadPoolExecutor  # slow to import and not needed for small files

    futures: deque[Future[T | None]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for part in parts:
            futures.append(pool.submit(process, part))
            if len(futures) > 2 * _THREADS:  # bounds the memory of results that are not consumed yet
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


_SPACE, _TAB, _NEWLINE = 32, 9, 10
_CHUNK = 1 << 17
_LARGE = re.compile(rb"[0-9.][eE]\+?0*[1-9][0-9]{2}|[0-9]{300}")
_MAX_SAFE_DIGITS = 300  # a line with fewer characters and no exponent has no number out of the range of float64
_SMALL = re.compile(rb"[0-9.][eE]-0*[1-9][0-9]{2}|[0-9]{300}")


def is_utf8(block: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_single_spaced(block: bytes, delimiter: str) -> bool:
    """Whether the delimiter is the only white space, and is never repeated or at the start of a line."""
    other_delimiter = b"\t" if delimiter == " " else b" "
    if other_delimiter in block or b"\v" in block or b"\f" in block:
        return False
    delimiter_code = _SPACE if delimiter == " " else _TAB
    data = np.frombuffer(block, dtype=np.uint8)
    for start in range(0, len(data), _CHUNK):  # chunks that fit into the CPU cache and overlap by one byte
        chunk = data[start : start + _CHUNK + 1]
        is_delimiter = chunk == delimiter_code
        precedes_field = chunk == _NEWLINE
        precedes_field |= is_delimiter
        if (precedes_field[:-1] & is_delimiter[1:]).any():
            return False
    return len(data) == 0 or data[0] != delimiter_code


def parse_with_arrow(block: bytes, layout: Layout, selected: list[str]) -> Batch | None:
    """Parse a block with Arrow; None if the lines have different numbers of fields, or Arrow could misread them."""
    if block.startswith(files.BOM):
        return None  # Arrow would remove the mark, which is part of an id unless at the start of the file
    names = [name or f"_{position}" for position, name in enumerate(layout.names)]
    names += [f"_{position}" for position in range(len(names), layout.width)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            arrow_csv.ParseOptions(delimiter=layout.delimiter, quote_char=False),
            arrow_csv.ConvertOptions(
                include_columns=selected,
                column_types={name: pa.float64() if name in NUMERIC_COLUMNS else pa.string() for name in selected},
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,  # checked by the caller
            ),
            memory_pool=_pool(),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    if layout.strict:
        trimmed = {
            name: pc.ascii_trim_whitespace(column) if pa.types.is_string(column.type) else column
            for name, column in columns_of(batch).items()
        }
        batch = pa.record_batch(trimmed)
    is_reliable = _is_parsed_correctly(block, batch, selected) and not _is_out_of_range(block, batch)
    return _with_integer_ranks(batch) if is_reliable else None


@cache
def _pool() -> Any:
    """Return the jemalloc memory pool if Arrow was built with it: its peak memory is a third smaller."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return None


def _is_parsed_correctly(block: bytes, batch: Batch, names: list[str]) -> bool:
    """Whether the line-by-line parser would return the same rows."""
    for name in names:
        column = batch.column(name)
        if name in NUMERIC_COLUMNS:
            numbers = column.to_numpy(zero_copy_only=False)
            if np.isnan(numbers).any() or (name == "rank" and not _are_integers(numbers)):
                return False
        elif name == "query_id":
            topics = pc.run_end_encode(column).values
            if not _has_no_empty(topics) or (b"#" in block and pc.any(pc.starts_with(topics, "#")).as_py()):
                return False
        elif name == "doc_id" and not _has_no_empty(column):
            return False
    return True


def _has_no_empty(texts: Any) -> bool:
    return bool(pc.binary_length(texts).to_numpy().all())


def _is_out_of_range(block: bytes, batch: Batch) -> bool:
    """Whether the block may have a number out of the range of float64, which Arrow reads as infinity or 0."""
    numbers = [column.to_numpy() for column in batch.columns if pa.types.is_floating(column.type)]
    if any(np.isinf(column).any() for column in numbers) and _LARGE.search(block):
        return True
    if all(column.all() for column in numbers):
        return False
    # Nearly all qrels contain 0, and the regular expression is slower than parsing, so that cheap tests come first.
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE)
    has_long_line = np.diff(ends, prepend=-1, append=len(block)).max() > _MAX_SAFE_DIGITS
    return bool((has_long_line or b"e-" in block or b"E-" in block) and _SMALL.search(block))


def _are_integers(numbers: Floats) -> bool:
    return bool(((numbers == np.rint(numbers)) & (np.abs(numbers) <= MAX_EXACT_INTEGER)).all())


def _with_integer_ranks(batch: Batch) -> Batch:
    """Cast ranks to integers; they are parsed as floats because Arrow accepts ``0x1F`` as an integer."""
    columns = columns_of(batch)
    if "rank" not in columns:
        return batch
    return pa.record_batch({**columns, "rank": columns["rank"].cast(pa.int64())})


def columns_of(batch: Batch) -> dict[str, Any]:
    """Return the columns of a batch by name."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))
