"""Samples of strata without replacement: every sample of small populations, textbook variances, and edges."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.labels.estimation import Design, mean_estimate
from judged.stats.ratio import ratio_interval

# topic 0: two of four and all of one; topic 1: three of six; topic 2 has nothing; topic 3: all of two
STRATUM = np.array([0, 0, 1, 2, 2, 2, 3, 3])
SIZES, TOPIC = np.array([4, 1, 6, 2]), np.array([0, 0, 1, 3])
VALUES = np.array([1.0, -3.0, 5.0, 2.0, 4.0, 9.0, 1.0, 2.0])


def test_probabilities_by_hand() -> None:
    """Two of four: 1/2, both 1/6; three of six: 1/2, two of them 1/5; of different strata the product."""
    design = Design(STRATUM, SIZES, TOPIC, 4)
    assert design.drawn.tolist() == [2, 1, 3, 2]
    assert design.probability.tolist() == [0.5, 0.5, 1, 0.5, 0.5, 0.5, 1, 1]
    joint = design.together(np.array([0, 1, 2, 3, 5, 7]))
    assert joint == pytest.approx(np.array([
        [1 / 2, 1 / 6, 1 / 2, 1 / 4, 1 / 4, 1 / 2],
        [1 / 6, 1 / 2, 1 / 2, 1 / 4, 1 / 4, 1 / 2],
        [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2, 1],
        [1 / 4, 1 / 4, 1 / 2, 1 / 2, 1 / 5, 1 / 2],
        [1 / 4, 1 / 4, 1 / 2, 1 / 5, 1 / 2, 1 / 2],
        [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2, 1],
    ]))  # fmt: skip
    assert design.totals(VALUES).tolist() == [2 - 6 + 5, 4 + 8 + 18, 0, 3]


def test_variances_and_covariances_by_hand() -> None:
    """Cochran 1977, (5.6): N (N - n) s^2 / n; 4 * 2 * 8 / 2 = 32, and 6 * 3 * 13 / 3 = 78."""
    design = Design(STRATUM, SIZES, TOPIC, 4)
    assert design.variances(VALUES) == pytest.approx([32, 0, 78, 0])
    others = np.arange(8.0)
    # covariances of the strata: (1 - -3) * (0 - 1) / 2 = -2, and (-3 * -1 + 4 * 1) / 2 = 3.5
    assert design.variances(VALUES, others) == pytest.approx([4 * 2 * -2 / 2, 0, 6 * 3 * 3.5 / 3, 0])
    assert design.covariances(VALUES, others) == pytest.approx([-8, 21, 0, 0])
    assert design.covariances(VALUES, VALUES) == pytest.approx([32, 78, 0, 0])


def test_every_sample_of_three_of_five_is_right_on_average() -> None:
    whole = np.array([3.0, 0.0, 2.0, 7.0, 1.0])
    other = np.array([1.0, 4.0, 4.0, 0.0, 2.0])
    totals, variances, covariances, others = [], [], [], []
    for drawn in itertools.combinations(range(5), 3):
        design = Design(np.zeros(3, dtype=int), np.array([5]), np.array([0]), 1)
        totals.append(design.totals(whole[list(drawn)])[0])
        others.append(design.totals(other[list(drawn)])[0])
        variances.append(design.variances(whole[list(drawn)])[0])
        covariances.append(design.covariances(whole[list(drawn)], other[list(drawn)])[0])
    assert np.mean(totals) == pytest.approx(13)
    assert np.mean(variances) == pytest.approx(np.var(totals))
    assert np.mean(covariances) == pytest.approx(np.cov(totals, others, ddof=0)[0, 1])


def test_the_mean_of_topics_by_hand() -> None:
    """Topics 0, 1, and 3 count: 1, 30, and 3, with variances of 32 and 78; values below 0 have Student's interval."""
    design = Design(STRATUM, SIZES, TOPIC, 4)
    estimates = np.array([1.0, 30.0, math.nan, 3.0])
    found = mean_estimate(design, estimates, VALUES)
    assert found.value == pytest.approx(34 / 3)
    assert found.error == pytest.approx(math.sqrt(110) / 3)
    assert found.topics is estimates
    assert found.errors == pytest.approx(np.sqrt([32, 78, 0, 0]))
    df = 110**2 / (32**2 / 1 + 78**2 / 2)  # Satterthwaite: 2.98, so 2 degrees
    half = stats.t.ppf(0.975, math.floor(df)) * math.sqrt(110) / 3
    assert math.floor(df) == 2
    assert found.limits == pytest.approx((34 / 3 - half, 34 / 3 + half))
    narrower = mean_estimate(design, estimates, VALUES, 0.9).limits
    half = stats.t.ppf(0.95, 2) * math.sqrt(110) / 3
    assert narrower == pytest.approx((34 / 3 - half, 34 / 3 + half))
    alone = mean_estimate(design, np.array([1.0, math.nan, math.nan, 3.0]), VALUES)
    assert (alone.value, alone.error) == (2.0, pytest.approx(math.sqrt(32) / 2))
    assert alone.limits is None  # two units of a stratum that is not drawn whole
    three = mean_estimate(design, np.array([math.nan, 30.0, math.nan, math.nan]), VALUES)
    assert three.limits is not None
    assert three.error == pytest.approx(math.sqrt(78))
    assert mean_estimate(design, np.array([math.nan, math.nan, math.nan, 3.0]), VALUES).limits == (3.0, 3.0)
    none = mean_estimate(design, np.full(4, math.nan), VALUES)
    assert np.isnan([none.value, none.error]).all()
    assert none.limits is None


