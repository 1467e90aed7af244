"""`diff`: movements of documents in hand-made rankings, and contributions for every additive measure."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import evaluate, judge
from judged.data import sample
from judged.data.topics import Topics
from judged.diagnosis.diff.diff import contributions, diff
from judged.errors import InputError
from judged.scoring.judging import judge_list
from judged.scoring.measures import parse

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"q1": {"a": 3, "b": 1, "c": 0, "e": 2}, "q2": {"a": 1}, "q3": {"a": 1}}
A = {"q1": {"b": 9.0, "x": 8.0, "a": 7.0, "c": 6.0, "e": 5.0}, "q2": {"a": 2.0, "x": 1.0}, "q3": {"a": 2.0, "x": 1.0}}
B = {"q1": {"a": 9.0, "b": 8.0, "e": 7.0, "y": 6.0, "c": 5.0}, "q2": {"x": 2.0, "a": 1.0}, "q3": {"a": 2.0, "x": 1.0}}
IDEAL = 3 + 2 / math.log2(3) + 0.5


def test_rows_ranks_and_moves_by_hand() -> None:
    (topic,) = diff(QRELS, A, B, "q1", measure="nDCG@3", cutoff=3).topics
    assert [(row.doc_id, row.first_rank, row.second_rank, row.grade, row.movement) for row in topic.rows] == [
        ("a", 3, 1, 3.0, "up 2"),
        ("b", 1, 2, 1.0, "down 1"),
        ("e", 5, 3, 2.0, "up 2"),
        ("x", 2, None, None, "gone"),
    ]
    assert [row.doc_id for row in topic.ranked_rows(0)] == ["b", "x", "a"]
    assert [row.doc_id for row in topic.ranked_rows(1)] == ["a", "b", "e"]
    assert topic.counts == {"up": 2, "down": 1, "same": 0, "new": 0, "gone": 1}
    assert topic.unjudged == (1, 0)
    assert topic.returned == (5, 5)


def test_what_each_document_adds_by_hand() -> None:
    (topic,) = diff(QRELS, A, B, "q1", measure=["nDCG@3", "P@2", "RR"], cutoff=3).topics
    changes_by_document = {row.doc_id: row.changes for row in topic.rows}
    assert changes_by_document["a"][0] == pytest.approx((3 - 3 / 2) / IDEAL)
    assert changes_by_document["b"][0] == pytest.approx((1 / math.log2(3) - 1) / IDEAL)
    assert changes_by_document["e"][0] == pytest.approx(2 / 2 / IDEAL)
    assert changes_by_document["x"][0] == 0
    assert [changes[1] for changes in changes_by_document.values()] == [
        0.5,
        0.0,
        0.0,
        0.0,
    ]  # P@2: a came into the first two
    assert all(changes[2] is None for changes in changes_by_document.values())  # reciprocal rank has no contributions
    assert topic.below == (0.0, 0.0, None)


def test_what_is_not_shown_is_the_rest_of_the_difference() -> None:
    (topic,) = diff(QRELS, A, B, "q1", measure="nDCG@5", cutoff=1).topics
    assert {row.doc_id for row in topic.rows} == {"a", "b"}
    shown_difference = sum(row.changes[0] or 0.0 for row in topic.rows)
    assert topic.below[0] == pytest.approx((2 / 2 - 2 / math.log2(6)) / IDEAL)  # e rose from 5 to 3
    assert shown_difference + (topic.below[0] or 0.0) == pytest.approx(topic.scores[0].difference)


def test_topics_that_differ_most_both_ways() -> None:
    result = diff(QRELS, A, B, measure="nDCG@3", limit=1)
    assert [(topic.query_id, topic.outcome) for topic in result.topics] == [("q1", "won"), ("q2", "lost")]
    mean = result.means[0]
    assert (mean.better, mean.worse, mean.same) == (1, 1, 1)
    assert mean.first == pytest.approx(((1 + 1.5) / IDEAL + 2) / 3)
    assert "second is better on 1 of these topics and worse on 1" in result.sentences[1]


def test_topics_that_are_not_shown_are_counted() -> None:
    """The second run is worse on 3 topics and better on 1."""
    qrels = {topic: {"a": 1} for topic in "abcd"}
    first, second = {"a": 2.0, "x": 1.0}, {"a": 1.0, "x": 2.0}
    runs = [dict.fromkeys("abc", first) | {"d": second}, dict.fromkeys("abc", second) | {"d": first}]
    *_, omitted, queries = diff(qrels, *runs, limit=1).sentences
    assert omitted == "Not shown: 2 other topics on which second is worse. Use --limit 3 to show all."
    assert "--queries FILE" in queries
    assert "--" not in diff(qrels, *runs, limit=3, queries=dict.fromkeys("abcd", "text")).sentences[-1]


def test_where_less_is_better_wins_turn_round() -> None:
    result = diff({"q": {"a": 1, "n": 0}}, {"q": {"n": 2.0, "a": 1.0}}, {"q": {"a": 2.0, "x": 1.0}}, measure="P@1")
    assert result.topics[0].outcome == "won"
    fewer = diff({"q": {"a": 1, "n": 0}}, {"q": {"n": 2.0, "a": 1.0}}, {"q": {"a": 2.0}}, measure="NumNonrelRet")
    (pair,) = fewer.topics[0].scores
    assert (pair.first, pair.second, fewer.topics[0].outcome) == (1.0, 0.0, "won")


def test_nothing_differs() -> None:
    result = diff(QRELS, A, A)
    assert result.topics == ()
    assert result.sentences[-1] == "No topic has a difference in nDCG@10."
    (same,) = diff(QRELS, A, A, "q1").topics
    assert same.outcome == "same"
    assert "the same rank in both" in same.sentence


def test_a_topic_that_a_run_lacks() -> None:
    result = diff(QRELS, A, {"q1": B["q1"]}, ["q2"])
    (topic,) = result.topics
    assert topic.returned == (2, 0)
    assert [row.movement for row in topic.rows] == ["gone", "gone"]
    assert "second: no documents returned for 2 of 3 topics (score 0): q2, q3" in result.warnings
    (nothing,) = diff(QRELS, {"q1": A["q1"]}, {"q1": B["q1"]}, "q3").topics
    assert nothing.rows == ()
    assert nothing.sentence == "Neither run returned a document."


def test_ties_are_broken_as_asked() -> None:
    tied = {"q2": {"a": 1.0, "x": 1.0}}
    ranks = {
        policy: [row.first_rank for row in diff(QRELS, tied, B, "q2", ties=policy).topics[0].rows]
        for policy in ("docid", "docid-rising")
    }
    assert ranks == {"docid": [1, 2], "docid-rising": [2, 1]}  # rows in the order of B: x, a


def test_warnings_are_those_of_evaluate() -> None:
    """Foreign ids, ties, and first documents without a judgment make a difference doubtful."""
    foreign = {"q1": {"D1": 2.0, "D2": 1.0}}
    tied = {"q1": {"a": 1.0, "b": 1.0, "x": 1.0, "y": 1.0}}
    result = diff(QRELS, foreign, tied)
    assert any("first: no score: none of the returned documents is judged" in warning for warning in result.warnings)
    assert any(
        warning.startswith("ties among the judged documents") and "second 100%" in warning
        for warning in result.warnings
    )
    assert (
        "many of the first 10 documents are not judged and count as not relevant; share of unjudged documents: first"
        " 100%, second 50%"
    ) in (result.warnings)


def test_the_head_of_the_document_is_that_of_evaluate(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("q1 Q0 a 1 2 t\nq2 Q0 a 1 2 t\n")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 a 1\n")
    runs = [tmp_path / "a.run", B]
    document = diff(tmp_path / "qrels", *runs).to_dict()
    expected = evaluate(tmp_path / "qrels", runs, "nDCG@10").to_dict()
    assert document["qrels"] == expected["qrels"]
    assert document["qrels"]["sha256"]
    assert document["policies"] == {name: value for name, value in expected["policies"].items() if name != "ci"}
    assert document["versions"] == expected["versions"]
    assert list(document["runs"].values()) == list(expected["runs"].values())
    assert list(document["runs"]) == [document["first"], document["second"]]


def test_one_topic_that_differs_is_called_one() -> None:
    result = diff({"q": {"a": 1}}, {"q": {"x": 2.0, "a": 1.0}}, {"q": {"a": 1.0}})
    assert result.sentences[-1] == "The only topic with a difference in nDCG@10 is shown."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topic": "q9"}, "no topic 'q9'"),
        ({"second": {"z": {"a": 1.0}}}, "no topic in common"),
        ({"cutoff": 0}, "cutoff must be an integer of at least 1"),
        ({"second": {"q1": ["a"]}, "first": {"q1": {"a"}}}, "has no ranking"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"qrels": QRELS, "first": A, "second": B} | change
    with pytest.raises(InputError, match=message):
        diff(**arguments)


ADDITIVE = [
    "P@3", "SetP", "R@3", "SetR", "F@3", "SetF", "Rprec", "RprecMult(factor=2)", "RelP@3", "SetRelP", "RBP(p=0.8)",
    "Utility", "nDCG@5", "nDCG(gain=exp2)", "nDCG(discount=original)@5", "CG@2", "DCG@5", "IdealDCG@3",
    "NumNonrelRet", "NumRelRet", "Accuracy(n=50)", "NCG@3", "Fallout(n=50)", "Generality(n=50)",
]  # fmt: skip


@pytest.mark.parametrize("name", ADDITIVE)
@settings(max_examples=25)
@given(
    grades=st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=7),
    missing=st.lists(st.integers(0, 3), max_size=3),
)
def test_contributions_sum_to_the_score_minus_that_of_an_empty_list(
    name: str, grades: list[int | None], missing: list[int]
) -> None:
    measure = parse(name)
    judged = judge_list(grades, missing=[*missing, 1])
    judged_grades = [grade for grade in grades if grade is not None]
    unjudged = judge_list([None] * len(grades), missing=[*judged_grades, *missing, 1])
    by_document = contributions(judged, measure)
    assert by_document is not None
    assert set(by_document) == set(judged.doc)
    assert sum(by_document.values()) == pytest.approx(float(measure(judged)[0]) - float(measure(unjudged)[0]), abs=1e-9)


def test_measures_without_contributions() -> None:
    judged = judge_list([1, 0, 1])
    assert all(
        contributions(judged, parse(name)) is None
        for name in ("AP", "RR", "ERR(max=4)@5", "Hole@3", "NumRet", "nDCG(judged_only=true)@5")
    )


def test_sample_scores_are_those_of_the_measure() -> None:
    runs = {run.name: run for run in sample.runs()}
    result = diff(sample.qrels(), runs["bm25"], runs["rrf"], measure="nDCG@10", limit=3)
    measure = parse("nDCG@10")
    for topic in result.topics:
        values = [float(measure(judge(sample.qrels(), runs[name]).only(topic.query_id))[0]) for name in ("bm25", "rrf")]
        assert [topic.scores[0].first, topic.scores[0].second] == values
        remaining = topic.below[0]
        assert remaining is not None
        assert sum(row.changes[0] or 0.0 for row in topic.rows) + remaining == pytest.approx(values[1] - values[0])


def test_two_columns_for_a_terminal() -> None:
    result = diff(QRELS, A, B, "q1", measure="nDCG@3", cutoff=3, texts={"a": "A title", "e": "Eel"})
    lines = result.text(width=80).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("first "))
    column = (80 - 3) // 2
    assert lines[head + 1] == f"{'1    1  b':<{column}} │ 1 ↑2 3  a  A title"
    assert lines[head + 2] == f"{'2 x  -  x':<{column}} │ 2 ↓1 1  b"
    assert lines[head + 3] == f"{'3    3  a  A title':<{column}} │ 3 ↑2 2  e  Eel"
    assert all(len(line) <= 80 for line in lines)
    colored = result.text(width=80, color=True)
    assert "\x1b[1;32m3\x1b[0m" in colored  # the highest grade is green
    assert "\x1b" not in result.text(width=80)


def test_lists_stand_below_each_other_where_it_is_narrow() -> None:
    lines = diff(QRELS, A, B, "q1", cutoff=2, measure="nDCG@3").text(width=40).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("first "))
    assert lines[head + 1 :][:5] == ["1    1  b", "2 x  -  x", "second nDCG@3 0.9725", "1 ↑2 3  a", "2 ↓1 1  b"]


def test_wide_characters_keep_the_columns_straight() -> None:
    texts = {"a": "文書" * 30, "b": "文書", "x": "e\u0301" * 3}
    lines = diff(QRELS, A, B, "q1", cutoff=3, measure="nDCG@3", texts=texts).text(width=70).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("first "))
    from unicodedata import combining, east_asian_width

    for line in lines[head + 1 : head + 4]:
        first_column = line.split(" │ ", maxsplit=1)[0]
        widths = [0 if combining(text) else 1 + (east_asian_width(text) in "WF") for text in first_column]
        assert sum(widths) == (70 - 3) // 2


def test_forms_hold_the_same() -> None:
    result = diff(QRELS, A, B, ["q1", "q2"], measure=["nDCG@3", "RR"], queries=Topics.of({"q1": "cats", "q2": "dogs"}))
    document = json.loads(json.dumps(result.to_dict()))
    assert document["topics"][0]["query"] == "cats"
    last = {"query_id": "q2", "measure": "RR", "first": 1.0, "second": 0.5, "difference": -0.5, "below": None}
    assert document["scores"][-1] == last
    row = document["documents"][0]
    assert (row["moved"], row["places"], row["contribution to RR"]) == ("up", 2, None)
    assert result.markdown().count("### topic") == 2
    assert f"| 1 | 3 | a | from 3, {1.5 / IDEAL:+.4f} |" in result.markdown()
    assert len(result.table()) == sum(len(topic.rows) for topic in result.topics)
    assert "topic q1: cats" in repr(result)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.jsonl", '{"docno": "a", "title": "One", "text": "x"}\n{"docno": "b", "title": "", "text": "Two  lines"}'),
        ("d.csv", "docid,text\na,One\nb,Two lines\n"),
        ("d.ndjson", '{"id": "a", "contents": "One"}\n{"id": "b", "contents": "Two lines"}\n'),
    ],
)
def test_texts_of_files(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    result = diff({"q": {"a": 1}}, {"q": ["a", "b"]}, {"q": ["b", "a", "c"]}, texts=tmp_path / name)
    assert {row.doc_id: row.text for row in result.topics[0].rows} == {"a": "One", "b": "Two lines", "c": ""}


def test_a_file_without_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("docid,length\na,3\n")
    with pytest.raises(InputError, match="no text among the columns"):
        diff({"q": {"a": 1}}, {"q": ["a"]}, {"q": ["b", "a"]}, texts=tmp_path / "d.csv")


def test_only_the_topics_of_one_direction() -> None:
    """RR of the relevant document: 1/2 to 1 on a, 1 to 1/2 on b, 1 to 1/3 on c, and 1 to 1 on d."""
    qrels = {topic: {"r": 1} for topic in "abcd"}
    first = {"a": ["x", "r"], "b": ["r"], "c": ["r"], "d": ["r"]}
    second = {"a": ["r"], "b": ["x", "r"], "c": ["x", "y", "r"], "d": ["r"]}
    expected = {None: "acb", "worse": "cb", "better": "a"}
    for only, topics in expected.items():
        result = diff(qrels, first, second, measure="RR", only=only)
        assert [topic.query_id for topic in result.topics] == list(topics)
    result = diff(qrels, first, second, measure="RR", only="worse", limit=1)
    assert "Not shown: 1 other topic on which second is worse. Use --limit 2 to show all." in result.sentences
    with pytest.raises(InputError):
        diff(qrels, first, second, only="lost")
