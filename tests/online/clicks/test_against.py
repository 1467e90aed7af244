"""Agreement of click judgments with human judgments: document order, position bias, and system order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

import judged
from judged.comparison.slicing import slice_topics
from judged.data import sample
from judged.errors import InputError
from judged.online import read_log
from judged.online.clicks import against_people, judge_clicks, propensities
from online.offline.page_logs import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


@pytest.fixture(scope="module")
def log():
    return read_log(sample.LOG)


def small_judgments():
    # clicks on 10 pages: a at rank 1 8, b at rank 2 4, c at rank 3 0
    pages = [
        {"query": "q", "shown": ["a", "b", "c"], "clicks": ["a"] * (user < 8) + ["b"] * (user < 4), "user": user}
        for user in range(10)
    ]
    return judge_clicks(log_of(pages, has=HAS))


def test_pairs_of_documents_by_hand():
    agreement = against_people(small_judgments(), {"q": {"a": 1, "b": 2, "c": 0}})
    coec, ctr, rank = agreement.orders
    # each rank has one document, so that ratios of a and b are 1 (a tie); c has no clicks
    assert (coec.document_pairs, ctr.document_pairs) == (3, 3)
    assert (ctr.value, rank.value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert [(row.ranks, row.documents, row.human_grade, row.ctr) for row in agreement.ranks] == [
        ("1", 1, 1, 0.8), ("2 to 3", 2, 1, 0.2)
    ]  # fmt: skip
    assert coec.ci is None  # one topic


def test_partial_tau_equals_kendalls_definition(log):
    judgments = judge_clicks(log, min_shown=20)
    topic = max(set(judgments.pairs["query_id"].to_pylist()), key=judgments.pairs["query_id"].to_pylist().count)
    rows = np.array(judgments.pairs["query_id"].to_pylist()) == topic
    grades = sample.qrels().over({topic})
    agreement = against_people(judgments, grades)
    grade_by_doc = {row["doc_id"]: max(row["relevance"], 0) for row in grades.table.to_pylist()}
    docs = np.array(judgments.pairs["doc_id"].to_pylist())[rows]
    grade = np.array([grade_by_doc.get(doc, np.nan) for doc in docs])
    is_graded = ~np.isnan(grade)
    value, negative_rank = judgments.grade[rows][is_graded], -judgments.values.rank[rows][is_graded]
    r, g, b = (
        kendalltau(*columns)[0]
        for columns in ((value, negative_rank), (value, grade[is_graded]), (negative_rank, grade[is_graded]))
    )
    assert agreement.feedback[0].tau == pytest.approx(r)
    assert agreement.feedback[0].partial == pytest.approx((r - g * b) / np.sqrt((1 - g**2) * (1 - b**2)))


def test_debiasing_reduces_position_bias_and_keeps_the_order_of_systems(log):
    people, runs = sample.qrels(), sample.runs()
    by_ctr = against_people(judge_clicks(log), people, runs, resamples=100)
    by_propensity = against_people(judge_clicks(log, propensities=propensities(log)), people, runs, resamples=100)
    raw_clicks = by_ctr.feedback[1]
    assert raw_clicks.ci[0] > 0.2  # raw clicks follow the rank
    assert abs(by_propensity.feedback[0].partial) < abs(by_ctr.feedback[0].partial) < raw_clicks.ci[1]
    assert by_propensity.orders[0].value > by_propensity.orders[1].value > by_propensity.orders[2].value
    assert by_propensity.tau > 0.9
    assert by_propensity.systems == len(runs)


def test_slices_partition_the_pairs(log):
    slicing = slice_topics(str(sample.FOLDER / "queries.jsonl"), "query_class")
    agreement = against_people(judge_clicks(log), sample.qrels(), slicing=slicing)
    all_topics, *slices = [row for row in agreement.orders if row.source == "click judgments"]
    assert {row.slice for row in slices} <= set(slicing.names)
    assert sum(row.document_pairs for row in slices) == all_topics.document_pairs
    assert sum(row.n for row in slices) == all_topics.n


def test_clicks_per_label_if_their_value_is_significant(log):
    people = sample.qrels()
    judgments = judge_clicks(log, propensities=propensities(log))
    shown_topics = [topic for topic in people.topics if topic in set(judgments.pairs["query_id"].to_pylist())]
    agreement = against_people(judgments, people.over(set(shown_topics[:26])), sample.runs(), resamples=200)
    if agreement.worth_ci is not None and agreement.worth_ci[0] > 0:
        is_other_topic = ~np.isin(judgments.pairs["query_id"].to_pylist(), shown_topics[:26])
        per_topic = len(people.over(set(shown_topics[:26]))) / 26
        assert agreement.clicks_per_label == pytest.approx(
            judgments.values.clicks[is_other_topic].sum() / (agreement.worth * per_topic)
        )
    else:
        assert np.isnan(agreement.clicks_per_label)


def test_judgments_of_other_documents_are_refused():
    with pytest.raises(InputError, match="no topic has two documents"):
        against_people(small_judgments(), judged.Qrels.of({"q": {"x": 1}}))
