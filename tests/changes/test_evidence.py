"""What each method says of a change: directions, minimums, the order of estimators, and the sheet around them."""

from __future__ import annotations

import math
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import binomtest

from judged import compare, evaluate
from judged.changes import review
from judged.changes.evidence import Evidence, agreement, told
from judged.changes.questions import (
    Question,
    costs,
    false_positives,
    gated,
    nothing_found,
    preferred,
    rolled_back,
    slices,
    worst,
)
from judged.changes.questions import tested as decided_by_users
from judged.changes.sheet import Change
from judged.data.topics import Topics
from judged.watch.config import Event
from judged.watch.rollback import Rollback

TOPICS = [f"q{topic:02}" for topic in range(24)]
FIRST = {topic: {"a": 2.0, "b": 1.0} for topic in TOPICS}  # RR 1
SECOND = {topic: {"x": 3.0, "a": 2.0, "b": 1.0} for topic in TOPICS}  # RR 1/2
QRELS = {topic: {"a": 1, "b": 1} for topic in TOPICS}


def comparison(topics: int = 24, baseline: Any = None, candidate: Any = None) -> Any:
    chosen = TOPICS[:topics]
    qrels, first, second = (
        {topic: own[topic] for topic in chosen} for own in (QRELS, baseline or FIRST, candidate or SECOND)
    )
    return compare(qrels, {"old": first, "new": second}, "RR")


def off_policy(users: int = 100, **intervals: tuple[float, float] | None) -> Any:
    rows = [
        SimpleNamespace(estimator=name.replace("_", " "), difference_ci=interval)
        for name, interval in intervals.items()
    ]
    return SimpleNamespace(rows=rows, users=users)


def said(compared: Any, *, test: Any = None, mixed: Any = None, logged: Any = None) -> dict[str, Evidence]:
    return {evidence.method: evidence for evidence in told(compared, test, mixed, logged)}


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (0.1, 0.2, "better"),
        (-0.2, -0.1, "worse"),
        (-0.1, 0.1, "undecided"),
        (0.0, 0.2, "undecided"),
        (-0.2, 0.0, "undecided"),
    ],
)
def test_a_logged_policy_decides_if_its_interval_excludes_0(low: float, high: float, says: str) -> None:
    found = said(comparison(), logged=off_policy(doubly_robust=(low, high)))["off-policy"]
    assert (found.says, found.number, found.units) == (says, 100, "users")
    assert math.isnan(found.days)


def test_the_first_preferred_estimator_with_an_interval_is_used() -> None:
    better, worse = (0.1, 0.2), (-0.2, -0.1)
    for intervals, says in (
        ({"whole_list": worse, "cascade": worse, "doubly_robust": better}, "better"),
        ({"whole_list": worse, "cascade": better, "doubly_robust": None}, "better"),
        ({"whole_list": better, "cascade": None, "doubly_robust": None}, "better"),
        ({"whole_list": None, "cascade": None, "doubly_robust": None}, "undecided"),
    ):
        assert said(comparison(), logged=off_policy(**intervals))["off-policy"].says == says


@pytest.mark.parametrize(("users", "says"), [(5, "undecided"), (6, "better")])
def test_fewer_than_six_users_of_a_log_decide_nothing(users: int, says: str) -> None:
    assert said(comparison(), logged=off_policy(users, doubly_robust=(0.1, 0.2)))["off-policy"].says == says


@pytest.mark.parametrize(
    ("decision", "says"),
    [("ship", "better"), ("do not ship", "worse"), ("keep running", "undecided"), ("broken", "undecided")],
)
def test_the_decision_of_an_abtest_is_its_evidence(decision: str, says: str) -> None:
    test = SimpleNamespace(assignment=SimpleNamespace(number=300, days=14.0))
    found = said(comparison(), test=(test, SimpleNamespace(decision=decision)))["A/B test"]
    assert (found.says, found.number, found.units, found.days) == (says, 300, "users", 14.0)


