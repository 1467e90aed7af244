"""Headline and cards of the review of a change: statuses, short sentences, and the numbers of the results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from judged import compare
from judged.reports.changes import review
from judged.reports.changes.questions import ReviewQuestion, answer_better
from judged.reports.changes.sheet import _DECISIVE, _INPUT_OPTIONS, Change
from judged.results import Headline
from judged.results.headline import MAX_WORDS
from reports.changes.test_answers_of_the_sheet import ONES, QRELS, TOPICS, TWOS, run

if TYPE_CHECKING:
    from pathlib import Path

GATE, AB_TEST, WATCH = _DECISIVE
CHECK = {"check": [{"measure": "RR", "margin": 0.1}]}
MANY = [f"q{number:02}" for number in range(24)]
CLASSES = {topic: {"kind": "a" if number < 12 else "b"} for number, topic in enumerate(MANY)}


def reviewed(first: list[int], second: list[int], topics: list[str] = TOPICS, **options: Any) -> Change:
    qrels = {topic: {"r": 1} for topic in topics}
    return review(qrels, {"old": run(first, topics)}, {"new": run(second, topics)}, "RR,R@10", **options)


def cards(change: Change) -> dict[str, Headline]:
    return {row.question: row.card for row in change.cards}


def words(headline: Headline) -> int:
    return len(headline.sentence.split())


@pytest.mark.parametrize(
    ("states", "status", "decision", "label"),
    [
        ({GATE: "good"}, "better", "ship", GATE),
        ({GATE: "good", WATCH: "good"}, "better", "ship", GATE),
        ({GATE: "undecided", WATCH: "good"}, "better", "ship", WATCH),
        ({GATE: "good", AB_TEST: "bad"}, "worse", "do not ship", AB_TEST),
        ({GATE: "bad", AB_TEST: "bad", WATCH: "bad"}, "worse", "do not ship", GATE),
        ({GATE: "undecided"}, "unknown", "undecided", "first"),
        ({}, "unknown", "undecided", "first"),
    ],
)
def test_the_headline_is_the_decision(states: dict[str, Any], status: str, decision: str, label: str) -> None:
    change = reviewed(ONES, ONES)
    rows = [
        ReviewQuestion(question, states.get(question, "no data"), "x", (), Headline("info", "x", "x", question, 0.5))
        for question in _DECISIVE
    ]
    first = ReviewQuestion("Is the candidate better?", "bad", "x", (), Headline("worse", "x", "x", "first", -1.0))
    change = replace(change, questions=(first, *rows))
    headline = change.headline
    assert (headline.status, headline.word, change.decision) == (status, decision, decision)
    assert (headline.label, headline.value) == (label, -1.0 if label == "first" else 0.5)
    assert words(headline) <= MAX_WORDS


def test_cards_without_data_are_last() -> None:
    rows = [ReviewQuestion(name, state, "x") for name, state in (("a", "no data"), ("b", "bad"), ("c", "no data"))]
    change = replace(reviewed(ONES, ONES), questions=tuple(rows))
    assert [row.question for row in change.cards] == ["b", "a", "c"]


def test_texts_about_missing_data_are_short() -> None:
    assert all(len(text.split()) <= MAX_WORDS for text in _INPUT_OPTIONS.values())


@pytest.mark.parametrize(
    ("first", "second", "status", "topics", "slices", "gate"),
    [
        (ONES, TWOS, "worse", "inspect", "worse", ("worse", "fail")),
        (TWOS, ONES, "better", "no loss", "better", ("better", "pass")),
        (ONES, ONES, "same", "no loss", "same", ("better", "pass")),
    ],
)
@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_cards_of_a_review(
    first: list[int], second: list[int], status: str, topics: str, slices: str, gate: tuple[str, str]
) -> None:
    change = reviewed(2 * first, 2 * second, MANY, attributes=CLASSES, by="kind", config=CHECK)
    card = cards(change)
    assert all(words(row) <= MAX_WORDS for row in card.values())
    qrels = {topic: {"r": 1} for topic in MANY}
    (pair,) = compare(qrels, {"old": run(2 * first, MANY), "new": run(2 * second, MANY)}, "RR").pairs
    better = card["Is the candidate better?"]
    assert (better.status, better.value, better.ci) == (status, pair.shown_difference, pair.shown_interval)
    worst = card["Which topics lost most?"]
    assert (worst.status, worst.word) == ("info", topics)
    assert worst.value == (-0.5 if topics == "inspect" else None)
    assert card["Which slices improved or got worse?"].status == slices
    assert (card[GATE].status, card[GATE].word) == gate


def test_few_topics_are_not_tested() -> None:
    qrels = {topic: QRELS[topic] for topic in TOPICS[:5]}
    comparison = compare(qrels, {"old": run(ONES[:5], TOPICS[:5]), "new": run(TWOS[:5], TOPICS[:5])}, "RR")
    assert answer_better(comparison).card.status == "unknown"


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
def test_what_is_not_tested_is_neither_good_nor_bad(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("run,ms\nold,2\nnew,3\n")
    change = reviewed(ONES, [*ONES[:11], 0], costs_of=(tmp_path / "costs.csv", ["ms"]))
    card = cards(change)
    statuses = {
        name: card[name].status
        for name in (
            "Did any cost increase?", "Do the measures prefer the same run?",
            "Does the candidate return results wherever the baseline returns results?",
        )
    }  # fmt: skip
    assert set(statuses.values()) == {"info"}
    assert {row.state for row in change.questions if row.question in statuses} == {"bad", "good"}


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [((24, 40), (10, 40), "better"), ((10, 40), (24, 40), "worse"), ((10, 40), (22, 40), "same"),
     ((0, 5), (5, 5), "unknown")],
)  # fmt: skip
def test_wrong_results_have_the_interval_of_their_table(
    tmp_path: Path, old: tuple[int, int], new: tuple[int, int], status: str
) -> None:
    rows = "\n".join(f"{name},{wrong},{of}" for name, (wrong, of) in (("old", old), ("new", new)))
    (tmp_path / "reviewed.csv").write_text(f"run,wrong,reviewed\n{rows}\n")
    change = reviewed(ONES, ONES, reviewed=tmp_path / "reviewed.csv")
    card = cards(change)["Are fewer results wrong in the manual review?"]
    row = change.table("false_positives").records()[1]
    assert (card.status, card.value) == (status, row["share"])
    assert words(card) <= MAX_WORDS
    assert (None if card.ci is None else list(card.ci)) == row["share_ci"]


def test_a_card_without_a_headline_has_the_beginning_of_the_finding() -> None:
    card = ReviewQuestion("x", "inspect", " ".join(["word"] * 30)).card
    assert (card.status, card.word, words(card)) == ("info", "inspect", MAX_WORDS)
    statuses = ("good", "bad", "undecided", "inspect", "not tested", "no data")
    assert [ReviewQuestion("x", state, "y.").card.status for state in statuses] == [  # type: ignore[arg-type]
        "better", "worse", "same", "info", "unknown", "unknown",
    ]  # fmt: skip
