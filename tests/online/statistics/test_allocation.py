"""Changes of the allocation of users to arms are detected, and a constant allocation is rarely split."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from judged.errors import InputError
from judged.online.statistics.allocation import allocation_periods


def test_p_is_that_of_the_chi_squared_test_of_two_days() -> None:
    """With two days, both tests are the same one: p is doubled."""
    table = [[60, 40], [45, 55]]
    p = float(chi2_contingency(table, correction=False)[1])
    allocation = allocation_periods(table)
    assert allocation.p == pytest.approx(2 * p)
    assert allocation.starts == ((0, 1) if 2 * p <= 0.05 else (0,))
    three_arms = [[60, 30, 30], [30, 40, 50]]
    assert allocation_periods(three_arms).p == pytest.approx(2 * float(chi2_contingency(three_arms)[1]))


def test_p_of_three_days_is_the_smaller_of_both_tests() -> None:
    """The cut after the first day is one of two; the test of all days has two degrees of freedom."""
    table = np.array([[50, 50], [70, 30], [71, 29]])
    p_split = float(chi2_contingency([table[0], table[1] + table[2]], correction=False)[1])
    p_days = float(chi2_contingency(table, correction=False)[1])
    assert allocation_periods(table).p == pytest.approx(2 * min(2 * p_split, p_days))
    assert allocation_periods(table).starts == (0, 1)
    assert allocation_periods(table, alpha=1e-4).starts == (0,)


def test_each_step_of_a_ramp_up_begins_a_period() -> None:
    rng = np.random.default_rng(1)
    shares = np.repeat([0.05, 0.2, 0.5], [4, 5, 6])
    second = rng.binomial(400, shares)
    assert allocation_periods(np.stack([400 - second, second], axis=1)).starts == (0, 4, 9)


def test_what_has_too_few_users_is_not_tested() -> None:
    assert allocation_periods([[10, 0], [0, 10]]).p < 0.01
    assert allocation_periods([[9, 0], [0, 9]]).starts == (0,)  # 4.5 of each arm are expected on both sides
    assert allocation_periods([[9, 0], [0, 9]]).p == 1.0
    assert allocation_periods([[500, 500]]) == (1.0, (0,))
    assert allocation_periods([[500, 0], [300, 0]]) == (1.0, (0,))
    assert allocation_periods(np.zeros((3, 2))) == (1.0, (0,))


@pytest.mark.parametrize("counts", [[1, 2], [[1], [2]], [[1, -1]], [[math.nan, 1.0]]])
def test_what_is_no_table_of_counts_is_refused(counts: list[float]) -> None:
    with pytest.raises(InputError):
        allocation_periods(counts)


@pytest.mark.parametrize(("users", "share", "days"), [(20, 0.5, 14), (200, 0.1, 14), (60, 0.5, 30), (5, 0.5, 60)])
def test_a_constant_allocation_is_rarely_split(users: int, share: float, days: int) -> None:
    """At most 5% of 600 tests, and three standard errors."""
    rng, splits = np.random.default_rng(3), 0
    for _ in range(600):
        new_users = rng.poisson(users, days)
        second = rng.binomial(new_users, share)
        splits += len(allocation_periods(np.stack([new_users - second, second], axis=1)).starts) > 1
    assert splits <= 600 * 0.05 + 3 * math.sqrt(600 * 0.05 * 0.95)
