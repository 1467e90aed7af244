"""Paired tests without resampling: Student, Wilcoxon, signs, and the Bayesian reading of Student's t."""

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
    """Test whether the mean of each row of (P, T) is 0 by Student's t; no row may hold one value only."""
    from scipy.special import stdtr, stdtrit

    topics = differences.shape[1]
    half = float(stdtrit(topics - 1, (1 + options.two_sided_level) / 2))
    found: list[PairedResult] = []
    for mean, error in _means_and_errors(differences):
        t = mean / error
        p = options.p_of(float(stdtr(topics - 1, t)), float(stdtr(topics - 1, -t)))
        found.append(PairedResult(t, p, options.interval(mean - half * error, mean + half * error)))
    return found


def bayes(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Give the posterior of each mean difference under normal differences and the reference prior 1 / sigma."""
    # (mean difference - its true value) / standard error then has Student's t distribution: the interval is that of the
    # t-test, but it may be read as "the true mean difference is in here with this probability".
    from scipy.special import stdtr, stdtrit

    topics = differences.shape[1]
    half = float(stdtrit(topics - 1, (1 + options.two_sided_level) / 2))
    found: list[PairedResult] = []
    for mean, error in _means_and_errors(differences):
        higher, above, below = (
            float(stdtr(topics - 1, t))
            for t in (mean / error, (mean - options.rope) / error, (-options.rope - mean) / error)
        )
        lower = float(stdtr(topics - 1, -mean / error))
        posterior = Posterior(higher, lower, above, max(0.0, 1 - above - below), below, options.rope)
        limits = options.interval(mean - half * error, mean + half * error)
        found.append(PairedResult(higher, math.nan, limits, posterior=posterior))
    return found


def wilcoxon(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Test by Wilcoxon's signed ranks whether each row of (P, T) is symmetric about 0."""
    # Differences of 0 are dropped before ranking (Wilcoxon's own convention, not Pratt's); equal sizes share their mean
    # rank. Up to `EXACT_RANKS` topics the null distribution is exact, ties or not; above, it is normal with the
    # variance that ties leave, without a continuity correction. The statistic is the sum of the ranks of the topics
    # where the second system is higher.
    found: list[PairedResult] = []
    for row in differences:
        seen = row[row != 0]
        doubled = _doubled_ranks(np.abs(seen))
        total = int(doubled[seen > 0].sum())
        exact = len(seen) <= EXACT_RANKS
        if exact:
            chances = _rank_sum_chances(doubled)
            lower, upper = float(chances[: total + 1].sum()), float(chances[total:].sum())
        else:
            z = (total - doubled.sum() / 2) / math.sqrt(float((doubled**2).sum()) / 4)
            lower, upper = math.erfc(-z / math.sqrt(2)) / 2, math.erfc(z / math.sqrt(2)) / 2
        found.append(PairedResult(total / 2, options.p_of(lower, upper), exact=exact, note=_dropped(row, seen)))
    return found


def signs(differences: Floats, _rounding: Floats, options: Options) -> list[PairedResult]:
    """Count wins of each row of (P, T) against a fair coin; differences of 0 are dropped. Statistic: the wins."""
    from scipy.special import bdtr

    found: list[PairedResult] = []
    for row in differences:
        seen = row[row != 0]
        wins = int(np.count_nonzero(seen > 0))
        lower, upper = (float(bdtr(most, len(seen), 0.5)) for most in (wins, len(seen) - wins))
        found.append(PairedResult(float(wins), options.p_of(lower, upper), exact=True, note=_dropped(row, seen)))
    return found


def _means_and_errors(differences: Floats) -> list[tuple[float, float]]:
    """Give the mean of each row, and its standard error."""
    errors = differences.std(axis=1, ddof=1) / math.sqrt(differences.shape[1])
    return list(zip(differences.mean(axis=1).tolist(), errors.tolist(), strict=True))


def _doubled_ranks(sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Give twice the mean rank of each value: whole numbers."""
    _, group, members = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(members)
    return (2 * last - members + 1)[group.ravel()]


def _rank_sum_chances(doubled: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Give the chance of each sum of ranks (doubled) when each rank counts with probability one half."""
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled.tolist():
        shifted = chances[:-rank].copy()
        chances[rank:] += shifted
        chances /= 2
    return chances


def _dropped(row: Floats, seen: Floats) -> str:
    """Say how many differences of 0 the test left out."""
    ties = len(row) - len(seen)
    return f"{ties} of {len(row)} topics without a difference do not count in this test" if ties else ""


SECOND = "; on slices with Hall's test too, which sees skewness, the larger p and the wider interval"
"""What captions say of it, behind the name of the test."""


def allowing_for_skew(gaps: Iterable[Floats], tests: Sequence[Difference]) -> tuple[Difference, ...]:
    """Take the larger p-value of each test and of Hall's, and the wider of their limits."""
    # Tests that flip signs, and Student's t, take differences to spread alike to both sides: of a dozen topics with
    # many small losses and a few large gains they reject a mean of 0 twice as often as they say. Hall's transformation
    # of t takes the skewness out of it (Hall 1992). What none of the topics shows, no test sees. `gaps`: P rows of
    # (T,): the differences that were tested, NaN where a topic has none.
    return tuple(_larger(test, row[~np.isnan(row)]) for test, row in zip(tests, gaps, strict=True))


def _larger(test: Difference, gaps: Floats) -> Difference:
    symmetric = test.test in {"randomisation", "t", "ratio"} and not math.isnan(test.p)
    if not symmetric or len(gaps) < 3 or not spread(gaps):
        return test
    p, low, high = _hall(gaps, Options(test.alternative, test.level))
    interval = None if test.interval is None else (min(test.interval[0], low), max(test.interval[1], high))
    return replace(test, p=max(test.p, p), interval=interval)


def _hall(gaps: Floats, options: Options) -> tuple[float, float, float]:
    """Give the p-value, and the limits, of Hall's monotone cubic of Student's t."""
    n, mean, deviation = len(gaps), float(gaps.mean()), gaps - gaps.mean()
    error = float(gaps.std(ddof=1)) / math.sqrt(n)
    apart = deviation / np.abs(deviation).max()  # of tiny differences the cubes would vanish
    skewness = float((apart**3).mean() / (apart**2).mean() ** 1.5) * math.sqrt(n * (n - 1)) / (n - 2)
    lean = skewness / math.sqrt(n)

    def symmetric(t: float) -> float:
        return t + lean / 3 * t**2 + lean**2 / 27 * t**3 + lean / 6

    def back(quantile: float) -> float:
        return 3 / lean * (math.cbrt(1 + lean * (quantile - lean / 6)) - 1) if abs(lean) > 1e-9 else quantile

    seen = symmetric(mean / error)
    lower, upper = student_cdf(seen, n - 1), student_cdf(-seen, n - 1)
    quantile = student_quantile((1 + options.two_sided_level) / 2, n - 1)
    limits = options.interval(mean - back(quantile) * error, mean - back(-quantile) * error)
    return options.p_of(lower, upper), *limits
