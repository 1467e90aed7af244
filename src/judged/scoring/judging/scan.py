"""Read a run part by part, in threads, and rank each topic as soon as it is complete.

A topic may begin in one part and end in another, so each part gives up its first and last topic: these
edges are put together in order. Where a topic comes back after others, the run is not grouped by topic: it is
read again, and its rows are held by buckets of topics until all are there.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.index import hash_ids
from judged.data.text_rows import in_order
from judged.errors import OutputError
from judged.scoring.judging.ranking import RunHits, columns_of, rank_topics, together, topic_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from judged.data.index import QrelsIndex
    from judged.data.rows import Part, Rows
    from judged.results.types import Batch, Ints
    from judged.scoring.judging.ranking import Ranking


_EDGE_ROWS = 1 << 16


class Meter(Protocol):
    """Counts how much of a run is read and ranked."""

    def __call__(self, count: int, /) -> None:
        """Count bytes that were read."""
        ...

    def restart(self) -> None:
        """Begin again: the file is read from its start, and all of it before anything is ranked."""
        ...

    def ranked(self, share: float) -> None:
        """Count the share of what was read that is ranked, from 0 to 1."""
        ...


class ScatteredError(Exception):
    """A topic came back after others: the run is not grouped by topic."""


class _Cut(NamedTuple):
    """One part, cut at its topics: the first, what is complete within the part, and the last."""

    head: Batch
    middle: RunHits | None
    tail: Batch | None


def scan(index: QrelsIndex, rows: Rows, ranking: Ranking, meter: Meter | None = None) -> RunHits:
    """Find the judged rows of a run and their ranks, whatever the order of its rows."""
    try:
        return _scan_grouped(index, rows, ranking, meter)
    except ScatteredError:
        pass
    if meter:
        meter.restart()
    return _scan_scattered(index, rows, ranking, meter)


def _scan_grouped(index: QrelsIndex, rows: Rows, ranking: Ranking, meter: Meter | None) -> RunHits:
    pieces: list[RunHits] = []
    seen: set[str] = set()
    edges: list[Batch] = []  # complete topics that crossed a part's end, not ranked yet
    open_topic: list[Batch] = []

    def take(piece: RunHits) -> None:
        before = len(seen)
        seen.update(piece.names)
        if len(seen) - before < len(piece.names):
            raise ScatteredError
        pieces.append(piece)

    def close(*, flush: bool = False) -> None:
        edges.extend(open_topic)
        open_topic.clear()
        if edges and (flush or sum(edge.num_rows for edge in edges) > _EDGE_ROWS):
            take(rank_topics(index, joined(edges), ranking))
            edges.clear()

    for cut in in_order(rows.parts(columns_of(ranking), meter), partial(_cut, index, ranking)):
        if open_topic and _first_topic(open_topic[0]) != _first_topic(cut.head):
            close()
        open_topic.append(cut.head)
        if cut.tail is not None:
            close()
            open_topic.append(cut.tail)
        if cut.middle is not None:
            take(cut.middle)
    close(flush=True)
    return together(pieces)


def _scan_scattered(index: QrelsIndex, rows: Rows, ranking: Ranking, meter: Meter | None) -> RunHits:
    pieces: list[RunHits] = []
    with Buckets() as buckets:
        for piece in in_order(rows.parts(columns_of(ranking), meter), by_bucket):
            buckets.add(piece)
        parts = list(buckets.topics())
        for piece in in_order(parts, partial(rank_topics, index, ranking=ranking)):
            pieces.append(piece)
            if meter:
                meter.ranked(len(pieces) / len(parts))
    if meter:
        meter.ranked(1)
    return together(pieces)


def _cut(index: QrelsIndex, ranking: Ranking, batch: Batch) -> _Cut:
    names, starts, ends = topic_runs(batch.column("query_id"))
    if len(starts) == 1:
        return _Cut(batch, None, None)
    first, last = int(starts[1]), int(starts[-1])
    inner = names.slice(1, len(names) - 2), starts[1:-1] - first, ends[1:-1] - first
    middle = rank_topics(index, batch.slice(first, last - first), ranking, inner) if last > first else None
    return _Cut(_copied(batch.slice(0, first)), middle, _copied(batch.slice(last)))


def _copied(batch: Batch) -> Batch:
    """Copy a slice, so that it does not keep its whole part in memory."""
    return pc.take(batch, int_array(np.arange(batch.num_rows)))


def _first_topic(batch: Batch) -> str:
    return batch.column("query_id")[0].as_py()


_HELD = 8_000_000  # rows that stand in memory, some 40 bytes each
_BUCKETS = 64
_TOGETHER = 2_000_000  # rows of a bucket that are ranked at a time, some 130 bytes each in every thread


class SortedRows(NamedTuple):
    """Rows sorted by bucket, and where each bucket begins; one entry more at the end."""

    rows: Batch
    starts: Ints


def by_bucket(batch: Batch) -> SortedRows:
    """Sort rows by the bucket of their topic, a hash of its id, so that nothing has to be counted first."""
    bucket = (hash_ids(batch.column("query_id")) % np.uint64(_BUCKETS)).astype(np.uint8)
    order = np.argsort(bucket, kind="stable")
    return SortedRows(batch.take(int_array(order)), np.searchsorted(bucket[order], np.arange(_BUCKETS + 1)))


class Buckets:
    """Takes the rows of a run in any order, and gives them back by topic, each in the order of the run."""

    def __init__(self) -> None:
        self._held: list[SortedRows] = []
        self._count = 0  # of the rows that are held
        self._file: IO[bytes] | None = None
        self._laid: list[list[tuple[int, int, int]]] = [[] for _ in range(_BUCKETS)]  # rows, place and length in bytes
        self._schema: Any = None
        self._reading = Lock()

    def __enter__(self) -> Self:
        """Begin; the temporary file is made when it is needed."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Let go of the temporary file."""
        if self._file:
            self._file.close()

    def add(self, piece: SortedRows) -> None:
        """Take some rows in."""
        self._held.append(piece)
        self._count += piece.rows.num_rows
        if self._count > _HELD:
            self._lay_down()

    def topics(self) -> Iterator[Part]:
        """Give all rows, some whole topics at a time; whoever calls the parts may do so in threads."""
        if self._file:
            self._lay_down()
        for bucket in range(_BUCKETS):
            shares = 1 + sum(rows for rows, _, _ in self._laid[bucket]) // _TOGETHER
            for share in range(shares):
                yield partial(self._topics_of, bucket, share, shares)

    def _lay_down(self) -> None:
        """Write what is held to the temporary file, bucket by bucket."""
        import tempfile  # few runs need it

        if not self._held:
            return
        self._schema = self._held[0].rows.schema
        try:
            # It has no name (on Windows it goes with its last handle), so that a killed process leaves nothing behind.
            self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115
            for bucket in range(_BUCKETS):
                batch = self._gathered(bucket)
                place = self._file.tell()
                self._file.write(batch.serialize())
                self._laid[bucket].append((batch.num_rows, place, self._file.tell() - place))
        except OSError as error:
            raise OutputError(tempfile.gettempdir(), error) from None
        self._held, self._count = [], 0

    def _gathered(self, bucket: int) -> Batch:
        return joined([rows.slice(starts[bucket], starts[bucket + 1] - starts[bucket]) for rows, starts in self._held])

    def _topics_of(self, bucket: int, share: int, shares: int) -> Batch:
        """Gather some topics of a bucket, each in one piece, its rows in the order of the run."""
        laid = [self._read(self._file, place, length) for _, place, length in self._laid[bucket] if self._file]
        if shares > 1:
            laid = [batch.filter(_is_share(batch, share, shares)) for batch in laid]
        batch = joined(laid) if laid else self._gathered(bucket)
        topics = pc.dictionary_encode(batch.column("query_id"))
        codes = topics.indices.to_numpy().astype(np.min_scalar_type(len(topics.dictionary)))  # few bytes sort fast
        return batch.take(int_array(np.argsort(codes, kind="stable")))

    def _read(self, file: IO[bytes], place: int, length: int) -> Batch:
        with self._reading:
            file.seek(place)
            data = file.read(length)
        return pa.ipc.read_record_batch(pa.py_buffer(data), self._schema)


def _is_share(batch: Batch, share: int, shares: int) -> Any:
    other_bits = hash_ids(batch.column("query_id")) // np.uint64(_BUCKETS)
    return pa.array(other_bits % np.uint64(shares) == np.uint64(share))


def joined(batches: list[Batch]) -> Batch:
    """Put several batches into one."""
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole[0] if whole else batches[0]
