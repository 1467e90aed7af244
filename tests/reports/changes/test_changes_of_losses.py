"""How far kinds of failure changed, from tests and losses that are given: numbers, tables, and sentences."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judged.pipelines.traces.failure_tests import SLICE_TEST, FailureTest, Untested
from judged.pipelines.traces.steps import compare_with_rest
from judged.reports.changes.questions import _answer_fixed_over_topics, _loss_change, _Shift, _shifts, answer_fixed
from judged.stats.paired import paired_test
from reports.changes.test_tables_of_the_sheet import cells

NAN = math.nan
MODULE = sys.modules["judged.reports.changes.questions"]
TOPICS = tuple(f"t{i:02}" for i in range(16))


def side(topics: Any = TOPICS, *, tests: Any = (), untested: Any = (), also: Any = (), **losses: Any) -> Any:
    """Return what is known of failures on one side."""
    funnel = SimpleNamespace(query_ids=tuple(topics), measure="RR")
    return SimpleNamespace(
        funnel=funnel, recoverable=losses, tests=tuple(tests), untested=tuple(untested), alternatives=tuple(also)
    )


def test_losses_are_compared_on_the_same_topics() -> None:
    """The sides have their topics in another order; one loss is not known, one topic is not there."""
    rng = np.random.default_rng(1)
    old, new = rng.random(10), rng.random(9)
    old[3] = NAN
    before, after = side(TOPICS[:10], scoring=old), side(TOPICS[8::-1], scoring=new)
    change = _loss_change("scoring", before, after, TOPICS[:9])
    rows = [0, 1, 2, 4, 5, 6, 7, 8]
    row, two = old[rows], new[::-1][rows]
    expected = paired_test(row, two)
    assert change[:5] == pytest.approx(("scoring", 8, row.mean(), two.mean(), (two - row).mean()))
    assert (change.interval, change.p) == (expected.interval, expected.p)
    few = _loss_change("scoring", before, after, TOPICS[4:9])
    assert (few.n, few.interval) == (5, paired_test(row[3:], two[3:]).interval)
    assert math.isnan(few.p)
    assert _loss_change("scoring", before, after, TOPICS[5:7]).interval is None
    none = _loss_change("scoring", before, after, TOPICS[3:4])
    assert (none.kind, none.n, none.interval) == ("scoring", 0, None)
    assert np.isnan([none.before, none.after, none.difference, none.p]).all()
    same = _loss_change("scoring", side(scoring=np.ones(16)), side(scoring=np.full(16, 0.5)), TOPICS)
    assert (same.difference, same.interval) == (-0.5, None)


def failure_test(
    failure: str, where: str, values: Any, members: Any = None, *, is_detected: bool = True, quantity: str = "w"
) -> Any:
    topic_values = {topic: float(value) for topic, value in zip(TOPICS, values, strict=False)}
    return FailureTest(
        failure,
        where,
        quantity,
        len(topic_values),
        0.1,
        None,
        0.01,
        values=topic_values,
        members=members,
        significant=is_detected,
    )


def test_shifts_of_means_and_of_classes() -> None:
    """Paired tests of means; of a class the change against that of all others; p by Holm over all."""
    rng = np.random.default_rng(2)
    old, new = rng.random((2, 4, 16))
    new[1] = old[1] + 0.25
    halves, few = frozenset(TOPICS[::2]), frozenset(TOPICS[:5])
    first = [
        failure_test("freshness", "all topics", old[0]),
        failure_test("feedback", "position", old[1], is_detected=False),
        failure_test("intent", "a", old[2], halves), failure_test("intent", "b", old[3], halves),
        failure_test("intent", "c", old[3], few), failure_test("intent", "d", old[3][:5]),
        failure_test("intent", "gone", old[3]), failure_test("intent", "other", old[3], quantity="x"),
    ]  # fmt: skip
    second = [
        failure_test("intent", "a", new[2], halves, is_detected=False),
        failure_test("freshness", "all topics", new[0][:15]),
        failure_test("feedback", "position", new[1], is_detected=True), failure_test("intent", "b", old[3], halves),
        failure_test("intent", "c", new[3], few), failure_test("intent", "d", new[3][:5]),
        failure_test("intent", "other", old[3], quantity="y"),
    ]  # fmt: skip
    shifts = list(_shifts(side(tests=first), side(tests=second), TOPICS[1:]))
    fresh, feedback, row, two = shifts
    expected = paired_test(old[0][1:15], new[0][1:15])
    assert fresh[:6] == ("freshness", "all topics", "w", 14, True, True)
    assert (fresh.difference, fresh.interval, fresh.p) == (expected.difference, expected.interval, expected.p)
    assert feedback[:6] == ("feedback", "position", "w", 15, False, True)
    assert (feedback.difference, feedback.interval) == (pytest.approx(0.25), None)  # they all change alike
    (contrast,) = compare_with_rest((new - old)[2][1:], [np.arange(1, 16) % 2 == 0], level=0.95)
    assert contrast is not None
    assert row[:6] == ("intent", "a", "w", 7, True, False)
    assert (row.difference, row.interval, row.p) == (contrast.difference, contrast.interval, contrast.p)
    assert two == ("intent", "b", "w", 7, True, True, 0.0, None, 1.0, 1.0)  # no topic changed
    p = np.array([shift.p for shift in shifts])
    order = np.argsort(p)
    holm = np.empty(4)
    holm[order] = np.minimum(np.maximum.accumulate(p[order] * [4, 3, 2, 1]), 1)
    assert [shift.adjusted for shift in shifts] == pytest.approx(holm.tolist())
    assert list(_shifts(side(), side(), TOPICS)) == []
    six = [failure_test("intent", "d", values[3][:7]) for values in (old, new)]
    assert [shift.n for shift in _shifts(side(tests=six[:1]), side(tests=six[1:]), TOPICS[1:])] == [6]


@pytest.mark.parametrize(
    ("difference", "adjusted", "less"),
    [(-0.1, 0.05, True), (-0.1, 0.0501, False), (0.0, 0.01, False), (0.1, 0.01, False)],
)
def test_less_of_a_failure_is_shown_at_a_level_of_5_percent(difference: float, adjusted: float, less: bool) -> None:
    assert shift(difference=difference, adjusted=adjusted).is_lower == less


def shift(failure: str = "freshness", where: str = "all topics", *, before: bool = True, after: bool = False,
          difference: float = -0.25, adjusted: float = 0.012) -> _Shift:  # fmt: skip
    return _Shift(
        failure, where, "w", 9, before, after, difference, (difference - 0.1, difference + 0.1), 0.004, adjusted
    )


STILL = shift("feedback", "position", after=True)
UNCLEAR = shift("feedback", "popularity", adjusted=0.2)


@pytest.mark.parametrize(
    ("meant", "shifts", "state", "finding"),
    [
        ("freshness", [shift()], "good",
         ("The failure 'freshness' was detected before the change, and is not detected after the change."
          " Difference: all topics -0.250 (p = 0.012).")),
        ("freshness", [shift(after=True)], "inspect",
         ("The failure 'freshness' was detected before the change, and is still detected (all topics) after the change."
          " Difference: all topics -0.250 (p = 0.012).")),
        ("freshness", [shift(after=True, adjusted=0.3)], "bad",
         ("The failure 'freshness' was detected before the change, and is still detected (all topics) after the change."
          " Difference: all topics -0.250 (p = 0.3).")),
        ("freshness", [shift(adjusted=0.3)], "undecided",
         ("The failure 'freshness' was detected before the change, and is not detected after the change."
          " Difference: all topics -0.250 (p = 0.3).")),
        ("freshness", [shift(before=False, after=True)], "undecided",
         "The failure 'freshness' was not detected before the change (1 test), so a fix cannot be shown."),
        ("feedback", [STILL, UNCLEAR, shift()], "bad",
         ("The failure 'feedback' was detected before the change, and is still detected (position) after the change."
          " Difference: position -0.250 (p = 0.012) and popularity -0.250 (p = 0.2).")),
        # one that was not shown before, and is after
        ("feedback", [shift("feedback", "a", before=False, after=True), shift("feedback", "b")], "inspect",
         ("The failure 'feedback' was detected before the change, and is still detected (a) after the change."
          " Difference: b -0.250 (p = 0.012).")),
        ("feedback", [shift()], "not tested", "feedback was not tested: no clicks; none at all."),
        ("intent", [shift("intent", "subtopics")], "good",
         ("The failure 'intent' was detected before the change, and is not detected after the change."
          " Difference: subtopics -0.250 (p = 0.012).")),
        ("intent", [shift("intent", "a")], "good",
         ("The failure 'intent' was detected before the change, and is not detected after the change."
           " Difference: a -0.250 (p = 0.012)."
           " Other possible causes: freshness or feedback.")),
        ("intent", [shift(SLICE_TEST, "a")], "good",
         (f"A higher loss in a {SLICE_TEST} was detected before the change, and is not detected"
           " after the change. Difference: a -0.250 (p = 0.012)."
           " Other possible causes: freshness or feedback.")),
        ("intent", [shift(SLICE_TEST, "a"), shift("intent", "subtopics", before=False)], "good",
         ("The failure 'intent' was detected before the change, and is not detected after the change."
           " Difference: a -0.250 (p = 0.012)."
           " Other possible causes: freshness or feedback.")),
        ("intent", [shift("intent", "a", before=False), shift("intent", "b", before=False)], "undecided",
         ("The failure 'intent' was not detected before the change (2 tests), so a fix cannot be shown."
          " Other possible causes: freshness or feedback.")),
        ("calibration", [shift(SLICE_TEST, "a")], "not tested",
         "calibration was not tested: no quantity was measured on enough common topics before and after the change."),
    ],
)  # fmt: skip
def test_kinds_that_show_over_topics(meant: str, shifts: list[_Shift], state: str, finding: str) -> None:
    lacking = [Untested("feedback", "clicks", "no-data", "no clicks"), Untested("x", "y", "no-data", "another")]
    before = side(untested=lacking, also=("intent", "freshness"))
    after = side(
        untested=[lacking[0], Untested("feedback", "z", "no-data", "none at all.")], also=("freshness", "feedback")
    )
    assert _answer_fixed_over_topics(before, after, meant, shifts) == (state, finding)
    assert "Other" not in _answer_fixed_over_topics(side(also=("intent",)), side(), "intent", [shift("intent", "a")])[1]


def test_the_answer_of_a_kind_that_each_document_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(p: float, difference: float, n: int = 6) -> Any:
        tested = SimpleNamespace(p=p, difference=difference, interval=(-0.5, 0.125))
        monkeypatch.setattr(MODULE, "paired_test", lambda *_: tested)
        old, new = np.arange(n) / 8, np.arange(n) / 16
        return answer_fixed(
            side(TOPICS[:n], scoring=old, candidate=old), side(TOPICS[:n], scoring=new, debugging=new), "scoring"
        )

    states = {(p, difference): answer(p, difference).state for p in (0.05, 0.051) for difference in (-0.1, 0.1, 0.0)}
    assert states == {
        (0.05, -0.1): "good", (0.05, 0.1): "bad", (0.05, 0.0): "bad", (0.051, -0.1): "undecided",
        (0.051, 0.1): "undecided", (0.051, 0.0): "undecided",
    }  # fmt: skip
    question = answer(0.0123, -0.15625)
    assert question.finding == (
        "The mean loss due to scoring failures changed from 0.3125 to 0.1562 (p = 0.012, n = 6 topics)."
    )
    (table,) = question.blocks
    assert (table.name, table.labels, table.title) == ("kinds", 1, "Loss of RR by kind of failure")
    assert cells(table) == [
        ("kind", "topics", "before", "after", "difference", "p"),
        ("scoring", "6", "0.3125", "0.1562", "-0.1562 [-0.500, +0.125]", "0.0123"),
    ]
    few = answer(0.01, -0.1, 5)
    assert (few.state, few.finding) == (
        "not tested", "scoring was not tested. Not enough data: 5 topics, at least 6 are required.",
    )  # fmt: skip
    lacking = [Untested("candidate", "x", "no-data", "why.")]
    gone = answer_fixed(side(scoring=np.ones(16)), side(untested=lacking, scoring=np.ones(16)), "candidate")
    assert (gone.state, gone.finding) == ("not tested", "candidate was not tested: why.")
    plain = answer_fixed(side(scoring=np.ones(16)), side(scoring=np.ones(16)), None)
    assert (plain.state, plain.finding) == (
        "inspect",
        "The target failure was not specified. Fix: use --target-failure KIND.",
    )


def test_the_table_of_shifts(monkeypatch: pytest.MonkeyPatch) -> None:
    shifts = [shift(), shift("feedback", "position", before=False, after=True, difference=0.5, adjusted=0.04)]
    monkeypatch.setattr(MODULE, "_shifts", lambda *_: iter(shifts))
    _, table = answer_fixed(side(), side(), "freshness").blocks
    assert (table.name, table.labels) == ("shifts", 2)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("failure", "where", "topics", "detected before", "detected after", "difference", "adjusted p", "quantity"),
        ("freshness", "all topics", "9", "yes", "no", "-0.2500 [-0.350, -0.150]", "0.0120", "w"),
        ("feedback", "position", "9", "no", "yes", "+0.5000 [+0.400, +0.600]", "0.0400", "w"),
    ]
    assert [column.name for column in table.columns if column.below] == ["quantity"]  # type: ignore[attr-defined]
    assert [row["p"] for row in table.records()] == [0.004, 0.004]  # type: ignore[attr-defined]
