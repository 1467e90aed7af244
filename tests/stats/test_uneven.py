"""Tests that take all differences to vary alike say so where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibration import uneven

from comparison_made import scores
from judged.stats.analysis_of_variance import nemenyi
from judged.stats.multiple import dunnett, randomized_dunnett, randomized_tukey, tukey_hsd

TRIALS = 150
FEW = {"resamples": 199}


def test_one_uneven_system_makes_them_err_and_is_noted() -> None:
    """Tukey's HSD finds something in 14 %, Dunnett's test in 23 % of families, were all systems alike."""
    assert uneven.rate("tukey", 8, 3, 25, TRIALS) > 0.07
    assert uneven.rate("dunnett, uneven baseline", 8, 3, 25, TRIALS) > 0.12
    assert uneven.rate("noted", 8, 3, 25, TRIALS) > 0.95
    assert uneven.rate("noted", 8, 1, 25, TRIALS) < 0.05


@pytest.mark.parametrize("spread", [1, 3])
def test_what_is_recommended_instead_holds_its_level(spread: int) -> None:
    most = 0.05 + 3.3 * math.sqrt(0.05 * 0.95 / TRIALS)
    assert uneven.rate("randomization, Holm", 5, spread, 25, TRIALS) <= most


def test_the_note_stands_beside_the_result() -> None:
    rng = np.random.default_rng(3)
    even = rng.normal(0, 1, (6, 30))
    uneven = even * np.array([4.0, *[1.0] * 5])[:, None]
    result = [tukey_hsd, dunnett, lambda x: randomized_tukey(x, **FEW), lambda x: randomized_dunnett(x, **FEW)]
    assert not any(test(even).note for test in result)
    assert all(
        "times the standard deviation" in test(uneven).note and test(uneven).note in test(uneven).sentence
        for test in result
    )
    assert not nemenyi(uneven).note


def test_compare_warns_of_it_once() -> None:
    rng = np.random.default_rng(3)
    ranks = {f"s{at}": rng.integers(2, 4, 30).tolist() for at in range(5)}
    said = scores(**ranks, wild=rng.integers(1, 19, 30).tolist()).compare(test="tukey").warnings
    assert sum("times the standard deviation" in one for one in said) == 1
