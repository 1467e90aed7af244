"""The least p-value of each test, against what the tests themselves give for the clearest differences there are."""

from __future__ import annotations

import numpy as np
import pytest

from judged.stats.paired import TESTS, paired_test
from judged.stats.sample_size import cannot_be_significant, smallest_p


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
@pytest.mark.parametrize("test", ["randomization", "sign", "wilcoxon", "ratio"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_the_clearest_difference_attains_it(n: int, test: str, alternative: str) -> None:
    lower = 0.1 + 0.01 * np.arange(n)
    result = paired_test(np.full(n, 0.9), lower, test, alternative=alternative)
    assert result.p == pytest.approx(smallest_p(n, test, alternative))


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
@pytest.mark.parametrize("test", ["randomization", "bootstrap", "bca", "studentized"])
def test_drawn_resamples_bound_it(test: str, alternative: str) -> None:
    lower = 0.1 + 0.01 * np.arange(30)
    result = paired_test(np.full(30, 0.9), lower, test, alternative=alternative, resamples=199)
    assert 0 < smallest_p(30, test, alternative, 199) == 1 / 200 <= result.p


def test_some_know_no_bound_and_one_topic_has_no_test() -> None:
    assert [smallest_p(3, test) for test in ("t", "bayes", "tukey")] == [0.0] * 3
    assert [smallest_p(n, test) for n in (0, 1) for test in TESTS] == [1.0] * 2 * len(TESTS)


def test_a_limit_that_is_met_is_in_reach() -> None:
    assert not cannot_be_significant(0.0625, 5)
    assert not cannot_be_significant(3 * 2.0**-5 / 3, 6)
    assert cannot_be_significant(0.0624, 5)
    assert [cannot_be_significant(0.05 / family, 6) for family in (1, 2)] == [False, True]
    assert [cannot_be_significant(0.05, n, alternative="less") for n in (4, 5)] == [True, False]
