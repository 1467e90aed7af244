"""Aggregation of scores over topics, and counts that several measures share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged


Aggregate: TypeAlias = Literal["mean", "sum", "count", "geometric mean"]

FLOOR = 1e-5
"""Floor of scores in a geometric mean, as in trec_eval. Without this floor, one topic with a score of 0 would make
the mean 0."""


def aggregate(kind: Aggregate, scores: Floats) -> float:
    """Return the aggregate of the scores of topics. The mean of no scores is NaN.

    >>> aggregate("mean", np.array([0.5, 1.0])), aggregate("sum", np.array([2.0, 3.0]))
    (0.75, 5.0)
    >>> round(aggregate("geometric mean", np.array([0.1, 0.0])), 6)
    0.001
    """
    # Scores are summed sequentially, as the C tools do: NumPy's pairwise sum can differ in the last bits.
    if kind in {"sum", "count"}:
        return _total(scores)
    if not len(scores):
        return math.nan
    if kind == "geometric mean":
        return math.exp(_total(logarithms(scores)) / len(scores))
    return _total(scores) / len(scores)


def logarithms(scores: Floats) -> Floats:
    """Return the natural logarithm of each score, or of `FLOOR` if that is higher. NaN stays NaN."""
    # The C library's logarithm: NumPy's differs in the last bits.
    return np.array([math.log(max(score, FLOOR)) if not math.isnan(score) else score for score in scores.tolist()])


def _total(scores: Floats) -> float:
    return float(np.cumsum(scores)[-1]) if len(scores) else 0.0


def divide(
    numerator: Floats | Ints | Bools | float, denominator: Floats | Ints | float, undefined: float = 0.0
) -> Floats:
    """Divide, and return `undefined` where the denominator is 0.

    >>> divide(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.asarray(denominator, dtype=np.float64)
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    return np.divide(numerator, denominator, out=np.full(shape, undefined), where=denominator != 0)


def explained_ratio(judged: Judged, name: object, **parts: Floats | Ints | float) -> Floats:
    """Divide the first part by the second, 0 where that is 0, and explain the quotient with their names: (T,).

    >>> from judged.scoring.judging import judge_list
    >>> explained_ratio(judge_list([1, 0]), "precision", relevant_returned=np.array([1.0]), k=2)
    array([0.5])
    """
    (numerator_name, numerator), (denominator_name, denominator) = parts.items()
    return judged.step(name, divide(numerator, denominator), f"{numerator_name} / {denominator_name}", **parts)


def log(values: Floats) -> Floats:
    """Return the natural logarithm of each value by the C library: NumPy's differs in the last bits."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([math.log(value) for value in distinct.tolist()])[inverse]


def log2(values: Floats) -> Floats:
    """Return the base-2 logarithm of each value by the C library: NumPy's differs in the last bits."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([math.log2(value) for value in distinct.tolist()])[inverse]


def count_relevant_returned(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Count the relevant documents among the first k: (T,)."""
    return count_relevant_among(judged, rel, judged.within(cutoff))


def count_relevant_among(judged: Judged, rel: float, counted: Bools) -> Floats:
    """Count the relevant documents among the selected hits: (H,) to (T,)."""
    is_relevant = judged.column("relevant", judged.relevant(rel), where=counted)
    total = judged.sum(is_relevant & counted)
    return judged.summed("relevant returned", total, "relevant", "sum of the column 'relevant'")


def count_relevant(judged: Judged, rel: float) -> Floats:
    """Count the relevant documents in the qrels, R in explanations: (T,)."""
    level = "" if rel == 1 else f", of grade {rel:g} or more"
    return judged.step("R", judged.num_relevant(rel), f"relevant documents in the qrels{level}")


def summed_precision(judged: Judged, rel: float, cutoff: int | None = None) -> Floats:
    """Return the sum of the precision at each relevant document among the first k: (T,)."""
    is_relevant = judged.relevant(rel)
    so_far, counted = judged.count_so_far(is_relevant), is_relevant & judged.within(cutoff)
    precision = so_far / judged.rank
    judged.column("precision", precision, "relevant_so_far / rank", where=counted, relevant_so_far=so_far)
    return judged.total("sum of precision", precision, "precision", where=counted)


def count_returned(judged: Judged, cutoff: int | None) -> Ints:
    """Count the returned documents among the first k: (T,)."""
    if cutoff is None:
        return judged.returned
    returned = np.minimum(judged.returned, cutoff)
    judged.step("returned", returned.astype(np.float64), f"documents in the first {cutoff}")
    return returned


def expand_to_hits(judged: Judged, values: Floats) -> Floats | float:
    """Repeat the number of each topic for its hits: (T,) to (H,). For a single topic, return the number itself.

    >>> from judged.scoring.judging import judge_list
    >>> expand_to_hits(judge_list([1, 0]), np.array([5.0]))
    5.0
    """
    return float(values[0]) if len(judged) == 1 else values[judged.topic]
