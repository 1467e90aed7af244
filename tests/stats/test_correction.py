"""Corrections for many comparisons: against statsmodels, by hand, and what each promises."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from judged import InputError
from judged.stats.correction import CORRECTIONS, adjust

THEIRS = {"bonferroni": "bonferroni", "holm": "holm", "hochberg": "simes-hochberg", "bh": "fdr_bh", "by": "fdr_by"}
P_VALUES = st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), min_size=1, max_size=30)


@pytest.mark.parametrize("method", THEIRS)
@given(given=P_VALUES)
def test_adjusted_values_are_those_of_statsmodels(method: str, given: list[float]) -> None:
    with mock.patch("gc.collect"):  # Holm's collects garbage at every call, which takes most of a minute in all
        expected = multipletests(given, method=THEIRS[method])[1]
    assert adjust(given, method) == pytest.approx(np.maximum(expected, given), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", [0.01, 0.04, 0.03, 0.005]),
        ("bonferroni", [0.04, 0.16, 0.12, 0.02]),
        ("holm", [0.03, 0.06, 0.06, 0.02]),  # .005*4, .01*3, .03*2, then not below it: .04*1
        ("hochberg", [0.03, 0.04, 0.04, 0.02]),  # from above: .04*1, not above it: .03*2, .01*3, .005*4
        ("bh", [0.02, 0.04, 0.04, 0.02]),  # .04*4/4, .03*4/3, .01*4/2, .005*4/1
        ("by", [0.02 * 25 / 12, 0.04 * 25 / 12, 0.04 * 25 / 12, 0.02 * 25 / 12]),  # 1 + 1/2 + 1/3 + 1/4 = 25/12
    ],
)
def test_four_by_hand(method: str, expected: list[float]) -> None:
    assert adjust([0.01, 0.04, 0.03, 0.005], method) == pytest.approx(expected, rel=1e-12)


def test_benjamini_and_hochbergs_own_example() -> None:
    """Benjamini and Hochberg (1995), section 4.1: 15 p-values; Bonferroni finds 3 at .05, their procedure 4."""
    given = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
    ]
    assert [int((adjust(given, method) <= 0.05).sum()) for method in ("bonferroni", "hochberg", "bh")] == [3, 3, 4]


@pytest.mark.parametrize("method", CORRECTIONS)
@given(given=P_VALUES)
def test_order_is_kept_and_nothing_leaves_its_range(method: str, given: list[float]) -> None:
    values, adjusted = np.array(given), adjust(given, method)
    assert np.all((adjusted >= values) & (adjusted <= 1))
    assert np.all(np.diff(adjusted[np.argsort(values, kind="stable")]) >= 0)


@pytest.mark.parametrize("method", CORRECTIONS)
@given(given=P_VALUES, places=st.lists(st.integers(0, 30), max_size=5))
def test_nan_does_not_count(method: str, given: list[float], places: list[int]) -> None:
    holes = np.insert(np.array(given), [min(place, len(given)) for place in places], math.nan)
    adjusted = adjust(holes, method)
    assert np.array_equal(np.isnan(adjusted), np.isnan(holes))
    assert adjusted[~np.isnan(holes)].tolist() == adjust(given, method).tolist()


@given(given=P_VALUES)
def test_who_is_never_less_powerful_than_whom(given: list[float]) -> None:
    found = {method: adjust(given, method) for method in CORRECTIONS}
    slack = 1e-12
    for stronger, weaker in [("none", "bh"), ("bh", "hochberg"), ("hochberg", "holm"), ("holm", "bonferroni")]:
        assert np.all(found[stronger] <= found[weaker] + slack)
    assert np.all(found["bh"] <= found["by"])


def test_rounding_does_not_take_a_value_below_what_was_given() -> None:
    """0.487 * 3 / 3 is a little less than 0.487 in floats."""
    assert 0.487 * 3 / 3 < 0.487
    assert adjust([0.1, 0.2, 0.487], "bh")[2] == 0.487


def test_nothing_and_nothing_but_nan() -> None:
    assert adjust([], "holm").tolist() == []
    assert np.isnan(adjust([math.nan, math.nan], "bh")).all()


def test_what_was_given_stays_as_it_was() -> None:
    given = np.array([0.01, 0.02])
    adjust(given, "bonferroni")
    assert given.tolist() == [0.01, 0.02]


@pytest.mark.parametrize(
    ("given", "method", "message"),
    [
        ([0.1], "sidak", "unknown correction: 'sidak'"),
        ([1.1], "holm", "between 0 and 1"),
        ([-0.1], "holm", "between 0 and 1"),
        ([[0.1]], "holm", "1 dimension, got 2"),
    ],
)
def test_what_cannot_be_used_is_refused(given: list[float], method: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        adjust(given, method)
