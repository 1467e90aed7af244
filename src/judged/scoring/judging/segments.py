"""Kernels on flat columns that are cut into segments, one a topic.

Sums run in the order of the column (topic, then rank), one addition after the other, as the C tools
add; pairwise summation would differ in the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Floats, Ints, Strings


def segment_starts(segment: Ints, count: int) -> Ints:
    """Give where each of ``count`` segments begins in a sorted column; one entry more at the end.

    >>> segment_starts(np.array([0, 0, 2]), 3).tolist()
    [0, 2, 2, 3]
    """
    return np.searchsorted(segment, np.arange(count + 1)).astype(np.int64)


def segment_sum(values: Floats | Bools, segment: Ints, count: int) -> Floats:
    """Add up the values of each segment, in the order in which they stand.

    >>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    return np.bincount(segment, weights=values, minlength=count).astype(np.float64, copy=False)


def running_count(mask: Bools, segment: Ints, starts: Ints) -> Ints:
    """Count the marked entries of the segment up to and including each entry.

    >>> running_count(np.array([True, True, False, True]), np.array([0, 0, 0, 1]), np.array([0, 3, 4])).tolist()
    [1, 2, 2, 1]
    """
    counts = np.concatenate(([0], np.cumsum(mask)))
    return counts[1:] - counts[starts[segment]]


def running_sum(values: Floats | Bools, starts: Ints) -> Floats:
    """Add up the values of the segment up to and including each entry, one addition after the other.

    >>> running_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3])).tolist()
    [1.0, 3.0, 4.0]
    """
    total = np.array(values, dtype=np.float64)
    length = np.diff(starts)
    long = length * length > len(total)  # at most the root of all values: each by itself, the short ones together
    for at in np.flatnonzero(long).tolist():
        part = total[starts[at] : starts[at + 1]]
        np.cumsum(part, out=part)
    short = np.flatnonzero(~long)
    longest = short[np.argsort(-length[short], kind="stable")]
    begin, length = starts[:-1][longest], length[longest]
    for place in range(1, int(length.max(initial=0))):
        at = begin[: np.searchsorted(-length, -place)] + place  # the segments that are longer than this
        total[at] += total[at - 1]
    return total


def falling_bounds(values: Floats, low: Ints, high: Ints, target: Floats) -> tuple[Ints, Ints]:
    """Find where each target's equals stand in ``values[low:high]``, which falls and holds it.

    >>> first, behind = falling_bounds(np.array([3.0, 2.0, 2.0, 1.0]), np.array([0]), np.array([4]), np.array([2.0]))
    >>> first.tolist(), behind.tolist()
    ([1], [3])
    """
    # Gives the first position of the equals and the position behind the last, one of each a target. Most have none.
    first = _count(values, low, high, target, np.greater)
    behind = first + 1
    tied = np.flatnonzero((behind < high) & (values.take(behind, mode="clip") == target))
    behind[tied] = _count(values, behind[tied], high[tied], target[tied], np.equal)
    return first, behind


def _count(values: Floats, low: Ints, high: Ints, target: Floats, is_before: np.ufunc) -> Ints:
    """Find the end of the part of ``values[low:high]`` that comes before, by steps of falling powers of two."""
    end = low.copy()
    step = 1 << int((high - low).max(initial=0)).bit_length() >> 1
    while step:
        last = end + (step - 1)
        end += step * ((last < high) & is_before(values.take(last, mode="clip"), target))
        step >>= 1
    return end


_COLUMNS = ("returned", "topic", "rank", "tie_first", "tie_last", "score")


@dataclass(frozen=True, eq=False)
class RunHits:
    """Rows that may be judged, with their place in the ranking, and the topics they come from."""

    # names, returned: every topic met: its query id and how many documents were returned for it
    names: tuple[str, ...]
    returned: Ints
    topic: Ints  # for each row: its topic's code in the qrels
    doc: Strings  # for each row: its document id; None where `row` says all
    # rank, tie_first, tie_last: for each row: its 1-based rank, and the first and last rank of those with the same
    # score
    rank: Ints
    tie_first: Ints
    tie_last: Ints
    score: Floats  # for each row
    row: Ints | None = None  # for each row: its position among the judged pairs, where that is known already
    self_first: int = 0  # topics in which no document has a higher score than the one with the id of the topic


def nothing() -> RunHits:
    """Give what is found in a run without rows."""
    none = np.zeros(0, dtype=np.int64)
    return RunHits((), none, none, pa.array([], pa.string()), none, none, none, np.zeros(0))


def together(pieces: Sequence[RunHits]) -> RunHits:
    """Put the findings of several pieces of a run into one."""
    if not pieces:
        return nothing()
    return RunHits(
        names=tuple(name for piece in pieces for name in piece.names),
        doc=pa.concat_arrays([piece.doc for piece in pieces]),
        self_first=sum(piece.self_first for piece in pieces),
        **{name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _COLUMNS},
    )
