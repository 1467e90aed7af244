"""Orders of systems and topics by the rules that are written down for them, participant by participant; and lists."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from judged.errors import InputError
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.studies import records as lists
from judged.studies.assignment import (
    ASSIGNMENTS,
    Balance,
    SideBySide,
    assignments,
    balance,
    block_sizes,
    side_by_side,
    trials,
    williams,
)
from judged.studies.design import Design, Group, StudySystem, Task
from studies.study_designs import make_design

if TYPE_CHECKING:
    from pathlib import Path

SQUARE_4 = ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))  # Williams 1949: 1 2 4 3, and each one further


def test_squares_of_one_to_five() -> None:
    assert [len(williams(n)) for n in (1, 2, 3, 4, 5)] == [1, 2, 6, 4, 10]
    assert williams(1) == ((0,),)
    assert williams(2) == ((0, 1), (1, 0))
    assert williams(3) == ((0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 0, 2))
    assert williams(4) == SQUARE_4


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        (make_design(2, 5), (2, 10)),
        (make_design(3, 5), (6, 30)),
        (make_design(2, 6, interfaces=2), (4, 24)),
        (make_design(2, 5, interfaces=3, variants="between"), (6, 30)),
        (make_design(1, 5, interfaces=3, variants="between"), (3, 15)),
        (make_design(1, 5, interfaces=2), (2, 10)),
    ],
)
def test_how_many_people_it_takes(design: Design, expected: tuple[int, int]) -> None:
    assert block_sizes(design) == expected


def orders(design: Design, people: int) -> list[tuple[list[int], list[int]]]:
    """Give of each person the topics as numbers, and the systems as numbers, without practice."""
    done = [[row for row in trials(design, number) if not row.practice] for number in range(people)]
    return [
        ([int(row.query_id[1:]) for row in participant_trials], [int(row.system[1:]) for row in participant_trials])
        for participant_trials in done
    ]


def turned(order: list[int], count: int) -> list[int]:
    """Give an order of topics without where it began: the first is 0."""
    return [(topic - order[0]) % count for topic in order]


@pytest.mark.parametrize(("systems", "topics", "order"), [(2, 6, "mixed"), (2, 6, "blocked"), (4, 8, "mixed")])
def test_topics_move_on_from_block_to_block(systems: int, topics: int, order: Any) -> None:
    design = make_design(systems, topics, order=order, seed=5)
    size = len(williams(systems))
    participant_orders = orders(design, 2 * size * topics)
    by_block = [
        [topics_of for topics_of, _ in participant_orders[i : i + size]]
        for i in range(0, len(participant_orders), size)
    ]
    assert all(topic_order == block[0] for block in by_block for topic_order in block)  # one order in a block
    for turn in (by_block[:topics], by_block[topics:]):
        assert len({tuple(turned(block[0], topics)) for block in turn}) == 1
        assert sorted(block[0][0] for block in turn) == list(range(topics))
    assert turned(by_block[0][0], topics) != turned(by_block[topics][0], topics)  # then another order begins
    assert [block[0][0] for block in by_block[:topics]] != list(range(topics))  # where it begins is drawn


@pytest.mark.parametrize("order", ["mixed", "blocked"])
@pytest.mark.parametrize(("systems", "topics"), [(2, 6), (3, 7), (4, 8), (4, 6)])
def test_systems_follow_the_rows_of_the_square(systems: int, topics: int, order: Any) -> None:
    """Blocked: each system of a row as often, the first ones once more. Mixed: a row, then that from its last on."""
    design = make_design(systems, topics, order=order, seed=1)
    size = len(williams(systems))
    participant_orders = orders(design, 3 * size)
    names = {}
    for i in range(0, len(participant_orders), size):
        firsts = set()
        for _, codes in participant_orders[i : i + size]:
            if order == "blocked":
                changes = [codes[0], *(new for old, new in pairwise(codes) if new != old)]
                counts = [codes.count(system) for system in changes]
                assert len(changes) == systems
                assert counts == [topics // systems + (place < topics % systems) for place in range(systems)]
                firsts.add(tuple(changes))
            else:
                assert sorted(codes[:systems]) == list(range(systems))
                assert codes[systems] == codes[systems - 1]  # ABBA
                firsts.add(tuple(codes[:systems]))
        assert len(firsts) == size  # each row of the square once
        names[i] = firsts
    assert len({frozenset(rows) for rows in names.values()}) == 1
    # rows stand in another order in each block
    blocks = [
        tuple(tuple(codes) for _, codes in participant_orders[i : i + size])
        for i in range(0, len(participant_orders), size)
    ]
    assert systems == 2 or len(set(blocks)) > 1


def test_a_mixed_order_of_four_goes_on_with_what_it_ended_with() -> None:
    """1 2 4 3, then 3 4 2 1 one further by what first and last are apart, and so on: no system follows another more."""
    design = make_design(4, 16, seed=2)
    for _, codes in orders(design, 4):
        rows = [codes[i : i + 4] for i in (0, 4, 8, 12)]
        assert all(sorted(row) == [0, 1, 2, 3] for row in rows)
        assert all(later[0] == row[-1] for row, later in pairwise(rows))
    steps = Counter(pair for _, codes in orders(design, 4) for pair in pairwise(codes)
                    if pair[0] != pair[1])  # fmt: skip
    assert len(steps) == 12
    assert max(steps.values()) == min(steps.values())


def unevenness(order: list[int], codes: list[int]) -> int:
    """Count how often two topics so far apart share a condition, and add the squares: even counts are the least."""
    distance_counts = [0] * len(codes)
    for row, other in product(range(len(codes)), repeat=2):
        if row != other and codes[row] == codes[other]:
            distance_counts[(order[row] - order[other]) % len(codes)] += 1
    return sum(times * times for times in distance_counts)


@pytest.mark.parametrize(("systems", "topics"), [(2, 8), (3, 9), (2, 10)])
def test_the_order_of_topics_is_the_most_even_of_fifty(systems: int, topics: int) -> None:
    """Fifty are shuffled by Python's generator, each with a seed of its own; the first of the best is taken."""
    for seed in range(6):
        design = make_design(systems, topics, seed=seed)
        usual = [i % systems if i // systems % 2 == 0 else systems - 1 - i % systems for i in range(topics)]
        if systems == 3:  # 0 1 2, then from 2 on: 2 0 1, then 1 2 0
            usual = [0, 1, 2, 2, 0, 1, 1, 2, 0]
        tried = []
        for i in range(50):
            order = list(range(topics))
            random.Random(f"{seed} 0 topics {i}").shuffle(order)  # noqa: S311
            tried.append(order)
        best = min(tried, key=lambda order: unevenness(order, usual))
        (topic_order, _), *_ = orders(design, 1)
        assert turned(topic_order, topics) == turned(best, topics)


def test_practice_meets_the_systems_as_they_will_come() -> None:
    design = make_design(2, 4, practice=3, seed=3)
    for number in range(8):
        assigned = trials(design, number)
        assert [(row.position, row.practice) for row in assigned] == [(i, i <= 3) for i in range(1, 8)]
        assert [row.query_id for row in assigned[:3]] == ["t4", "t5", "t6"]
        first, second = assigned[3].system, assigned[4].system
        assert [row.system for row in assigned[:3]] == [first, second, first]
        assert {row.variant for row in assigned} == {""}


def test_variants_between_people_alternate() -> None:
    """Three variants and two systems: three people in turn have one row, and the next three the other one."""
    design = make_design(2, 4, practice=1, interfaces=3, variants="between", seed=1)
    rows = [trials(design, number) for number in range(12)]
    assert [{row.variant for row in participant_trials} for participant_trials in rows] == [
        {f"v{number % 3}"} for number in range(12)
    ]
    systems = [[row.system for row in participant_trials] for participant_trials in rows]
    topics = [[row.query_id for row in participant_trials] for participant_trials in rows]
    for i in (0, 3, 6, 9):
        assert systems[i] == systems[i + 1] == systems[i + 2]
        assert topics[i] == topics[i + 1] == topics[i + 2]
    assert systems[0] != systems[3]
    assert topics[0] == topics[3] != topics[6] == topics[9]
    crossed = trials(make_design(1, 4, interfaces=2, seed=1), 0)
    assert {row.variant for row in crossed} == {"v0", "v1"}


def test_conditions_of_another_seed_stand_for_other_numbers() -> None:
    first = {trials(make_design(4, 4, seed=seed), 0)[0].system for seed in range(12)}
    assert len(first) > 2
    topics = {trials(make_design(2, 8, seed=seed), 0)[0].query_id for seed in range(12)}
    assert len(topics) > 3


def test_the_table_of_assignments() -> None:
    design = make_design(2, 2, practice=1, groups=(Group("g", 2), Group("h", 1)))
    table = assignments(design)
    assert table.schema == ASSIGNMENTS
    rows = table.to_pylist()
    assert [(row["participant"], row["group"], row["position"]) for row in rows] == [
        (participant, group, i) for participant, group in (("p1", "g"), ("p2", "g"), ("p3", "h")) for i in (1, 2, 3)
    ]
    expected_rows = [{"participant": "x", "group": "g", **trial._asdict()} for trial in trials(design, 0)]
    assert assignments(design, {"x": "g"}).to_pylist() == expected_rows
    assert assignments(design, {}).num_rows == 0
    with pytest.raises(InputError, match="the group of x must be in the design, got 'k'"):
        assignments(design, {"x": "k"})


def rows_of(*fields: tuple[str, str, str, int, bool]) -> pa.Table:
    names = ("participant", "query_id", "system", "position", "practice")
    return pa.Table.from_pylist([{"group": "", "variant": "", **dict(zip(names, row, strict=True))} for row in fields],
                                schema=ASSIGNMENTS)  # fmt: skip


def test_balance_is_counted_by_hand() -> None:
    """p: t0 a, t1 b; q: t0 a, t1 a; one more of practice does not count."""
    design = make_design(2, 2)
    table = rows_of(("p", "t9", "s1", 1, True), ("p", "t0", "s0", 2, False), ("p", "t1", "s1", 3, False),
                    ("q", "t0", "s0", 2, False), ("q", "t1", "s0", 3, False))  # fmt: skip
    assert balance(design, table) == (
        Balance("systems", 0, 2),  # at 2: a twice, b never; at 3: a and b once
        Balance("topics", 0, 2),
        Balance("positions", 0, 2),
        Balance("followers", 0, 1),  # a, b once; b, a never; from p to q nothing follows
        Balance("persons", 0, 2),
    )
    assert balance(design, rows_of()) == (Balance("followers", 0, 0),)


def test_balance_of_variants_crossed_and_between() -> None:
    crossed = make_design(2, 4, interfaces=2)
    counted = {
        row.kind: (row.min_count, row.max_count)
        for row in balance(crossed, assignments(crossed, dict.fromkeys("p", "")))
    }
    # of one person: four conditions once each, so 4 of 16 places, and 3 of 12 that follow
    assert counted == {"systems": (0, 1), "topics": (0, 1), "positions": (0, 1), "followers": (0, 1), "persons": (1, 1)}
    between = make_design(2, 4, interfaces=2, variants="between")
    counted = {
        row.kind: (row.min_count, row.max_count)
        for row in balance(between, assignments(between, dict.fromkeys("p", "")))
    }
    assert counted["persons"] == (2, 2)  # each system, whatever the variant
    assert counted["systems"] == (0, 1)
    four = assignments(between, dict.fromkeys("pqrs", ""))
    assert {row.kind: (row.min_count, row.max_count) for row in balance(between, four)} == {
        "systems": (1, 1), "topics": (1, 1), "positions": (0, 4), "followers": (2, 2), "persons": (2, 2),
    }  # fmt: skip


def test_lists_side_by_side_by_hand() -> None:
    """Of three systems and one topic: all pairs, then all with sides changed."""
    design = make_design(3, 6, preference=(Task("t0", "", "", 0, 0),))
    assert [side_by_side(design, number) for number in range(7)] == [
        (SideBySide("t0", *pair),) for pair in (("s0", "s1"), ("s0", "s2"), ("s1", "s2"), ("s1", "s0"), ("s2", "s0"),
                                                ("s2", "s1"), ("s0", "s1"))
    ]  # fmt: skip
    two = make_design(2, 6, preference=(Task("t0", "", "", 0, 0), Task("t1", "", "", 0, 0)))
    for number in range(4):
        (first, second) = side_by_side(two, number)
        assert {first.query_id, second.query_id} == {"t0", "t1"}
        # of the second topic the turn is one further and the side as well: both stand alike
        assert (first.left, second.left) == (("s0", "s0") if number % 2 == 0 else ("s1", "s1"))
    assert side_by_side(make_design(2, 6), 3) == ()


def test_lists_of_runs_and_of_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"t0 Q0 d{i:03} 0 {200 - i / 2} x" for i in range(130)] + ["t2 Q0 only 0 1 x", "other Q0 no 0 1 x"]
    (tmp_path / "s0.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "docs.jsonl").write_text(
        '{"doc_id": "d000", "title": "T", "text": "x"}\n{"doc_id": "no", "text": "y"}\n'
    )
    searches: list[tuple[str, int]] = []

    class Engine:
        def build(self, *fields: Any) -> None:
            assert fields[1] == {"file": str(tmp_path / "engine.toml")}

        def search(self, query: str, depth: int) -> list[tuple[str, float]]:
            searches.append((query, depth))
            if query == "refused":
                raise QueryRefusedError(query)
            return [("d000", 2.0)]

    monkeypatch.setattr(lists, "find_engine", lambda name: Engine if name == "http" else None)
    design = make_design(2, 2, practice=1, path=str(tmp_path / "study.toml"))
    engine = StudySystem("s1", "docs.jsonl", endpoint="engine.toml")
    system_lists = lists.StudyLists.of(Design("x", (design.systems[0], engine), design.tasks, design.practice,
                                       path=design.path)).systems  # fmt: skip
    run, engine_lists = system_lists["s0"], system_lists["s1"]
    hits = run.hits("t0", "whatever")
    assert (len(hits), hits[0], hits[-1]) == (lists.DEPTH, ("d000", 200.0), ("d099", 150.5))
    assert lists.DEPTH == 100
    assert run.hits("t1", "") == ()
    assert run.hits("t2", "") == (("only", 1.0),)
    assert (run.free, engine_lists.free) == (False, True)
    assert (run.text("d000").title, run.text("d000").text) == ("T", "x")
    assert tuple(run.text("d001"))[:2] == ("", "")
    assert run.text("no").text == ""  # no run has it
    assert engine_lists.text("no").text == "y"
    assert engine_lists.hits("t0", "words") == engine_lists.hits("t1", "words") == (("d000", 2.0),)
    assert engine_lists.hits("t0", "refused") == ()
    assert searches == [("words", 100), ("refused", 100)]
