"""How often tests of many systems err when no system makes a difference, and how often they see one that does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judged.stats.analysis_of_variance import friedman, nemenyi
from judged.stats.multiple import dunnett, randomized_dunnett, randomized_tukey, tukey_hsd

SYSTEMS, TOPICS = 5, 15


def normal(rng: np.random.Generator) -> np.ndarray:
    """Give scores of systems that do not differ: topics do, and residuals are normal."""
    return rng.normal(0, 1, TOPICS) + rng.normal(0, 0.3, (SYSTEMS, TOPICS))


def skewed(rng: np.random.Generator) -> np.ndarray:
    """Give scores as measures give them: many at 0, topics unlike in their spread too."""
    hard = rng.uniform(0.3, 3, TOPICS)
    return np.round(rng.beta(0.6, hard, (SYSTEMS, TOPICS)), 1)


def rejected(smallest_p: Callable[[np.ndarray], float], make: Callable[..., np.ndarray], times: int) -> float:
    """Give the share of samples in which something is called significant at 5%."""
    rng = np.random.default_rng(2024)
    return float(np.mean([smallest_p(make(rng)) <= 0.05 + 1e-12 for _ in range(times)]))


@pytest.mark.parametrize(
    ("name", "smallest_p", "make", "times"),
    [
        ("tukey", lambda scores: tukey_hsd(scores).p.min(), normal, 800),
        ("dunnett", lambda scores: dunnett(scores).p.min(), normal, 800),
        ("randomized tukey", lambda scores: randomized_tukey(scores, resamples=199).p.min(), skewed, 600),
        ("randomized dunnett", lambda scores: randomized_dunnett(scores, resamples=199).p.min(), skewed, 600),
    ],
)
def test_one_family_in_twenty_errs(name: str, smallest_p, make, times: int) -> None:
    """These are exact: the share lies within 3.3 standard errors of 5%, on either side."""
    share = rejected(smallest_p, make, times)
    assert abs(share - 0.05) <= 3.3 * math.sqrt(0.05 * 0.95 / times), (name, share)


@pytest.mark.parametrize(
    ("smallest_p", "make", "least"),
    [
        (lambda scores: nemenyi(scores).p.min(), normal, 0.025),
        (lambda scores: friedman(scores).f_p, normal, 0.025),
        (lambda scores: tukey_hsd(scores).p.min(), skewed, 0.0),
    ],
)
def test_approximate_tests_err_hardly_more_often(smallest_p, make, least: float) -> None:
    times = 600
    share = rejected(smallest_p, make, times)
    assert least <= share <= 0.05 + 3.3 * math.sqrt(0.05 * 0.95 / times), share


def test_simultaneous_intervals_hold_all_true_differences_together() -> None:
    rng, truth = np.random.default_rng(11), np.array([[0.0], [0.1], [0.1], [0.5], [2.0]])
    between = (truth.T - truth)[np.newaxis]
    held = {"tukey": 0, "dunnett": 0}
    times = 400
    for _ in range(times):
        scores = normal(rng) + truth
        pairs, one = tukey_hsd(scores, level=0.9), dunnett(scores, 1, level=0.9)
        held["tukey"] += bool(((pairs.low <= between[0]) & (between[0] <= pairs.high)).all())
        held["dunnett"] += bool(((one.low <= between[0, 1]) & (between[0, 1] <= one.high)).all())
    for name, count in held.items():
        assert abs(count / times - 0.9) <= 3.3 * math.sqrt(0.9 * 0.1 / times), (name, count)


def test_the_power_for_two_systems_is_that_of_theory() -> None:
    """A difference of 0.25 with residuals of 0.3 a system, 15 topics: noncentral t with 0.25 / (0.3 sqrt(2 / 15))."""
    away, edge = 0.25 / (0.3 * math.sqrt(2 / TOPICS)), scipy_stats.t.ppf(0.975, TOPICS - 1)
    expected = scipy_stats.nct.sf(edge, TOPICS - 1, away) + scipy_stats.nct.cdf(-edge, TOPICS - 1, away)
    step = np.array([[0.0], [0.25]])
    for smallest_p, times in (
        (lambda scores: tukey_hsd(scores).p.min(), 600),
        (lambda scores: randomized_tukey(scores, resamples=199).p.min(), 400),
    ):
        result = rejected(smallest_p, lambda rng: normal(rng)[:2] + step, times)
        slack = 0.0 if times == 600 else 0.03  # 199 resamples cost some power
        assert abs(result - expected) <= 3.3 * math.sqrt(expected * (1 - expected) / times) + slack
