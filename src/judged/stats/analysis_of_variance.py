"""Analysis of variance and rank tests of many systems over the same topics."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.stats.blocked_results import (
    NO_RESIDUAL,
    AllPairs,
    Anova,
    CompleteScores,
    Factor,
    Friedman,
    complete_scores,
    significance,
)
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged.results.types import Floats

    Tail: TypeAlias = Callable[[Floats], Floats]


def anova(values: ArrayLike) -> Anova:
    """Split the variance of scores into systems, topics, and the residual.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.

    Returns
    -------
    Anova
        F, p, and shares of the variance of both factors. Fewer than two topics: F and p are NaN. No residual variance:
        F is infinite and p is 0 for a factor that varies, and p is 1 for a factor that does not.

    Raises
    ------
    InputError
        If there are fewer than two systems, or a score is infinite.

    Notes
    -----
    There is one score for each system and topic, so the residual contains their interaction (Tague-Sutcliffe and
    Blustein 1995). With two systems F is the square of the paired t.

    Examples
    --------
    >>> table = anova([[0.2, 0.4, 0.6], [0.3, 0.4, 0.8]])
    >>> round(table.systems.f, 3), round(table.systems.p, 3), round(table.topics.eta_squared, 3)
    (3.0, 0.225, 0.894)
    """
    return anova_of_scores(complete_scores(values))


def anova_of_scores(blocks: CompleteScores) -> Anova:
    """Compute the table of `anova` from complete scores."""
    from scipy.special import fdtrc

    scores, n, systems = blocks.scores, blocks.n, len(blocks.scores)
    if not n:
        return _empty_anova(systems, blocks)
    grand_mean = scores.mean()
    system, topic = scores.mean(axis=1) - grand_mean, scores.mean(axis=0) - grand_mean
    residual = scores - grand_mean - system[:, np.newaxis] - topic
    squares = [_sum_of_squares(effects, blocks.tolerance) for effects in (system, topic, residual)]
    ss_systems, ss_topics, ss_residual = n * squares[0], systems * squares[1], squares[2]
    df = (systems - 1, n - 1, (systems - 1) * (n - 1))
    total = ss_systems + ss_topics + ss_residual
    variance = ss_residual / df[2] if df[2] else math.nan

    def factor(ss: float, ss_df: int) -> Factor:
        mean_square = ss / ss_df if ss_df else math.nan
        f = _divide(mean_square, variance)
        p = float(fdtrc(ss_df, df[2], f)) if math.isfinite(f) else 0.0 if f > 0 else math.nan
        if n > 1 and ss == 0.0:
            p = 1.0
        return Factor(
            squares=ss,
            df=ss_df,
            mean_square=mean_square,
            f=f,
            p=p,
            eta_squared=_divide(ss, total),
            omega_squared=_divide(ss - ss_df * variance, total + variance),
            partial_eta_squared=_divide(ss, ss + ss_residual),
            partial_omega_squared=_divide(ss - ss_df * variance, ss + (systems * n - ss_df) * variance),
        )

    note = blocks.note or (NO_RESIDUAL if ss_residual == 0.0 and ss_systems > 0.0 else "")
    factors = factor(ss_systems, df[0]), factor(ss_topics, df[1])
    return Anova(*factors, ss_residual, df[2], variance, total, n, blocks.left_out, note)


def _empty_anova(systems: int, blocks: CompleteScores) -> Anova:
    nan = math.nan
    system, topic = (Factor(nan, df, nan, nan, nan, nan, nan, nan, nan) for df in (systems - 1, 0))
    return Anova(system, topic, nan, 0, nan, nan, 0, blocks.left_out, blocks.note)


def _sum_of_squares(effects: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tolerance: float) -> float:
    """Return the sum of squares, or 0 if the effects are only rounding error."""
    return float((effects**2).sum()) if np.abs(effects).max() > tolerance else 0.0


def _divide(numerator: float, denominator: float) -> float:
    if denominator == 0.0:
        return math.inf if numerator > 0.0 else math.nan
    return numerator / denominator


_STEP = 0.1  # step of the numerical integral over a mean; 0.25 is too large for 1000 systems
_NORMAL_LIMIT = 9.0  # standard deviations beyond which the normal density is negligible
_MAX_WIDTH = 54.0  # the probability of a wider range of normals underflows
_MIN_Q = 1e-9  # smaller quantiles are replaced by it; p is 1 within the same error
_MAX_CELLS = 1 << 20  # numbers in memory at a time


def studentized_range_tail(q: Floats, systems: int, df: float) -> Floats:
    """Return P(Q > q) for the studentized range of `systems` means.

    >>> round(float(studentized_range_tail(np.array([3.578]), 3, 20)[0]), 4)
    0.05
    """
    # Harter (1960) gives 3.578 as the upper 5% point for 3 means and 20 degrees of freedom.
    # `q`: (P,), from 0; infinity gives 0, NaN gives NaN. `systems`: at least 2. `df`: of the variance, 1 to infinity.
    return _studentized_tail(q, df, lambda width: _normal_range_tail(width, systems))


def baseline_tail(q: Floats, systems: int, df: float) -> Floats:
    """Return the probability that any of `systems` means differs from the baseline by more than q standard errors.

    >>> round(float(baseline_tail(np.array([2.578 * 2**0.5]), 4, 30)[0]), 4)
    0.05
    """
    # Dunnett (1964) gives 2.58 as the two-sided 5% point for 4 means besides the baseline and 30 degrees of freedom.
    # q is in standard errors of one mean, as for the range, so Dunnett's t is `q / sqrt(2)`. The differences from the
    # baseline are correlated by 1/2.
    return _studentized_tail(q, df, lambda width: _normal_baseline_tail(width, systems))


@lru_cache(maxsize=256)
def studentized_range_critical(systems: int, df: float, probability: float) -> float:
    """Return the q that the studentized range exceeds with this probability.

    >>> round(studentized_range_critical(3, 20, 0.05), 4)
    3.5779
    """
    return _find_quantile(lambda q: studentized_range_tail(q, systems, df), probability)


@lru_cache(maxsize=256)
def baseline_critical(systems: int, df: float, probability: float) -> float:
    """Return the q with ``baseline_tail(q) == probability``.

    >>> round(baseline_critical(4, 30, 0.05) / 2**0.5, 2)
    2.58
    """
    return _find_quantile(lambda q: baseline_tail(q, systems, df), probability)


def _find_quantile(tail: Tail, probability: float) -> float:
    """Find the quantile by evaluating the tail at ever finer grids of points."""
    low, high = 0.0, 1.0
    while tail(np.array([high]))[0] > probability:
        low, high = high, 2.0 * high
    for _ in range(12):
        points = np.linspace(low, high, 33)[1:-1]
        is_below_quantile = tail(points) > probability
        low = float(points[is_below_quantile][-1]) if is_below_quantile.any() else low
        high = float(points[~is_below_quantile][0]) if not is_below_quantile.all() else high
    return (low + high) / 2.0


def _normal_range_tail(width: Floats, systems: int) -> Floats:
    """Return the probability that the range of standard normals exceeds each width: (N,)."""
    # Condition on the maximum z: all others are below it, but not all within the width.
    from scipy.special import ndtr

    z = _multiples(-_NORMAL_LIMIT, float(width.max()) / 2.0 + _NORMAL_LIMIT, _STEP)
    below = ndtr(z)
    with np.errstate(divide="ignore"):
        not_all_within = -np.expm1((systems - 1) * np.log1p(-np.minimum(ndtr(z - width[:, np.newaxis]) / below, 1.0)))
    return not_all_within @ (systems * _weighted_normal_density(z) * below ** (systems - 1))


def _normal_baseline_tail(width: Floats, systems: int) -> Floats:
    """Return the probability that any of `systems` standard normals differs from another by more than each width."""
    from scipy.special import ndtr

    limit = float(width.max()) / 2.0 + _NORMAL_LIMIT
    z = _multiples(-limit, limit, _STEP)
    outside = ndtr(z - width[:, np.newaxis]) + ndtr(-z - width[:, np.newaxis])
    with np.errstate(divide="ignore"):
        any_outside = -np.expm1(systems * np.log1p(-np.minimum(outside, 1.0)))
    return any_outside @ _weighted_normal_density(z)


def _multiples(first: float, last: float, step: float) -> Floats:
    """Return the multiples of the step from `first` to `last`, both included."""
    return np.arange(math.floor(first / step), math.ceil(last / step) + 1, dtype=np.float64) * step


def _weighted_normal_density(z: Floats) -> Floats:
    """Return the standard normal density times the integration step."""
    return np.exp(-z * z / 2.0) * (_STEP / math.sqrt(2.0 * math.pi))


def _studentized_tail(q: Floats, df: float, tail: Tail) -> Floats:
    p = np.where(q > 0, 0.0, 1.0)
    p[np.isnan(q)] = np.nan
    distinct, inverse = np.unique(q[(q > 0) & np.isfinite(q)], return_inverse=True)
    distinct, size = np.maximum(distinct, _MIN_Q), 4096
    chunks = [_average_over_scale(distinct[i : i + size], df, tail) for i in range(0, len(distinct), size)]
    if chunks:
        p[(q > 0) & np.isfinite(q)] = np.minimum(np.concatenate(chunks), 1.0)[inverse.ravel()]
    return p


def _average_over_scale(q: Floats, df: float, tail: Tail) -> Floats:
    """Average a tail over the distribution of the estimated scale, for ascending quantiles: (P,)."""
    if math.isinf(df):
        return _tail_in_blocks(q, tail)
    spread = 1.0 / math.sqrt(2.0 * df)  # standard deviation of the logarithm of the scale
    step = min(0.6 * spread, 0.15)
    left_limit, right_limit = max(12.0 * spread, 45.0 / df), 10.0 * spread
    total_density = float(_log_scale_density(_multiples(-left_limit, right_limit, step), df).sum())
    first = math.log(q[0]) - 0.5 * math.log1p(q[0] ** 2 / (2.0 * df)) - left_limit  # small scales matter in far tails
    last = min(math.log(_MAX_WIDTH), math.log(q[-1]) + right_limit)
    points = _multiples(first, last, step)
    averages, size = np.zeros(len(q)), max(64, _MAX_CELLS // max(len(q), 256))
    for start in range(0, len(points), size):
        log_scales = points[start : start + size]
        averages += _log_scale_density(log_scales - np.log(q)[:, np.newaxis], df) @ _tail_in_blocks(
            np.exp(log_scales), tail
        )
    return averages / total_density


def _tail_in_blocks(width: Floats, tail: Tail) -> Floats:
    """Return the tail at each width, computed in blocks; 0 where it would underflow."""
    tails = np.zeros(len(width))
    computable = np.flatnonzero(width <= _MAX_WIDTH)
    for start in range(0, len(computable), 4096):
        block = computable[start : start + 4096]
        tails[block] = tail(width[block])
    return tails


def _log_scale_density(x: Floats, df: float) -> Floats:
    """Return the density of log sqrt(chi-square / df), up to a constant factor."""
    return np.exp(df * (x - np.expm1(2.0 * x) / 2.0))


def friedman(values: ArrayLike) -> Friedman:
    """Test whether systems have different expected ranks within topics.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.

    Returns
    -------
    Friedman
        Fewer than two topics: NaN. All scores of every topic equal: p is 1. All topics rank the systems in the same
        order: F is infinite, and its p is the share of all arrangements of the ranks with this property.

    Raises
    ------
    InputError
        If there are fewer than two systems, or a score is infinite.

    Notes
    -----
    Friedman (1937) with the correction for ties; F by Iman and Davenport (1980). Scores that are equal within rounding
    are ties.

    Examples
    --------
    >>> test = friedman([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.ranks.tolist(), round(test.chi_square, 3), round(test.p, 4), round(test.f_p, 4)
    ([2.875, 2.125, 1.0], 7.6, 0.0224, 0.0001)
    """
    from scipy.special import chdtrc, fdtrc

    blocks = complete_scores(values)
    systems, n = len(blocks.scores), blocks.n
    df, f_df = systems - 1, (systems - 1, (systems - 1) * max(n - 1, 0))
    ranks = _ranks(blocks)
    if n < 2:
        nan = math.nan
        return Friedman(_mean(ranks), nan, df, nan, nan, f_df, nan, nan, n, blocks.left_out, blocks.note)
    expected_rank = (systems + 1) / 2
    ss_total = float(((ranks - expected_rank) ** 2).sum())
    ss_systems = float(n * ((_mean(ranks) - expected_rank) ** 2).sum())
    if ss_total == 0.0:
        note = "all systems have equal scores on every topic"
        return Friedman(_mean(ranks), 0.0, df, 1.0, 0.0, f_df, 1.0, math.nan, n, blocks.left_out, note)
    concordance = ss_systems / ss_total
    chi_square = n * df * concordance
    if math.isclose(concordance, 1.0, rel_tol=1e-12):
        f, f_p = math.inf, _p_of_equal_rankings(ranks)
    else:
        f = (n - 1) * concordance / (1.0 - concordance)
        f_p = float(fdtrc(*f_df, f))
    return Friedman(
        _mean(ranks), chi_square, df, float(chdtrc(df, chi_square)), f, f_df, f_p, concordance, n, blocks.left_out
    )


def nemenyi(values: ArrayLike, *, level: float = 0.95) -> AllPairs:
    """Compare all pairs of systems by their mean ranks within topics (Nemenyi 1963).

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    level
        Confidence level of the family, for `critical` and `significant`.

    Returns
    -------
    AllPairs
        With mean ranks and their critical difference. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, a score is infinite, or `level` is not between 0 and 1.

    Notes
    -----
    Two systems differ if their mean ranks differ by more than q(level) * sqrt(S (S + 1) / (12 n)), with the
    studentized range q for infinite degrees of freedom (Demsar 2006, who writes it with q / sqrt(2)). The test
    ignores ties, so many ties make it conservative. The result for a pair depends on the other systems.

    Examples
    --------
    >>> test = nemenyi([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.p.round(3).tolist(), round(test.critical, 3)
    ([[1.0, 0.539, 0.022], [0.539, 1.0, 0.249], [0.022, 0.249, 1.0]], 1.657)
    """
    check_share("level", level)
    blocks = complete_scores(values)
    ranks, systems = _mean(_ranks(blocks)), len(blocks.scores)
    statistic = p = np.full((systems, systems), np.nan)
    critical = math.nan
    if blocks.n > 1:
        error = math.sqrt(systems * (systems + 1) / (12.0 * blocks.n))
        statistic = np.abs(ranks - ranks[:, np.newaxis]) / error
        p = studentized_range_tail(statistic.ravel(), systems, math.inf).reshape(statistic.shape)
        critical = error * studentized_range_critical(systems, math.inf, significance(level))
    return AllPairs(
        test="nemenyi",
        differences=blocks.differences,
        p=p,
        statistic=statistic,
        critical=critical,
        level=level,
        ranks=ranks,
        note=blocks.note,
        **blocks.counted,
    )


def _ranks(blocks: CompleteScores) -> Floats:
    """Rank the systems within each topic: (S, n). Rank 1 is the highest score, ties share the mean of their ranks."""
    order = np.argsort(-blocks.scores, axis=0, kind="stable")
    descending = np.take_along_axis(blocks.scores, order, axis=0)
    is_new_group = np.concatenate([np.zeros((1, blocks.n)), -np.diff(descending, axis=0) > blocks.tolerance])
    groups = np.empty_like(blocks.scores)
    np.put_along_axis(groups, order, is_new_group.cumsum(axis=0), axis=0)
    return np.stack([0.5 + (groups < group).sum(axis=0) + 0.5 * (groups == group).sum(axis=0) for group in groups])


def _mean(ranks: Floats) -> Floats:
    return ranks.mean(axis=1) if ranks.shape[1] else np.full(len(ranks), np.nan)


def _p_of_equal_rankings(ranks: Floats) -> float:
    """Return the probability that all topics rank the systems like the first, if all orders are equally likely."""
    _, tie_sizes = np.unique(ranks[:, 0], return_counts=True)
    log_orders = math.lgamma(len(ranks) + 1) - sum(math.lgamma(size + 1) for size in tie_sizes.tolist())
    return math.exp(-log_orders * (ranks.shape[1] - 1))
