"""What tests of kinds of failure take from traces, grades, dates, subtopics, clicks, and labels, topic by topic."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.qrels import Qrels
from judged.pipelines.traces import Document, Span, Traces, failures
from judged.pipelines.traces.failure_tests import CLASS, FailureTest, _grades, _share, of_topics
from judged.pipelines.traces.failure_tests import tested as all_tests
from judged.pipelines.traces.funnel import funnel
from pipelines.traces.test_failure_tests import TOPICS, clicks, one, range_of, ranked, shown, span


def merged(lists: dict[str, str], fused: str, topics: Any = TOPICS) -> Traces:
    """Return traces of sources and of the list that a stage makes of them."""
    return Traces(tuple(
        made for topic in topics
        for made in (*(span(topic, name, "candidates", ids) for name, ids in lists.items()),
                     span(topic, "merge", "fuse", fused, [*lists]))
    ))  # fmt: skip


def test_three_sources_are_tested_each_against_the_others() -> None:
    """s alone gives a, r alone b, q alone c; d is of s and q, and e of nobody; grades of 2 count.

    In even topics a is relevant; b and e are, c is not judged, d has a grade of 1. By rank 1/2, 1, 0, 0, 1 are
    relevant; so that it falls 3/4, 3/4, 1/3, 1/3, 1/3. Beyond that: a 1/4 or -3/4, b 1/4, c and d -1/3.
    """
    qrels = {topic: {"a": 2 - at % 2, "b": 2, "d": 1, "e": 3} for at, topic in enumerate(TOPICS)}
    found = failures(qrels, merged({"s": "ad", "r": "b", "q": "cd"}, "abcde"), "RR(rel=2)")
    tests = {test.where: test for test in found.tests}
    assert list(tests) == ["s at merge", "r at merge", "q at merge"]
    for even, at in ((True, 0), (False, 1)):
        a, b, c, d = 0.25 if even else -0.75, 0.25, -1 / 3, -1 / 3
        values = [tests[name].values[TOPICS[at]] for name in tests]
        assert values == pytest.approx([a - (b + c) / 2, b - (a + c + d) / 3, c - (a + b) / 2])
    assert tests["r at merge"].what == "share relevant at the same place of merge, r alone less s, q alone"
    assert all(test.failure == "calibration" for test in found.tests)
    two = failures(qrels, merged({"s": "ad", "r": "b"}, "ab"), "RR(rel=2)")
    assert [test.where for test in two.tests] == ["s at merge"]


def test_lists_of_other_lengths_weigh_less_at_their_ends() -> None:
    """Of 14 lists 10 are 'ab' and 4 'a'; a is relevant in 6 of them, all long, b in 10: in all 16 of 24 documents."""
    long = merged({"s": "a", "r": "b"}, "ab", [*TOPICS[:8], "u0", "u1"])
    traces = Traces((*long.spans, *merged({"s": "a", "r": ""}, "a", TOPICS[8:]).spans))
    qrels = {topic: {"a": int(at < 6), "b": 1} for at, topic in enumerate([*TOPICS, "u0", "u1"])}
    test = one(failures(qrels, traces, "RR"), "calibration", "s at merge")
    curve = (6 + 10) / (14 + 10)
    assert [*test.values] == [*TOPICS[:8], "u0", "u1"]
    assert [*test.values.values()] == pytest.approx([(at < 6) - curve - (1 - curve) for at in (*range(8), 8, 9)])


def test_what_a_merge_by_ranks_gains() -> None:
    """As deep as the merged list: b, first of r, comes second of x, y, b behind the tie of x and y at rank 1."""
    qrels = {topic: {"b": 1} for topic in TOPICS}
    deep = failures(qrels, merged({"s": "x", "r": "yb"}, "xy"), "RR")
    assert one(deep, "calibration", "s at merge").recoverable == 0.0
    longer = failures(qrels, merged({"s": "x", "r": "yb"}, "xyz"), "RR")
    assert one(longer, "calibration", "s at merge").recoverable == pytest.approx(1 / 3)
    # of one topic a source is not recorded; it is left out, and so is what its list would have gained
    some = [made for made in merged({"s": "x", "r": "yb"}, "xyz").spans if (made.query_id, made.stage) != ("t00", "r")]
    lost = Traces((*some, span("t00", "r", "candidates", None), *merged({"s": "x", "r": "b"}, "xb", ["u"]).spans))
    qrels |= {"u": {"b": 1}}
    # 11 topics gain 1/3; of u the fused list has b second too, as x and b tie and later ids come first
    found = one(failures(qrels, lost, "RR"), "calibration", "s at merge")
    assert found.recoverable == pytest.approx((11 / 3 + 0.5 - 0.5) / 12)


def test_the_share_relevant_by_score() -> None:
    """Seven scores of s in five bands of 2, 2, 1, 1, 1; documents without a score or a grade of 2 do not count."""
    spans: list[Span] = []
    for at, topic in enumerate(("t0", "t1")):
        scores = ((0.1, 0.2, 0.3, 0.4, None), (0.5, 0.6, 0.7))[at]
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


def test_of_several_grades_of_a_pair_the_highest_counts() -> None:
    rows = [("q", "a", 1, "x"), ("q", "a", 2, "y"), ("q", "a", 0, "z"), ("q", "b", -1, "x"), ("p", "a", 3, "x")]
    names = ("query_id", "doc_id", "relevance", "iteration")
    qrels = Qrels.of([dict(zip(names, row, strict=True)) for row in rows])
    assert _grades(qrels) == {"q": {"a": 2.0, "b": -1.0}, "p": {"a": 3.0}}


def test_dates_of_relevant_documents_of_one_grade() -> None:
    """Grades of 2 count; a topic without a pair says nothing; today is the newest date, or what is given."""
    dates = [{"doc_id": doc, "date": f"2020-01-0{at}"} for at, doc in enumerate("abcd", 1)]
    qrels = {topic: {"a": 2, "b": 2, "c": 1, "d": 1} for topic in TOPICS}
    traces = Traces((*shown("abcd").spans, *shown("a", ["u"]).spans, *shown("xb", ["v"]).spans))
    qrels |= {"u": {"a": 2, "c": 1}, "v": {"a": 2, "b": 2}}
    found = one(failures(qrels, traces, "P(rel=2)@4", documents=dates), "freshness")
    assert dict(found.values) == {**dict.fromkeys(TOPICS, 1.0), "v": -1.0}
    assert found.what.endswith("today is 2020-01-04")
    none = failures(qrels, traces, "P(rel=2)@4", documents=dates, today="2020-01-01")
    assert [row.what for row in none.untested if row.failure == "freshness"] == ["all topics"]
    now = failures(qrels, traces, "P(rel=2)@4", documents=dates, today="2020-01-02")
    assert one(now, "freshness").what.endswith("today is 2020-01-02")
    empty = failures(qrels, traces, "P(rel=2)@4", documents=[{"doc_id": "z", "date": None}])
    assert [row.code for row in empty.untested if row.failure == "freshness"] == ["few-units"]


def test_subtopics_of_relevant_documents_within_the_cutoff() -> None:
    """A topic counts with two subtopics or more, of which one document is seen; grades of 2 are relevant."""
    parts = {"1": {"a": 2, "b": 2}, "2": {"c": 2, "d": 1}, "3": {"e": 1}}
    rows = [
        {"query_id": topic, "doc_id": doc, "relevance": grade, "iteration": part}
        for topic in [*TOPICS, "unseen"]
        for part, docs in parts.items()
        for doc, grade in docs.items()
    ]
    rows += [{"query_id": "single", "doc_id": doc, "relevance": 2, "iteration": "1"} for doc in "ab"]
    traces = Traces((*shown("axb").spans, *shown("xyc", ["unseen"]).spans, *shown("ax", ["single"]).spans))
    found = one(failures(rows, traces, "P(rel=2)@2"), "intent", "subtopics")
    # a is seen: 2 is left out; one of a, b, c by lot leaves out 1 in 1/3 and 2 in 2/3
    assert dict(found.values) == pytest.approx(dict.fromkeys(TOPICS, (1 - 1 / 3 - 2 / 3) / 2))
    deeper = one(failures(rows, traces, "P(rel=2)@3"), "intent", "subtopics")
    # a and b of three: 2 is left out; by lot 1 never, 2 in one of three draws
    assert deeper.values["t00"] == pytest.approx((1 - 1 / 3) / 2)
    assert deeper.values["unseen"] == pytest.approx((1 - 1 / 3 - 2 / 3) / 2)
    plain = failures({topic: {"a": 1} for topic in TOPICS}, shown("a"), "P@2")
    assert ("intent", "subtopics", "no-data") in [row[:3] for row in plain.untested]


def test_classes_with_enough_topics_but_no_loss_are_no_untested_ones() -> None:
    """Ten against ten; nine against eleven are too few; where every loss is the same nothing can be compared."""
    topics = range_of(20)
    qrels = {topic: {"r": 1} for topic in topics}
    ranks = [1, 2] * 10
    for first, few in ((10, []), (9, ["kind=a", "kind=b"])):
        slicing = slice_topics(
            {topic: {"kind": "ab"[at >= first]} for at, topic in enumerate(topics)}, "kind", min_topics=1
        )
        found = failures(qrels, ranked(ranks), "RR", slicing=slicing)
        assert [row.what for row in found.untested if row.code == "few-units"] == few
        assert [test.where for test in found.tests] == ([] if few else ["kind=a", "kind=b"])
        same = failures(qrels, ranked([2] * 20), "RR", slicing=slicing)
        assert same.tests == ()
        assert [row.what for row in same.untested if row.code == "few-units"] == few
    halves = slice_topics({topic: {"kind": "ab"[at % 2]} for at, topic in enumerate(topics)}, "kind")
    # clicks of 9 + 10 topics with good lists: too few, which is no lack of topics of the class itself
    given = [{"query_id": topic, "doc_id": "r", "clicks": at % 3} for at, topic in enumerate(topics[1:])]
    found = failures(qrels, ranked(ranks), "RR", slicing=halves, clicks=given)
    assert [(test.where, test.failure) for test in found.tests] == [("kind=a", CLASS), ("kind=b", CLASS)]
    assert [row.what for row in found.untested if row.code == "few-units"] == ["all topics"]
    (test, _) = found.tests
    assert (test.n, test.difference, test.recoverable) == (10, -0.5, pytest.approx(-0.25))
    assert dict(test.values) == {topic: 0.5 * (at % 2) for at, topic in enumerate(topics)}


def test_clicks_follow_grades_position_and_popularity() -> None:
    """List a b c, of grades 1 1 2; ranks let expect 4, 2, and 1 clicks, and there are 8, 2, and 1.

    a and b, of one grade: 8 * 2 / 6 = 8/3 and 2 * 4 / 6 = 4/3, so 1/3; the better c below a: 8/5 and 4/5, below b
    2/3 and 2/3. b is clicked more for the other topic.
    """
    qrels = {topic: {"a": 1, "b": 1, "c": 2} for topic in TOPICS}
    given = clicks({"a": (8, 4.0), "b": (2, 2.0), "c": (1, 1.0)})
    given += [{"query_id": "other", "doc_id": "b", "clicks": 500, "expected": 1.0}]
    found = failures(qrels, shown("abc"), "nDCG@3", clicks=given)
    worse = ((8 - 4) / 5 + 0) / (12 / 5 + 4 / 3)
    assert one(found, "feedback").difference == pytest.approx(worse)
    assert one(found, "feedback", "position").difference == pytest.approx(1 / 3)
    assert one(found, "feedback", "popularity").difference == pytest.approx(-1 / 3)
    assert [test.where for test in found.tests] == ["all topics", "position", "popularity"]
    # as popular as each other: 11 other topics with 8 and 2 clicks, and 66 more of b
    level = [*given[:-1], {"query_id": "other", "doc_id": "b", "clicks": 66, "expected": 1.0}]
    found = failures(qrels, shown("abc"), "nDCG@3", clicks=level)
    assert {row.what for row in found.untested if row.code == "few-units"} == {"popularity"}
    assert one(found, "feedback", "position").n == 12
    assert _share([(1.0, 4.0), (1.0, 2.0)]) == pytest.approx(1 / 3)
    assert math.isnan(_share([]))


def test_judges_of_documents_that_decide_the_score() -> None:
    """Of twelve topics each has a, seen, and b, found by one judge; c is neither, and d has one judge."""
    labels = {
        "x": {topic: {"a": 2, "b": 2, "c": 1, "d": 2} for topic in TOPICS},
        "y": {topic: {"a": 2 if at else 1, "b": 0, "c": 1} for at, topic in enumerate(TOPICS)},
    }
    qrels = {topic: {"a": 2} for topic in TOPICS}
    found = failures(qrels, shown("xac"), "P(rel=2)@2", labels=labels)
    tests = [test for test in found.tests if test.where.startswith("labels of ")]
    assert [test.where for test in tests] == [f"labels of {topic}" for topic in TOPICS]
    # on the first topic two of two are apart, on the others one of two: 13 of 24
    assert [test.difference for test in tests] == pytest.approx([1 - 13 / 24, *[1 / 2 - 13 / 24] * 11])
    assert {(test.failure, test.n, test.interval) for test in tests} == {("feedback", 1, None)}
    assert all(math.isnan(test.recoverable) for test in tests)
    ten = failures(qrels, shown("xac", TOPICS[:10]), "P(rel=2)@2", labels=labels)
    assert len([test for test in ten.tests if test.where.startswith("labels of ")]) == 10


def test_order_sides_and_discoveries() -> None:
    """Calibration is tested on both sides, all others on one; the corpus stands first among what is not tested."""
    qrels = {topic: {"a": int(at % 2 == 0), "b": 1} for at, topic in enumerate(TOPICS)}
    traces = merged({"s": "ac", "r": "b"}, "abc")
    dates = [{"doc_id": doc, "date": f"2020-01-0{at}"} for at, doc in enumerate("abc", 1)]
    made, judgments = funnel(qrels, traces, "RR"), Qrels.of(qrels)
    given: dict[str, Any] = {"documents": dates, "date": "date", "today": None, "clicks": None, "labels": None}
    tests, untested = all_tests(made, judgments, **given, fdr=0.05, level=0.95, seed=0)
    (calibration,) = tests
    (alone,) = of_topics("calibration", "", "", calibration.values, level=0.95, seed=0)
    assert isinstance(alone, FailureTest)
    assert calibration.p == alone.p == calibration.adjusted
    assert calibration.found
    same, _ = all_tests(made, judgments, **given, fdr=calibration.p, level=0.95, seed=0)
    less, _ = all_tests(made, judgments, **given, fdr=calibration.p * 0.999, level=0.95, seed=0)
    assert [same[0].found, less[0].found] == [True, False]
    assert [row.failure for row in untested] == [
        "missing content",
        "freshness",
        "intent",
        "intent",
        "feedback",
        "feedback",
    ]
    plain = failures(qrels, shown("ab"), "RR").untested
    assert [row.failure for row in plain][:2] == ["missing content", "calibration"]
    corpus = funnel(qrels, traces, "RR", corpus="abc")
    _, without = all_tests(corpus, judgments, **given, fdr=0.05, level=0.95, seed=0)
    assert without[0].failure == "freshness"


@pytest.mark.parametrize(("difference", "p"), [(1.0, 2 / 4096), (-1.0, 2 / 4096)])
def test_levels_and_seeds_of_means(difference: float, p: float) -> None:
    rng = np.random.default_rng(5)
    values = {str(at): difference + 0.1 * float(rng.random()) for at in range(12)}
    (found,) = of_topics("freshness", "w", "what", values)
    assert isinstance(found, FailureTest)
    assert (found.failure, found.where, found.what, found.n) == ("freshness", "w", "what", 12)
    assert found.p == pytest.approx(p, rel=1e-6)
    assert math.isnan(found.recoverable)
    widths = []
    for level in (0.8, 0.95):
        (one_level,) = of_topics("freshness", "w", "what", values, level=level, seed=1)
        assert isinstance(one_level, FailureTest)
        assert one_level.interval is not None
        widths.append(one_level.interval[1] - one_level.interval[0])
    assert all(narrow < wide for narrow, wide in pairwise(widths))
