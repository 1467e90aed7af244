"""Pools by depth, MaxMean, and samples against results by hand, and errors of `pool`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pooling import maxmean_order

from judged.errors import InputError
from judged.labels import pool
from judged.labels.pooling import Pool, allocate, assign_strata, candidates, draw

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNS = {
    "one": {"q1": ["a", "b", "c", "d"], "q2": ["x", "y"]},
    "two": {"q1": ["b", "e", "a", "f"], "q2": ["y", "z"]},
    "three": {"q1": ["g", "b"]},
}


def pairs(result: Pool) -> list[tuple[str, str]]:
    return list(zip(result.pairs["query_id"].to_pylist(), result.pairs["doc_id"].to_pylist(), strict=True))


def test_a_pool_by_depth_is_the_union_by_hand() -> None:
    result = pool(RUNS, depth=2)
    # q1: one returns a, b; two b, e; three g, b. q2: x, y and y, z. Ordered by best rank, then ID.
    assert pairs(result) == [("q1", "a"), ("q1", "b"), ("q1", "g"), ("q1", "e"), ("q2", "x"), ("q2", "y"), ("q2", "z")]
    assert result.pairs["best_rank"].to_pylist() == [1, 1, 1, 2, 1, 1, 2]
    assert result.pairs["runs"].to_pylist() == [1, 3, 1, 1, 1, 2, 1]
    assert set(result.pairs["probability"].to_pylist()) == {1.0}
    assert result.table("topics").records() == [
        {"query_id": "q1", "selected": 4, "size": 4},
        {"query_id": "q2", "selected": 3, "size": 3},
    ]


def test_queries_restrict_the_topics() -> None:
    assert pairs(pool(RUNS, depth=1, queries={"q2": "text"})) == [("q2", "x"), ("q2", "y")]


def test_maxmean_by_hand() -> None:
    """The first run returns a relevant document and is selected until its mean is below the other's."""
    runs = {"good": {"q": ["a", "b", "c", "d"]}, "bad": {"q": ["w", "x", "y", "z"]}}
    for seed in range(8):  # the seed decides which run is first
        (order,) = maxmean_order(runs, lambda _, doc: doc in "ac", retention=1.0, seed=seed)
        # good: a relevant, b not (mean 2/4), then c or w, as the means 1/2 are equal; bad: w not (mean 1/3).
        assert order.index("a") < order.index("b") < order.index("c")
        assert order.index("x") > order.index("d") or order.index("x") > order.index("c")
        assert sorted(order) == sorted("abcdwxyz")


def test_a_label_counts_for_all_runs_that_return_the_document() -> None:
    """After the relevant s, which first and second share, both have mean 2/3, and third has 1/2."""
    runs = {"first": {"q": ["s", "a"]}, "second": {"q": ["s", "b"]}, "third": {"q": ["t", "c"]}}
    labels = {"q": {"s": 1}}
    selected = {pairs(pool(runs, budget=2, qrels=labels, seed=seed))[0][1] for seed in range(20)}
    assert selected <= {"a", "b", "t"}  # t if third was selected first
    orders = Counter(tuple(maxmean_order(runs, lambda _, doc: doc == "s", seed=seed)[0][:2]) for seed in range(40))
    assert all(second in {"a", "b"} for first, second in orders if first == "s")


def test_retention_zero_uses_only_the_last_label() -> None:
    """After a relevant and a nonrelevant label the mean is 1/3 with retention 0 (the new run is next), else 1/2."""
    runs = {"good": {"q": ["a", "b", "c"]}, "new": {"q": ["w", "x"]}}
    third_docs = {
        retention: {
            order[2]
            for seed in range(40)
            if (order := maxmean_order(runs, lambda _, doc: doc == "a", retention=retention, seed=seed)[0])[:2]
            == ["a", "b"]
        }
        for retention in (0.0, 1.0)
    }
    assert third_docs == {0.0: {"w"}, 1.0: {"w", "c"}}


