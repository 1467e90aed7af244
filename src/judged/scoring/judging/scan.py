"""Read a run in parts, in threads, and rank each topic as soon as it is complete.

A topic may begin in one part and end in another. So each part is split into its first topic, its complete topics, and
its last topic; the first and last topics are concatenated in order. If a topic comes back after others, the run is
not grouped by topic: it is read again, and its rows are stored in buckets of topics until all rows are read.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.index import hash_ids
from judged.data.text_rows import map_in_order
from judged.errors import OutputError
from judged.scoring.judging.ranking import RunHits, concatenate_hits, rank_topics, ranking_columns, topic_segments

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from judged.data.index import QrelsIndex
    from judged.data.rows import Part, Rows
    from judged.results.types import Batch, Ints
    from judged.scoring.judging.ranking import RankingRules


_MAX_EDGE_ROWS = 1 << 16  # rows of topics at edges of parts that are ranked at a time


class Meter(Protocol):
    """Progress of reading and ranking a run."""

    def __call__(self, count: int, /) -> None:
        """Add bytes that were read."""
        ...

    def restart(self) -> None:
        """Start again: the whole file is read a second time before anything is ranked."""
        ...

    def ranked(self, share: float) -> None:
        """Set the share of the read rows that is ranked, from 0 to 1."""
        ...


class ScatteredError(Exception):
    """The run is not grouped by topic: a topic came back after others."""


class _SplitPart(NamedTuple):
    """One part of a run: its first topic, the hits of the topics that are complete in it, and its last topic."""

    head: Batch
    middle: RunHits | None
    tail: Batch | None


def scan(index: QrelsIndex, rows: Rows, ranking: RankingRules, meter: Meter | None = None) -> RunHits:
    """Find the judged rows of a run and their ranks, for any order of rows."""
    try:
        return _scan_grouped(index, rows, ranking, meter)
    except ScatteredError:
        pass
    if meter:
        meter.restart()
    return _scan_scattered(index, rows, ranking, meter)


def _scan_grouped(index: QrelsIndex, rows: Rows, ranking: RankingRules, meter: Meter | None) -> RunHits:
    pieces: list[RunHits] = []
    seen_topics: set[str] = set()
    edges: list[Batch] = []  # complete topics that crossed the end of a part and are not ranked yet
    open_topic: list[Batch] = []  # rows of the last topic read, which may continue in the next part

    def add_hits(piece: RunHits) -> None:
        before = len(seen_topics)
        seen_topics.update(piece.names)
        if len(seen_topics) - before < len(piece.names):
            raise ScatteredError
        pieces.append(piece)

    def close_topic(*, flush: bool = False) -> None:
        edges.extend(open_topic)
        open_topic.clear()
        if edges and (flush or sum(edge.num_rows for edge in edges) > _MAX_EDGE_ROWS):
            add_hits(rank_topics(index, concatenate_batches(edges), ranking))
            edges.clear()

    for part in map_in_order(rows.parts(ranking_columns(ranking), meter), partial(_split_part, index, ranking)):
        if open_topic and _first_topic(open_topic[0]) != _first_topic(part.head):
            close_topic()
        open_topic.append(part.head)
        if part.tail is not None:
            close_topic()
            open_topic.append(part.tail)
        if part.middle is not None:
            add_hits(part.middle)
    close_topic(flush=True)
    return concatenate_hits(pieces)


def _scan_scattered(index: QrelsIndex, rows: Rows, ranking: RankingRules, meter: Meter | None) -> RunHits:
    pieces: list[RunHits] = []
    with Buckets() as buckets:
        for piece in map_in_order(rows.parts(ranking_columns(ranking), meter), by_bucket):
            buckets.add(piece)
        parts = list(buckets.topics())
        for piece in map_in_order(parts, partial(rank_topics, index, ranking=ranking)):
            pieces.append(piece)
            if meter:
                meter.ranked(len(pieces) / len(parts))
    if meter:
        meter.ranked(1)
    return concatenate_hits(pieces)


def _split_part(index: QrelsIndex, ranking: RankingRules, batch: Batch) -> _SplitPart:
    names, starts, ends = topic_segments(batch.column("query_id"))
    if len(starts) == 1:
        return _SplitPart(batch, None, None)
    first, last = int(starts[1]), int(starts[-1])
    inner = names.slice(1, len(names) - 2), starts[1:-1] - first, ends[1:-1] - first
    middle = rank_topics(index, batch.slice(first, last - first), ranking, inner) if last > first else None
    return _SplitPart(_copy(batch.slice(0, first)), middle, _copy(batch.slice(last)))


def _copy(batch: Batch) -> Batch:
    return pc.take(batch, int_array(np.arange(batch.num_rows)))  # a slice would keep its whole part in memory


def _first_topic(batch: Batch) -> str:
    return batch.column("query_id")[0].as_py()


_MAX_ROWS_IN_MEMORY = 8_000_000  # rows in memory before they are written to a file, some 40 bytes each
_BUCKETS = 64
_MAX_SHARE_ROWS = 2_000_000  # rows of a bucket that are ranked at a time, some 130 bytes each in every thread


class SortedRows(NamedTuple):
    """Rows sorted by bucket, and the first row of each bucket; the last entry is the number of rows."""

    rows: Batch
    starts: Ints


def by_bucket(batch: Batch) -> SortedRows:
    """Sort rows by bucket, a hash of the topic's id, so that topics need not be counted first."""
    bucket = (hash_ids(batch.column("query_id")) % np.uint64(_BUCKETS)).astype(np.uint8)
    order = np.argsort(bucket, kind="stable")
    return SortedRows(batch.take(int_array(order)), np.searchsorted(bucket[order], np.arange(_BUCKETS + 1)))


