"""Stratified samples without replacement: all samples of small populations, textbook variances, and edge cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.labels.estimation import StratifiedSample, mean_estimate
from judged.stats.ratio import ratio_interval

# topic 0: two of four and one of one; topic 1: three of six; topic 2 without units; topic 3: two of two
STRATUM = np.array([0, 0, 1, 2, 2, 2, 3, 3])
SIZES, TOPIC = np.array([4, 1, 6, 2]), np.array([0, 0, 1, 3])
VALUES = np.array([1.0, -3.0, 5.0, 2.0, 4.0, 9.0, 1.0, 2.0])


def test_probabilities_by_hand() -> None:
    """Two of four: 1/2 and jointly 1/6; three of six: 1/2 and jointly 1/5; different strata: the product."""
    sample = StratifiedSample(STRATUM, SIZES, TOPIC, 4)
    assert sample.sample_sizes.tolist() == [2, 1, 3, 2]
    assert sample.inclusion_probability.tolist() == [0.5, 0.5, 1, 0.5, 0.5, 0.5, 1, 1]
    joint = sample.joint_probability(np.array([0, 1, 2, 3, 5, 7]))
    assert joint == pytest.approx(np.array([
        [1 / 2, 1 / 6, 1 / 2, 1 / 4, 1 / 4, 1 / 2],
        [1 / 6, 1 / 2, 1 / 2, 1 / 4, 1 / 4, 1 / 2],
        [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2, 1],
        [1 / 4, 1 / 4, 1 / 2, 1 / 2, 1 / 5, 1 / 2],
        [1 / 4, 1 / 4, 1 / 2, 1 / 5, 1 / 2, 1 / 2],
        [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2, 1],
    ]))  # fmt: skip
    assert sample.totals(VALUES).tolist() == [2 - 6 + 5, 4 + 8 + 18, 0, 3]


def test_variances_and_covariances_by_hand() -> None:
    """Cochran 1977, (5.6): N (N - n) s^2 / n; 4 * 2 * 8 / 2 = 32, and 6 * 3 * 13 / 3 = 78."""
    sample = StratifiedSample(STRATUM, SIZES, TOPIC, 4)
    assert sample.variances(VALUES) == pytest.approx([32, 0, 78, 0])
    others = np.arange(8.0)
    # covariances of the strata: (1 - -3) * (0 - 1) / 2 = -2, and (-3 * -1 + 4 * 1) / 2 = 3.5
    assert sample.variances(VALUES, others) == pytest.approx([4 * 2 * -2 / 2, 0, 6 * 3 * 3.5 / 3, 0])
    assert sample.covariances(VALUES, others) == pytest.approx([-8, 21, 0, 0])
    assert sample.covariances(VALUES, VALUES) == pytest.approx([32, 78, 0, 0])


def test_totals_and_variances_are_unbiased_over_all_samples() -> None:
    values = np.array([3.0, 0.0, 2.0, 7.0, 1.0])
    other_values = np.array([1.0, 4.0, 4.0, 0.0, 2.0])
    totals, variances, covariances, other_totals = [], [], [], []
    for rows in itertools.combinations(range(5), 3):
        sample = StratifiedSample(np.zeros(3, dtype=int), np.array([5]), np.array([0]), 1)
        totals.append(sample.totals(values[list(rows)])[0])
        other_totals.append(sample.totals(other_values[list(rows)])[0])
        variances.append(sample.variances(values[list(rows)])[0])
        covariances.append(sample.covariances(values[list(rows)], other_values[list(rows)])[0])
    assert np.mean(totals) == pytest.approx(13)
    assert np.mean(variances) == pytest.approx(np.var(totals))
    assert np.mean(covariances) == pytest.approx(np.cov(totals, other_totals, ddof=0)[0, 1])


def test_the_mean_of_topics_by_hand() -> None:
    """Topics 0, 1, and 3 count: 1, 30, and 3, with variances of 32 and 78. Negative values: Student's interval."""
    sample = StratifiedSample(STRATUM, SIZES, TOPIC, 4)
    estimates = np.array([1.0, 30.0, math.nan, 3.0])
    mean = mean_estimate(sample, estimates, VALUES)
    assert mean.value == pytest.approx(34 / 3)
    assert mean.error == pytest.approx(math.sqrt(110) / 3)
    assert mean.topics is estimates
    assert mean.errors == pytest.approx(np.sqrt([32, 78, 0, 0]))
    df = 110**2 / (32**2 / 1 + 78**2 / 2)  # Satterthwaite: 2.98, so 2 degrees
    half_width = stats.t.ppf(0.975, math.floor(df)) * math.sqrt(110) / 3
    assert math.floor(df) == 2
    assert mean.limits == pytest.approx((34 / 3 - half_width, 34 / 3 + half_width))
    narrower = mean_estimate(sample, estimates, VALUES, 0.9).limits
    half_width = stats.t.ppf(0.95, 2) * math.sqrt(110) / 3
    assert narrower == pytest.approx((34 / 3 - half_width, 34 / 3 + half_width))
    two_units = mean_estimate(sample, np.array([1.0, math.nan, math.nan, 3.0]), VALUES)
    assert (two_units.value, two_units.error) == (2.0, pytest.approx(math.sqrt(32) / 2))
    assert two_units.limits is None  # two units of a stratum with unsampled units
    three_units = mean_estimate(sample, np.array([math.nan, 30.0, math.nan, math.nan]), VALUES)
    assert three_units.limits is not None
    assert three_units.error == pytest.approx(math.sqrt(78))
    assert mean_estimate(sample, np.array([math.nan, math.nan, math.nan, 3.0]), VALUES).limits == (3.0, 3.0)
    no_topics = mean_estimate(sample, np.full(4, math.nan), VALUES)
    assert np.isnan([no_topics.value, no_topics.error]).all()
    assert no_topics.limits is None


