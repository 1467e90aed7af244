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
    agreement,
    costs,
    disagreement,
    false_positives,
    gated,
    is_better,
    preferred,
    rolled_back,
    slices,
    worst,
)
from judged.reports.changes.questions import tested as decided_by_users
from reports.changes.test_answers_of_the_sheet import ONES, QRELS, TOPICS, TWOS, pair, run

if TYPE_CHECKING:
    from pathlib import Path


def cells(table: Any) -> list[tuple[str, ...]]:
    """Return heading and rows as people see them."""
    grid = table.grid()
    return [tuple(grid.header), *(tuple(map(str, row)) for row in grid.rows)]


def test_what_each_method_says() -> None:
    found = [Evidence("A/B test", "better", 321, "users", 14.0, "users"),
             Evidence("offline", "undecided", 12, "topics", math.nan, "RR")]  # fmt: skip
    (table,) = agreement(found).blocks
    assert (table.name, table.title, table.labels) == ("evidence", "What each method says", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("method", "says", "took", "of", "days", "about"), ("A/B test", "better", "321", "users", "14", "users"),
        ("offline", "undecided", "12", "topics", "-", "RR"),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_topics_that_lose_most_with_their_texts() -> None:
    """Of 60 characters a text is shown, of 61 the first 59."""
    new = [1, 2, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    scores = evaluate(QRELS, {"old": run([1] * 12), "new": run(new)}, "RR")
    texts = dict.fromkeys(TOPICS, "x" * 61) | {"q02": "y" * 60}
    (table,) = worst(scores, Topics.of(texts)).blocks
    assert (table.name, table.title, table.labels) == ("losses", "Topics that lose most RR", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("topic", "query", "old", "new", "difference"), ("q02", "y" * 60, "1.0000", "0.2500", "-0.7500"),
        ("q01", "x" * 59 + "…", "1.0000", "0.5000", "-0.5000"),
    ]  # fmt: skip
    (table,) = worst(scores, Topics.of({"q01": "one"})).blocks
    assert [row["query"] for row in table.records()] == ["", "one"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("better", "ids"), [(True, ["q1"]), (False, ["q2", "q0"]), (None, ["q1"])])
def test_of_some_measures_less_is_better(better: bool | None, ids: list[str]) -> None:
    import numpy as np

    scores: Any = SimpleNamespace(
        values=np.array([[[0.1, 0.5, 0.2, 0.3]], [[0.2, 0.4, 0.9, 0.3]]]), measure_names=("M",),
        measures=[SimpleNamespace(properties=SimpleNamespace(higher_is_better=better))],
        query_ids=("q0", "q1", "q2", "q3"), run_names=("old", "new"),
    )  # fmt: skip
    found = worst(scores, None)
    assert [row["query_id"] for row in found.blocks[0].records()] == ids  # type: ignore[attr-defined]
    assert found.said.startswith(f"{len(ids)} of 4 topics lose M")


def test_tables_of_costs_and_of_reviewed_results(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("run,ms,mb,eur\nbaseline,2,4,0\nbaseline,4,4,0\nnew,3.5,5,1\n")
    question = costs(tmp_path / "costs.csv", ("old", "new"), ["ms", "mb", "eur"])
    (table,) = question.blocks
    assert (table.name, table.labels) == ("costs", 1)  # type: ignore[attr-defined]
    assert cells(table) == [
        ("cost", "baseline", "candidate", "change"), ("ms", "3.0000", "3.5000", "17%"),
        ("mb", "4.0000", "5.0000", "25%"), ("eur", "0.0000", "1.0000", "-"),
    ]  # fmt: skip
    for rows, problem in (("old,2,4,0", "ms and mb of a run is not there"), ("baseline,2,,1\ncandidate,2,3,1", "mb")):
        (tmp_path / "costs.csv").write_text(f"run,ms,mb,eur\n{rows}\n")
        with pytest.raises(InputError, match=problem):
            costs(tmp_path / "costs.csv", ("old", "new"), ["ms", "mb"])
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,1,2\nold,2,4\ncandidate,0,2\n")
    question = false_positives(tmp_path / "reviewed.csv", ("old", "new"))
    (table,) = question.blocks
    assert (table.name, table.labels) == ("false_positives", 1)  # type: ignore[attr-defined]
    # Clopper and Pearson of 3 of 6; of 2 results there is no interval
    assert cells(table) == [
        ("run", "wrong", "reviewed", "share"), ("old", "3", "6", "50% [12%, 88%]"), ("new", "0", "2", "0%"),
    ]  # fmt: skip
    assert question.state == "not tested"
    assert question.said == "0 of 2, was 3 of 6. Not enough data: 2 reviewed results, at least 6 are required."
    for rows in ("old,0,0\nnew,1,3", "old,1,3\nnew,0,0", "old,4,3\nnew,1,3", "old,1,3\nnew,4,3", "old,1,3"):
        (tmp_path / "reviewed.csv").write_text(f"run,wrong,reviewed\n{rows}\n")
        with pytest.raises(InputError, match="more wrong than reviewed"):
            false_positives(tmp_path / "reviewed.csv", ("old", "new"))


def test_tables_of_other_answers_are_quoted() -> None:
    """Under a name and a title of their own, for people alone, as data have them in the answer that they are of."""
    table = pair(ONES, TWOS).pair_table()
    asked: list[str] = []

    def holder(**values: Any) -> Any:
        def found(name: str) -> Any:
            asked.append(name)
            return table

        return SimpleNamespace(table=found, overview=lambda: table, rows_of=list, **values)

    last = SimpleNamespace(decision="keep")
    made = [
        gated(holder(status="pass", verdict="Passed.")),
        decided_by_users(holder(), SimpleNamespace(decision="ship")),  # type: ignore[arg-type]
        preferred(holder(other="new", decision="preferred", reasons=("Why.", "How."))),
        rolled_back(holder(rollbacks=(SimpleNamespace(decision="roll back"), last))),
        slices(holder()),
        *is_better(pair(ONES, TWOS)),
    ]
    assert asked == ["checks", "differences", "preferences", "deployments"]
    assert [(one.state, one.blocks[0].name, one.blocks[0].title) for one in made] == [
        ("good", "gate", "Gate"), ("good", "users", "What differs for users"),
        ("good", "preferences", "What clicks prefer in mixed lists"), ("good", "deployments", "Deployments"),
        ("not tested", "slices", "By slice"), ("bad", "measures", "All measures"),
    ]  # fmt: skip
    assert {one.blocks[0].only for one in made} == {"people"}  # type: ignore[attr-defined]
    assert made[0].said == "Passed."
    assert made[2].said == "new: preferred. Why. How."
    assert made[3].said == str(last)
    blank = rolled_back(holder(rollbacks=()))
    assert (blank.state, blank.blocks) == ("blank", ())
    none: Any = SimpleNamespace(means=[SimpleNamespace(side=-1), SimpleNamespace(side=-1)], sentences=())
    assert (disagreement(none).state, disagreement(none).said) == ("good", "")


def test_the_state_of_a_pair_needs_a_verdict_on_its_own_number_of_topics() -> None:
    compared = pair(TWOS, ONES, 12)
    first = compared.measures[0].pairs[0]
    few = replace(first, result=replace(first.result, n=5))
    other: Any = SimpleNamespace(
        measures=[SimpleNamespace(pairs=[few]), compared.measures[0]], pair_table=compared.pair_table
    )
    (question,) = is_better(other)
    assert question.state == "not tested"
    assert question.said == "Not enough data: 5 topics, at least 6 are required. new - old: +0.5000."


QUESTIONS = {
    "Is it better?": {}, "What to look at first?": {}, "Are there more queries without results?": {},
    "Do measures agree?": {"measures": "RR,R@10"},
    "Which slice improved, which paid?": {
        "attributes": {topic: {"kind": "ab"[at % 2]} for at, topic in enumerate(TOPICS)}
    },
}  # fmt: skip


@pytest.mark.parametrize("asked", [(), ("Do measures agree?",), ("Which slice improved, which paid?",)])
def test_questions_follow_what_is_given(asked: tuple[str, ...]) -> None:
    given: dict[str, Any] = {"measures": "RR"}
    for question in asked:
        given |= QUESTIONS[question]
    made = review(QRELS, {"old": run(ONES)}, {"new": run(TWOS)}, given.pop("measures"), **given)
    answered = [one.question for one in made.questions if one.state != "blank"]
    expected = ["Is it better?", "What to look at first?", *sorted(asked, reverse=True),
                "Are there more queries without results?"]  # fmt: skip
    assert answered == expected
    blank = {one.question for one in made.questions if one.state == "blank"}
    assert blank == {*sheet._BLANKS} - {*answered}
    names = [block.name for block in made.blocks()]
    assert names[:3] == ["sentences", "questions", "sheet"]
    table: Any = made.blocks()[2]
    assert table.only == "data"
    assert [tuple(row.values()) for row in table.records()] == [
        (one.question, one.state, one.said) for one in made.questions
    ]
    assert (made.baseline, made.candidate) == ("old", "new")


def test_what_users_did_is_asked_in_order() -> None:
    compared, known = pair(TWOS, ONES), ("old", "new")
    table = compared.pair_table()

    def holder(**values: Any) -> Any:
        return SimpleNamespace(table=lambda _: table, **values)

    verdict = SimpleNamespace(arm="new", decision="ship")
    test = holder(assignment=SimpleNamespace(arms=("old", "new"), total_users=9, days=2.0), verdicts=[verdict])
    lists = holder(baseline="old", other="new", decision="not preferred", reasons=(), users=8)
    log = SimpleNamespace(users=7, rows=[SimpleNamespace(estimator=name, difference_ci=None) for name in
                                         ("doubly robust", "cascade", "whole list")])  # fmt: skip
    watch = holder(rollbacks=())

    def names(*given: Any) -> list[str]:
        return [one.question for one in sheet._of_users(compared, known, *given)]

    users, one_list = "Do users fare better?", "Do users prefer it in one list?"
    agree, back = "Do offline and online agree?", "Should it be taken back?"
    assert names(None, None, None, None, None) == []
    assert names(test, None, None, None, None) == [users, agree]
    assert names(None, None, lists, None, None) == [one_list, agree]
    assert names(None, None, None, log, None) == [agree]
    assert names(test, "new", lists, log, watch) == [users, one_list, agree, back]
    made = list(sheet._of_users(compared, known, test, None, lists, log, watch))
    assert [one.state for one in made] == ["good", "bad", "look", "blank"]
    assert made[2].said == "A/B test and offline say better, interleaving worse; A/B test is nearest to users."
    for odd in ({"baseline": "new"}, {"other": "old"}):
        with pytest.raises(InputError, match="mixed lists are read for"):
            list(sheet._of_users(compared, known, None, None, SimpleNamespace(**{**vars(lists), **odd}), None, None))
    other: Any = SimpleNamespace(**{**vars(lists), "baseline": "a", "other": "b"})  # rankers with names of their own
    assert len(list(sheet._of_users(compared, known, None, None, other, None, None))) == 2


def test_a_comparison_of_several_candidates_decides(tmp_path: Path) -> None:
    """Its pair is taken, and the gate, the seed, the costs, and the reviewed results of this change."""
    other = pair(TWOS, ONES)
    (tmp_path / "costs.csv").write_text("run,ms\nold,2\nnew,3\n")
    (tmp_path / "reviewed.csv").write_text("run,wrong,reviewed\nold,9,9\nnew,0,9\n")
    checks = {"check": [{"measure": "RR", "margin": 0.1}]}
    made = review(
        QRELS, {"old": run(ONES)}, {"new": run(TWOS)}, "RR", comparison=other, config=checks,
        costs_of=(str(tmp_path / "costs.csv"), iter(["ms"])), reviewed=str(tmp_path / "reviewed.csv"),
    )  # fmt: skip
    states = {one.question: one.state for one in made.questions if one.state != "blank"}
    assert states == {
        "Is it better?": "good", "What to look at first?": "look", "Are there more queries without results?": "good",
        "Are fewer results wrong in review?": "good", "Which cost rises?": "bad", "Does the gate let it pass?": "bad",
    }  # fmt: skip
    assert made.decision == "do not ship"