@pytest.mark.parametrize(
    ("decision", "says"), [("preferred", "better"), ("not preferred", "worse"), ("keep running", "undecided")]
)
def test_the_decision_of_interleaving_is_its_evidence(decision: str, says: str) -> None:
    found = said(comparison(), mixed=SimpleNamespace(decision=decision, users=40))["interleaving"]
    assert (found.says, found.number, found.units) == (says, 40, "users")
    assert math.isnan(found.days)


def test_offline_evidence_has_the_direction_of_a_significant_pair() -> None:
    worse, better = said(comparison())["offline"], said(comparison(baseline=SECOND, candidate=FIRST))["offline"]
    assert (worse.says, worse.number, worse.units, better.says) == ("worse", 24, "topics", "better")
    assert said(comparison(candidate=FIRST))["offline"].says == "undecided"
    pair = SimpleNamespace(significant=True, better="new", second="new", result=SimpleNamespace(n=5))
    few = SimpleNamespace(measures=[SimpleNamespace(pairs=[pair], measure="RR")])
    assert said(few)["offline"].says == "undecided"
    pair.result.n = 6
    assert said(few)["offline"].says == "better"


def test_methods_are_ordered_from_users_to_judgments() -> None:
    test = SimpleNamespace(assignment=SimpleNamespace(number=300, days=14.0))
    every = said(
        comparison(),
        test=(test, SimpleNamespace(decision="ship")),
        mixed=SimpleNamespace(decision="preferred", users=40),
        logged=off_policy(doubly_robust=(0.1, 0.2)),
    )
    assert list(every) == ["A/B test", "interleaving", "off-policy", "offline"]
    found = agreement(list(every.values()))
    assert (found.state, found.said.split(";")[0]) == (
        "look",
        "A/B test, interleaving and off-policy say better, offline worse",
    )
    rows = found.blocks[0].records()  # type: ignore[union-attr]
    assert [row["number"] for row in rows] == [300, 40, 100, 24]
    assert [row["says"] for row in rows] == ["better", "better", "better", "worse"]


def test_one_method_that_decides_is_no_agreement_and_two_are() -> None:
    better, open_, worse = (Evidence(says, says, 9, "users", 1.0, "") for says in ("better", "undecided", "worse"))
    assert [agreement(found).state for found in ([], [open_], [better, open_], [better, better], [worse, worse])] == [
        "undecided", "undecided", "undecided", "good", "good",
    ]  # fmt: skip
    assert agreement([open_, worse]).said == "Only worse decides: worse."
    assert agreement([better, worse]).state == "look"


def losing(ranks: dict[str, int]) -> dict[str, dict[str, float]]:
    """Return a run with the relevant document at these ranks, 1 where nothing else is given."""
    made = {}
    for topic in TOPICS:
        above = ranks.get(topic, 1) - 1
        made[topic] = {**{f"x{number}": 9.0 - number for number in range(above)}, "a": 1.0}
    return made


def test_topics_that_lose_most_come_first_and_five_are_shown() -> None:
    ranks = {"q03": 2, "q05": 4, "q07": 3, "q09": 5, "q11": 6, "q13": 8, "q15": 7}
    qrels = {topic: {"a": 1} for topic in TOPICS}
    scores = evaluate(qrels, {"old": losing({}), "new": losing(ranks)}, "RR")
    found = worst(scores, Topics.of({topic: f"text of {topic}" for topic in TOPICS}))
    rows = found.blocks[0].records()  # type: ignore[union-attr]
    assert [row["query_id"] for row in rows] == ["q13", "q15", "q11", "q09", "q05"]
    assert rows[0]["query"] == "text of q13"
    assert [row["baseline"] for row in rows] == [1.0] * 5
    assert [row["candidate"] for row in rows] == pytest.approx([1 / rank for rank in (8, 7, 6, 5, 4)])
    assert [row["difference"] for row in rows] == pytest.approx([1 / rank - 1 for rank in (8, 7, 6, 5, 4)])
    assert found.state == "look"
    assert found.said.startswith("7 of 24 topics lose RR")
    without = worst(scores, None)
    assert {row["query"] for row in without.blocks[0].records()} == {""}  # type: ignore[union-attr]
    reverse = worst(evaluate(qrels, {"old": losing(ranks), "new": losing({})}, "RR"), None)
    assert (reverse.state, reverse.blocks) == ("good", ())


