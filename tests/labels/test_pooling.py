"""Pools equal hand-made ones; MaxMean follows its rule, and finds more than depth does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pooling import maxmean_order

from judged.errors import InputError
from judged.labels import pool
from judged.labels.pooling import Pool, allocated, candidates, draw, strata_of

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNS = {
    "one": {"q1": ["a", "b", "c", "d"], "q2": ["x", "y"]},
    "two": {"q1": ["b", "e", "a", "f"], "q2": ["y", "z"]},
    "three": {"q1": ["g", "b"]},
}


def pairs(made: Pool) -> list[tuple[str, str]]:
    return list(zip(made.pairs["query_id"].to_pylist(), made.pairs["doc_id"].to_pylist(), strict=True))


def test_a_pool_by_depth_is_the_union_made_by_hand() -> None:
    made = pool(RUNS, depth=2)
    # q1: one has a, b; two b, e; three g, b. q2: x, y and y, z. By best rank, then by id.
    assert pairs(made) == [("q1", "a"), ("q1", "b"), ("q1", "g"), ("q1", "e"), ("q2", "x"), ("q2", "y"), ("q2", "z")]
    assert made.pairs["best_rank"].to_pylist() == [1, 1, 1, 2, 1, 1, 2]
    assert made.pairs["runs"].to_pylist() == [1, 3, 1, 1, 1, 2, 1]
    assert set(made.pairs["probability"].to_pylist()) == {1.0}
    assert made.table("topics").records() == [
        {"query_id": "q1", "drawn": 4, "of": 4},
        {"query_id": "q2", "drawn": 3, "of": 3},
    ]


def test_only_topics_that_are_asked_for_are_pooled() -> None:
    assert pairs(pool(RUNS, depth=1, queries={"q2": "text"})) == [("q2", "x"), ("q2", "y")]


def test_maxmean_by_hand() -> None:
    """Two runs: the first gives a relevant document, and is followed until its mean falls below the other's."""
    runs = {"good": {"q": ["a", "b", "c", "d"]}, "bad": {"q": ["w", "x", "y", "z"]}}
    for seed in range(8):  # which run comes first is left to chance
        (order,) = maxmean_order(runs, lambda _, doc: doc in "ac", retention=1.0, seed=seed)
        # good: a +, b - (mean 2/4), c + or w first where the means 1/2 are equal; bad: w - (mean 1/3) and left.
        assert order.index("a") < order.index("b") < order.index("c")
        assert order.index("x") > order.index("d") or order.index("x") > order.index("c")
        assert sorted(order) == sorted("abcdwxyz")


def test_one_label_counts_for_every_run_that_has_the_document() -> None:
    """After s, which first and second share, is relevant, both stand at 2/3, and third stays at 1/2."""
    runs = {"first": {"q": ["s", "a"]}, "second": {"q": ["s", "b"]}, "third": {"q": ["t", "c"]}}
    labels = {"q": {"s": 1}}
    asked = {pairs(pool(runs, budget=2, qrels=labels, seed=seed))[0][1] for seed in range(20)}
    assert asked <= {"a", "b", "t"}  # t where third was tried first
    followed = Counter(tuple(maxmean_order(runs, lambda _, doc: doc == "s", seed=seed)[0][:2]) for seed in range(40))
    assert all(second in {"a", "b"} for first, second in followed if first == "s")


def test_memory_zero_knows_the_last_label_alone() -> None:
    """After + - the mean is 1/3 with retention 0, so that an untried run comes next; 1/2 with retention 1."""
    runs = {"good": {"q": ["a", "b", "c"]}, "new": {"q": ["w", "x"]}}
    third = {
        retention: {
            order[2]
            for seed in range(40)
            if (order := maxmean_order(runs, lambda _, doc: doc == "a", retention=retention, seed=seed)[0])[:2]
            == ["a", "b"]
        }
        for retention in (0.0, 1.0)
    }
    assert third == {0.0: {"w"}, 1.0: {"w", "c"}}


