"""Limits below which nothing but a descriptive value is reported."""

from __future__ import annotations

import math

import pytest

from judged.errors import InputError
from judged.stats.sufficiency import MAX_SHARE, MIN_UNITS, Insufficiency, insufficiency


@pytest.mark.parametrize("units", [0, 1, 2, math.nan])
def test_fewer_than_three_units_have_no_interval(units):
    assert insufficiency(units, variance=1.0).code == "few-units"


@pytest.mark.parametrize("units", [2, 3, 4, 5])
def test_two_to_five_units_have_no_verdict(units):
    found = insufficiency(units, "verdict", variance=1.0)
    assert (found.code, found.observed, found.required) == ("few-units", units, 6)


def test_limits_are_inclusive():
    assert insufficiency(MIN_UNITS["interval"], variance=1e-30) is None
    assert insufficiency(MIN_UNITS["verdict"], "verdict", variance=1e-30) is None


def test_larger_minimum_counts_and_smaller_one_does_not():
    assert insufficiency(19, min_units=20).required == 20
    assert insufficiency(20, min_units=20) is None
    assert insufficiency(2, min_units=1).required == 3


@pytest.mark.parametrize("variance", [0.0, -0.0, math.nan])
def test_without_variance(variance):
    assert insufficiency(100, variance=variance).code == "no-variance"


def test_without_estimated_variance_units_alone_decide():
    assert insufficiency(100, "verdict") is None


def test_one_unit_with_most_of_the_weight():
    # shares 7/14 = 0.5 are allowed, 8/15 are not
    assert insufficiency(8, weights=[1] * 7 + [7], min_effective_units=1) is None
    found = insufficiency(8, weights=[1] * 7 + [8])
    assert (found.code, found.required) == ("dominated", MAX_SHARE)
    assert found.observed == pytest.approx(8 / 15)


def test_effective_units_of_unequal_weights():
    # (4 * 1 + 2 * 4)^2 / (4 * 1 + 2 * 16) = 144 / 36 = 4
    found = insufficiency(6, "verdict", weights=[1, 1, 1, 1, 4, 4])
    assert (found.code, found.required) == ("few-effective-units", 6)
    assert found.observed == pytest.approx(4.0)
    assert insufficiency(6, "interval", weights=[1, 1, 1, 1, 4, 4]) is None


def test_equal_weights_are_as_many_effective_units():
    assert insufficiency(6, "verdict", weights=[0.1] * 6) is None


def test_given_effective_units_have_a_minimum_of_their_own():
    assert insufficiency(300, "verdict", effective_units=49.0, min_effective_units=50).code == "few-effective-units"
    assert insufficiency(300, "verdict", effective_units=50.0, min_effective_units=50) is None


def test_no_weight_at_all_is_too_little():
    assert insufficiency(10, weights=[0.0] * 10).code == "dominated"


def test_one_distinct_value():
    assert insufficiency(10, distinct_values=1).code == "few-values"
    assert insufficiency(10, distinct_values=2) is None


def test_negative_weights_are_rejected():
    with pytest.raises(InputError):
        insufficiency(3, weights=[1, -1, 1])


@pytest.mark.parametrize(
    "found",
    [
        Insufficiency("few-units", 1, 6),
        Insufficiency("few-values", 1, 2),
        Insufficiency("no-variance", 0.0, 0.0),
        Insufficiency("dominated", 0.93, 0.5),
        Insufficiency("few-effective-units", 4.25, 6),
    ],
)
def test_every_reason_names_its_unit_and_number(found):
    sentence = found.sentence("topic")
    assert "topic" in sentence or found.code == "few-values"
    assert {"few-units": "6", "few-values": "2", "no-variance": "same value", "dominated": "93%"}.get(
        found.code, "4.2"
    ) in sentence
