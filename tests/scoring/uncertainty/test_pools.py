"""Runs without their own contributions to the pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import InputError, MeasureError, Run
from judged.scoring.measures import parse
from judged.scoring.uncertainty.pools import leave_one_out
from strategies import DOCS, TOPICS

QRELS = {"1": {"a": 2, "b": 1, "c": 0, "e": 1}, "2": {"x": 1, "y": 0}}
RUNS = {
    "one": {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"y": 2.0, "x": 1.0}},
    "two": {"1": {"b": 3.0, "c": 2.0, "d": 1.0}, "2": {"x": 2.0, "y": 1.0}},
    "new": {"1": {"b": 3.0, "a": 2.0, "e": 1.0}, "2": {"x": 1.0}},
}


def test_by_hand() -> None:
    """At depth 2, in topic 1: one has a, b; two b, c; new b, a; in topic 2 all have x, two of them y.

    So two alone has c, of grade 0, and no AP moves; e is in no pool. At depth 1: one has a and y, the others b and x.
    Without a and y, one has AP (1/2)/2 in topic 1, of b and e, where it had (1 + 1)/3, and 1/2 in topic 2 as before.
    """
    found = leave_one_out(QRELS, RUNS, ["AP", "NumRelRet"], pool_depth=2)
    assert [(row.run, row.lost, row.relevant_lost) for row in found.rows[::2]] == [
        ("one", 0, 0),
        ("two", 1, 0),
        ("new", 0, 0),
    ]
    assert all(row.difference == 0 for row in found.rows)
    assert (found.judgments, found.outside) == (6, 1)
    found = leave_one_out(QRELS, RUNS, "AP", pool_depth=1)
    one, two, new = found.rows
    assert (one.old, one.new) == pytest.approx(((2 / 3 + 1 / 2) / 2, (1 / 4 + 1 / 2) / 2), abs=1e-15)
    assert (one.lost, one.relevant_lost, one.difference) == (2, 1, one.new - one.old)
    assert (two.lost, new.lost) == (0, 0)
    assert (one.old_rank, two.old_rank, new.old_rank) == (3, 2, 1)  # (1/3 + 1)/2 for two, 1 for new
    assert one.new_rank == 3


def test_places_are_those_under_the_same_judgments() -> None:
    """Run one is the best by the document that it alone has; without it, it is the last. Equals share a place."""
    qrels = {"q": {"a": 1, "b": 1}}
    runs = {"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 1.0}}, "three": {"q": {"b": 1.0}}}
    rows = leave_one_out(qrels, runs, ["AP", "RR", "NumNonrelRet", "NumRet"], pool_depth=2).rows
    assert [(row.old, row.new, row.old_rank, row.new_rank) for row in rows[:4]] == [
        (1.0, 0.5, 1, 3),
        (1.0, 0.5, 1, 3),
        (0.0, 0.0, 1, 1),
        (2.0, 2.0, None, None),
    ]
    assert [(row.old_rank, row.new_rank, row.lost) for row in rows[4::4]] == [(2, 2, 0), (2, 2, 0)]


def test_a_group_is_left_out_as_a_whole() -> None:
    """Two runs of one group share ``a``: neither alone, but both together brought it into the pool."""
    qrels = {"q": {"a": 1, "b": 1}}
    runs = {"x1": {"q": {"a": 2.0}}, "x2": {"q": {"a": 2.0, "b": 1.0}}, "y": {"q": {"b": 1.0}}}
    assert [row.lost for row in leave_one_out(qrels, runs, "AP").rows] == [0, 0, 0]
    found = leave_one_out(qrels, runs, "AP", groups={"x1": "x", "x2": "x"})
    assert [(row.group, row.lost, row.new) for row in found.rows] == [("x", 1, 0.0), ("x", 1, 0.5), ("y", 0, 0.5)]
    assert found.table().grid().header[:3] == ("run", "group", "measure")


def test_what_makes_it_mean_little_is_said() -> None:
    assert not leave_one_out({"q": {"a": 1, "b": 0}}, {"x": {"q": {"a": 1.0}}, "y": {"q": {"b": 1.0}}}, "AP").notes
    found = leave_one_out(
        {"q": {"a": 1, "b": 0, "z": 1}}, {"x": {"q": {"a": 1.0, "n": 0.5}}, "y": {"q": {"a": 1.0}}}, "AP", pool_depth=2
    )
    none, outside, shallow = found.notes
    assert (none.rule, outside.rule, shallow.rule) == (
        "no-unique-judgments", "judgments-outside-pool", "shallow-pool",
    )  # fmt: skip
    assert outside.text.startswith("2 of 3 judgments are for documents that no run has in its top 2")
    assert found.judged_share == pytest.approx(2 / 3)


def test_a_topic_that_loses_everything_stays() -> None:
    """Left with nothing judged it scores 0, or is left out of the mean where the measure says so."""
    qrels = {"1": {"a": 1}, "2": {"b": 1, "c": 1}}
    runs = {"one": {"1": {"a": 1.0}, "2": {"b": 1.0}}, "two": {"1": {"n": 1.0}, "2": {"b": 2.0, "c": 1.0}}}
    row, skipped = leave_one_out(qrels, runs, ["AP", "AP(undefined=skip)"]).rows[:2]
    assert (row.old, row.new) == (0.75, 0.25)
    assert (skipped.old, skipped.new) == (0.75, 0.5)


_LISTS = st.lists(st.sampled_from(DOCS), unique=True, max_size=7)
_JUDGMENTS = st.dictionaries(st.sampled_from(DOCS), st.sampled_from((0.0, 1.0, 2.0, -1.0)), min_size=1, max_size=9)


@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(TOPICS[:3]), _JUDGMENTS, min_size=1),
    st.lists(st.fixed_dictionaries(dict.fromkeys(TOPICS[:3], _LISTS)), min_size=2, max_size=4),
    st.integers(1, 5),
)
def test_as_if_the_qrels_had_been_made_without_the_run(qrels: Any, lists: list[Any], depth: int) -> None:
    """The judgments are taken out of the qrels by plain means, and everything is evaluated again."""
    names = ("nDCG@4", "AP", "P@3", "Bpref", "R@5", "Judged@3", "ERR(max=2)", "AlphaDCG@4", "PrefShare")
    runs = {
        f"run{at}": {topic: {doc: -float(rank) for rank, doc in enumerate(docs)} for topic, docs in one.items()}
        for at, one in enumerate(lists)
    }
    found = leave_one_out(qrels, runs, names, pool_depth=depth)
    pools = {
        run: {(topic, doc) for topic, docs in one.items() for doc in list(docs)[:depth]} for run, one in runs.items()
    }
    for run, ranked in runs.items():
        shared = set().union(*(pool for other, pool in pools.items() if other != run))
        gone = {(topic, doc) for topic, doc in pools[run] - shared if doc in qrels.get(topic, {})}
        left = {t: {d: g for d, g in docs.items() if (t, d) not in gone} for t, docs in qrels.items()}
        rows = [row for row in found.rows if row.run == run]
        assert {row.lost for row in rows} == {len(gone)}
        if any(not docs for docs in left.values()):
            continue  # a topic without judgments cannot be written down
        old, new = judged.judge(qrels, ranked), judged.judge(left, ranked)
        for row in rows:
            one = parse(row.measure)
            assert (row.old, row.new) == pytest.approx((one(old).mean(), one(new).mean()), abs=1e-14)


def test_one_or_several_measures_and_runs() -> None:
    listed = [Run.of(run, name=name) for name, run in RUNS.items()]
    one = leave_one_out(QRELS, RUNS, parse("AP"))
    assert leave_one_out(QRELS, listed, "AP") == one
    assert [row.measure for row in leave_one_out(QRELS, RUNS, "P@1,2").rows[:2]] == ["P@1", "P@2"]


def test_as_plain_values_and_as_a_table() -> None:
    found = leave_one_out(QRELS, RUNS, ["AP", "NumRet"], pool_depth=1)
    plain = found.to_dict()
    assert plain["rows"][0] == {
        "run": "one",
        "group": "one",
        "measure": "AP",
        "old": found.rows[0].old,
        "new": found.rows[0].new,
        "lost": 2,
        "relevant_lost": 1,
        "old_rank": 3,
        "new_rank": 3,
        "difference": found.rows[0].difference,
    }
    assert (plain["pool_depth"], plain["judgments"], plain["outside"]) == (1, 6, 2)
    rows = found.table().grid().rows
    assert rows[0] == ("one", "AP", "0.5833", "0.3750", "-0.2083", "2", "1", "3", "3")
    assert rows[1][-2:] == ("-", "-")


@pytest.mark.parametrize(
    ("runs", "more", "message"),
    [
        ({"one": RUNS["one"]}, {}, "at least two runs or groups"),
        (RUNS, {"groups": dict.fromkeys(RUNS, "us")}, "at least two runs or groups"),
        (RUNS, {"groups": {"On": "us"}}, "no run 'On'"),
        (RUNS, {"pool_depth": 0}, "`pool_depth` must be a positive integer, got 0"),
        ({"one": {"1": ["a"]}, "two": RUNS["two"]}, {}, ""),
        ([Run.of(RUNS["one"], name="a"), Run.of(RUNS["two"], name="a")], {}, "run names must be unique"),
    ],
)
def test_what_makes_no_sense_is_refused(runs: Any, more: dict[str, Any], message: str) -> None:
    if not message:  # ranked lists are runs
        assert len(leave_one_out(QRELS, runs, "AP", **more).rows) == len(runs)
        return
    with pytest.raises(InputError, match=message):
        leave_one_out(QRELS, runs, "AP", **more)


def test_measures_that_look_beyond_the_topic_are_refused() -> None:
    with pytest.raises(MeasureError, match="Hole@5 uses the judgments of all topics"):
        leave_one_out(QRELS, RUNS, ["AP", "Hole@5"])
    with pytest.raises(InputError, match="at least one measure"):
        leave_one_out(QRELS, RUNS, [])


def test_nothing_that_was_given_is_changed() -> None:
    found = judged.judge(QRELS, RUNS["one"])
    before = found.grade.copy(), found.label_grade.copy()
    leave_one_out(QRELS, RUNS, "AP")
    np.testing.assert_array_equal(found.grade, before[0])
    np.testing.assert_array_equal(found.label_grade, before[1])