def slice_row(first: str, better: str | None, n: int) -> Any:
    pair = SimpleNamespace(result=SimpleNamespace(n=n))
    return SimpleNamespace(slice=first, better=better, first="old", second="new", pair=pair)


@pytest.mark.parametrize(
    ("rows", "state", "text"),
    [
        ([("a", "new", 6), ("b", "old", 6)], "bad", "Improved: a. Paid: b."),
        ([("a", "new", 6), ("b", None, 6)], "good", "Improved: a."),
        ([("a", None, 6), ("b", None, 9)], "undecided", "No slice is shown to (2 slices tested)."),
        ([("a", "old", 5), ("b", "new", 5)], "not tested", "No slice has enough topics to be tested."),
        ([("a", "old", 5), ("b", "new", 6)], "good", "Improved: b."),
    ],
)
def test_slices_with_six_topics_improve_or_pay(rows: list[Any], state: str, text: str) -> None:
    every = [*(slice_row(*row) for row in rows), SimpleNamespace(slice="c", better="old", pair=None)]
    table = comparison().pair_table()
    found = slices(SimpleNamespace(of=lambda: every, overview=lambda: table))  # type: ignore[arg-type]
    assert (found.state, found.said) == (state, text)


@pytest.mark.parametrize(
    ("rows", "state", "relative", "text"),
    [
        ("old,2,4\nnew,3,4\n", "bad", [0.5, 0.0], "ms rises."),
        ("old,2,4\nnew,3,5\n", "bad", [0.5, 0.25], "ms and mb rise."),
        ("old,2,4\nnew,2,3\n", "good", [0.0, -0.25], "No cost rises."),
        ("old,0,4\nnew,2,4\n", "bad", [None, 0.0], "ms rises."),
    ],
)
def test_costs_that_rise_are_bad(tmp_path: Any, rows: str, state: str, relative: list[float | None], text: str) -> None:
    (tmp_path / "costs.csv").write_text(f"run,ms,mb\n{rows}")
    found = costs(tmp_path / "costs.csv", ("old", "new"), ("ms", "mb"))
    assert (found.state, found.said) == (state, text)
    rows_shown = found.blocks[0].records()  # type: ignore[union-attr]
    assert [row["relative"] for row in rows_shown] == pytest.approx(relative)
    assert [row["baseline"] for row in rows_shown] == [float(rows.split(",")[1]), 4.0]


