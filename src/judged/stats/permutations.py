"""Permutations within topics: what a statistic of the systems' sums would be if systems made no difference.

If they made none, each topic's scores could have come in any order. For few systems the sums of all orders of some
topics together are listed, and drawn from the list. For more, a random order is made by sorting random keys that carry
the systems' numbers in their last bits: numpy sorts short rows of whole numbers several times faster than it can
argsort, or shuffle, them.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.stats.complete import significance
from judged.stats.inputs import check_resampling, check_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from judged._types import Floats, Ints
    from judged.stats.complete import Complete

    Statistic: TypeAlias = Callable[[Floats], Floats]

_BLOCK = 1 << 16  # scores permuted together: they stay in a cache
_THREADS = max(1, min(os.cpu_count() or 1, 8))
_FEW = 6  # systems whose 720 orders are listed
_LISTED = 1 << 12  # sums in one list


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """What a statistic is when systems make no difference."""

    sorted: Floats  # (B,): one value an arrangement, rising
    exact: bool  # whether these are all arrangements there are, not a sample

    def p(self, observed: Floats, tolerance: float) -> Floats:
        """Give the chance of a value at least as large; what is equal within the tolerance counts."""
        # (b + 1) / (B + 1) of a sample, the observed arrangement being one more, and the share b / B of all
        # arrangements.
        below = np.searchsorted(self.sorted, observed - tolerance, side="left")
        reached = np.asarray(len(self.sorted) - below, dtype=np.float64)
        if self.exact:
            return reached / len(self.sorted)
        return (reached + 1.0) / (len(self.sorted) + 1.0)

    def critical(self, alpha: float) -> float:
        """Give the value that must be exceeded for a p-value of at most alpha; infinite if none is enough."""
        count = len(self.sorted)
        allowed = alpha * count if self.exact else alpha * (count + 1) - 1.0
        most = math.floor(allowed + 1e-9)
        if most < int(self.exact):  # the observed arrangement is one of all
            return math.inf
        return float(self.sorted[count - most - 1])


def permuted(
    blocks: Complete,
    differences: Floats,
    largest: Statistic,
    level: float,
    resamples: int,
    seed: int,
    *,
    relabelling: bool,
) -> dict[str, Any]:
    """Hold differences against the largest one that permuted scores give: fields of a result of many systems."""
    check_share("level", level)
    check_resampling(resamples, seed)
    told: dict[str, Any] = {"differences": differences, "level": level, **blocks.counted}
    if blocks.n < 2:
        return {**told, "p": np.full_like(differences, np.nan), "critical": math.nan, "note": blocks.note}
    null = null_distribution(blocks.scores, largest, resamples, seed, relabelling=relabelling)
    return {
        **told,
        "p": null.p(np.abs(differences), blocks.tolerance),
        "critical": null.critical(significance(level)),
        "resamples": len(null.sorted),
        "exact": null.exact,
        "seed": None if null.exact else seed,
        "note": blocks.uneven,
    }


def null_distribution(
    scores: Floats, statistic: Statistic, resamples: int, seed: int, *, relabelling: bool
) -> NullDistribution:
    """Permute scores within topics."""
    # `scores`: (S, n), complete. `statistic`: from sums over topics (B, S) to one value each (B,).
    moving = scores.max(axis=0) > scores.min(axis=0)
    fixed = scores[:, ~moving].sum(axis=1)
    table = np.ascontiguousarray(scores[:, moving].T)  # a row per topic
    free = len(table) - int(relabelling and len(table) > 0)
    fixed = fixed + table[free:].sum(axis=0)
    systems = len(scores)
    arrangements = _arrangements(systems, free, resamples)
    exact = arrangements is not None
    count = arrangements if exact else resamples
    orders = _orders(systems) if (exact and free) or systems <= _FEW else None
    size = max(16, _BLOCK // systems)
    block = partial(_block, table[:free], fixed, statistic, orders, None if exact else seed)
    starts = range(0, count, size)
    with ThreadPoolExecutor(_THREADS) as pool:
        values = pool.map(lambda start: block(start, min(start + size, count)), starts)
        return NullDistribution(np.sort(np.concatenate(list(values))) / scores.shape[1], exact)


def _orders(systems: int) -> Ints:
    """List all orders of the systems, one a row."""
    return np.array(list(itertools.permutations(range(systems))), dtype=np.int64)


def _lists(table: Floats, orders: Ints) -> Iterator[Floats]:
    """List the sums of the systems (C, S) for all orders of some topics together; every topic is in one list."""
    # They are made again for each block, as those of many topics would fill the memory.
    listed = np.zeros((1, table.shape[1]))
    for row in table:
        if len(listed) > 1 and len(listed) * len(orders) > _LISTED:
            yield listed
            listed = np.zeros((1, len(row)))
        listed = (listed[:, np.newaxis] + row.take(orders)).reshape(-1, len(row))
    yield listed


def _arrangements(systems: int, topics: int, most: int) -> int | None:
    """Count the arrangements; None if there are more than that."""
    if not topics:
        return 1
    if systems > 12 or topics * math.lgamma(systems + 1) > math.log(most) + 1.0:
        return None
    count = math.factorial(systems) ** topics
    return count if count <= most else None


def _block(
    table: Floats,
    fixed: Floats,
    statistic: Statistic,
    orders: Ints | None,
    seed: int | None,
    start: int,
    stop: int,
) -> Floats:
    """Give the statistic of some arrangements: those of these numbers, or with a seed random ones."""
    sums = np.broadcast_to(fixed, (stop - start, len(fixed))).copy()
    rng = np.random.default_rng((seed or 0, start))
    if orders is None:
        keys = _Keys(len(fixed), rng)
        for row in table:
            sums += row.take(keys.orders(stop - start))
        return statistic(sums)
    numbers = np.arange(start, stop)
    for listed in _lists(table, orders):
        if seed is None:
            numbers, which = np.divmod(numbers, len(listed))
        else:
            which = rng.integers(len(listed), size=stop - start)
        sums += listed.take(which, axis=0)
    return statistic(sums)


class _Keys:
    """Makes random orders of the systems."""

    def __init__(self, systems: int, rng: np.random.Generator) -> None:
        self.number = np.arange(systems, dtype=np.uint64)
        self.bits = np.uint64((1 << max(1, (systems - 1).bit_length())) - 1)
        self.rng = rng

    def orders(self, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Give so many orders, one a row."""
        keys = self.rng.integers(
            np.iinfo(np.uint64).max, size=(count, len(self.number)), dtype=np.uint64, endpoint=True
        )
        keys &= ~self.bits
        keys |= self.number
        keys.sort(axis=1)
        keys &= self.bits
        return keys.view(np.int64)
