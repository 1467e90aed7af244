"""How the scores of topics become one number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats

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
