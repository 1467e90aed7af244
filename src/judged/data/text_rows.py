"""Rows of a text file whose lines are fields between delimiters: TREC files, CSV, TSV.

Each block goes through Arrow's CSV parser. A block that the parser refuses, or that holds what it
would misread (quotes, comments in odd places, this file is not UTF-8), is taken line by line in
Python: slower, and able to say which line is wrong. Both ways give the same rows; a property test
holds them together.
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
    NUMBERS,
    WHOLE_TO,
    Layout,
    LineError,
    is_data,
    split_line,
    value,
    without_header,
)
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from judged.data.rows import Part, Progress
    from judged.results.types import Batch, Floats


_LONGEST = 2 << 20  # bytes of a line: ids, numbers, and perhaps a text beside them
_BLANKS = re.compile(rb"[ \t\v\f]+")
_ESCAPED = re.compile(rb"(?:^|[,\n])[ \t]*'[=+\-@'\t\r]")  # cells that do not stand for themselves
_NUMBER_SIGN = re.compile(rb"^[ \t\v\f]*#[^ \t\v\f\n]", re.MULTILINE)
_IGNORED = re.compile(  # leading, trailing, comments; a run of blanks is looked at once, from its first
    rb"^[ \t\v\f]*(#[^\n]*)?|[ \t\v\f](?<![ \t\v\f]{2})[ \t\v\f]*$", re.MULTILINE
)


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
        """The file."""
        return (self.path,)

    @property
    def has_scores(self) -> bool:
        """Whether a field is a score, or a rank that stands in for one."""
        return bool({"score", "rank"} & set(self.layout.names))

    @property
    def has_ranks(self) -> bool:
        """Whether a field is a rank."""
        return "rank" in self.layout.names

    def parts(self, columns: tuple[str, ...], progress: Progress | None = None) -> Iterator[Part]:
        """Give each block as a part; parsing happens when the part is called."""
        skip = self.layout.header
        for block in files.blocks(self.path, progress, self.block, longest=_LONGEST, returns=True):
            body, ended = without_header(block) if skip else (block, True)
            skip = not ended
            if body:
                yield lambda body=body: self._parse(body, columns)

    def _parse(self, block: bytes, columns: tuple[str, ...]) -> Batch:
        wanted = [name for name in columns if name in self.layout.names]
        if "score" in columns and "score" not in wanted and "rank" in self.layout.names:
            batch = self._parse(block, tuple(dict.fromkeys([*wanted, "rank"])))
            scores = pc.negate(pc.cast(batch.column("rank"), pa.float64()))
            return pa.record_batch({**columns_of(batch), "score": scores}).select([*wanted, "score"])
        batch = self._fast(block, wanted)
        return self._slow(block, wanted) if batch is None else batch

    def _fast(self, block: bytes, wanted: list[str]) -> Batch | None:
        """Parse with Arrow, or give None where that could misread the block."""
        if not is_utf8(block):
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self.layout.strict:
            quoted = self.layout.delimiter == "," and (b'"' in block or _ESCAPED.search(block))
            return None if quoted else arrow_parse(block, self.layout, wanted)
        batch = None
        if single_spaced(block, self.layout.delimiter):
            batch = arrow_parse(block, self.layout, wanted)
        if batch is None and not _NUMBER_SIGN.search(block):
            tidy = _BLANKS.sub(b" ", _IGNORED.sub(b"", block))
            batch = arrow_parse(tidy, replace(self.layout, delimiter=" "), wanted)
        return batch

    def _slow(self, block: bytes, wanted: list[str]) -> Batch:
        made: dict[str, list[Any]] = {name: [] for name in wanted}
        try:
            for raw in block.splitlines():
                if fields := split_line(raw, self.layout):
                    for name in wanted:
                        made[name].append(value(name, fields.get(name, "")))
        except ValueError:
            self._raise_at_line(wanted)
            raise
        return pa.record_batch({name: pa.array(column, _final_type(name)) for name, column in made.items()})

    def _raise_at_line(self, wanted: list[str]) -> None:
        """Read the file from its start and raise at its first bad line: only then are lines counted."""
        for record in self.lines():
            for name in wanted:
                try:
                    value(name, record.fields.get(name, ""))
                except ValueError as error:
                    raise self.error(str(error), f"write a number as the {name}", record.line) from None

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        """Give every line but the header and empty ones, undecoded, with its 1-based number."""
        number, header = 0, self.layout.header
        for block in files.blocks(self.path, longest=_LONGEST, returns=True):
            for raw in block.splitlines():
                number += 1
                if header and is_data(raw):
                    header = False
                elif raw and not header:
                    yield number, raw

    def lines(self) -> Iterator[Record]:
        """Give every row as text with its line number, raising at the first that cannot be split."""
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
        """Make the error for one line of this file."""
        return InputError(problem, fix=fix, path=self.where, line=line, rule=rule)

    def line(self, query_id: str, doc_id: str, nth: int) -> int | None:
        """Find the line of the nth row of this pair by reading the file again."""
        seen = 0
        for number, fields in self.lines():
            if fields["query_id"] == query_id and fields["doc_id"] == doc_id:
                seen += 1
                if seen == nth:
                    return number
        return None


def _final_type(name: str) -> Any:
    if name == "rank":
        return pa.int64()
    return pa.float64() if name in NUMBERS else pa.string()


T = TypeVar("T")

_THREADS = max(1, min(os.cpu_count() or 1, 8))


def in_order(parts: Iterable[Part], work: Callable[[Batch], T]) -> Iterator[T]:
    """Call each part and do the work on its batch, in threads, a few parts ahead; empty batches are passed over."""
    # Parsing and NumPy let other threads run, so that reading, parsing and ranking overlap. A single part needs no
    # thread.
    several = iter(parts)
    first, second = next(several, None), next(several, None)
    if first is None:
        return

    def do(part: Part) -> T | None:
        batch = part()
        return work(batch) if batch.num_rows else None

    done = [do(first)] if second is None else _in_threads(chain((first, second), several), do)
    yield from (one for one in done if one is not None)


def _in_threads(parts: Iterable[Part], do: Callable[[Part], T | None]) -> Iterator[T | None]:
    from concurrent.futures import ThreadPoolExecutor  # small files do without

    waiting: deque[Future[T | None]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for part in parts:
            waiting.append(pool.submit(do, part))
            if len(waiting) > 2 * _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_SPACE, _TAB, _NEWLINE = 32, 9, 10
_LOOK = 1 << 17
_LARGE = re.compile(rb"[0-9.][eE]\+?0*[1-9][0-9]{2}|[0-9]{300}")
_DIGITS = 300  # no shorter line of digits is more, or less, than a double holds
_SMALL = re.compile(rb"[0-9.][eE]-0*[1-9][0-9]{2}|[0-9]{300}")


def is_utf8(block: bytes) -> bool:
    """Whether the bytes are text."""
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def single_spaced(block: bytes, delimiter: str) -> bool:
    """Whether the delimiter is the only blank, and no two stand together or at a line's start."""
    other = b"\t" if delimiter == " " else b" "
    if other in block or b"\v" in block or b"\f" in block:
        return False
    mark = _SPACE if delimiter == " " else _TAB
    data = np.frombuffer(block, dtype=np.uint8)
    for start in range(0, len(data), _LOOK):  # in slices that stay in the cache, each one byte into the next
        look = data[start : start + _LOOK + 1]
        blank = look == mark
        ends = look == _NEWLINE
        ends |= blank
        if (ends[:-1] & blank[1:]).any():
            return False
    return len(data) == 0 or data[0] != mark


