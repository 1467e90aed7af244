"""Leaving topics out, swaps, discriminative power, reliability: by hand, by enumeration, against a known truth."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from judged import InputError
from judged.stats import rank_stability
from judged.stats.paired import paired_test
from judged.stats.rank_stability import discriminative_power, stability
from judged.stats.sensitivity import LeaveOneTopicOut, leave_one_topic_out
from judged.stats.sufficiency import reliability

NAN = math.nan
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def table(seed: int, systems: int, topics: int, parts: tuple[float, float, float] = (0.05, 0.2, 0.1)) -> Any:
    rng = np.random.default_rng(seed)
    system, topic, rest = parts
    return (
        rng.normal(0, system, (systems, 1)) + rng.normal(0, topic, (1, topics)) + rng.normal(0, rest, (systems, topics))
    )


def left_out(first: Any, second: Any, test: str = "t", **options: Any) -> LeaveOneTopicOut:
    """Leave topics out of a test of two systems."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    return leave_one_topic_out(a, b, lambda kept: paired_test(a[kept], b[kept], test).p, **options)


def test_a_difference_that_depends_on_one_topic() -> None:
    """Differences 0.1, -0.1, -0.1, missing, 0.8: mean 0.175; without the last -0.1 / 3."""
    result = left_out([0.2, 0.4, 0.5, NAN, 0.1], [0.3, 0.3, 0.4, 0.1, 0.9])
    assert (result.topics, result.left_out) == ((0, 1, 2, 4), 1)
    assert result.difference == pytest.approx(0.175)
    assert result.differences == pytest.approx((0.2, 0.8 / 3, 0.8 / 3, -0.1 / 3))
    assert (result.sign_topics, result.min_removals, result.significance_topics) == ((4,), 1, ())
    assert "topic 4," in result.sentence()
    assert "Removing" not in result.sentence(), "nothing is significant that removing topics could undo"


def test_significance_that_depends_on_one_topic() -> None:
    """Every p-value is that of scipy's t-test."""
    differences = np.array([0.10, 0.11, 0.10, 0.12, -0.04, 0.09, 0.10])
    first = np.full(7, 0.3)
    whole = scipy_stats.ttest_1samp(differences, 0).pvalue
    expected = [scipy_stats.ttest_1samp(np.delete(differences, i), 0).pvalue for i in range(7)]
    alpha = 0.01
    flips = tuple(i for i, p in enumerate(expected) if (p <= alpha) != (whole <= alpha))
    assert flips == (0, 1, 2, 3, 5, 6), "significant with all, and without the topic against it"
    result = left_out(first, first + differences, alpha=alpha)
    assert result.p == pytest.approx(whole, rel=1e-9)
    assert tuple(sorted(result.significance_topics)) == flips
    assert result.significance_topics[0] in {1, 3}, "without the largest differences p is largest, but for the spread"
    assert [p for p in result.p_values if not math.isnan(p)] == pytest.approx(expected, rel=1e-9)
    assert (result.significant, result.sign_topics) == (True, ())
    strict = left_out(first, first + differences, alpha=0.001)
    assert strict.significance_topics == (4,)  # the only topic against it keeps it from being significant


def test_testing_stops_after_three_topics_that_change_nothing() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(0.2, 0.1, 50)
    result = left_out(np.zeros(50), differences)
    assert len(result.tested) == 3
    assert result.significance_topics == ()
    most = left_out(np.zeros(7), np.array([0.10, 0.11, 0.10, 0.12, -0.04, 0.09, 0.10]), alpha=0.01, max_tests=4)
    assert len(most.tested) == len(most.significance_topics) == 4


@given(arrays(np.float64, 6, elements=st.integers(-5, 5).map(lambda tenths: tenths / 10)))
def test_what_is_left_out_by_enumeration(differences: Any) -> None:
    result = left_out(np.zeros(6), differences)
    whole = np.rint(differences * 10).astype(int)
    sign = np.sign(whole.sum())
    others = np.sign(whole.sum() - whole)
    assert result.differences == pytest.approx((differences.sum() - differences) / 5, abs=1e-12)
    assert result.sign_topics == (tuple(np.flatnonzero(others != sign).tolist()) if sign else ())
    fewest = [
        size
        for size in range(6)
        if sign and any(sign * (whole.sum() - sum(gone)) <= 0 for gone in combinations(whole.tolist(), size))
    ]
    assert result.min_removals == (fewest[0] if fewest else None)
    assert result.standard_error == pytest.approx(differences.std(ddof=1) / math.sqrt(6), abs=1e-12)


