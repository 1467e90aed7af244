"""All pairs of systems over the same topics: Tukey's HSD, and its randomised form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.stats.blocked_results import AllPairs
from judged.stats.complete import NO_RESIDUAL, complete, in_errors, significance
from judged.stats.extremes import studentised_range_critical, studentised_range_tail
from judged.stats.inputs import check_share
from judged.stats.permutations import permuted
from judged.stats.variance import anova_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats


def tukey_hsd(values: ArrayLike, *, level: float = 0.95) -> AllPairs:
    """Compare all pairs of systems by Tukey's HSD, with the residual variance of the two-way ANOVA.

    Topics differ far more than systems do; as every system has seen the same topics, that variation is taken out first.
    (`scipy.stats.tukey_hsd` is for independent groups and leaves it in.)

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    level
        Of the family: all intervals together hold the true differences with this probability.

    Returns
    -------
    AllPairs
        With simultaneous intervals. Fewer than two topics: p is NaN. No residual variance: p is 0 for pairs that
        differ. Equal means: p is 1.

    Raises
    ------
    InputError
        If there are fewer than two systems, an infinite score, or no such level.

    Notes
    -----
    Assumes residuals that are normal and equally wide for all systems; where one system is clearly more uneven than
    the others, the note says so. With two systems it is the paired t-test.

    Examples
    --------
    >>> found = tukey_hsd([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.p.round(4).tolist()
    [[1.0, 0.0585, 0.0004], [0.0585, 1.0, 0.0044], [0.0004, 0.0044, 1.0]]
    >>> round(found.critical, 4)
    0.1304
    """
    check_share("level", level)
    blocks = complete(values)
    differences, systems, n = blocks.differences, len(blocks.scores), blocks.n
    told: dict[str, Any] = {"test": "tukey", "differences": differences, "level": level, **blocks.counted}
    if n < 2:
        nothing = np.full_like(differences, np.nan)
        return AllPairs(p=nothing, statistic=nothing, critical=math.nan, note=blocks.note, **told)
    error = math.sqrt(anova_of(blocks).residual_variance / n)
    df = (systems - 1) * (n - 1)
    statistic = in_errors(np.abs(differences), error)
    critical = error * studentised_range_critical(systems, df, significance(level))
    margin = critical * (1.0 - np.eye(systems))
    return AllPairs(
        p=studentised_range_tail(statistic.ravel(), systems, df).reshape(statistic.shape),
        statistic=statistic,
        low=differences - margin,
        high=differences + margin,
        critical=critical,
        note=NO_RESIDUAL if error == 0.0 and differences.any() else blocks.uneven,
        **told,
    )


def randomised_tukey(values: ArrayLike, *, level: float = 0.95, resamples: int = 100_000, seed: int = 0) -> AllPairs:
    """Compare all pairs of systems by randomised Tukey HSD (Carterette 2012).

    If no system made a difference, the scores of a topic could stand in any order. Scores are permuted within topics,
    and each difference is held against the largest difference of any two means that arises so.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    level
        Of the family, for `critical` and `significant`.
    resamples
        How many permutations to draw; all are listed if there are no more than that.
    seed
        Of the draws.

    Returns
    -------
    AllPairs
        p is (b + 1) / (B + 1) for b of B permutations whose largest difference is at least as large, rounding aside, or
        the share of all permutations. No intervals. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, an infinite score, no such level, fewer than 100 resamples, or a seed
        below 0.

    Notes
    -----
    Of the distribution of scores nothing is assumed but that it is the same for all systems. The error rate of the
    family is exact where all systems are alike. Where some differ, their differences are in the permuted scores too and
    widen what luck can do: the test is then stricter than Tukey's HSD, and the stricter the more systems differ.

    Examples
    --------
    >>> found = randomised_tukey([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.p.round(3).tolist(), found.exact, found.resamples
    ([[1.0, 0.694, 0.009], [0.694, 1.0, 0.241], [0.009, 0.241, 1.0]], True, 216)
    """
    blocks = complete(values)
    found = permuted(blocks, blocks.differences, _range, level, resamples, seed, relabelling=True)
    return AllPairs(test="randomised-tukey", statistic=np.abs(blocks.differences), **found)


def _range(sums: Floats) -> Floats:
    return sums.max(axis=1) - sums.min(axis=1)
