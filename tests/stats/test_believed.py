"""Tests that resample topics are believed where enough topics differ; elsewhere signs are flipped, and it is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration import paired

from judged.stats.paired import paired_test
from judged.stats.sample_size import MIN_DIFFERING, effective_differing, holds_error_rate, smallest_p

BOOTSTRAPS = ("bootstrap", "bca", "studentized")
TRIALS = 300


def _within(rate: float, over: float = 0.0) -> bool:
    return rate <= 0.05 + over + 3.3 * math.sqrt(0.05 * 0.95 / TRIALS)


@pytest.mark.parametrize("situation", [name for name in paired.SITUATIONS if name != "skewed"])
@pytest.mark.parametrize("n", [3, 6, 10, 25])
def test_what_is_offered_holds_its_level(situation: str, n: int) -> None:
    """Below 40 topics with a difference resampling rejects true nulls in up to half of all samples."""
    assert all(_within(rate) for rate in paired.rates(situation, n, TRIALS).tests.values())


@pytest.mark.parametrize(("situation", "n"), [("normal", 50), ("85% ties", 200), ("50% ties", 100), ("RR", 60)])
def test_where_it_is_believed_it_holds_its_level_nearly(situation: str, n: int) -> None:
    found = paired.rates(situation, n, TRIALS, BOOTSTRAPS)
    assert all(_within(rate, 0.025) for rate in found.tests.values())


@pytest.mark.parametrize("method", ["bootstrap", "bca"])
def test_two_topics_are_no_proof(method: str) -> None:
    found = paired_test([0.1, 0.2], [0.2, 0.35], method)
    assert (found.test, found.p, found.significant) == ("randomization", 0.5, False)
    assert "2 topics" in found.note
    assert str(MIN_DIFFERING[method]) in found.note


@pytest.mark.parametrize("method", [*BOOTSTRAPS, "t"])
def test_two_topics_among_many_ties_are_no_proof(method: str) -> None:
    second = np.zeros(5000)
    second[:2] = 0.5
    found = paired_test(np.zeros(5000), second, method, resamples=2000)
    assert found.test == "randomization"
    assert found.p > 0.4
    assert (found.n, found.differing) == (5000, 2)
    assert "2 of 5000 topics" in found.note


def test_the_least_p_is_attained_with_ties_too() -> None:
    for n, differing in ((12, 3), (12, 6), (8, 8), (12, 9)):
        second = np.where(np.arange(n) < differing, 0.5, 0.0)
        for method in ("randomization", "sign", "wilcoxon", *BOOTSTRAPS, "t"):
            for alternative in ("two-sided", "greater"):
                found = paired_test(np.zeros(n), second, method, alternative=alternative)
                least = smallest_p(n, method, alternative, differing=differing)
                assert found.p == pytest.approx(least) or (method, differing) == ("t", n), (method, n, differing)


def test_t_is_not_believed_where_few_of_many_topics_have_one_difference() -> None:
    """Four differences of the same size and sign among ties: t says 0.04, and one coin in eight does as much."""
    assert not holds_error_rate("t", 48, 4)
    assert holds_error_rate("t", 4, 4)
    assert paired_test(np.zeros(48), [0.5] * 4 + [0.0] * 44, "t").p == pytest.approx(0.125, abs=0.01)


def test_tests_of_signs_and_ranks_find_what_is_no_difference_of_means() -> None:
    """Skewed differences of mean 0: signs and ranks find them, and are right to; tests of means do not."""
    found = paired.rates("skewed", 100, TRIALS, ("sign", "wilcoxon", "t", "randomization")).tests
    assert min(found["sign"], found["wilcoxon"]) > 0.3
    assert max(found["t"], found["randomization"]) < 0.12


@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("method", ["bca", "studentized"])
def test_near_ties_do_not_count_as_topics_with_a_difference(n: int, method: str) -> None:
    """All differ, 95 % by 0.01, 5 % by 0.5: alone, BCa rejects 24.8 and 15.2 % of these true nulls."""
    rng = np.random.default_rng(n)
    drawn = np.where(rng.random((TRIALS, n)) < 0.05, 0.5, 0.01) * rng.normal(size=(TRIALS, n))
    tests = [paired_test(np.zeros(n), row, method, resamples=1000) for row in drawn]
    assert _within(np.mean([test.p <= 0.05 for test in tests]))
    assert np.mean([test.test == method for test in tests]) < 0.2
    assert all(test.test == method or "a few large differences" in test.note for test in tests)


@pytest.mark.parametrize("method", ["bca", "studentized"])
def test_normal_differences_are_not_replaced(method: str) -> None:
    drawn = np.random.default_rng(1).normal(size=(100, 60))
    assert np.mean([paired_test(np.zeros(60), row, method, resamples=200).test == method for row in drawn]) > 0.95


def test_effective_number_of_topics_with_a_difference() -> None:
    """Kish: (3 * 1 + 4)^2 / (3 * 1 + 16) for squares 1, 1, 1, and 4; scale and ties change nothing."""
    differences = np.array([1.0, -1.0, 1.0, 2.0, 0.0])
    assert effective_differing(differences) == pytest.approx(49 / 19)
    assert effective_differing(differences * 1e-200) == pytest.approx(49 / 19)
    assert math.isnan(effective_differing(np.zeros(3)))
