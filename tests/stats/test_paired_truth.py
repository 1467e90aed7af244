"""Paired tests under a known truth, and what must not change their answer."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged.stats.paired import TESTS, paired_test, paired_tests

ALTERNATIVES = ("two-sided", "greater", "less")
RESAMPLED = ("randomization", "bootstrap", "bca", "studentized", "ratio")


LIMITS = {"bounded": {"max_difference": 1.0}}  # what a method needs beside the scores


def _pair(topics: int, seed: int = 0, shift: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first = rng.beta(0.8, 1.6, topics)
    return first, np.clip(first + rng.normal(shift, 0.1, topics), 0, 1)


# --- A known truth


def _nulls(simulations: int, topics: int, seed: int, shift: float = 0.0) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Two systems of the same quality, on topics that differ in difficulty: skewed scores, symmetric differences."""
    rng = np.random.default_rng(seed)
    hard = rng.gamma(2.0, 0.3, (simulations, 1, topics))
    scores = hard + rng.normal(0, 0.2, (simulations, 2, topics)) + np.array([0.0, shift])[:, None]
    return scores.reshape(-1, topics), [(2 * at, 2 * at + 1) for at in range(simulations)]


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("method", [method for method in TESTS if method not in {"bayes", "bounded"}])
def test_false_positives_are_as_many_as_alpha(method: str, alternative: str) -> None:
    """2000 true nulls over 40 topics: within 4 standard errors, and 1% more for what only holds for many topics."""
    scores, pairs = _nulls(2000, 40, seed=len(method))
    if method == "ratio":
        scores = np.exp(scores)
    found = paired_tests(scores, pairs, method, alternative=alternative, resamples=999, seed=7)
    for alpha in (0.05, 0.2):
        share = np.mean([one.p <= alpha for one in found])
        error = 4 * math.sqrt(alpha * (1 - alpha) / len(pairs))
        asymptotic = 0.01 if method in {"bootstrap", "bca"} else 0.0
        discrete = 0.03 + alpha / 2 if method == "sign" else 0.0  # 40 coins: not every alpha can be had
        assert alpha - error - discrete <= share <= alpha + error + asymptotic, (alpha, share)


@pytest.mark.parametrize("method", ["randomization", "t", "bootstrap", "bca", "studentized", "bayes"])
def test_intervals_hold_the_truth_as_often_as_they_say(method: str) -> None:
    scores, pairs = _nulls(2000, 40, seed=3, shift=0.05)
    found = paired_tests(scores, pairs, method, level=0.9, resamples=999, seed=7)
    share = np.mean([one.interval[0] <= 0.05 <= one.interval[1] for one in found])
    error = 4 * math.sqrt(0.09 / len(pairs))
    assert 0.9 - error - (0.015 if method in {"bootstrap", "bca"} else 0.0) <= share <= 0.9 + error, share


# --- What must not change the answer


@pytest.mark.parametrize("method", TESTS)
@settings(max_examples=20)
@given(seed=st.integers(0, 1000), topics=st.integers(2, 30))
def test_swapping_the_systems_turns_everything_round(method: str, seed: int, topics: int) -> None:
    first, second = _pair(topics, seed)
    turned = {"two-sided": "two-sided", "greater": "less", "less": "greater"}
    for alternative in ALTERNATIVES:
        one = paired_test(first, second, method, alternative=alternative, resamples=500, **LIMITS.get(method, {}))
        two = paired_test(
            second, first, method, alternative=turned[alternative], resamples=500, **LIMITS.get(method, {})
        )
        assert two.p == pytest.approx(one.p, rel=1e-9, nan_ok=True)
        assert (two.difference, two.effect) == pytest.approx((-one.difference, -one.effect), nan_ok=True)
        if one.interval is not None:
            assert two.interval == pytest.approx((-one.interval[1], -one.interval[0]), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("method", [method for method in TESTS if method != "ratio"])
@pytest.mark.parametrize("constant", [-0.3, 7.7, 1e4])
def test_adding_a_constant_to_both_changes_nothing(method: str, constant: float) -> None:
    first, second = np.random.default_rng(2).integers(0, 11, (2, 25)) / 10
    one = paired_test(first, second, method, resamples=5000, **LIMITS.get(method, {}))
    two = paired_test(first + constant, second + constant, method, resamples=5000, **LIMITS.get(method, {}))
    assert two.p == pytest.approx(one.p, rel=1e-9, nan_ok=True)
    assert two.difference == pytest.approx(one.difference, rel=1e-9)
    if one.interval is not None:
        assert two.interval == pytest.approx(one.interval, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("method", TESTS)
def test_a_pair_is_what_it_is_in_any_company(method: str) -> None:
    """Topics without a score differ between pairs; each answer is, bit for bit, that of the pair alone."""
    rng = np.random.default_rng(8)
    scores = rng.beta(0.8, 1.6, (7, 33))
    scores[rng.random(scores.shape) < 0.02] = math.nan
    scores[5] = scores[4]
    pairs = list(itertools.permutations(range(7), 2))
    how = {"resamples": 400, "seed": 5, **LIMITS.get(method, {})}
    together = paired_tests(scores, pairs, method, **how)
    assert len({found.left_out for found in together}) > 2
    for (first, second), found in zip(pairs, together, strict=True):
        both = ~np.isnan(scores[first] + scores[second])
        alone = paired_test(scores[first], scores[second], method, **how)
        complete = paired_test(scores[first][both], scores[second][both], method, **how)
        assert str(alone) == str(found)  # a string, because NaN is not itself
        assert (found.n, found.left_out) == (both.sum(), 33 - both.sum())
        assert str(complete).replace("left_out=0", f"left_out={found.left_out}") == str(found)


def test_the_number_of_threads_changes_nothing() -> None:
    program = (
        "import numpy as np; from judged.stats.paired import paired_tests;"
        "scores = np.random.default_rng(0).random((12, 43));"
        "pairs = [(i, j) for i in range(12) for j in range(i)];"
        "print(*(paired_tests(scores, pairs, method, resamples=3000) for method in ('randomization', 'bootstrap')))"
    )
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **dict.fromkeys(names, str(threads))},
            check=True,
            capture_output=True,
        ).stdout
        for threads in (1, 2)
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("method", RESAMPLED)
def test_the_seed_decides(method: str) -> None:
    first, second = _pair(43)
    one, same, other = (paired_test(first, second, method, resamples=300, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.interval != other.interval
    assert one.seed == 1
