"""Scores with any values, and slices of their topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged import evaluate
from judged.comparison.slicing.topic_slices import slice_topics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation import Scores


def scores_of(values: Mapping[str, Sequence[float] | np.ndarray], *measures: str) -> Scores:
    """Create scores from arrays of each run, of shape (T,), or (M, T) for several measures."""
    names = measures or ("nDCG@10",)
    tables = {
        run: np.asarray(run_scores, dtype=np.float64).reshape(len(names), -1) for run, run_scores in values.items()
    }
    topics = next(iter(tables.values())).shape[1]
    query_ids = [f"q{i:04}" for i in range(topics)]
    evaluation = evaluate(
        {query: {"d": 1} for query in query_ids}, {run: {q: ["d"] for q in query_ids} for run in tables}, names
    )
    return replace(evaluation, values=np.stack(list(tables.values())))


def slicing_of(groups: Sequence[str], min_topics: int = 10) -> Slicing:
    """Create one slice per name. Topics with the name ``""`` are in no slice."""
    attributes = {f"q{i:04}": ({"group": name} if name else {}) for i, name in enumerate(groups)}
    slicing = slice_topics(attributes, "group", min_topics=min_topics)
    return slicing.select([i for i, name in enumerate(slicing.names) if "missing" not in name])
