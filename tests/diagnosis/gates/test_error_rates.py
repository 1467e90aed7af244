"""How often rare large losses deceive the gate: small runs of tools/calibration/losses.py, as docs/gate.md tells it."""

from __future__ import annotations

import pytest
from calibration import losses


@pytest.mark.parametrize(("n", "low", "high"), [(12, 0.5, 0.7), (48, 0.08, 0.22)])
def test_a_loss_that_few_topics_bear_passes_as_often_as_the_topics_miss_it(n: int, low: float, high: float) -> None:
    """One in 25 topics loses 0.8: of 12 topics none does in 61 % of samples, of 48 in 14 %."""
    assert low < losses.false_passes(n, 0.8, 0.04, 300) < high


def test_a_loss_that_many_topics_bear_passes_seldom() -> None:
    assert losses.false_passes(48, 0.03, 0.5, 300) < 0.09
