"""Systems compared by their ranks within topics: Friedman's test, and Nemenyi's for all pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.blocked_results import AllPairs, Friedman
from judged.stats.complete import Complete, complete, significance
from judged.stats.extremes import studentised_range_critical, studentised_range_tail
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats


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
