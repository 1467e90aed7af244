"""Squares: what is promised to be balanced, by counting everything."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import pytest

from judged.errors import InputError
from judged.studies.assignment import assignments, balance, block_sizes, side_by_side, trials, williams
from judged.studies.design import Group, Task
from studies.study_designs import make_design

SHAPES = [(2, 2), (2, 4), (2, 6), (3, 3), (3, 6), (4, 8), (5, 5)]
ORDERS = pytest.mark.parametrize("order", ["mixed", "blocked"])


def uneven(systems: int, topics: int, participants: int, **more: Any) -> dict[str, tuple[int, int]]:
    """Give what does not come equally often."""
    design = make_design(systems, topics, groups=(Group("", participants),), **more)
    counted = balance(design, assignments(design))
    return {row.kind: (row.min_count, row.max_count) for row in counted if row.min_count != row.max_count}


@pytest.mark.parametrize("n", range(1, 10))
def test_williams_squares(n: int) -> None:
    rows = williams(n)
    places = Counter((i, value) for row in rows for i, value in enumerate(row))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert all(sorted(row) == list(range(n)) for row in rows)
    assert len(places) == n * n
    assert len(set(places.values())) == 1
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) <= 1


@ORDERS
@pytest.mark.parametrize(("systems", "topics"), SHAPES)
def test_everything_is_balanced_over_a_whole_block(systems: int, topics: int, order: str) -> None:
    for_systems, for_all = block_sizes(make_design(systems, topics))
    assert uneven(systems, topics, for_all, order=order, seed=3) == {}
    assert uneven(systems, topics, 2 * for_all, order=order, practice=2) == {}
    assert uneven(systems, topics, for_systems, order=order, seed=3).keys() == {"positions"}


@ORDERS
def test_variants_crossed_with_systems_or_between_people(order: str) -> None:
    assert uneven(2, 8, 32, interfaces=2, order=order) == {}
    assert uneven(2, 4, 24, interfaces=3, order=order, variants="between") == {}
    between = make_design(1, 3, interfaces=2, variants="between", order=order)
    assert block_sizes(between) == (2, 6)
    assert uneven(1, 3, 6, interfaces=2, order=order, variants="between") == {}
    people = assignments(between).group_by("participant").aggregate([("variant", "count_distinct")])
    assert people["variant_count_distinct"].to_pylist() == [1] * 12


@ORDERS
def test_topics_that_are_no_multiple_of_the_systems(order: str) -> None:
    """Each topic still meets each system equally often; but not each person, and in mixed order followers differ."""
    unbalanced = uneven(4, 6, 24, order=order)
    assert unbalanced.keys() == ({"persons"} if order == "blocked" else {"persons", "followers"})
    assert unbalanced["persons"] == (1, 2)


def test_one_more_participant_changes_nothing_for_those_before() -> None:
    design = make_design(3, 6, practice=1, groups=(Group("novice", 3), Group("expert", 2)))
    came = {"a": "novice", "b": "expert", "c": "novice"}
    before, after = assignments(design, came), assignments(design, came | {"d": "expert"})
    assert after.slice(0, before.num_rows).equals(before)
    both = after.to_pandas().set_index("participant").drop(columns="group")
    assert both.loc["a"].equals(both.loc["a"])
    assert both.loc["a"].to_dict("list") == both.loc["b"].to_dict("list")  # both are the first of their group
    assert assignments(design).num_rows == 5 * 7
    with pytest.raises(InputError, match="write novice"):
        assignments(design, {"a": "novise"})


def test_each_does_each_topic_once_after_practice() -> None:
    design = make_design(2, 4, practice=2, order="blocked")
    for number in range(20):
        done = trials(design, number)
        assert [row.position for row in done] == [1, 2, 3, 4, 5, 6]
        assert [row.practice for row in done] == [True] * 2 + [False] * 4
        assert {row.system for row in done[:2]} == {"s0", "s1"}  # both are practiced
        assert sorted(row.query_id for row in done[2:]) == ["t0", "t1", "t2", "t3"]
        assert [row.system for row in done[2:]] in (["s0", "s0", "s1", "s1"], ["s1", "s1", "s0", "s0"])


def test_the_seed_decides_and_mixed_order_is_abba() -> None:
    assert trials(make_design(2, 6, seed=1), 0) == trials(make_design(2, 6, seed=1), 0)
    orders = {tuple(trial.query_id for trial in trials(make_design(2, 6, seed=seed), 0)) for seed in range(20)}
    assert len(orders) > 15
    letters = {"".join(trial.system[1] for trial in trials(make_design(2, 6), number)) for number in range(12)}
    assert letters == {"011001", "100110"}


@pytest.mark.parametrize("systems", [2, 3, 4])
def test_pairs_side_by_side_change_sides_and_topics(systems: int) -> None:
    design = make_design(systems, 6, preference=tuple(Task(topic, "", "", 0, 0) for topic in ("t0", "t1", "t2")))
    pairs = systems * (systems - 1) // 2
    counts = Counter(row for number in range(2 * pairs) for row in side_by_side(design, number))
    assert len(counts) == 3 * 2 * pairs
    assert set(counts.values()) == {1}
    assert {row.query_id for row in side_by_side(design, 5)} == {"t0", "t1", "t2"}


@ORDERS
@pytest.mark.parametrize(("systems", "topics"), [(2, 6), (2, 8), (3, 6), (3, 9), (4, 8)])
def test_any_two_topics_share_a_system_in_some_people_and_not_in_others(systems: int, topics: int, order: str) -> None:
    """If not, what is special of some topics would be taken for what is special of people."""
    design = make_design(systems, topics, order=order)
    people = block_sizes(design)[1]
    shared = Counter[frozenset[str]]()
    for number in range(people):
        done = trials(design, number)
        shared.update(
            frozenset((row.query_id, other.query_id))
            for row, other in combinations(done, 2)
            if row.system == other.system
        )
    assert len(shared) >= 0.75 * topics * (topics - 1) / 2
    assert max(shared.values()) <= 0.8 * people
