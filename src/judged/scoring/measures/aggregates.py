"""How the scores of topics become one number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged


Aggregate: TypeAlias = Literal["mean", "sum", "count", "geometric mean"]

FLOOR = 1e-5
"""The least score that a geometric mean sees: one topic without any would otherwise make it 0."""


def aggregate(kind: Aggregate, scores: Floats) -> float:
    """Give the aggregate of one score per topic, added up one after the other, as the C tools do; NaN for none.

    >>> aggregate("mean", np.array([0.5, 1.0])), aggregate("sum", np.array([2.0, 3.0]))
    (0.75, 5.0)
    >>> round(aggregate("geometric mean", np.array([0.1, 0.0])), 6)
    0.001
    """
    # A geometric mean raises every score to 0.00001 first, as trec_eval does.
    if kind in {"sum", "count"}:
        return _total(scores)
    if not len(scores):
        return math.nan
    if kind == "geometric mean":
        return math.exp(_total(logarithms(scores)) / len(scores))
    return _total(scores) / len(scores)


def logarithms(scores: Floats) -> Floats:
    """Give the logarithm of each score, or of the floor; NaN stays. C's logarithm: NumPy's differs in last bits."""
    return np.array([math.log(max(score, FLOOR)) if not math.isnan(score) else score for score in scores.tolist()])


def _total(scores: Floats) -> float:
    return float(np.cumsum(scores)[-1]) if len(scores) else 0.0


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
    return relevant_among(judged, rel, judged.within(cutoff))


def relevant_among(judged: Judged, rel: float, counted: Bools) -> Floats:
    """Count the relevant documents among these hits: (H,) to (T,)."""
    relevant = judged.column("relevant", judged.relevant(rel), where=counted)
    return judged.summed("relevant found", judged.sum(relevant & counted), "relevant")


def all_relevant(judged: Judged, rel: float) -> Floats:
    """Count the relevant documents that the qrels know, and call the number R in the working: (T,)."""
    least = "" if rel == 1 else f", of grade {rel:g} or more"
    return judged.step("R", judged.num_relevant(rel), f"relevant documents in the qrels{least}")


def summed_precision(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Add up the precision at each relevant document among the first k: (T,)."""
    found = judged.relevant(rel)
    so_far, counted = judged.count_so_far(found), found & judged.within(cutoff)
    precision = so_far / judged.rank
    judged.column("precision", precision, "relevant_so_far / rank", where=counted, relevant_so_far=so_far)
    return judged.total("sum of precision", precision, "precision", where=counted)


def returned_within(judged: Judged, cutoff: int | None) -> Ints:
    """Count the returned documents among the first k: (T,)."""
    if cutoff is None:
        return judged.returned
    returned = np.minimum(judged.returned, cutoff)
    judged.step("returned", returned.astype(np.float64), f"documents in the first {cutoff}")
    return returned


def for_each_hit(judged: Judged, values: Floats) -> Floats | float:
    """Give each hit the number of its topic: (T,) to (H,); for a single topic that number alone, no column of it.

    >>> from judged.scoring.judging import judge_list
    >>> for_each_hit(judge_list([1, 0]), np.array([5.0]))
    5.0
    """
    return float(values[0]) if len(judged) == 1 else values[judged.topic]