def test_values_that_are_never_negative_have_the_interval_of_a_ratio() -> None:
    """What is drawn whole adds 5 + 3 of 8 and 30 of 30; the sampled rest, 38 / 3, is on the logarithmic scale."""
    design = Design(STRATUM, SIZES, TOPIC, 4)
    values = np.array([1.0, 3.0, 5.0, 2.0, 4.0, 9.0, 1.0, 0.0])
    estimates = design.totals(values)
    estimates[2] = math.nan
    found = mean_estimate(design, estimates, values, 0.9)
    total = 4 * 2 * 2 / 2 + 6 * 3 * 13 / 3
    df = math.floor(total**2 / (8**2 / 1 + 78**2 / 2))
    part = (2 * 4 + 2 * 15) / 3
    low, high = ratio_interval(part, math.sqrt(total) / 3, df + 1, 0.9, share=False, counted=True)
    assert (found.value, found.error) == (pytest.approx(44 / 3), pytest.approx(math.sqrt(total) / 3))
    assert found.limits == pytest.approx((2 + low, 2 + high))
    topic = mean_estimate(design, np.array([13.0, math.nan, math.nan, 1.0]), values)
    assert topic.limits is None  # two units


@pytest.mark.parametrize(("units", "known"), [([1, 1, 0, 0], True), ([1, 0, 0, 0], False)])
def test_two_equal_units_of_many_are_the_fewest_with_an_interval(units: list[float], known: bool) -> None:
    """Of two ones among very many zeros that are drawn of many more, the sum is sqrt(2) errors."""
    sample = np.concatenate([np.array(units, dtype=float), np.zeros(10**5)])
    design = Design(np.zeros(len(sample), dtype=int), np.array([10**9]), np.array([0]), 1)
    found = mean_estimate(design, design.totals(sample), sample)
    assert found.value / found.error == pytest.approx(math.sqrt(sum(units)), rel=1e-3)
    assert (found.limits is not None) == known


def test_samples_that_say_nothing_are_refused() -> None:
    for drawn, size, problem in ((2, 1, "more were drawn"), (1, 2, "fewer than two"), (0, 1, "fewer than two")):
        with pytest.raises(InputError, match=problem):
            Design(np.zeros(drawn, dtype=int), np.array([size]), np.array([0]), 1)
    for drawn, size in ((1, 1), (2, 2), (2, 3), (0, 0)):
        assert Design(np.zeros(drawn, dtype=int), np.array([size]), np.array([0]), 1).drawn.tolist() == [drawn]
