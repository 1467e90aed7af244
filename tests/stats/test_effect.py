"""Effect sizes, wins, equivalence: by hand, against scipy and statsmodels, and where nothing is defined."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats
from statsmodels.stats.weightstats import ttost_paired

from judged import InputError
from judged.stats.effect import effect_sizes, equivalence, non_inferiority, standardize, wins

NAN = math.nan
TENTHS = st.integers(0, 10).map(lambda tenths: tenths / 10)


def scores(n: int) -> st.SearchStrategy[Any]:
    return arrays(np.float64, (2, n), elements=TENTHS)


def test_effects_by_hand() -> None:
    """Differences 1, 2, 3, -2: mean 1, deviation sqrt(14 / 3); three wins and a loss of four."""
    result = effect_sizes([1, 1, 1, 3], [2, 3, 4, 1])
    assert (result.difference, result.n, result.left_out) == (1.0, 4, 0)
    assert result.dz == pytest.approx(1 / math.sqrt(14 / 3), rel=1e-14)
    assert result.cliffs_delta == 0.5
    # 16 pairs of topics; 2, 3, 4, 1 against 1, 1, 1, 3: above 3 + 3 + 4 + 0 = 10, below 1 + 0 + 0 + 1 = 2
    assert result.cliffs_delta_between == 0.5
    assert math.isnan(result.standardized)


def test_standardized_effect_by_hand() -> None:
    """Topic 1: systems 0, 1, 2 have deviation 1; topic 2: 0, 10, 20 have 10; topic 3 does not vary."""
    systems = np.array([[0.0, 0.0, 5.0], [1.0, 10.0, 5.0], [2.0, 20.0, 5.0]])
    result = effect_sizes(systems[0], [2.0, 10.0, 5.0], reference=systems)
    assert result.standardized == pytest.approx((2 / 1 + 10 / 10) / 2)
    assert (result.standardized_topics, result.n) == (2, 3)
    assert standardize(systems)[:, 1].tolist() == [-1.0, 0.0, 1.0]
    assert np.isnan(standardize(systems)[:, 2]).all()
    assert standardize([[4.0, 0.0, 1.0]], reference=systems)[0, :2].tolist() == [3.0, -1.0]


def test_standardized_scores_leave_out_what_is_missing() -> None:
    result = standardize([[0.2, NAN, NAN], [0.6, 0.5, 0.1], [NAN, 0.7, NAN]])
    assert result[:, 0].tolist() == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5), NAN], nan_ok=True)
    assert np.isnan(result[:, 2]).all()


@given(arrays(np.float64, (5, 7), elements=st.floats(0, 1)))
def test_standardized_scores_have_mean_0_and_deviation_1(values: Any) -> None:
    result = standardize(values)
    for topic in result.T:
        if not np.isnan(topic).any():
            assert topic.mean() == pytest.approx(0, abs=1e-9)
            assert topic.std(ddof=1) == pytest.approx(1, rel=1e-9)


@given(scores(8))
def test_cliffs_delta_between_is_that_of_mann_and_whitney(values: Any) -> None:
    u = scipy_stats.mannwhitneyu(values[1], values[0], method="asymptotic").statistic
    result = effect_sizes(values[0], values[1])
    assert result.cliffs_delta_between == pytest.approx(2 * u / 64 - 1, abs=1e-12)


@given(scores(6), st.permutations(range(6)))
def test_effects_turn_with_the_systems_and_do_not_see_the_order_of_topics(values: Any, order: list[int]) -> None:
    here, there = effect_sizes(values[0], values[1]), effect_sizes(values[1, order], values[0, order])
    for name in ("difference", "dz", "cliffs_delta", "cliffs_delta_between"):
        assert getattr(here, name) == pytest.approx(-getattr(there, name), abs=1e-9, nan_ok=True), name


def test_rounding_is_no_difference() -> None:
    first, second = [0.1 + 0.2, 0.7, 0.8 - 0.1], [0.3, 0.1 * 7, 0.7]
    assert first != second
    result = effect_sizes(first, second)
    assert (result.difference, result.cliffs_delta, result.cliffs_delta_between) == (0.0, 0.0, 0.0)
    assert math.isnan(result.dz)
    assert wins(first, second).ties == 3
    assert math.isnan(effect_sizes([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]).dz)  # all the same but for rounding


@pytest.mark.parametrize(
    ("first", "second", "n", "left"), [([], [], 0, 0), ([NAN, 1], [1, NAN], 0, 2), ([1, NAN], [2, 1], 1, 1)]
)
def test_too_few_topics(first: list[float], second: list[float], n: int, left: int) -> None:
    result = effect_sizes(first, second)
    assert (result.n, result.left_out) == (n, left)
    assert math.isnan(result.dz)
    assert math.isnan(result.difference) == (n == 0)
    assert wins(first, second).wins == n
    tested = equivalence(first, second, 0.1)
    assert (tested.interval, tested.significant) == (None, False)
    assert math.isnan(tested.p)
    assert "at least two topics" in tested.sentence


def test_wins_by_hand() -> None:
    result = wins([0.2, 0.4, 0.5, 0.3, NAN, 0.5], [0.3, 0.6, 0.5, 0.1, 0.1, 0.45], min_difference=0.1)
    assert (result.wins, result.ties, result.losses, result.left_out) == (2, 2, 1, 1)  # 0.3 - 0.2 is just below 0.1


@given(scores(9), st.integers(0, 5))
def test_wins_are_counted_in_whole_tenths(values: Any, tenths: int) -> None:
    whole = np.rint(values[1] * 10).astype(int) - np.rint(values[0] * 10).astype(int)
    result = wins(values[0], values[1], tenths / 10)
    least = max(tenths, 1)
    assert (result.wins, result.losses) == (int((whole >= least).sum()), int((whole <= -least).sum()))
    assert result.wins + result.ties + result.losses == 9


@pytest.mark.parametrize(("shift", "margin"), [(0.0, 0.05), (0.02, 0.05), (-0.04, 0.05), (0.1, 0.05), (0.0, 0.001)])
@pytest.mark.parametrize("n", [2, 5, 40])
def test_equivalence_is_that_of_statsmodels(n: int, shift: float, margin: float) -> None:
    rng = np.random.default_rng(n)
    first = rng.random(n)
    second = first + shift + rng.normal(0, 0.03, n)
    result = equivalence(first, second, margin)
    p, upper, lower = ttost_paired(second, first, -margin, margin)
    assert result.p == pytest.approx(p, rel=1e-9)
    worse = upper if upper[1] > lower[1] else lower
    assert result.statistic == pytest.approx(abs(worse[0]) if worse[1] < 0.5 else -abs(worse[0]), rel=1e-9)
    one_sided = scipy_stats.ttest_1samp(second - first, -margin, alternative="greater")
    assert non_inferiority(first, second, margin).p == pytest.approx(one_sided.pvalue, rel=1e-9)
    turned = non_inferiority(second, first, margin, higher_is_better=False)
    assert turned.p == pytest.approx(one_sided.pvalue, rel=1e-9)


@given(arrays(np.float64, (2, 6), elements=st.floats(0, 1)), st.floats(0.01, 0.5), st.sampled_from([0.9, 0.95, 0.99]))
def test_equivalence_is_shown_exactly_where_the_interval_is_within_the_margin(
    values: Any, margin: float, level: float
) -> None:
    result = equivalence(*values, margin, level=level)
    low, high = result.interval or (NAN, NAN)
    if min(abs(low + margin), abs(high - margin)) > 1e-9:
        assert result.significant == (-margin < low and high < margin)
        assert non_inferiority(*values, margin, level=level).significant == (low > -margin)
    assert result.interval_level == pytest.approx(1 - 2 * (1 - level))


def test_equivalence_is_claimed_of_systems_at_the_margin_in_5_of_100_cases() -> None:
    """The true difference is the margin: 4000 samples of 20 topics; three standard errors are 0.0103."""
    rng = np.random.default_rng(7)
    differences = rng.normal(0.05, 0.1, (4000, 20))
    shown = [non_inferiority(np.zeros(20), -row, 0.05).significant for row in differences]
    assert np.mean(shown) == pytest.approx(0.05, abs=0.0103)


def test_equivalence_without_variation() -> None:
    same = equivalence([0.1, 0.5, 0.3] * 2, [0.1, 0.5, 0.3] * 2, 0.02)
    assert (same.p, same.significant, same.interval, same.statistic) == (0.0, True, (0.0, 0.0), math.inf)
    assert "all differences are equal" in same.sentence
    beyond = equivalence([0.1, 0.5, 0.3], [0.2, 0.6, 0.4], 0.1)
    assert (beyond.p, beyond.significant) == (1.0, False)


def test_equivalence_in_words() -> None:
    first, second = [0.2, 0.4, 0.5, 0.1, 0.3, 0.2], [0.21, 0.4, 0.49, 0.12, 0.3, 0.2]
    result = equivalence(first, second, margin=0.03)
    assert result.sentence == (
        "The data show that the two systems differ by less than 0.03 (p = 0.00073; 90% CI [-0.0052, 0.0118], "
        "n = 6 topics). The test assumes that these 6 topics represent all topics. Up to 39.3% of all topics may be of"
        " a kind that is missing from the sample. A mean difference of 0.076 or more on the missing topics would make"
        " the result false."
    )
    few = equivalence(first[:5], second[:5], margin=0.03)
    assert (few.significant, few.p) == (False, pytest.approx(0.0035, abs=5e-5))
    assert "5 topics, at least 6 are required" in few.sentence
    many = [0.0, 0.1] * 100
    assert equivalence(many, many[::-1], margin=0.03).sentence.endswith("200 topics).")  # no share can differ by 2
    assert "do not show that the second system is worse than the first by less than 0.01" in (
        non_inferiority([0.2, 0.4, 0.5], [0.1, 0.5, 0.3], 0.01).sentence
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: effect_sizes([1, 2], [1]), "same length"),
        (lambda: effect_sizes([[1, 2]], [[1, 2]]), "same length"),
        (lambda: effect_sizes([1, math.inf], [1, 2]), "infinite"),
        (lambda: effect_sizes([1, 2], [1, 2], reference=[[1, 2, 3], [1, 2, 4]]), "2 topics of the scores, got 3"),
        (lambda: standardize([1, 2]), "2 dimensions"),
        (lambda: standardize([[1, 2]]), "at least 2 systems are required, got 1"),
        (lambda: wins([1], [2], -0.1), "must be 0 or more"),
        (lambda: wins([1], [2], NAN), "must be 0 or more"),
        (lambda: equivalence([1], [2], 0), "`margin` must be positive, got 0"),
        (lambda: equivalence([1], [2], 0.1, level=0.5), "between 0.5 and 1"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
