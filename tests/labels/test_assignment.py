"""Even assignment of tasks, for random options."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.labels import assign_tasks

PAIRS = [(f"q{i % 7}", f"d{i}") for i in range(90)]


@given(
    st.integers(1, 60), st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 5),
    st.integers(0, 9),
)  # fmt: skip
def test_properties_of_assignments(
    count: int, judge_count: int, each: int, overlap: float, repeats: float, gold_count: int, seed: int
) -> None:
    judges = [f"j{i}" for i in range(judge_count)]
    each, gold = min(each, judge_count), {("g", f"d{i}"): 1.0 for i in range(gold_count)}
    tasks = assign_tasks(PAIRS[:count], judges, each=each, overlap=overlap, repeats=repeats, gold=gold, seed=seed)
    assert len(set(tasks)) == len(tasks)
    first = [task for task in tasks if not task.repeat]
    judges_of_pair: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for task in first:
        judges_of_pair[task.query_id, task.doc_id].add(task.judge)
    assert set(judges_of_pair) == {*PAIRS[:count], *gold}
    sizes = Counter(len(judges_of_pair[pair]) for pair in PAIRS[:count])
    assert (
        sizes == Counter({each: count})
        if each == judge_count
        else {each: count - round(overlap * count)}.get(each, 0) == (sizes[each])
    )
    assert all(len(judges_of_pair[pair]) == judge_count for pair in gold)
    load = Counter(task.judge for task in first)
    assert max(load.values()) - min(load[judge] for judge in judges) <= 1
    for judge in judges:
        pairs = [task[:2] for task in first if task.judge == judge and task.gold is None]
        repeated = [task[:2] for task in tasks if task.judge == judge and task.repeat]
        assert set(repeated) <= set(pairs)
        assert len(repeated) == (min(max(round(repeats * len(pairs)), 1), len(pairs)) if repeats else 0)
    assert {(task[:2], task.gold) for task in first if task.gold is not None} == set(gold.items())


def test_judges_share_pairs_and_topics_evenly() -> None:
    judges = ["ann", "bob", "cy", "dan", "eve"]
    tasks = assign_tasks(PAIRS, judges, each=2)
    judges_of_pair: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    topics: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        judges_of_pair[task.query_id, task.doc_id].append(task.judge)
        topics[task.query_id][task.judge] += 1
    shared = Counter(pair for names in judges_of_pair.values() for pair in combinations(sorted(names), 2))
    assert len(shared) == 10
    assert max(shared.values()) - min(shared.values()) <= 4  # 90 pairs, 10 pairs of judges: 9 on average
    for load in topics.values():
        assert max(load.values()) - min(load[judge] for judge in judges) <= 2


def test_assignments_depend_on_the_seed_and_not_on_duplicates() -> None:
    assert assign_tasks(PAIRS, ["ann", "bob"], seed=3) == assign_tasks([*PAIRS, *PAIRS], ["ann", "bob"], seed=3)
    assert assign_tasks(PAIRS, ["ann", "bob"], seed=3) != assign_tasks(PAIRS, ["ann", "bob"], seed=4)


def test_without_judges_tasks_are_open_to_all() -> None:
    tasks = assign_tasks(PAIRS, repeats=0.1)
    assert {task.judge for task in tasks} == {""}
    assert sum(task.repeat for task in tasks) == 9


@pytest.mark.parametrize(
    "options", [{"each": 3}, {"each": 0}, {"overlap": 1.5}, {"repeats": -0.1}, {"judges": ["ann", "ann"]}]
)
def test_invalid_options_raise(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        assign_tasks(PAIRS, **{"judges": ["ann", "bob"], **options})  # type: ignore[arg-type]
    with pytest.raises(InputError):
        assign_tasks([])
