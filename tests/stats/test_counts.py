"""Intervals of counts against SciPy, chances of groups against the hypergeometric distribution, and which are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from judged.stats.correction import (
    clopper_pearson_intervals,
    hypergeometric_p_values,
    poisson_rate_intervals,
    select_discoveries,
)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_of_shares_are_those_of_clopper_and_pearson(level: float) -> None:
    counts, sizes = np.array([0, 1, 2, 5, 7, 1, 0, 1]), np.array([9, 9, 2, 7, 7, 1, 1, 2])
    low, high = clopper_pearson_intervals(counts, sizes, level)
    for count, size, below, above in zip(counts, sizes, low, high, strict=True):
        interval = stats.binomtest(int(count), int(size)).proportion_ci(level, "exact")
        assert (below, above) == pytest.approx((interval.low, interval.high), abs=1e-12)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_intervals_of_rates_hold_counts_as_rare_as_the_observed_one(level: float) -> None:
    """At the lower end so many or more have half of what the level leaves, at the upper end so many or fewer."""
    counts, expected = np.array([0.0, 1.0, 0.5, 10.0, 4.0]), np.array([1.0, 0.25, 1.0, 20.0, 2.0])
    low, high = poisson_rate_intervals(counts, expected, level)
    tail = (1 - level) / 2
    assert low == pytest.approx([0.0, *(stats.chi2.ppf(tail, 2 * counts[1:]) / 2 / expected[1:])], rel=1e-9)
    assert high == pytest.approx(stats.chi2.ppf(1 - tail, 2 * counts + 2) / 2 / expected, rel=1e-9)
    assert stats.poisson.sf(9, low[3] * 20) == pytest.approx(tail)
    assert stats.poisson.cdf(10, high[3] * 20) == pytest.approx(tail)


def test_chances_of_groups_are_hypergeometric() -> None:
    """20 members in all, of which 9 have it: groups of the same size in any place, and one that is nearly all."""
    counts, sizes = np.array([2, 0, 3, 4, 7, 1, 8]), np.array([4, 1, 4, 4, 15, 1, 17])
    chance, least = hypergeometric_p_values(counts, sizes, 9, 20)
    assert chance == pytest.approx(stats.hypergeom.sf(counts - 1, 20, 9, sizes))
    assert least == pytest.approx(stats.hypergeom.pmf(np.minimum(sizes, 9), 20, 9, sizes))
    assert chance.max() <= 1.0
    whole, none = hypergeometric_p_values(np.array([9, 0]), np.array([20, 0]), 9, 20)
    assert whole.tolist() == pytest.approx([1, 1])
    assert none.tolist() == pytest.approx([1, 1])
    fewest, _ = hypergeometric_p_values(np.array([6]), np.array([17]), 9, 20)  # 3 are outside, so 6 have it at least
    assert fewest[0] == pytest.approx(1.0)
    assert fewest[0] <= 1.0
    assert [part.tolist() for part in hypergeometric_p_values(np.zeros(0, int), np.zeros(0, int), 0, 0)] == [[], []]
    fisher = stats.fisher_exact([[3, 1], [6, 10]], alternative="greater").pvalue
    assert chance[2] == pytest.approx(fisher)


@pytest.mark.parametrize(
    ("p", "least", "fdr", "adjusted"),
    [
        # two of three can be as small as 0.05 / 2: Benjamini and Hochberg's rule over these two
        ([0.01, 0.04, 0.5], [0.001, 0.02, 0.4], 0.05, [0.02, 0.04, None]),
        ([0.01, 0.04, 0.5], [0.001, 0.025, 0.4], 0.05, [0.02, 0.04, None]),  # 0.05 / 2 itself
        # at 0.05 / 1 two can, which are more than one; at 0.05 / 2 the first alone
        ([0.01, 0.04, 0.5], [0.001, 0.026, 0.4], 0.05, [0.01, None, None]),
        ([0.02, 0.03, 0.1, 0.5], [0.02, 0.026, 0.09, 0.4], 0.05, [0.02, None, None, None]),
        ([0.045, 0.5], [0.04, 0.4], 0.05, [0.045, None]),
        ([0.01, 0.02, 0.03], [0.001, 0.001, 0.001], 0.05, [0.03, 0.03, 0.03]),
        ([0.01, 0.06, 0.5], [0.01, 0.06, 0.4], 0.05, [0.01, None, None]),
        ([0.2, 0.3, 0.4], [0.2, 0.3, 0.4], 0.05, [None] * 3),
        ([0.2, 0.3, 0.4], [0.1, 0.06, 0.4], 0.12, [None, 0.3, None]),
        ([0.04], [0.05], 0.05, [0.04]),
        ([0.06], [0.05], 0.05, [0.06]),
        ([0.05], [0.05], 0.05, [0.05]),
        ([], [], 0.05, []),
    ],
)  # fmt: skip
def test_groups_that_are_too_small_are_no_tests(
    p: list[float], least: list[float], fdr: float, adjusted: list[float | None]
) -> None:
    result, values = select_discoveries(np.array(p), np.array(least), fdr)
    assert values == pytest.approx([math.nan if one is None else one for one in adjusted], nan_ok=True)
    assert result.tolist() == [one is not None and one <= fdr for one in adjusted]
