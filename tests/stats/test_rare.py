"""What is said of verdicts where few topics carry the difference: small runs of tools/calibration/rare.py."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import rare

TRIALS = 250


@pytest.mark.parametrize("name", rare.RARE)
@pytest.mark.parametrize("n", [10, 50])
def test_false_verdicts(name: str, n: int) -> None:
    """The bounded test errs in 5 % at most; false verdicts without a rare topic say what they may have missed."""
    told, holds = rare.false_verdicts(name, n, TRIALS)
    assert told.bounded.mean() <= 0.05
    assert told.stated[told.significant & ~holds].all()


def test_false_verdicts_with_a_rare_topic_in_the_sample_are_labeled() -> None:
    """At least 95 % of those where up to one topic in ten is of the rare kind, from 50 topics on."""
    labeled = of = 0
    for name in ("5% lose 0.6", "10% gain 0.45", "8% lose 0.5", "6% gain 0.3"):
        for n in (50, 100):
            told, holds = rare.false_verdicts(name, n, TRIALS)
            labeled, of = labeled + told.labeled[told.significant & holds].sum(), of + (told.significant & holds).sum()
    assert of > 100
    assert labeled >= 0.95 * of


@pytest.mark.parametrize("name", rare.ORDINARY)
@pytest.mark.parametrize("n", [10, 50])
def test_true_differences_without_a_rare_kind_are_seldom_labeled(name: str, n: int) -> None:
    told = rare.true_verdicts(name, n, TRIALS)
    assert told.significant.sum() > 100
    assert told.labeled[told.significant].mean() <= 0.05
    assert told.bounded.mean() <= told.significant.mean()


@pytest.mark.parametrize("name", rare.RARE)
def test_the_shapes_have_a_mean_of_0_within_the_bounds(name: str) -> None:
    drawn = rare.RARE[name](np.random.default_rng(1), (1000, 400))
    assert abs(drawn.gaps.mean()) < 4 * drawn.gaps.std() / np.sqrt(drawn.gaps.size)
    assert np.abs(drawn.gaps).max() <= rare.LARGEST
