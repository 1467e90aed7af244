"""Read a run part by part, in threads, and rank each topic as soon as it is complete.

A topic may begin in one part and end in another, so each part gives up its first and last topic: these
edges are put together in order. Where a topic comes back after others, the run is not grouped by topic: it is
read again, and its rows are held by buckets of topics until all are there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from judged.data.bulk import in_order
from judged.data.compute import int_array, pc
from judged.scoring.judging.buckets import Buckets, by_bucket, joined
from judged.scoring.judging.ranking import columns_of, rank_topics, topic_runs
from judged.scoring.judging.run_hits import RunHits, together

if TYPE_CHECKING:
    from judged._types import Batch
    from judged.data.index import QrelsIndex
    from judged.data.rows import Digest, Rows
    from judged.scoring.judging.ranking import Ranking

_EDGE_ROWS = 1 << 16


class Restartable(Protocol):
    """A digest that can forget what it has been told."""

    def update(self, data: Any, /) -> None:
        """Take some bytes in."""
        ...

    def restart(self) -> None:
        """Begin anew: the file is read again from its start, and all of it before anything is ranked."""
        ...

    def ranked(self, share: float) -> None:
        """Say how much of what was read is ranked, from 0 to 1."""
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
            take(rank_topics(index, joined(edges), ranking))
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


def _scan_scattered(index: QrelsIndex, rows: Rows, ranking: Ranking, digest: Restartable | None) -> RunHits:
    pieces: list[RunHits] = []
    with Buckets() as buckets:
        for piece in in_order(rows.parts(columns_of(ranking), digest), by_bucket):
            buckets.add(piece)
        parts = list(buckets.topics())
        for piece in in_order(parts, partial(rank_topics, index, ranking=ranking)):
            pieces.append(piece)
            if digest:
                digest.ranked(len(pieces) / len(parts))
    if digest:
        digest.ranked(1)
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
