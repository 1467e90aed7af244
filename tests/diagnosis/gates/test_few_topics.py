"""Failures and passes of the gate say which few topics they rest on, and what the sample may have missed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diagnosis.gates.made import decided, pair
from judged import InputError
from judged.diagnosis.gates import gate
from judged.stats.bounded import bounded_mean, bounded_p
from judged.stats.sensitivity import few_topics

N = 50
BULK = np.array([0.005 * (at % 2) for at in range(N)])


def _rare(size: float, count: int, others: float) -> list[float]:
    gaps = others + BULK
    gaps[:count] = size
    return gaps.tolist()


def test_a_failure_that_rests_on_few_topics_that_gained_is_labeled() -> None:
    """48 topics lose 0.0525 on average, and 2 gain 0.4: the mean is -0.034; if 13 % gained, it would be above 0."""
    gaps = _rare(0.4, 2, -0.055)
    (found,) = decided(pair(gaps, margin=0.0), test="t")
    assert (found.status, found.sensitive) == ("fail", True)
    assert found.few_topics == ("q000", "q001")
    assert found.bounded_p == pytest.approx(bounded_p(np.array(gaps), 1.0) / 2)
    assert "Sensitive to a few topics (q000, q001)" in found.sentence
    assert found.blocks


def test_a_pass_that_rests_on_few_topics_that_lost_is_labeled() -> None:
    gaps = _rare(-0.4, 2, 0.02)
    (found,) = decided(pair(gaps, margin=0.02), test="t")
    assert (found.status, found.few_topics) == ("pass", ("q000", "q001"))
    assert "Sensitive to a few topics (q000, q001)" in found.sentence
    assert math.isnan(found.unseen_gain)
    assert not found.blocks


def test_the_label_is_asked_at_the_margin_and_one_sided() -> None:
    gaps = _rare(0.4, 2, -0.1)
    (found,) = decided(pair(gaps, margin=0.05), test="t")
    expected = few_topics(-np.array(gaps) - 0.05, 0.1)
    assert found.status == "fail"
    assert found.few_topics == tuple(f"q{at:03}" for at in expected)
    assert found.bounded_p == pytest.approx(bounded_p(np.array(gaps), 1.0, null=-0.05) / 2)


def test_a_pass_that_the_bounded_test_shows_one_sided_is_not_labeled() -> None:
    """Its two-sided p-value is above 0.05, and its one-sided one below."""
    gaps = _rare(-0.5, 1, 0.07)
    (found,) = decided(pair(gaps, margin=0.02), test="t")
    assert 0.025 < found.bounded_p < 0.05
    assert few_topics(np.array(gaps) + 0.02, 0.1).tolist() == [0]
    assert (found.status, found.sensitive) == ("pass", False)


def test_lower_is_better_turns_the_label_too() -> None:
    gaps = _rare(0.4, 2, -0.055)
    (up,), (down,) = (
        decided(pair([side * gap for gap in gaps], measure, margin=0.0), test="t")
        for side, measure in ((1, "AP"), (-1, "Fallout(n=100)"))
    )
    assert (down.few_topics, down.status) == (up.few_topics, "fail")
    assert down.unseen_gain == pytest.approx(-up.unseen_gain, nan_ok=True)


def test_a_failure_states_the_gain_that_it_may_have_missed() -> None:
    """Of 50 topics none may be among 5.8 % of all: (-0.02 + 0.942 * 0.0475) / 0.058 = 0.42."""
    gaps = (-0.05 + BULK).tolist()
    (found,) = decided(pair(gaps, margin=0.02), test="t")
    share = 1 - 0.05 ** (1 / N)
    expected = (-0.02 - (1 - share) * np.mean(gaps)) / share
    assert (found.status, found.sensitive) == ("fail", False)
    assert found.unseen_gain == pytest.approx(expected)
    assert f"difference above {expected:+.2f} there" in found.sentence
    assert math.isnan(decided(pair(gaps * 2, margin=0.02), test="t")[0].unseen_gain)  # 100 topics
    assert math.isnan(decided(pair([gap - 0.3 for gap in gaps], margin=0.02), test="t")[0].unseen_gain)  # beyond 1


def test_the_verdict_counts_what_is_sensitive() -> None:
    qrels = {f"q{at:02}": {"d": 1} for at in range(N)}
    first = {query: ["a", "b", "c", "d"] for query in qrels}
    second = {query: ["a", "b", "c", "e", "d"] if at >= 3 else ["a", "d"] for at, query in enumerate(qrels)}
    found = gate(qrels, first, second, {"gate": {"test": "t"}, "check": [{"measure": "RR", "margin": 0.001}]})
    assert (found.status, found.checks[0].few_topics) == ("fail", ("q00", "q01", "q02"))
    assert found.sentences[0].endswith("1 of 1 check failed (1 check that failed is sensitive to a few topics).")
    (row,) = found.to_dict()["checks"]
    assert (row["sensitive"], row["few_topics"]) == (True, ["q00", "q01", "q02"])


@pytest.mark.parametrize("margin", [0.0, 0.05, 1.5])
def test_the_bounded_test_is_that_of_the_differences_at_the_margin(margin: float) -> None:
    gaps = np.random.default_rng(3).normal(-0.1, 0.15, 30).clip(-0.5, 0.5)
    (found,) = decided(pair(gaps, margin=margin), test="bounded")
    low = max(-margin, -1.0)
    tests = [bounded_mean(gaps, -1.0, 1.0, null=low, alternative=side, level=0.95) for side in ("less", "greater")]
    if margin <= 1:
        assert (found.p, found.p_safe) == pytest.approx(tuple(test.p for test in tests))
        assert found.interval == pytest.approx((tests[1].interval[0], tests[0].interval[1]))
    else:
        assert found.status == "pass"
    assert math.isnan(found.detectable)
    assert found.test == "bounded"


def test_the_bounded_test_needs_a_measure_with_bounds() -> None:
    qrels = {f"q{at}": {"d": 1} for at in range(12)}
    runs = [dict.fromkeys(qrels, docs) for docs in (["d"], ["x", "d"])]
    asked = {"gate": {"test": "bounded"}, "check": [{"measure": "DCG@5", "margin": 0.1}]}
    with pytest.raises(InputError, match="no upper bound"):
        gate(qrels, *runs, asked)


@pytest.mark.parametrize("n", [10, 25])
def test_the_bounded_test_seldom_fails_a_harmless_candidate_whatever_the_shape(n: int) -> None:
    """5 % of all topics gain 0.4 and nothing is lost: t fails 61 % of samples of 10 topics, and labels them."""
    rng = np.random.default_rng(n)
    rare = rng.random((150, n)) < 0.05
    drawn = np.where(rare, 0.4, -0.4 * 0.05 / 0.95) + 0.005 * rng.normal(size=rare.shape)
    bounded = [decided(pair(row, margin=0.0), test="bounded")[0] for row in drawn]
    usual = [decided(pair(row, margin=0.0), test="t")[0] for row in drawn]
    failed = np.array([one.status == "fail" for one in usual])
    assert np.mean([one.status == "fail" for one in bounded]) <= 0.05
    assert failed.mean() > 0.25
    told = np.array([one.sensitive or not math.isnan(one.unseen_gain) for one in usual])
    assert told[failed].mean() > 0.95
