"""How far an aggregate could move, from how far the scores of its topics could."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.evaluation.facts import Reach
from judged.measures import aggregate, logarithms
from judged.uncertainty.range import weakest

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.evaluation.facts import TopicRanges
    from judged.measures.aggregates import Aggregate


def reach(ranges: TopicRanges, at: tuple[int, int], scores: Floats, kind: Aggregate) -> Reach:
    """Aggregate the ranges of one run and measure over its topics."""
    # A topic that the measure leaves out today (`undefined=skip`), but that would count with other grades, joins a mean
    # only where that moves the end further out.
    low, high = ranges.low[at], ranges.high[at]
    counts, joins = ~np.isnan(scores), np.isnan(scores) & ~np.isnan(low)
    low = np.where(np.isnan(low), scores, low)
    high = np.where(np.isnan(high), scores, high)
    return Reach(
        ranges.reason,
        aggregate(kind, np.append(low[counts], _joining(kind, low[counts], np.sort(low[joins]), 1.0))),
        aggregate(kind, np.append(high[counts], _joining(kind, high[counts], -np.sort(-high[joins]), -1.0))),
        weakest(ranges.kind[at][counts | joins]),
        float(ranges.judged[at]),
    )


def _joining(kind: Aggregate, here: Floats, others: Floats, sign: float) -> Floats:
    """Choose the topics, in this order, that move the mean of those here further; all for a sum that they move.

    >>> _joining("mean", np.array([1.0, 0.5]), np.array([0.2, 0.6, 0.9]), 1.0).tolist()
    [0.2]
    """
    if kind in {"sum", "count"}:
        return others[sign * others < 0]
    found = 0
    worth, all_worth = (logarithms(part) if kind == "geometric mean" else part for part in (others, here))
    total, count = float(all_worth.sum()), len(all_worth)
    for value in worth.tolist():
        mean = total / count if count else math.inf * sign
        if sign * value >= sign * mean:
            break
        total, count, found = total + value, count + 1, found + 1
    return others[:found]
