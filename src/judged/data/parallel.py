"""Parts of a source, made and worked on in threads, with results in order."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from judged._types import Batch
    from judged.data.rows import Part

T = TypeVar("T")

_THREADS = max(1, min(os.cpu_count() or 1, 8))


def in_order(parts: Iterable[Part], work: Callable[[Batch], T]) -> Iterator[T]:
    """Call each part and do the work on its batch, in threads, a few parts ahead; empty batches are passed over.

    Parsing and NumPy let other threads run, so that reading, parsing and ranking overlap.
    """
    waiting: deque[Future[T | None]] = deque()

    def do(part: Part) -> T | None:
        batch = part()
        return work(batch) if batch.num_rows else None

    with ThreadPoolExecutor(_THREADS) as pool:
        for part in parts:
            waiting.append(pool.submit(do, part))
            if len(waiting) > 2 * _THREADS and (done := waiting.popleft().result()) is not None:
                yield done
        while waiting:
            if (done := waiting.popleft().result()) is not None:
                yield done
