"""Watched series by hand: standardized points, thresholds, pooled points, weekdays."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from judged.online.statistics.control import cusum
from judged.online.watch import watched as module
from judged.online.watch.config import SeriesKind
from judged.online.watch.watched import DailySeries, _days_per_point, watch_series
from online.watch.test_points import FIRST, NAN, config, day, series

LEVEL = 2.5


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the simulated threshold and delay by constants; return the arguments that they were called with."""
    calls: dict[str, Any] = {}

    def threshold(*arguments: Any) -> float:
        calls["threshold"] = arguments
        return LEVEL

    def delay(*arguments: Any, **options: Any) -> float:
        calls["delay"] = (*arguments, options)
        return 4.0

    monkeypatch.setattr(module, "threshold", threshold)
    monkeypatch.setattr(module, "delay", delay)
    return calls


def sigma_of(values: Any) -> float:
    """Return the standard deviation of a baseline by Gini's mean difference."""
    return float(np.mean([abs(x - y) for x, y in combinations(values, 2)]) * math.sqrt(math.pi) / 2)


@pytest.mark.parametrize("lift", [10.0, -40.0])
@pytest.mark.parametrize(
    ("better", "margin", "after", "change_day"),
    [
        (1, 0.02, 0.0, None), (1, 0.1, -3.0, 30), (-1, 0.1, 3.0, 30), (0, 0.1, -3.0, 30), (0, 1.0, 3.0, 30),
        (1, 0.1, 3.0, None), (-1, 0.02, -3.0, None), (0, 0.05, 0.9, 30), (1, 0.1, -9.0, 41),
    ],
)  # fmt: skip
def test_a_series_by_hand(
    better: int, margin: float, after: float, change_day: int | None, lift: float, calls: dict[str, Any]
) -> None:
    """20 days of a baseline, which is too short for weekdays, and 22 later; two of these are missing."""
    rng = np.random.default_rng(2)
    values = lift + np.clip(rng.standard_normal(42), -1.2, 1.2) * np.where(np.arange(42) < 20, 1.0, 0.2)
    values[change_day or 30 :] += after
    values[[25, 38]] = NAN
    sizes = np.where(np.arange(42) < 36, 10.0, 40.0)
    errors = np.where(sizes == 10, 0.5, 0.25)
    result = watch_series(
        ("s", "p"),
        DailySeries(FIRST, values, errors, sizes),
        SeriesKind(better),
        config(days=20, margin_relative=margin),
        0.03,
        alarm_state="mix changed",
    )
    center, sigma = values[:20].mean(), sigma_of(values[:20])
    sigmas = sigma * errors / 0.5
    z = (values - center) / sigmas
    assert (result.series, result.part, result.better, result.days, result.reason) == ("s", "p", better, 1, "")
    assert result.center == pytest.approx(center)
    assert result.size == pytest.approx((36 * 10 + 6 * 40) / 42)
    autocorrelation = (z[1:20] @ z[:19]) / (z[:20] @ z[:20]) + 1 / math.sqrt(20)
    assert result.autocorrelation == round(min(max(autocorrelation, 0), 0.8), 2)
    shift = margin * abs(center) / sigma
    k = round(min(max(shift / 2, 0.25), 1.5), 2)
    assert calls["threshold"] == (20, result.autocorrelation, 0.03, k)
    assert calls["delay"] == (
        round(shift, 2),
        result.autocorrelation,
        k,
        LEVEL,
        {"missing": 0.05},
    )  # 2 of 42 are missing
    assert result.detection_days == 4.0
    assert [point.start for point in result.points] == [day(i) for i in range(42)]
    assert [point.value for point in result.points] == pytest.approx(values.tolist(), nan_ok=True)
    expected = [center if math.isfinite(value) else NAN for value in values]
    assert [point.expected for point in result.points] == pytest.approx(expected, nan_ok=True)
    assert [point.sigma for point in result.points] == pytest.approx(sigmas)
    assert [point.inside for point in result.points] == [i < 20 for i in range(42)]
    sides = [
        cusum(side * np.where(np.arange(42) < 20, NAN, z), k, LEVEL)[1] for side in ([better] if better else (1, -1))
    ]
    since = int(max(side[-1] for side in sides))
    assert [point.alarm for point in result.points] == [any(side[i] >= 0 for side in sides) for i in range(42)]
    if change_day is None:
        assert (result.state, result.since) == ("ok", None)
        rows = np.array([34, 35, 36, 37, 39, 40, 41])  # the last seven with a value
    else:
        assert (result.state, result.since) == ("mix changed", day(since))
        assert change_day - 4 <= since <= change_day + 1
        rows = np.array([i for i in range(since, 42) if i != 38])
    assert result.level == pytest.approx(np.average(values[rows], weights=sizes[rows]))


