"""Means over topics of what is said of single documents, and the documents of slices of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import spread
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged._types import Bools, Floats, Ints
    from judged.comparison.slicing.topic_slices import Slicing


def topic_means(values: Floats, topic: Ints) -> Floats:
    """Average over each topic that has some: (P,) and the topics' codes, (P,), to (T,).

    >>> topic_means(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 3])).tolist()
    [1.5, 5.0]
    """
    counts = np.bincount(topic)
    return np.bincount(topic, weights=values)[counts > 0] / counts[counts > 0]


def topic_interval(means: Floats, level: float) -> tuple[float, float] | None:
    """Return Student's interval of the mean over topics; None where topics are too few or do not vary."""
    if insufficiency(len(means), variance=spread(means)):
        return None
    low, high = mean_intervals(means[None], IntervalMethod("t", level))[0].tolist()
    return low, high


def of_slices(slicing: Slicing, query_ids: Sequence[str], topic: Ints) -> Iterator[tuple[str, Bools]]:
    """Mark the pairs of each slice that has some, by its name: the topics' codes are places in `query_ids`; (P,)."""
    for name, members in zip(slicing.names, slicing.members, strict=True):
        inside = {query_id for query_id, chosen in zip(slicing.query_ids, members.tolist(), strict=True) if chosen}
        rows = np.array([query_id in inside for query_id in query_ids], dtype=np.bool_)[topic]
        if rows.any():
            yield name, rows