def test_repeated_pools_follow_the_order_of_the_simulation() -> None:
    """One document per round, labeled before the next round."""
    relevant = {"b", "e", "y"}
    orders = maxmean_order(RUNS, lambda _, doc: doc in relevant, depth=4, seed=3)
    labels: dict[str, dict[str, float]] = {}
    selected: dict[str, list[str]] = {"q1": [], "q2": []}
    for _ in range(sum(map(len, orders))):
        result = pool(RUNS, budget=99, depth=4, qrels=labels or None, seed=3)
        assert result.pairs["probability"].null_count == len(result)
        for topic, doc in pairs(result):
            selected[topic].append(doc)
            labels.setdefault(topic, {})[doc] = float(doc in relevant)
        if selected == {"q1": orders[0], "q2": orders[1]}:
            break
    assert list(selected.values()) == orders


def test_a_budget_limits_batches() -> None:
    assert len(pool(RUNS, budget=3, batch=5)) == 3
    assert len(pool(RUNS, budget=99, batch=2)) == 4
    with pytest.raises(InputError, match="the number of documents with a label"):
        pool(RUNS, budget=2, qrels={"q1": {"a": 1, "b": 0}})


def test_documents_are_sampled_with_their_inclusion_probability() -> None:
    random, times = np.random.default_rng(5), 4000
    runs = {"one": {"q": [f"d{i}" for i in range(40)]}}
    bands, stratum, sizes = assign_strata(candidates(runs, 40), (5, 20, 40))
    sample_sizes = allocate(13, sizes, np.array([4.0, 2.0, 1.0])[bands])
    assert (sizes.tolist(), int(sample_sizes.sum())) == ([5, 15, 20], 13)
    counts = np.zeros(40)
    for _ in range(times):
        rows = draw(stratum, sample_sizes, random)
        assert np.bincount(stratum[rows]).tolist() == sample_sizes.tolist()
        counts[rows] += 1
    probabilities = (sample_sizes / sizes)[stratum]
    assert np.abs(counts / times - probabilities).max() < 4.5 * np.sqrt(0.25 / times)


@pytest.mark.parametrize("count", [7, 10, 33, 60])
def test_allocations_add_up_to_the_sample_size(count: int) -> None:
    sizes = np.array([1, 4, 20, 35])
    allocated = allocate(count, sizes, np.array([4.0, 1.0, 2.0, 1.0]))
    assert allocated.sum() == count
    assert (allocated >= np.minimum(sizes, 2)).all()
    assert (allocated <= sizes).all()


def test_a_saved_pool_is_read_unchanged(tmp_path: Path) -> None:
    for result in (pool(RUNS, sample=8, strata=[1]), pool(RUNS, budget=4)):
        result.save(path := tmp_path / "pool.csv")
        assert Pool.read(path).pairs.equals(result.pairs)


def test_a_file_that_is_not_a_pool_raises(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("query_id,doc_id,stratum,probability,best_rank,runs\nq,d,1-5,1.5,1,1\n")
    (tmp_path / "other.csv").write_text("query_id,doc_id\nq,d\n")
    for name, problem in (
        ("bad.csv", "above 0 and at most 1"),
        ("other.csv", "not a pool"),
        ("none.csv", "not a pool"),
    ):
        with pytest.raises(InputError, match=problem):
            Pool.read(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"depth": 0}, "`depth` must be a positive integer, got 0"),
        ({"budget": 2, "sample": 2}, "cannot be combined"),
        ({"retention": 2, "budget": 2}, "`retention` must be from 0 to 1, got 2"),
        ({"sample": 3}, "at least .* documents"),
        ({"sample": 9, "strata": [3, 3]}, "must be increasing, got 3, 3"),
        ({"sample": 9, "rates": [1]}, "one positive number per stratum .3., got 1"),
    ],
)
def test_invalid_options_raise(options: Mapping[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        pool(RUNS, **options)  # type: ignore[arg-type]


def test_depth_ends_the_last_stratum() -> None:
    assert pool(RUNS, sample=99, depth=4, rates=[1]).pairs["stratum"].unique().to_pylist() == ["1-4"]


@pytest.mark.parametrize("rates", [[float("nan"), 1.0], [float("inf"), 1.0], [1e300, 1.0], [0.0, 1.0]])
def test_invalid_rates_raise(rates: list[float]) -> None:
    with pytest.raises(InputError, match="rates"):
        pool({"one": {"q": list("abcdefgh")}}, sample=5, strata=[2], rates=rates)
