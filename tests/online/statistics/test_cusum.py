"""Baselines, sums, thresholds, and delays of a CUSUM chart by hand, by SciPy, and on prescribed noise."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judged.online.statistics import control as module
from judged.online.statistics.control import _alarms, _noise, _noise_factor, cusum, delay, fit_baseline, threshold

NAN = math.nan


def sigma_of(values: Any, errors: Any) -> float:
    """Return sigma_z of standardized values, as Gini's mean difference of all pairs."""
    z = np.array(values) / errors
    return float(np.mean([abs(z_1 - z_2) for z_1, z_2 in combinations(z, 2)]) * math.sqrt(math.pi) / 2)


@pytest.mark.parametrize(
    "inside",
    [
        [3, 1, 4, 1, 5, 9, 2, 6],  # hardly alike
        [1, 2, 3, 4, 5, 6, 7, 8],  # 0.6 and an allowance of 0.35: 0.8 at most
        [1, -1, 1, -1, 1, -1, 1, -1],  # never below 0
        [3, 1, NAN, 4, 5, 6, 2, 3, 1],  # a missing point is passed over
    ],
)
def test_a_baseline_of_few_days_by_hand(inside: list[float]) -> None:
    """Errors are 0.5 for a size of 4, so 1 for a size of 1; fewer than four weeks have no centers of weekdays."""
    n = len(inside)
    values = np.array([*inside, 30.0, NAN])
    sizes = np.where(np.arange(n + 2) % 2, 4.0, 1.0)
    errors = np.where(sizes == 4, 0.5, 1.0)
    fitted = fit_baseline(values, errors, sizes, np.arange(n + 2) % 7, np.arange(n + 2) < n)
    valid = np.flatnonzero(np.isfinite(values[:n]))
    center = np.average(values[valid], weights=sizes[valid])
    sigma = sigma_of(values[valid] - center, errors[valid])
    assert fitted.center == pytest.approx(center)
    assert fitted.errors == pytest.approx(sigma * errors)
    assert fitted.z[:-1] == pytest.approx((values - center)[:-1] / errors[:-1] / sigma, nan_ok=True)
    assert math.isnan(fitted.z[-1])
    z = (values[valid] - center) / errors[valid]
    autocorrelation = sum(z[1:] * z[:-1]) / sum(z * z) + 1 / math.sqrt(8)
    assert fitted.autocorrelation == pytest.approx(min(max(autocorrelation, 0.0), 0.8))
    assert fitted.days == 8


@pytest.mark.parametrize("inside", [[1, 2, 3, 4, 5, 6, 7], [2] * 9])
def test_baselines_that_are_short_or_do_not_vary_say_nothing(inside: list[float]) -> None:
    n = len(inside)
    fitted = fit_baseline(
        np.array(inside, dtype=float), np.ones(n), np.ones(n), np.zeros(n, dtype=int), np.full(n, True)
    )
    assert math.isnan(fitted.center)
    assert math.isnan(fitted.autocorrelation)
    assert fitted.days == n
    assert fitted.z.shape == fitted.errors.shape == (n,)
    assert np.isnan([fitted.z, fitted.errors]).all()


def test_weekdays_take_away_noise_that_is_added_again() -> None:
    """Six means that are estimated take away 6 of 34 degrees of freedom, fewer where they are drawn together.

    Drawn together by s = 1 - 1 / F, F of SciPy's analysis of variance, a mean keeps (1 - s)^2 of its noise.
    """
    rng = np.random.default_rng(2)
    day = np.arange(37)
    values = 10 + 0.6 * (day % 7 > 4) + 0.5 * rng.standard_normal(37)
    values[35] = NAN
    groups = [values[:35][day[:35] % 7 == weekday] for weekday in range(7)]
    s = 1 - 1 / stats.f_oneway(*groups).statistic
    assert 0.3 < s < 0.9
    seasonal = np.array([s * (group.mean() - values[:35].mean()) for group in groups])[day % 7]
    factor = math.sqrt(34 / (34 - 6 * (1 - (1 - s) ** 2)))
    fitted = fit_baseline(values, np.full(37, 0.5), np.ones(37), day % 7, day < 36)
    assert fitted.days == 35
    assert fitted.center == pytest.approx(values[:35].mean())
    sigma = sigma_of((values - seasonal)[:35], 0.5)
    assert fitted.errors == pytest.approx(np.full(37, 0.5 * sigma * factor))
    assert fitted.z == pytest.approx((values - seasonal - fitted.center) / (0.5 * sigma * factor), nan_ok=True)


