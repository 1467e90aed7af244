"""Kaplan-Meier: a textbook's table, Greenwood's errors as a special case, and coverage over users."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged.online.statistics.survival import SurvivalCurve, clustered_error, kaplan_meier
from judged.stats.ratio import effective_units, ratio_interval, woodruff

# Freireich et al., Blood 1963: weeks in remission, 21 patients on 6-mercaptopurine; + is still in remission
ENDED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]


def curve_of(durations: np.ndarray, ended: np.ndarray) -> tuple[SurvivalCurve, np.ndarray]:
    times, code = np.unique(durations, return_inverse=True)
    ended_counts = np.bincount(code, ended, minlength=len(times)).astype(np.int64)
    return kaplan_meier(times, ended_counts, np.bincount(code, minlength=len(times)) - ended_counts), code


def freireich() -> tuple[SurvivalCurve, np.ndarray, np.ndarray]:
    durations = np.array(ENDED + CENSORED)
    ended = np.repeat([1, 0], [len(ENDED), len(CENSORED)])
    curve, code = curve_of(durations, ended)
    return curve, code, ended


@pytest.mark.parametrize(
    ("time", "share", "error"),
    [
        (6, 0.8571, 0.0764),
        (7, 0.8067, 0.0869),
        (10, 0.7529, 0.0963),
        (13, 0.6902, 0.1068),
        (16, 0.6275, 0.1141),
        (22, 0.5378, 0.1282),
        (23, 0.4482, 0.1346),
    ],
)
def test_the_textbook(time: int, share: float, error: float) -> None:
    """Klein and Moeschberger, Survival Analysis, table 4.1B; Collett gives the same."""
    curve, code, ended = freireich()
    assert curve.survival_at(time) == pytest.approx(share, abs=5e-5)
    assert curve.greenwood(time) == pytest.approx(error, abs=5e-5)
    ended_influence, censored_influence = curve.influence(time)
    influence = np.where(ended, ended_influence[code], censored_influence[code])
    assert influence.sum() == pytest.approx(0.0, abs=1e-12)
    robust = clustered_error(curve.survival_at(time), float((influence**2).sum()), 21)
    assert robust == pytest.approx(curve.greenwood(time) * math.sqrt(21 / 20), rel=1e-12)


def test_the_textbooks_median_and_ends() -> None:
    curve, _, _ = freireich()
    assert curve.rows == 21
    assert curve.quantile(0.5) == 23.0
    assert curve.quantile(0.25) == 13.0
    assert curve.quantile(0.6) == math.inf
    assert (curve.survival_at(0), curve.survival_at(5.9), curve.greenwood(5.9)) == (1.0, 1.0, 0.0)
    assert curve.survival_at(35) == curve.survival_at(23)
    assert math.isnan(curve.survival_at(36))  # nobody was watched for so long


visits = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 1), st.integers(0, 5)), min_size=2, max_size=60)


@given(visits, st.integers(0, 13))
def test_influences_are_derivatives_and_their_squares_greenwoods(rows: list[tuple[int, int, int]], time: int) -> None:
    durations, ended, _ = (np.array(column) for column in zip(*rows, strict=True))
    curve, code = curve_of(durations, ended)
    value = curve.survival_at(time)
    ended_influence, censored_influence = curve.influence(time)
    influence = np.where(ended, ended_influence[code], censored_influence[code])
    if math.isnan(value):
        return
    if value == 0:
        assert not influence.any()
        return
    assert influence.sum() == pytest.approx(0.0, abs=1e-10)
    assert value * math.sqrt((influence**2).sum()) == pytest.approx(curve.greenwood(time), rel=1e-9, abs=1e-12)
    copies = 10**7  # every visit so often, and the first once more
    counts = copies + (np.arange(len(rows)) == 0)
    ended_counts = np.bincount(code, counts * ended).astype(np.int64)
    all_counts = np.bincount(code, counts).astype(np.int64)
    change = math.log(kaplan_meier(curve.times, ended_counts, all_counts - ended_counts).survival_at(time)) - math.log(
        value
    )
    assert change * copies == pytest.approx(influence[0], rel=1e-5, abs=1e-6)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=50), st.integers(0, 31))
def test_without_censoring_it_is_the_share_that_lasts(durations: list[int], time: int) -> None:
    times = np.array(durations)
    curve, _ = curve_of(times, np.ones(len(times), dtype=np.int64))
    share = float((times > time).mean())
    assert curve.survival_at(time) == pytest.approx(share, abs=1e-12)
    assert curve.greenwood(time) == pytest.approx(math.sqrt(share * (1 - share) / len(times)), rel=1e-9, abs=1e-12)
    assert curve.quantile(0.5) == np.sort(times)[math.ceil(len(times) / 2) - 1]


def test_against_scipy() -> None:
    rng = np.random.default_rng(3)
    durations, ended = rng.integers(1, 40, 200), rng.integers(0, 2, 200)
    curve, _ = curve_of(durations, ended)
    data = scipy_stats.CensoredData(durations[ended == 1], right=durations[ended == 0])
    scipy_curve = scipy_stats.ecdf(data).sf
    for time in range(1, 39):
        assert curve.survival_at(time) == pytest.approx(float(scipy_curve.evaluate(time)), rel=1e-12)


def test_intervals_at_the_ends() -> None:
    all_ended = kaplan_meier([5, 9], [40, 60], [0, 0])
    assert all_ended.interval(9, 0.0, 100, 0.95) == pytest.approx((0.0, 0.0362), abs=5e-5)
    assert all_ended.interval(4, 0.0, 100, 0.95) == pytest.approx((0.9638, 1.0), abs=5e-5)
    half_watched = kaplan_meier([5, 9], [0, 50], [50, 0])  # 50 of 100 were watched until 9
    assert half_watched.interval(8, 0.0, 100, 0.95)[0] == pytest.approx(0.025 ** (1 / 50), rel=1e-9)
    lost = kaplan_meier([5, 7, 9], [40, 0, 30], [0, 30, 0])
    assert lost.survival_at(9) == 0.0
    independent = lost.greenwood(7)
    assert lost.interval(9, 0.0, 100, 0.95) == (0.0, ratio_interval(0.6, independent, 100, 0.95, share=True)[1])
    assert kaplan_meier([5, 7], [0, 3], [4, 0]).interval(7, 0.0, 7, 0.95) == (0.0, 1.0)
    assert np.isnan(lost.interval(9, 0.0, 1, 0.95)).all()
    assert np.isnan(kaplan_meier([5], [0], [4]).interval(6, 0.0, 4, 0.95)).all()
    empty = kaplan_meier([], [], [])
    assert math.isnan(empty.survival_at(1))
    assert empty.rows == 0
    assert math.isnan(clustered_error(0.5, 1.0, 1))


@pytest.mark.parametrize("users", [50, 200])
def test_coverage_over_users_where_greenwood_fails(users: int) -> None:
    """Log-normal visits with a level of each user's own, a heavy tail of visits, exponential censoring."""
    rng = np.random.default_rng(users)
    normal = scipy_stats.norm(3, math.sqrt(1 + 0.8**2))
    times = (10, 30)
    truth = {time: float(normal.sf(math.log(time))) for time in times}  # ceil(T) > t if T > t
    clustered = dict.fromkeys(times, 0)
    greenwood = dict.fromkeys(times, 0)
    median_covered = 0
    samples = 400
    for _ in range(samples):
        visits_per_user = np.minimum(np.ceil(rng.pareto(1.6, size=users) + 1e-9), 50).astype(np.int64)
        user = np.repeat(np.arange(users), visits_per_user)
        durations = np.ceil(np.exp(np.repeat(rng.normal(3, 1, users), visits_per_user) + rng.normal(0, 0.8, len(user))))
        censoring = np.ceil(rng.exponential(80, len(user)))
        ended = (durations <= censoring).astype(np.int64)
        curve, code = curve_of(np.minimum(durations, censoring).astype(np.int64), ended)
        effective = effective_units(visits_per_user.sum(), (visits_per_user**2).sum())
        median_estimate = curve.quantile(0.5)
        for time in dict.fromkeys((*times, median_estimate)):
            ended_influence, censored_influence = curve.influence(time)
            by_user = np.bincount(user, np.where(ended, ended_influence[code], censored_influence[code]))
            error = clustered_error(curve.survival_at(time), float((by_user**2).sum()), users)
            if time == median_estimate:
                low, high = woodruff(0.5, error, users, 0.95, effective=effective)
                median_covered += curve.quantile(low) <= math.ceil(math.exp(3)) <= curve.quantile(high)
            if time in truth:
                low, high = curve.interval(time, error, users, 0.95, effective=effective)
                clustered[time] += low <= truth[time] <= high
                low, high = ratio_interval(curve.survival_at(time), curve.greenwood(time), len(user), 0.95, share=True)
                greenwood[time] += low <= truth[time] <= high
    for time in times:
        assert 0.92 <= clustered[time] / samples <= 0.98
        assert greenwood[time] / samples < 0.82
    assert median_covered / samples >= 0.92
