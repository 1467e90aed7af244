"""Tests of kinds of failure compared with hand calculation, SciPy, and exact enumeration."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, hypergeom

from judged.comparison.slicing.topic_slices import slice_topics
from judged.data.freshness import dated_documents
from judged.pipelines.traces import Document, Failures, Span, Traces, failures
from judged.pipelines.traces.failure_tests import (
    MIN_TOPICS,
    SLICE_TEST,
    FailureTest,
    Untested,
    alternatives,
    mean_test,
    missed_share,
)
from judged.pipelines.traces.steps import compare_with_rest, sufficient_intervals
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.slice_differences import against_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPICS = [f"t{i:02}" for i in range(12)]


def span(topic: str, stage: str, kind: Any, ids: str | None, parents: Sequence[str] = ()) -> Span:
    documents = (
        None if ids is None else tuple(Document(doc, rank, 10.0 - rank) for rank, doc in enumerate(ids, 1))
    )  # fmt: skip
    return Span(topic, topic, stage, kind, tuple(parents), documents)


def final_list(ids: str | None, topics: Sequence[str] = TOPICS) -> Traces:
    return Traces(tuple(span(topic, "list", "shown", ids) for topic in topics))


def find_test(result: Failures, failure: str, where: str = "all topics") -> FailureTest:
    (test,) = (test for test in result.tests if (test.failure, test.where) == (failure, where))
    return test


def test_a_mean_is_tested_by_all_sign_flips() -> None:
    """The p-value counts the 4096 sign flips of twelve values with a sum as far from 0; too few topics have none."""
    differences = np.array([0.5, 0.25, -0.25, 0.5, 1.0, 0.0, 0.75, -0.5, 0.25, 0.5, 1.0, 0.25])
    flips = np.array(list(product([-1, 1], repeat=12)))
    exact = np.mean(np.abs(flips @ differences) >= abs(differences.sum()) - 1e-9)
    values = {str(i): float(difference) for i, difference in enumerate(differences)} | {"unknown": math.nan}
    (test,) = mean_test("freshness", "all topics", "", values, 0.125)
    assert isinstance(test, FailureTest)
    assert (test.n, test.difference, test.recoverable) == (12, pytest.approx(differences.mean()), 0.125)
    assert test.p >= exact  # the larger one of this p-value and of Hall's
    assert test.p == pytest.approx(exact, rel=0.35)
    assert test.interval is not None
    assert test.interval[0] < differences.mean() < test.interval[1]
    assert "unknown" not in test.values
    (untested,) = mean_test("freshness", "all topics", "", dict(list(values.items())[: MIN_TOPICS - 1]))
    assert isinstance(untested, Untested)
    assert untested[:3] == ("freshness", "all topics", "few-units")
    assert len(list(mean_test("freshness", "", "", dict(list(values.items())[:MIN_TOPICS])))) == 1
    (constant,) = mean_test("freshness", "", "", dict.fromkeys(map(str, range(12)), 1.0))
    assert isinstance(constant, FailureTest)
    assert (constant.p, constant.interval) == (2 / 4096, None)  # no variance, no interval


def test_freshness_by_hand() -> None:
    """Pairs of one grade and different dates: b, d above a, c. Of the list 'a b', c and d are missing.

    Grades: a 1, b 1, c 1, d 2, e 0; dates: a oldest, then c, b, d. Pairs: a-b (b newer, below: +1), a-c (c newer,
    not listed, below: +1), b-c (b newer, above: -1): (1 + 1 - 1) / 3. d has another grade, e is not relevant.
    """
    dates = {"a": "2020-01-01", "c": "2020-01-02", "b": "2020-01-03", "d": "2020-01-04", "e": "2020-01-05"}
    documents = [{"doc_id": doc, "day": date} for doc, date in dates.items()]
    qrels = {topic: {"a": 1, "b": 1, "c": 1, "d": 2, "e": 0} for topic in TOPICS}
    result = failures(qrels, final_list("ab"), "R@2", documents=documents)
    test = find_test(result, "freshness")
    assert (test.n, test.difference) == (12, pytest.approx(1 / 3))
    assert test.p == pytest.approx(1 / 4096)  # one-sided: half of 2 / 4096
    assert test.significant
    swapped = find_test(failures(qrels, final_list("bca"), "R@2", documents=documents), "freshness")
    assert (swapped.difference, swapped.p) == (pytest.approx(-1), pytest.approx(1 - 1 / 4096))  # newer ones above
    assert not swapped.significant
    # later dates are left out: only the pair a-c remains, and the list 'b' has neither
    early = find_test(
        failures(qrels, final_list("b"), "R@2", documents=dated_documents(documents, as_of="2020-01-02")), "freshness"
    )
    assert early.difference == 0.0
    same_day = failures(qrels, final_list("ab"), "R@2", documents=[{"doc_id": d, "day": "2020-01-01"} for d in "abcde"])
    assert [test for test in same_day.tests if test.failure == "freshness"] == []


def test_freshness_of_unrecorded_lists_is_unknown() -> None:
    dates = [{"doc_id": doc, "date": f"2020-01-0{day}"} for day, doc in enumerate("ab", 1)]
    qrels = {topic: {"a": 1, "b": 1} for topic in TOPICS}
    spans = [*final_list("ab", TOPICS[:10]).spans, *final_list(None, TOPICS[10:]).spans]
    assert find_test(failures(qrels, Traces(tuple(spans)), "R@2", documents=dates), "freshness").n == 10


def test_calibration_by_hand() -> None:
    """Only source s returns a and c, only r returns b; all merged lists are 'a b c'; a is relevant in half of them.

    Shares by rank: 1/2, 1, 0; pooled to be decreasing: 3/4, 3/4, 0. Excess: a 1/4 or -3/4, b 1/4, c 0.
    Difference of s and r: (a + c) / 2 - b = -1/8 or -5/8.
    """
    spans = [
        recorded
        for topic in TOPICS
        for recorded in (span(topic, "s", "candidates", "ac"), span(topic, "r", "candidates", "b"),
                         span(topic, "merge", "fuse", "abc", ["s", "r"]))
    ]  # fmt: skip
    qrels = {topic: {"a": int(i % 2 == 0), "b": 1} for i, topic in enumerate(TOPICS)}
    result = failures(qrels, Traces(tuple(spans)), "RR")
    test = find_test(result, "calibration", "s at merge")
    expected = [-1 / 8 if i % 2 == 0 else -5 / 8 for i in range(12)]
    assert test.values == pytest.approx(dict(zip(TOPICS, expected, strict=True)))
    assert test.difference == pytest.approx(-3 / 8)
    assert test.p == pytest.approx(2 / 4096, rel=0.5)  # two-sided
    # RRF: a and b tie at rank 1 of one source each, c is at rank 2 of s; ties by falling id put b first. RR of the
    # merged lists is 1 or 1/2, of RRF 1: the mean gain is 1/4.
    assert test.recoverable == pytest.approx(1 / 4)
    bands = [(band.where, band.n, band.low, band.high, band.relevant) for band in result.curves]
    # s: 24 scores, 9 of a and 8 of c; sorted by score c first. Fifths of 24: 5, 5, 5, 5, 4
    assert [row[:2] for row in bands[:5]] == [("s at merge", size) for size in (5, 5, 5, 5, 4)]
    assert [row[4] for row in bands[:2]] == [0.0, 0.0]
    assert sum(row[1] * row[4] for row in bands[:5]) == pytest.approx(6)  # a is relevant on 6 topics
    assert (bands[0][2], bands[4][3]) == (8.0, 9.0)
    assert all(row[0] == "r at merge" and row[4] == 1.0 for row in bands[5:])


def test_calibration_needs_all_sources_of_a_topic() -> None:
    def traces(n_recorded: int) -> Traces:
        return Traces(tuple(
            recorded
            for i, topic in enumerate(TOPICS)
            for recorded in (span(topic, "s", "candidates", "ac" if i < n_recorded else None),
                             span(topic, "r", "candidates", "b"), span(topic, "merge", "fuse", "abc", ["s", "r"]))
        ))  # fmt: skip

    qrels = {topic: {"a": i % 2, "b": 1} for i, topic in enumerate(TOPICS)}
    assert find_test(failures(qrels, traces(11), "RR"), "calibration", "s at merge").n == 11
    for n_recorded, code in ((9, "few-units"), (0, "no-data")):
        untested = failures(qrels, traces(n_recorded), "RR").untested
        assert [row.code for row in untested if row.failure == "calibration"] == [code]


def test_subtopics_against_all_samples() -> None:
    """Relevant: a, b of subtopic 1, c of 2, d of 2 and 3. Listed: a, b. Samples have two of the four."""
    subtopics = {"1": "ab", "2": "cd", "3": "d"}
    samples = list(combinations("abcd", 2))
    expected = np.mean([[not set(docs) & set(sample) for docs in subtopics.values()] for sample in samples])
    rows = [
        {"query_id": topic, "doc_id": doc, "relevance": 1, "iteration": subtopic}
        for topic in TOPICS
        for subtopic, docs in subtopics.items()
        for doc in docs
    ]
    test = find_test(failures(rows, final_list("abx"), "P@3"), "intent", "subtopics")
    assert test.difference == pytest.approx(2 / 3 - expected)
    truncated = find_test(failures(rows, final_list("axxb".replace("xx", "xy")), "P@2"), "intent", "subtopics")
    # only a is in the top two: 2 and 3 are missing; a sample of one lacks 1 with 2/4, 2 with 2/4, 3 with 3/4
    assert truncated.difference == pytest.approx((2 - (0.5 + 0.5 + 0.75)) / 3)
    assert test.failure == "intent"  # subtopics are not a class of queries


def click_rows(rows: dict[str, tuple[int, float | None]], topics: Sequence[str] = TOPICS) -> list[dict[str, Any]]:
    return [
        {"query_id": topic, "doc_id": doc, "clicks": count, **({} if expected is None else {"expected": expected})}
        for topic in topics
        for doc, (count, expected) in rows.items()
    ]


def test_clicks_against_grades_by_hand() -> None:
    """List a b c d with grades 1 2 1 2; pairs with the better document lower: a-b, a-d, c-d.

    Clicks 3, 1, 0, 2: the worse one has more in a-b and a-d, fewer in c-d: (1 + 1 - 1) / 3.
    """
    qrels = {topic: {"a": 1, "b": 2, "c": 1, "d": 2} for topic in TOPICS}
    rows = click_rows({"a": (3, None), "b": (1, None), "c": (0, None), "d": (2, None)})
    result = failures(qrels, final_list("abcd"), "nDCG@4", clicks=rows)
    assert find_test(result, "feedback").difference == pytest.approx(1 / 3)
    codes = {(row.failure, row.where): row.code for row in result.untested}
    assert codes["feedback", "position and popularity"] == "no-data"
    partial = failures(qrels, final_list("abcd"), "nDCG@4", clicks=rows[: 4 * 11])
    assert find_test(partial, "feedback").n == 11  # the last topic has no clicks


def test_clicks_beyond_expected_ones_by_hand() -> None:
    """Upper a and lower b have the same grade, clicks 6 and 2, and expected clicks 4 and 1.

    At equal expected clicks: 6 * 1 / 5 = 1.2 and 2 * 4 / 5 = 1.6, so (1.2 - 1.6) / (1.2 + 1.6) = -1/7.
    c has no expected clicks: it was not shown. The better d below a: 6 * 2 / 6 = 2 and 3 * 4 / 6 = 2, so 0.
    """
    qrels = {topic: {"a": 1, "b": 1, "c": 1, "d": 2} for topic in TOPICS}
    rows = click_rows({"a": (6, 4.0), "b": (2, 1.0), "c": (9, None), "d": (3, 2.0)})
    # a has clicks for another topic as well, so a is more popular
    rows += [{"query_id": "elsewhere", "doc_id": "a", "clicks": 5, "expected": 1.0}]
    result = failures(qrels, final_list("abcd"), "nDCG@4", clicks=rows)
    assert find_test(result, "feedback", "position").difference == pytest.approx(-1 / 7)
    # popularity: clicks for 11 other topics, 66 + 5 of a and 22 of b
    assert find_test(result, "feedback", "popularity").difference == pytest.approx(-1 / 7)
    below = [1.2 - 1.6, 2 * 2 / 3 - 3 * 1 / 3]  # the better d below a: 0; below b: 2 * 2/3 = 4/3 and 3 * 1/3 = 1
    sizes = [4.0, 4 / 3 + 1.0]
    assert find_test(result, "feedback").difference == pytest.approx((0.0 + below[1]) / sum(sizes))


def test_labels_of_a_topic_against_all_by_fishers_test() -> None:
    """Two judges, ten topics with four documents; they disagree on three of topic 0, on one of topics 1 and 2."""
    topics = TOPICS[:10]
    n_disputed = {0: 3, 1: 1, 2: 1}
    labels = {
        judge: {
            topic: {doc: int(judge == "x" or i >= n_disputed.get(topic_index, 0)) for i, doc in enumerate("abcd")}
            for topic_index, topic in enumerate(topics)
        }
        for judge in ("x", "y")
    }
    qrels = {topic: dict.fromkeys("abcd", 1) for topic in topics}
    result = failures(qrels, final_list("ab", topics), "R@2", labels=labels)
    tests = [test for test in result.tests if test.where.startswith("labels of")]
    assert [test.difference for test in tests[:4]] == pytest.approx([3 / 4 - 5 / 40, 1 / 4 - 5 / 40, 1 / 8, -1 / 8])
    expected = [float(hypergeom.sf(n_disputed.get(topic_index, 0) - 1, 40, 5, 4)) for topic_index in range(10)]
    assert [test.p for test in tests] == pytest.approx(expected)
    assert [test.adjusted for test in result.tests] == pytest.approx(false_discovery_control(expected).tolist())
    assert [test.interval for test in tests] == [None] * 10
    too_few = failures(qrels, final_list("ab", topics[:9]), "R@2", labels=labels)
    assert [row.code for row in too_few.untested if row.where == "labels"] == ["few-units"]


def test_only_labels_of_documents_that_affect_the_score_are_tested() -> None:
    """These are relevant for a judge, or listed, and have two judges."""
    labels = {
        "x": {topic: {"a": 0, "b": 0, "c": 1, "d": 1} for topic in TOPICS},
        "y": {topic: {"a": 0, "b": 0, "c": 0} for topic in TOPICS},
    }
    qrels = {topic: {"c": 1} for topic in TOPICS}
    # a is listed, b is neither listed nor relevant, judges disagree on c, d has one judge: one of two is disputed
    result = failures(qrels, final_list("a"), "R@1", labels=labels)
    assert {test.difference for test in result.tests} == {0.0}
    deep = failures(qrels, final_list("xyab"), "R@2", labels=labels)  # neither a nor b is in the top two
    assert {(test.difference, test.p) for test in deep.tests} == {(0.0, 1.0)}


def ranked(ranks: Sequence[int]) -> Traces:
    return Traces(tuple(
        span(topic, "list", "shown", "vwxyz"[: rank - 1] + "r")
        for topic, rank in zip(topic_names(len(ranks)), ranks, strict=True)
    ))  # fmt: skip


def topic_names(count: int) -> list[str]:
    return [f"t{i:02}" for i in range(count)]


def test_classes_are_compared_with_all_others_by_welch() -> None:
    """One-sided test of the RR loss of 12 topics of class a and 18 others; share of the loss over all topics."""
    ranks = [1, 2, 4, 4, 5, 2, 3, 5, 4, 1, 5, 6, 1, 1, 2, 3, 1, 2, 1, 4, 1, 1, 2, 1, 5, 1, 2, 1, 1, 2]
    topics = topic_names(len(ranks))
    qrels = {topic: {"r": 1} for topic in topics}
    kinds = {topic: {"kind": "a" if i < 12 else "b"} for i, topic in enumerate(topics)}
    result = failures(qrels, ranked(ranks), "RR", slicing=slice_topics(kinds, "kind"))
    loss, is_member = 1 - 1 / np.array(ranks), np.arange(30) < 12
    test = find_test(result, SLICE_TEST, "kind=a")
    (expected,) = against_rest(loss, [is_member])
    assert (test.n, test.difference) == (12, pytest.approx(loss[is_member].mean() - loss[~is_member].mean()))
    assert (test.p, test.interval) == (expected.p / 2, expected.interval)
    assert test.recoverable == pytest.approx(test.difference * 12 / 30)
    assert find_test(result, SLICE_TEST, "kind=b").p == pytest.approx(1 - expected.p / 2)
    assert test.members == frozenset(topics[:12])
    small = {topic: {"kind": "a" if i < 9 else "b"} for i, topic in enumerate(topics)}
    too_few = failures(qrels, ranked(ranks), "RR", slicing=slice_topics(small, "kind"))
    assert too_few.tests == ()
    assert {(row.where, row.code) for row in too_few.untested if row.where.startswith("kind")} == {
        ("kind=a", "few-units"), ("kind=b", "few-units")
    }  # fmt: skip


def test_abandoned_good_lists_by_hand() -> None:
    """Lists with at least half the best score and no click: all of class a, none of b; rank 3 is not good."""
    ranks = [1, 2] * 7 + [1, 2, 3] * 5
    topics = topic_names(len(ranks))
    kinds = {topic: {"kind": "a" if i < 14 else "b"} for i, topic in enumerate(topics)}
    rows = [{"query_id": topic, "doc_id": "r", "clicks": int(i >= 14)} for i, topic in enumerate(topics)]
    result = failures({topic: {"r": 1} for topic in topics}, ranked(ranks), "RR", clicks=rows,
                     slicing=slice_topics(kinds, "kind"))  # fmt: skip
    (test,) = (test for test in result.tests if test.where == "kind=a" and "click" in test.quantity)
    assert (test.n, test.difference) == (14, 1.0)
    assert math.isnan(test.recoverable)
    assert test.significant


def test_the_share_of_topics_that_a_sample_can_miss() -> None:
    for n in (10, 25, 100):
        assert (1 - missed_share(n)) ** n == pytest.approx(0.05)  # the probability that none of n is one of them


def test_alternative_causes_of_the_loss_of_a_class() -> None:
    def untested(*kinds: str) -> list[Untested]:
        return [Untested(kind, "x", "no-data", "") for kind in kinds]

    fresh = FailureTest("freshness", "all topics", "", 12, 0.1, None, 0.5, values={"q": 0.1})
    labels = FailureTest("feedback", "labels of q", "", 1, 0.1, None, 0.5)
    assert alternatives(untested("missing content", "freshness", "intent"), []) == ("missing content", "freshness")
    assert alternatives(untested("freshness", "feedback"), [fresh]) == ("feedback",)
    assert alternatives(untested("feedback"), [fresh, labels]) == (
        "feedback",
    )  # labels of single topics rule out no cause
    assert alternatives(untested("calibration", "intent"), [fresh]) == ()


def test_all_tests_share_one_false_discovery_rate() -> None:
    """Benjamini and Hochberg over freshness, feedback, and two classes, against SciPy."""
    ranks = [1, 2, 4, 4, 5, 2, 3, 5, 4, 1, 5, 6, 1, 1, 2, 3, 1, 2, 1, 4, 1, 1, 2, 1]
    topics = topic_names(24)
    qrels = {topic: {"r": 1, "v": 1, "w": 2} for topic in topics}
    kinds = {topic: {"kind": "ab"[i % 2]} for i, topic in enumerate(topics)}
    dates = [{"doc_id": doc, "date": f"2020-01-0{day}"} for day, doc in enumerate("rvw", 1)]
    rows = click_rows({"r": (1, None), "v": (2, None), "w": (3, None)}, topics)
    result = failures(qrels, ranked(ranks), "nDCG@6", clicks=rows, documents=dates, slicing=slice_topics(kinds, "kind"))
    p = [test.p for test in result.tests]
    assert len(p) == 4
    assert [test.adjusted for test in result.tests] == pytest.approx(false_discovery_control(p).tolist())
    assert [test.significant for test in result.tests] == [test.adjusted <= 0.05 for test in result.tests]


def test_intervals_and_comparisons_need_enough_data() -> None:
    values = np.array([[0.1, 0.4, np.nan, np.nan], [0.1, 0.4, 0.3, np.nan], [0.5, 0.5, 0.5, 0.5]])
    limits = sufficient_intervals(values, IntervalMethod(), (0, 1))
    assert np.isnan(limits[[0, 2]]).all()
    assert limits[1].tolist() == mean_intervals(values, IntervalMethod(), (0, 1))[1].tolist()
    rng = np.random.default_rng(1)
    loss = rng.random(20)
    masks = [np.arange(20) < size for size in (5, 6, 14, 15)]
    assert [test is not None for test in compare_with_rest(loss, masks, level=0.95)] == [False, True, True, False]
    assert [test is not None for test in compare_with_rest(loss, masks, level=0.95, min_units=7)] == [False] * 4
    assert compare_with_rest(np.ones(20), masks, level=0.95) == [None] * 4
    loss[:3] = np.nan  # of the class of 6 three are known
    assert compare_with_rest(loss, masks[1:2], level=0.95) == [None]
    (test,) = compare_with_rest(np.where(np.arange(20) < 10, 1.0, 0.0), [np.arange(20) < 10], level=0.9)
    assert test is not None  # one side may be constant, and both
    assert test.difference == 1.0
