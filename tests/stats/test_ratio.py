"""Errors and intervals of ratios over users: published values, exact arithmetic, scipy, coverage by simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from calibration import users as few
from calibration.users import pages
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged.stats.ratio import (
    effective_units,
    exact_share_interval,
    ratio_error,
    ratio_errors,
    ratio_interval,
    ratio_intervals,
    student_quantiles,
    woodruff,
)


def sums_of(n: np.ndarray, d: np.ndarray) -> tuple[float, ...]:
    return (len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())


@pytest.mark.parametrize("units", [2, 7, 1000])
def test_the_published_variance(units: int) -> None:
    """Means 2 and 10, variances 1.5 and 4, covariance 0.8: 0.015 + 0.0016 - 0.0032 = 0.0134 a unit."""
    free = units - 1
    sums = (units, 2.0 * units, 10.0 * units, 1.5 * free + 4 * units, 4.0 * free + 100 * units, 0.8 * free + 20 * units)
    assert ratio_error(*sums) ** 2 * units == pytest.approx(0.0134, abs=1e-12)


def test_by_hand() -> None:
    """Clicks 1, 0, 2 on pages 2, 1, 4: R = 3/7, residuals (1, -3, 2)/7, error**2 = 3/2 * 14/49 / 49 = 3/343."""
    assert ratio_error(3, 3, 7, 5, 21, 10) == pytest.approx(math.sqrt(3 / 343), rel=1e-12)


users = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), min_size=2, max_size=40)


@given(users)
def test_exact_arithmetic_agrees(rows: list[tuple[int, int]]) -> None:
    n, d = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    ratio = Fraction(sum(x for x, _ in rows), sum(y for _, y in rows))
    squares = sum((x - ratio * y) ** 2 for x, y in rows)
    exact = squares * len(rows) / (len(rows) - 1) / Fraction(sum(y for _, y in rows)) ** 2
    assert ratio_error(*sums_of(n, d)) ** 2 == pytest.approx(float(exact), rel=1e-9, abs=1e-18)


@given(users, st.floats(1e-6, 1e6))
def test_the_error_has_the_values_unit(rows: list[tuple[int, int]], times: float) -> None:
    n, d = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    error = ratio_error(*sums_of(n, d))
    assert ratio_error(*sums_of(n * times, d)) == pytest.approx(error * times, rel=1e-6, abs=1e-9 * times)


def test_all_denominators_1_is_the_error_of_a_mean() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=50)
    assert ratio_error(*sums_of(values, np.ones(50))) == pytest.approx(scipy_stats.sem(values), rel=1e-12)


@pytest.mark.parametrize("times", [0.1, 1 / 3, 1e9, 1e-9])
def test_nothing_is_left_where_numerators_are_proportional(times: float) -> None:
    d = np.random.default_rng(2).pareto(1.5, size=1000) + 1
    assert ratio_error(*sums_of(times * d, d)) == 0.0


def test_a_real_difference_is_not_taken_for_rounding() -> None:
    """One user in a thousand is off by 1e-4 of its numerator."""
    d = np.full(1000, 7.0)
    n = 3.0 * d
    n[0] *= 1 + 1e-4
    assert ratio_error(*sums_of(n, d)) == pytest.approx(scipy_stats.sem(n / d), rel=1e-3)


def test_too_few_units_give_no_number() -> None:
    assert math.isnan(ratio_error(1, 3, 7, 9, 49, 21))
    assert math.isnan(ratio_error(0, 0, 0, 0, 0, 0))
    assert math.isnan(ratio_error(5, 0, 0, 0, 0, 0))
    for result in (
        ratio_interval(0.4, 0.1, 1, 0.95, share=True),
        ratio_interval(math.nan, math.nan, 9, 0.95, share=False),
        exact_share_interval(1, 0.95, 0),
        woodruff(0.5, math.nan, 1, 0.95),
    ):
        assert np.isnan(result).all()


def test_many_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(3)
    tables = [(rng.integers(0, 5, 30).astype(float), rng.integers(1, 9, 30).astype(float)) for _ in range(6)]
    sums = np.array([sums_of(*table) for table in tables]).T
    errors = ratio_errors(*sums)
    assert errors.tolist() == [ratio_error(*sums_of(*table)) for table in tables]
    shares = np.array([True, False] * 3)
    effective = sums[2] ** 2 / sums[4]
    low, high = ratio_intervals(sums[1] / sums[2], errors, sums[0], effective, 0.9, share=shares)
    for at, (n, d) in enumerate(tables):
        alone = ratio_interval(
            n.sum() / d.sum(),
            float(errors[at]),
            30,
            0.9,
            share=bool(shares[at]),
            effective=effective_units(d.sum(), (d * d).sum()),
        )
        assert (low[at], high[at]) == pytest.approx(alone, rel=1e-14)


@pytest.mark.parametrize("df", [1, 2, 5, 29, 99, 100, 100.5, 101, 150, 1000, 10**6])
def test_quantiles_of_t_are_scipys(df: float) -> None:
    for probability in (0.9, 0.95, 0.975, 0.995, 0.9995):
        result = float(student_quantiles(probability, np.array(df, dtype=float)))
        assert result == pytest.approx(scipy_stats.t.ppf(probability, df), rel=1e-8 if df > 100 else 1e-9), probability


@given(st.floats(1.0, 100.0))
def test_between_whole_degrees_of_freedom_t_is_a_little_too_wide(df: float) -> None:
    result, exact = float(student_quantiles(0.975, np.array(df))), scipy_stats.t.ppf(0.975, df)
    assert exact * (1 - 1e-9) <= result <= exact * (1.24 if df < 2 else 1.03)


def test_the_interval_of_a_signed_value_is_students() -> None:
    low, high = ratio_interval(-0.5, 0.25, 12, 0.95, share=False, signed=True)
    assert (low, high) == pytest.approx(scipy_stats.t.interval(0.95, 11, loc=-0.5, scale=0.25), rel=1e-9)


def test_scales_by_hand() -> None:
    t = scipy_stats.t.ppf(0.975, 19)
    low, high = ratio_interval(4.0, 0.5, 20, 0.95, share=False, counted=True)
    assert (low, high) == pytest.approx((4 * math.exp(-t / 8), 4 * math.exp(t / 8)), rel=1e-9)
    low, high = ratio_interval(4.0, 0.5, 20, 0.95, share=False)  # amounts of (4 / 0.5)**2 = 64 units' worth
    assert (low, high) == pytest.approx((4 * math.exp(-t / 8), 4 * math.exp(t / 8 + 1 / 64 + 1 / 20)), rel=1e-9)
    low, high = ratio_interval(4.0, 2.0, 20, 0.95, share=False)  # and of 4
    of_4 = scipy_stats.t.ppf(0.975, 4)
    assert (low, high) == pytest.approx((4 * math.exp(-of_4 / 2), 4 * math.exp(of_4 / 2 + 1 / 4 + 1 / 20)), rel=1e-9)
    low, high = ratio_interval(0.2, 0.05, 20, 0.95, share=True)
    odds = 0.25 * np.exp(np.array([-1, 1]) * t * 0.05 / 0.16)
    assert (low, high) == pytest.approx((odds / (1 + odds)).tolist(), rel=1e-9)


@given(st.floats(0.0, 1.0), st.floats(1e-9, 0.5), st.integers(3, 10_000), st.sampled_from([0.5, 0.95, 0.999]))
def test_a_share_stays_a_share_and_inside_its_interval(value: float, error: float, units: int, level: float) -> None:
    low, high = ratio_interval(value, error, units, level, share=True)
    assert 0.0 <= low <= high <= 1.0
    assert value in {0.0, 1.0} or low <= value <= high


@pytest.mark.parametrize("kind", [{"share": True}, {"share": False}, {"share": False, "counted": True}])
def test_without_variance_there_is_no_interval(kind: dict[str, bool]) -> None:
    assert np.isnan(ratio_interval(0.5, 0.0, 10, 0.95, **kind)).all()
    assert np.isnan(ratio_interval(0.5, 0.0, 10, 0.95, share=False, signed=True)).all()
    assert np.isfinite(ratio_interval(0.5, 0.1, 10, 0.95, **kind)).all()


@pytest.mark.parametrize(
    ("units", "effective", "known"),
    [(2, 2.0, False), (3, 3.0, True), (2.99, 2.99, False), (10, 2.99, False), (10, 3.0, True)],
)
def test_fewer_than_three_units_or_effective_units_have_no_interval(
    units: float, effective: float, known: bool
) -> None:
    for value, error, kind in ((0.5, 0.1, {"share": True}), (0.0, 0.0, {"share": True}), (1.0, 0.0, {"share": True}),
                               (0.5, 0.1, {"share": False, "counted": True}), (0.5, 0.1, {"share": False}),
                               (0.0, 0.0, {"share": False, "counted": True})):  # fmt: skip
        ends = ratio_interval(value, error, units, 0.95, effective=effective, **kind)
        assert np.isfinite(ends).all() == known


@pytest.mark.parametrize(
    ("quantile", "effective", "known"),
    [(0.5, 3.9, False), (0.5, 4, True), (0.9, 19.9, False), (0.9, 20, True), (0.05, 39.9, False), (0.05, 40, True)],
)
def test_two_effective_units_must_be_expected_beyond_a_quantile(quantile: float, effective: float, known: bool) -> None:
    """Rows enough for an interval (400 of this error) are not enough: they may be those of a few users."""
    error = float(np.sqrt(quantile * (1 - quantile) / 400))
    assert np.isfinite(woodruff(quantile, error, 1000, 0.95, effective=effective)).all() == known
    assert np.isfinite(woodruff(quantile, error, effective, 0.95)).all() == known


def test_none_is_no_interval_of_one_value() -> None:
    """No event of 10 users: of a Poisson number of 3.689 there would be none with a chance of 0.025."""
    assert ratio_interval(0.0, 0.0, 10, 0.95, share=False, counted=True) == pytest.approx((0.0, 0.3688879), rel=1e-6)
    assert np.isnan(ratio_interval(0.0, 0.0, 10, 0.95, share=False)).all()


def test_amounts_of_fewer_than_two_users_tell_nothing() -> None:
    """Of 20 users with a page each, two spent 10 each, or one 19 and the other 1."""
    pages = np.ones(20)
    for spent, known in ((np.array([10.0, 10.0]), True), (np.array([19.0, 1.0]), False), (np.array([20.0]), False)):
        sums = sums_of(np.pad(spent, (0, 20 - len(spent))), pages)
        low, high = ratio_interval(1.0, ratio_error(*sums), 20, 0.95, share=False)
        assert (0.0 < low < 1.0 < high) if known else math.isnan(low) and math.isnan(high)


@pytest.mark.parametrize("units", [3, 10, 100, 100_000])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_none_or_all_is_clopper_and_pearson(units: int, level: float) -> None:
    for count in (0, units):
        exact = scipy_stats.binomtest(count, units).proportion_ci(level, method="exact")
        assert exact_share_interval(units, level, count / units) == pytest.approx((exact.low, exact.high), rel=1e-8)
        assert ratio_interval(count / units, 0.0, units, level, share=True) == exact_share_interval(
            units, level, count / units
        )


def test_effective_units() -> None:
    assert effective_units(12.0, 48.0) == 3.0  # three with 4 each
    assert effective_units(10.0, 66.0) == pytest.approx(100 / 66)
    assert math.isnan(effective_units(0.0, 0.0))


def test_unequal_users_widen_the_interval() -> None:
    """Of 20 users, 5 effective ones: t(4), and the divisor 4 of 5 in place of 19 of 20."""
    low, high = ratio_interval(0.0, 1.0, 20, 0.95, share=False, effective=5.0)
    assert high == pytest.approx(scipy_stats.t.ppf(0.975, 4) * math.sqrt(0.95 / 0.8), rel=1e-9)
    assert low == -high


@pytest.mark.parametrize(("q", "rows"), [(0.5, 400), (0.9, 50), (0.95, 80), (0.95, 2000)])
def test_woodruff_on_independent_rows_is_the_interval_of_clopper_and_pearson(q: float, rows: int) -> None:
    counted = rows * (1.959964 / scipy_stats.t.ppf(0.975, 10**6 - 1)) ** 2
    exact = scipy_stats.beta.ppf(
        [0.025, 0.975], [q * counted, q * counted + 1], [(1 - q) * counted + 1, (1 - q) * counted]
    )
    assert woodruff(q, math.sqrt(q * (1 - q) / rows), 10**6, 0.95) == pytest.approx(exact.tolist(), abs=1.5e-3)


@pytest.mark.parametrize(("q", "fewest"), [(0.5, 6), (0.95, 72), (0.05, 72)])
def test_a_quantile_beyond_the_rows_has_no_interval(q: float, fewest: int) -> None:
    """Five rows lie all below the median with a chance of 1 / 32, six with 1 / 64; without an error a user is a row."""
    assert np.isnan(woodruff(q, 0.0, fewest - 1, 0.95)).all()
    low, high = woodruff(q, 0.0, fewest, 0.95)
    assert 0.0 < low < q < high < 1.0
    assert np.isnan(woodruff(q, 0.0, 10**6, 0.95, effective=fewest - 0.9)).all()


# Coverage: users whose numbers of pages have a heavy tail, each with its own propensity; more: docs/calibration.md.

SAMPLES = 1000


@pytest.mark.parametrize("users", [20, 50, 200])
@pytest.mark.parametrize("world", [name for name, (kind, _) in few.WORLDS.items() if kind == "amount"])
def test_amounts_over_few_users_are_covered(world: str, users: int) -> None:
    """With the logarithmic interval of counts, the same logs are covered in 83 to 93 %."""
    assert few.ratio_coverage(world, users, SAMPLES)["coverage"] >= 0.93 - 0.01  # 0.01: the spread of 1000 samples


@pytest.mark.parametrize("users", [5, 20, 50, 200])
@pytest.mark.parametrize(
    "world", ["share of 30%", "share of 90%", "share of 3%", "1 event a page", "1 event in 20 pages"]
)
def test_shares_and_counts_over_few_users_are_covered(world: str, users: int) -> None:
    measured = few.ratio_coverage(world, users, SAMPLES)
    assert measured["coverage"] >= 0.93 - 0.01
    # samples in which activity leaves fewer than three effective users have no interval
    assert measured["none"] <= {5: 0.25, 20: 0.05}.get(users, 0.0)


@pytest.mark.parametrize(("q", "users"), [(0.5, 20), (0.5, 200), (0.9, 50), (0.95, 200)])
def test_quantiles_over_few_users_are_covered(q: float, users: int) -> None:
    assert few.quantile_coverage(q, users, 400)["coverage"] >= 0.93 - 0.02


def test_a_high_quantile_of_few_users_has_no_interval() -> None:
    assert few.quantile_coverage(0.95, 20, 100)["none"] > 0.9


def clicks(rng: np.random.Generator, users: int, mean: float, alike: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Propensities Beta with this mean, independent of activity: the true ratio is the mean."""
    d = pages(rng, (SAMPLES, users))
    p = rng.beta(mean * alike, (1 - mean) * alike, size=d.shape)
    return rng.binomial(d.astype(np.int64), p).astype(float), d, mean


