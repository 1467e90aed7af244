"""False alarms at the declared rate, drops detected within the stated days, and mix separated from quality."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from judged.online.statistics.control import cusum, delay, fit_baseline, threshold
from judged.online.watch.config import SeriesKind
from judged.online.watch.watched import split_quality_and_mix, watch_series
from online.watch.simulated_days import FIRST, MONTH, begun, config, days, look

YEARS = 24
QUIET = [
    {},
    {"autocorrelation": 0.4},
    {"overdispersion": 1.0, "p": 0.05},
    {"p": 0.012},  # 20 clicks a day
    {"p": 0.004, "pages": 1000, "baseline_days": 84},  # 4 clicks a day: points of a week
]


@pytest.mark.parametrize("plan", QUIET)
def test_a_year_without_change_has_at_most_the_declared_alarms(plan):
    """0.5 a month: 144 are declared in 24 years; their number varies more than a Poisson one, by what baselines do."""
    baseline_days = plan.get("baseline_days", 28)
    options = {key: value for key, value in plan.items() if key != "baseline_days"}
    alarms = sum(
        begun(look(days(np.random.default_rng(seed), baseline_days + 365, **options), baseline_days))
        for seed in range(YEARS)
    )
    assert alarms <= 0.5 * 365 / MONTH * YEARS * 1.3
    assert alarms > 0  # a watch that never speaks would pass, too


@pytest.mark.parametrize(("drop", "autocorrelation"), [(0.05, 0.0), (0.1, 0.0), (0.1, 0.4)])
def test_drops_are_found_within_the_days_that_are_stated(drop, autocorrelation):
    """Four of five, of drops as large as the margin; 40 logs, three errors of the share."""
    late = 0
    for seed in range(40):
        p_by_day = np.where(np.arange(170) < 70, 0.3, 0.3 * (1 - drop))
        result = look(
            days(np.random.default_rng(seed), 170, p_by_day, autocorrelation=autocorrelation), 56, margin_relative=drop
        )
        first = next(
            (
                p_by_day.start
                for p_by_day in result.points
                if p_by_day.alarm and p_by_day.start >= FIRST + timedelta(70)
            ),
            None,
        )
        late += first is None or (first - FIRST).days - 69 > result.detection_days
    assert late <= 0.2 * 40 + 3 * np.sqrt(0.2 * 0.8 * 40)


@pytest.mark.parametrize("missing", [0.3, 0.5])
def test_drops_are_found_in_time_where_days_are_missing(missing):
    """Four of five of 40 logs, three errors of the share; without an allowance, 68 % at 30 % of days missing."""
    late = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        series = days(rng, 220, np.where(np.arange(220) < 80, 0.3, 0.27))
        is_missing = rng.random(220) < missing
        series = type(series)(
            FIRST, *(np.where(is_missing, np.nan, column) for column in (series.values, series.errors, series.sizes))
        )
        result = look(series, 80, margin_relative=0.1)
        first = next(
            (point.start for point in result.points if point.alarm and point.start >= FIRST + timedelta(80)), None
        )
        late += first is None or (first - FIRST).days - 79 > result.detection_days
    assert late <= 0.2 * 40 + 3 * np.sqrt(0.2 * 0.8 * 40)


def test_missing_days_delay_what_is_found_in_proportion():
    level = threshold(28, 0.0, 0.01, 0.5)
    complete, half_missing = (delay(1.0, 0.0, 0.5, level, missing=share) for share in (0.0, 0.5))
    assert half_missing == pytest.approx(2 * complete, rel=0.2)
    assert delay(1.0, 0.0, 0.5, level, share=0.5) < complete


def test_a_change_of_mix_is_no_change_of_quality():
    """Half of the pages, then fewer and fewer, are of a class that is clicked more: 60 % and 20 %."""
    quality_off = mix_moved = raw_off = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        share = np.concatenate([np.full(28, 0.5), np.linspace(0.5, 0.25, 120)])
        slices = {
            name: days(rng, 148, probability, pages=2000 * slice_share)
            for name, probability, slice_share in (("a", 0.6, share), ("b", 0.2, 1 - share))
        }
        sizes = sum(slice_days.sizes for slice_days in slices.values())
        values = sum(slice_days.values * slice_days.sizes for slice_days in slices.values()) / sizes
        overall = days(rng, 148)
        overall = type(overall)(FIRST, values, np.sqrt(values * (1 - values) / sizes), sizes)
        quality, mix = split_quality_and_mix(overall, slices, np.arange(148) < 28)
        np.testing.assert_allclose(quality.values + mix.values, values)
        quality_off += begun(look(quality))
        raw_off += look(overall).state == "alarm"
        mix_moved += (
            watch_series(("x", "mix"), mix, SeriesKind(0), config(), 0.5 / MONTH, alarm_state="mix changed").state
            == "mix changed"
        )
    assert quality_off <= 0.5 * 120 / MONTH * 20 * 1.5
    assert mix_moved == raw_off == 20


def test_a_class_that_the_baseline_lacks_moves_the_mix_and_not_quality():
    rng = np.random.default_rng(0)
    old = days(rng, 60)
    new = days(rng, 60, 0.6, pages=1000)
    is_absent = np.arange(60) < 40
    new = type(new)(FIRST, *(np.where(is_absent, np.nan, column) for column in (new.values, new.errors, new.sizes)))
    sizes = old.sizes + np.nan_to_num(new.sizes)
    overall = type(old)(
        FIRST, (old.values * old.sizes + np.nan_to_num(new.values * new.sizes)) / sizes, old.errors, sizes
    )
    quality, mix = split_quality_and_mix(overall, {"old": old, "new": new}, np.arange(60) < 28)
    np.testing.assert_allclose(quality.values, old.values)
    np.testing.assert_allclose(quality.errors, old.errors)
    np.testing.assert_allclose(mix.values, overall.values - old.values)
    assert look(quality).state == "ok"


def test_centers_of_weekdays_take_no_noise_away_unnoticed():
    """Four weeks with weekends that are far off: what is left of seven means is a standard deviation of 1 after all."""
    spreads: list[float] = []
    for seed in range(200):
        day = np.arange(28 + 140)
        noise = np.random.default_rng(seed).standard_normal(len(day)) + 8.0 * (day % 7 > 4)
        ones = np.ones(len(day))
        spreads.append(
            float(np.median(fit_baseline(100.0 + noise, 0.5 * ones, 1000.0 * ones, day % 7, day < 28).errors))
        )
    assert np.mean(spreads) == pytest.approx(1.0, abs=0.03)  # 0.89 without an allowance


def test_of_a_year_one_alarm_is_found_where_one_is_declared():
    """Independent noise of known variance: simulated here without the baseline's error, so fewer alarms."""
    level = threshold(90, 0.0, 1 / 365, 0.5)
    rng = np.random.default_rng(7)
    alarms = sum(
        (np.diff(cusum(rng.standard_normal(365), 0.5, level)[1] >= 0, prepend=False)).sum() for _ in range(200)
    )
    assert 0.3 * 2 * 200 < alarms < 2 * 200  # each has a beginning and mostly an end


def test_larger_drops_are_found_sooner_and_small_ones_not_at_all():
    level = threshold(28, 0.0, 0.01, 0.5)
    delays = [delay(shift, 0.0, 0.5, level) for shift in (0.0, 1.0, 2.0, 4.0)]
    assert delays == sorted(delays, reverse=True)
    assert delays[0] == np.inf
    assert delays[3] <= 3


def test_longer_baselines_and_days_that_do_not_resemble_each_other_take_lower_thresholds():
    assert threshold(28, 0.0, 0.002, 0.5) > threshold(84, 0.0, 0.002, 0.5) > 4
    assert threshold(28, 0.4, 0.002, 0.5) > threshold(28, 0.0, 0.002, 0.5) > threshold(28, 0.0, 0.01, 0.5)
