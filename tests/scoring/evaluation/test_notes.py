"""What is said of many runs: one line for each kind of warning, with the runs most affected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from judged import JudgedWarning, Scores, evaluate
from judged.results.blocks import Note, lines

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = 12
QRELS = {f"q{at:02}": {f"d{at}": 1, f"e{at}": 0} for at in range(TOPICS)}
WORST = {"run40": 7, "run10": 5, "run30": 3}


class Judgment(NamedTuple):
    """One row of judgments, of one subtopic."""

    query_id: str
    doc_id: str
    relevance: float
    iteration: str


def lacking(topics: int) -> dict[str, dict[str, float]]:
    """Give a run that returned nothing for so many topics, and has one that nobody judged."""
    return {query: dict.fromkeys(docs, 1.0) for query, docs in list(QRELS.items())[topics:]} | {"x": {"d": 1.0}}


def runs(count: int) -> dict[str, Any]:
    return {f"run{at:02}": lacking(WORST.get(f"run{at:02}", 1)) for at in range(count)}


def rules(scores: Scores) -> Counter[str]:
    return Counter(note.rule for note in scores.notes if note.subject)


def test_many_runs_have_one_line_for_each_kind_of_warning() -> None:
    with pytest.warns(JudgedWarning) as caught:
        scores = evaluate(QRELS, runs(59), "AP")
    assert rules(scores) == {"missing-topics": 59, "extra-topics": 59, "constant-scores": 59}
    grouped = [text for text in scores.warnings if text.startswith("59 runs, ")]
    assert len(grouped) == 3
    assert grouped[0].startswith(
        "59 runs, worst run40, run10, run30; for run40: no documents returned for 7 of 12 topics (score 0):"
    )
    assert grouped[1].startswith("59 runs, such as run00, run01, run02: no judgments for 1 topic of the run")
    assert len(scores.warnings) < 3 + 4  # and of the runs together
    assert [str(one.message) for one in caught] == grouped[:1]


def test_a_thousand_runs_have_no_more_to_say_than_ten() -> None:
    with pytest.warns(JudgedWarning) as caught:
        scores = evaluate(QRELS, {f"run{at:04}": lacking(1 + at % 3) for at in range(1000)}, "AP")
    assert sum(map(len, scores.warnings)) + sum(len(str(one.message)) for one in caught) < 1500


def test_one_and_two_runs_are_named_each() -> None:
    with pytest.warns(JudgedWarning) as caught:
        scores = evaluate(QRELS, runs(2), "AP")
    assert [str(one.message) for one in caught] == [
        f"run0{at}: no documents returned for 1 of 12 topics (score 0): q00" for at in range(2)
    ]
    assert {str(note) for note in scores.notes if note.subject} <= set(scores.warnings)


def test_runs_of_which_nothing_was_measured_stand_first() -> None:
    strange = {f"strange{at}": {query: {"?": 1.0} for query in QRELS} for at in range(4)}
    with pytest.warns(JudgedWarning, match="4 runs, namely strange0"):
        scores = evaluate(QRELS, {**{f"good{at}": lacking(0) for at in range(4)}, **strange}, "AP")
    assert scores.warnings[0].startswith("4 runs, namely strange0, strange1, strange2, strange3: no score")
    assert [note.severity for note in scores.notes if note.subject == scores.run_names[-1]] == ["error"]


def test_means_of_samples_are_said_once() -> None:
    """Ten tied documents of many labels: too many orders to try them all."""
    rows = [Judgment("q", f"d{doc}", 1 + doc % 3, f"s{label}") for doc in range(10) for label in range(10 - doc)]
    tied = {f"run{at}": {"q": {f"d{doc}": 1.0 for doc in range(10)}} for at in range(4)}
    scores = evaluate(rows, tied, "NRBP", ties="expected")
    assert Counter(note.rule for note in scores.notes)["sampled-orders"] == 4
    assert sum("sample" in text for text in scores.warnings) == 1


@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_what_is_said_of_each_run_stands_under_the_run(tmp_path: Path) -> None:
    scores = evaluate(QRELS, runs(59), "AP")
    made = scores.to_dict()
    assert made["runs"]["run07"]["warnings"][0] == "no documents returned for 1 of 12 topics (score 0): q00"
    assert [note["text"] for note in made["notes"]] == [note.text for note in scores.notes]
    scores.save(tmp_path / "scores.parquet")
    loaded = Scores.load(tmp_path / "scores.parquet")
    assert (loaded.runs, loaded.notes, loaded.warnings) == (scores.runs, scores.notes, scores.warnings)
    assert set(scores.warnings) <= set(scores.compare(baseline="run00").warnings)


def test_lines_are_by_rule_and_not_by_text() -> None:
    """Nothing reads the text: notes of one rule are one line whatever they say, and those of others are apart."""
    odd = [Note("a", text, text) for text in ("one", "two", "three")]
    assert lines([*odd, Note("b", "four", "four"), Note("a", "of all")]) == (
        "3 runs, namely one, two, three; for one: one",
        "four: four",
        "of all",
    )


@pytest.mark.parametrize(
    ("grades", "measure", "noted"),
    [
        ([0.5, 1.0], "RR", True),
        ([0.5, 1.0], "RR(rel=0.5)", False),
        ([0.5, 1.0], "nDCG", False),
        ([0.0, 1.0], "RR", False),
        ([2.5, 1.0], "RR", False),
    ],
)
def test_grades_between_0_and_1_are_named_where_they_count_as_not_relevant(
    grades: list[float], measure: str, noted: bool
) -> None:
    qrels = {"q": dict(zip("ab", grades, strict=True))}
    scores = evaluate(qrels, {"q": {"a": 2.0, "b": 1.0}}, measure)
    texts = [note.text for note in scores.notes if note.rule == "grades-below-1"]
    assert len(texts) == noted
    assert all("1 judgment " in text and "RR(rel=0.5)" in text for text in texts)
