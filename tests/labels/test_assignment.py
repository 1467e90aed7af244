"""Tasks are shared out evenly, whatever is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.labels import assigned

PAIRS = [(f"q{at % 7}", f"d{at}") for at in range(90)]


@given(
    st.integers(1, 60), st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 5),
    st.integers(0, 9),
)  # fmt: skip
def test_whatever_is_asked_for(
    count: int, many: int, each: int, overlap: float, repeats: float, known: int, seed: int
) -> None:
    judges = [f"j{at}" for at in range(many)]
    each, gold = min(each, many), {("g", f"d{at}"): 1.0 for at in range(known)}
    tasks = assigned(PAIRS[:count], judges, each=each, overlap=overlap, repeats=repeats, gold=gold, seed=seed)
    assert len(set(tasks)) == len(tasks)
    first = [task for task in tasks if not task.repeat]
    seen: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for task in first:
        seen[task.query_id, task.doc_id].add(task.judge)
    assert set(seen) == {*PAIRS[:count], *gold}
    sizes = Counter(len(seen[pair]) for pair in PAIRS[:count])
    assert (
        sizes == Counter({each: count})
        if each == many
        else {each: count - round(overlap * count)}.get(each, 0) == (sizes[each])
    )
    assert all(len(seen[pair]) == many for pair in gold)
    load = Counter(task.judge for task in first)
    assert max(load.values()) - min(load[judge] for judge in judges) <= 1
    for judge in judges:
        own = [task[:2] for task in first if task.judge == judge and task.gold is None]
        again = [task[:2] for task in tasks if task.judge == judge and task.repeat]
        assert set(again) <= set(own)
        assert len(again) == (min(max(round(repeats * len(own)), 1), len(own)) if repeats else 0)
    assert {(task[:2], task.gold) for task in first if task.gold is not None} == set(gold.items())


def test_every_two_judges_share_about_as_many_pairs_and_every_topic_is_shared_out() -> None:
    judges = ["ann", "bob", "cy", "dan", "eve"]
    tasks = assigned(PAIRS, judges, each=2)
    seen: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    topics: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        seen[task.query_id, task.doc_id].append(task.judge)
        topics[task.query_id][task.judge] += 1
    shared = Counter(pair for names in seen.values() for pair in combinations(sorted(names), 2))
    assert len(shared) == 10
    assert max(shared.values()) - min(shared.values()) <= 4  # 90 pairs over 10 couples: 9 each
    for load in topics.values():
        assert max(load.values()) - min(load[judge] for judge in judges) <= 2


def test_the_seed_decides_and_the_order_given_does_not_count_twice() -> None:
    assert assigned(PAIRS, ["ann", "bob"], seed=3) == assigned([*PAIRS, *PAIRS], ["ann", "bob"], seed=3)
    assert assigned(PAIRS, ["ann", "bob"], seed=3) != assigned(PAIRS, ["ann", "bob"], seed=4)


def test_without_judges_tasks_are_everybodys() -> None:
    tasks = assigned(PAIRS, repeats=0.1)
    assert {task.judge for task in tasks} == {""}
    assert sum(task.repeat for task in tasks) == 9


@pytest.mark.parametrize(
    "options",
    [{"each": 3}, {"each": 0}, {"overlap": 1.5}, {"repeats": -0.1}, {"judges": ["ann", "ann"]}],
)
def test_what_cannot_be_shared_out_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        assigned(PAIRS, **{"judges": ["ann", "bob"], **options})  # type: ignore[arg-type]
    with pytest.raises(InputError):
        assigned([])
