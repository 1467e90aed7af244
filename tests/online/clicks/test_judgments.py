"""Judgments made of clicks: what they carry, how values become grades, and where they can be put."""

from __future__ import annotations

import numpy as np
import pytest

import judged
from judged import labels
from judged.data import sample
from judged.errors import InputError
from judged.online import read_log
from judged.online.clicks import judge_clicks
from judged.online.clicks.judgments import human_grades
from online.offline.pages_made import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


@pytest.fixture(scope="module")
def log():
    return read_log(sample.LOG)


def test_value_error_and_weight_by_hand():
    pages = [
        {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"] if at % 2 else ["a"], "user": at} for at in range(12)
    ] + [{"query": "r", "shown": ["c", "b"], "clicks": [], "user": 99}]
    made = judge_clicks(log_of(pages, has=HAS), min_shown=12)
    assert made.pairs.to_pylist() == [{"query_id": "q", "doc_id": "a"}, {"query_id": "q", "doc_id": "b"}]
    assert (made.left_out, made.values.rank.tolist()) == (2, [1, 2])
    # of 13 pages 12 have a click at rank 1 and 6 at rank 2
    assert made.values.value.tolist() == pytest.approx([12 / (12 * 12 / 13), 6 / (12 * 6 / 13)])
    # and nearly all pages of its rank are of the pair: what is expected is as uncertain as what is clicked
    assert (made.values.low < made.values.value).all()
    assert (made.values.se < made.values.value / np.sqrt([12, 6]) / 2).all()


def test_pairs_without_clicks_have_errors_and_intervals_too(log):
    made = judge_clicks(log)
    none = made.values.clicks == 0
    assert none.sum() > 20
    assert (made.values.se > 0).all()
    table = made.to_arrow("judgments")
    low, high = (np.array(table[name].to_pylist()) for name in ("ci_low", "ci_high"))
    value = np.array(table["value"].to_pylist())
    assert (low <= value + 1e-12).all()
    assert (high > value).all()


def test_grades_and_errors_follow_from_the_prior(log):
    made = judge_clicks(log, min_shown=20)
    weight, values = made.values.weight, made.values
    assert made.grade == pytest.approx(weight * values.value + (1 - weight))
    table = made.qrels.table
    assert table.column_names == ["query_id", "doc_id", "relevance", "sd", "weight", "value", "se"]
    assert (made.qrels.origin.how, made.qrels.origin.click) == ("clicks: coec", len(made.grade))
    assert {note.rule for note in judged.evaluate(made.qrels, sample.runs()[:1], "DCG@5").notes} >= {"click-judgments"}


def test_grades_by_the_lower_end_are_whole_and_say_how_sure_they_are_themselves(log):
    made = judge_clicks(log, grading="lower", cuts=(0.2, 1.0))
    assert made.sd is None
    assert made.grade.tolist() == [(low > 0.2) + (low > 1.0) + 0.0 for low in made.values.low.tolist()]
    assert set(judge_clicks(log, grading="lower").grade.tolist()) == {0, 1, 2, 3}


def test_grades_as_people_give_them_are_right_in_the_mean_and_rise_with_the_value(log):
    people = sample.qrels()
    made = judge_clicks(log, gold=people)
    known = human_grades(made.pairs, people)
    assert made.shared == (~np.isnan(known)).sum()
    order = np.argsort(made.values.drawn)
    assert (np.diff(made.grade[order]) >= -1e-12).all()
    assert np.nanmean(known - made.grade) == pytest.approx(0, abs=1e-9)
    # the spread of topics that were left out is that of people's grades around what was expected, and a bit more
    assert np.sqrt(np.nanmean((known - made.grade) ** 2)) < made.sd[0] < 1.2 * np.nanstd(known)
    assert "value" not in made.qrels.table.column_names


def test_what_people_grade_is_predicted_with_the_error_that_is_said(log):
    people, rng = sample.qrels(), np.random.default_rng(0)
    off, said = [], []
    for _ in range(20):
        topics = rng.permutation(people.topics)
        made = judge_clicks(log, gold=people.over(set(topics[:24])))
        known = human_grades(made.pairs, people.over(set(topics[24:])))
        off.append(np.nanmean((known - made.grade) ** 2))
        said.append(made.sd[0] ** 2)
    assert np.mean(said) == pytest.approx(np.mean(off), rel=0.2)


def test_other_commands_read_what_is_written(log, tmp_path):
    made = judge_clicks(log, grading="lower", topics="topic")
    made.save(tmp_path / "made.csv")
    assert judged.Qrels.read(tmp_path / "made.csv").grades.sum() == made.grade.sum()
    read = labels.Labels.of(tmp_path / "made.csv")
    assert (read.judges, set(read.table["kind"].to_pylist())) == (("coec",), {"click"})
    assert labels.qrels_of(made.labels).grades.tolist() == made.grade.tolist()
    (tmp_path / "made.txt").write_text(made.trec())
    assert len(judged.Qrels.read(tmp_path / "made.txt")) == len(made.grade)


def test_topics_are_found_by_texts(log):
    made = judge_clicks(log, topics=sample.topics(), min_shown=1)
    by_column = judge_clicks(log, min_shown=1)
    assert set(made.pairs["query_id"].to_pylist()) <= set(by_column.pairs["query_id"].to_pylist())
    assert made.nameless > 0


def test_what_makes_no_sense_is_refused(log):
    for options, problem in (
        ({"min_shown": 10_000}, "no pair was shown"),
        ({"grading": "people"}, "need judgments by people"),
        ({"grading": "best"}, "grading is"),
        ({"gold": {"t01": {"x": 1}}}, "people graded 0 pairs"),
    ):
        with pytest.raises(InputError, match=problem):
            judge_clicks(log, **options)


def test_a_click_model_is_asked_for_what_is_attractive(log):
    clicks = pytest.importorskip("judged.online.clicks.fitted")
    made, fitted = judge_clicks(log, by="pbm", min_shown=20), clicks.fit_model(log, "PBM")
    kept = made.values.shown.tolist()
    assert made.grade.tolist() == fitted.values["attractiveness"][fitted.shown >= 20].tolist()
    assert min(kept) >= 20
    with pytest.raises(InputError, match="says nothing of documents"):
        judge_clicks(log, by="RCTR")