def test_reviewed_shares_have_exact_intervals_and_six_are_needed(tmp_path: Any) -> None:
    path = tmp_path / "reviewed.csv"

    def reviewed(old: tuple[int, int], new: tuple[int, int]) -> Question:
        path.write_text(f"run,wrong,reviewed\nold,{old[0]},{old[1]}\nnew,{new[0]},{new[1]}\n")
        return false_positives(path, ("old", "new"))

    found = reviewed((30, 100), (5, 50))
    for row, (wrong, of) in zip(found.blocks[0].records(), ((30, 100), (5, 50)), strict=True):  # type: ignore[union-attr]
        expected = binomtest(wrong, of).proportion_ci(0.95)
        assert row["share"] == pytest.approx(wrong / of)
        assert tuple(row["share_ci"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
        assert (row["wrong"], row["reviewed"]) == (wrong, of)
    assert found.said == "5 of 50, was 30 of 100."
    assert [reviewed(*sides).state for sides in (((6, 6), (0, 6)), ((0, 6), (6, 6)), ((5, 5), (0, 6)))] == [
        "good", "bad", "not tested",
    ]  # fmt: skip
    assert [row["share_ci"] is None for row in reviewed((2, 2), (0, 3)).blocks[0].records()] == [True, False]  # type: ignore[union-attr]


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_topics_that_lost_all_results_are_named() -> None:
    qrels = {topic: {"a": 1} for topic in TOPICS}
    short = {topic: own for topic, own in losing({}).items() if topic not in {"q02", "q03"}}
    lost, same = (
        nothing_found(evaluate(qrels, {"old": old, "new": new}, "RR"))
        for old, new in ((losing({}), short), (short, losing({})))
    )
    assert (lost.state, lost.said) == ("bad", "Nothing is returned any more for q02 and q03.")
    assert same.state == "good"


def test_decisions_of_gate_users_lists_and_watch_are_states() -> None:
    table = comparison().pair_table()

    def holder(**values: Any) -> Any:
        return SimpleNamespace(table=lambda _: table, **values)

    gates = [gated(holder(status=status, verdict="v")).state for status in ("pass", "fail", "other")]
    assert gates == ["good", "bad", "undecided"]
    users = [
        decided_by_users(holder(), SimpleNamespace(decision=decision)).state  # type: ignore[arg-type]
        for decision in ("ship", "do not ship", "broken", "keep running")
    ]
    assert users == ["good", "bad", "bad", "undecided"]
    lists = [
        preferred(holder(decision=decision, other="new", reasons=("r.", "s.")))
        for decision in ("preferred", "not preferred", "keep running")
    ]
    assert [found.state for found in lists] == ["good", "bad", "undecided"]
    assert lists[0].said == "new: preferred. r. s."
    event = Event(date(2026, 3, 1), "new", deploy=True)
    past = Rollback(event, "roll back", (), 0.05)
    states = [
        rolled_back(holder(rollbacks=rollbacks)).state
        for rollbacks in (
            (),
            (past,),
            (past, Rollback(event, "keep", (), 0.05)),
            (past, Rollback(event, "keep watching", (), 0.05)),
        )
    ]
    assert states == ["blank", "bad", "good", "undecided"]


GATE, USERS, WATCH = "Does the gate let it pass?", "Do users fare better?", "Should it be taken back?"


@pytest.mark.parametrize(
    ("answers", "decision", "text"),
    [
        ({GATE: "bad", USERS: "good"}, "do not ship", f"Do not ship new. What decides is bad: {GATE}"),
        ({GATE: "bad", WATCH: "bad"}, "do not ship", f"Do not ship new. What decides is bad: {GATE} {WATCH}"),
        ({GATE: "good", USERS: "undecided"}, "ship", "new may ship: nothing that decides is bad."),
        ({GATE: "undecided"}, "undecided", "Undecided: neither gate, users nor watch decide."),
        ({"Is it better?": "bad", GATE: "good"}, "ship", "new may ship: nothing that decides is bad."),
        ({"Is it better?": "good"}, "undecided", "Undecided: neither gate, users nor watch decide."),
        (
            {GATE: "good", USERS: "blank", WATCH: "blank", "Is it better?": "not tested"},
            "ship",
            "new may ship: nothing that decides is bad. 2 of 4 questions are blank. 1 could not be tested.",
        ),
    ],
)
def test_gate_users_and_watch_decide_and_blanks_are_counted(answers: Any, decision: str, text: str) -> None:
    made = review(QRELS, {"old": FIRST}, {"new": FIRST}, "RR").made
    questions = tuple(Question(question, state, "s") for question, state in answers.items())
    change = Change("old", "new", questions, made)
    assert change.decision == decision
    assert change.blocks()[0].texts == (text,)  # type: ignore[union-attr]
    assert change.blocks()[1].texts == tuple(f"[{state}] {question} s" for question, state in answers.items())  # type: ignore[union-attr]
    assert change.facts() == {
        "baseline": "old",
        "candidate": "new",
        "decision": decision,
        "blank": [question for question, state in answers.items() if state == "blank"],
        "not_tested": [question for question, state in answers.items() if state == "not tested"],
    }


def test_sections_follow_what_is_known() -> None:
    alone, pair = (
        {question.question for question in review(QRELS, {"old": FIRST}, {"new": SECOND}, measures).questions}
        for measures in ("RR", "RR,R@10")
    )
    assert pair - alone == {"Do measures agree?"}
