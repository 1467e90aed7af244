"""Judgments from clicks: values, grading, and export."""

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
from online.offline.page_logs import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


@pytest.fixture(scope="module")
def log():
    return read_log(sample.LOG)


def test_value_error_and_weight_by_hand():
    pages = [
        {"query": "q", "shown": ["a", "b"], "clicks": ["a", "b"] if user % 2 else ["a"], "user": user}
        for user in range(12)
    ] + [{"query": "r", "shown": ["c", "b"], "clicks": [], "user": 99}]
    judgments = judge_clicks(log_of(pages, has=HAS), min_shown=12)
    assert judgments.pairs.to_pylist() == [{"query_id": "q", "doc_id": "a"}, {"query_id": "q", "doc_id": "b"}]
    assert (judgments.excluded_pairs, judgments.values.rank.tolist()) == (2, [1, 2])
    # clicks on 13 pages: 12 at rank 1 and 6 at rank 2
    assert judgments.values.value.tolist() == pytest.approx([12 / (12 * 12 / 13), 6 / (12 * 6 / 13)])
    # the pair has nearly all impressions of its rank, so that errors of clicks and expected clicks cancel
    assert (judgments.values.low < judgments.values.value).all()
    assert (judgments.values.se < judgments.values.value / np.sqrt([12, 6]) / 2).all()


def test_pairs_without_clicks_have_errors_and_intervals(log):
    judgments = judge_clicks(log)
    is_unclicked = judgments.values.clicks == 0
    assert is_unclicked.sum() > 20
    assert (judgments.values.se > 0).all()
    table = judgments.to_arrow("judgments")
    low, high = (np.array(table[name].to_pylist()) for name in ("ci_low", "ci_high"))
    value = np.array(table["value"].to_pylist())
    assert (low <= value + 1e-12).all()
    assert (high > value).all()


def test_grades_and_errors_follow_from_the_prior(log):
    judgments = judge_clicks(log, min_shown=20)
    weight, values = judgments.values.weight, judgments.values
    assert judgments.grade == pytest.approx(weight * values.value + (1 - weight))
    table = judgments.qrels.table
    assert table.column_names == ["query_id", "doc_id", "relevance", "sd", "weight", "value", "se"]
    assert (judgments.qrels.origin.how, judgments.qrels.origin.click) == ("clicks: coec", len(judgments.grade))
    assert {note.rule for note in judged.evaluate(judgments.qrels, sample.runs()[:1], "DCG@5").notes} >= {
        "click-judgments"
    }


def test_grades_by_lower_limit_are_integers_without_sd(log):
    judgments = judge_clicks(log, grading="lower", cuts=(0.2, 1.0))
    assert judgments.sd is None
    assert judgments.grade.tolist() == [(low > 0.2) + (low > 1.0) + 0.0 for low in judgments.values.low.tolist()]
    assert set(judge_clicks(log, grading="lower").grade.tolist()) == {0, 1, 2, 3}


def test_predicted_human_grades_are_unbiased_and_increase_with_the_value(log):
    people = sample.qrels()
    judgments = judge_clicks(log, gold=people)
    human = human_grades(judgments.pairs, people)
    assert judgments.shared_pairs == (~np.isnan(human)).sum()
    order = np.argsort(judgments.values.shrunk)
    assert (np.diff(judgments.grade[order]) >= -1e-12).all()
    assert np.nanmean(human - judgments.grade) == pytest.approx(0, abs=1e-9)
    # the cross-validated sd is a little above the sd of residuals
    assert np.sqrt(np.nanmean((human - judgments.grade) ** 2)) < judgments.sd[0] < 1.2 * np.nanstd(human)
    assert "value" not in judgments.qrels.table.column_names


def test_sd_equals_the_prediction_error_on_other_topics(log):
    people, rng = sample.qrels(), np.random.default_rng(0)
    squared_errors, variances = [], []
    for _ in range(20):
        topics = rng.permutation(people.topics)
        judgments = judge_clicks(log, gold=people.over(set(topics[:24])))
        human = human_grades(judgments.pairs, people.over(set(topics[24:])))
        squared_errors.append(np.nanmean((human - judgments.grade) ** 2))
        variances.append(judgments.sd[0] ** 2)
    assert np.mean(variances) == pytest.approx(np.mean(squared_errors), rel=0.2)


def test_saved_judgments_can_be_read(log, tmp_path):
    judgments = judge_clicks(log, grading="lower", topics="topic")
    judgments.save(tmp_path / "made.csv")
    assert judged.Qrels.read(tmp_path / "made.csv").grades.sum() == judgments.grade.sum()
    loaded = labels.Labels.of(tmp_path / "made.csv")
    assert (loaded.judges, set(loaded.table["kind"].to_pylist())) == (("coec",), {"click"})
    assert labels.qrels_of(judgments.labels).grades.tolist() == judgments.grade.tolist()
    (tmp_path / "made.txt").write_text(judgments.trec())
    assert len(judged.Qrels.read(tmp_path / "made.txt")) == len(judgments.grade)


def test_topics_by_text(log):
    judgments = judge_clicks(log, topics=sample.topics(), min_shown=1)
    by_column = judge_clicks(log, min_shown=1)
    assert set(judgments.pairs["query_id"].to_pylist()) <= set(by_column.pairs["query_id"].to_pylist())
    assert judgments.pairs_without_topic > 0


def test_invalid_options_are_refused(log):
    for options, problem in (
        ({"min_shown": 10_000}, "no pair of topic and document has 10000 or more"),
        ({"grading": "human"}, "requires grading=human"),
        ({"grading": "best"}, "must be value, lower, or human"),
        ({"gold": {"t01": {"x": 1}}}, "got 0"),
    ):
        with pytest.raises(InputError, match=problem):
            judge_clicks(log, **options)


def test_click_model_judgments_are_attractiveness(log):
    model_fit = pytest.importorskip("judged.online.clicks.model_fit")
    judgments, fitted = judge_clicks(log, by="pbm", min_shown=20), model_fit.fit_model(log, "PBM")
    impressions = judgments.values.impressions.tolist()
    assert judgments.grade.tolist() == fitted.values["attractiveness"][fitted.impressions >= 20].tolist()
    assert min(impressions) >= 20
    with pytest.raises(InputError, match="no attractiveness"):
        judge_clicks(log, by="RCTR")
