"""Failures and passes of the gate name the few topics that they depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diagnosis.gates.check_scores import decided, pair
from judged import InputError
from judged.diagnosis.gates import gate
from judged.stats.bounded import bounded_mean, bounded_p
from judged.stats.sensitivity import few_topics

N = 50
JITTER = np.array([0.005 * (i % 2) for i in range(N)])


def _rare_differences(size: float, count: int, common: float) -> list[float]:
    differences = common + JITTER
    differences[:count] = size
    return differences.tolist()


def test_a_failure_that_rests_on_few_topics_that_gained_is_labeled() -> None:
    """48 topics lose 0.0525 on average, and 2 gain 0.4: the mean is -0.034; if 13 % gained, it would be above 0."""
    differences = _rare_differences(0.4, 2, -0.055)
    (result,) = decided(pair(differences, margin=0.0), test="t")
    assert (result.status, result.sensitive) == ("fail", True)
    assert result.few_topics == ("q000", "q001")
    assert result.bounded_p == pytest.approx(bounded_p(np.array(differences), 1.0) / 2)
    assert "Sensitive to a few topics (q000, q001)" in result.sentence
    assert result.blocks


def test_a_pass_that_rests_on_few_topics_that_lost_is_labeled() -> None:
    differences = _rare_differences(-0.4, 2, 0.02)
    (result,) = decided(pair(differences, margin=0.02), test="t")
    assert (result.status, result.few_topics) == ("pass", ("q000", "q001"))
    assert "Sensitive to a few topics (q000, q001)" in result.sentence
    assert math.isnan(result.unsampled_gain)
    assert not result.blocks


def test_the_label_is_asked_at_the_margin_and_one_sided() -> None:
    differences = _rare_differences(0.4, 2, -0.1)
    (result,) = decided(pair(differences, margin=0.05), test="t")
    expected = few_topics(-np.array(differences) - 0.05, 0.1)
    assert result.status == "fail"
    assert result.few_topics == tuple(f"q{i:03}" for i in expected)
    assert result.bounded_p == pytest.approx(bounded_p(np.array(differences), 1.0, null=-0.05) / 2)


def test_a_pass_that_the_bounded_test_shows_one_sided_is_not_labeled() -> None:
    """Its two-sided p-value is above 0.05, and its one-sided one below."""
    differences = _rare_differences(-0.5, 1, 0.07)
    (result,) = decided(pair(differences, margin=0.02), test="t")
    assert 0.025 < result.bounded_p < 0.05
    assert few_topics(np.array(differences) + 0.02, 0.1).tolist() == [0]
    assert (result.status, result.sensitive) == ("pass", False)


def test_lower_is_better_turns_the_label_too() -> None:
    differences = _rare_differences(0.4, 2, -0.055)
    (up,), (down,) = (
        decided(pair([sign * difference for difference in differences], measure, margin=0.0), test="t")
        for sign, measure in ((1, "AP"), (-1, "Fallout(n=100)"))
    )
    assert (down.few_topics, down.status) == (up.few_topics, "fail")
    assert down.unsampled_gain == pytest.approx(-up.unsampled_gain, nan_ok=True)


def test_a_failure_states_the_gain_that_it_may_have_missed() -> None:
    """Of 50 topics none may be among 5.8 % of all: (-0.02 + 0.942 * 0.0475) / 0.058 = 0.42."""
    differences = (-0.05 + JITTER).tolist()
    (result,) = decided(pair(differences, margin=0.02), test="t")
    share = 1 - 0.05 ** (1 / N)
    expected = (-0.02 - (1 - share) * np.mean(differences)) / share
    assert (result.status, result.sensitive) == ("fail", False)
    assert result.unsampled_gain == pytest.approx(expected)
    assert f"is above {expected:+.2f}" in result.sentence
    assert math.isnan(decided(pair(differences * 2, margin=0.02), test="t")[0].unsampled_gain)  # 100 topics
    assert math.isnan(
        decided(pair([gap - 0.3 for gap in differences], margin=0.02), test="t")[0].unsampled_gain
    )  # beyond 1


def test_the_verdict_counts_what_is_sensitive() -> None:
    qrels = {f"q{i:02}": {"d": 1} for i in range(N)}
    first = {query: ["a", "b", "c", "d"] for query in qrels}
    second = {query: ["a", "b", "c", "e", "d"] if i >= 3 else ["a", "d"] for i, query in enumerate(qrels)}
    result = gate(qrels, first, second, {"gate": {"test": "t"}, "check": [{"measure": "RR", "margin": 0.001}]})
    assert (result.status, result.checks[0].few_topics) == ("fail", ("q00", "q01", "q02"))
    assert result.sentences[0].endswith("1 of 1 check failed (1 check that failed is sensitive to a few topics).")
    (row,) = result.to_dict()["checks"]
    assert (row["sensitive"], row["few_topics"]) == (True, ["q00", "q01", "q02"])


@pytest.mark.parametrize("margin", [0.0, 0.05, 1.5])
def test_the_bounded_test_is_that_of_the_differences_at_the_margin(margin: float) -> None:
    differences = np.random.default_rng(3).normal(-0.1, 0.15, 30).clip(-0.5, 0.5)
    (result,) = decided(pair(differences, margin=margin), test="bounded")
    low = max(-margin, -1.0)
    tests = [
        bounded_mean(differences, -1.0, 1.0, null=low, alternative=side, level=0.95) for side in ("less", "greater")
    ]
    if margin <= 1:
        assert (result.p, result.p_safe) == pytest.approx(tuple(test.p for test in tests))
        assert result.interval == pytest.approx((tests[1].interval[0], tests[0].interval[1]))
    else:
        assert result.status == "pass"
    assert math.isnan(result.detectable)
    assert result.test == "bounded"


def test_the_bounded_test_needs_a_measure_with_bounds() -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(12)}
    runs = [dict.fromkeys(qrels, docs) for docs in (["d"], ["x", "d"])]
    config = {"gate": {"test": "bounded"}, "check": [{"measure": "DCG@5", "margin": 0.1}]}
    with pytest.raises(InputError, match="no upper bound"):
        gate(qrels, *runs, config)


@pytest.mark.parametrize("n", [10, 25])
def test_the_bounded_test_seldom_fails_a_harmless_candidate_whatever_the_shape(n: int) -> None:
    """5 % of all topics gain 0.4 and nothing is lost: t fails 61 % of samples of 10 topics, and labels them."""
    rng = np.random.default_rng(n)
    rare = rng.random((150, n)) < 0.05
    differences = np.where(rare, 0.4, -0.4 * 0.05 / 0.95) + 0.005 * rng.normal(size=rare.shape)
    bounded_results = [decided(pair(row, margin=0.0), test="bounded")[0] for row in differences]
    t_results = [decided(pair(row, margin=0.0), test="t")[0] for row in differences]
    failed = np.array([result.status == "fail" for result in t_results])
    assert np.mean([result.status == "fail" for result in bounded_results]) <= 0.05
    assert failed.mean() > 0.25
    labeled = np.array([result.sensitive or not math.isnan(result.unsampled_gain) for result in t_results])
    assert labeled[failed].mean() > 0.95
