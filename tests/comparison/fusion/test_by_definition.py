"""All algorithms, normalizations, and policies against their definitions, with ties in the lists."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.comparison.fusion import ALGORITHMS, NORMALIZATIONS, fuse
from judged.errors import InputError

LIST = st.dictionaries(st.sampled_from("stuvwxyz"), st.integers(0, 5).map(float), min_size=1)
RUNS = st.lists(st.dictionaries(st.sampled_from("pq"), LIST, min_size=1), min_size=2, max_size=4)


def normalize(scores: list[float], normalize: str) -> list[float]:
    """Normalize the scores of one list, highest first."""
    n, low, high = len(scores), scores[-1], scores[0]
    if normalize == "none":
        return scores
    if normalize == "rank":
        return [1 - i / n for i in range(n)]
    if low == high:
        return [{"min-max": 1.0, "z-score": 0.0, "sum": 1 / n}[normalize]] * n
    mean = sum(scores) / n
    spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / n)
    above = sum(scores) - n * low
    how = {"min-max": (low, high - low), "z-score": (mean, spread), "sum": (low, above)}
    less, by = how[normalize]
    return [(score - less) / by for score in scores]


def by_definition(
    lists: list[dict[str, float]], weights: list[float], algorithm: str, **options: Any
) -> dict[str, float]:
    """Fuse the lists of one topic."""
    pool = {doc for ranking in lists for doc in ranking}
    points_by_doc: dict[str, list[float]] = {doc: [] for doc in pool}
    for ranking, weight in zip(lists, weights, strict=True):
        docs = sorted(ranking, key=lambda doc, ranking=ranking: (ranking[doc], doc), reverse=True)
        n = len(docs)
        missing_points: float | None = None
        if algorithm in {"rrf", "borda"}:
            points = [1 / (options["rrf_k"] + rank) if algorithm == "rrf" else len(pool) + 1 - rank
                      for rank in range(1, n + 1)]  # fmt: skip
            if options["missing"] != "skip":
                rank = n + 1 if options["missing"] == "last" else (n + 1 + len(pool)) / 2
                missing_points = 1 / (options["rrf_k"] + rank) if algorithm == "rrf" else len(pool) + 1 - rank
        else:
            points = normalize([ranking[doc] for doc in docs], options["normalize"]) if docs else []
            missing_points = min(points) if docs and options["missing"] == "last" else None
        doc_points = dict(zip(docs, points, strict=True))
        for doc in pool:
            contribution = doc_points.get(doc, missing_points)
            points_by_doc[doc] += [] if contribution is None else [weight * contribution]
    if algorithm == "max":
        return {doc: max(points) for doc, points in points_by_doc.items()}
    list_counts = {doc: sum(doc in ranking for ranking in lists) if algorithm == "mnz" else 1 for doc in pool}
    return {doc: sum(points) * list_counts[doc] for doc, points in points_by_doc.items()}


@given(
    runs=RUNS,
    weights=st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=4, max_size=4),
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    normalize=st.sampled_from(sorted(NORMALIZATIONS)),
    missing=st.sampled_from(["skip", "last", "share"]),
    rrf_k=st.sampled_from([0.5, 1, 60]),
)
def test_fused_scores_are_those_of_the_definition(
    runs: Any, weights: list[float], algorithm: str, normalize: str, missing: str, rrf_k: float
) -> None:
    options: dict[str, Any] = {"normalize": normalize, "missing": missing, "rrf_k": rrf_k}
    list_weights = weights[: len(runs)]
    is_invalid = (algorithm == "mnz" and normalize == "z-score") or (
        missing == "share" and algorithm not in {"rrf", "borda"}
    )
    if is_invalid:
        with pytest.raises(InputError):
            fuse(dict(zip("abcd", runs, strict=False)), algorithm, weights=list_weights, **options)
        return
    rows = fuse(dict(zip("abcd", runs, strict=False)), algorithm, weights=list_weights, **options).table.to_pylist()
    for topic in {row["query_id"] for row in rows}:
        fused = {row["doc_id"]: row["score"] for row in rows if row["query_id"] == topic}
        assert fused == pytest.approx(
            by_definition([run.get(topic, {}) for run in runs], list_weights, algorithm, **options)
        )
        assert list(fused) == sorted(fused, key=lambda doc: (fused[doc], doc), reverse=True)
