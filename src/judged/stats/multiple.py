"""Permutations within topics: what a statistic of the systems' sums would be if systems made no difference.

If they made none, each topic's scores could have come in any order. For few systems the sums of all orders of some
topics together are listed, and drawn from the list. For more, a random order is made by sorting random keys that carry
the systems' numbers in their last bits: numpy sorts short rows of whole numbers several times faster than it can
argsort, or shuffle, them.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.stats.analysis_of_variance import (
    anova_of,
    baseline_critical,
    baseline_tail,
    studentised_range_critical,
    studentised_range_tail,
)
from judged.stats.blocked_results import NO_RESIDUAL, AgainstBaseline, AllPairs, complete, in_errors, significance
from judged.stats.inputs import check_resampling, check_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from judged.results.types import Floats, Ints
    from judged.stats.blocked_results import Complete

    Statistic: TypeAlias = Callable[[Floats], Floats]


_BLOCK = 1 << 16  # scores permuted together: they stay in a cache
_THREADS = max(1, min(os.cpu_count() or 1, 8))
_FEW = 6  # systems whose 720 orders are listed
_LISTED = 1 << 12  # sums in one list


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """What a statistic is when systems make no difference."""

    sorted: Floats  # (B,): one value an arrangement, rising
    exact: bool  # whether these are all arrangements there are, not a sample

    def p(self, observed: Floats, tolerance: float) -> Floats:
        """Give the chance of a value at least as large; what is equal within the tolerance counts."""
        # (b + 1) / (B + 1) of a sample, the observed arrangement being one more, and the share b / B of all
        # arrangements.
        below = np.searchsorted(self.sorted, observed - tolerance, side="left")
        reached = np.asarray(len(self.sorted) - below, dtype=np.float64)
        if self.exact:
            return reached / len(self.sorted)
        return (reached + 1.0) / (len(self.sorted) + 1.0)

    def critical(self, alpha: float) -> float:
        """Give the value that must be exceeded for a p-value of at most alpha; infinite if none is enough."""
        count = len(self.sorted)
        allowed = alpha * count if self.exact else alpha * (count + 1) - 1.0
        most = math.floor(allowed + 1e-9)
        if most < int(self.exact):  # the observed arrangement is one of all
            return math.inf
        return float(self.sorted[count - most - 1])


def permuted(
    blocks: Complete,
    differences: Floats,
    largest: Statistic,
    level: float,
    resamples: int,
    seed: int,
    *,
    relabelling: bool,
) -> dict[str, Any]:
    """Hold differences against the largest one that permuted scores give: fields of a result of many systems."""
    check_share("level", level)
    check_resampling(resamples, seed)
    told: dict[str, Any] = {"differences": differences, "level": level, **blocks.counted}
    if blocks.n < 2:
        return {**told, "p": np.full_like(differences, np.nan), "critical": math.nan, "note": blocks.note}
    null = null_distribution(blocks.scores, largest, resamples, seed, relabelling=relabelling)
    return {
        **told,
        "p": null.p(np.abs(differences), blocks.tolerance),
        "critical": null.critical(significance(level)),
        "resamples": len(null.sorted),
        "exact": null.exact,
        "seed": None if null.exact else seed,
        "note": blocks.uneven,
    }


def null_distribution(
    scores: Floats, statistic: Statistic, resamples: int, seed: int, *, relabelling: bool
) -> NullDistribution:
    """Permute scores within topics."""
    # `scores`: (S, n), complete. `statistic`: from sums over topics (B, S) to one value each (B,).
    moving = scores.max(axis=0) > scores.min(axis=0)
    fixed = scores[:, ~moving].sum(axis=1)
    table = np.ascontiguousarray(scores[:, moving].T)  # a row per topic
    free = len(table) - int(relabelling and len(table) > 0)
    fixed = fixed + table[free:].sum(axis=0)
    systems = len(scores)
    arrangements = _arrangements(systems, free, resamples)
    exact = arrangements is not None
    count = arrangements if exact else resamples
    orders = _orders(systems) if (exact and free) or systems <= _FEW else None
    size = max(16, _BLOCK // systems)
    block = partial(_block, table[:free], fixed, statistic, orders, None if exact else seed)
    starts = range(0, count, size)
    with ThreadPoolExecutor(_THREADS) as pool:
        values = pool.map(lambda start: block(start, min(start + size, count)), starts)
        return NullDistribution(np.sort(np.concatenate(list(values))) / scores.shape[1], exact)


def _orders(systems: int) -> Ints:
    """List all orders of the systems, one a row."""
    return np.array(list(itertools.permutations(range(systems))), dtype=np.int64)


def _lists(table: Floats, orders: Ints) -> Iterator[Floats]:
    """List the sums of the systems (C, S) for all orders of some topics together; every topic is in one list."""
    # They are made again for each block, as those of many topics would fill the memory.
    listed = np.zeros((1, table.shape[1]))
    for row in table:
        if len(listed) > 1 and len(listed) * len(orders) > _LISTED:
            yield listed
            listed = np.zeros((1, len(row)))
        listed = (listed[:, np.newaxis] + row.take(orders)).reshape(-1, len(row))
    yield listed


def _arrangements(systems: int, topics: int, most: int) -> int | None:
    """Count the arrangements; None if there are more than that."""
    if not topics:
        return 1
    if systems > 12 or topics * math.lgamma(systems + 1) > math.log(most) + 1.0:
        return None
    count = math.factorial(systems) ** topics
    return count if count <= most else None


def _block(
    table: Floats,
    fixed: Floats,
    statistic: Statistic,
    orders: Ints | None,
    seed: int | None,
    start: int,
    stop: int,
) -> Floats:
    """Give the statistic of some arrangements: those of these numbers, or with a seed random ones."""
    sums = np.broadcast_to(fixed, (stop - start, len(fixed))).copy()
    rng = np.random.default_rng((seed or 0, start))
    if orders is None:
        keys = _Keys(len(fixed), rng)
        for row in table:
            sums += row.take(keys.orders(stop - start))
        return statistic(sums)
    numbers = np.arange(start, stop)
    for listed in _lists(table, orders):
        if seed is None:
            numbers, which = np.divmod(numbers, len(listed))
        else:
            which = rng.integers(len(listed), size=stop - start)
        sums += listed.take(which, axis=0)
    return statistic(sums)


class _Keys:
    """Makes random orders of the systems."""

    def __init__(self, systems: int, rng: np.random.Generator) -> None:
        self.number = np.arange(systems, dtype=np.uint64)
        self.bits = np.uint64((1 << max(1, (systems - 1).bit_length())) - 1)
        self.rng = rng

    def orders(self, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Give so many orders, one a row."""
        keys = self.rng.integers(
            np.iinfo(np.uint64).max, size=(count, len(self.number)), dtype=np.uint64, endpoint=True
        )
        keys &= ~self.bits
        keys |= self.number
        keys.sort(axis=1)
        keys &= self.bits
        return keys.view(np.int64)


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