def test_noise_that_is_left_of_the_points_that_count() -> None:
    """Of four points at 0, 0, 1, 1 weekdays that take all leave sqrt(3 / (3 - 6 * s * (2 - s))) with s = 1/4."""
    values, seasonal = np.array([0.0, 0, 1, 1, NAN, 9]), np.array([-1.0, -1, 1, 1, 5, 5]) / 8
    sizes = np.array([1.0, 1, 1, 1, 1, 0])
    assert _noise_factor(values, sizes, seasonal) == pytest.approx(math.sqrt(3 / (3 - 6 * 0.25 * 1.75)))
    doubled = np.array([2.0, 1, 2, 1, 1, 0])  # the mean is still 1/2
    assert _noise_factor(values, doubled, seasonal) == pytest.approx(math.sqrt(3 / (3 - 6 * 0.25 * 1.75)))
    assert _noise_factor(values, sizes, np.array([0.0, 0, 0, 0, 5, 5])) == 1.0


def test_sums_by_hand() -> None:
    """k is 1/2, the threshold 2: 2 is none yet, 4 the most; a missing point changes nothing."""
    z = [0.5, -1.0, -2.0, -0.5, -1.0, NAN, -9.0, 1.5, 0.5, -0.5, 1.0, 9.0, -0.5, -3.0, 1.0]
    sums, since = cusum(np.array(z), 0.5, 2.0)
    assert sums.tolist() == [0.0, 0.5, 2.0, 2.0, 2.5, 2.5, 4.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.5, 1.0]
    assert since.tolist() == [-1, -1, -1, -1, 1, 1, 1, 1, 1, 1, -1, -1, -1, 13, 13]
    assert np.issubdtype(since.dtype, np.integer)
    assert [column.tolist() for column in cusum(np.array([NAN, -3.0]), 0.5, 2.0)] == [[0.0, 2.5], [-1, 1]]
    assert cusum(np.array([-3.0, 9.0]), 0.5, 2.0)[1].tolist() == [0, -1]


def test_alarms_a_year_are_those_of_each_path() -> None:
    """Whole and half numbers, so that sums are often exactly at the threshold."""
    z = np.random.default_rng(3).integers(-4, 6, size=(400, 5)) / 2
    for k, level in ((0.5, 1.0), (0.5, 2.0), (0.0, 3.0)):
        alarms = sum(
            int(alarm_start >= 0 and (i == 0 or since[i - 1] < 0))
            for since in (cusum(path, k, level)[1] for path in z.T)
            for i, alarm_start in enumerate(since)
        )
        assert alarms > 50
        assert _alarms(z, k, level) == alarms / 5


def test_noise_resembles_the_day_before() -> None:
    """1000 paths; of 20 days before nothing is kept. Each day is 0.6 of the one before and 0.8 of a new one."""
    white_noise = np.random.default_rng(7).standard_normal((30, 1000))
    assert _noise(np.random.default_rng(7), 10, 0.0).tolist() == white_noise[20:].tolist()
    noise = _noise(np.random.default_rng(7), 10, 0.6)
    assert noise.shape == (10, 1000)
    assert noise[1:] - 0.6 * noise[:-1] == pytest.approx(0.8 * white_noise[21:])
    first = sum(0.6**lag * 0.8 * white_noise[20 - lag] for lag in range(20)) + 0.6**20 * white_noise[0]
    assert noise[0] == pytest.approx(first)