@pytest.mark.parametrize(("length", "events"), [(7, 2.0), (14, 1.0)])
def test_points_of_weeks_by_hand(length: int, events: float, calls: dict[str, Any]) -> None:
    """The baseline ends within the ninth point, which is neither in the baseline nor watched."""
    rng = np.random.default_rng(3)
    n = 14 * length + 3
    values = 0.5 + 0.1 * rng.standard_normal(n)
    values[8 * length : 9 * length] = 0.1
    sizes = np.full(n, 2 * events)
    daily = DailySeries(FIRST, values, np.full(n, 0.2), sizes)
    result = watch_series(("s", ""), daily, SeriesKind(1, share=True), config(days=8 * length + 1), 0.01)
    assert (result.days, len(result.points)) == (length, 14)
    means = values[: 14 * length].reshape(14, length).mean(axis=1)
    assert [point.value for point in result.points] == pytest.approx(means)
    assert [point.start for point in result.points] == [day(length * i) for i in range(14)]
    assert [point.inside for point in result.points] == [i < 8 for i in range(14)]
    assert result.center == pytest.approx(means[:8].mean())
    assert [point.sigma for point in result.points] == pytest.approx([sigma_of(means[:8])] * 14)
    assert calls["threshold"][0] == 8
    assert calls["threshold"][2] == pytest.approx(0.01 * length)
    assert result.detection_days == 4.0 * length
    assert result.state == "ok"
    assert result.level == pytest.approx(means[-1])
    assert result.size == pytest.approx(2 * events * length)
    # from its first day on: the ninth point counts where the baseline ends before it
    shorter_baseline = watch_series(("s", ""), daily, SeriesKind(1, share=True), config(days=8 * length), 0.01)
    assert shorter_baseline.points[8].alarm
    assert not result.points[8].alarm


def test_weekdays_have_their_own_expected_values_from_28_days_on(calls: dict[str, Any]) -> None:
    """Weekends 5 below: what is expected of a day is near the mean of its weekday; points of weeks have no weekdays."""
    rng = np.random.default_rng(4)
    numbers = np.arange(42)
    values = 50.0 - 5.0 * (numbers % 7 > 4) + 0.1 * rng.standard_normal(42)
    result = watch_series(
        ("s", ""), DailySeries(FIRST, values, np.full(42, 0.1), np.ones(42)), SeriesKind(0), config(days=35), 0.01
    )
    means = [values[:35][numbers[:35] % 7 == weekday].mean() for weekday in range(7)]
    assert [point.expected for point in result.points] == pytest.approx(
        [means[weekday] for weekday in numbers % 7], abs=0.01
    )
    assert not any(point.alarm for point in result.points)
    n = 7 * 42
    weeks = 0.5 - 0.05 * (np.arange(n) // 7 % 7 > 4) + 0.001 * rng.standard_normal(n)
    pooled_series = DailySeries(FIRST, weeks, np.full(n, 0.1), np.full(n, 4.0))
    result = watch_series(("s", ""), pooled_series, SeriesKind(0, share=True), config(days=7 * 35), 0.01)
    assert len({round(point.expected, 9) for point in result.points}) == 1
    assert calls["threshold"][0] == 35


def test_series_that_vary_by_rounding_or_by_an_unknown_amount() -> None:
    """Up to a billionth of the largest value is rounding; without errors nothing tells how much is usual."""
    for lower_value, is_constant in ((1e9 - 1, True), (1e9 - 1.5, False)):
        values = [1e9, lower_value] * 5 + [1e9 * 0.8]
        result = watch_series(("s", ""), series(values, errors=[1e9] * 11), SeriesKind(1), config(), 1e-9)
        assert result.state == "alarm"
        assert (result.points[0].sigma == 0.0) == is_constant
    without_errors = series([0.5, 0.6] * 6, errors=[NAN] * 12)
    result = watch_series(("s", "p"), without_errors, SeriesKind(1), config(), 0.01)
    assert (result.series, result.part, result.state, result.better, result.days) == ("s", "p", "not monitored", 0, 1)
    assert result.reason == "the variance of the baseline cannot be estimated"
    assert watch_series(("s", ""), series([0.5] * 12, errors=[NAN] * 12), SeriesKind(1), config(), 0.01).state == "ok"
    weeks = series([0.5] * 60, sizes=[4] * 60)
    result = watch_series(("s", "p"), weeks, SeriesKind(1, share=True), config(days=55), 0.01)
    assert (result.series, result.part, result.state) == ("s", "p", "not monitored")
    assert result.reason == "the baseline must have at least 8 points (one point per 7 days), got 7"


def test_events_of_unequal_sums_and_of_shares_above_a_half() -> None:
    """Two days with sums of 10 and 30 and squared errors of 16 and 64: 40^2 / 80 / 2 = 10 equal sums a day."""
    days_of_money = series([1.0, 3.0, NAN], [0.4, 0.8, 5.0], [10.0, 10.0, 10.0])
    assert _days_per_point(days_of_money, SeriesKind(1, amount=True)) == 1
    assert _days_per_point(series([1.0, 3.0], [0.4, 0.81], [10.0, 10.0]), SeriesKind(1, amount=True)) == 7
    # min(0.9, 0.1) * 60 and min(0.2, 0.8) * 70: 10 events a day
    assert _days_per_point(series([0.9, 0.2], sizes=[60, 70]), SeriesKind(1, share=True)) == 1
    assert _days_per_point(series([0.9, 0.2], sizes=[60, 69]), SeriesKind(1, share=True)) == 7