@given(arrays(np.float64, 8, elements=st.integers(-5, 9).map(lambda tenths: tenths / 10)))
def test_topics_that_change_the_verdict_are_those_of_the_full_search(differences: Any) -> None:
    """Of at most three that do, none is missed: each is tested before three that change nothing."""
    result = left_out(np.zeros(8), differences, max_tests=8)
    every = [paired_test(np.zeros(7), np.delete(differences, i), "t").p for i in range(8)]
    changing = tuple(i for i, p in enumerate(every) if not math.isnan(result.p) and (p <= 0.05) != (result.p <= 0.05))
    assert set(result.significance_topics) <= set(changing)
    assert bool(result.significance_topics) == bool(changing)


def test_nothing_to_leave_out() -> None:
    single = left_out([0.1], [0.3])
    assert (single.differences, single.sign_topics, single.min_removals) == (
        (pytest.approx(NAN, nan_ok=True),),
        (),
        None,
    )
    assert left_out([NAN], [0.3]).topics == ()
    same = left_out([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (same.sign_topics, same.significance_topics, same.min_removals) == ((), (), None)


def test_swaps_by_enumeration() -> None:
    """3 systems, 4 topics: all 24 orders of the topics are equally likely, so the rates have known limits."""
    scores = np.array([[0.1, 0.5, 0.4, 0.2], [0.3, 0.2, 0.6, 0.1], [0.2, 0.5, 0.3, 0.9]])
    counts, swaps, taus = 0, 0, []
    for order in permutations(range(4)):
        one, two = scores[:, order[:2]].mean(axis=1), scores[:, order[2:]].mean(axis=1)
        taus.append(scipy_stats.kendalltau(one.round(9), two.round(9)).statistic)
        for a, b in combinations(range(3), 2):
            here, there = round(one[b] - one[a], 9), round(two[b] - two[a], 9)
            counts += here != 0
            swaps += here * there < 0
    found = stability(scores, resamples=20_000, seed=1)
    assert found.size == 2
    assert found.swap_rate == pytest.approx(swaps / counts, abs=0.01)  # over four standard errors
    assert found.tau == pytest.approx(np.nanmean(taus), abs=0.02)
    assert sum(one.pairs for one in found.bins) == pytest.approx(60_000 * counts / 72, rel=0.02)


def test_swaps_in_bins_by_hand() -> None:
    """Two topics: +0.30 and -0.10. One is the first set, the other the second: always a swap."""
    found = stability([[0.0, 0.1], [0.3, 0.0]], resamples=500, width=0.1, bins=4)
    assert [(one.pairs > 200, one.pairs == one.swaps) for one in found.bins] == [
        (False, True), (True, True), (False, True), (True, True),
    ]  # fmt: skip
    assert (found.swap_rate, found.tau, found.reliable_difference) == (1.0, -1.0, math.inf)
    assert [one.low for one in found.bins] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert [one.high for one in found.bins] == pytest.approx([0.1, 0.2, 0.3, math.inf])
    assert math.isnan(found.bins[0].rate)


def test_a_reliable_difference() -> None:
    """Systems 0 and 1 differ by 0.5 on every topic, and system 2 is as good as 0 but for noise that changes sign."""
    noise = np.array([0.02, -0.02, 0.03, -0.03, 0.01, -0.01, 0.02, -0.02])
    scores = np.stack([np.zeros(8), np.full(8, 0.5), noise])
    found = stability(scores, resamples=300)
    assert found.reliable_difference == pytest.approx(0.2)
    assert 0 < found.swap_rate < 0.34
    assert found.bins[-1].pairs == 600
    assert "a difference of 0.2 or more is reversed in at most 5% of the cases" in found.sentence


def test_the_same_seed_gives_the_same_swaps_however_many_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = table(1, 6, 20)
    found = stability(scores, resamples=100, seed=4)
    assert stability(scores, resamples=100, seed=5) != found
    monkeypatch.setattr(rank_stability, "_CELLS", 7)
    assert stability(scores, resamples=100, seed=4) == found


def test_more_topics_swap_less() -> None:
    scores = table(8, 12, 80)
    rates = [stability(scores, size=size, resamples=300).swap_rate for size in (5, 20, 40)]
    assert rates[0] > rates[1] > rates[2]
    taus = [stability(scores, size=size, resamples=300).tau for size in (5, 20, 40)]
    assert taus[0] < taus[1] < taus[2]


def test_stability_of_nothing() -> None:
    one = stability([[0.1, NAN], [0.2, 0.3]])
    assert (one.n, one.left_out, one.size) == (1, 1, 0)
    assert math.isnan(one.swap_rate)
    assert math.isinf(one.reliable_difference)
    same = stability([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], resamples=10)
    assert math.isnan(same.tau)
    assert "too few topics" in same.sentence


def test_discriminative_power_by_hand() -> None:
    """P-values of the t-test, in falling order; critical differences are half interval widths."""
    scores = table(3, 4, 9)
    found = discriminative_power(scores, test="t", alpha=0.2)
    pairs = list(combinations(range(4), 2))
    p = {(a, b): scipy_stats.ttest_rel(scores[b], scores[a]).pvalue for a, b in pairs}
    assert list(found.pairs) == sorted(pairs, key=lambda pair: -p[pair])
    assert found.p_values == pytest.approx(sorted(p.values(), reverse=True), rel=1e-9)
    assert found.significant == sum(one <= 0.2 for one in p.values())
    assert found.share == found.significant / 6
    halves = [scipy_stats.t.isf(0.1, 8) * (scores[b] - scores[a]).std(ddof=1) / 3 for a, b in pairs]
    assert found.required == pytest.approx(max(halves), rel=1e-12)
    missed = [abs((scores[b] - scores[a]).mean()) for (a, b), one in p.items() if one > 0.2]
    assert found.largest_missed == pytest.approx(max(missed, default=0.0))
    assert 0 < found.significant < 6


@given(st.integers(0, 30))
def test_with_t_what_reaches_its_critical_difference_is_significant(seed: int) -> None:
    scores = table(seed, 5, 12)
    found = discriminative_power(scores, test="t")
    assert all(
        p <= 0.05 for p, difference in zip(found.p_values, found.differences, strict=True)
        if abs(difference) > found.required
    )  # fmt: skip
    assert found.largest_missed <= found.required


def test_discriminative_power_of_other_p_values() -> None:
    p = np.array([[1.0, 0.04, 0.5], [0.04, 1.0, 0.01], [0.5, 0.01, 1.0]])
    rows = [[1, 2, 3], [2, 3, 5], [1, 1, 1]]
    found = discriminative_power([row * 2 for row in rows], p_values=p, test="randomized Tukey HSD")
    assert (found.pairs, found.p_values) == (((0, 2), (0, 1), (1, 2)), (0.5, 0.04, 0.01))
    assert (found.significant, found.share) == (2, pytest.approx(2 / 3))
    assert found.differences == pytest.approx((-1.0, 4 / 3, -7 / 3))
    assert found.largest_missed == pytest.approx(1.0)
    assert discriminative_power(rows, p_values=p).significant == 0  # of three topics
    assert found.sentence.startswith("66.7% of the pairs of systems (2 of 3) differ significantly (alpha 0.05, rand")


def test_discriminative_power_under_a_true_null_is_alpha() -> None:
    """Equal systems: 190 pairs in each of 40 tables; pairs share systems, so the share scatters more than 1 in n."""
    shares = [discriminative_power(table(seed, 20, 30, (0.0, 0.2, 0.1)), test="t").share for seed in range(40)]
    error = np.std(shares, ddof=1) / math.sqrt(40)
    assert np.mean(shares) == pytest.approx(0.05, abs=4 * error)
    assert error < 0.01


def test_discriminative_power_of_nothing() -> None:
    found = discriminative_power([[0.1], [0.2]], test="t")
    assert math.isnan(found.share)
    assert math.isnan(found.required)
    assert found.sentence == "No two systems could be tested."
    same = discriminative_power([[0.1, 0.2], [0.1, 0.2]], test="t")
    assert (same.share, same.required, same.largest_missed) == (0.0, 0.0, 0.0)


def test_reliability_is_that_of_shrout_and_fleiss() -> None:
    """Shrout and Fleiss (1979), tables 2 to 4; ICC(3,k) is E rho^2, ICC(2,k) is Phi; limits as R's psych gives them."""
    found = reliability(SHROUT_FLEISS)
    assert found.generalizability.value == pytest.approx(0.909, abs=5e-4)
    assert found.generalizability.interval == pytest.approx((0.676, 0.986), abs=6e-4)
    assert found.dependability.value == pytest.approx(0.620, abs=5e-4)
    assert found.dependability.interval == pytest.approx((0.071, 0.927), abs=6e-4)
    one = found.coefficients_for(1)
    assert one == pytest.approx((0.715, 0.290), abs=5e-4)
    # mean squares 11.24 (targets), 32.49 (judges), 1.02 (residual)
    assert found.variance_residual == pytest.approx(1.02, abs=5e-3)
    assert found.variance_systems == pytest.approx((11.24 - 1.02) / 4, abs=5e-3)
    assert found.variance_topics == pytest.approx((32.49 - 1.02) / 6, abs=5e-3)


def test_reliability_by_hand() -> None:
    """Mean squares of a 2 x 3 table of whole numbers, worked out on paper.

    Rows 1 2 3 and 4 4 7: means 2 and 5, 3.5 over all; columns 2.5, 3, 5. Systems: 3 * (1.5^2 + 1.5^2) / 1 = 13.5.
    Topics: 2 * (1 + 0.25 + 2.25) / 2 = 3.5. Residuals 0, 0.5, -0.5, 0, -0.5, 0.5: 1 / 2 = 0.5.
    """
    found = reliability([[1, 2, 3], [4, 4, 7]])
    components = (found.variance_systems, found.variance_topics, found.variance_residual)
    assert components == pytest.approx((13 / 3, 1.5, 0.5))
    assert found.generalizability.value == pytest.approx(1 - 0.5 / 13.5)
    assert found.dependability.value == pytest.approx((13 / 3) / (13 / 3 + 2 / 3))
    assert found.generalizability.topics_needed == math.ceil(19 * 0.5 / (13 / 3))
    assert found.dependability.topics_needed == math.ceil(19 * 2 / (13 / 3))
    assert found.shares == pytest.approx(tuple(part / (19 / 3) for part in components))


@pytest.mark.parametrize("parts", [(0.05, 0.2, 0.1), (0.02, 0.1, 0.2)])
def test_variance_components_are_found_and_intervals_hold_the_truth(parts: tuple[float, float, float]) -> None:
    """400 tables of 20 systems and 40 topics with known components; four standard errors of a share are 0.044."""
    system, topic, rest = (part**2 for part in parts)
    truth = system / (system + rest / 40), system / (system + (topic + rest) / 40)
    found = [reliability(table(seed, 20, 40, parts)) for seed in range(400)]
    for name, value in (("systems", system), ("topics", topic), ("residual", rest)):
        estimates = [getattr(one, f"variance_{name}") for one in found]
        error = np.std(estimates, ddof=1) / math.sqrt(400)
        assert np.mean(estimates) == pytest.approx(value, abs=4 * error), name
        assert error < 0.06 * value, name
    for at, kind in enumerate(("generalizability", "dependability")):
        held = [low <= truth[at] <= high for low, high in (getattr(one, kind).interval for one in found)]
        assert np.mean(held) == pytest.approx(0.95, abs=0.044), kind


@given(st.integers(0, 60), st.sampled_from([0.8, 0.9, 0.95]))
def test_the_topics_of_a_target_reach_it(seed: int, target: float) -> None:
    found = reliability(table(seed, 6, 10), target=target)
    if found.variance_systems > 0:
        for at, one in enumerate((found.generalizability, found.dependability)):
            assert found.coefficients_for(int(one.topics_needed))[at] >= target - 1e-9
            assert one.topics_needed == 1 or found.coefficients_for(int(one.topics_needed) - 1)[at] < target
    assert not found.dependability.value > found.generalizability.value
    for one in (found.generalizability, found.dependability):
        low, high = one.interval or (0.0, 1.0)
        assert low - 1e-12 <= one.value <= high + 1e-12
        fewest, most = one.topics_needed_interval or (1.0, math.inf)
        assert fewest <= one.topics_needed <= most


def test_reliability_leaves_out_what_is_missing_and_does_not_see_scale_or_shift() -> None:
    scores = table(5, 5, 12)
    holed = scores.copy()
    holed[2, 7] = NAN
    found = reliability(holed)
    assert (found.n, found.left_out) == (11, 1)
    rest = reliability(np.delete(scores, 7, axis=1) * 10 + 3)
    assert found.generalizability.value == pytest.approx(rest.generalizability.value, rel=1e-9)
    assert found.dependability.interval == pytest.approx(rest.dependability.interval, rel=1e-9)


def test_reliability_of_nothing() -> None:
    one = reliability([[0.1], [0.2]])
    assert math.isnan(one.generalizability.value)
    assert "not defined" in one.sentence
    for same in ([[0.1, 0.1], [0.1, 0.1]], [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]]):
        assert math.isnan(reliability(same).generalizability.value)
    certain = reliability([[0.1, 0.1], [0.2, 0.2]])
    assert (certain.generalizability.value, certain.generalizability.topics_needed) == (1.0, 1.0)
    chance = reliability([[0, 1], [1, 0]])
    assert (chance.generalizability.value, chance.generalizability.topics_needed) == (0.0, math.inf)
    assert chance.dependability.interval is None
    assert "requires infinitely many topics, and Phi requires infinitely many topics" in chance.sentence


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leave_one_topic_out([1], [1, 2], lambda _: NAN), "same length"),
        (
            lambda: leave_one_topic_out([1, 2], [2, 1], lambda _: NAN, alpha=1.0),
            "alpha must be between 0 and 1, got 1.0",
        ),
        (lambda: stability([[1, 2, 3], [3, 2, 1]], size=2), "half of the 3 topics, got 2"),
        (lambda: stability([[1, 2, 3], [3, 2, 1]], resamples=0), "must be positive, got 0"),
        (lambda: stability([[1, 2, 3]]), "at least 2 systems are required, got 1"),
        (lambda: discriminative_power([[1, 2], [2, 1]], p_values=[[1.0]]), "`p_values` must have shape"),
        (lambda: reliability([[1, 2], [2, 1]], target=1.0), "target must be between 0 and 1, got 1.0"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
