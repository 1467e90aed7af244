"""Blocks of text parsed by Arrow, and whether a block is one that Arrow reads as we do."""

from __future__ import annotations

import os
import re
from collections import deque
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from judged.data import files
from judged.data.compute import pc
from judged.data.layout import NUMBERS, WHOLE_TO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from judged._types import Batch, Floats
    from judged.data.layout import Layout
    from judged.data.rows import Part

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
