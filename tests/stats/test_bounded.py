"""The bounded test: error rate and coverage on the worst shapes, hand calculations, and what must not change it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import InputError
from judged.stats.bounded import bounded, bounded_mean, bounded_p
from judged.stats.paired import paired_test
from judged.stats.results import Options
from judged.stats.sample_size import smallest_p

LARGEST = 1.0


def _rare(rng: np.random.Generator, shape: tuple[int, int], share: float, size: float) -> np.ndarray:
    """Differences of mean 0 of which a share has one size, and the others the opposite one."""
    return np.where(rng.random(shape) < share, size, -size * share / (1 - share))


SHAPES = {
    "5% lose 0.6": lambda rng, shape: _rare(rng, shape, 0.05, -0.6),
    "10% gain 0.45": lambda rng, shape: _rare(rng, shape, 0.1, 0.45),
    "1% lose 1": lambda rng, shape: _rare(rng, shape, 0.01, -1.0),
    "half gain, half lose 1": lambda rng, shape: _rare(rng, shape, 0.5, 1.0),
    "exponential": lambda rng, shape: 0.1 * (np.minimum(rng.exponential(size=shape), 8.0) - 1 + math.exp(-8)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [6, 25, 100])
def test_it_rejects_no_more_true_nulls_than_alpha(name: str, n: int) -> None:
    """The t-test rejects up to 60 % of these."""
    drawn = SHAPES[name](np.random.default_rng([n, len(name)]), (600, n))
    for alpha in (0.05, 0.25):
        share = np.mean([bounded_p(row, LARGEST) <= alpha for row in drawn])
        assert share <= alpha + 2 * math.sqrt(alpha * (1 - alpha) / len(drawn)), (alpha, share)


@pytest.mark.parametrize("name", SHAPES)
def test_its_interval_holds_the_mean_and_agrees_with_p(name: str) -> None:
    drawn = SHAPES[name](np.random.default_rng(7), (150, 20)) + 0.0
    held = 0
    for row in drawn:
        result = bounded_mean(row, -LARGEST, LARGEST, level=0.9)
        low, high = result.interval
        held += low <= 0 <= high
        assert (result.p <= 0.1) == (low > 0 or high < 0)
        assert -LARGEST <= low <= high <= LARGEST
    assert held >= 0.9 * len(drawn)


def test_one_bet_by_hand() -> None:
    """One value, bounds 0 and 1: the bet is sqrt(2 log(40) / 0.25) = 5.4, cut to 0.95 / mean."""
    for mean, value in ((0.5, 1.0), (0.5, 0.6), (0.8, 1.0)):
        wealth = 1 + 0.95 / mean * (value - mean)
        assert bounded_mean([value], 0, 1, null=mean, alternative="greater").p == pytest.approx(1 / wealth)
        assert bounded_mean([value], 0, 1, null=mean).p == pytest.approx(min(1.0, 2 / wealth))


def test_the_bets_of_two_values_by_enumeration() -> None:
    """Both orders: the second bet is sized by the variance around the first value, with a prior value of 1/2."""
    values, mean, n = (0.3, 0.9), 0.1, 2
    wealth = []
    for order in itertools.permutations(values):
        before = (0.5 + order[0]) / 2
        variances = (0.25, (0.25 + (order[0] - before) ** 2) / 2)
        bets = [min(math.sqrt(2 * math.log(40) / (n * variance)), 0.95 / mean) for variance in variances]
        wealth.append(math.prod(1 + bet * (value - mean) for bet, value in zip(bets, order, strict=True)))
    result = bounded_mean(values, 0, 1, null=mean, alternative="greater").p
    assert abs(wealth[0] - wealth[1]) > 0.1
    assert 1 / max(wealth) < result < 1 / min(wealth)


def test_many_values_of_a_small_bet_by_hand() -> None:
    """Equal values: every order is the same game, so that the wealth is one product."""
    n, value, mean = 400, 0.55, 0.5
    variance, seen, total, wealth = 0.25, 0.25, 0.5, 0.0
    for count in range(1, n + 1):
        bet = min(math.sqrt(2 * math.log(40) / (n * variance)), 0.95 / mean)
        wealth += math.log1p(bet * (value - mean))
        total += value
        seen += (value - total / (count + 1)) ** 2
        variance = seen / (count + 1)
    assert bounded_mean([value] * n, 0, 1, null=mean).p == pytest.approx(2 * math.exp(-wealth), rel=1e-9)


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(0, 5), st.randoms())
def test_order_scale_and_direction_change_nothing(values: list[float], seed: int, random: object) -> None:
    result = bounded_mean(values, -1, 1, seed=seed)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert bounded_mean(shuffled, -1, 1, seed=seed).p == result.p
    mirrored = bounded_mean([-value for value in values], -1, 1, seed=seed)
    assert mirrored.p == pytest.approx(result.p, rel=1e-9)
    assert mirrored.interval == pytest.approx((-result.interval[1], -result.interval[0]), abs=1e-9)
    scaled = bounded_mean([3 * value + 5 for value in values], 2, 8, null=5, seed=seed)
    assert scaled.p == pytest.approx(result.p, rel=1e-9)
    assert bounded_p(np.array(values), 1.0, seed=seed) == result.p


def test_a_wider_bound_is_weaker_evidence() -> None:
    row = np.random.default_rng(0).normal(0.1, 0.1, 60)
    p_values = [bounded_mean(row, -most, most).p for most in (0.5, 1.0, 2.0)]
    assert p_values == sorted(p_values)
    assert p_values[0] < 0.001
    assert p_values[2] > 0.05


def test_one_sided_tests_look_one_way() -> None:
    row = np.full(100, 0.2) + 0.01 * np.arange(-50, 50) / 50
    up, down = (bounded_mean(row, -1, 1, alternative=side) for side in ("greater", "less"))
    assert up.p < 1e-6
    assert down.p == 1.0
    assert up.interval[1] == math.inf
    assert down.interval[0] == -math.inf
    assert up.p == pytest.approx(bounded_mean(row, -1, 1).p / 2)


@pytest.mark.parametrize(
    ("values", "low", "high", "null", "message"),
    [
        ([], 0, 1, 0, "list of numbers"),
        ([math.nan], 0, 1, 0, "list of numbers"),
        ([[0.1]], 0, 1, 0, "list of numbers"),
        ([0.5], 1, 1, 1, "must enclose"),
        ([0.5], 0, math.inf, 0, "must enclose"),
        ([0.5], 0, 1, 2, "must enclose"),
        ([0.5, 1.5], 0, 1, 0, "from 0 to 1, got 1.5"),
        ([0.5, -0.5], 0, 1, 0, "from 0 to 1, got -0.5"),
    ],
)
def test_values_outside_the_bounds_are_refused(
    values: list[float], low: float, high: float, null: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        bounded_mean(values, low, high, null=null)


def test_rows_of_differences_are_tested_each_by_itself() -> None:
    rows = np.random.default_rng(3).uniform(-0.2, 0.6, (3, 40))
    result = bounded(rows, np.full(3, 1e-12), Options(max_difference=1.0, seed=4))
    for row, one in zip(rows, result, strict=True):
        expected = bounded_mean(row, -1, 1, seed=4)
        assert (one.p, one.interval, one.statistic, one.seed) == (expected.p, expected.interval, expected.mean, 4)
    for options, message in ((Options(), "largest possible difference"), (Options(max_difference=0.5), "from -0.5")):
        with pytest.raises(InputError, match=message):
            bounded(rows, np.full(3, 1e-12), options)


@pytest.mark.parametrize("n", [2, 5, 6, 12])
def test_as_a_paired_test_it_is_that_of_the_differences(n: int) -> None:
    first, second = np.random.default_rng(n).random((2, n))
    result = paired_test(first, second, "bounded", max_difference=1.0, level=0.9)
    own = bounded_mean(second - first, -1.0, 1.0, level=0.9)
    assert (result.test, result.p, result.interval) == ("bounded", pytest.approx(own.p), pytest.approx(own.interval))
    clearest = paired_test(np.zeros(n), np.ones(n), "bounded", max_difference=1.0)
    assert smallest_p(n, "bounded") <= clearest.p * (1 + 1e-12)
    assert clearest.p == pytest.approx(smallest_p(n, "bounded"), rel=0.1)


def test_topics_that_all_tie_do_not_show_that_all_others_do() -> None:
    result = paired_test(np.zeros(8), np.zeros(8), "bounded", max_difference=1.0)
    assert result.p == 1
    assert result.interval == pytest.approx(bounded_mean(np.zeros(8), -1.0, 1.0).interval)
    assert result.interval[1] > 0.3


def test_without_a_bound_it_is_refused() -> None:
    with pytest.raises(InputError, match="largest possible difference"):
        paired_test([0.1, 0.2], [0.2, 0.4], "bounded")
