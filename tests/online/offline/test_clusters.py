"""Intervals that resample units: they cover, and they are wider than those that forget who the pages are of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged.online.offline.clusters import Estimate, cluster_estimates
from judged.online.offline.concordance import Pairs, probability
from judged.stats.interval import IntervalMethod


def test_one_unit_has_a_value_and_no_interval() -> None:
    found = cluster_estimates(lambda weights: weights, 1, IntervalMethod())
    assert found[0].value == 1.0
    assert not found[0].known
    assert not found[0].excludes(7.0)
    assert str(found[0]) == "1.000"


def test_a_statistic_that_most_resamples_leave_undefined_has_no_interval() -> None:
    def only_all(weights: np.ndarray) -> np.ndarray:
        return np.where((weights > 0).all(axis=1), 0.5, np.nan)[:, None]

    found = cluster_estimates(only_all, 5, IntervalMethod())[0]
    assert (found.value, math.isnan(found.low)) == (0.5, True)


def test_the_same_seed_gives_the_same_limits_and_many_units_too() -> None:
    rng = np.random.default_rng(1)
    clicks = (rng.random(500) < 0.3).astype(float)

    def share(weights: np.ndarray) -> np.ndarray:
        return (weights @ clicks / weights.sum(axis=1))[:, None]

    one, again, other = (cluster_estimates(share, 500, IntervalMethod(seed=seed))[0] for seed in (0, 0, 1))
    assert one == again
    assert one != other
    half = 1.96 * math.sqrt(clicks.mean() * (1 - clicks.mean()) / 500)
    assert [one.low, one.high] == pytest.approx([clicks.mean() - half, clicks.mean() + half], abs=0.006)


def simulated(rng: np.random.Generator, users: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pages of users who differ: some find good lists and click, others neither."""
    unit = np.repeat(np.arange(users), 6)
    luck = rng.normal(size=users)[unit]
    score = luck + rng.normal(size=len(unit))
    clicked = luck + rng.normal(size=len(unit)) > 0
    return score, clicked * 1.0, unit


def area(score: np.ndarray, clicked: np.ndarray, unit: np.ndarray, resamples: int) -> Estimate:
    """Give the area under the curve with its interval."""
    pairs = Pairs.of(score, clicked, unit)
    method = IntervalMethod(resamples=resamples)
    return cluster_estimates(lambda weights: probability(pairs.counted(weights))[:, None], unit.max() + 1, method)[0]


def test_intervals_over_users_cover() -> None:
    rng = np.random.default_rng(11)
    score, clicked, unit = simulated(rng, 200_000)
    truth = float(probability(Pairs.of(score, clicked, unit * 0).counted(np.ones((1, 1))))[0])
    covered = 0
    for _ in range(120):
        found = area(*simulated(rng, 30), resamples=150)
        covered += found.low <= truth <= found.high
    assert covered >= 120 * 0.90  # asked for 95 %: 2 standard errors of luck, 150 resamples, 30 users


def test_intervals_over_pages_of_the_same_users_are_too_narrow() -> None:
    score, clicked, unit = simulated(np.random.default_rng(12), 60)
    over_users, over_pages = (area(score, clicked, who, 300) for who in (unit, np.arange(len(unit))))
    assert over_users.value == over_pages.value
    assert over_users.high - over_users.low > 1.2 * (over_pages.high - over_pages.low)
