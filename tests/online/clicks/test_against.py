"""Judgments made of clicks against people's: known agreements, what is left of position, and the order of systems."""

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
from online.offline.pages_made import log_of

HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


@pytest.fixture(scope="module")
def log():
    return read_log(sample.LOG)


def by_hand():
    # q: a is clicked 8 times of 10, b at rank 2 4 times, c at rank 3 never
    pages = [
        {"query": "q", "shown": ["a", "b", "c"], "clicks": ["a"] * (at < 8) + ["b"] * (at < 4), "user": at}
        for at in range(10)
    ]
    return judge_clicks(log_of(pages, has=HAS))


def test_pairs_of_documents_by_hand():
    made = against_people(by_hand(), {"q": {"a": 1, "b": 2, "c": 0}})
    own, raw, rank = made.orders
    # every ratio is 1 at a rank with one document, and c has nothing: no order of a and b; c is below both
    assert (own.compared, raw.compared) == (3, 3)
    assert (raw.value, rank.value) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert [(row.ranks, row.documents, row.people, row.ctr) for row in made.ranks] == [
        ("1", 1, 1, 0.8), ("2 to 3", 2, 1, 0.2)
    ]  # fmt: skip
    assert own.ci is None  # of one topic


def test_partial_tau_is_kendalls(log):
    judgments = judge_clicks(log, min_shown=20)
    one = max(set(judgments.pairs["query_id"].to_pylist()), key=judgments.pairs["query_id"].to_pylist().count)
    rows = np.array(judgments.pairs["query_id"].to_pylist()) == one
    grades = sample.qrels().over({one})
    made = against_people(judgments, grades)
    known = {row["doc_id"]: max(row["relevance"], 0) for row in grades.table.to_pylist()}
    docs = np.array(judgments.pairs["doc_id"].to_pylist())[rows]
    grade = np.array([known.get(doc, np.nan) for doc in docs])
    both = ~np.isnan(grade)
    value, high = judgments.grade[rows][both], -judgments.values.rank[rows][both]
    r, g, b = (kendalltau(*two)[0] for two in ((value, high), (value, grade[both]), (high, grade[both])))
    assert made.feedback[0].tau == pytest.approx(r)
    assert made.feedback[0].partial == pytest.approx((r - g * b) / np.sqrt((1 - g**2) * (1 - b**2)))


def test_debiasing_takes_position_out_and_orders_systems_as_people_do(log):
    people, runs = sample.qrels(), sample.runs()
    usual = against_people(judge_clicks(log), people, runs, resamples=100)
    known = against_people(judge_clicks(log, propensities=propensities(log)), people, runs, resamples=100)
    raw = usual.feedback[1]
    assert raw.ci[0] > 0.2  # clicks alone follow the rank
    assert abs(known.feedback[0].partial) < abs(usual.feedback[0].partial) < raw.ci[1]
    assert known.orders[0].value > known.orders[1].value > known.orders[2].value
    assert known.tau > 0.9
    assert known.systems == len(runs)


def test_slices_part_the_pairs(log):
    slicing = slice_topics(str(sample.FOLDER / "queries.jsonl"), "query_class")
    made = against_people(judge_clicks(log), sample.qrels(), slicing=slicing)
    whole, *parts = [row for row in made.orders if row.source == "judgments"]
    assert {row.slice for row in parts} <= set(slicing.names)
    assert sum(row.compared for row in parts) == whole.compared
    assert sum(row.n for row in parts) == whole.n


def test_clicks_have_a_price_where_they_are_worth_something(log):
    people = sample.qrels()
    judgments = judge_clicks(log, propensities=propensities(log))
    shown = [topic for topic in people.topics if topic in set(judgments.pairs["query_id"].to_pylist())]
    made = against_people(judgments, people.over(set(shown[:26])), sample.runs(), resamples=200)
    if made.worth_ci is not None and made.worth_ci[0] > 0:
        others = ~np.isin(judgments.pairs["query_id"].to_pylist(), shown[:26])
        per_topic = len(people.over(set(shown[:26]))) / 26
        assert made.clicks_a_label == pytest.approx(judgments.values.clicks[others].sum() / (made.worth * per_topic))
    else:
        assert np.isnan(made.clicks_a_label)


def test_judgments_of_other_documents_are_refused():
    with pytest.raises(InputError, match="no topic has two documents"):
        against_people(by_hand(), judged.Qrels.of({"q": {"x": 1}}))
