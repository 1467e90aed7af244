"""Control charts: limits by hand, both rules, Laney's correction, and false alarms by simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from calibration import series
from scipy import stats

from judged.online.statistics.control import (
    Signal,
    _limits,
    _mean_difference,
    _run_length,
    control_limits,
    pooled_errors,
    weekday_effects,
)


def test_limits_by_hand() -> None:
    """Of the 28 pairs of 0, 1, -1, 1, -1, 0, 2, -2: 3 differ by 0, 12 by 1, 8 by 2, 4 by 3, 1 by 4: 44 in sum."""
    z = np.array([0.0, 1, -1, 1, -1, 0, 2, -2])
    limits = control_limits(5.0 + 0.1 * z, np.full(8, 0.1))
    assert limits.center == pytest.approx(5.0)
    assert limits.sigma_z == pytest.approx(44 / 28 * math.sqrt(math.pi) / 2)
    assert limits.low.tolist() == pytest.approx([5 - 0.3 * limits.sigma_z] * 8)
    assert limits.high.tolist() == pytest.approx([5 + 0.3 * limits.sigma_z] * 8)
    assert (limits.base, limits.run, limits.signals) == (8, 9, ())


def test_sigma_z_is_ginis_mean_difference_of_unequal_points() -> None:
    """Weighted by sizes, the points do not sum to 0 in their own errors."""
    rng = np.random.default_rng(3)
    values, sizes = rng.random(11), rng.integers(1, 90, 11).astype(float)
    limits = control_limits(values, rng.random(11) + 0.5, weights=sizes)
    z = (values - np.average(values, weights=sizes)) / limits.errors
    assert abs(z.sum()) > 0.1
    mean = np.mean([abs(z_1 - z_2) for z_1, z_2 in combinations(z, 2)])
    assert limits.sigma_z == pytest.approx(mean * math.sqrt(math.pi) / 2)


def test_later_points_are_held_against_a_prediction() -> None:
    z = np.array([0.0, 1, -1, 1, -1, 0, 2, -2, 0])
    limits = control_limits(5.0 + 0.1 * z, np.full(9, 0.1), base=np.arange(9) < 8)
    sigmas = (limits.high - 5.0) / 0.1 / limits.sigma_z
    assert sigmas[:8].tolist() == pytest.approx([3.0] * 8)
    assert sigmas[8] == pytest.approx(stats.t.ppf(stats.norm.cdf(3), 7) * math.sqrt(1 + 1 / 8))


@pytest.mark.parametrize("events", [1, 2, 3, 5, 10, 20, 100])
def test_limits_of_counts_leave_out_what_is_as_rare_as_three_sigmas(events: int) -> None:
    """With center and spread known, a Poisson number is above with a chance of at most 0.2 %, and seldom below."""
    spread = np.array([math.sqrt(events)])
    low, high = _limits(np.array([float(events)]), spread, np.array([3.0]), (0.0, math.inf))
    assert stats.poisson.sf(math.floor(high[0]), events) <= 0.002
    assert stats.poisson.sf(math.floor(high[0]) - 2, events) > 0.00135
    assert stats.poisson.cdf(math.ceil(low[0]) - 1, events) <= 0.002
    near_0, near_1 = _limits(np.array([0.02, 0.98]), np.full(2, 0.02), np.full(2, 3.0), (0.0, 1.0))
    assert near_0.tolist() == pytest.approx((1 - near_1[::-1]).tolist())


def test_points_like_the_one_before_take_longer_runs() -> None:
    """With an autocorrelation of 3/6 the next is on the same side in 2/3: (2/3)**14 is less than (1/2)**8."""
    assert _run_length(np.array([1.0, 1, 1, -1, -1, -1])) == 15
    assert (2 / 3) ** 14 < (1 / 2) ** 8 < (2 / 3) ** 13
    assert _run_length(np.array([1.0, -1, 1, -1])) == 9


def test_the_center_is_weighted_and_limits_follow_the_size() -> None:
    values = np.array([0.1, 0.2] * 4)
    weights = np.array([300.0, 100.0] * 4)
    control = control_limits(values, np.sqrt(values * (1 - values) / weights), weights=weights)
    assert control.center == pytest.approx(0.125)
    assert control.errors.tolist() == pytest.approx((math.sqrt((0.09 + 0.16) / 2) / np.sqrt(weights)).tolist())
    half_width = control.high - control.center
    assert half_width[1] / half_width[0] == pytest.approx(math.sqrt(3))


def test_errors_alone_weight_by_their_precision() -> None:
    control = control_limits(np.array([1.0, 2.0] * 4), np.array([0.1, 0.2] * 4))
    assert control.center == pytest.approx((1 * 100 + 2 * 25) / 125)


def test_a_day_without_a_click_is_seen() -> None:
    """Its own sample has no error; the pooled one has."""
    values = np.array([0.3, 0.31, 0.29, 0.3, 0.32, 0.28, 0.3, 0.31, 0.3, 0.0])
    errors = np.where(values > 0, 0.01, 0.0)
    control = control_limits(values, errors, weights=np.full(10, 1000.0), base=np.arange(10) < 9)
    assert control.signals == (Signal("nelson-1", 9, 9, "below"),)
    assert control_limits(values, errors, base=np.arange(10) < 9).signals == ()
    assert pooled_errors(np.array([np.nan, 0.2]), np.array([10.0, 10.0])).tolist() == pytest.approx([0.2, 0.2])
    base = np.array([True, False])
    assert pooled_errors(np.array([0.1, 0.7]), np.array([10.0, 40.0]), base).tolist() == pytest.approx([0.1, 0.05])
    assert np.isnan(pooled_errors(np.array([0.1]), np.array([0.0]))).all()


def test_nine_in_a_row_are_told_once_and_missing_points_neither_count_nor_interrupt() -> None:
    values = np.array([1.0, -1] * 6 + [0.5] * 4 + [np.nan] + [0.5] * 8 + [-1.0])
    control = control_limits(values, np.ones(len(values)), base=np.arange(len(values)) < 12)
    assert control.signals == (Signal("nelson-2", 21, 12, "above"),)
    assert math.isnan(control.high[16])
    shorter = np.delete(values, [12, 13, 14, 15, 17])  # seven are left
    assert control_limits(shorter, np.ones(len(shorter)), base=np.arange(len(shorter)) < 12).signals == ()


def test_a_point_on_the_center_ends_a_run() -> None:
    values = np.array([1.0, -1] * 6 + [0.5] * 5 + [0.0] + [0.5] * 5)
    assert control_limits(values, np.ones(23), base=np.arange(23) < 12).signals == ()
    values[12:] = 0.0
    assert control_limits(values, np.ones(23), base=np.arange(23) < 12).signals == ()


def test_bounds_cut_limits_and_no_signal() -> None:
    values = np.array([0.01, 0.03] * 6)
    control = control_limits(values, np.full(12, 0.01), bounds=(0.0, 1.0))
    assert control.low.tolist() == [0.0] * 12
    assert control.signals == ()


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        (np.arange(7.0), np.ones(7)),
        (np.ones(20), np.ones(20)),
        (np.arange(20.0), np.zeros(20)),
        (np.zeros(0), np.zeros(0)),
    ],
)
def test_too_little_gives_no_limits(values: np.ndarray, errors: np.ndarray) -> None:
    control = control_limits(values, errors)
    assert math.isnan(control.center)
    assert np.isnan(control.low).all()
    assert control.signals == ()


def test_weekdays_have_their_own_centers_from_four_weeks_on() -> None:
    days = np.arange(35) % 7
    values = np.where(days < 5, 0.30, 0.20) + np.random.default_rng(1).normal(0, 0.01, 35)
    seasonal = weekday_effects(values, np.ones(35), days)
    assert seasonal[:7].tolist() == pytest.approx([0.0286] * 5 + [-0.0714] * 2, abs=0.012)
    values[30] = 0.2  # a Wednesday like a Sunday
    assert control_limits(values, np.full(35, 0.01)).signals == ()
    assert [signal.point for signal in control_limits(values, np.full(35, 0.01), seasonal=seasonal).signals] == [30]
    assert weekday_effects(values[:27], np.ones(27), days[:27]).tolist() == [0.0] * 27
    noise = np.random.default_rng(2).normal(size=(200, 28))
    mean_effect = np.mean([np.abs(weekday_effects(row, np.ones(28), days[:28])).mean() for row in noise])
    assert mean_effect < 0.15  # means of four would stray by 0.37


@pytest.mark.parametrize("world", list(series.WORLDS))
@pytest.mark.parametrize("later", [False, True])
def test_signals_are_rare_where_days_are(world: str, *, later: bool) -> None:
    rate = series.signals(world, 30, 150, later=later)["days outside"]
    assert rate <= 0.0027 + 3 * math.sqrt(0.0027 / 4500) + (0.008 if world in series.WEAK else 0)


def alarms(extra: float, *, laney: bool) -> tuple[float, float, float]:
    """Return the rates of both rules after a base of 50 points, and the mean sigma_z.

    `extra`: standard deviation of days beyond sampling; `laney`: whether the correction is applied.
    """
    rng = np.random.default_rng(8)
    outside = runs = 0
    sigmas: list[float] = []
    for _ in range(300):
        sizes = rng.integers(500, 5000, 80).astype(float)
        errors = np.sqrt(0.21 / sizes)
        values = 0.3 + rng.normal(size=80) * errors + rng.normal(size=80) * extra
        estimated_errors = errors * np.sqrt(rng.chisquare(60, 80) / 60)
        control = control_limits(values, estimated_errors, weights=sizes, base=np.arange(80) < 50)
        sigmas.append(control.sigma_z)
        if laney:
            outside += sum(signal.rule == "nelson-1" and signal.point >= 50 for signal in control.signals)
            runs += sum(signal.rule == "nelson-2" and signal.point >= 50 for signal in control.signals)
        else:
            outside += int((np.abs(values - control.center) > 3 * control.errors)[50:].sum())
    return outside / 9000, runs / 9000, float(np.mean(sigmas))


def test_false_alarms_are_few_and_sigma_z_is_1_where_only_samples_differ() -> None:
    outside, runs, sigma = alarms(0.0, laney=True)
    assert 0.001 < outside < 0.008  # 0.0027 with limits that are known
    assert 0.001 < runs < 0.006  # told once a run
    assert 0.98 < sigma < 1.02


def test_days_that_differ_more_alarm_without_the_correction_alone() -> None:
    outside, _, sigma = alarms(0.02, laney=True)
    assert outside < 0.015
    assert sigma > 1.8
    assert alarms(0.02, laney=False)[0] > 0.1


def test_the_mean_difference_is_that_of_all_pairs() -> None:
    z = np.array([3.0, 1, 4, 1, 5, 9, 2, 6])
    assert _mean_difference(z) == pytest.approx(np.abs(z[:, None] - z).sum() / (8 * 7))


def test_limits_move_by_the_skewness_of_a_count_by_hand() -> None:
    """Spread 0.1 between 0 and 1: skewness 0.1 / 0.2 - 0.1 / 0.8 = 3/8, or at 0.05 at most 1.5, less 0.1 / 0.95."""
    centers, spread = np.array([0.2, 0.05, 0.95, 0.5]), np.full(4, 0.1)
    low, high = _limits(centers, spread, np.array([3.0, 2.0, 2.0, 1.0]), (0.0, 1.0))
    skewness = np.array([3 / 8, 1.5 - 0.1 / 0.95, 0.1 / 0.95 - 1.5, 0.0])
    shifted = centers + 0.1 * skewness * (3**2 - 1) / 6
    assert low == pytest.approx([0.0, shifted[1] - 0.2, shifted[2] - 0.2, 0.4])
    assert high == pytest.approx([shifted[0] + 0.3, shifted[1] + 0.2, shifted[2] + 0.2, 0.6])


def test_weekdays_by_a_weighted_regression() -> None:
    """Their means less the mean of all, drawn together by 1 - 1 / F of the regression on seven indicators."""
    rng = np.random.default_rng(6)
    days = np.arange(33) % 7
    values, weights = 3 + 0.4 * days + rng.standard_normal(33), rng.random(33) + 0.5
    values[31], weights[32] = np.nan, 0.0
    valid = np.arange(31)
    root = np.sqrt(weights[valid])
    design = np.eye(7)[days[valid]] * root[:, None]
    means, full_model, *_ = np.linalg.lstsq(design, values[valid] * root, rcond=None)
    mean = np.average(values[valid], weights=weights[valid])
    mean_model = (weights[valid] * (values[valid] - mean) ** 2).sum()
    ratio = (mean_model - full_model[0]) / 6 / (full_model[0] / (31 - 7))
    assert 1.2 < ratio < 10
    assert weekday_effects(values, weights, days) == pytest.approx(((1 - 1 / ratio) * (means - mean))[days])
    too_few = weekday_effects(
        values[:28], np.where(np.arange(28) == 5, 0.0, weights[:28]), days[:28]
    )  # of one there are three
    assert too_few.tolist() == [0.0] * 28
    assert weekday_effects(np.full(28, 0.3), np.ones(28), days[:28]).tolist() == [0.0] * 28


def test_points_without_weight_have_no_error_and_no_say() -> None:
    """Of 0.1 at 10 the pooled square is 0.1; half a weight has sqrt(0.1 / 0.5)."""
    errors = pooled_errors(np.array([0.1, 0.7, np.nan]), np.array([10.0, 0.0, 0.5]))
    assert errors.tolist() == pytest.approx([0.1, np.nan, math.sqrt(0.2)], nan_ok=True)
