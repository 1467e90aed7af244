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
    times, place = np.unique(durations, return_inverse=True)
    ends = np.bincount(place, ended, minlength=len(times)).astype(np.int64)
    return kaplan_meier(times, ends, np.bincount(place, minlength=len(times)) - ends), place


def freireich() -> tuple[SurvivalCurve, np.ndarray, np.ndarray]:
    durations = np.array(ENDED + CENSORED)
    ended = np.repeat([1, 0], [len(ENDED), len(CENSORED)])
    curve, place = curve_of(durations, ended)
    return curve, place, ended


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
    curve, place, ended = freireich()
    assert curve.at(time) == pytest.approx(share, abs=5e-5)
    assert curve.greenwood(time) == pytest.approx(error, abs=5e-5)
    of_ended, of_censored = curve.influence(time)
    influence = np.where(ended, of_ended[place], of_censored[place])
    assert influence.sum() == pytest.approx(0.0, abs=1e-12)
    robust = clustered_error(curve.at(time), float((influence**2).sum()), 21)
    assert robust == pytest.approx(curve.greenwood(time) * math.sqrt(21 / 20), rel=1e-12)


def test_the_textbooks_median_and_ends() -> None:
    curve, _, _ = freireich()
    assert curve.rows == 21
    assert curve.quantile(0.5) == 23.0
    assert curve.quantile(0.25) == 13.0
    assert curve.quantile(0.6) == math.inf
    assert (curve.at(0), curve.at(5.9), curve.greenwood(5.9)) == (1.0, 1.0, 0.0)
    assert curve.at(35) == curve.at(23)
    assert math.isnan(curve.at(36))  # nobody was watched for so long


visits = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 1), st.integers(0, 5)), min_size=2, max_size=60)


@given(visits, st.integers(0, 13))
def test_influences_are_derivatives_and_their_squares_greenwoods(rows: list[tuple[int, int, int]], time: int) -> None:
    durations, ended, _ = (np.array(column) for column in zip(*rows, strict=True))
    curve, place = curve_of(durations, ended)
    value = curve.at(time)
    of_ended, of_censored = curve.influence(time)
    influence = np.where(ended, of_ended[place], of_censored[place])
    if math.isnan(value):
        return
    if value == 0:
        assert not influence.any()
        return
    assert influence.sum() == pytest.approx(0.0, abs=1e-10)
    assert value * math.sqrt((influence**2).sum()) == pytest.approx(curve.greenwood(time), rel=1e-9, abs=1e-12)
    many = 10**7  # every visit so often, and the first once more
    more = many + (np.arange(len(rows)) == 0)
    ends = np.bincount(place, more * ended).astype(np.int64)
    both = np.bincount(place, more).astype(np.int64)
    moved = math.log(kaplan_meier(curve.times, ends, both - ends).at(time)) - math.log(value)
    assert moved * many == pytest.approx(influence[0], rel=1e-5, abs=1e-6)


@given(st.lists(st.integers(1, 30), min_size=2, max_size=50), st.integers(0, 31))
def test_without_censoring_it_is_the_share_that_lasts(durations: list[int], time: int) -> None:
    given_ = np.array(durations)
    curve, _ = curve_of(given_, np.ones(len(given_), dtype=np.int64))
    share = float((given_ > time).mean())
    assert curve.at(time) == pytest.approx(share, abs=1e-12)
    assert curve.greenwood(time) == pytest.approx(math.sqrt(share * (1 - share) / len(given_)), rel=1e-9, abs=1e-12)
    assert curve.quantile(0.5) == np.sort(given_)[math.ceil(len(given_) / 2) - 1]


def test_against_scipy() -> None:
    rng = np.random.default_rng(3)
    durations, ended = rng.integers(1, 40, 200), rng.integers(0, 2, 200)
    curve, _ = curve_of(durations, ended)
    data = scipy_stats.CensoredData(durations[ended == 1], right=durations[ended == 0])
    other = scipy_stats.ecdf(data).sf
    for time in range(1, 39):
        assert curve.at(time) == pytest.approx(float(other.evaluate(time)), rel=1e-12)


def test_intervals_at_the_ends() -> None:
    all_ended = kaplan_meier([5, 9], [40, 60], [0, 0])
    assert all_ended.interval(9, 0.0, 100, 0.95) == pytest.approx((0.0, 0.0362), abs=5e-5)
    assert all_ended.interval(4, 0.0, 100, 0.95) == pytest.approx((0.9638, 1.0), abs=5e-5)
    half_watched = kaplan_meier([5, 9], [0, 50], [50, 0])  # 50 of 100 were watched until 9
    assert half_watched.interval(8, 0.0, 100, 0.95)[0] == pytest.approx(0.025 ** (1 / 50), rel=1e-9)
    lost = kaplan_meier([5, 7, 9], [40, 0, 30], [0, 30, 0])
    assert lost.at(9) == 0.0
    independent = lost.greenwood(7)
    assert lost.interval(9, 0.0, 100, 0.95) == (0.0, ratio_interval(0.6, independent, 100, 0.95, share=True)[1])
    assert kaplan_meier([5, 7], [0, 3], [4, 0]).interval(7, 0.0, 7, 0.95) == (0.0, 1.0)
    assert np.isnan(lost.interval(9, 0.0, 1, 0.95)).all()
    assert np.isnan(kaplan_meier([5], [0], [4]).interval(6, 0.0, 4, 0.95)).all()
    empty = kaplan_meier([], [], [])
    assert math.isnan(empty.at(1))
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
    median = 0
    samples = 400
    for _ in range(samples):
        visits_of = np.minimum(np.ceil(rng.pareto(1.6, size=users) + 1e-9), 50).astype(np.int64)
        user = np.repeat(np.arange(users), visits_of)
        lasts = np.ceil(np.exp(np.repeat(rng.normal(3, 1, users), visits_of) + rng.normal(0, 0.8, len(user))))
        watched = np.ceil(rng.exponential(80, len(user)))
        ended = (lasts <= watched).astype(np.int64)
        curve, place = curve_of(np.minimum(lasts, watched).astype(np.int64), ended)
        effective = effective_units(visits_of.sum(), (visits_of**2).sum())
        middle = curve.quantile(0.5)
        for time in dict.fromkeys((*times, middle)):
            of_ended, of_censored = curve.influence(time)
            by_user = np.bincount(user, np.where(ended, of_ended[place], of_censored[place]))
            error = clustered_error(curve.at(time), float((by_user**2).sum()), users)
            if time == middle:
                low, high = woodruff(0.5, error, users, 0.95, effective=effective)
                median += curve.quantile(low) <= math.ceil(math.exp(3)) <= curve.quantile(high)
            if time in truth:
                low, high = curve.interval(time, error, users, 0.95, effective=effective)
                clustered[time] += low <= truth[time] <= high
                low, high = ratio_interval(curve.at(time), curve.greenwood(time), len(user), 0.95, share=True)
                greenwood[time] += low <= truth[time] <= high
    for time in times:
        assert 0.92 <= clustered[time] / samples <= 0.98
        assert greenwood[time] / samples < 0.82
    assert median / samples >= 0.92
