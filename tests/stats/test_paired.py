"""Paired tests against scipy, enumeration and integer arithmetic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judged.stats import resampling as bootstrap
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.paired import paired_test
from judged.stats.resampling import SignFlips
from judged.stats.results import Options

ALTERNATIVES = ("two-sided", "greater", "less")
TENTHS = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=9)


def _pair(topics: int, seed: int = 0, shift: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first = rng.beta(0.8, 1.6, topics)
    return first, np.clip(first + rng.normal(shift, 0.1, topics), 0, 1)


# --- Classical tests against scipy


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("topics", [2, 5, 43, 300])
def test_t_is_scipys(topics: int, alternative: str) -> None:
    first, second = _pair(topics)
    theirs = scipy_stats.ttest_rel(second, first, alternative=alternative)
    ours = paired_test(first, second, "t", alternative=alternative, level=0.9)
    assert (ours.statistic, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval(0.9)), rel=1e-9)
    assert (ours.n, ours.resamples, ours.seed, ours.exact) == (topics, None, None, False)
    gaps = second - first
    assert ours.effect == pytest.approx(gaps.mean() / gaps.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("topics", [3, 8, 43])
def test_wilcoxon_without_ties_is_scipys_exact_one(topics: int, alternative: str) -> None:
    first, second = np.random.default_rng(topics).normal((0.0, 0.2), 1, (topics, 2)).T
    theirs = scipy_stats.wilcoxon(second, first, alternative=alternative, method="exact")
    ours = paired_test(first, second, "wilcoxon", alternative=alternative)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert ours.exact
    most = topics * (topics + 1) / 2
    assert theirs.statistic == (
        ours.statistic if alternative != "two-sided" else min(ours.statistic, most - ours.statistic)
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_over_many_topics_is_scipys_normal_one(alternative: str) -> None:
    scores = np.random.default_rng(1).integers(0, 11, (2, 400)) / 8  # eighths: exact in floats, so scipy sees the ties
    theirs = scipy_stats.wilcoxon(scores[1], scores[0], alternative=alternative, method="approx", correction=False)
    ours = paired_test(*scores, "wilcoxon", alternative=alternative)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert not ours.exact


@given(TENTHS)
def test_wilcoxon_and_sign_with_ties_by_enumeration(tenths: list[tuple[int, int]]) -> None:
    """Ranks and signs of whole numbers; P@10-like scores give the same, though 0.3 - 0.2 is not 0.2 - 0.1."""
    gaps = [second - first for first, second in tenths if first != second]
    first, second = (np.array(tenths).T) / 10
    doubled = [2 * sum(abs(b) < abs(a) for b in gaps) + sum(abs(b) == abs(a) for b in gaps) + 1 for a in gaps]
    for method, weights in (("wilcoxon", doubled), ("sign", [1] * len(gaps))):
        seen = sum(weight for weight, gap in zip(weights, gaps, strict=True) if gap > 0)
        every = [sum(itertools.compress(weights, kept)) for kept in itertools.product((0, 1), repeat=len(gaps))]
        upper, lower = (sum(map(test, every)) / len(every) for test in (seen.__le__, seen.__ge__))
        result = {a: paired_test(first, second, method, alternative=a).p for a in ALTERNATIVES}
        expected = {"two-sided": min(1, 2 * min(upper, lower)), "greater": upper, "less": lower}
        assert result == pytest.approx(expected if gaps else dict.fromkeys(ALTERNATIVES, 1.0), rel=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_sign_is_scipys_binomial_test(alternative: str) -> None:
    first, second = _pair(60)
    wins, losses = int((second > first).sum()), int((second < first).sum())
    ours = paired_test(first, second, "sign", alternative=alternative)
    assert ours.p == pytest.approx(scipy_stats.binomtest(wins, wins + losses, alternative=alternative).pvalue, rel=1e-9)
    assert ours.statistic == wins


# --- Randomization


@given(TENTHS)
def test_randomization_by_enumeration_of_whole_numbers(tenths: list[tuple[int, int]]) -> None:
    gaps = [second - first for first, second in tenths]
    sums = [
        sum(s * gap for s, gap in zip(signs, gaps, strict=True))
        for signs in itertools.product((-1, 1), repeat=len(gaps))
    ]
    expected = {
        "two-sided": sum(abs(x) >= abs(sum(gaps)) for x in sums) / len(sums),
        "greater": sum(x >= sum(gaps) for x in sums) / len(sums),
        "less": sum(x <= sum(gaps) for x in sums) / len(sums),
    }
    first, second = np.array(tenths).T / 10
    assert {a: paired_test(first, second, alternative=a).p for a in ALTERNATIVES} == expected


@pytest.mark.parametrize("unit", [10, 3, 7, 1000])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_ties_with_the_observed_sum_count_as_in_integer_arithmetic(alternative: str, unit: int) -> None:
    """43 topics, small whole numbers: a share of the drawn sums equals the observed one, whatever floats make of it."""
    whole = np.random.default_rng(unit).integers(0, 11, (2, 43))
    gaps = whole[1] - whole[0]
    sums = np.concatenate(list(SignFlips(43, 20_000, 0).blocks())).astype(int) @ gaps
    seen = gaps.sum()
    reached = {"two-sided": abs(sums) >= abs(seen), "greater": sums >= seen, "less": sums <= seen}[alternative]
    assert (sums == seen).sum() > 50
    ours = paired_test(whole[0] / unit, whole[1] / unit, alternative=alternative, resamples=20_000)
    assert ours.p == (reached.sum() + 1) / 20_001


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("topics", [2, 9, 12])
def test_exact_randomization_is_scipys(topics: int, alternative: str) -> None:
    first, second = _pair(topics)
    theirs = scipy_stats.permutation_test(
        (second, first),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative=alternative,
    )
    ours = paired_test(first, second, alternative=alternative)
    assert (ours.p, ours.statistic) == pytest.approx((theirs.pvalue, theirs.statistic), rel=1e-12)
    assert (ours.exact, ours.resamples, ours.seed) == (True, 2**topics, None)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_drawn_randomization_is_near_the_exact_one(alternative: str) -> None:
    first, second = _pair(14)
    exact = paired_test(first, second, alternative=alternative, resamples=2**14).p
    drawn = paired_test(first, second, alternative=alternative, resamples=2**14 - 1, seed=4)
    assert not drawn.exact
    assert abs(drawn.p - exact) < 4 * math.sqrt(exact * (1 - exact) / 2**14)
    assert drawn.p * 2**14 == pytest.approx(round(drawn.p * 2**14))  # (b + 1) / (B + 1)


@pytest.mark.parametrize("method", ["randomization", "bootstrap", "studentized"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("topics", "level"), [(6, 0.9), (7, 0.95), (20, 0.95), (43, 0.8), (60, 0.95), (5, 0.99)])
def test_an_interval_holds_the_shifts_that_are_not_rejected(
    method: str, alternative: str, topics: int, level: float
) -> None:
    first, second = _pair(topics, seed=topics)
    options = {"alternative": alternative, "level": level, "resamples": 2000, "seed": 1}
    low, high = paired_test(first, second, method, **options).interval
    for limit, outwards in ((low, -1), (high, 1)):
        if math.isinf(limit):
            # nothing so far out is rejected: a one-sided test looks the other way, or the topics are too few
            assert not paired_test(first, second - outwards * 1e3, method, **options).significant
        else:
            assert not paired_test(first, second - limit + outwards * 1e-7, method, **options).significant
            assert paired_test(first, second - limit - outwards * 1e-7, method, **options).significant


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("topics", [8, 25])
def test_p_and_interval_never_disagree_about_zero(topics: int, alternative: str) -> None:
    """Scores in tenths: many subsets of topics have a mean difference of 0, and that is where intervals end."""
    ends_at_zero = 0
    for seed in range(60):
        scores = np.random.default_rng(seed).integers(0, 4, (2, topics)) / 10
        level = 0.8 if seed % 2 else 0.9
        result = paired_test(*scores, alternative=alternative, resamples=300, level=level)
        low, high = result.interval
        assert result.significant == (low > 0 or high < 0), seed
        ends_at_zero += 0.0 in {low, high}
    assert ends_at_zero >= 2


def test_few_topics_cannot_be_significant_and_the_interval_says_so() -> None:
    """5 topics: the least two-sided p is 2/32 = 0.0625; 6: 2/64, and the interval ends at the extreme topics."""
    first, second = np.zeros(6), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    five = paired_test(first[:5], second[:5])
    assert (five.p, five.interval) == (0.0625, (-math.inf, math.inf))
    six = paired_test(first, second)
    assert six.p == 2 / 64
    assert six.interval == pytest.approx((0.1, 0.6))  # beyond it, the topic 0.1 alone makes it 4/64


def test_ratio_permutes_the_logarithms() -> None:
    first, second = _pair(12)
    ours = paired_test(first, second, "ratio", floor=1e-3)
    logs = [np.log(np.maximum(scores, 1e-3)) for scores in (first, second)]
    same = paired_test(*logs)
    assert (ours.p, ours.interval, ours.difference, ours.effect) == (
        same.p,
        same.interval,
        same.difference,
        same.effect,
    )
    geometric = [scipy_stats.gmean(np.maximum(scores, 1e-3)) for scores in (first, second)]
    assert ours.statistic == pytest.approx(geometric[1] / geometric[0], rel=1e-12)


# --- Bootstrap


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("method", "theirs"), [("bootstrap", "basic"), ("bca", "BCa")])
def test_bootstrap_intervals_are_scipys_but_for_chance(method: str, theirs: str, alternative: str) -> None:
    first, second = _pair(100)
    ours = paired_test(first, second, method, alternative=alternative, resamples=20_000, level=0.9)
    assert ours.test == method
    scipys = scipy_stats.bootstrap(
        (second - first,),
        np.mean,
        method=theirs,
        n_resamples=20_000,
        confidence_level=0.9,
        alternative=alternative,
        rng=np.random.default_rng(0),
    )
    assert ours.interval == pytest.approx(
        tuple(scipys.confidence_interval), abs=0.0012
    )  # a tenth of the standard error


def test_bca_interval_is_that_of_the_means_over_topics() -> None:
    first, second = _pair(100)
    ours = paired_test(first, second, "bca", resamples=20_000)
    assert ours.test == "bca"
    assert ours.interval == pytest.approx(
        mean_intervals((second - first)[None], IntervalMethod(resamples=20_000))[0], abs=0.0012
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_bca_p_is_one_less_the_level_whose_interval_ends_at_zero(alternative: str) -> None:
    for seed in range(6):
        first, second = _pair(100, seed, shift=0.01 if alternative != "less" else -0.01)
        p = paired_test(first, second, "bca", alternative=alternative, resamples=10_000).p
        if alternative != "two-sided" and p >= 0.45:
            continue
        result = paired_test(first, second, "bca", alternative=alternative, resamples=10_000, level=1 - p)
        assert min(abs(limit) for limit in result.interval) < 6e-4


def test_shifted_bootstrap_by_enumeration() -> None:
    """Three topics: all 27 resamples by hand give the share that drawn ones come near, and the interval inverts it."""
    gaps = np.array([0.1, 0.3, 0.8])
    every = [np.mean(drawn) - gaps.mean() for drawn in itertools.product(gaps, repeat=3)]
    expected = np.mean(np.abs(every) >= gaps.mean() - 1e-12)
    assert 0 < expected < 1
    (ours,) = bootstrap.percentile(gaps[None], np.array([1e-12]), Options(resamples=50_000))
    assert abs(ours.p - expected) < 4 * math.sqrt(expected * (1 - expected) / 50_000)
    assert ours.interval == (pytest.approx(0.1), pytest.approx(0.7))  # 1/27 are 0.4 away, and 2/27 at least 0.3


def test_studentized_by_enumeration() -> None:
    gaps = np.array([-0.3, 0.3, 0.8, -0.25, 0.1])
    t = gaps.mean() / scipy_stats.sem(gaps)
    every = []
    for drawn in itertools.product(gaps, repeat=5):
        moved = np.mean(drawn) - gaps.mean()
        every.append(moved / scipy_stats.sem(drawn) if len(set(drawn)) > 1 else math.copysign(math.inf, moved))
    upper = np.mean(np.array(every) >= t)
    (ours,) = bootstrap.studentized(gaps[None], np.array([1e-12]), Options("greater", resamples=50_000))
    assert ours.statistic == pytest.approx(t, rel=1e-12)
    assert abs(ours.p - upper) < 4 * math.sqrt(upper * (1 - upper) / 50_000)


# --- Bayes


def test_posterior_is_students_distribution_about_the_mean() -> None:
    first, second = _pair(43)
    gaps = second - first
    belief = scipy_stats.t(42, gaps.mean(), scipy_stats.sem(gaps))
    result = paired_test(first, second, "bayes", rope=0.02)
    after = result.posterior
    assert math.isnan(result.p)
    assert not result.significant
    assert (after.higher, after.lower) == pytest.approx((belief.sf(0), belief.cdf(0)), rel=1e-9)
    assert (after.practically_higher, after.equivalent, after.practically_lower) == pytest.approx(
        (belief.sf(0.02), belief.cdf(0.02) - belief.cdf(-0.02), belief.cdf(-0.02)), rel=1e-9
    )
    assert result.interval == pytest.approx(belief.interval(0.95), rel=1e-9)
    assert after.lower == pytest.approx(paired_test(first, second, "t", alternative="greater").p, rel=1e-12)
