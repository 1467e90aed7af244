"""The engine of resampling: one matrix product serves all pairs and all resamples, in blocks of bounded memory.

Differences are made whole numbers of a unit so small that nothing is lost, and so large that every sum of them is a
float without rounding. Sums then depend neither on the order of addition nor on threads nor on what else stands
in the table: the same seed gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats

_DRAWN = 1 << 18  # weights made at a time: it decides which resample gets which random bits, so that it never changes
_KEPT = 1 << 23  # weights that are kept for the next block of rows; more are made again
_HELD = 1 << 22  # sums held at a time
_BITS = 52  # of a float's fraction
_HEAD = 4096  # values from which a bound is guessed


class Weights(Protocol):
    """How often, and with which sign, each topic counts in each resample."""

    @property
    def n(self) -> int:
        """How many topics there are."""
        ...

    @property
    def count(self) -> int:
        """How many resamples `blocks` makes."""
        ...

    def blocks(self) -> Iterator[Floats]:
        """Give all resamples, (b, T) at a time; the same ones at each call."""
        ...


@dataclass(frozen=True)
class SignFlips:
    """Signs for Fisher's randomisation test: drawn, or all of them where there are at most `resamples`.

    Where all are listed, the first topic keeps its sign: the other half are their negatives.

    >>> [block.tolist() for block in SignFlips(n=2, resamples=100, seed=0).blocks()]
    [[[1.0, 1.0], [1.0, -1.0]]]
    """

    n: int
    resamples: int
    seed: int

    @property
    def exact(self) -> bool:
        """Whether all signs are listed."""
        return self.n < 60 and 1 << self.n <= self.resamples

    @property
    def count(self) -> int:
        """How many rows `blocks` makes."""
        return 1 << (self.n - 1) if self.exact else self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Give the signs, (b, T) at a time."""
        rng = np.random.default_rng(self.seed)
        for start, size in _parts(self.count, self.n):
            if self.exact:
                place = np.arange(start, start + size)[:, None]
                flipped = np.concatenate([np.zeros_like(place), place >> np.arange(self.n - 1) & 1], axis=1)
            else:
                drawn = rng.integers(0, 256, size=(size, (self.n + 7) // 8), dtype=np.uint8)
                flipped = np.unpackbits(drawn, axis=1, count=self.n)
            yield (1 - 2 * flipped.astype(np.int8)).astype(np.float64)


@dataclass(frozen=True)
class ResampledTopics:
    """How often each topic was drawn, with replacement, as many as there are."""

    n: int
    resamples: int
    seed: int

    @property
    def count(self) -> int:
        """How many resamples there are."""
        return self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Give the times that each topic was drawn, (b, T) at a time."""
        rng = np.random.default_rng(self.seed)
        for _, size in _parts(self.resamples, self.n):
            drawn = rng.integers(self.n, size=(size, self.n))
            cells = drawn + self.n * np.arange(size)[:, None]
            yield np.bincount(cells.ravel(), minlength=size * self.n).reshape(size, -1).astype(np.float64)


def resampled_sums(weights: Weights, *tables: Floats) -> Iterator[tuple[int, list[Floats]]]:
    """Add up each row of each table in each resample."""
    # Yields, for a block of p rows from `first` on: one (p, B) for each table. They are overwritten at the next step.
    rows = len(tables[0])
    step = min(rows, max(1, _HELD // (weights.count * len(tables))))
    kept = list(weights.blocks()) if step < rows and weights.count * weights.n <= _KEPT else None
    held = [np.empty((step, weights.count)) for _ in tables]
    for first in range(0, rows, step):
        parts = [np.ascontiguousarray(table[first : first + step]) for table in tables]
        sums = [room[: len(part)] for room, part in zip(held, parts, strict=True)]
        at = 0
        for block in kept or weights.blocks():
            for part, into in zip(parts, sums, strict=True):
                np.matmul(part, block.T, out=into[:, at : at + len(block)])
            at += len(block)
        yield first, sums


def whole_numbers(values: Floats, times: int = 1) -> tuple[Floats, Floats]:
    """Write each row as whole numbers of a unit, so that sums of up to ``times`` all of them are exact.

    >>> numbers, units = whole_numbers(np.array([[0.1, -0.3]]))
    >>> float(abs(numbers[0] * units[0] - [0.1, -0.3]).max()) <= 1e-16
    True
    """
    # `values`: (P, T), each row with something other than 0. Returns (P, T) and (P,): `values` is `numbers * units` but
    # for half a unit.
    _, exponents = np.frexp(times * np.abs(values).sum(axis=1))
    units = np.ldexp(1.0, exponents - _BITS)
    return np.rint(values / units[:, None]), units


def least(values: Floats, rank: int) -> float:
    """Give the ``rank``-th smallest value, counted from 1; minus infinity for rank 0 or less.

    >>> least(np.array([0.3, 0.1, 0.2]), 2)
    0.2
    """
    # The values stand in random order, so that some of them tell where to look, and few need sorting.
    if rank < 1:
        return -math.inf
    head = np.sort(values[:_HEAD])
    bound = head[min(len(head) - 1, int(1.5 * rank * len(head) / len(values)) + 20)]
    below = values[values <= bound]
    among = below if len(below) >= rank else values
    return float(np.partition(among, rank - 1)[rank - 1])


def _parts(count: int, topics: int) -> Sequence[tuple[int, int]]:
    """Cut ``count`` resamples into blocks whose size depends on nothing but the number of topics."""
    size = max(1, _DRAWN // topics)
    return [(start, min(size, count - start)) for start in range(0, count, size)]
