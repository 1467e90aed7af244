"""Topics that lost: the rule against its definition, and the rate that it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.stats.correction import losers


def by_definition(differences: list[float], rate: float) -> set[int]:
    """Try every size as the threshold, the least first."""
    for c in sorted({abs(d) for d in differences if d}):
        result = {at for at, d in enumerate(differences) if d <= -c}
        if (1 + sum(d >= c for d in differences)) / max(1, len(result)) <= rate:
            return result
    return set()


@given(st.lists(st.integers(-6, 3), max_size=60), st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.5]))
def test_the_rule_is_the_definition(sizes: list[int], rate: float) -> None:
    differences = [size / 8 for size in sizes]  # exact in binary: no rounding, many ties
    result = losers(differences, rate)
    enough = sum(size < 0 for size in sizes) >= 6
    assert set(np.flatnonzero(result.mask).tolist()) == (by_definition(differences, rate) if enough else set())
    assert result.count == 0 or result.estimate <= rate
    assert (result.losses, result.gains) == (sum(size < 0 for size in sizes), sum(size > 0 for size in sizes))
    assert losers([*differences, math.nan], rate).mask.tolist() == [*result.mask.tolist(), False]


def test_by_hand() -> None:
    result = losers([-0.5] * 12 + [0.5] + [-0.2] * 8 + [0.2, 0.1])
    # c = 0.5: (1 + 1) / 12 = 0.167, c = 0.2: (1 + 2) / 20 = 0.15: neither is enough
    assert (result.count, math.isnan(result.threshold)) == (0, True)
    result = losers([-0.5] * 12 + [0.5] + [-0.2] * 8 + [0.2, 0.1], 0.15)
    assert (result.count, result.threshold, result.estimate) == (20, 0.2, 0.15)
    assert result.sentence.startswith("20 of 23 topics are worse by 0.2 or more, and 2 are better by 0.2 or more.")


def test_the_least_size_counts_and_not_the_first_that_fits() -> None:
    # 0.4 admits 10 losses; at 0.3 a gain stands against 11; at 0.2 there are 20 losses against 1 gain: 2 / 20 = 0.1
    result = losers([-0.4] * 10 + [0.3, -0.3] + [-0.2] * 9)
    assert (result.count, result.threshold) == (20, 0.2)


def test_rounding_makes_no_difference() -> None:
    gain = 0.3 - 0.2  # 0.09999999999999998
    assert gain != 0.1
    assert losers([-0.1] * 10 + [gain]).count == 0
    assert losers([-gain] * 10 + [0.1]).count == 0
    assert losers([-0.1, -gain] * 5).count == 10
    assert losers([-1e-16] * 40).losses == 0
    assert losers([-1e-11] * 40, scale=100.0).losses == 0
    assert losers([-1e-11] * 40).count == 40


@pytest.mark.parametrize(("rate", "fewest"), [(0.1, 10), (0.05, 20), (0.15, 7), (1 / 6, 6)])
def test_few_losses_can_never_be_declared(rate: float, fewest: int) -> None:
    assert losers([-1.0] * fewest, rate).count == fewest
    few = losers([-1.0] * (fewest - 1), rate)
    assert few.count == 0
    assert f"With fewer than {fewest} worse topics" in few.sentence
    assert "no topic is worse" in losers([0.0, 1.0], rate).sentence
    assert losers([], rate).n == 0


def test_six_losses_are_required_at_any_rate() -> None:
    assert losers([-1.0] * 6, 0.5).count == 6
    few = losers([-1.0] * 5, 0.5)
    assert few.count == 0
    assert "at least 6 worse topics" in few.sentence


def test_gains_too_frequent() -> None:
    text = losers([-0.1, 0.1] * 30).sentence
    assert "30 of 60 topics are worse, and 30 are better. For every threshold t, too many topics are better" in text


def test_the_rate_holds_and_losses_are_found() -> None:
    """Signs of topics without a loss are fair coins; sizes may depend on anything."""
    rng = np.random.default_rng(11)
    shares: list[float] = []
    result: list[float] = []
    for _ in range(600):
        sizes = rng.gamma(1.0, 0.1, size=200)
        signs = rng.choice([-1, 1], size=200)
        differences = np.round(sizes * signs, 2)  # with ties and zeros
        differences[:40] = -rng.uniform(0.2, 0.6, size=40)
        mask = losers(differences, 0.1).mask
        shares.append(mask[40:].sum() / max(1, mask.sum()))
        result.append(mask[:40].mean())
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) <= 0.1 + 3 * error
    assert np.mean(shares) > 0.02  # it is not an empty promise: there is something to hold
    assert np.mean(result) > 0.4


def test_without_any_loss_something_is_found_as_seldom_as_declared() -> None:
    rng = np.random.default_rng(12)
    hits = [losers(rng.standard_normal(100), 0.1).count > 0 for _ in range(1000)]
    assert np.mean(hits) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 1000)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="false discovery rate must be between 0 and 1, got 1"):
        losers([0.1], 1.0)
    with pytest.raises(InputError, match="list of finite numbers"):
        losers([math.inf])
    with pytest.raises(InputError, match="list of finite numbers"):
        losers(np.zeros((2, 2)))


def test_symmetric_noise_is_needed() -> None:
    """Without a loss: where 5 % gain 0.95 and 95 % lose 0.05, most samples have a finding."""
    rng = np.random.default_rng(1)
    noise = 0.01 * rng.normal(size=(400, 100))
    symmetric = 0.05 * rng.choice([-1.0, 1.0], noise.shape) + noise
    skewed = np.where(rng.random(noise.shape) < 0.05, 0.95, -0.05) + noise
    assert np.mean([losers(row).count > 0 for row in symmetric]) <= 0.1 + 2 * 0.015
    assert np.mean([losers(row).count > 0 for row in skewed]) > 0.5
