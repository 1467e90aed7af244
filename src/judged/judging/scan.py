"""Read a run part by part, in threads, and rank each topic as soon as it is complete.

A topic may begin in one part and end in another, so each part gives up its first and last topic: these
edges are put together in order. Where a topic comes back after others, the run is not grouped by topic: it is
read again, and its rows are held, sorted by buckets of topics, until all of a bucket are there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from judged.data.bulk import in_order
from judged.data.compute import int_array, pc
from judged.data.ids import hash_ids
from judged.judging.ranking import columns_of, rank_topics, topic_runs
from judged.judging.run_hits import RunHits, together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged._types import Batch, Ints
    from judged.data.index import QrelsIndex
    from judged.data.rows import Digest, Part, Rows
    from judged.judging.ranking import Ranking

_HELD = 20_000_000  # rows of a scattered run that are held at a time
_BUCKETS = 64  # of its topics: what is ranked at a time
_EDGE_ROWS = 1 << 16


class Restartable(Protocol):
    """A digest that can forget what it has been told."""

    def update(self, data: Any, /) -> None:
        """Take some bytes in."""
        ...

    def restart(self) -> None:
        """Begin anew: the file is read again from its start."""
        ...


class ScatteredError(Exception):
    """A topic came back after others: the run is not grouped by topic."""


class _Cut(NamedTuple):
    """One part, cut at its topics: the first, what is complete within the part, and the last."""

    head: Batch
    middle: RunHits | None
    tail: Batch | None


def scan(index: QrelsIndex, rows: Rows, ranking: Ranking, digest: Restartable | None = None) -> RunHits:
    """Find the judged rows of a run and their ranks, whatever the order of its rows."""
    try:
        return _scan_grouped(index, rows, ranking, digest)
    except ScatteredError:
        pass
    if digest:
        digest.restart()
    return _scan_scattered(index, rows, ranking, digest)


def _scan_grouped(index: QrelsIndex, rows: Rows, ranking: Ranking, digest: Digest | None) -> RunHits:
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
            take(rank_topics(index, _joined(edges), ranking))
            edges.clear()

    for cut in in_order(rows.parts(columns_of(ranking), digest), partial(_cut, index, ranking)):
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


def _scan_scattered(index: QrelsIndex, rows: Rows, ranking: Ranking, digest: Digest | None) -> RunHits:
    hits: list[RunHits] = []
    begin = 0
    while begin < _BUCKETS:
        held, end = _held(rows.parts(columns_of(ranking), digest), begin)
        buckets = [partial(_bucket, held, at) for at in range(end - begin)]
        hits += in_order(buckets, partial(rank_topics, index, ranking=ranking))
        del held, buckets  # before the next are held
        begin, digest = end, None
    return together(hits)


def _held(parts: Iterable[Part], begin: int) -> tuple[list[_Sorted], int]:
    """Hold the rows of some buckets, from this one on, and name the first that memory has no room for."""
    end, count = _BUCKETS, 0
    held: list[_Sorted] = []
    for piece in in_order(parts, partial(_sorted, begin=begin)):
        held.append(piece.first(end - begin))
        count += held[-1].rows.num_rows
        while count > _HELD and end - begin > 1:
            end -= (end - begin) // 2
            held = [piece.first(end - begin) for piece in held]
            count = sum(piece.rows.num_rows for piece in held)
    return held, end


class _Sorted(NamedTuple):
    """Rows sorted by bucket, and where each bucket begins; one entry more at the end."""

    rows: Batch
    starts: Ints

    def first(self, count: int) -> _Sorted:
        """Keep so many buckets."""
        if len(self.starts) <= count + 1:
            return self
        return _Sorted(_copied(self.rows.slice(0, self.starts[count])), self.starts[: count + 1])


def _sorted(batch: Batch, begin: int) -> _Sorted:
    """Sort rows by the bucket of their topic, and leave out those before this one."""
    bucket = (hash_ids(batch.column("query_id")) % np.uint64(_BUCKETS)).astype(np.uint8)
    order = np.argsort(bucket, kind="stable")
    starts = np.searchsorted(bucket[order], np.arange(begin, _BUCKETS + 1))
    return _Sorted(batch.take(int_array(order[starts[0] :])), starts - starts[0])


def _bucket(held: list[_Sorted], at: int) -> Batch:
    """Gather the rows of one bucket, each topic in one piece, its rows in the order of the run."""
    batch = _joined([rows.slice(starts[at], starts[at + 1] - starts[at]) for rows, starts in held])
    topics = pc.dictionary_encode(batch.column("query_id"))
    codes = topics.indices.to_numpy().astype(np.min_scalar_type(len(topics.dictionary)))  # few bytes sort fast
    return batch.take(int_array(np.argsort(codes, kind="stable")))


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


def _joined(batches: list[Batch]) -> Batch:
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole[0] if whole else batches[0]


def _first_topic(batch: Batch) -> str:
    return batch.column("query_id")[0].as_py()
