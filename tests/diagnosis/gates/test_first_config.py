"""The probabilities that `gate init` writes beside a margin."""

from __future__ import annotations

import numpy as np
import pytest

from diagnosis.gates.check_scores import decided, pair
from judged.diagnosis.gates.first_config import fail_probability, pass_probability

SD, TOPICS = 0.133, 48


def test_pass_probability_is_that_of_a_one_sided_test() -> None:
    """With a margin of 0 it is alpha; the power of a two-sided test at 2 alpha would be twice that."""
    distributions = pytest.importorskip("scipy.stats")
    assert pass_probability(0.0, SD, TOPICS) == pytest.approx(0.05)
    limit = distributions.t.ppf(0.95, TOPICS - 1)
    for margin in (0.0085, 0.02, 0.05, 0.2):
        shift = margin / SD * np.sqrt(TOPICS)
        assert pass_probability(margin, SD, TOPICS) == pytest.approx(
            distributions.nct.sf(limit, TOPICS - 1, shift), abs=1e-9
        )


def test_gates_pass_with_the_computed_probability() -> None:
    """2000 trials: 4 standard errors are 0.028 and 0.034."""
    rng = np.random.default_rng(5)
    for margin in (0.0085, 0.05):
        passed = failed = 0
        for _ in range(2000):
            (result,) = decided(pair(rng.normal(0, SD, TOPICS), margin=margin), test="t")
            passed += result.status == "pass"
            failed += result.status == "fail"
        assert passed / 2000 == pytest.approx(pass_probability(margin, SD, TOPICS), abs=0.035)
        assert failed / 2000 == pytest.approx(fail_probability(margin, SD, TOPICS), abs=0.02)
