"""A second look at skewed differences: by hand, at its level, and never blind to what is plain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged.stats.classical import with_hall_tests
from judged.stats.paired import paired_test, paired_tests


def alone(gaps: np.ndarray, **options: object) -> object:
    return paired_test(np.zeros(len(gaps)), gaps, **options)  # type: ignore[arg-type]


def test_by_hand() -> None:
    """1, 1, 1, 5: mean 2, error 1, t = 2; skewness 2, so that 2 / sqrt(4) = 1 stands before the cubic."""
    gaps = np.array([1.0, 1.0, 1.0, 5.0])
    skewness = scipy_stats.skew(gaps, bias=False)
    assert skewness == pytest.approx(2.0)
    seen = 2 + 1 / 3 * 4 + 1 / 27 * 8 + 1 / 6
    (result,) = with_hall_tests(gaps[None], [alone(gaps, test="t")])
    assert result.p == pytest.approx(max(2 * scipy_stats.t.sf(seen, 3), 2 * scipy_stats.t.sf(2, 3)))
    least, most = scipy_stats.t.ppf([0.025, 0.975], 3)
    inverse = [3 * (math.cbrt(1 + t - 1 / 6) - 1) for t in (most, least)]
    by_t = (2 - most, 2 + most)
    assert result.interval == pytest.approx((min(2 - inverse[0], by_t[0]), max(2 - inverse[1], by_t[1])))


def test_where_nearly_all_topics_lose_the_same_it_is_still_a_loss() -> None:
    """Resamples without the one that differs have no spread at all: the studentized bootstrap says p = .7 here."""
    gaps = np.array([-1.0] * 19 + [-0.08])
    (result,) = with_hall_tests(gaps[None], [alone(gaps)])
    assert result.p < 0.001
    assert result.interval[1] < -0.5


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30), st.sampled_from(["two-sided", "greater", "less"]))
def test_it_only_ever_doubts_and_mirrors(values: list[float], alternative: str) -> None:
    gaps = np.array(values)
    test = alone(gaps, alternative=alternative, resamples=500)
    (result,) = with_hall_tests(gaps[None], [test])
    assert result.p >= test.p
    assert result.interval[0] <= test.interval[0]
    assert result.interval[1] >= test.interval[1]
    other = {"two-sided": "two-sided", "greater": "less", "less": "greater"}[alternative]
    mirrored = alone(-gaps, alternative=other, test="t")
    (again,) = with_hall_tests(-gaps[None], [mirrored])
    (t,) = with_hall_tests(gaps[None], [alone(gaps, alternative=alternative, test="t")])
    if not math.isnan(t.p):
        assert again.p == pytest.approx(t.p, abs=1e-12)


@pytest.mark.parametrize(("n", "most"), [(12, 0.065), (24, 0.06)])
def test_it_holds_the_level_where_the_randomization_test_does_not(n: int, most: float) -> None:
    gaps = np.random.default_rng(n).exponential(size=(2000, n)) - 1
    tests = paired_tests(np.vstack([np.zeros(n), gaps]), [(0, row + 1) for row in range(2000)], resamples=999)
    both = with_hall_tests(gaps, tests)
    assert np.mean([one.p <= 0.05 for one in tests]) > 0.07
    assert np.mean([one.p <= 0.05 for one in both]) < most
