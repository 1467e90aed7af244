"""The rows of a scattered run by buckets of topics: in memory, or where they are many in a temporary file."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array, pc
from judged.data.ids import hash_ids
from judged.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from judged._types import Batch, Ints
    from judged.data.rows import Part

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
