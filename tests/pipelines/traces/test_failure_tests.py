"""The tests of kinds of failure against hand calculation, SciPy, and exact enumeration."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, hypergeom

from judged.comparison.slicing.topic_slices import slice_topics
from judged.errors import InputError
from judged.pipelines.traces import Document, Failures, Span, Traces, failures
from judged.pipelines.traces.failure_tests import (
    CLASS,
    LEAST,
    FailureTest,
    Untested,
    alternatives,
    missed_share,
    of_topics,
)
from judged.pipelines.traces.steps import compare_with_rest, sufficient_intervals
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.slice_differences import against_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPICS = [f"t{at:02}" for at in range(12)]


def span(topic: str, stage: str, kind: Any, ids: str | None, parents: Sequence[str] = ()) -> Span:
    documents = (
        None if ids is None else tuple(Document(doc, rank, 10.0 - rank) for rank, doc in enumerate(ids, 1))
    )  # fmt: skip
    return Span(topic, topic, stage, kind, tuple(parents), documents)


def shown(ids: str | None, topics: Sequence[str] = TOPICS) -> Traces:
    return Traces(tuple(span(topic, "list", "shown", ids) for topic in topics))


def one(found: Failures, failure: str, where: str = "all topics") -> FailureTest:
    (test,) = (test for test in found.tests if (test.failure, test.where) == (failure, where))
    return test


def test_a_mean_is_tested_by_all_sign_flips() -> None:
    """Twelve values: the p-value counts the 4096 flips whose sum is as far from 0; too few topics give the reason."""
    gaps = np.array([0.5, 0.25, -0.25, 0.5, 1.0, 0.0, 0.75, -0.5, 0.25, 0.5, 1.0, 0.25])
    flips = np.array(list(product([-1, 1], repeat=12)))
    exact = np.mean(np.abs(flips @ gaps) >= abs(gaps.sum()) - 1e-9)
    values = {str(at): float(gap) for at, gap in enumerate(gaps)} | {"unknown": math.nan}
    (test,) = of_topics("freshness", "all topics", "", values, 0.125)
    assert isinstance(test, FailureTest)
    assert (test.n, test.difference, test.recoverable) == (12, pytest.approx(gaps.mean()), 0.125)
    assert test.p >= exact  # the larger one of this p-value and of Hall's
    assert test.p == pytest.approx(exact, rel=0.35)
    assert test.interval is not None
    assert test.interval[0] < gaps.mean() < test.interval[1]
    assert "unknown" not in test.values
    (untested,) = of_topics("freshness", "all topics", "", dict(list(values.items())[: LEAST - 1]))
    assert isinstance(untested, Untested)
    assert untested[:3] == ("freshness", "all topics", "few-units")
    assert len(list(of_topics("freshness", "", "", dict(list(values.items())[:LEAST])))) == 1
    (same,) = of_topics("freshness", "", "", dict.fromkeys(map(str, range(12)), 1.0))
    assert isinstance(same, FailureTest)
    assert (same.p, same.interval) == (2 / 4096, None)  # no variance, no interval


def test_freshness_by_hand() -> None:
    """Pairs of one grade and different dates: b, d above a, c. Of the list 'a b', c and d are missing.

    Grades: a 1, b 1, c 1, d 2, e 0; dates: a oldest, then c, b, d. Pairs: a-b (b newer, below: +1), a-c (c newer,
    not listed, below: +1), b-c (b newer, above: -1): (1 + 1 - 1) / 3. d has another grade, e is not relevant.
    """
    dates = {"a": "2020-01-01", "c": "2020-01-02", "b": "2020-01-03", "d": "2020-01-04", "e": "2020-01-05"}
    documents = [{"doc_id": doc, "day": date} for doc, date in dates.items()]
    qrels = {topic: {"a": 1, "b": 1, "c": 1, "d": 2, "e": 0} for topic in TOPICS}
    made = failures(qrels, shown("ab"), "R@2", documents=documents, date="day")
    test = one(made, "freshness")
    assert (test.n, test.difference) == (12, pytest.approx(1 / 3))
    assert test.p == pytest.approx(1 / 4096)  # one-sided: half of 2 / 4096
    assert test.found
    swapped = one(failures(qrels, shown("bca"), "R@2", documents=documents, date="day"), "freshness")
    assert (swapped.difference, swapped.p) == (pytest.approx(-1), pytest.approx(1 - 1 / 4096))  # newer ones above
    assert not swapped.found
    # what is dated later than today is left out: only a-c, neither of which is in the list 'b'
    early = one(failures(qrels, shown("b"), "R@2", documents=documents, date="day", today="2020-01-02"), "freshness")
    assert early.difference == 0.0
    same_day = failures(qrels, shown("ab"), "R@2", documents=[{"doc_id": d, "day": "2020-01-01"} for d in "abcde"],
                        date="day")  # fmt: skip
    assert [test for test in same_day.tests if test.failure == "freshness"] == []
    with pytest.raises(InputError, match=r"no column 'date' of dates \(there is .*day"):
        failures(qrels, shown("ab"), "R@2", documents=documents)


def test_freshness_of_a_list_that_is_not_recorded_is_unknown() -> None:
    dates = [{"doc_id": doc, "date": f"2020-01-0{at}"} for at, doc in enumerate("ab", 1)]
    qrels = {topic: {"a": 1, "b": 1} for topic in TOPICS}
    spans = [*shown("ab", TOPICS[:10]).spans, *shown(None, TOPICS[10:]).spans]
    assert one(failures(qrels, Traces(tuple(spans)), "R@2", documents=dates), "freshness").n == 10


def test_calibration_by_hand() -> None:
    """Source s alone gives a and c, source r alone b; all merged lists are 'a b c'; in half of them a is relevant.

    By rank 1/2, 1, 0 are relevant; pooled so that it falls: 3/4, 3/4, 0. Beyond the curve: a 1/4 or -3/4, b 1/4, c 0.
    s alone less r alone: (a + c) / 2 - b = -1/8 or -5/8.
    """
    spans = [
        one_span
        for topic in TOPICS
        for one_span in (span(topic, "s", "candidates", "ac"), span(topic, "r", "candidates", "b"),
                         span(topic, "merge", "fuse", "abc", ["s", "r"]))
    ]  # fmt: skip
    qrels = {topic: {"a": int(at % 2 == 0), "b": 1} for at, topic in enumerate(TOPICS)}
    found = failures(qrels, Traces(tuple(spans)), "RR")
    test = one(found, "calibration", "s at merge")
    expected = [-1 / 8 if at % 2 == 0 else -5 / 8 for at in range(12)]
    assert test.values == pytest.approx(dict(zip(TOPICS, expected, strict=True)))
    assert test.difference == pytest.approx(-3 / 8)
    assert test.p == pytest.approx(2 / 4096, rel=0.5)  # two-sided
    # RRF: a and b tie at rank 1 of one source each, c is at rank 2 of s; ties by falling id put b first. RR of the
    # merged lists is 1 or 1/2, of RRF 1: the mean gain is 1/4.
    assert test.recoverable == pytest.approx(1 / 4)
    bands = [(band.where, band.n, band.low, band.high, band.relevant) for band in found.curves]
    # s: 24 scores, 9 of a and 8 of c; sorted by score c first. Fifths of 24: 5, 5, 5, 5, 4
    assert [row[:2] for row in bands[:5]] == [("s at merge", size) for size in (5, 5, 5, 5, 4)]
    assert [row[4] for row in bands[:2]] == [0.0, 0.0]
    assert sum(row[1] * row[4] for row in bands[:5]) == pytest.approx(6)  # a is relevant on 6 topics
    assert (bands[0][2], bands[4][3]) == (8.0, 9.0)
    assert all(row[0] == "r at merge" and row[4] == 1.0 for row in bands[5:])


def test_calibration_needs_every_source_of_a_topic() -> None:
    def traces(recorded: int) -> Traces:
        return Traces(tuple(
            one_span
            for at, topic in enumerate(TOPICS)
            for one_span in (span(topic, "s", "candidates", "ac" if at < recorded else None),
                             span(topic, "r", "candidates", "b"), span(topic, "merge", "fuse", "abc", ["s", "r"]))
        ))  # fmt: skip

    qrels = {topic: {"a": at % 2, "b": 1} for at, topic in enumerate(TOPICS)}
    assert one(failures(qrels, traces(11), "RR"), "calibration", "s at merge").n == 11
    for recorded, code in ((9, "few-units"), (0, "no-data")):
        untested = [
            one.code for one in failures(qrels, traces(recorded), "RR").untested if one.failure == "calibration"
        ]
        assert untested == [code]


def test_subtopics_against_all_draws() -> None:
    """Relevant: a, b of subtopic 1, c of 2, d of 2 and 3. Shown: a, b. By lot two of the four are drawn."""
    parts = {"1": "ab", "2": "cd", "3": "d"}
    draws = list(combinations("abcd", 2))
    lot = np.mean([[not set(docs) & set(draw) for docs in parts.values()] for draw in draws])
    rows = [
        {"query_id": topic, "doc_id": doc, "relevance": 1, "iteration": part}
        for topic in TOPICS
        for part, docs in parts.items()
        for doc in docs
    ]
    test = one(failures(rows, shown("abx"), "P@3"), "intent", "subtopics")
    assert test.difference == pytest.approx(2 / 3 - lot)
    cut = one(failures(rows, shown("axxb".replace("xx", "xy")), "P@2"), "intent", "subtopics")
    # only a is within the first two: left out 2 and 3; by lot one of four: 1 is left out by 2/4, 2 by 2/4, 3 by 3/4
    assert cut.difference == pytest.approx((2 - (0.5 + 0.5 + 0.75)) / 3)
    assert test.failure == "intent"  # whatever else was not tested: subtopics are no class of queries


def clicks(rows: dict[str, tuple[int, float | None]], topics: Sequence[str] = TOPICS) -> list[dict[str, Any]]:
    return [
        {"query_id": topic, "doc_id": doc, "clicks": times, **({} if hope is None else {"expected": hope})}
        for topic in topics
        for doc, (times, hope) in rows.items()
    ]


def test_clicks_against_grades_by_hand() -> None:
    """List a b c d with grades 1 2 1 2; pairs whose better one stands lower: a-b, a-d, c-d.

    Clicks 3, 1, 0, 2: the worse one has more in a-b and a-d, fewer in c-d: (1 + 1 - 1) / 3.
    """
    qrels = {topic: {"a": 1, "b": 2, "c": 1, "d": 2} for topic in TOPICS}
    given = clicks({"a": (3, None), "b": (1, None), "c": (0, None), "d": (2, None)})
    found = failures(qrels, shown("abcd"), "nDCG@4", clicks=given)
    assert one(found, "feedback").difference == pytest.approx(1 / 3)
    codes = {(row.failure, row.what): row.code for row in found.untested}
    assert codes["feedback", "position and popularity"] == "no-data"
    some = failures(qrels, shown("abcd"), "nDCG@4", clicks=given[: 4 * 11])
    assert one(some, "feedback").n == 11  # of the last topic no clicks are known


def test_clicks_beyond_expected_ones_by_hand() -> None:
    """Upper a, lower b, of one grade: clicks 6 and 2, of which ranks let 4 and 1 expect.

    As if each had been shown equally often: 6 * 1 / 5 = 1.2 and 2 * 4 / 5 = 1.6: (1.2 - 1.6) / (1.2 + 1.6) = -1/7.
    c has no expected clicks: it was not shown. Of the better d below a: 6 * 2 / 6 = 2 and 3 * 4 / 6 = 2: 0.
    """
    qrels = {topic: {"a": 1, "b": 1, "c": 1, "d": 2} for topic in TOPICS}
    given = clicks({"a": (6, 4.0), "b": (2, 1.0), "c": (9, None), "d": (3, 2.0)})
    # a is clicked for another topic too, so a is the popular one of a pair
    given += [{"query_id": "elsewhere", "doc_id": "a", "clicks": 5, "expected": 1.0}]
    found = failures(qrels, shown("abcd"), "nDCG@4", clicks=given)
    assert one(found, "feedback", "position").difference == pytest.approx(-1 / 7)
    # popular: 11 other topics' clicks, 66 + 5 of a against 22 of b
    assert one(found, "feedback", "popularity").difference == pytest.approx(-1 / 7)
    below = [1.2 - 1.6, 2 * 2 / 3 - 3 * 1 / 3]  # the better d below a: 0; below b: 2 * 2/3 = 4/3 and 3 * 1/3 = 1
    sizes = [4.0, 4 / 3 + 1.0]
    assert one(found, "feedback").difference == pytest.approx((0.0 + below[1]) / sum(sizes))


def test_labels_of_a_topic_against_all_by_fishers_test() -> None:
    """Two judges, ten topics, four documents each; on topic 0 they disagree on three, on topics 1 and 2 on one."""
    topics = TOPICS[:10]
    apart = {0: 3, 1: 1, 2: 1}
    labels = {
        judge: {
            topic: {doc: int(judge == "x" or place >= apart.get(at, 0)) for place, doc in enumerate("abcd")}
            for at, topic in enumerate(topics)
        }
        for judge in ("x", "y")
    }
    qrels = {topic: dict.fromkeys("abcd", 1) for topic in topics}
    found = failures(qrels, shown("ab", topics), "R@2", labels=labels)
    tests = [test for test in found.tests if test.where.startswith("labels of")]
    assert [test.difference for test in tests[:4]] == pytest.approx([3 / 4 - 5 / 40, 1 / 4 - 5 / 40, 1 / 8, -1 / 8])
    expected = [float(hypergeom.sf(apart.get(at, 0) - 1, 40, 5, 4)) for at in range(10)]
    assert [test.p for test in tests] == pytest.approx(expected)
    assert [test.adjusted for test in found.tests] == pytest.approx(false_discovery_control(expected).tolist())
    assert [test.interval for test in tests] == [None] * 10
    few = failures(qrels, shown("ab", topics[:9]), "R@2", labels=labels)
    assert [row.code for row in few.untested if row.what == "labels"] == ["few-units"]


def test_labels_count_for_documents_that_decide_the_score() -> None:
    """Found relevant by a judge, or seen; graded by two judges."""
    labels = {
        "x": {topic: {"a": 0, "b": 0, "c": 1, "d": 1} for topic in TOPICS},
        "y": {topic: {"a": 0, "b": 0, "c": 0} for topic in TOPICS},
    }
    qrels = {topic: {"c": 1} for topic in TOPICS}
    # a is seen, b is neither seen nor relevant to anybody, c is apart, d has one judge: one of two is apart
    found = failures(qrels, shown("a"), "R@1", labels=labels)
    assert {test.difference for test in found.tests} == {0.0}
    deep = failures(qrels, shown("xyab"), "R@2", labels=labels)  # neither a nor b is within the first two
    assert {(test.difference, test.p) for test in deep.tests} == {(0.0, 1.0)}


def ranked(ranks: Sequence[int]) -> Traces:
    return Traces(tuple(
        span(topic, "list", "shown", "vwxyz"[: rank - 1] + "r")
        for topic, rank in zip(range_of(len(ranks)), ranks, strict=True)
    ))  # fmt: skip


def range_of(count: int) -> list[str]:
    return [f"t{at:02}" for at in range(count)]


def test_classes_are_welch_s_comparison_with_all_others() -> None:
    """Loss of RR of 12 topics of class a and 18 others; one-sided; what the class loses of the mean over all topics."""
    ranks = [1, 2, 4, 4, 5, 2, 3, 5, 4, 1, 5, 6, 1, 1, 2, 3, 1, 2, 1, 4, 1, 1, 2, 1, 5, 1, 2, 1, 1, 2]
    topics = range_of(len(ranks))
    qrels = {topic: {"r": 1} for topic in topics}
    kinds = {topic: {"kind": "a" if at < 12 else "b"} for at, topic in enumerate(topics)}
    found = failures(qrels, ranked(ranks), "RR", slicing=slice_topics(kinds, "kind"))
    loss, inside = 1 - 1 / np.array(ranks), np.arange(30) < 12
    test = one(found, CLASS, "kind=a")
    (oracle,) = against_rest(loss, [inside])
    assert (test.n, test.difference) == (12, pytest.approx(loss[inside].mean() - loss[~inside].mean()))
    assert (test.p, test.interval) == (oracle.p / 2, oracle.interval)
    assert test.recoverable == pytest.approx(test.difference * 12 / 30)
    assert one(found, CLASS, "kind=b").p == pytest.approx(1 - oracle.p / 2)
    assert test.members == frozenset(topics[:12])
    small = {topic: {"kind": "a" if at < 9 else "b"} for at, topic in enumerate(topics)}
    few = failures(qrels, ranked(ranks), "RR", slicing=slice_topics(small, "kind"))
    assert few.tests == ()
    assert {(row.what, row.code) for row in few.untested if row.what.startswith("kind")} == {
        ("kind=a", "few-units"), ("kind=b", "few-units")
    }  # fmt: skip


def test_good_lists_that_are_left_by_hand() -> None:
    """Lists of half the best score or more without a click: all of class a, none of b; rank 3 is no good list."""
    ranks = [1, 2] * 7 + [1, 2, 3] * 5
    topics = range_of(len(ranks))
    kinds = {topic: {"kind": "a" if at < 14 else "b"} for at, topic in enumerate(topics)}
    given = [{"query_id": topic, "doc_id": "r", "clicks": int(at >= 14)} for at, topic in enumerate(topics)]
    found = failures({topic: {"r": 1} for topic in topics}, ranked(ranks), "RR", clicks=given,
                     slicing=slice_topics(kinds, "kind"))  # fmt: skip
    (test,) = (test for test in found.tests if test.where == "kind=a" and "click" in test.what)
    assert (test.n, test.difference) == (14, 1.0)
    assert math.isnan(test.recoverable)
    assert test.found


def test_the_share_of_topics_that_a_sample_can_miss() -> None:
    for n in (10, 25, 100):
        assert (1 - missed_share(n)) ** n == pytest.approx(0.05)  # the chance that none of n is one of them


def test_kinds_that_could_be_the_reason_for_a_class() -> None:
    def untested(*kinds: str) -> list[Untested]:
        return [Untested(kind, "x", "no-data", "") for kind in kinds]

    fresh = FailureTest("freshness", "all topics", "", 12, 0.1, None, 0.5, values={"q": 0.1})
    labels = FailureTest("feedback", "labels of q", "", 1, 0.1, None, 0.5)
    assert alternatives(untested("missing content", "freshness", "intent"), []) == ("missing content", "freshness")
    assert alternatives(untested("freshness", "feedback"), [fresh]) == ("feedback",)
    assert alternatives(untested("feedback"), [fresh, labels]) == ("feedback",)  # labels of single topics say nothing
    assert alternatives(untested("calibration", "intent"), [fresh]) == ()


def test_all_tests_share_one_false_discovery_rate() -> None:
    """Benjamini and Hochberg over freshness, feedback, and two classes, against SciPy."""
    ranks = [1, 2, 4, 4, 5, 2, 3, 5, 4, 1, 5, 6, 1, 1, 2, 3, 1, 2, 1, 4, 1, 1, 2, 1]
    topics = range_of(24)
    qrels = {topic: {"r": 1, "v": 1, "w": 2} for topic in topics}
    kinds = {topic: {"kind": "ab"[at % 2]} for at, topic in enumerate(topics)}
    dates = [{"doc_id": doc, "date": f"2020-01-0{at}"} for at, doc in enumerate("rvw", 1)]
    given = clicks({"r": (1, None), "v": (2, None), "w": (3, None)}, topics)
    found = failures(qrels, ranked(ranks), "nDCG@6", clicks=given, documents=dates, slicing=slice_topics(kinds, "kind"))
    p = [test.p for test in found.tests]
    assert len(p) == 4
    assert [test.adjusted for test in found.tests] == pytest.approx(false_discovery_control(p).tolist())
    assert [test.found for test in found.tests] == [test.adjusted <= 0.05 for test in found.tests]


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
