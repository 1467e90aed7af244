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
    """Make scores: of each run, (T,), or (M, T) for several measures."""
    names = measures or ("nDCG@10",)
    tables = {run: np.asarray(one, dtype=np.float64).reshape(len(names), -1) for run, one in values.items()}
    topics = next(iter(tables.values())).shape[1]
    query_ids = [f"q{at:04}" for at in range(topics)]
    made = evaluate(
        {query: {"d": 1} for query in query_ids}, {run: {q: ["d"] for q in query_ids} for run in tables}, names
    )
    return replace(made, values=np.stack(list(tables.values())))


def slicing_of(groups: Sequence[str], min_topics: int = 10) -> Slicing:
    """Make one slice of each name; ``""``: the topic is in none."""
    known = {f"q{at:04}": ({"group": name} if name else {}) for at, name in enumerate(groups)}
    found = slice_topics(known, "group", min_topics=min_topics)
    return found.select([at for at, name in enumerate(found.names) if "missing" not in name])
