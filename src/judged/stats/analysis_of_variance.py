"""Two-way analysis of variance of many systems over the same topics."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.stats.blocked_results import (
    NO_RESIDUAL,
    AllPairs,
    Anova,
    Complete,
    Factor,
    Friedman,
    complete,
    significance,
)
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged.results.types import Floats

    Tail: TypeAlias = Callable[[Floats], Floats]


def anova(values: ArrayLike) -> Anova:
    """Split the variation of scores into that of systems, of topics, and the rest.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.

    Returns
    -------
    Anova
        With F and p of both factors and their shares of the variance. Fewer than two topics: NaN for F and p.
        No residual variance: F is infinite and p is 0 for a factor that varies, and p is 1 for one that does not.

    Raises
    ------
    InputError
        If there are fewer than two systems, or an infinite score.

    Notes
    -----
    Each system meets each topic once, so the residual holds their interaction (Tague-Sutcliffe and Blustein 1995).
    With two systems F is the square of the paired t.

    Examples
    --------
    >>> found = anova([[0.2, 0.4, 0.6], [0.3, 0.4, 0.8]])
    >>> round(found.systems.f, 3), round(found.systems.p, 3), round(found.topics.eta_squared, 3)
    (3.0, 0.225, 0.894)
    """
    return anova_of(complete(values))


def anova_of(blocks: Complete) -> Anova:
    """Do what `anova` does for topics that are complete."""
    from scipy.special import fdtrc

    scores, n, systems = blocks.scores, blocks.n, len(blocks.scores)
    if not n:
        return _nothing(systems, blocks)
    grand = scores.mean()
    system, topic = scores.mean(axis=1) - grand, scores.mean(axis=0) - grand
    rest = scores - grand - system[:, np.newaxis] - topic
    squares = [_squares(part, blocks.tolerance) for part in (system, topic, rest)]
    between, across, residual = n * squares[0], systems * squares[1], squares[2]
    df = (systems - 1, n - 1, (systems - 1) * (n - 1))
    total = between + across + residual
    variance = residual / df[2] if df[2] else math.nan

    def factor(part: float, df_part: int) -> Factor:
        mean_square = part / df_part if df_part else math.nan
        f = _ratio(mean_square, variance)
        p = float(fdtrc(df_part, df[2], f)) if math.isfinite(f) else 0.0 if f > 0 else math.nan
        if n > 1 and part == 0.0:
            p = 1.0
        return Factor(
            part,
            df_part,
            mean_square,
            f,
            p,
            _ratio(part, total),
            _ratio(part - df_part * variance, total + variance),
            _ratio(part, part + residual),
            _ratio(part - df_part * variance, part + (systems * n - df_part) * variance),
        )

    note = blocks.note or (NO_RESIDUAL if residual == 0.0 and between > 0.0 else "")
    return Anova(
        factor(between, df[0]), factor(across, df[1]), residual, df[2], variance, total, n, blocks.left_out, note
    )


def _nothing(systems: int, blocks: Complete) -> Anova:
    nan = math.nan
    system, topic = (Factor(nan, df, nan, nan, nan, nan, nan, nan, nan) for df in (systems - 1, 0))
    return Anova(system, topic, nan, 0, nan, nan, 0, blocks.left_out, blocks.note)


def _squares(parts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tolerance: float) -> float:
    """Sum the squares; 0 if there is nothing but rounding."""
    return float((parts**2).sum()) if np.abs(parts).max() > tolerance else 0.0


def _ratio(part: float, whole: float) -> float:
    """Divide; NaN for 0 / 0."""
    if whole == 0.0:
        return math.inf if part > 0.0 else math.nan
    return part / whole


_STEP = 0.1  # between the points of the integral over a mean; 0.25 is too far for 1000 systems
_REACH = 9.0  # standard deviations of a normal beyond which nothing is left
_WIDEST = 54.0  # no range of normals is as wide with a probability that a float can hold
_LEAST = 1e-9  # below this a quantile is taken for it: p is 1 but for as little
_BLOCK = 1 << 20  # numbers held at a time


def studentised_range_tail(q: Floats, systems: int, df: float) -> Floats:
    """Give P(Q > q) for the studentised range of `systems` means.

    >>> round(float(studentised_range_tail(np.array([3.578]), 3, 20)[0]), 4)
    0.05
    """
    # Harter (1960) gives 3.578 as the upper 5% point for 3 means and 20 degrees of freedom.
    # `q`: (P,), from 0; infinite gives 0, NaN stays. `systems`: at least 2. `df`: of the variance: from 1 to infinity.
    return _studentised(q, df, lambda width: _range_tail(width, systems))


def baseline_tail(q: Floats, systems: int, df: float) -> Floats:
    """Give the chance that of `systems` means besides a baseline some differ from it by more than q standard errors.

    >>> round(float(baseline_tail(np.array([2.578 * 2**0.5]), 4, 30)[0]), 4)
    0.05
    """
    # Dunnett (1964) gives 2.58 as the two-sided 5% point for 4 means besides the baseline and 30 degrees of freedom.
    # As for the range, of one mean, so that Dunnett's t is `q / sqrt(2)`: the differences are correlated by 1/2.
    return _studentised(q, df, lambda width: _baseline_tail(width, systems))


@lru_cache(maxsize=256)
def studentised_range_critical(systems: int, df: float, probability: float) -> float:
    """Give the q that the studentised range exceeds with this probability.

    >>> round(studentised_range_critical(3, 20, 0.05), 4)
    3.5779
    """
    return _critical(lambda q: studentised_range_tail(q, systems, df), probability)


@lru_cache(maxsize=256)
def baseline_critical(systems: int, df: float, probability: float) -> float:
    """Give the q of `baseline_tail` that is exceeded with this probability.

    >>> round(baseline_critical(4, 30, 0.05) / 2**0.5, 2)
    2.58
    """
    return _critical(lambda q: baseline_tail(q, systems, df), probability)


def _critical(tail: Tail, probability: float) -> float:
    """Look for the quantile between ever closer points."""
    low, high = 0.0, 1.0
    while tail(np.array([high]))[0] > probability:
        low, high = high, 2.0 * high
    for _ in range(12):
        points = np.linspace(low, high, 33)[1:-1]
        above = tail(points) > probability
        low = float(points[above][-1]) if above.any() else low
        high = float(points[~above][0]) if not above.all() else high
    return (low + high) / 2.0


def _range_tail(width: Floats, systems: int) -> Floats:
    """Give the chance that standard normals lie further apart than each width: (N,)."""
    # The highest is at z: all others lie below it, but not all of them within the width.
    from scipy.special import ndtr

    z = _points(-_REACH, float(width.max()) / 2.0 + _REACH, _STEP)
    below = ndtr(z)
    with np.errstate(divide="ignore"):
        missed = -np.expm1((systems - 1) * np.log1p(-np.minimum(ndtr(z - width[:, np.newaxis]) / below, 1.0)))
    return missed @ (systems * _density(z) * below ** (systems - 1))


def _baseline_tail(width: Floats, systems: int) -> Floats:
    """Give the chance that of standard normals some lie further than each width from another one: (N,)."""
    from scipy.special import ndtr

    reach = float(width.max()) / 2.0 + _REACH
    z = _points(-reach, reach, _STEP)
    outside = ndtr(z - width[:, np.newaxis]) + ndtr(-z - width[:, np.newaxis])
    with np.errstate(divide="ignore"):
        missed = -np.expm1(systems * np.log1p(-np.minimum(outside, 1.0)))
    return missed @ _density(z)


def _points(first: float, last: float, step: float) -> Floats:
    """Give the multiples of the step from one number to another, ends included."""
    return np.arange(math.floor(first / step), math.ceil(last / step) + 1, dtype=np.float64) * step


def _density(z: Floats) -> Floats:
    """Give the density of a standard normal, times the step."""
    return np.exp(-z * z / 2.0) * (_STEP / math.sqrt(2.0 * math.pi))


def _studentised(q: Floats, df: float, tail: Tail) -> Floats:
    """Average a tail over the estimated scale: (P,)."""
    found = np.where(q > 0, 0.0, 1.0)
    found[np.isnan(q)] = np.nan
    wanted, back = np.unique(q[(q > 0) & np.isfinite(q)], return_inverse=True)
    size = 4096
    pieces = [_averaged(np.maximum(wanted[at : at + size], _LEAST), df, tail) for at in range(0, len(wanted), size)]
    if pieces:
        found[(q > 0) & np.isfinite(q)] = np.minimum(np.concatenate(pieces), 1.0)[back.ravel()]
    return found


def _averaged(q: Floats, df: float, tail: Tail) -> Floats:
    """Average a tail over the estimated scale, for rising quantiles: (P,)."""
    if math.isinf(df):
        return _tails(q, tail)
    spread = 1.0 / math.sqrt(2.0 * df)  # of the logarithm of the scale
    step = min(0.6 * spread, 0.15)
    left, right = max(12.0 * spread, 45.0 / df), 10.0 * spread
    whole = float(_log_scale_density(_points(-left, right, step), df).sum())
    first = math.log(q[0]) - 0.5 * math.log1p(q[0] ** 2 / (2.0 * df)) - left  # small scales weigh in far tails
    last = min(math.log(_WIDEST), math.log(q[-1]) + right)
    points = _points(first, last, step)
    found, size = np.zeros(len(q)), max(64, _BLOCK // max(len(q), 256))
    for start in range(0, len(points), size):
        some = points[start : start + size]
        found += _log_scale_density(some - np.log(q)[:, np.newaxis], df) @ _tails(np.exp(some), tail)
    return found / whole


def _tails(width: Floats, tail: Tail) -> Floats:
    """Give the tail at each width, a block at a time; 0 where a float cannot hold it."""
    found = np.zeros(len(width))
    held = np.flatnonzero(width <= _WIDEST)
    for start in range(0, len(held), 4096):
        some = held[start : start + 4096]
        found[some] = tail(width[some])
    return found


def _log_scale_density(x: Floats, df: float) -> Floats:
    """Give the density of the logarithm of sqrt(chi square / df), up to a factor."""
    return np.exp(df * (x - np.expm1(2.0 * x) / 2.0))


def friedman(values: ArrayLike) -> Friedman:
    """Test whether systems tend to different ranks within topics.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.

    Returns
    -------
    Friedman
        Fewer than two topics: NaN. All scores of every topic equal: p is 1. All topics rank the systems alike: F is
        infinite, and its p the share of arrangements of the ranks that do so.

    Raises
    ------
    InputError
        If there are fewer than two systems, or an infinite score.

    Notes
    -----
    Friedman (1937) with the correction for ties; Iman and Davenport (1980). Scores that are equal but for rounding tie.

    Examples
    --------
    >>> found = friedman([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.ranks.tolist(), round(found.chi_square, 3), round(found.p, 4), round(found.f_p, 4)
    ([2.875, 2.125, 1.0], 7.6, 0.0224, 0.0001)
    """
    from scipy.special import chdtrc, fdtrc

    blocks = complete(values)
    systems, n = len(blocks.scores), blocks.n
    df, f_df = systems - 1, (systems - 1, (systems - 1) * max(n - 1, 0))
    ranks = _ranks(blocks)
    if n < 2:
        nan = math.nan
        return Friedman(_mean(ranks), nan, df, nan, nan, f_df, nan, nan, n, blocks.left_out, blocks.note)
    centre = (systems + 1) / 2
    within = float(((ranks - centre) ** 2).sum())
    between = float(n * ((_mean(ranks) - centre) ** 2).sum())
    if within == 0.0:
        note = "all systems tie on every topic"
        return Friedman(_mean(ranks), 0.0, df, 1.0, 0.0, f_df, 1.0, math.nan, n, blocks.left_out, note)
    concordance = between / within
    chi_square = n * df * concordance
    if math.isclose(concordance, 1.0, rel_tol=1e-12):
        f, f_p = math.inf, _alike(ranks)
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
        Of the family, for `critical` and `significant`.

    Returns
    -------
    AllPairs
        With mean ranks, and the critical difference of mean ranks. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, an infinite score, or no such level.

    Notes
    -----
    Mean ranks further apart than q(level) * sqrt(S (S + 1) / (12 n)) differ, for the studentised range q with
    infinite degrees of freedom (Demsar 2006, who writes it with q / sqrt(2)). It ignores ties, which makes it
    conservative where there are many. Whether two systems differ depends on which others are compared with them.

    Examples
    --------
    >>> found = nemenyi([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.p.round(3).tolist(), round(found.critical, 3)
    ([[1.0, 0.539, 0.022], [0.539, 1.0, 0.249], [0.022, 0.249, 1.0]], 1.657)
    """
    check_share("level", level)
    blocks = complete(values)
    ranks, systems = _mean(_ranks(blocks)), len(blocks.scores)
    statistic = p = np.full((systems, systems), np.nan)
    critical = math.nan
    if blocks.n > 1:
        error = math.sqrt(systems * (systems + 1) / (12.0 * blocks.n))
        statistic = np.abs(ranks - ranks[:, np.newaxis]) / error
        p = studentised_range_tail(statistic.ravel(), systems, math.inf).reshape(statistic.shape)
        critical = error * studentised_range_critical(systems, math.inf, significance(level))
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


def _ranks(blocks: Complete) -> Floats:
    """Rank the systems within each topic: (S, n); 1 is the highest score, ties share the mean of their ranks."""
    order = np.argsort(-blocks.scores, axis=0, kind="stable")
    falling = np.take_along_axis(blocks.scores, order, axis=0)
    steps = np.concatenate([np.zeros((1, blocks.n)), -np.diff(falling, axis=0) > blocks.tolerance])
    groups = np.empty_like(blocks.scores)
    np.put_along_axis(groups, order, steps.cumsum(axis=0), axis=0)
    return np.stack([0.5 + (groups < own).sum(axis=0) + 0.5 * (groups == own).sum(axis=0) for own in groups])


def _mean(ranks: Floats) -> Floats:
    return ranks.mean(axis=1) if ranks.shape[1] else np.full(len(ranks), np.nan)


def _alike(ranks: Floats) -> float:
    """Give the chance that all topics rank the systems as the first one does, if each order is as likely."""
    _, ties = np.unique(ranks[:, 0], return_counts=True)
    orders = math.lgamma(len(ranks) + 1) - sum(math.lgamma(count + 1) for count in ties.tolist())
    return math.exp(-orders * (ranks.shape[1] - 1))
