"""Always-valid intervals, sample ratios, and differences adjusted for the time before exposure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.statistics.allocation import critical_value, e_value, prior_size, sample_ratio
from judged.online.statistics.users import NO_RELATIVE, Arm, adjusted_difference
from judged.stats.ratio import RatioSums, correlation, ratio_errors


@pytest.mark.parametrize(("n", "g"), [(50, 1.0), (1000, 30.0), (10**6, 610.0)])
def test_the_critical_value_is_where_the_evidence_is_one_over_alpha(n: int, g: float) -> None:
    for alpha in (0.01, 0.05, 0.2):
        assert e_value(critical_value(n, n - 2, g, alpha), n, n - 2, g) == pytest.approx(1 / alpha, rel=1e-9)


def test_few_units_allow_no_interval() -> None:
    assert critical_value(3, 1, 610, 0.05) == math.inf


def test_the_interval_is_narrowest_where_that_was_asked_for() -> None:
    widths = {
        scale: critical_value(5000, 4998, prior_size(5000 * scale, 0.05), 0.05) for scale in (0.5, 0.9, 1, 1.1, 2)
    }
    assert min(widths, key=widths.__getitem__) == 1


def _sums(n: np.ndarray, d: np.ndarray) -> list[np.ndarray]:
    return [np.cumsum(column, axis=-1) for column in (np.ones_like(n), n, d, n * n, d * d, n * d)]


def test_differences_of_ratios_are_seldom_found_on_any_day_where_there_are_none() -> None:
    # users come back, have a liking of their own, and bring many pages or few; looked at 60 times from 400 users on
    rng, streams, users = np.random.default_rng(7), 1500, 6000
    looks = np.unique(np.geomspace(200, users / 2, 60).astype(int)) - 1
    values, errors = [], []
    for _ in range(2):
        pages = rng.geometric(0.25, (streams, users // 2)).astype(float)
        clicks = rng.binomial(pages.astype(int), rng.beta(2, 2, pages.shape)).astype(float)
        units, n, d, nn, dd, nd = (column[:, looks] for column in _sums(clicks, pages))
        values.append(n / d)
        errors.append(ratio_errors(units, n, d, nn, dd, nd))
    t = np.abs(values[1] - values[0]) / np.hypot(*errors)
    users_of_both = 2 * (looks + 1)
    always_valid = np.array([critical_value(n, n - 2, prior_size(5000, 0.05), 0.05) for n in users_of_both])
    assert (t > always_valid).any(axis=1).mean() <= 0.05
    assert (t > 1.96).any(axis=1).mean() > 0.2  # what looking costs where intervals are made for one day
    assert abs((t[:, -1] > 1.96).mean() - 0.05) < 0.017


def test_money_of_few_users_is_seldom_found_to_differ_after_the_burn_in() -> None:
    rng, streams, users = np.random.default_rng(8), 1000, 4000
    looks = np.unique(np.geomspace(200, users / 2, 40).astype(int)) - 1
    arms = []
    for _ in range(2):
        money = rng.lognormal(3, 1, (streams, users // 2)) * (rng.random((streams, users // 2)) < 0.1)
        units, n, d, nn, dd, nd = (column[:, looks] for column in _sums(money, np.ones_like(money)))
        arms.append((n / d, ratio_errors(units, n, d, nn, dd, nd)))
    t = np.abs(arms[1][0] - arms[0][0]) / np.hypot(arms[0][1], arms[1][1])
    users_of_both = 2 * (looks + 1)
    always_valid = np.array([critical_value(n, n - 2, prior_size(5000, 0.05), 0.05) for n in users_of_both])
    assert (t > always_valid).any(axis=1).mean() <= 0.05


@pytest.mark.parametrize("arriving", [1, 30])
def test_intervals_hold_where_users_only_come_back(arriving: int) -> None:
    # on each of 60 days all users who were exposed may come back: the number of users stands still from day `arriving`
    # on, and their sums grow; all like clicking alike, and intervals are narrowest at just this number: the worst case
    rng, streams, users, days = np.random.default_rng(9), 400, 400, 60
    arms: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for _ in range(2):
        first_day = rng.integers(arriving, size=(streams, users))
        pages, clicks = np.zeros((2, streams, users))
        rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for day in range(days):
            is_exposed = first_day <= day
            new_pages = rng.poisson(0.3, is_exposed.shape) * is_exposed + (first_day == day)
            pages, clicks = pages + new_pages, clicks + rng.binomial(new_pages, 0.4)
            n, d, nn, dd, nd = (
                column.sum(1) for column in (clicks, pages, clicks * clicks, pages * pages, clicks * pages)
            )
            exposed = is_exposed.sum(1)
            rows.append((n / d, ratio_errors(exposed, n, d, nn, dd, nd), exposed))
        value, error, exposed = (np.stack(column, axis=1) for column in zip(*rows, strict=True))
        arms.append((value, error, exposed))
    users_of_both = arms[0][2] + arms[1][2]
    t = np.abs(arms[1][0] - arms[0][0]) / np.hypot(arms[0][1], arms[1][1])
    g = prior_size(2 * users, 0.05)
    always_valid = np.array(
        [0.0, *(critical_value(n, max(n - 2, 1), g, 0.05) for n in range(1, users_of_both.max() + 1))]
    )
    is_compared = np.minimum(arms[0][2], arms[1][2]) >= 200
    assert ((t > always_valid[users_of_both]) & is_compared).any(axis=1).mean() <= 0.05
    assert ((t > 1.96) & is_compared).any(axis=1).mean() > 0.2


@pytest.mark.parametrize(
    ("counts", "p"), [([5000, 5200], 0.04767), ([10000, 10300, 9700], 1.2341e-4)]
)  # of another engine for A/B tests, to the digits that it prints
def test_sample_ratios_of_one_look(counts: list[int], p: float) -> None:
    assert sample_ratio(counts).p == pytest.approx(p, rel=1e-4)


def test_an_arm_of_no_share_is_no_degree_of_freedom() -> None:
    assert sample_ratio([500, 520, 0], [1, 1, 0])[:3] == sample_ratio([500, 520])[:3]
    with pytest.raises(InputError, match="share 0 has users"):
        sample_ratio([500, 520, 1], [1, 1, 0])


def test_sound_assignment_is_seldom_called_broken_however_often_one_looks() -> None:
    rng, streams = np.random.default_rng(5), 400
    counts = np.cumsum(rng.multinomial(50, [0.5, 0.3, 0.2], (streams, 60)), axis=1)
    min_p = [min(sample_ratio(day.tolist(), [5, 3, 2]).p_always for day in stream) for stream in counts]
    assert np.mean(np.array(min_p) < 0.05) <= 0.05
    assert sample_ratio([5000, 5600]).p_always < 0.001  # a mix that is broken


def _arm(rng: np.random.Generator, users: int, shift: float) -> Arm:
    click_rate = rng.beta(2, 2, users)
    sums = []
    for gain in (0.0, shift):
        pages = rng.poisson(4, users).astype(float)
        sums.append((rng.binomial(pages.astype(int), np.clip(click_rate + gain, 0, 1)).astype(float), pages))
    (n0, d0), (n1, d1) = sums
    before, after = (
        RatioSums(float(((n > 0) | (d > 0)).sum()), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum())
        for n, d in sums
    )
    rho = correlation(before, after, (n0 * n1).sum(), (n0 * d1).sum(), (d0 * n1).sum(), (d0 * d1).sum())
    return Arm(after, before, rho)


def test_adjusting_for_the_time_before_is_unbiased_and_sharper() -> None:
    rng = np.random.default_rng(3)
    differences = [adjusted_difference(_arm(rng, 400, 0.0), _arm(rng, 400, 0.02)) for _ in range(400)]
    values, errors = (
        np.array([getattr(difference, name) for difference in differences]) for name in ("value", "error")
    )
    assert abs(values.mean() - 0.02) < 3.5 * values.std() / 20 + 0.002  # liking is cut at 1
    assert errors.mean() == pytest.approx(values.std(), rel=0.1)
    assert np.mean([difference.reduction for difference in differences]) > 0.15
    assert np.mean(np.abs(values - values.mean()) < 1.96 * errors) == pytest.approx(0.95, abs=0.035)


def test_relative_intervals_have_the_sign_of_the_difference_and_cover_of_few_clicks_too() -> None:
    # the arms' clicks: 20 and 16 of 400 pages each in truth, so that the relative difference is -0.2
    rng, covered, streams = np.random.default_rng(4), 0, 2000
    for first, second in rng.binomial(400, (0.05, 0.04), (streams, 2)).astype(float).tolist():
        difference = adjusted_difference(*(Arm(RatioSums(400, n, 400, n, 400, n)) for n in (first, second)))
        _, low, high = difference.relative(1.959964)
        assert (low > 0) == (difference.value > 1.959964 * difference.error)
        assert (high < 0) == (difference.value < -1.959964 * difference.error)
        covered += low <= -0.2 <= high
    assert covered / streams == pytest.approx(0.95, abs=0.015)
    none, few = (Arm(RatioSums(400, n, 400, n, 400, n)) for n in (0.0, 12.0))
    assert adjusted_difference(none, few).relative(1.96) is NO_RELATIVE


def test_adjusting_a_mean_is_what_regression_on_the_mean_before_gives() -> None:
    # one row a user: the ratio is a mean, and theta that of pooled covariances and variances by arm
    rng = np.random.default_rng(11)
    arms, sides = [], []
    for size in (60, 90):
        x = rng.normal(size=size)
        y = x + rng.normal(size=size)
        ones = np.ones(size)
        before, after = (RatioSums(size, v.sum(), size, (v * v).sum(), size, v.sum()) for v in (x, y))
        rho = correlation(before, after, (x * y).sum(), x.sum(), y.sum(), ones.sum())
        arms.append((x, y))
        sides.append(Arm(after, before, rho))
    cov = sum(np.cov(x, y)[0, 1] / len(x) for x, y in arms)
    var = sum(np.var(x, ddof=1) / len(x) for x, y in arms)
    theta = cov / var
    expected = arms[1][1].mean() - arms[0][1].mean() - theta * (arms[1][0].mean() - arms[0][0].mean())
    error = math.sqrt(sum(np.var(y - theta * x, ddof=1) / len(x) for x, y in arms))
    difference = adjusted_difference(*sides)
    assert (difference.theta, difference.value, difference.error) == pytest.approx((theta, expected, error), rel=1e-10)


def _numbers(users: int, arm: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pages of users before and after exposure, and their denominators."""
    i = np.arange(1, users + 1)
    before = (i * 7 + arm * 3) % 11
    return tuple(
        column.astype(float) for column in (before, before // 2 + (i * 5 + arm) % 7 + arm, 1 + i * 3 % 4 + i % 2)
    )


def test_differences_are_those_of_growthbook() -> None:
    # gbstats 0.8.0: RatioStatistic and TwoSidedTTest, absolute and relative; CUPED by RegressionAdjustedStatistic
    arms = _numbers(60, 0), _numbers(80, 1)
    sums = [RatioSums(len(n), n.sum(), d.sum(), (n * n).sum(), (d * d).sum(), (n * d).sum()) for _, n, d in arms]
    difference = adjusted_difference(Arm(sums[0]), Arm(sums[1]))
    assert (difference.value, difference.error) == pytest.approx((0.3291666666666664, 0.2131770615985827), rel=1e-12)
    relative = difference.relative(1.96).value, difference.relative_error
    assert relative == pytest.approx((0.18457943925233627, 0.1313123327260373), rel=1e-12)
    adjusted_arms = []
    for before, after, _ in arms:
        ones = np.ones(len(before))
        before_sums, after_sums = (
            RatioSums(len(v), v.sum(), len(v), (v * v).sum(), len(v), v.sum()) for v in (before, after)
        )
        rho = correlation(before_sums, after_sums, (before * after).sum(), before.sum(), after.sum(), ones.sum())
        adjusted_arms.append(Arm(after_sums, before_sums, rho))
    # it pools covariances of users, we those of the arms' means, which leaves the least variance: 0.4933 and 0.34846
    difference = adjusted_difference(*adjusted_arms)
    assert difference.value == pytest.approx(0.9936663191676383, abs=2e-4)
    assert 0.3484 < difference.error < 0.34845664440909146


def test_overwhelming_evidence_is_a_number() -> None:
    assert e_value(1e4, 1e6, 1e6, 600.0) == math.exp(700.0)
