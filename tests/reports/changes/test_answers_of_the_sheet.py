"""Each answer of the sheet at the limits of its rule, with counts and shares by hand and intervals of SciPy."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binomtest

from judged import evaluate
from judged.comparison import compare
from judged.errors import InputError
from judged.online.watch.config import Event
from judged.online.watch.watched import Rollback
from judged.reports.changes import review
from judged.reports.changes.questions import (
    Evidence,
    ReviewQuestion,
    answer_ab_test,
    answer_agreement,
    answer_better,
    answer_costs,
    answer_false_positives,
    answer_gate,
    answer_interleaving,
    answer_lost_topics,
    answer_measure_agreement,
    answer_rollback,
    answer_slices,
    answer_worst_topics,
    collect_evidence,
)
from judged.reports.changes.sheet import _DECISIVE, Change, _verdict

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [f"q{number:02}" for number in range(12)]
QRELS = {topic: {"r": 1} for topic in TOPICS}


def run(ranks: list[int], topics: list[str] = TOPICS) -> dict[str, list[str]]:
    """Return a run with the relevant document of each topic at these ranks; 0: the topic has no results."""
    return {topic: [*"abcdefgh"[: rank - 1], "r"] for topic, rank in zip(topics, ranks, strict=True) if rank}


def pair(first: list[int], second: list[int], n: int = 12) -> Any:
    qrels = {topic: QRELS[topic] for topic in TOPICS[:n]}
    runs = {"old": run(first[:n], TOPICS[:n]), "new": run(second[:n], TOPICS[:n])}
    return compare(qrels, runs, "RR")


def off_policy(users: int, **intervals: tuple[float, float] | None) -> Any:
    rows = [
        SimpleNamespace(estimator=name, difference_ci=intervals.get(name.replace(" ", "_")))
        for name in ("whole list", "cascade", "doubly robust", "items")
    ]
    return SimpleNamespace(users=users, rows=rows)


def ab_test(decision: str) -> Any:
    assignment = SimpleNamespace(total_users=321, days=14.0)
    return SimpleNamespace(assignment=assignment), SimpleNamespace(decision=decision)


def mixed(decision: str) -> Any:
    return SimpleNamespace(decision=decision, users=77)


ONES, TWOS = [1] * 12, [2] * 12


@pytest.mark.parametrize(
    ("decision", "says"),
    [("ship", "better"), ("do not ship", "worse"), ("keep running", "undecided"), ("invalid", "undecided")],
)
def test_the_ab_test_says_what_its_verdict_says(decision: str, says: str) -> None:
    first, last = collect_evidence(pair(ONES, ONES), ab_test(decision), None, None)
    assert (first.method, first.verdict, first.n, first.unit, first.days) == (
        "A/B test", says, 321, "users", 14.0,
    )  # fmt: skip
    assert (last.method, last.verdict, last.n, last.unit) == ("offline", "undecided", 12, "topics")
    assert np.isnan(last.days)


@pytest.mark.parametrize(
    ("decision", "says"), [("preferred", "better"), ("not preferred", "worse"), ("no preference", "undecided")]
)
def test_interleaving_says_what_it_prefers(decision: str, says: str) -> None:
    first, _ = collect_evidence(pair(ONES, ONES), None, mixed(decision), None)
    assert (first.method, first.verdict, first.n, first.unit) == ("interleaving", says, 77, "users")
    assert np.isnan(first.days)


@pytest.mark.parametrize(
    ("users", "intervals", "says"),
    [
        (6, {"doubly_robust": (0.1, 0.2)}, "better"),
        (5, {"doubly_robust": (0.1, 0.2)}, "undecided"),
        (6, {"doubly_robust": (-0.2, -0.1)}, "worse"),
        (6, {"doubly_robust": (0.0, 0.2)}, "undecided"),
        (6, {"doubly_robust": (-0.2, 0.0)}, "undecided"),
        (6, {"doubly_robust": (-0.1, 0.2)}, "undecided"),
        (6, {"cascade": (-0.2, -0.1), "whole_list": (0.1, 0.2)}, "worse"),
        (6, {"whole_list": (0.1, 0.2)}, "better"),
        (6, {"items": (0.1, 0.2)}, "undecided"),  # its propensities are those of single positions
        (6, {}, "undecided"),
    ],
)
def test_off_policy_takes_the_first_estimator_with_an_interval(users: int, intervals: Any, says: str) -> None:
    first, _ = collect_evidence(pair(ONES, ONES), None, None, off_policy(users, **intervals))
    assert (first.method, first.verdict, first.n, first.unit) == ("off-policy", says, users, "users")
    assert np.isnan(first.days)


@pytest.mark.parametrize(
    ("first", "second", "n", "says", "state"),
    [
        (TWOS, ONES, 12, "better", "good"),
        (ONES, TWOS, 12, "worse", "bad"),
        (ONES, ONES, 12, "undecided", "undecided"),
        (TWOS, ONES, 6, "better", "good"),  # p = 2 / 64
        (TWOS, ONES, 5, "undecided", "not tested"),
    ],
)
def test_judgments_decide_from_six_topics(first: list[int], second: list[int], n: int, says: str, state: str) -> None:
    compared = pair(first, second, n)
    (only,) = collect_evidence(compared, None, None, None)
    assert (only.method, only.verdict, only.n, only.unit) == ("offline", says, n, "topics")
    assert only.quantity.startswith("RR from relevance judgments")
    question = answer_better(compared)
    assert question.state == state
    expected = "Not enough data: 5 topics, at least 6 are required. new - old: +0.5000."
    assert question.finding == (expected if n == 5 else compared.measures[0].pairs[0].sentence)


def test_methods_are_listed_from_users_to_judgments() -> None:
    evidence = list(
        collect_evidence(pair(TWOS, ONES), ab_test("ship"), mixed("preferred"), off_policy(9, cascade=(0.1, 0.2)))
    )
    assert [record.method for record in evidence] == ["A/B test", "interleaving", "off-policy", "offline"]
    question = answer_agreement(evidence)
    assert (question.state, question.finding) == (
        "good",
        (
            "All conclusive evaluations agree that the candidate is better: A/B test, interleaving, off-policy and"
            " offline."
        ),
    )
    (table,) = question.blocks
    rows = table.records()  # type: ignore[attr-defined]
    assert [(row["method"], row["verdict"], row["n"], row["unit"]) for row in rows] == [
        ("A/B test", "better", 321, "users"), ("interleaving", "better", 77, "users"),
        ("off-policy", "better", 9, "users"), ("offline", "better", 12, "topics"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("says", "state", "finding"),
    [
        ("uuu", "undecided", "No evaluation method is conclusive."),
        ("ubu", "undecided", "Only one evaluation method (m1) is conclusive: the candidate is better."),
        ("wuu", "undecided", "Only one evaluation method (m0) is conclusive: the candidate is worse."),
        ("wuw", "good", "All conclusive evaluations agree that the candidate is worse: m0 and m2."),
        (
            "ubw",
            "inspect",
            (
                "The evaluation methods disagree: the candidate is better in m1, and worse in m2. Of these evaluation"
                " methods, m1 measures the behavior of users most directly."
            ),
        ),
        (
            "wbb",
            "inspect",
            (
                "The evaluation methods disagree: the candidate is better in m1 and m2, and worse in m0. Of these"
                " evaluation methods, m0 measures the behavior of users most directly."
            ),
        ),
    ],
)
def test_two_methods_that_decide_agree_or_not(says: str, state: str, finding: str) -> None:
    words: dict[str, Any] = {"u": "undecided", "b": "better", "w": "worse"}
    evidence = [Evidence(f"m{number}", words[letter], 10, "users", 1.0, "x") for number, letter in enumerate(says)]
    question = answer_agreement(evidence)
    assert (question.state, question.finding) == (state, finding)


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_the_five_topics_that_lose_most_are_listed() -> None:
    old, new = [1] * 8 + [2, 0, 1, 1], [2, 4, 3, 5, 8, 1, 4, 1, 1, 1, 1, 0]
    scores = evaluate(QRELS, {"old": run(old), "new": run(new)}, "RR")
    question = answer_worst_topics(scores, None)
    # q11 loses 1, q04 7/8, q03 4/5, q01 and q06 3/4, q02 2/3, q00 1/2; q08 and q09 gain
    assert question.state == "inspect"
    assert question.finding == "On 7 of 12 topics, RR is worse. The largest losses are on q11, q04, q03, q01 and q06."
    rows = question.blocks[0].records()  # type: ignore[attr-defined]
    assert [row["query_id"] for row in rows] == ["q11", "q04", "q03", "q01", "q06"]
    assert [row["baseline"] for row in rows] == [1.0] * 5
    assert [row["candidate"] for row in rows] == [0.0, 1 / 8, 1 / 5, 1 / 4, 1 / 4]
    assert [row["difference"] for row in rows] == pytest.approx([-1.0, -7 / 8, -4 / 5, -3 / 4, -3 / 4])
    assert [row["query"] for row in rows] == [""] * 5
    complete: Any = question.blocks[1]
    assert (complete.name, complete.folded) == ("losses", True)
    assert [row["query_id"] for row in complete.records()] == ["q11", "q04", "q03", "q01", "q06", "q02", "q00"]
    lost = answer_lost_topics(scores)
    assert (lost.state, lost.finding) == ("bad", "The candidate returns no results for q11.")
    back = evaluate(QRELS, {"old": run(new), "new": run(old)}, "RR")
    assert answer_lost_topics(back).finding == "The candidate returns no results for q09."
    better = evaluate(QRELS, {"old": run(TWOS), "new": run(ONES)}, "RR")
    assert (answer_worst_topics(better, None).state, answer_worst_topics(better, None).finding) == (
        "good",
        "RR is worse on no topic.",
    )
    assert (answer_lost_topics(better).state, answer_lost_topics(better).finding) == (
        "good",
        "The candidate returns results for every topic for which the baseline returns results.",
    )


@pytest.mark.parametrize(
    ("rows", "state", "finding"),
    [
        ([("a", 6, "new"), ("b", 6, "old"), ("c", 6, None)], "bad", "Improved: a. Worse: b."),
        ([("a", 6, "new"), ("b", 5, "old"), ("c", 6, "new")], "good", "Improved: a and c."),
        ([("a", 5, "new"), ("b", 6, "old"), ("c", 0, None)], "bad", "Worse: b."),
        (
            [("a", 6, None), ("b", 7, None), ("c", 5, "old")],
            "undecided",
            "No significant difference on any slice (2 slices tested).",
        ),
        (
            [("a", 5, "new"), ("b", 5, "old")],
            "not tested",
            "No slice was tested, because all slices have too few topics.",
        ),
    ],
)
def test_slices_of_six_topics_improve_or_pay(rows: list[tuple[str, int, str | None]], state: str, finding: str) -> None:
    tests = [
        SimpleNamespace(
            slice=name, measure="RR", first="old", second="new", better=better, difference=0.1, interval=(0.0, 0.2),
            pair=SimpleNamespace(result=SimpleNamespace(n=n, level=0.95)) if n else None,
        )
        for name, n, better in rows
    ]  # fmt: skip
    block = review(QRELS, {"old": run(ONES)}, {"new": run(TWOS)}).table("questions")
    slice_comparison: Any = SimpleNamespace(rows_of=lambda: tests, overview=lambda: block)
    assert (answer_slices(slice_comparison).state, answer_slices(slice_comparison).finding) == (state, finding)


@pytest.mark.parametrize(
    ("sides", "state"), [((1, -1), "inspect"), ((1, 1), "good"), ((0, -1), "good"), ((0, 0), "good")]
)
def test_measures_disagree_where_they_prefer_different_runs(sides: tuple[int, int], state: str) -> None:
    disagreement: Any = SimpleNamespace(
        means=[SimpleNamespace(side=side, measure="RR") for side in sides], sentences=("First.", "Second.")
    )
    assert (answer_measure_agreement(disagreement).state, answer_measure_agreement(disagreement).finding) == (
        state,
        "First.",
    )


@pytest.mark.parametrize(
    ("rows", "state", "finding"),
    [
        (
            "old,2,4,0\nnew,2,3,0",
            "good",
            "No cost has a higher mean for the candidate (no significance test was done).",
        ),
        (
            "old,2,4,0\nnew,2,5,0",
            "bad",
            "Costs with a higher mean for the candidate (no significance test was done): mb.",
        ),
        (
            "old,1,4,0\nold,3,4,0\nnew,3,5,1",
            "bad",
            "Costs with a higher mean for the candidate (no significance test was done): ms, mb and eur.",
        ),
    ],
)
def test_costs_that_rise_are_named(tmp_path: Path, rows: str, state: str, finding: str) -> None:
    (tmp_path / "costs.csv").write_text(f"run,ms,mb,eur\n{rows}\n")
    question = answer_costs(tmp_path / "costs.csv", ("old", "new"), ("ms", "mb", "eur"))
    assert (question.state, question.finding) == (state, finding)
    table = question.blocks[0].records()  # type: ignore[attr-defined]
    assert [row["cost"] for row in table] == ["ms", "mb", "eur"]
    assert [row["baseline"] for row in table] == [2.0, 4.0, 0.0]
    new = [float(number) for number in rows.splitlines()[-1].split(",")[1:]]
    assert [row["candidate"] for row in table] == new
    assert [row["relative"] for row in table][:2] == pytest.approx([new[0] / 2 - 1, new[1] / 4 - 1])
    assert table[2]["relative"] is None  # the baseline costs nothing


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ((6, 6), (0, 6), "good"),
        ((0, 6), (6, 6), "bad"),
        ((0, 5), (5, 5), "not tested"),
        ((0, 100), (5, 5), "not tested"),
        ((3, 6), (3, 6), "undecided"),
        ((10, 40), (24, 40), "bad"),  # [12.7%, 41.2%] and [43.3%, 75.1%]
        ((10, 40), (22, 40), "undecided"),  # the means differ, p = 0.012, but the intervals overlap
        ((22, 40), (10, 40), "undecided"),
        ((24, 40), (10, 40), "good"),
    ],
)
def test_wrong_results_in_review(tmp_path: Path, old: tuple[int, int], new: tuple[int, int], state: str) -> None:
    """Intervals of Clopper and Pearson by SciPy."""
    rows = "\n".join(f"{name},{wrong},{of}" for name, (wrong, of) in (("baseline", old), ("new", new)))
    (tmp_path / "reviewed.csv").write_text(f"run,wrong,reviewed\n{rows}\n")
    question = answer_false_positives(tmp_path / "reviewed.csv", ("old", "new"))
    assert question.state == state
    assert question.finding.startswith(
        f"In the manual review, {new[0]} of {new[1]} results of the candidate are wrong, and {old[0]} of"
        f" {old[1]} results of the baseline."
    )
    assert question.finding.endswith("5 reviewed results, at least 6 are required.") == (state == "not tested")
    table = question.blocks[0].records()  # type: ignore[attr-defined]
    for row, name, (wrong, of) in zip(table, ("old", "new"), (old, new), strict=True):
        assert (row["run"], row["wrong"], row["reviewed"], row["share"]) == (name, wrong, of, wrong / of)
        interval = binomtest(wrong, of).proportion_ci(0.95, "exact")
        assert row["share_ci"] == pytest.approx([interval.low, interval.high])


@pytest.mark.parametrize(("reviewed", "has_interval"), [(2, False), (3, True)])
def test_a_share_of_fewer_than_three_results_has_no_interval(tmp_path: Path, reviewed: int, has_interval: bool) -> None:
    (tmp_path / "reviewed.csv").write_text(f"run,wrong,reviewed\nold,1,{reviewed}\nnew,0,9\n")
    rows = answer_false_positives(tmp_path / "reviewed.csv", ("old", "new")).blocks[0].records()  # type: ignore[attr-defined]
    assert (rows[0]["share_ci"] is not None) == has_interval
    assert rows[1]["share_ci"] is not None


@pytest.mark.parametrize(
    ("make", "states"),
    [
        (lambda decision, block: answer_gate(SimpleNamespace(status=decision, verdict="v", table=block, parts=())),  # type: ignore[arg-type]
         {"pass": "good", "fail": "bad", "error": "undecided"}),
        (lambda decision, block: answer_ab_test(  # type: ignore[arg-type]
            SimpleNamespace(table=block, headline_of=lambda _: None), SimpleNamespace(decision=decision)),  # type: ignore[arg-type]
         {"ship": "good", "do not ship": "bad", "invalid": "bad", "keep running": "undecided"}),
        (lambda decision, block: answer_interleaving(  # type: ignore[arg-type]
            SimpleNamespace(other="new", decision=decision, reasons=("a", "b"), table=block, headline=None)),
         {"preferred": "good", "not preferred": "bad", "no preference": "undecided"}),
        (lambda decision, block: answer_rollback(SimpleNamespace(table=block, rollbacks=(  # type: ignore[arg-type]
            Rollback(Event(date(2026, 3, 1), "older", deploy=True), "roll back", (), 0.05),
            Rollback(Event(date(2026, 3, 8), "newer", deploy=True), decision, (), 0.05)))),
         {"roll back": "bad", "keep": "good", "keep watching": "undecided", "no data": "undecided"}),
    ],
)  # fmt: skip
def test_decisions_of_other_answers_become_states(make: Any, states: dict[str, str]) -> None:
    block = review(QRELS, {"old": run(ONES)}, {"new": run(TWOS)}).table("questions")
    questions_by_decision = {decision: make(decision, lambda _: block) for decision in states}
    assert {decision: question.state for decision, question in questions_by_decision.items()} == states
    assert all(len(question.blocks) == 1 for question in questions_by_decision.values())


def test_a_watch_without_a_deployment_leaves_its_question_blank() -> None:
    watch: Any = SimpleNamespace(rollbacks=())
    assert answer_rollback(watch).state == "no data"


def change(*states: str) -> Change:
    """Return a sheet with these states of the gate, users, and deployment, and of two other questions."""
    rows = tuple(
        ReviewQuestion(name, state, "s")  # type: ignore[arg-type]
        for name, state in zip(
            (*_DECISIVE, "Is the candidate better?", "Does the change fix the target failure?"),
            states,
            strict=True,
        )
    )
    provenance: Any = None
    return Change("old", "new", rows, provenance)


@pytest.mark.parametrize(
    ("states", "decision", "finding"),
    [
        (("good", "good", "bad", "good", "bad"), "do not ship",
         'Do not ship new. Question with an unfavorable answer: "Should the deployment be rolled back?".'),
        (("bad", "bad", "no data", "good", "not tested"), "do not ship",
         ('Do not ship new. Questions with an unfavorable answer: "Does the gate pass?", "Is the candidate better in'
         ' the A/B test?".'
         " 1 of 5 questions have no data. 1 question could not be tested.")),
        (("good", "undecided", "no data", "bad", "bad"), "ship",
         ("Ship new: the gate, the A/B test, and 'judged watch' give no unfavorable result."
          " 1 of 5 questions have no data.")),
        (("no data", "no data", "no data", "bad", "not tested"), "undecided",
         ("Undecided: neither the gate, the A/B test, nor 'judged watch' gives a decision. 3 of 5 questions"
          " have no data. 1 question could not be tested.")),
        (("undecided", "undecided", "undecided", "good", "good"), "undecided",
         "Undecided: neither the gate, the A/B test, nor 'judged watch' gives a decision."),
    ],
)  # fmt: skip
def test_gate_users_and_deployment_decide(states: tuple[str, ...], decision: str, finding: str) -> None:
    review_answer = change(*states)
    facts = review_answer.facts()
    assert (review_answer.decision, facts["decision"], review_answer.title) == (
        decision,
        decision,
        "Change from old to new",
    )
    assert (facts["baseline"], facts["candidate"]) == ("old", "new")
    names = [question.question for question in review_answer.questions]
    assert facts["no_data"] == [name for name, state in zip(names, states, strict=True) if state == "no data"]
    assert facts["not_tested"] == [name for name, state in zip(names, states, strict=True) if state == "not tested"]
    summary, sheet, table = review_answer.blocks()
    assert summary.texts == (finding,)  # type: ignore[attr-defined]
    assert sheet.texts == tuple(f"{name} [{state}] s" for name, state in zip(names, states, strict=True))  # type: ignore[attr-defined]
    assert [row["state"] for row in table.records()] == list(states)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arms", "arm", "names", "expected"),
    [
        (("old", "new", "x"), None, ("old", "new"), "new"),
        (("old", "x", "new"), None, ("old", "new"), "new"),
        (("old", "x", "new"), "x", ("old", "new"), "x"),
        (("control", "x", "y"), None, ("old", "new"), "x"),
        (("control", "x", "y"), "y", ("old", "new"), "y"),
        (("new", "old"), None, ("old", "new"), "must be the baseline, got new"),
        (("x", "old", "new"), None, ("old", "new"), "must be the baseline, got x"),
        (("control", "x"), "control", ("old", "new"), "must be the baseline, got control"),
        (("old", "x"), "y", ("old", "new"), "unknown arm: 'y'"),
    ],
)
def test_the_arm_of_the_candidate(arms: tuple[str, ...], arm: str | None, names: Any, expected: str) -> None:
    test: Any = SimpleNamespace(
        assignment=SimpleNamespace(arms=arms), verdicts=[SimpleNamespace(arm=name) for name in arms[1:]]
    )
    if " " in expected:
        with pytest.raises(InputError, match=expected):
            _verdict(test, arm, names)
    else:
        assert _verdict(test, arm, names).arm == expected