def arrow_parse(block: bytes, layout: Layout, wanted: list[str]) -> Batch | None:
    """Parse a block in bulk; None where its lines are not all alike, or hold what Arrow would misread."""
    if block.startswith(files.BOM):
        return None  # Arrow drops the mark; inside a file it belongs to the id
    names = [name or f"_{at}" for at, name in enumerate(layout.names)]
    names += [f"_{at}" for at in range(len(names), layout.width)]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(block),
            arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            arrow_csv.ParseOptions(delimiter=layout.delimiter, quote_char=False),
            arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types={name: pa.float64() if name in NUMBERS else pa.string() for name in wanted},
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,  # the whole block was looked at
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
    return _with_whole_ranks(batch) if _plausible(block, batch, wanted) and not _out_of_range(block, batch) else None


@cache
def _pool() -> Any:
    """Choose jemalloc for what is parsed, where Arrow was built with it: a third less memory at the peak."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:
        return None


def _plausible(block: bytes, batch: Batch, wanted: list[str]) -> bool:
    """Whether a parsed block is free of what the line-by-line reader would see differently."""
    for name in wanted:
        column = batch.column(name)
        if name in NUMBERS:
            numbers = column.to_numpy(zero_copy_only=False)
            if np.isnan(numbers).any() or (name == "rank" and not _whole(numbers)):
                return False
        elif name == "query_id":
            topics = pc.run_end_encode(column).values
            if not _filled(topics) or (b"#" in block and pc.any(pc.starts_with(topics, "#")).as_py()):
                return False
        elif name == "doc_id" and not _filled(column):
            return False
    return True


def _filled(texts: Any) -> bool:
    """Whether none of them is empty."""
    return bool(pc.binary_length(texts).to_numpy().all())


def _out_of_range(block: bytes, batch: Batch) -> bool:
    """Whether a number may stand in the block that Arrow made infinite, or 0, because no double holds it."""
    numbers = [column.to_numpy() for column in batch.columns if pa.types.is_floating(column.type)]
    if any(np.isinf(column).any() for column in numbers) and _LARGE.search(block):
        return True
    if all(column.all() for column in numbers):
        return False
    # Nearly all judgments hold a 0, and searching takes longer than parsing: first is looked for what it would find.
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE)
    long = np.diff(ends, prepend=-1, append=len(block)).max() > _DIGITS
    return bool((long or b"e-" in block or b"E-" in block) and _SMALL.search(block))


def _whole(numbers: Floats) -> bool:
    return bool(((numbers == np.rint(numbers)) & (np.abs(numbers) <= WHOLE_TO)).all())


def _with_whole_ranks(batch: Batch) -> Batch:
    """Cast ranks to whole numbers; they are parsed as floats because Arrow reads ``0x1F`` as an integer."""
    columns = columns_of(batch)
    if "rank" not in columns:
        return batch
    return pa.record_batch({**columns, "rank": columns["rank"].cast(pa.int64())})


def columns_of(batch: Batch) -> dict[str, Any]:
    """Give the columns of a batch by name."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))
