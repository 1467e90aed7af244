"""Paired tests without resampling: Student, Wilcoxon, signs, the Bayesian t, and Hall's correction for skewness."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import spread
from judged.stats.results import Options, PairedResult, Posterior
from judged.stats.student import student_cdf, student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.results.types import Floats
    from judged.stats.results import Difference


EXACT_RANKS = 100  # topics up to which Wilcoxon's null distribution is computed in full


def student(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row of (P, T) is 0 by Student's t; no row may be constant."""
    from scipy.special import stdtr, stdtrit

    topics = differences.shape[1]
    quantile = float(stdtrit(topics - 1, (1 + options.two_sided_level) / 2))
    results: list[PairedResult] = []
    for mean, error in _means_and_errors(differences):
        t = mean / error
        p = options.p_of(float(stdtr(topics - 1, t)), float(stdtr(topics - 1, -t)))
        results.append(PairedResult(t, p, options.interval(mean - quantile * error, mean + quantile * error)))
    return results


def bayes(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Compute the posterior of each mean difference for normal differences and the reference prior 1 / sigma."""
    # (mean difference - its true value) / standard error has Student's t distribution, so the credible interval equals
    # the confidence interval of the t-test.
    from scipy.special import stdtr, stdtrit

    topics = differences.shape[1]
    quantile = float(stdtrit(topics - 1, (1 + options.two_sided_level) / 2))
    results: list[PairedResult] = []
    for mean, error in _means_and_errors(differences):
        higher, above, below = (
            float(stdtr(topics - 1, t))
            for t in (mean / error, (mean - options.rope) / error, (-options.rope - mean) / error)
        )
        lower = float(stdtr(topics - 1, -mean / error))
        posterior = Posterior(higher, lower, above, max(0.0, 1 - above - below), below, options.rope)
        limits = options.interval(mean - quantile * error, mean + quantile * error)
        results.append(PairedResult(higher, math.nan, limits, posterior=posterior))
    return results


def wilcoxon(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Test by Wilcoxon's signed ranks whether each row of (P, T) is symmetric about 0."""
    # Differences of 0 are dropped before ranking (Wilcoxon's convention, not Pratt's); ties share their mean rank. Up
    # to `EXACT_RANKS` topics the null distribution is exact, even with ties. Above, it is normal with the variance
    # corrected for ties, without a continuity correction. The statistic is the rank sum of the topics where the second
    # system is higher.
    results: list[PairedResult] = []
    for row in differences:
        non_zero = row[row != 0]
        double_ranks = _double_ranks(np.abs(non_zero))
        double_rank_sum = int(double_ranks[non_zero > 0].sum())
        exact = len(non_zero) <= EXACT_RANKS
        if exact:
            probabilities = _rank_sum_distribution(double_ranks)
            lower = float(probabilities[: double_rank_sum + 1].sum())
            upper = float(probabilities[double_rank_sum:].sum())
        else:
            z = (double_rank_sum - double_ranks.sum() / 2) / math.sqrt(float((double_ranks**2).sum()) / 4)
            lower, upper = math.erfc(-z / math.sqrt(2)) / 2, math.erfc(z / math.sqrt(2)) / 2
        p, note = options.p_of(lower, upper), _dropped_note(row, non_zero)
        results.append(PairedResult(double_rank_sum / 2, p, exact=exact, note=note))
    return results


def signs(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Test the number of wins of each row of (P, T) against a fair coin; differences of 0 are dropped."""
    from scipy.special import bdtr

    results: list[PairedResult] = []
    for row in differences:
        non_zero = row[row != 0]
        wins = int(np.count_nonzero(non_zero > 0))
        lower, upper = (float(bdtr(successes, len(non_zero), 0.5)) for successes in (wins, len(non_zero) - wins))
        p, note = options.p_of(lower, upper), _dropped_note(row, non_zero)
        results.append(PairedResult(float(wins), p, exact=True, note=note))
    return results


def _means_and_errors(differences: Floats) -> list[tuple[float, float]]:
    errors = differences.std(axis=1, ddof=1) / math.sqrt(differences.shape[1])
    return list(zip(differences.mean(axis=1).tolist(), errors.tolist(), strict=True))


def _double_ranks(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return twice the mean rank of each value: integers."""
    _, group, group_sizes = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(group_sizes)
    return (2 * last - group_sizes + 1)[group.ravel()]


def _rank_sum_distribution(double_ranks: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Return the null distribution of the doubled rank sum; each rank is included with probability 1/2."""
    probabilities = np.zeros(int(double_ranks.sum()) + 1)
    probabilities[0] = 1.0
    for rank in double_ranks.tolist():
        shifted = probabilities[:-rank].copy()
        probabilities[rank:] += shifted
        probabilities /= 2
    return probabilities


def _dropped_note(row: Floats, non_zero: Floats) -> str:
    ties = len(row) - len(non_zero)
    return f"the test ignores {ties} of {len(row)} topics, because the difference is 0 on these topics" if ties else ""


HALL = "; slices show the larger p-value and the wider CI of two tests: this test and Hall's test for skewed data"
"""Text for captions, after the name of the test."""


def with_hall_tests(gaps: Iterable[Floats], tests: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the tests with the larger p-value of each test and Hall's, and the wider of their intervals."""
    # Sign-flip tests and Student's t assume symmetric differences: for a dozen topics with many small losses and a few
    # large gains, they reject a mean of 0 twice too often. Hall's transformation removes the skewness of t (Hall 1992).
    # No test detects skewness that the sample does not show. `gaps`: P rows of (T,), the tested differences with NaN
    # for missing ones.
    return tuple(_with_hall_test(test, row[~np.isnan(row)]) for test, row in zip(tests, gaps, strict=True))


def _with_hall_test(test: Difference, gaps: Floats) -> Difference:
    assumes_symmetry = test.test in {"randomization", "t", "ratio"} and not math.isnan(test.p)
    if not assumes_symmetry or len(gaps) < 3 or not spread(gaps):
        return test
    p, low, high = _hall_test(gaps, Options(test.alternative, test.level))
    interval = None if test.interval is None else (min(test.interval[0], low), max(test.interval[1], high))
    return replace(test, p=max(test.p, p), interval=interval)


def _hall_test(gaps: Floats, options: Options) -> tuple[float, float, float]:
    """Return the p-value and the limits of Hall's monotone cubic transformation of Student's t."""
    n, mean, deviation = len(gaps), float(gaps.mean()), gaps - gaps.mean()
    error = float(gaps.std(ddof=1)) / math.sqrt(n)
    scaled = deviation / np.abs(deviation).max()  # avoids underflow of cubes
    skewness = float((scaled**3).mean() / (scaled**2).mean() ** 1.5) * math.sqrt(n * (n - 1)) / (n - 2)
    skew = skewness / math.sqrt(n)

    def transform(t: float) -> float:
        return t + skew / 3 * t**2 + skew**2 / 27 * t**3 + skew / 6

    def inverse(quantile: float) -> float:
        return 3 / skew * (math.cbrt(1 + skew * (quantile - skew / 6)) - 1) if abs(skew) > 1e-9 else quantile

    statistic = transform(mean / error)
    lower, upper = student_cdf(statistic, n - 1), student_cdf(-statistic, n - 1)
    quantile = student_quantile((1 + options.two_sided_level) / 2, n - 1)
    limits = options.interval(mean - inverse(quantile) * error, mean - inverse(-quantile) * error)
    return options.p_of(lower, upper), *limits