@pytest.mark.parametrize("days", [10, 27, 28, 35])
def test_simulated_years_are_standardized_by_their_baselines(days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the mean, or from 28 days on by those of weekdays: the residuals of a regression on weekdays."""
    white_noise = np.random.default_rng(days).standard_normal((days + 365, 6)) + 3.0
    noise_calls: list[Any] = []

    def noise(rng: np.random.Generator, length: int, autocorrelation: float) -> Any:
        noise_calls.append((rng.random(), length, autocorrelation))
        return white_noise.copy()

    alarm_calls: list[Any] = []

    def alarms(z: Any, k: float, level: float) -> float:
        alarm_calls.append((z, k))
        return 101 / level

    monkeypatch.setattr(module, "_noise", noise)
    monkeypatch.setattr(module, "_alarms", alarms)
    simulated = threshold.__wrapped__(days, 0.3, 0.01, 0.75)
    assert noise_calls == [(np.random.default_rng(0).random(), days + 365, 0.3)]
    weekdays = 7 if days >= 28 else 1
    weekday = np.eye(weekdays)[np.arange(days + 365) % weekdays]
    means, squares, *_ = np.linalg.lstsq(weekday[:days], white_noise[:days], rcond=None)
    expected = (white_noise - weekday @ means)[days:] / np.sqrt(squares / (days - weekdays))
    assert alarm_calls[0][0] == pytest.approx(expected)
    assert {k for _, k in alarm_calls} == {0.75}
    # 101 / level alarms are at most 0.8 * 0.01 * 365 a year from 34.6 on; 0.5 to 200 is halved 12 times
    steps = 4096 * math.log(simulated / 0.5) / math.log(400)
    assert steps == pytest.approx(round(steps), abs=1e-6)
    assert 101 / 2.92 <= simulated < 101 / 2.92 * 400 ** (1 / 4096)
    monkeypatch.setattr(module, "_alarms", lambda *_: 0.8 * 0.01 * 365)  # as many as are allowed
    assert threshold.__wrapped__(days, 0.3, 0.01, 0.75) == pytest.approx(0.5 * 400 ** (1 / 4096))


def test_delays_of_known_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Path p has noise of 1 up to day p % 400, and 0 then: the shift of 2 is found 3 days later, or in no year."""
    start = np.arange(1000) % 400
    white_noise = np.where(np.arange(365)[:, None] < start, 3.0, 0.0)
    noise_calls: list[Any] = []

    def noise(rng: np.random.Generator, days: int, autocorrelation: float) -> Any:
        noise_calls.append((rng.random(), days, autocorrelation))
        return white_noise.copy()

    monkeypatch.setattr(module, "_noise", noise)
    delays = [delay.__wrapped__(2.0, 0.3, 0.5, 3.0, share) for share in (0.001, 0.1, 0.5, 0.8, 0.9, 0.914, 0.915, 1.0)]
    assert noise_calls[0] == (np.random.default_rng(1).random(), 365, 0.3)
    # each day adds 1.5: 3 is not above the threshold, 4.5 is; of days 0 to 199 there are three paths each, else two
    days = np.sort(np.where(start <= 362, start + 3.0, np.inf))
    assert delays == [days[i] for i in (0, 99, 499, 799, 899, 913, 914, 999)]
    assert delays[0] == 3.0
    assert delays[-1] == np.inf
    assert delay.__wrapped__(2.0, 0.3, 0.5, 3.0) == days[799]


def test_delays_with_missing_days_are_those_of_a_negative_binomial_number() -> None:
    """A shift of 1000 less k adds 600 a day: three days with a value bring the sum above 1500."""
    for share in (0.5, 0.8):
        expected = 3 + stats.nbinom.ppf(share, 3, 0.6)
        assert delay(1000.0, 0.0, 400.0, 1500.0, share, missing=0.4) == expected
    assert delay(1000.0, 0.0, 400.0, 1500.0) == 3.0
    assert delay(1000.0, 0.2, 400.0, 600 * 365.5) == np.inf


def test_thresholds_keep_their_seed() -> None:
    simulated = threshold(8, 0.1, 0.02, 0.5)
    assert simulated == threshold(8, 0.1, 0.02, 0.5, 0)
    assert simulated != threshold(8, 0.1, 0.02, 0.5, 1)
