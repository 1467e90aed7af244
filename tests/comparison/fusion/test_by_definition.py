"""Every algorithm, normalisation and policy against the definitions, document by document, with ties in the lists."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.comparison.fusion import ALGORITHMS, NORMALISATIONS, fuse
from judged.errors import InputError

LIST = st.dictionaries(st.sampled_from("stuvwxyz"), st.integers(0, 5).map(float), min_size=1)
RUNS = st.lists(st.dictionaries(st.sampled_from("pq"), LIST, min_size=1), min_size=2, max_size=4)


def normalised(scores: list[float], normalise: str) -> list[float]:
    """Give what a list with these scores, highest first, gives its documents."""
    n, low, high = len(scores), scores[-1], scores[0]
    if normalise == "none":
        return scores
    if normalise == "rank":
        return [1 - at / n for at in range(n)]
    if low == high:
        return [{"min-max": 1.0, "z-score": 0.0, "sum": 1 / n}[normalise]] * n
    mean = sum(scores) / n
    spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / n)
    above = sum(scores) - n * low
    how = {"min-max": (low, high - low), "z-score": (mean, spread), "sum": (low, above)}
    less, by = how[normalise]
    return [(score - less) / by for score in scores]


def by_definition(lists: list[dict[str, float]], weights: list[float], algorithm: str, **how: Any) -> dict[str, float]:
    """Fuse the lists of one topic."""
    pool = {doc for one in lists for doc in one}
    given: dict[str, list[float]] = {doc: [] for doc in pool}
    for one, weight in zip(lists, weights, strict=True):
        docs = sorted(one, key=lambda doc, one=one: (one[doc], doc), reverse=True)
        n = len(docs)
        lacking: float | None = None
        if algorithm in {"rrf", "borda"}:
            points = [1 / (how["rrf_k"] + rank) if algorithm == "rrf" else len(pool) + 1 - rank
                      for rank in range(1, n + 1)]  # fmt: skip
            if how["missing"] != "skip":
                rank = n + 1 if how["missing"] == "last" else (n + 1 + len(pool)) / 2
                lacking = 1 / (how["rrf_k"] + rank) if algorithm == "rrf" else len(pool) + 1 - rank
        else:
            points = normalised([one[doc] for doc in docs], how["normalise"]) if docs else []
            lacking = min(points) if docs and how["missing"] == "last" else None
        known = dict(zip(docs, points, strict=True))
        for doc in pool:
            got = known.get(doc, lacking)
            given[doc] += [] if got is None else [weight * got]
    if algorithm == "max":
        return {doc: max(points) for doc, points in given.items()}
    held = {doc: sum(doc in one for one in lists) if algorithm == "mnz" else 1 for doc in pool}
    return {doc: sum(points) * held[doc] for doc, points in given.items()}


@given(
    runs=RUNS,
    weights=st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=4, max_size=4),
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    normalise=st.sampled_from(sorted(NORMALISATIONS)),
    missing=st.sampled_from(["skip", "last", "share"]),
    rrf_k=st.sampled_from([0.5, 1, 60]),
)
def test_fused_scores_are_those_of_the_definition(
    runs: Any, weights: list[float], algorithm: str, normalise: str, missing: str, rrf_k: float
) -> None:
    how: dict[str, Any] = {"normalise": normalise, "missing": missing, "rrf_k": rrf_k}
    chosen = weights[: len(runs)]
    refused = (algorithm == "mnz" and normalise == "z-score") or (
        missing == "share" and algorithm not in {"rrf", "borda"}
    )
    if refused:
        with pytest.raises(InputError):
            fuse(dict(zip("abcd", runs, strict=False)), algorithm, weights=chosen, **how)
        return
    rows = fuse(dict(zip("abcd", runs, strict=False)), algorithm, weights=chosen, **how).table.to_pylist()
    for topic in {row["query_id"] for row in rows}:
        mine = {row["doc_id"]: row["score"] for row in rows if row["query_id"] == topic}
        assert mine == pytest.approx(by_definition([run.get(topic, {}) for run in runs], chosen, algorithm, **how))
        assert list(mine) == sorted(mine, key=lambda doc: (mine[doc], doc), reverse=True)
