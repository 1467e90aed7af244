"""Tables of the sheet as people and data have them, and which questions are asked of what is given."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from judged import evaluate
from judged.data.topics import Topics
from judged.errors import InputError
from judged.reports.changes import review, sheet
from judged.reports.changes.questions import (
    Evidence,
    answer_agreement,
    answer_better,
    answer_costs,
    answer_false_positives,
    answer_gate,
    answer_interleaving,
    answer_measure_agreement,
    answer_rollback,
    answer_slices,
    answer_worst_topics,
)
from judged.reports.changes.questions import answer_ab_test as decided_by_users
from reports.changes.test_answers_of_the_sheet import ONES, QRELS, TOPICS, TWOS, pair, run

if TYPE_CHECKING:
    from pathlib import Path


def cells(table: Any) -> list[tuple[str, ...]]:
    """Return heading and rows as people see them."""
    grid = table.grid()
    return [tuple(grid.header), *(tuple(map(str, row)) for row in grid.rows)]


def test_what_each_method_says() -> None:
    evidence = [Evidence("A/B test", "better", 321, "users", 14.0, "users"),
             Evidence("offline", "undecided", 12, "topics", math.nan, "RR")]  # fmt: skip
    (table,) = answer_agreement(evidence).blocks
    assert (table.name, table.title, table.labels) == ("evidence", "Verdict of each evaluation method", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("method", "verdict", "n", "unit", "days", "quantity"), ("A/B test", "better", "321", "users", "14", "users"),
        ("offline", "undecided", "12", "topics", "-", "RR"),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_topics_that_lose_most_with_their_texts() -> None:
    """Of 60 characters a text is shown, of 61 the first 59."""
    new = [1, 2, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    scores = evaluate(QRELS, {"old": run([1] * 12), "new": run(new)}, "RR")
    texts = dict.fromkeys(TOPICS, "x" * 61) | {"q02": "y" * 60}
    (table,) = answer_worst_topics(scores, Topics.of(texts)).blocks
    assert (table.name, table.title, table.labels) == ("losses", "Topics with a loss of RR", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("topic", "query", "old", "new", "difference"), ("q02", "y" * 60, "1.0000", "0.2500", "-0.7500"),
        ("q01", "x" * 59 + "…", "1.0000", "0.5000", "-0.5000"),
    ]  # fmt: skip
    (table,) = answer_worst_topics(scores, Topics.of({"q01": "one"})).blocks
    assert [row["query"] for row in table.records()] == ["", "one"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("better", "ids"), [(True, ["q1"]), (False, ["q2", "q0"]), (None, ["q1"])])
def test_of_some_measures_less_is_better(better: bool | None, ids: list[str]) -> None:
    import numpy as np

    scores: Any = SimpleNamespace(
        values=np.array([[[0.1, 0.5, 0.2, 0.3]], [[0.2, 0.4, 0.9, 0.3]]]), measure_names=("M",),
        measures=[SimpleNamespace(properties=SimpleNamespace(higher_is_better=better))],
        query_ids=("q0", "q1", "q2", "q3"), run_names=("old", "new"),
    )  # fmt: skip
    question = answer_worst_topics(scores, None)
    assert [row["query_id"] for row in question.blocks[0].records()] == ids  # type: ignore[attr-defined]
    assert question.finding.startswith(f"On {len(ids)} of 4 topics, M is worse.")


def test_tables_of_costs_and_of_reviewed_results(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("run,ms,mb,eur\nbaseline,2,4,0\nbaseline,4,4,0\nnew,3.5,5,1\n")
    question = answer_costs(tmp_path / "costs.csv", ("old", "new"), ["ms", "mb", "eur"])
    (table,) = question.blocks
    assert (table.name, table.labels) == ("costs", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("cost", "baseline", "candidate", "change"), ("ms", "3.0000", "3.5000", "17%"),
        ("mb", "4.0000", "5.0000", "25%"), ("eur", "0.0000", "1.0000", "-"),
    ]  # fmt: skip
    for rows, problem in (("old,2,4,0", "column ms and mb"), ("baseline,2,,1\ncandidate,2,3,1", "mb")):
        (tmp_path / "costs.csv").write_text(f"run,ms,mb,eur\n{rows}\n")
        with pytest.raises(InputError, match=problem):
            answer_costs(tmp_path / "costs.csv", ("old", "new"), ["ms", "mb"])
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,1,2\nold,2,4\ncandidate,0,2\n")
    question = answer_false_positives(tmp_path / "reviewed.csv", ("old", "new"))
    (table,) = question.blocks
    assert (table.name, table.labels) == ("false_positives", 1)  # type: ignore[attr-defined]
    # Clopper and Pearson of 3 of 6; of 2 results there is no interval
    assert cells(table) == [
        ("run", "wrong", "reviewed", "share"), ("old", "3", "6", "50% [12%, 88%]"), ("new", "0", "2", "0%"),
    ]  # fmt: skip
    assert question.state == "not tested"
    assert question.finding == (
        "In the manual review, 0 of 2 results of the candidate are wrong, and 3 of 6 results of the baseline. Not"
        " enough data: 2 reviewed results, at least 6 are required."
    )
    for rows in ("old,0,0\nnew,1,3", "old,1,3\nnew,0,0", "old,4,3\nnew,1,3", "old,1,3\nnew,4,3", "old,1,3"):
        (tmp_path / "reviewed.csv").write_text(f"run,wrong,reviewed\n{rows}\n")
        with pytest.raises(InputError, match="`wrong` must be from 0 to `reviewed`"):
            answer_false_positives(tmp_path / "reviewed.csv", ("old", "new"))


def test_tables_of_other_answers_are_quoted() -> None:
    """Under a name and a title of their own, for people alone, as data have them in the answer that they are of."""
    table = pair(ONES, TWOS).pair_table()
    table_names: list[str] = []

    def holder(**values: Any) -> Any:
        def found(name: str) -> Any:
            table_names.append(name)
            return table

        shared = {"overview": lambda: table, "rows_of": list, "parts": (), "headline_of": lambda _: None}
        return SimpleNamespace(table=found, headline=None, **shared, **values)

    last = SimpleNamespace(decision="keep", headline=None)
    questions = [
        answer_gate(holder(status="pass", verdict="Passed.")),
        decided_by_users(holder(), SimpleNamespace(decision="ship")),  # type: ignore[arg-type]
        answer_interleaving(holder(other="new", decision="preferred", reasons=("Why.", "How."))),
        answer_rollback(holder(rollbacks=(SimpleNamespace(decision="roll back"), last))),
        answer_slices(holder()),
        answer_better(pair(ONES, TWOS)),
    ]
    assert table_names == ["checks", "differences", "preferences", "deployments"]
    assert [(record.state, record.blocks[0].name, record.blocks[0].title) for record in questions] == [
        ("good", "gate", "Gate"), ("good", "users", "Metrics of the A/B test"),
        ("good", "preferences", "Preferences in interleaved lists"), ("good", "deployments", "Deployments"),
        ("not tested", "slices", "Slices"), ("bad", "measures", "All measures"),
    ]  # fmt: skip
    assert {record.blocks[0].only for record in questions} == {"people"}  # type: ignore[attr-defined]
    assert questions[0].finding == "Passed."
    assert questions[2].finding == "new: preferred. Why. How."
    assert questions[3].finding == str(last)
    blank = answer_rollback(holder(rollbacks=()))
    assert (blank.state, blank.blocks) == ("no data", ())
    none: Any = SimpleNamespace(means=2 * [SimpleNamespace(side=-1, measure="RR")], sentences=())
    assert (answer_measure_agreement(none).state, answer_measure_agreement(none).finding) == ("good", "")


def test_the_state_of_a_pair_needs_a_verdict_on_its_own_number_of_topics() -> None:
    compared = pair(TWOS, ONES, 12)
    first = compared.measures[0].pairs[0]
    few = replace(first, result=replace(first.result, n=5))
    other: Any = SimpleNamespace(
        measures=[replace(compared.measures[0], pairs=(few,)), compared.measures[0]], pair_table=compared.pair_table
    )
    question = answer_better(other)
    assert question.state == "not tested"
    assert question.finding == "Not enough data: 5 topics, at least 6 are required. new - old: +0.5000."


QUESTIONS = {
    "Is the candidate better?": {}, "Which topics lost most?": {}, "Does the candidate return results"
    " wherever the baseline returns results?": {},
    "Do the measures prefer the same run?": {"measures": "RR,R@10"},
    "Which slices improved or got worse?": {
        "attributes": {topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(TOPICS)}
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "options_given", [(), ("Do the measures prefer the same run?",), ("Which slices improved or got worse?",)]
)
def test_questions_follow_what_is_given(options_given: tuple[str, ...]) -> None:
    review_input: dict[str, Any] = {"measures": "RR"}
    for question in options_given:
        review_input |= QUESTIONS[question]
    change = review(QRELS, {"old": run(ONES)}, {"new": run(TWOS)}, review_input.pop("measures"), **review_input)
    answered = [record.question for record in change.questions if record.state != "no data"]
    expected = ["Is the candidate better?", "Which topics lost most?", *sorted(options_given, reverse=True),
                "Does the candidate return results wherever the baseline returns results?"]  # fmt: skip
    assert answered == expected
    blank = {record.question for record in change.questions if record.state == "no data"}
    assert blank == {*sheet._INPUT_OPTIONS} - {*answered}
    names = [block.name for block in change.blocks()]
    assert names[:3] == ["sentences", "answers", "questions"]
    table: Any = change.blocks()[2]
    assert table.only == "data"
    assert [tuple(row.values()) for row in table.records()] == [
        (record.question, record.state, record.finding) for record in change.questions
    ]
    assert (change.baseline, change.candidate) == ("old", "new")


def test_what_users_did_is_asked_in_order() -> None:
    compared, run_names = pair(TWOS, ONES), ("old", "new")
    table = compared.pair_table()

    def holder(**values: Any) -> Any:
        return SimpleNamespace(table=lambda _: table, headline=None, headline_of=lambda _: None, **values)

    verdict = SimpleNamespace(arm="new", decision="ship")
    test = holder(assignment=SimpleNamespace(arms=("old", "new"), total_users=9, days=2.0), verdicts=[verdict])
    lists = holder(baseline="old", other="new", decision="not preferred", reasons=(), users=8)
    log = SimpleNamespace(users=7, rows=[SimpleNamespace(estimator=name, difference_ci=None) for name in
                                         ("doubly robust", "cascade", "whole list")])  # fmt: skip
    watch = holder(rollbacks=())

    def names(*online: Any) -> list[str]:
        return [row.question for row in sheet._answer_online(compared, run_names, *online)]

    users, one_list = "Is the candidate better in the A/B test?", "Do users prefer the candidate in interleaved lists?"
    agree, back = "Do the offline and the online evaluation agree?", "Should the deployment be rolled back?"
    assert names(None, None, None, None, None) == []
    assert names(test, None, None, None, None) == [users, agree]
    assert names(None, None, lists, None, None) == [one_list, agree]
    assert names(None, None, None, log, None) == [agree]
    assert names(test, "new", lists, log, watch) == [users, one_list, agree, back]
    questions = list(sheet._answer_online(compared, run_names, test, None, lists, log, watch))
    assert [row.state for row in questions] == ["good", "bad", "inspect", "no data"]
    assert questions[2].finding == (
        "The evaluation methods disagree: the candidate is better in A/B test and offline, and worse in interleaving."
        " Of these evaluation methods, A/B test measures the behavior of users most directly."
    )
    for odd in ({"baseline": "new"}, {"other": "old"}):
        with pytest.raises(InputError, match="the baseline of the interleaving must be"):
            list(
                sheet._answer_online(
                    compared, run_names, None, None, SimpleNamespace(**{**vars(lists), **odd}), None, None
                )
            )
    other: Any = SimpleNamespace(**{**vars(lists), "baseline": "a", "other": "b"})  # rankers with names of their own
    assert len(list(sheet._answer_online(compared, run_names, None, None, other, None, None))) == 2


def test_a_comparison_of_several_candidates_decides(tmp_path: Path) -> None:
    """Its pair is taken, and the gate, the seed, the costs, and the reviewed results of this change."""
    other = pair(TWOS, ONES)
    (tmp_path / "costs.csv").write_text("run,ms\nold,2\nnew,3\n")
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,9,9\nnew,0,9\n")
    checks = {"check": [{"measure": "RR", "margin": 0.1}]}
    change = review(
        QRELS, {"old": run(ONES)}, {"new": run(TWOS)}, "RR", comparison=other, config=checks,
        costs_of=(str(tmp_path / "costs.csv"), iter(["ms"])), reviewed=str(tmp_path / "reviewed.csv"),
    )  # fmt: skip
    states = {question.question: question.state for question in change.questions if question.state != "no data"}
    assert states == {
        "Is the candidate better?": "good", "Which topics lost most?": "inspect", ("Does the candidate return results"
        " wherever the baseline returns results?"): "good",
        ("Are fewer results wrong in the manual"
         " review?"): "good", "Did any cost increase?": "bad", "Does the gate pass?": "bad",
    }  # fmt: skip
    assert change.decision == "do not ship"
