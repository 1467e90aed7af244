"""Differences between arms and their relative size, against hand calculation, SciPy, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged.online.statistics.users import NO_RELATIVE, AdjustedDifference, Arm, adjusted_difference
from judged.stats.ratio import RatioSums


def _mean(values: np.ndarray) -> RatioSums:
    n = float(len(values))
    return RatioSums(n, values.sum(), n, (values**2).sum(), n, values.sum())


def test_a_relative_difference_has_the_sign_of_the_difference_where_the_baseline_is_negative() -> None:
    """From -10 to -5 is a gain of half of 10: value / |base| = 5 / 10."""
    difference = AdjustedDifference(5.0, 0.5, 0.0, 0.0, base=-10.0, base_error=0.4, base_covariance=-0.16)
    relative = difference.relative(1.96)
    assert relative.value == 0.5
    assert 0 < relative.low < 0.5 < relative.high
    opposite = AdjustedDifference(-5.0, 0.5, 0.0, 0.0, base=10.0, base_error=0.4, base_covariance=-0.16)
    mirrored = opposite.relative(1.96)
    assert (mirrored.low, mirrored.high) == pytest.approx((-relative.high, -relative.low))


@pytest.mark.parametrize("base", [8.0, -8.0])
@pytest.mark.parametrize("value", [-3.0, 0.4, 3.0])
def test_fiellers_ends_solve_their_quadratic(base: float, value: float) -> None:
    """At an end r, the difference minus r times |base| is `critical` standard errors from 0."""
    error, base_error, covariance, critical = 0.9, 0.7, -0.3, 2.5
    difference = AdjustedDifference(value, error, 0.0, 0.0, base, base_error, covariance)
    sign = math.copysign(1.0, base)
    for r in difference.relative(critical)[1:]:
        variance = error**2 - 2 * r * sign * covariance + r**2 * base_error**2
        assert abs(value - r * abs(base)) == pytest.approx(critical * math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize(("base_error", "is_defined"), [(0.99, True), (1.0, False), (1.01, False)])
@pytest.mark.parametrize("base", [2.0, -2.0])
def test_there_is_no_relative_difference_where_the_baselines_interval_holds_0(
    base: float, base_error: float, is_defined: bool
) -> None:
    """The interval is 2 +- 2 * 1 at a standard error of 1 and a critical value of 2."""
    difference = AdjustedDifference(5.0, 0.1, 0.0, 0.0, base, base_error, 0.0)
    assert math.isfinite(difference.relative(2.0).value) is is_defined
    if not is_defined:
        assert difference.relative(2.0) is NO_RELATIVE


def test_without_a_baseline_there_is_no_relative_difference() -> None:
    for base in (0.0, math.nan):
        difference = AdjustedDifference(5.0, 0.1, 0.0, 0.0, base, 0.0, 0.0)
        assert difference.relative(2.0) is NO_RELATIVE
        assert math.isnan(difference.relative_error)
    assert AdjustedDifference(math.nan, 0.1, 0.0, 0.0, 1.0, 0.0, 0.0).relative(2.0) is NO_RELATIVE


def test_the_relative_error_is_that_of_the_delta_method() -> None:
    """v = 3, b = -6: var(v)/36 - 2 * 3 cov / -216 + 9 var(b) / 1296, with variances .25 and .16 and covariance -.1."""
    difference = AdjustedDifference(3.0, 0.5, 0.0, 0.0, -6.0, 0.4, -0.1)
    assert difference.relative_error == pytest.approx(math.sqrt(0.25 / 36 - 0.1 * 6 / 216 + 9 * 0.16 / 1296))


def test_a_plain_difference_of_means_is_welchs() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(-10, 3, 40), rng.normal(-5, 4, 60)
    difference = adjusted_difference(Arm(_mean(x)), Arm(_mean(y)))
    assert difference.value == pytest.approx(y.mean() - x.mean())
    assert difference.error == pytest.approx(math.sqrt(x.var(ddof=1) / 40 + y.var(ddof=1) / 60))
    assert (difference.theta, difference.reduction, difference.base) == (0.0, 0.0, pytest.approx(x.mean()))
    assert difference.base_error == pytest.approx(x.std(ddof=1) / math.sqrt(40))
    assert difference.base_covariance == pytest.approx(-(difference.base_error**2))


def test_relative_intervals_cover_a_negative_baseline() -> None:
    """The true relative difference is (-8 + 10) / 10 = 0.2; 4,000 samples of 30 users an arm, three standard errors."""
    rng, covered, sign_errors = np.random.default_rng(2), 0, 0
    for _ in range(4000):
        x, y = rng.normal(-10, 8, 30), rng.normal(-8, 8, 30)
        difference = adjusted_difference(Arm(_mean(x)), Arm(_mean(y)))
        relative = difference.relative(2.0017)  # Student's t with 58 degrees of freedom
        covered += relative.low <= 0.2 <= relative.high
        sign_errors += (relative.low > 0) != (difference.value > 2.0017 * difference.error)
    assert sign_errors == 0
    assert covered / 4000 == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 4000) + 0.005)
