"""Inputs that look alike and are not: lists, sets, tuples, records, and dicts of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import judged
from judged import InputError, evaluate
from judged.scoring.evaluation.notes import few_topics_note


def test_ranked_lists_by_topic_are_one_run() -> None:
    scores = evaluate({"a": {"d1": 1}, "b": {"x": 1}}, {"a": ["d0", "d1"], "b": ["x"]}, "RR")
    assert scores.per_topic() == {"run": {"RR": {"a": 0.5, "b": 1.0}}}


def test_relevant_ids_by_topic_are_qrels() -> None:
    scores = evaluate({"a": {"d1", "d2"}, "b": ["x"]}, {"a": {"d1": 2.0}, "b": {"x": 1.0}}, "AP")
    assert scores.per_topic()["run"]["AP"] == {"a": 0.5, "b": 1.0}


def test_a_run_of_sets_has_no_ranks() -> None:
    qrels = {"a": {"d1": 1, "d2": 1}}
    assert evaluate(qrels, {"a": {"d1", "x"}}, ["SetP", "SetR"]).aggregate() == {"run": {"SetP": 0.5, "SetR": 0.5}}
    with pytest.raises(judged.MeasureError, match="requires a ranking"):
        evaluate(qrels, {"a": {"d1", "x"}}, "RR")


def test_records_as_dicts() -> None:
    qrels = [{"query_id": "a", "doc_id": "d1", "relevance": 2}]
    run = [{"qid": "a", "docno": "d2", "score": 3.0}, {"qid": "a", "docno": "d1", "score": 1.0}]
    assert evaluate(qrels, run, "RR").value("RR") == evaluate(qrels, pd.DataFrame(run), "RR").value("RR") == 0.5


@pytest.mark.parametrize(
    "data", [[("a", "d1", 1), ("b", "d7", 1)], [("a", "d1"), ("b", "d2")], [["a", 1.5]], [["a"], "b", None]]
)
def test_bare_tuples_and_mixed_lists_are_refused(data: Any) -> None:
    with pytest.raises(InputError, match="cannot be read as qrels"):
        evaluate(data, {"a": {"d1": 1.0}}, "RR")


def test_scores_under_another_name_are_not_taken_for_a_set() -> None:
    frame = pd.DataFrame({"qid": ["a"], "docid": ["d1"], "value": [0.5]})
    with pytest.raises(InputError, match="no column score or rank among qid, docid, value"):
        evaluate({"a": {"d1": 1}}, frame, "RR")


def test_a_level_that_no_grade_reaches_is_said() -> None:
    scores = evaluate({"a": {"d1": 0.6, "d2": 0.3}}, {"a": {"d1": 1.0}}, ["AP", "P@1"])
    assert scores.warnings == (
        (
            "AP, P@1: every topic scores 0: no grade reaches 1 (highest grade: 0.6);"
            " set the lowest relevant grade with rel="
        ),
    )


def test_topics_without_a_document_at_the_level_are_said() -> None:
    qrels = {"a": {"d1": 3}, "b": {"d2": 1}}
    notes = evaluate(qrels, {"a": {"d1": 1.0}, "b": {"d2": 1.0}}, ["AP(rel=3)", "AP(rel=3,undefined=skip)"]).warnings
    assert notes == ("AP(rel=3): 1 of 2 topics have no document of grade 3 or more: b", few_topics_note(2))


def test_ranks_in_the_place_of_scores_are_suspected() -> None:
    upside_down = {"a": {f"d{rank}": rank for rank in range(1, 13)}}
    assert "the scores are ranks" in evaluate({"a": {"d1": 1}}, upside_down, "RR").warnings[0]
    right_way = {"a": {f"d{rank}": 1 / rank for rank in range(1, 13)}}
    assert evaluate({"a": {"d1": 1}}, right_way, "RR").warnings == ()


def test_another_collection_is_suspected() -> None:
    qrels = {q: {f"d{at}": 1 for at in range(20)} for q in ("a", "b")}
    run = {q: {f"x{at}": 1.0 - at / 100 for at in range(30)} | {"d0": 0.01} for q in ("a", "b")}
    warning = evaluate(qrels, run, "RR").warnings[1]
    assert "run: the run returned only 5.0% of the judged documents that lists of this length could contain" in warning


def test_means_over_different_topics_are_not_compared_in_silence() -> None:
    qrels = {"a": {"d1": 1}, "b": {"d1": 1}}
    runs = {"one": {"a": {"d1": 1.0}}, "two": {"a": {"d1": 1.0}, "b": {"d1": 1.0}}}
    with pytest.warns(judged.JudgedWarning):
        notes = evaluate(qrels, runs, "RR", topics="both").warnings
    assert "the means are over different topics and cannot be compared; number of topics: one 1, two 2" in notes


def test_scores_cannot_be_changed() -> None:
    scores = evaluate({"a": {"d1": 1}}, {"a": {"d1": 1.0}}, "RR")
    with pytest.raises(ValueError, match="read-only"):
        scores.counted[0, 0] = False


def test_judgments_without_anything_relevant_are_said_in_plain_numbers() -> None:
    notes = evaluate({"a": {"d1": 0}}, {"a": {"d1": 1.0}}, ["nDCG@10", "AP"]).warnings
    assert notes == (
        "nDCG@10: every topic scores 0: no document is relevant (highest grade: 0)",
        "AP: every topic scores 0: no grade reaches 1 (highest grade: 0)",
    )


def test_a_topic_that_is_a_whole_number_is_its_text_wherever_one_is_named() -> None:
    qrels, run = {1: {"a": 1}, 2: {"a": 1}}, {1: ["x", "a"], 2: ["a"]}
    assert judged.explain(qrels, run, "RR", topic=1).to_dict() == judged.explain(qrels, run, "RR", topic="1").to_dict()
    assert judged.curve(qrels, run, "P@2").topic(2).query_ids == ("2",)
    assert judged.stages(qrels, run, measure="nDCG@2").topic(1).query_id == "1"