def first_click_ranks(rng: np.random.Generator, users: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Reciprocal ranks 1, 1/2, 1/3, 1/4 with the chances of a user's own: means of a user's pages."""
    d = pages(rng, (SAMPLES, users))
    chances = rng.dirichlet([1.0, 0.7, 0.5, 0.4], size=d.shape)
    counts = rng.multinomial(d.astype(np.int64), chances)
    reciprocals = np.array([1, 1 / 2, 1 / 3, 1 / 4])
    truth = float(np.array([1.0, 0.7, 0.5, 0.4]) @ reciprocals) / 2.6
    return counts @ reciprocals, d, truth


def covered(made: tuple[np.ndarray, np.ndarray, float], *, share: bool = True) -> tuple[float, float]:
    """Give how often the interval, and how often that of a binomial over pages, holds the truth."""
    n, d, truth = made
    sums = [
        np.full(len(n), n.shape[1], dtype=float),
        n.sum(1),
        d.sum(1),
        (n * n).sum(1),
        (d * d).sum(1),
        (n * d).sum(1),
    ]
    value, effective = sums[1] / sums[2], sums[2] ** 2 / sums[4]
    low, high = ratio_intervals(value, ratio_errors(*sums), sums[0], effective, 0.95, share=np.array(share))
    naive = 1.96 * np.sqrt(value * (1 - value).clip(0) / sums[2])
    return float(((low <= truth) & (truth <= high)).mean()), float((np.abs(value - truth) <= naive).mean())


@pytest.mark.parametrize("users", [50, 200, 1000])
def test_intervals_of_click_rates_hold_their_level_and_those_over_pages_do_not(users: int) -> None:
    result, naive = covered(clicks(np.random.default_rng(users), users, 0.3, 2.0))
    assert 0.93 <= result <= 0.97
    assert naive < 0.80


@pytest.mark.parametrize("users", [50, 500])
def test_they_hold_for_reciprocal_ranks(users: int) -> None:
    result, _ = covered(first_click_ranks(np.random.default_rng(users + 3), users))
    assert 0.93 <= result <= 0.97


@pytest.mark.parametrize(("users", "least", "most"), [(50, 0.93, 0.99), (500, 0.92, 0.98)])
def test_rare_clicks_are_covered_where_the_plain_interval_fails(users: int, least: float, most: float) -> None:
    n, d, truth = clicks(np.random.default_rng(users + 4), users, 0.03, 3.0)
    result, _ = covered((n, d, truth))
    assert least <= result <= most
    value = n.sum(1) / d.sum(1)
    errors = np.array([ratio_error(*sums_of(*row)) for row in zip(n, d, strict=True)])
    plain = float((np.abs(value - truth) <= scipy_stats.t.ppf(0.975, users - 1) * errors).mean())
    assert plain < 0.91
    assert plain < result - 0.03
