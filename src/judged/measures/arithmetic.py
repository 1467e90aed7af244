"""Small pieces of arithmetic that several formulas share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.judging import Judged


def divide(above: Floats | Ints | Bools, below: Floats | Ints | float) -> Floats:
    """Divide, with 0 where the divisor is 0.

    >>> divide(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    above = np.asarray(above, dtype=np.float64)
    below = np.asarray(below, dtype=np.float64)
    return np.divide(above, below, out=np.zeros(np.broadcast_shapes(above.shape, below.shape)), where=below != 0)


def log(values: Floats) -> Floats:
    """Give the natural logarithm of each value by the C library: NumPy's differs in last bits."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([math.log(value) for value in distinct.tolist()])[place]


def log2(values: Floats) -> Floats:
    """Give the logarithm to base 2 of each value by the C library: NumPy's differs in last bits."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.array([math.log2(value) for value in distinct.tolist()])[place]


def relevant_returned(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Count the relevant documents among the first k: (T,)."""
    return judged.sum(judged.relevant(rel) & judged.within(cutoff))


def relevant_known(judged: Judged, rel: float) -> Floats:
    """Count the relevant documents that the qrels know: (T,)."""
    return judged.num_relevant(rel)


def precision_of_first(judged: Judged, rel: float, places: Floats) -> Floats:
    """Divide the relevant documents in the first places of each topic by the number of places: (T,) to (T,)."""
    found = judged.relevant(rel) & (judged.rank <= places[judged.topic])
    return divide(judged.sum(found), places)


def summed_precision(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Add up the precision at each relevant document among the first k: (T,)."""
    found = judged.relevant(rel)
    return judged.sum(judged.count_so_far(found) / judged.rank * (found & judged.within(cutoff)))


def returned_within(judged: Judged, cutoff: int | None) -> Ints:
    """Count the returned documents among the first k: (T,)."""
    return judged.returned if cutoff is None else np.minimum(judged.returned, cutoff)
