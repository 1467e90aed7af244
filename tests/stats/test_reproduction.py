"""How close a reproduction comes: by hand and against scipy."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from judged.errors import InputError
from judged.stats.rankings import delta_relative_improvement, effect_ratio, rmse, t_test_p

NAN = math.nan
values = st.lists(st.integers(0, 20).map(lambda at: at / 20), min_size=2, max_size=12)


def test_by_hand() -> None:
    baseline, advanced = np.array([0.2, 0.4, 0.6]), np.array([0.4, 0.5, 0.9])  # 0.4 and 0.6
    base_again, again = np.array([0.1, 0.3, 0.5]), np.array([0.3, 0.3, 0.6])  # 0.3 and 0.4
    assert rmse(advanced, again) == pytest.approx(math.sqrt((0.01 + 0.04 + 0.09) / 3))
    assert effect_ratio(baseline, advanced, base_again, again) == pytest.approx(0.1 / 0.2)
    assert delta_relative_improvement(baseline, advanced, base_again, again) == pytest.approx(0.5 - 1 / 3)
    assert effect_ratio(baseline, advanced, again, base_again) == pytest.approx(-0.5)
    assert effect_ratio(baseline, advanced, baseline, advanced) == 1
    assert delta_relative_improvement(baseline, advanced, baseline, advanced) == 0


def test_a_replication_may_have_other_topics() -> None:
    assert effect_ratio(np.array([0.0, 0.2]), np.array([0.4, 0.2]), np.array([0.1]), np.array([0.5])) == pytest.approx(
        2
    )


def test_what_is_undefined() -> None:
    zero, one = np.zeros(3), np.ones(3)
    assert math.isnan(effect_ratio(one, one, zero, one))  # there was no effect to find
    assert math.isnan(effect_ratio(np.array([0.3, 0.1]), np.array([0.1, 0.3]), zero, one))  # nor here, but for rounding
    assert math.isnan(delta_relative_improvement(zero, one, one, one))
    assert math.isnan(rmse(np.array([NAN]), np.array([1.0])))
    assert math.isnan(effect_ratio(np.array([NAN]), np.array([1.0]), zero, one))
    assert rmse(np.array([NAN, 1.0, 0.5]), np.array([1.0, 1.0, NAN])) == 0


def by_scipy(test, one: np.ndarray, other: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a sample whose values are all the same
        return test(one, other).pvalue


@given(values, values)
def test_p_values_are_those_of_scipy(first: list[float], second: list[float]) -> None:
    size = min(len(first), len(second))
    one, other = np.array(first[:size]), np.array(second[:size])
    differences = {round(value, 9) for value in (one - other).tolist()}
    if len(differences) > 1:
        assert t_test_p(one, other) == pytest.approx(by_scipy(scipy.stats.ttest_rel, one, other), rel=1e-7)
    else:
        assert t_test_p(one, other) == (1 if differences == {0} else 0)
    one, other = np.array(first), np.array(second)
    if len(set(first)) > 1 or len(set(second)) > 1:
        expected = by_scipy(scipy.stats.ttest_ind, one, other)
        assert t_test_p(one, other, same_topics=False) == pytest.approx(expected, rel=1e-7)
    else:
        assert t_test_p(one, other, same_topics=False) == (1 if first[0] == second[0] else 0)


def test_too_few_topics_and_wrong_input() -> None:
    one = np.array([0.5])
    for same in (True, False):
        assert math.isnan(t_test_p(one, one, same_topics=same))
        assert math.isnan(t_test_p(np.array([NAN, NAN]), np.array([0.1, 0.2]), same_topics=same))
    with pytest.raises(InputError, match="one score per topic"):
        rmse(np.zeros(2), np.zeros(3))