class Buckets:
    """Storage for the rows of a run in any order, read back by topic; rows of a topic keep the order of the run."""

    def __init__(self) -> None:
        self._in_memory: list[SortedRows] = []
        self._rows_in_memory = 0
        self._file: IO[bytes] | None = None
        # for each bucket, its blocks in the file: number of rows, offset and length in bytes
        self._blocks: list[list[tuple[int, int, int]]] = [[] for _ in range(_BUCKETS)]
        self._schema: Any = None
        self._reading = Lock()

    def __enter__(self) -> Self:
        """Return the buckets; the temporary file is created when it is needed."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close, and so delete, the temporary file."""
        if self._file:
            self._file.close()

    def add(self, piece: SortedRows) -> None:
        """Add rows; write all rows to the temporary file if there are too many."""
        self._in_memory.append(piece)
        self._rows_in_memory += piece.rows.num_rows
        if self._rows_in_memory > _MAX_ROWS_IN_MEMORY:
            self._write_to_file()

    def topics(self) -> Iterator[Part]:
        """Yield functions that read all rows, a few complete topics each; they can be called in threads."""
        if self._file:
            self._write_to_file()
        for bucket in range(_BUCKETS):
            shares = 1 + sum(rows for rows, _, _ in self._blocks[bucket]) // _MAX_SHARE_ROWS
            for share in range(shares):
                yield partial(self._topics_of, bucket, share, shares)

    def _write_to_file(self) -> None:
        import tempfile  # few runs need it

        if not self._in_memory:
            return
        self._schema = self._in_memory[0].rows.schema
        try:
            # The file has no name (on Windows, closing deletes it), so that a killed process leaves no file.
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115
            for bucket in range(_BUCKETS):
                batch = self._from_memory(bucket)
                offset = self._file.tell()
                self._file.write(batch.serialize())
                self._blocks[bucket].append((batch.num_rows, offset, self._file.tell() - offset))
        except OSError as error:
            raise OutputError(tempfile.gettempdir(), error) from None
        self._in_memory, self._rows_in_memory = [], 0

    def _from_memory(self, bucket: int) -> Batch:
        slices = [rows.slice(starts[bucket], starts[bucket + 1] - starts[bucket]) for rows, starts in self._in_memory]
        return concatenate_batches(slices)

    def _topics_of(self, bucket: int, share: int, shares: int) -> Batch:
        """Read one share of the topics of a bucket, grouped by topic, rows in the order of the run."""
        blocks = [self._read(self._file, offset, length) for _, offset, length in self._blocks[bucket] if self._file]
        if shares > 1:
            blocks = [batch.filter(_is_share(batch, share, shares)) for batch in blocks]
        batch = concatenate_batches(blocks) if blocks else self._from_memory(bucket)
        topics = pc.dictionary_encode(batch.column("query_id"))
        codes = topics.indices.to_numpy().astype(np.min_scalar_type(len(topics.dictionary)))  # few bytes sort fast
        return batch.take(int_array(np.argsort(codes, kind="stable")))

    def _read(self, file: IO[bytes], offset: int, length: int) -> Batch:
        with self._reading:
            file.seek(offset)
            data = file.read(length)
        return pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)


def _is_share(batch: Batch, share: int, shares: int) -> Any:
    other_bits = hash_ids(batch.column("query_id")) // np.uint64(_BUCKETS)
    return pa.array(other_bits % np.uint64(shares) == np.uint64(share))


def concatenate_batches(batches: list[Batch]) -> Batch:
    """Concatenate batches; without rows, return the first (empty) batch."""
    combined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return combined[0] if combined else batches[0]
