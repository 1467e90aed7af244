"""Power and sample sizes: against statsmodels, Cohen's tables, simulation; plans by hand."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.power import TTestPower

from judged import InputError
from judged.stats.sample_size import minimum_detectable, plan, plan_of_sd, power, topics_needed_t

NAN = math.nan


@pytest.mark.parametrize("n", [2, 3, 10, 43, 250, 6980])
@pytest.mark.parametrize("dz", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2])
def test_power_is_that_of_statsmodels(n: int, dz: float, alpha: float) -> None:
    expected = TTestPower().power(dz, n, alpha)
    if math.isnan(expected):  # its lower tail, which is nothing by then
        assert dz * math.sqrt(n) > 5
        expected = scipy_stats.nct.sf(scipy_stats.t.isf(alpha / 2, n - 1), n - 1, dz * math.sqrt(n))
    assert power(dz * 0.2, 0.2, n, alpha) == pytest.approx(expected, abs=1e-8)
    assert power(-dz, 1.0, n, alpha) == pytest.approx(expected, abs=1e-8)


def test_power_is_what_the_t_test_does() -> None:
    """20,000 samples of 12 differences; four standard errors are at most 0.0142."""
    samples = np.random.default_rng(3).normal(0.1, 0.15, (20_000, 12))
    found = (scipy_stats.ttest_1samp(samples, 0.0, axis=1).pvalue <= 0.05).mean()
    assert power(0.1, 0.15, 12) == pytest.approx(found, abs=0.0142)


@pytest.mark.parametrize(
    ("dz", "alpha", "beta", "n"),
    [(0.2, 0.05, 0.2, 199), (0.5, 0.05, 0.2, 34), (0.8, 0.05, 0.2, 15), (0.5, 0.05, 0.05, 54), (0.5, 0.01, 0.2, 51)],
)
def test_topics_for_cohens_small_medium_and_large_effects(dz: float, alpha: float, beta: float, n: int) -> None:
    """The numbers that G*Power and R's power.t.test give for a paired test, rounded up."""
    assert topics_needed_t(dz, 1.0, alpha, 1 - beta) == n
    assert topics_needed_t(-dz / 10, 0.1, alpha, 1 - beta) == n


@given(st.floats(0.02, 3), st.sampled_from([0.01, 0.05]), st.sampled_from([0.5, 0.8, 0.95]))
def test_topics_needed_are_the_fewest(dz: float, alpha: float, asked: float) -> None:
    n = topics_needed_t(dz, 1.0, alpha, asked)
    assert power(dz, 1.0, n, alpha) >= asked - 1e-9
    assert n == 2 or power(dz, 1.0, n - 1, alpha) < asked + 1e-9


@given(st.integers(2, 5000), st.floats(0.01, 10), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_detectable_difference_is_found_with_that_power(n: int, sd: float, asked: float) -> None:
    found = minimum_detectable(sd, n, power=asked)
    assert power(found, sd, n) == pytest.approx(asked, abs=1e-9)
    assert topics_needed_t(found * (1 + 1e-9), sd, power=asked) == n


def test_very_many_topics() -> None:
    """As for the normal distribution: ((1.959964 + 0.841621) / dz)^2 = 7.848880 / dz^2."""
    assert topics_needed_t(1e-4, 1.0) == pytest.approx(7.848880e8, rel=1e-6)
    assert minimum_detectable(1.0, 10**8) == pytest.approx(2.801585e-4, rel=1e-5)
    assert power(1e9, 1e-9, 43) == 1.0


def test_where_nothing_is_known() -> None:
    assert math.isnan(power(0.1, 0.2, 1))
    assert math.isnan(power(0.0, 0.0, 10))
    assert power(0.1, 0.0, 10) == 1.0
    assert math.isnan(minimum_detectable(0.2, 1))
    assert math.isnan(minimum_detectable(NAN, 10))
    assert minimum_detectable(0.0, 10) == 0.0
    assert topics_needed_t(0.1, 0.0) == 2


SCORES = np.array([[0.2, 0.4, 0.5, 0.1, 0.3], [0.3, 0.6, 0.5, 0.3, 0.3], [0.9, 0.1, 0.4, NAN, 0.2]])


def test_a_plan_of_two_systems_by_hand() -> None:
    """Differences 0.1, 0.2, 0, 0.2, 0: mean 0.1, variance 0.04 / 4 = 0.01."""
    found = plan(SCORES[:2], difference=0.05)
    assert (found.n, found.n_observed, found.left_out, found.systems) == (5, 5, 0, 2)
    assert found.sd == pytest.approx(0.1, rel=1e-12)
    assert found.detectable == pytest.approx(minimum_detectable(0.1, 5), rel=1e-12)
    assert found.topics_needed == 34
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.n, pair.topics_needed) == (0, 1, 5, 34)
    assert (pair.difference, pair.sd, pair.detectable) == pytest.approx((0.1, found.sd, found.detectable))
    assert (
        plan(SCORES[:2], n=43).sentence
        == "With 43 topics you can detect a difference of 0.044 (80% power, alpha 0.05)."
    )


def test_a_plan_leaves_out_what_is_missing() -> None:
    found = plan(SCORES)
    assert (found.n, found.left_out) == (4, 1)
    assert [(pair.n, pair.left_out) for pair in found.pairs] == [(5, 0), (4, 1), (4, 1)]
    variances = [pair.sd**2 for pair in found.pairs]
    assert found.sd**2 == pytest.approx((4 * variances[0] + 3 * variances[1] + 3 * variances[2]) / 10)
    assert f"detectable difference is {found.range[0]:.3f} to {found.range[1]:.3f}." in found.sentence


def test_the_pooled_deviation_is_that_of_the_two_way_anova() -> None:
    scores = np.random.default_rng(2).random((6, 15)) + np.arange(15)
    residual = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    assert plan(scores).sd ** 2 == pytest.approx(2 * (residual**2).sum() / (5 * 14), rel=1e-12)
    assert [(pair.first, pair.second) for pair in plan(scores).pairs] == list(combinations(range(6), 2))


def test_plans_from_nothing() -> None:
    one = plan([[0.1], [0.4]], difference=0.1)
    assert math.isnan(one.detectable)
    assert (one.topics_needed, one.sentence) == (None, "1 topic: at least two are required for planning.")
    assert plan([[NAN, 0.2], [0.1, NAN]]).sentence.startswith("0 topics: at least two")
    same = plan([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], difference=0.1)
    assert (same.sd, same.detectable, same.topics_needed) == (0.0, 0.0, None)
    assert "the detectable difference cannot be computed" in same.sentence
    assert plan([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]).sd == 0.0  # the same but for rounding
    assert math.isnan(plan_of_sd(0.1, 1).detectable)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: power(0.1, -1, 10), "deviation must be finite and not negative, got -1"),
        (lambda: power(0.1, 1, 10, alpha=0), "alpha must be between 0 and 1, got 0"),
        (lambda: minimum_detectable(1, 10, power=0.05), "power must be between 0.05 and 1, got 0.05"),
        (lambda: topics_needed_t(0, 1), "not 0, got 0"),
        (lambda: topics_needed_t(NAN, 1), "finite and not 0, got nan"),
        (lambda: plan([[1, 2]]), "at least 2 systems are required, got 1"),
        (lambda: plan([[1, 2], [2, 1]], n=0), "positive integer, got 0"),
        (lambda: plan_of_sd(NAN, 10), "must not be NaN"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
