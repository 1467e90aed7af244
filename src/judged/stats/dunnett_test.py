"""Every system against one baseline over the same topics: Dunnett's test, and a randomised one."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.stats.blocked_results import AgainstBaseline
from judged.stats.complete import NO_RESIDUAL, complete, in_errors, significance
from judged.stats.extremes import baseline_critical, baseline_tail
from judged.stats.inputs import check_share
from judged.stats.permutations import permuted
from judged.stats.variance import anova_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats


def dunnett(values: ArrayLike, baseline: int = 0, *, level: float = 0.95) -> AgainstBaseline:
    """Compare every system with a baseline by Dunnett's test, with the residual variance of the two-way ANOVA.

    Fewer questions than all pairs, and so more power for each. (`scipy.stats.dunnett` is for independent groups, and
    leaves the variation of topics in.)

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    baseline
        Its row.
    level
        Of the family: all intervals together hold the true differences with this probability.

    Returns
    -------
    AgainstBaseline
        Two-sided, with simultaneous intervals. Fewer than two topics: p is NaN. No residual variance: p is 0 for
        systems that differ. Means that are equal: p is 1.

    Raises
    ------
    InputError
        If there are fewer than two systems, an infinite score, no such row, or no such level.

    Notes
    -----
    Dunnett (1955, 1964): the differences have a multivariate t distribution with correlations 1/2. Assumes residuals
    that are normal and equally wide for all systems. With two systems it is the paired t-test.

    Examples
    --------
    >>> found = dunnett([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.p.round(4).tolist(), round(found.critical, 3)
    ([1.0, 0.0452, 0.0003], 0.122)
    """
    check_share("level", level)
    blocks = complete(values)
    check_baseline(baseline, len(blocks.scores))
    differences, others, n = blocks.differences[baseline], len(blocks.scores) - 1, blocks.n
    told: dict[str, Any] = {"test": "dunnett", "baseline": baseline, "level": level, **blocks.counted}
    told["differences"] = differences
    if n < 2:
        nothing = np.full_like(differences, np.nan)
        return AgainstBaseline(p=nothing, statistic=nothing, critical=math.nan, note=blocks.note, **told)
    error = math.sqrt(anova_of(blocks).residual_variance / n)
    df, q = others * (n - 1), in_errors(differences, error)
    critical = error * baseline_critical(others, df, significance(level))
    margin = np.where(np.arange(others + 1) == baseline, 0.0, critical)
    return AgainstBaseline(
        p=baseline_tail(np.abs(q), others, df),
        statistic=q / math.sqrt(2.0),
        low=differences - margin,
        high=differences + margin,
        critical=critical,
        note=NO_RESIDUAL if error == 0.0 and differences.any() else blocks.uneven,
        **told,
    )


def randomised_dunnett(
    values: ArrayLike, baseline: int = 0, *, level: float = 0.95, resamples: int = 100_000, seed: int = 0
) -> AgainstBaseline:
    """Compare every system with a baseline by permuting the scores within topics.

    As in `randomised_tukey`, but each difference is held against the largest difference from the baseline.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    baseline
        Its row.
    level
        Of the family, for `critical` and `significant`.
    resamples
        How many permutations to draw; all are listed if there are no more than that.
    seed
        Of the draws.

    Returns
    -------
    AgainstBaseline
        Two-sided; p as in `randomised_tukey`. No intervals. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, an infinite score, no such row, no such level, fewer than 100 resamples,
        or a seed below 0.

    Examples
    --------
    >>> found = randomised_dunnett([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> found.p.round(3).tolist(), found.exact, found.resamples
    ([1.0, 0.63, 0.006], True, 1296)
    """
    blocks = complete(values)
    check_baseline(baseline, len(blocks.scores))
    differences, largest = blocks.differences[baseline], partial(_largest, baseline=baseline)
    found = permuted(blocks, differences, largest, level, resamples, seed, relabelling=False)
    return AgainstBaseline(test="randomised-dunnett", baseline=baseline, statistic=differences, **found)


def check_baseline(baseline: int, systems: int) -> None:
    """Raise InputError unless there is such a row."""
    if not 0 <= baseline < systems:
        raise InputError(f"no system in row {baseline}", fix=f"give the baseline's row, from 0 to {systems - 1}")


def _largest(sums: Floats, baseline: int) -> Floats:
    return np.abs(sums - sums[:, baseline, np.newaxis]).max(axis=1)
