"""Whether groups of topics differ: against all arrangements, by how often it errs, and by what it finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from calibration import slices
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged import InputError
from judged.stats.slice_differences import AgainstRest, against_rest, heterogeneity

NAN = math.nan
VALUES = [0.0, 0.1, -0.2, 0.1, 0.3, 0.25, 0.4, 0.05]


def welch(parts: list[np.ndarray], overall: float) -> float:
    """Give the statistic as its definition reads: squared distances from the common mean over squared errors."""
    means = np.array([part.mean() for part in parts])
    errors = np.array([((part - part.mean()) ** 2).sum() + overall for part in parts])
    weights = np.array([len(part) ** 2 for part in parts]) / errors
    return float((weights * (means - np.average(means, weights=weights)) ** 2).sum() / (len(parts) - 1))


def dealt(values: np.ndarray, first: tuple[int, ...]) -> list[np.ndarray]:
    mask = np.zeros(len(values), dtype=bool)
    mask[list(first)] = True
    return [values[mask], values[~mask]]


def test_the_p_value_is_that_of_all_arrangements_or_of_welchs_f() -> None:
    """56 ways to deal 8 topics out to groups of 3 and 5; 20,000 of them drawn miss their share by 1% at most."""
    values = np.array(VALUES)
    overall = values.var(ddof=1)
    observed = welch(dealt(values, (0, 1, 2)), overall)
    ways = [welch(dealt(values, first), overall) for first in itertools.combinations(range(8), 3)]
    exact = np.mean([way >= observed - 1e-12 for way in ways])
    result = heterogeneity(VALUES, [4, 4, 4, 9, 9, 9, 9, 9], resamples=20_000)
    assert result.statistic == pytest.approx(observed, rel=1e-12)
    parts = dealt(values, (0, 1, 2))
    weights = np.array([len(part) / part.var(ddof=1) for part in parts])
    loose = sum((1 - weights / weights.sum()) ** 2 / (np.array([3, 5]) - 1))
    by_f = scipy_stats.f.sf(observed, 1, 1 / loose)  # Welch (1951) for two groups
    assert by_f > exact
    assert result.p == pytest.approx(by_f, rel=1e-9)
    assert (result.groups, result.n) == ((4, 9), (3, 5))
    assert result.means == pytest.approx([-0.1 / 3, 0.22])


def test_the_share_between_groups_is_that_of_the_analysis_of_variance() -> None:
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    values = np.array(VALUES)
    parts = [values[groups == at] for at in range(3)]
    within = sum(((part - part.mean()) ** 2).sum() for part in parts)
    assert heterogeneity(values, groups).between == pytest.approx(1 - within / ((values - values.mean()) ** 2).sum())


@given(st.permutations([0, 1, 2]), st.floats(-5, 5), st.floats(0.01, 100))
def test_names_of_groups_and_units_mean_nothing(names: list[int], shift: float, scale: float) -> None:
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    one = heterogeneity(VALUES, groups, resamples=100)
    two = heterogeneity(np.array(VALUES) * scale + shift, np.array(names)[groups], resamples=100)
    assert two.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert two.between == pytest.approx(one.between, rel=1e-9)


def test_topics_without_a_number_or_a_group_are_left_out() -> None:
    values, groups = [*VALUES, NAN, 7.0, 9.0], [0, 0, 0, 1, 1, 1, 1, 1, 0, -1, 5]
    assert heterogeneity(values, groups) == heterogeneity(VALUES, groups[:8])  # 5 has one topic


def test_without_variation_or_groups() -> None:
    same = heterogeneity([0.5] * 6, [0, 0, 0, 1, 1, 1])
    assert (same.p, same.statistic) == (1.0, 0.0)
    alone = heterogeneity([0.1, 0.2, 0.3], [0, 0, 1])
    assert math.isnan(alone.p)
    assert "at least two groups" in alone.note


def test_groups_that_do_not_vary_themselves() -> None:
    """All arrangements but one in 12870 / 2 show less: p is near that, not undefined."""
    result = heterogeneity([0.0] * 8 + [1.0] * 8, [0] * 8 + [1] * 8)
    assert result.p <= 3 / 10_001
    assert result.between == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("sizes", "spreads", "most"),
    [((10, 20, 40), (1, 1, 1), 0.05), ((10, 20, 40), (3, 2, 1), 0.085), ((10, 20, 40), (1, 2, 3), 0.085)],
)
def test_it_errs_seldom_where_groups_vary_alike_or_not(
    sizes: tuple[int, ...], spreads: tuple[int, ...], most: float
) -> None:
    """With groups that vary alike it is exact. The plain F errs in 3 of 10 cases where small groups vary more."""
    rng, groups = np.random.default_rng(8), np.repeat(np.arange(len(sizes)), sizes)
    spread = np.repeat(spreads, sizes)
    share = np.mean([
        heterogeneity(rng.normal(0, spread), groups, resamples=199, seed=at).p <= 0.05 for at in range(500)
    ])  # fmt: skip
    assert share <= most + 3.3 * math.sqrt(most * (1 - most) / 500)
    if len(set(spreads)) == 1:
        assert share >= most - 3.3 * math.sqrt(most * (1 - most) / 500)


def test_a_small_group_that_varies_much_is_seldom_taken_for_different() -> None:
    """Groups of 5, 20 and 40 topics, of which the smallest varies ten times as much: permutations alone err in 17 %."""
    share = slices.heterogeneity_rate(5, "normal", (10, 1, 1), 300)
    assert share <= 0.07 + 3.3 * math.sqrt(0.07 * 0.93 / 300)


def test_a_planted_difference_is_found() -> None:
    rng, groups = np.random.default_rng(9), np.repeat([0, 1, 2], 30)
    result = [heterogeneity(rng.normal(0, 0.2, 90) + 0.2 * (groups == 1), groups, resamples=999).p for _ in range(50)]
    assert np.mean([p <= 0.05 for p in result]) >= 0.9


def test_one_group_against_the_rest_by_hand() -> None:
    (result,) = against_rest([1.0, 2.0, 3.0, 5.0, 7.0], [[0, 0, 0, 1, 1]], resamples=1000)
    assert (result.difference, result.n, result.n_rest) == (4.0, 2, 3)
    overall = np.var([1, 2, 3, 5, 7], ddof=1)
    assert result.statistic == pytest.approx(4 / math.sqrt((2 + overall) / 4 + (2 + overall) / 9))
    by_t = 2 * scipy_stats.t.sf(
        result.statistic, (1 + 1 / 3) ** 2 / (1**2 / 1 + (1 / 3) ** 2 / 2)
    )  # Satterthwaite's freedom: errors 2/2 and 1/3
    assert by_t > 1 / 10  # of the 10 ways to choose 2 no other is as extreme
    assert result.p == pytest.approx(by_t)


def test_the_interval_is_welchs_with_whole_degrees_of_freedom() -> None:
    rng = np.random.default_rng(10)
    one, rest = rng.normal(0.3, 0.1, 12), rng.normal(0.4, 0.3, 30)
    (result,) = against_rest(np.r_[one, rest], [[1] * 12 + [0] * 30])
    theirs = scipy_stats.ttest_ind(one, rest, equal_var=False)
    limits = theirs.confidence_interval(0.95)
    half = scipy_stats.t.ppf(0.975, math.floor(theirs.df)) * (one.mean() - rest.mean()) / theirs.statistic
    assert result.interval == pytest.approx((result.difference - half, result.difference + half), rel=1e-9)
    assert result.interval[0] <= limits.low <= limits.high <= result.interval[1]


def test_both_sides_of_a_division_are_one_test() -> None:
    rng = np.random.default_rng(11)
    mask = rng.random(40) < 0.3
    one, two = against_rest(rng.random(40), [mask, ~mask])
    assert one.p == two.p
    assert one.difference == pytest.approx(-two.difference)
    assert one.interval == pytest.approx((-two.interval[1], -two.interval[0]))


def test_groups_overlap_and_some_have_no_rest() -> None:
    values = [*VALUES, NAN]
    result = against_rest(values, np.array([[1] * 9, [0] * 9, [1] * 4 + [0] * 5, [0] * 3 + [1] * 6, [1] + [0] * 8]))
    assert [math.isnan(one.p) for one in result] == [True, True, False, False, True]
    assert [one.n for one in result] == [8, 0, 4, 5, 1]
    assert [one.interval is None for one in result] == [True, True, False, False, True]
    (alone,) = against_rest(values, [[1] * 4 + [0] * 5])
    assert (alone.p, alone.interval) == (result[2].p, result[2].interval)  # the others do not change the draws


def test_large_groups_have_welchs_distributions() -> None:
    """Scipy's t, and the F of Welch (1951) as R's oneway.test has it: with two groups it is the square of t."""
    rng = np.random.default_rng(14)
    one, rest = rng.normal(0.3, 0.1, 300), rng.normal(0.32, 0.3, 500)
    values, mask = np.r_[one, rest], np.arange(800) < 300
    (result,) = against_rest(values, [mask])
    assert result.resamples is None
    assert result.p == pytest.approx(scipy_stats.ttest_ind(one, rest, equal_var=False).pvalue, rel=0.02)
    whole = heterogeneity(values, mask)
    assert whole.resamples is None
    assert whole.p == pytest.approx(result.p, rel=1e-6)


def test_permutations_and_distributions_agree_where_one_gives_way_to_the_other() -> None:
    rng = np.random.default_rng(15)
    values = rng.beta(0.6, 1.4, 900)
    groups = np.repeat([0, 1, 2], [201, 240, 459])
    values[groups == 1] += 0.05
    large = heterogeneity(values, groups)
    small = heterogeneity(values[2:], groups[2:], resamples=20_000)
    assert (large.resamples, small.resamples) == (None, 20_000)
    assert small.p == pytest.approx(large.p, rel=0.25)
    few, many = against_rest(values, [np.arange(900) < 200, np.arange(900) < 201], resamples=20_000)
    assert (few.resamples, many.resamples) == (20_000, None)
    assert few.p == pytest.approx(many.p, abs=0.03)


def test_many_topics_have_fewer_permutations() -> None:
    groups = np.r_[np.zeros(20_000, dtype=int), np.ones(30, dtype=int)]
    result = heterogeneity(np.random.default_rng(16).random(20_030), groups)
    assert result.resamples == (1 << 25) // 20_030
    assert result.p > 1 / (result.resamples + 1)


def test_no_variation_is_no_difference() -> None:
    (result,) = against_rest([0.4] * 8, [[1] * 4 + [0] * 4])
    assert (result.difference, result.interval, result.p) == (0.0, (0.0, 0.0), 1.0)


def test_a_group_against_the_rest_errs_seldom() -> None:
    """The small group varies three times as much, where a plain t with one variance errs in one case of four."""
    rng, mask = np.random.default_rng(12), np.arange(60) < 12
    spread = np.where(mask, 3.0, 1.0)

    def one(seed: int) -> AgainstRest:
        return against_rest(rng.normal(0, spread), [mask], resamples=199, seed=seed)[0]

    assert np.mean([one(at).p <= 0.05 for at in range(500)]) <= 0.085 + 3.3 * math.sqrt(0.085 * 0.915 / 500)


@pytest.mark.parametrize(
    "call",
    [
        lambda: heterogeneity([0.1, 0.2], [0]),
        lambda: heterogeneity([0.1, math.inf], [0, 1]),
        lambda: heterogeneity([0.1, 0.2], [0, 1], resamples=10),
        lambda: heterogeneity([0.1, 0.2], [0, 1], seed=-1),
        lambda: against_rest([0.1, 0.2], [1, 0]),
        lambda: against_rest([0.1, 0.2, 0.3], [[1, 0]]),
    ],
)
def test_impossible_input(call) -> None:
    with pytest.raises(InputError):
        call()
