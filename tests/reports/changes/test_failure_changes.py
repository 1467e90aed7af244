"""Changes of kinds of failure, from given losses and tests: numbers, possible causes, tables, and answers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judged.pipelines.traces.failure_tests import SLICE_TEST, FailureTest, Untested
from judged.pipelines.traces.failures import FAILURES
from judged.pipelines.traces.steps import compare_with_rest
from judged.reports.changes.failure_changes import FailureChange, answer_fixed, answer_kinds, failure_changes
from judged.stats.paired import paired_test
from reports.changes.test_tables_of_the_sheet import cells

NAN = math.nan
TOPICS = tuple(f"t{i:02}" for i in range(16))


def side(topics: Any = TOPICS, *, tests: Any = (), untested: Any = (), also: Any = (), **losses: Any) -> Any:
    """Return the failures of one system; each kind with a loss has a document."""
    funnel = SimpleNamespace(query_ids=tuple(topics), measure="RR")
    by_kind = {kind.replace("_", " "): values for kind, values in losses.items()}
    documents = tuple(("t", "d", kind, "s", 1.0) for kind, values in by_kind.items() if np.nansum(values) > 0)
    return SimpleNamespace(
        funnel=funnel, recoverable=by_kind, tests=tuple(tests), untested=tuple(untested), alternatives=tuple(also),
        documents=documents,
    )  # fmt: skip


def test_losses_are_compared_on_the_same_topics() -> None:
    """The sides have their topics in another order; one loss is not known, one topic is not there."""
    rng = np.random.default_rng(1)
    old, new = rng.random(10), rng.random(9)
    old[3] = NAN

    def change(first: int, last: int) -> FailureChange:
        before = side(TOPICS[first:last], scoring=old[first:last])
        (row,) = failure_changes(before, side(TOPICS[8::-1], scoring=new))
        return row

    row = change(0, 10)
    rows = [0, 1, 2, 4, 5, 6, 7, 8]
    first, second = old[rows], new[::-1][rows]
    expected = paired_test(first, second)
    assert row[:3] == ("scoring", "loss of RR", "")
    assert row[3:6] == pytest.approx((8, first.mean(), second.mean()))
    assert row.is_detected_before
    assert row.is_detected_after
    assert (row.difference, row.interval, row.p, row.adjusted) == (
        expected.difference, expected.interval, expected.p, expected.p,
    )  # fmt: skip
    few = change(4, 10)
    assert (few.n, few.interval) == (5, paired_test(first[3:], second[3:]).interval)
    assert math.isnan(few.p)
    assert change(5, 7).interval is None
    none = change(3, 4)
    assert (none.n, none.interval) == (0, None)
    assert np.isnan([none.before, none.after, none.difference, none.p]).all()
    (same,) = failure_changes(side(scoring=np.ones(16)), side(scoring=np.full(16, 0.5)))
    assert (same.difference, same.interval) == (-0.5, None)


def failure_test(failure: str, where: str, values: Any, members: Any = None, *, is_detected: bool = True,
                 quantity: str = "w") -> Any:  # fmt: skip
    topic_values = {topic: float(value) for topic, value in zip(TOPICS, values, strict=False)}
    shared: Any = {"values": topic_values, "members": members, "significant": is_detected}
    return FailureTest(failure, where, quantity, len(topic_values), 0.1, None, 0.01, **shared)


def test_tests_over_topics_are_compared_as_means_and_as_classes() -> None:
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
    rows = failure_changes(side(TOPICS[1:], tests=first), side(TOPICS[1:], tests=second))
    fresh, feedback, row, two = rows
    expected = paired_test(old[0][1:15], new[0][1:15])
    assert fresh[:4] == ("freshness", "all topics", "w", 14)
    assert fresh[4:6] == pytest.approx((old[0][1:15].mean(), new[0][1:15].mean()))
    assert fresh[6:8] == (True, True)
    assert (fresh.difference, fresh.interval, fresh.p) == (expected.difference, expected.interval, expected.p)
    assert (feedback[:4], feedback[6:8]) == (("feedback", "position", "w", 15), (False, True))
    assert (feedback.difference, feedback.interval) == (pytest.approx(0.25), None)  # they all change alike
    (contrast,) = compare_with_rest((new - old)[2][1:], [np.arange(1, 16) % 2 == 0], level=0.95)
    assert contrast is not None
    assert (row[:4], row[6:8]) == (("intent", "a", "w", 7), (True, False))
    assert row.before == pytest.approx(old[2][2::2].mean() - old[2][1::2].mean())
    assert row.after - row.before == pytest.approx(row.difference)
    assert (row.difference, row.interval, row.p) == (contrast.difference, contrast.interval, contrast.p)
    assert (two[:4], two[8:12]) == (("intent", "b", "w", 7), (0.0, None, 1.0, 1.0))  # no topic changed
    p = np.array([row.p for row in rows])
    order = np.argsort(p)  # the last is the test without a difference, which is not counted
    holm = np.empty(4)
    holm[order] = np.minimum(np.maximum.accumulate(p[order] * [3, 2, 1, 1]), 1)
    assert [row.adjusted for row in rows] == pytest.approx(holm.tolist())
    assert failure_changes(side(), side()) == ()
    (six,) = failure_changes(
        side(TOPICS[1:], tests=[failure_test("intent", "d", old[3][:7])]),
        side(TOPICS[1:], tests=[failure_test("intent", "d", new[3][:7])]),
    )
    assert six.n == 6


def test_losses_and_tests_are_corrected_together() -> None:
    rng = np.random.default_rng(3)
    old, new = rng.random(16) + 0.3, rng.random(16)
    tests = [[failure_test("freshness", "all topics", values)] for values in (old, new)]
    loss, test = failure_changes(side(tests=tests[0], scoring=old), side(tests=tests[1], scoring=new))
    assert loss.p == test.p
    assert (loss.adjusted, test.adjusted) == pytest.approx((2 * loss.p, 2 * loss.p))
    same = np.zeros(16)
    loss, test = failure_changes(side(tests=tests[0], debugging=same), side(tests=tests[1], debugging=same))
    assert (loss.p, loss.adjusted) == (1.0, 1.0)
    assert test.adjusted == test.p


def row_of(
    failure: str = "freshness", where: str = "all topics", *, before: bool = True, after: bool = False,
    difference: float = -0.25, adjusted: float = 0.012, quantity: str = "w", causes: Any = (),
) -> FailureChange:  # fmt: skip
    interval = (difference - 0.1, difference + 0.1)
    return FailureChange(
        failure, where, quantity, 9, 0.3, 0.3 + difference, before, after, difference, interval, 0.004, adjusted, causes
    )


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        ({}, "less"), ({"adjusted": 0.05}, "less"), ({"adjusted": 0.0501}, ""), ({"adjusted": NAN}, ""),
        ({"before": False}, ""), ({"before": False, "after": True}, ""), ({"after": True}, "less"),
        ({"difference": 0.1}, ""), ({"difference": 0.1, "after": True}, "more"),
        ({"difference": 0.1, "before": False, "after": True}, "more"),
        # a loss is known from its documents, so its direction needs no detection
        ({"before": False, "quantity": ""}, "less"), ({"difference": 0.1, "quantity": ""}, "more"),
        # both signs of a calibration are failures
        ({"failure": "calibration"}, "less"), ({"failure": "calibration", "difference": 0.2, "after": True}, "more"),
        ({"failure": "calibration", "difference": -0.9, "before": False, "after": True}, "more"),
    ],
)  # fmt: skip
def test_a_failure_is_less_only_if_it_was_detected_before_and_more_only_if_it_is_after(
    change: dict[str, Any], direction: str
) -> None:
    assert row_of(**change).direction == direction


def test_a_negative_calibration_that_returns_to_zero_is_less() -> None:
    row = FailureChange("calibration", "a", "w", 20, -0.4, 0.0, True, False, 0.4, None, 0.001, 0.001)
    assert row.direction == "less"
    assert row._replace(is_detected_before=False).direction == ""


def causes_of(before: Any, after: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {row.failure: (row.direction, row.causes) for row in failure_changes(before, after)}


def test_a_change_at_a_step_can_cause_the_opposite_change_at_later_steps_only() -> None:
    """Known truth: documents that the corpus lacked are added; half of them are lost at a later step."""
    noise = np.random.default_rng(4).random(16) / 100
    zeros, some, more = noise, 0.2 + noise[::-1], 0.4 + noise
    passed_on = causes_of(side(missing_content=more, candidate=zeros), side(missing_content=zeros, candidate=some))
    assert passed_on == {"missing content": ("less", ()), "candidate": ("more", ("missing content",))}
    later = causes_of(side(candidate=some, scoring=zeros), side(candidate=some, scoring=more))
    assert later == {"candidate": ("", ()), "scoring": ("more", ())}
    both = causes_of(side(candidate=more, scoring=more), side(candidate=zeros, scoring=zeros))
    assert both == {"candidate": ("less", ()), "scoring": ("less", ())}  # not the opposite direction
    unrecorded = causes_of(side(candidate=more, debugging=zeros), side(candidate=zeros, debugging=more))
    assert unrecorded["debugging"] == ("more", ())  # records depend on no step


def test_a_failure_by_date_source_or_class_is_part_of_the_loss_in_the_same_direction() -> None:
    noise = np.random.default_rng(5).random(16) / 100
    zeros, more = noise, 0.4 + noise
    for kind, is_part in (("freshness", True), ("calibration", True), ("feedback", False)):
        tests = [[failure_test(kind, "x", values)] for values in (more, zeros)]
        less, worse = (
            causes_of(side(tests=tests[0], scoring=old), side(tests=tests[1], scoring=new))
            for old, new in ((more, zeros), (zeros, more))
        )
        assert (less[kind], less["scoring"]) == (("less", ()), ("less", (kind,) if is_part else ()))
        assert worse["scoring"] == ("more", ())  # the other direction


@pytest.mark.parametrize("kind", ["intent", SLICE_TEST])
def test_a_loss_outside_the_class_is_not_part_of_the_class(kind: str) -> None:
    topics = tuple(f"t{i:02}" for i in range(60))
    noise = np.random.default_rng(6).random(60) / 100
    is_member = np.arange(60) % 2 == 0
    members = frozenset(topic for topic, member in zip(topics, is_member.tolist(), strict=True) if member)

    def failures_with(loss: Any) -> Any:
        values = dict(zip(topics, loss.tolist(), strict=True))
        test = FailureTest(kind, "a", "w", 30, 0.1, None, 0.01, values=values, members=members, significant=True)
        return side(topics, tests=[test], scoring=loss)

    only_class = causes_of(failures_with(noise + 0.5 * is_member), failures_with(noise[::-1]))
    assert only_class == {"scoring": ("less", (kind,)), kind: ("less", ())}
    everywhere = causes_of(failures_with(noise + 0.2 + 0.5 * is_member), failures_with(noise[::-1]))
    assert everywhere == {"scoring": ("less", ()), kind: ("less", ())}
    opposite = causes_of(failures_with(noise + 0.7 * is_member), failures_with(noise[::-1] + 0.2 * ~is_member))
    assert opposite["scoring"] == ("less", (kind,))


STILL = row_of("feedback", "position", after=True)
UNCLEAR = row_of("feedback", "popularity", adjusted=0.2)
LACKING = (Untested("feedback", "clicks", "no-data", "no clicks"), Untested("x", "y", "no-data", "another"))


@pytest.mark.parametrize(
    ("target", "rows", "state", "parts"),
    [
        ("freshness", [row_of()], "good", ("not detected", "all topics -0.250 [-0.350, -0.150] (p = 0.012, n = 9)")),
        ("freshness", [row_of(after=True)], "inspect", ("still detected (all topics)",)),
        ("freshness", [row_of(after=True, adjusted=0.3)], "bad", ("still detected (all topics)",)),
        ("freshness", [row_of(adjusted=0.3)], "undecided", ("not detected",)),
        ("freshness", [row_of(difference=0.1)], "undecided", ("not detected",)),  # more, though not detected after
        ("freshness", [row_of(before=False, after=True)], "undecided", ("not detected before", "1 test")),
        ("feedback", [STILL, UNCLEAR, row_of()], "bad", ("still detected (position)", "popularity -0.250")),
        # one that was not detected before, and is after
        ("feedback", [row_of("feedback", "a", before=False, after=True), row_of("feedback", "b")], "inspect",
         ("still detected (a)", "b -0.250")),
        ("feedback", [row_of()], "not tested", ("no clicks; none at all.",)),
        ("intent", [row_of("intent", "subtopics")], "good", ("not detected after",)),
        ("intent", [row_of("intent", "a")], "good", ("Other possible causes: freshness or feedback.",)),
        ("intent", [row_of(SLICE_TEST, "a")], "good", (SLICE_TEST, "Other possible causes: freshness or feedback.")),
        ("intent", [row_of("intent", "a", before=False), row_of("intent", "b", before=False)], "undecided",
         ("2 tests", "Other possible causes: freshness or feedback.")),
        ("calibration", [row_of(SLICE_TEST, "a")], "not tested", ("calibration",)),
        ("scoring", [row_of("scoring", "loss of RR", quantity="")], "good", ("from 0.3000 to 0.0500", "-0.250 [")),
        ("scoring", [row_of("scoring", quantity="", difference=0.1)], "bad", ("from 0.3000 to 0.4000", "+0.100 [")),
        ("scoring", [row_of("scoring", quantity="", adjusted=0.051)], "undecided", ("p = 0.051",)),
        ("candidate", [row_of("scoring", quantity="")], "not tested", ("candidate was not tested: why.",)),
    ],
)  # fmt: skip
def test_whether_the_target_is_fixed(
    target: str, rows: list[FailureChange], state: str, parts: tuple[str, ...]
) -> None:
    why = Untested("candidate", "x", "no-data", "why.")
    before = side(untested=[*LACKING, why], also=("intent", "freshness"))
    last = Untested("feedback", "z", "no-data", "none at all.")
    after = side(untested=[LACKING[0], last], also=("freshness", "feedback"))
    question = answer_fixed(rows, before, after, target)
    assert (question.state, question.blocks) == (state, ())
    assert all(part in question.finding for part in parts)
    if target == "intent":
        assert "Other" not in answer_fixed(rows, side(also=("intent",)), side(), target).finding


def test_a_target_with_few_topics_is_not_tested() -> None:
    few = [row_of("scoring", quantity="")._replace(n=5, p=NAN, adjusted=NAN)]
    question = answer_fixed(few, side(), side(), "scoring")
    assert question.state == "not tested"
    assert "5 topics" in question.finding


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([row_of()], "good"), ([row_of(difference=0.1, after=True)], "bad"), ([row_of(adjusted=0.2)], "undecided"),
        ([row_of(), row_of("scoring", difference=0.1, quantity="")], "inspect"),
        ([row_of("candidate", quantity=""), row_of("scoring", difference=0.1, quantity="", causes=("candidate",))],
         "good"),
        ([row_of()._replace(p=NAN, adjusted=NAN)], "not tested"), ([], "not tested"),
    ],
)  # fmt: skip
def test_the_state_depends_on_changes_without_another_cause(rows: list[FailureChange], state: str) -> None:
    question = answer_kinds(rows, side(untested=LACKING), side())
    assert question.state == state
    (table,) = question.blocks
    untested = [row["failure"] for row in table.records() if row["change"] == "not tested"]  # type: ignore[attr-defined]
    tested = {row.failure for row in rows if not math.isnan(row.p)}
    assert sorted(untested) == sorted(set(FAILURES) - tested)
    assert "no clicks" in question.finding


def test_the_table_of_changes() -> None:
    rows = [
        row_of("candidate", "loss of RR", quantity="", after=True, causes=("freshness",)),
        row_of(),
        row_of("intent", "a", difference=0.5, adjusted=0.04),
        row_of("feedback", "position", before=False, adjusted=0.3),
    ]
    question = answer_kinds(rows, side(), side())
    (table,) = question.blocks
    assert cells(table)[:5] == [
        ("failure", "where", "topics", "before", "after", "difference", "adjusted p", "change", "possible causes",
         "quantity, or reason"),
        ("candidate", "loss of RR", "9", "0.3000 *", "0.0500 *", "-0.2500 [-0.350, -0.150]", "0.0120", "less",
         "freshness", "-"),
        ("freshness", "all topics", "9", "0.3000 *", "0.0500", "-0.2500 [-0.350, -0.150]", "0.0120", "less", "", "w"),
        ("intent", "a", "9", "0.3000 *", "0.8000", "+0.5000 [+0.400, +0.600]", "0.0400", "not detected", "", "w"),
        ("feedback", "position", "9", "0.3000", "0.0500", "-0.2500 [-0.350, -0.150]", "0.3000", "not significant", "",
         "w"),
    ]  # fmt: skip
    record: Any = table.records()[0]  # type: ignore[attr-defined]
    assert (record["p"], record["is_detected_before"], record["is_detected_after"]) == (0.004, True, True)
    assert "freshness (all topics) -0.250 [-0.350, -0.150] (p = 0.012, n = 9)" in question.finding
