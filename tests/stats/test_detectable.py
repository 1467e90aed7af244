"""What is called detectable is found four times out of five by the test that stands beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration import detectable as simulation

from judged.stats.resampling import randomization
from judged.stats.results import Options
from judged.stats.sample_size import detectable, minimum_detectable

TRIALS = 400


@pytest.mark.parametrize("test", ["randomization", "t"])
@pytest.mark.parametrize("n", [25, 48, 100])
def test_it_is_found_four_times_out_of_five_where_gains_are_sparse(test: str, n: int) -> None:
    """Normal theory states what is found in 65 to 76 % of samples."""
    error = 2 * math.sqrt(0.8 * 0.2 / TRIALS)
    harder, easier = simulation.power("RR, 25% gain", n, TRIALS, test)
    assert 0.75 - error <= harder <= 0.85
    assert easier >= harder
    assert simulation.power("RR, 12% gain", n, TRIALS, test)[0] >= 0.75 - error


def test_for_normal_differences_it_is_that_of_the_formula() -> None:
    gaps = np.random.default_rng(2).normal(0, 0.2, 200)
    for alpha in (0.05, 0.05 / 66):
        assert detectable(gaps, alpha) == pytest.approx(minimum_detectable(gaps.std(ddof=1), 200, alpha), rel=0.06)


def test_of_few_topics_it_is_read_off_the_intervals_of_the_test_itself() -> None:
    gaps = np.array([0.3, -0.1, 0.0, 0.2, 0.5, 0.1, 0.2, -0.2, 0.1])
    apart = (gaps - gaps.mean()) * math.sqrt(9 / 8)
    drawn = apart[np.random.default_rng(0).integers(9, size=(250, 9))]
    limits = np.array([one.interval for one in randomization(drawn, np.full(250, 1e-12), Options(level=0.9))])
    expected = max(np.quantile(side, 0.8, method="higher") for side in (-limits[:, 0], limits[:, 1]))
    assert detectable(gaps, 0.1, flips=True) == pytest.approx(expected)


def test_where_nothing_could_be_found_nothing_is_detectable() -> None:
    assert math.isnan(detectable(np.full(8, 0.1), 0.05))
    assert math.isnan(detectable(np.array([0.1, 0.2, 0.4]), 0.05, flips=True))
    assert math.isnan(detectable(np.array([0.1]), 0.05))
