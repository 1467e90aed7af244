"""Interval of a judge's own variance: for nearly equal half squares, chi-square with one degree per score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from judged.pipelines.rag.judge_error import MIN_REPEATED_TOPICS, _variance_interval


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("systems", [1, 3])
def test_the_interval_is_that_of_chi_square(level: float, systems: int) -> None:
    half_squares = 2.0 + 0.01 * (np.arange(30) % 2)
    interval = _variance_interval(half_squares, systems, level)
    df = 30 * systems
    expected = [df * half_squares.mean() / chi2.ppf(q, df) for q in ((1 + level) / 2, (1 - level) / 2)]
    assert interval == pytest.approx(expected)


def test_heavier_tails_have_wider_intervals() -> None:
    even, heavy = np.full(30, 1.0), np.array([15.5, 0.5] + [0.5] * 28)
    even[:2] = 0.9, 1.1
    assert heavy.mean() == even.mean() == 1.0
    narrow, wide = (_variance_interval(half_squares, 1, 0.95) for half_squares in (even, heavy))
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < 1 < narrow[1] < wide[1]


def test_too_few_or_equal_halves_have_no_interval() -> None:
    rng = np.random.default_rng(1)
    assert _variance_interval(rng.random(MIN_REPEATED_TOPICS), 1, 0.95) is not None
    assert _variance_interval(rng.random(MIN_REPEATED_TOPICS - 1), 1, 0.95) is None
    assert _variance_interval(np.ones(30), 1, 0.95) is None
    assert _variance_interval(np.empty(0), 1, 0.95) is None
