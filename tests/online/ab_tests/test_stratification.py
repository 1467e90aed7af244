"""Tests whose allocation changed over time: differences within periods, by hand and by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from judged.online.ab_tests.abtest import abtest, stratified
from online.ab_tests.arms import ONE_DAY, difference, log_of_users, users

METRIC: dict[str, Any] = {"primary": "SatisfiedPageCTR", "metrics": (), "any_day": False}


def test_a_stratified_difference_is_the_mean_of_its_periods() -> None:
    """Harmonic sizes: 100 and 300 pages give 75, 500 and 500 give 250: weights 3/13 and 10/13."""
    first, second = (difference(10.0, 11.0, 2.0, slice_name="1", effective=80.0, reduction=0.5),
                     difference(20.0, 24.0, 1.0, slice_name="2", effective=90.0))  # fmt: skip
    first = replace(first, baseline=replace(first.baseline, denominator=100.0),
                    other=replace(first.other, denominator=300.0))  # fmt: skip
    second = replace(second, baseline=replace(second.baseline, denominator=500.0),
                     other=replace(second.other, denominator=500.0))  # fmt: skip
    (pooled,) = stratified([difference(15.0, 17.0)], [first, second], users(), ONE_DAY)
    w, v = 3 / 13, 10 / 13
    assert pooled.adjusted.value == pytest.approx(w * 1.0 + v * 4.0)
    assert pooled.adjusted.error == pytest.approx(math.hypot(w * 2.0, v * 1.0))
    assert pooled.adjusted.base == pytest.approx(w * 10 + v * 20)
    assert pooled.adjusted.base_error == pytest.approx(0.1 * math.hypot(w, v))
    assert pooled.adjusted.base_covariance == pytest.approx(-(0.1**2) * (w * w + v * v))
    unadjusted = (w * 2.0) ** 2 / 0.5 + v * v
    assert pooled.adjusted.reduction == pytest.approx(1 - ((w * 2.0) ** 2 + v * v) / unadjusted)
    shares = np.array([(w * 2.0) ** 2, v * v]) / ((w * 2.0) ** 2 + v * v)
    assert pooled.effective_users == pytest.approx(1 / (shares[0] ** 2 / 80 + shares[1] ** 2 / 90))
    assert (pooled.baseline.value, pooled.other.value, pooled.slice_name) == (15.0, 17.0, "")


def test_periods_with_few_users_in_an_arm_do_not_count() -> None:
    few, enough = difference(10.0, 90.0, slice_name="1", units=29), difference(10.0, 12.0, slice_name="2", units=30)
    (pooled,) = stratified([difference(15.0, 17.0)], [few, enough], users(), ONE_DAY)
    assert pooled.adjusted.value == 2.0
    (missing,) = stratified([difference(15.0, 17.0)], [few], users(), ONE_DAY)
    assert all(map(math.isnan, (missing.p, missing.adjusted.value, missing.difference.low)))


def test_what_differed_before_in_any_period_differed_before() -> None:
    rows = [difference(1.0, 2.0, slice_name=str(period), p_before=p) for period, p in enumerate((0.01, 0.4, math.nan))]
    (pooled,) = stratified([difference(1.0, 2.0)], rows, users(), ONE_DAY)
    assert pooled.p_before == pytest.approx(0.02)
    (without_history,) = stratified([difference(1.0, 2.0)], rows[2:], users(), ONE_DAY)
    assert math.isnan(without_history.p_before)


def ramp(seed: int, *, gain: float = 0.0, users: int = 1200) -> Any:
    """Simulate a ramp-up: arm b gets 10% of the users of week 1 and 50% of week 2, when users click less."""
    rng = np.random.default_rng(seed)
    day = rng.uniform(0, 14, users)
    second = rng.random(users) < np.where(day < 7, 0.1, 0.5)
    clicked = rng.random(users) < np.where(day < 7, 0.6, 0.3) + gain * second
    return log_of_users(np.where(second, "b", "a").tolist(), clicked.tolist(), day.tolist())


SHARES = {"a": 0.7, "b": 0.3}


def test_a_ramp_up_is_detected_and_its_periods_are_compared() -> None:
    test = abtest(ramp(1), shares=SHARES, **METRIC)
    assert test.assignment.is_ramped
    assert [day.isoformat() for day in test.assignment.periods] == ["1970-01-01", "1970-01-08"]
    assert test.assignment.allocation.p < 1e-6
    assert [note.rule for note in test.notes] == ["allocation-changed"]
    row = test.differences[0]
    assert row.other.value - row.baseline.value < -0.05  # the arms differ in when their users came
    assert row.difference.low < 0 < row.difference.high
    assert (test.sliced, test.days) == ((), ())


def test_a_real_gain_is_still_shipped() -> None:
    test = abtest(ramp(2, gain=0.25), shares=SHARES, **METRIC)
    assert test.verdicts[0].decision == "ship"
    assert test.differences[0].difference.low < 0.25 < test.differences[0].difference.high


def test_the_same_ranker_ramped_up_is_rarely_told_apart() -> None:
    """At most 5% of 12 tests on one day, and three standard errors; tools/calibration/abtests.py has more."""
    significant = sum(abtest(ramp(seed), shares=SHARES, **METRIC).differences[0].p < 0.05 for seed in range(12))
    assert significant <= 12 * 0.05 + 3 * math.sqrt(12 * 0.05 * 0.95)


def test_a_constant_allocation_is_not_stratified() -> None:
    rng = np.random.default_rng(5)
    day = rng.uniform(0, 14, 1200)
    clicked = rng.random(1200) < np.where(day < 7, 0.6, 0.3)
    test = abtest(log_of_users(rng.choice(["a", "b"], 1200).tolist(), clicked.tolist(), day.tolist()), **METRIC)
    row = test.differences[0]
    assert not test.assignment.is_ramped
    assert row.adjusted.value == pytest.approx(row.other.value - row.baseline.value)


def test_telemetry_that_changes_with_time_does_not_break_a_ramp_up() -> None:
    """The language is logged from the second week on; then, in arm b alone."""
    rng = np.random.default_rng(6)
    day = rng.uniform(0, 14, 2000)
    second = rng.random(2000) < np.where(day < 7, 0.1, 0.5)
    arms, clicked = np.where(second, "b", "a").tolist(), (rng.random(2000) < 0.5).tolist()
    languages = [None if early else "en" for early in (day < 7).tolist()]
    test = abtest(log_of_users(arms, clicked, day.tolist(), language=languages), shares=SHARES, **METRIC)
    assert test.assignment.uneven_fields == ()
    languages_of_b = [
        None if early and not b else "en" for early, b in zip((day < 7).tolist(), second.tolist(), strict=True)
    ]
    test = abtest(log_of_users(arms, clicked, day.tolist(), language=languages_of_b), shares=SHARES, **METRIC)
    assert test.assignment.uneven_fields == ("language",)
