"""What `gate init` says of a margin: the chance that a candidate as good as the baseline passes."""

from __future__ import annotations

import numpy as np
import pytest

from diagnosis.gates.made import decided, pair
from judged.diagnosis.gates.first_config import chance as chance_of

SD, TOPICS = 0.133, 48


def chance(margin: float) -> float:
    return chance_of(margin, SD, TOPICS)


def test_a_chance_to_pass_is_that_of_one_side() -> None:
    """Of a margin of 0 the test of safety is at its level; a two-sided power would say twice that."""
    distributions = pytest.importorskip("scipy.stats")
    assert chance(0.0) == pytest.approx(0.05)
    limit = distributions.t.ppf(0.95, TOPICS - 1)
    for margin in (0.0085, 0.02, 0.05, 0.2):
        shift = margin / SD * np.sqrt(TOPICS)
        assert chance(margin) == pytest.approx(distributions.nct.sf(limit, TOPICS - 1, shift), abs=1e-9)


def test_gates_pass_as_often_as_is_said() -> None:
    """2000 trials: 4 standard errors are 0.028 and 0.034."""
    rng = np.random.default_rng(5)
    for margin in (0.0085, 0.05):
        passed = 0
        for _ in range(2000):
            (found,) = decided(pair(rng.normal(0, SD, TOPICS), margin=margin), test="t")
            passed += found.status == "pass"
        assert passed / 2000 == pytest.approx(chance(margin), abs=0.035)