def test_rounds_of_a_budget_follow_the_order_where_all_is_known() -> None:
    """Asked one by one, with the label of each before the next, it is the same order."""
    relevant = {"b", "e", "y"}
    orders = maxmean_order(RUNS, lambda _, doc: doc in relevant, depth=4, seed=3)
    labels: dict[str, dict[str, float]] = {}
    asked: dict[str, list[str]] = {"q1": [], "q2": []}
    for _ in range(sum(map(len, orders))):
        made = pool(RUNS, budget=99, depth=4, qrels=labels or None, seed=3)
        assert made.pairs["probability"].null_count == len(made)
        for topic, doc in pairs(made):
            asked[topic].append(doc)
            labels.setdefault(topic, {})[doc] = float(doc in relevant)
        if asked == {"q1": orders[0], "q2": orders[1]}:
            break
    assert list(asked.values()) == orders


def test_a_budget_is_never_passed_and_batches_divide_it() -> None:
    assert len(pool(RUNS, budget=3, batch=5)) == 3
    assert len(pool(RUNS, budget=99, batch=2)) == 4
    with pytest.raises(InputError, match="is spent"):
        pool(RUNS, budget=2, qrels={"q1": {"a": 1, "b": 0}})


def test_each_document_comes_into_samples_as_often_as_its_probability_says() -> None:
    random, times = np.random.default_rng(5), 4000
    runs = {"one": {"q": [f"d{at}" for at in range(40)]}}
    bands, stratum, sizes = strata_of(candidates(runs, 40), (5, 20, 40))
    drawn = allocated(13, sizes, np.array([4.0, 2.0, 1.0])[bands])
    assert (sizes.tolist(), int(drawn.sum())) == ([5, 15, 20], 13)
    counts = np.zeros(40)
    for _ in range(times):
        rows = draw(stratum, drawn, random)
        assert np.bincount(stratum[rows]).tolist() == drawn.tolist()
        counts[rows] += 1
    odds = (drawn / sizes)[stratum]
    assert np.abs(counts / times - odds).max() < 4.5 * np.sqrt(0.25 / times)


@pytest.mark.parametrize("count", [7, 10, 33, 60])
def test_a_sample_is_divided_exactly(count: int) -> None:
    sizes = np.array([1, 4, 20, 35])
    drawn = allocated(count, sizes, np.array([4.0, 1.0, 2.0, 1.0]))
    assert drawn.sum() == count
    assert (drawn >= np.minimum(sizes, 2)).all()
    assert (drawn <= sizes).all()


def test_a_saved_pool_is_read_as_it_was(tmp_path: Path) -> None:
    for made in (pool(RUNS, sample=8, strata=[1]), pool(RUNS, budget=4)):
        made.save(path := tmp_path / "pool.csv")
        assert Pool.read(path).pairs.equals(made.pairs)


def test_a_file_that_is_no_pool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("query_id,doc_id,stratum,probability,best_rank,runs\nq,d,1-5,1.5,1,1\n")
    (tmp_path / "other.csv").write_text("query_id,doc_id\nq,d\n")
    for name, problem in (("bad.csv", "not above 0 and up to 1"), ("other.csv", "no pool"), ("none.csv", "no pool")):
        with pytest.raises(InputError, match=problem):
            Pool.read(tmp_path / name)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"depth": 0}, "depth 0"),
        ({"budget": 2, "sample": 2}, "two ways"),
        ({"retention": 2, "budget": 2}, "retention 2"),
        ({"sample": 3}, "too small"),
        ({"sample": 9, "strata": [3, 3]}, "do not rise"),
        ({"sample": 9, "rates": [1]}, "1 rates for 3"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Mapping[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        pool(RUNS, **given)  # type: ignore[arg-type]


def test_strata_below_the_depth_are_one() -> None:
    assert pool(RUNS, sample=99, depth=4, rates=[1]).pairs["stratum"].unique().to_pylist() == ["1-4"]


@pytest.mark.parametrize("rates", [[float("nan"), 1.0], [float("inf"), 1.0], [1e300, 1.0], [0.0, 1.0]])
def test_rates_that_no_sample_can_follow_are_refused(rates: list[float]) -> None:
    with pytest.raises(InputError, match="rates"):
        pool({"one": {"q": list("abcdefgh")}}, sample=5, strata=[2], rates=rates)
