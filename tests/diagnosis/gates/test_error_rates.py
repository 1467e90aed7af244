"""Rate at which rare large losses pass the gate: small runs of tools/calibration/losses.py (docs/gate-rules.md)."""

from __future__ import annotations

import pytest
from calibration import losses


@pytest.mark.parametrize(("n", "low", "high"), [(12, 0.5, 0.7), (48, 0.08, 0.22)])
def test_a_loss_on_few_topics_passes_as_often_as_the_sample_misses_them(n: int, low: float, high: float) -> None:
    """One in 25 topics loses 0.8: 61% of samples of 12 topics contain none of them, and 14% of samples of 48."""
    assert low < losses.false_passes(n, 0.8, 0.04, 300) < high


def test_a_loss_on_many_topics_rarely_passes() -> None:
    assert losses.false_passes(48, 0.03, 0.5, 300) < 0.09
