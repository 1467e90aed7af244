"""Inputs of tests of kinds of failure by topic: traces, grades, dates, subtopics, clicks, and labels."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.freshness import dated_documents
from judged.data.qrels import Qrels
from judged.errors import InputError
from judged.pipelines.traces import Document, Span, Traces, failures
from judged.pipelines.traces.failure_tests import (
    SLICE_TEST,
    FailureTest,
    _grades_of,
    _share_of_sums,
    mean_test,
    run_tests,
)
from judged.pipelines.traces.funnel import funnel
from pipelines.traces.test_failure_tests import TOPICS, click_rows, final_list, find_test, ranked, span, topic_names


def merged(sources: dict[str, str], fused: str, topics: Any = TOPICS) -> Traces:
    """Return traces of sources and of their merged list."""
    return Traces(tuple(
        recorded for topic in topics
        for recorded in (*(span(topic, name, "candidates", ids) for name, ids in sources.items()),
                     span(topic, "merge", "fuse", fused, [*sources]))
    ))  # fmt: skip


def test_each_of_three_sources_is_tested_against_the_others() -> None:
    """Only s returns a, only r b, only q c; s and q return d, no source e; grades from 2 are relevant.

    In even topics a is relevant, b and e always; c is not judged, d has grade 1. By rank 1/2, 1, 0, 0, 1 are
    relevant; pooled to be decreasing 3/4, 3/4, 1/3, 1/3, 1/3. Excess: a 1/4 or -3/4, b 1/4, c and d -1/3.
    """
    qrels = {topic: {"a": 2 - i % 2, "b": 2, "d": 1, "e": 3} for i, topic in enumerate(TOPICS)}
    result = failures(qrels, merged({"s": "ad", "r": "b", "q": "cd"}, "abcde"), "RR(rel=2)")
    tests = {test.where: test for test in result.tests}
    assert list(tests) == ["s at merge", "r at merge", "q at merge"]
    for is_even, i in ((True, 0), (False, 1)):
        a, b, c, d = 0.25 if is_even else -0.75, 0.25, -1 / 3, -1 / 3
        values = [tests[name].values[TOPICS[i]] for name in tests]
        assert values == pytest.approx([a - (b + c) / 2, b - (a + c + d) / 3, c - (a + b) / 2])
    assert tests["r at merge"].quantity == (
        "share of relevant documents, compared with the usual share at the same rank of merge: documents returned only"
        " by r, minus documents returned by s or q but not by r"
    )
    assert all(test.failure == "calibration" for test in result.tests)
    two_sources = failures(qrels, merged({"s": "ad", "r": "b"}, "ab"), "RR(rel=2)")
    assert [test.where for test in two_sources.tests] == ["s at merge"]


def test_ranks_are_weighted_by_the_number_of_lists() -> None:
    """14 lists: 10 are 'ab', 4 are 'a'; a is relevant in 6 long ones, b in 10: 16 of 24 documents are relevant."""
    long = merged({"s": "a", "r": "b"}, "ab", [*TOPICS[:8], "u0", "u1"])
    traces = Traces((*long.spans, *merged({"s": "a", "r": ""}, "a", TOPICS[8:]).spans))
    qrels = {topic: {"a": int(i < 6), "b": 1} for i, topic in enumerate([*TOPICS, "u0", "u1"])}
    test = find_test(failures(qrels, traces, "RR"), "calibration", "s at merge")
    curve = (6 + 10) / (14 + 10)
    assert [*test.values] == [*TOPICS[:8], "u0", "u1"]
    assert [*test.values.values()] == pytest.approx([(i < 6) - curve - (1 - curve) for i in (*range(8), 8, 9)])


def test_the_gain_of_reciprocal_rank_fusion() -> None:
    """Fused lists are as deep as the merged list: b has rank 3 behind x and y, which tie at rank 1."""
    qrels = {topic: {"b": 1} for topic in TOPICS}
    deep = failures(qrels, merged({"s": "x", "r": "yb"}, "xy"), "RR")
    assert find_test(deep, "calibration", "s at merge").recoverable == 0.0
    longer = failures(qrels, merged({"s": "x", "r": "yb"}, "xyz"), "RR")
    assert find_test(longer, "calibration", "s at merge").recoverable == pytest.approx(1 / 3)
    # topics with an unrecorded source are left out, with their gain
    spans = [
        recorded
        for recorded in merged({"s": "x", "r": "yb"}, "xyz").spans
        if (recorded.query_id, recorded.stage) != ("t00", "r")
    ]
    traces = Traces((*spans, span("t00", "r", "candidates", None), *merged({"s": "x", "r": "b"}, "xb", ["u"]).spans))
    qrels |= {"u": {"b": 1}}
    # 11 topics gain 1/3; in the fused list of u b has rank 2 as well, as x and b tie and later ids come first
    test = find_test(failures(qrels, traces, "RR"), "calibration", "s at merge")
    assert test.recoverable == pytest.approx((11 / 3 + 0.5 - 0.5) / 12)


def test_the_share_relevant_by_score() -> None:
    """Seven scores of s in bands of 2, 2, 1, 1, 1; documents without score are left out, grades from 2 are relevant."""
    spans: list[Span] = []
    for i, topic in enumerate(("t0", "t1")):
        scores = ((0.1, 0.2, 0.3, 0.4, None), (0.5, 0.6, 0.7))[i]
        ranked_docs = tuple(Document(f"d{rank}", rank, score) for rank, score in enumerate(scores, 1))
        spans += [Span(topic, topic, "s", "candidates", (), ranked_docs),
                  Span(topic, topic, "r", "candidates", (), (Document("d1", 1, None),)),
                  Span(topic, topic, "merge", "fuse", ("s", "r"), (Document("d1", 1),))]  # fmt: skip
    qrels = {"t0": {"d1": 2, "d2": 1, "d4": 2}, "t1": {"d1": 0, "d3": 3}}
    bands = failures(qrels, Traces(tuple(spans)), "RR(rel=2)").curves
    assert [tuple(band) for band in bands] == [
        ("s at merge", 2, 0.1, 0.2, 0.5), ("s at merge", 2, 0.3, 0.4, 0.5), ("s at merge", 1, 0.5, 0.5, 0.0),
        ("s at merge", 1, 0.6, 0.6, 0.0), ("s at merge", 1, 0.7, 0.7, 1.0),
    ]  # fmt: skip
    assert failures(qrels, ranked_list(), "RR(rel=2)").curves == ()


def ranked_list() -> Traces:
    return Traces((span("t0", "list", "shown", "ab"), span("t1", "list", "shown", "ab")))


def test_the_highest_of_several_grades_of_a_pair_is_used() -> None:
    rows = [("q", "a", 1, "x"), ("q", "a", 2, "y"), ("q", "a", 0, "z"), ("q", "b", -1, "x"), ("p", "a", 3, "x")]
    names = ("query_id", "doc_id", "relevance", "iteration")
    qrels = Qrels.of([dict(zip(names, row, strict=True)) for row in rows])
    assert _grades_of(qrels) == {"q": {"a": 2.0, "b": -1.0}, "p": {"a": 3.0}}


def test_dates_of_relevant_documents_of_one_grade() -> None:
    """Grades from 2 are relevant; topics without a pair are left out; the default reference day is the newest date."""
    dates = [{"doc_id": doc, "date": f"2020-01-0{day}"} for day, doc in enumerate("abcd", 1)]
    qrels = {topic: {"a": 2, "b": 2, "c": 1, "d": 1} for topic in TOPICS}
    traces = Traces((*final_list("abcd").spans, *final_list("a", ["u"]).spans, *final_list("xb", ["v"]).spans))
    qrels |= {"u": {"a": 2, "c": 1}, "v": {"a": 2, "b": 2}}
    test = find_test(failures(qrels, traces, "P(rel=2)@4", documents=dates), "freshness")
    assert dict(test.values) == {**dict.fromkeys(TOPICS, 1.0), "v": -1.0}
    assert test.quantity.endswith("documents after 2020-01-04 are ignored")
    without_pairs = failures(qrels, traces, "P(rel=2)@4", documents=dated_documents(dates, as_of="2020-01-01"))
    assert [row.where for row in without_pairs.untested if row.failure == "freshness"] == ["all topics"]
    with_day = failures(qrels, traces, "P(rel=2)@4", documents=dated_documents(dates, as_of="2020-01-02"))
    assert find_test(with_day, "freshness").quantity.endswith("documents after 2020-01-02 are ignored")
    with pytest.raises(InputError, match="no column of dates"):
        failures(qrels, traces, "P(rel=2)@4", documents=[{"doc_id": "z", "date": None}])


def test_subtopics_of_relevant_documents_within_the_cutoff() -> None:
    """Topics need two subtopics and a relevant document in the list; grades from 2 are relevant."""
    subtopics = {"1": {"a": 2, "b": 2}, "2": {"c": 2, "d": 1}, "3": {"e": 1}}
    rows = [
        {"query_id": topic, "doc_id": doc, "relevance": grade, "iteration": subtopic}
        for topic in [*TOPICS, "unseen"]
        for subtopic, docs in subtopics.items()
        for doc, grade in docs.items()
    ]
    rows += [{"query_id": "single", "doc_id": doc, "relevance": 2, "iteration": "1"} for doc in "ab"]
    traces = Traces(
        (*final_list("axb").spans, *final_list("xyc", ["unseen"]).spans, *final_list("ax", ["single"]).spans)
    )
    test = find_test(failures(rows, traces, "P(rel=2)@2"), "intent", "subtopics")
    # a is listed, 2 is missing; a sample of one of a, b, c lacks 1 with 1/3 and 2 with 2/3
    assert dict(test.values) == pytest.approx(dict.fromkeys(TOPICS, (1 - 1 / 3 - 2 / 3) / 2))
    deeper = find_test(failures(rows, traces, "P(rel=2)@3"), "intent", "subtopics")
    # a and b are listed, 2 is missing; samples of two never lack 1, and lack 2 with 1/3
    assert deeper.values["t00"] == pytest.approx((1 - 1 / 3) / 2)
    assert deeper.values["unseen"] == pytest.approx((1 - 1 / 3 - 2 / 3) / 2)
    without_subtopics = failures({topic: {"a": 1} for topic in TOPICS}, final_list("a"), "P@2")
    assert ("intent", "subtopics", "no-data") in [row[:3] for row in without_subtopics.untested]


def test_classes_with_constant_losses_are_not_listed_as_untested() -> None:
    """Ten and ten topics are enough, nine and eleven are too few; constant losses cannot be compared."""
    topics = topic_names(20)
    qrels = {topic: {"r": 1} for topic in topics}
    ranks = [1, 2] * 10
    for size, untested_classes in ((10, []), (9, ["kind=a", "kind=b"])):
        slicing = slice_topics(
            {topic: {"kind": "ab"[i >= size]} for i, topic in enumerate(topics)}, "kind", min_topics=1
        )
        result = failures(qrels, ranked(ranks), "RR", slicing=slicing)
        assert [row.where for row in result.untested if row.code == "few-units"] == untested_classes
        assert [test.where for test in result.tests] == ([] if untested_classes else ["kind=a", "kind=b"])
        constant = failures(qrels, ranked([2] * 20), "RR", slicing=slicing)
        assert constant.tests == ()
        assert [row.where for row in constant.untested if row.code == "few-units"] == untested_classes
    halves = slice_topics({topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(topics)}, "kind")
    # 9 + 10 topics with good lists have clicks: too few, although the classes have enough topics
    rows = [{"query_id": topic, "doc_id": "r", "clicks": i % 3} for i, topic in enumerate(topics[1:])]
    result = failures(qrels, ranked(ranks), "RR", slicing=halves, clicks=rows)
    assert [(test.where, test.failure) for test in result.tests] == [("kind=a", SLICE_TEST), ("kind=b", SLICE_TEST)]
    assert [row.where for row in result.untested if row.code == "few-units"] == ["all topics"]
    (test, _) = result.tests
    assert (test.n, test.difference, test.recoverable) == (10, -0.5, pytest.approx(-0.25))
    assert dict(test.values) == {topic: 0.5 * (i % 2) for i, topic in enumerate(topics)}


def test_clicks_follow_grades_position_and_popularity() -> None:
    """List a b c has grades 1, 1, 2, expected clicks 4, 2, 1, and clicks 8, 2, 1.

    a and b have the same grade: 8 * 2 / 6 = 8/3 and 2 * 4 / 6 = 4/3, so 1/3; c below a: 8/5 and 4/5, below b
    2/3 and 2/3. b has more clicks for the other topic.
    """
    qrels = {topic: {"a": 1, "b": 1, "c": 2} for topic in TOPICS}
    rows = click_rows({"a": (8, 4.0), "b": (2, 2.0), "c": (1, 1.0)})
    rows += [{"query_id": "other", "doc_id": "b", "clicks": 500, "expected": 1.0}]
    result = failures(qrels, final_list("abc"), "nDCG@3", clicks=rows)
    expected = ((8 - 4) / 5 + 0) / (12 / 5 + 4 / 3)
    assert find_test(result, "feedback").difference == pytest.approx(expected)
    assert find_test(result, "feedback", "position").difference == pytest.approx(1 / 3)
    assert find_test(result, "feedback", "popularity").difference == pytest.approx(-1 / 3)
    assert [test.where for test in result.tests] == ["all topics", "position", "popularity"]
    # equally popular: 11 other topics with 8 and 2 clicks, and 66 more of b
    equal_popularity = [*rows[:-1], {"query_id": "other", "doc_id": "b", "clicks": 66, "expected": 1.0}]
    result = failures(qrels, final_list("abc"), "nDCG@3", clicks=equal_popularity)
    assert {row.where for row in result.untested if row.code == "few-units"} == {"popularity"}
    assert find_test(result, "feedback", "position").n == 12
    assert _share_of_sums([(1.0, 4.0), (1.0, 2.0)]) == pytest.approx(1 / 3)
    assert math.isnan(_share_of_sums([]))


def test_judges_of_documents_that_decide_the_score() -> None:
    """All twelve topics have a (listed), b (relevant for one judge), c (neither), and d (one judge)."""
    labels = {
        "x": {topic: {"a": 2, "b": 2, "c": 1, "d": 2} for topic in TOPICS},
        "y": {topic: {"a": 2 if i else 1, "b": 0, "c": 1} for i, topic in enumerate(TOPICS)},
    }
    qrels = {topic: {"a": 2} for topic in TOPICS}
    result = failures(qrels, final_list("xac"), "P(rel=2)@2", labels=labels)
    tests = [test for test in result.tests if test.where.startswith("labels of ")]
    assert [test.where for test in tests] == [f"labels of {topic}" for topic in TOPICS]
    # on the first topic two of two are disputed, on the others one of two: 13 of 24
    assert [test.difference for test in tests] == pytest.approx([1 - 13 / 24, *[1 / 2 - 13 / 24] * 11])
    assert {(test.failure, test.n, test.interval) for test in tests} == {("feedback", 1, None)}
    assert all(math.isnan(test.recoverable) for test in tests)
    ten_topics = failures(qrels, final_list("xac", TOPICS[:10]), "P(rel=2)@2", labels=labels)
    assert len([test for test in ten_topics.tests if test.where.startswith("labels of ")]) == 10


def test_order_sides_and_discoveries() -> None:
    """Calibration is tested two-sided, all others one-sided; the corpus is the first untested subject."""
    qrels = {topic: {"a": int(i % 2 == 0), "b": 1} for i, topic in enumerate(TOPICS)}
    traces = merged({"s": "ac", "r": "b"}, "abc")
    dates = [{"doc_id": doc, "date": f"2020-01-0{i}"} for i, doc in enumerate("abc", 1)]
    losses, judgments = funnel(qrels, traces, "RR"), Qrels.of(qrels)
    options: dict[str, Any] = {"documents": dates, "clicks": None, "labels": None}
    tests, untested = run_tests(losses, judgments, **options, fdr=0.05, level=0.95, seed=0)
    (calibration,) = tests
    (separate,) = mean_test("calibration", "", "", calibration.values, level=0.95, seed=0)
    assert isinstance(separate, FailureTest)
    assert calibration.p == separate.p == calibration.adjusted
    assert calibration.significant
    at_p, _ = run_tests(losses, judgments, **options, fdr=calibration.p, level=0.95, seed=0)
    below_p, _ = run_tests(losses, judgments, **options, fdr=calibration.p * 0.999, level=0.95, seed=0)
    assert [at_p[0].significant, below_p[0].significant] == [True, False]
    assert [row.failure for row in untested] == [
        "missing content",
        "freshness",
        "intent",
        "intent",
        "feedback",
        "feedback",
    ]
    without_data = failures(qrels, final_list("ab"), "RR").untested
    assert [row.failure for row in without_data][:2] == ["missing content", "calibration"]
    corpus = funnel(qrels, traces, "RR", corpus="abc")
    _, without = run_tests(corpus, judgments, **options, fdr=0.05, level=0.95, seed=0)
    assert without[0].failure == "freshness"


@pytest.mark.parametrize(("difference", "p"), [(1.0, 2 / 4096), (-1.0, 2 / 4096)])
def test_levels_and_seeds_of_means(difference: float, p: float) -> None:
    rng = np.random.default_rng(5)
    values = {str(i): difference + 0.1 * float(rng.random()) for i in range(12)}
    (test,) = mean_test("freshness", "w", "what", values)
    assert isinstance(test, FailureTest)
    assert (test.failure, test.where, test.quantity, test.n) == ("freshness", "w", "what", 12)
    assert test.p == pytest.approx(p, rel=1e-6)
    assert math.isnan(test.recoverable)
    widths = []
    for level in (0.8, 0.95):
        (one_level,) = mean_test("freshness", "w", "what", values, level=level, seed=1)
        assert isinstance(one_level, FailureTest)
        assert one_level.interval is not None
        widths.append(one_level.interval[1] - one_level.interval[0])
    assert all(narrow < wide for narrow, wide in pairwise(widths))
