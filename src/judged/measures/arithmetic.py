"""Small pieces of arithmetic that several formulas share."""

from __future__ import annotations

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


def relevant_returned(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Count the relevant documents among the first k: (T,)."""
    return judged.sum(judged.relevant(rel) & judged.within(cutoff))


def relevant_known(judged: Judged, rel: float) -> Floats:
    """Count the relevant documents that the qrels know: (T,)."""
    return judged.sum_labels(judged.relevant_labels(rel))


def returned_within(judged: Judged, cutoff: int | None) -> Ints:
    """Count the returned documents among the first k: (T,)."""
    return judged.returned if cutoff is None else np.minimum(judged.returned, cutoff)
