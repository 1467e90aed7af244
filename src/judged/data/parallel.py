"""Parts of a source, made and worked on in threads, with results in order."""

from __future__ import annotations

import os
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from judged._types import Batch
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