def test_nonnegative_values_have_a_logarithmic_interval() -> None:
    """Fully sampled strata add 5 + 1; the part of the other strata, 38 / 3, has a logarithmic interval."""
    sample = StratifiedSample(STRATUM, SIZES, TOPIC, 4)
    values = np.array([1.0, 3.0, 5.0, 2.0, 4.0, 9.0, 1.0, 0.0])
    estimates = sample.totals(values)
    estimates[2] = math.nan
    mean = mean_estimate(sample, estimates, values, 0.9)
    total_variance = 4 * 2 * 2 / 2 + 6 * 3 * 13 / 3
    df = math.floor(total_variance**2 / (8**2 / 1 + 78**2 / 2))
    sampled_part = (2 * 4 + 2 * 15) / 3
    low, high = ratio_interval(sampled_part, math.sqrt(total_variance) / 3, df + 1, 0.9, share=False, counted=True)
    assert (mean.value, mean.error) == (pytest.approx(44 / 3), pytest.approx(math.sqrt(total_variance) / 3))
    assert mean.limits == pytest.approx((2 + low, 2 + high))
    two_units = mean_estimate(sample, np.array([13.0, math.nan, math.nan, 1.0]), values)
    assert two_units.limits is None


@pytest.mark.parametrize(("units", "has_interval"), [([1, 1, 0, 0], True), ([1, 0, 0, 0], False)])
def test_two_equal_units_of_many_are_the_fewest_with_an_interval(units: list[float], has_interval: bool) -> None:
    """The total of two ones in a large sample of zeros from a much larger stratum is sqrt(2) standard errors."""
    values = np.concatenate([np.array(units, dtype=float), np.zeros(10**5)])
    sample = StratifiedSample(np.zeros(len(values), dtype=int), np.array([10**9]), np.array([0]), 1)
    mean = mean_estimate(sample, sample.totals(values), values)
    assert mean.value / mean.error == pytest.approx(math.sqrt(sum(units)), rel=1e-3)
    assert (mean.limits is not None) == has_interval


def test_impossible_and_too_small_samples_raise() -> None:
    for sampled, size, problem in (
        (2, 1, "more sampled units than units"),
        (1, 2, "at least two sampled units"),
        (0, 1, "at least two sampled units"),
    ):
        with pytest.raises(InputError, match=problem):
            StratifiedSample(np.zeros(sampled, dtype=int), np.array([size]), np.array([0]), 1)
    for sampled, size in ((1, 1), (2, 2), (2, 3), (0, 0)):
        sample = StratifiedSample(np.zeros(sampled, dtype=int), np.array([size]), np.array([0]), 1)
        assert sample.sample_sizes.tolist() == [sampled]
