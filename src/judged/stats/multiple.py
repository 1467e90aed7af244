"""Multiple comparisons of systems, and permutation of scores within topics.

If systems do not differ, each topic's scores could occur in any order. For few systems, the sums of all orders of some
topics are listed, and samples are drawn from the list. For more systems, a random order comes from sorting random keys
with the system's number in the lowest bits: numpy sorts short rows of integers several times faster than it can argsort
or shuffle them.
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
    anova_of_scores,
    baseline_critical,
    baseline_tail,
    studentized_range_critical,
    studentized_range_tail,
)
from judged.stats.blocked_results import (
    NO_RESIDUAL,
    AgainstBaseline,
    AllPairs,
    complete_scores,
    significance,
    studentize,
)
from judged.stats.inputs import check_resampling, check_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from judged.results.types import Floats, Ints
    from judged.stats.blocked_results import CompleteScores

    Statistic: TypeAlias = Callable[[Floats], Floats]


_BLOCK = 1 << 16  # scores permuted at a time, so that they fit into a CPU cache
_THREADS = max(1, min(os.cpu_count() or 1, 8))
_MAX_LISTED_SYSTEMS = 6  # systems up to which all orders (720) are listed
_MAX_LIST = 1 << 12  # maximum length of a list of sums


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Null distribution of a statistic, if systems do not differ."""

    sorted: Floats  # (B,): one value per arrangement, ascending
    exact: bool  # whether these are all arrangements, not a sample

    def p(self, observed: Floats, tolerance: float) -> Floats:
        """Return the probability of a value at least as large; values within the tolerance are equal."""
        # b / B of all arrangements; (b + 1) / (B + 1) of a sample, because the observed arrangement is one more
        n_below = np.searchsorted(self.sorted, observed - tolerance, side="left")
        n_extreme = np.asarray(len(self.sorted) - n_below, dtype=np.float64)
        if self.exact:
            return n_extreme / len(self.sorted)
        return (n_extreme + 1.0) / (len(self.sorted) + 1.0)

    def critical(self, alpha: float) -> float:
        """Return the value that must be exceeded for a p-value of at most alpha; infinite if no value can be."""
        count = len(self.sorted)
        limit = alpha * count if self.exact else alpha * (count + 1) - 1.0
        max_extreme = math.floor(limit + 1e-9)
        if max_extreme < int(self.exact):  # the observed arrangement is one of them
            return math.inf
        return float(self.sorted[count - max_extreme - 1])


def permutation_result(
    blocks: CompleteScores,
    differences: Floats,
    statistic: Statistic,
    level: float,
    resamples: int,
    seed: int,
    *,
    relabeling: bool,
) -> dict[str, Any]:
    """Test differences against the null distribution of the largest one; return fields of the result class."""
    check_share("level", level)
    check_resampling(resamples, seed)
    fields: dict[str, Any] = {"differences": differences, "level": level, **blocks.counted}
    if blocks.n < 2:
        return {**fields, "p": np.full_like(differences, np.nan), "critical": math.nan, "note": blocks.note}
    null = null_distribution(blocks.scores, statistic, resamples, seed, relabeling=relabeling)
    return {
        **fields,
        "p": null.p(np.abs(differences), blocks.tolerance),
        "critical": null.critical(significance(level)),
        "resamples": len(null.sorted),
        "exact": null.exact,
        "seed": None if null.exact else seed,
        "note": blocks.uneven_note,
    }


def null_distribution(
    scores: Floats, statistic: Statistic, resamples: int, seed: int, *, relabeling: bool
) -> NullDistribution:
    """Compute the null distribution of a statistic by permuting scores within topics."""
    # `scores`: (S, n), complete. `statistic`: maps sums over topics (B, S) to values (B,). `relabeling`: whether it
    # does not depend on the order of the systems; then one topic can stay fixed.
    is_varied = scores.max(axis=0) > scores.min(axis=0)
    unpermuted_sums = scores[:, ~is_varied].sum(axis=1)
    varied_scores = np.ascontiguousarray(scores[:, is_varied].T)  # one row per topic
    n_permuted = len(varied_scores) - int(relabeling and len(varied_scores) > 0)
    unpermuted_sums = unpermuted_sums + varied_scores[n_permuted:].sum(axis=0)
    systems = len(scores)
    arrangements = _count_arrangements(systems, n_permuted, resamples)
    exact = arrangements is not None
    count = arrangements if exact else resamples
    orders = _all_orders(systems) if (exact and n_permuted) or systems <= _MAX_LISTED_SYSTEMS else None
    size = max(16, _BLOCK // systems)
    block_statistics = partial(
        _block_statistics, varied_scores[:n_permuted], unpermuted_sums, statistic, orders, None if exact else seed
    )
    starts = range(0, count, size)
    with ThreadPoolExecutor(_THREADS) as pool:
        values = pool.map(lambda start: block_statistics(start, min(start + size, count)), starts)
        return NullDistribution(np.sort(np.concatenate(list(values))) / scores.shape[1], exact)


def _all_orders(systems: int) -> Ints:
    """Return all orders of the systems, one per row."""
    return np.array(list(itertools.permutations(range(systems))), dtype=np.int64)


def _group_sums(table: Floats, orders: Ints) -> Iterator[Floats]:
    """Yield lists (C, S) of the systems' sums for all orders of some topics; each topic is in one list."""
    # Computed again for each block, because the lists of many topics would fill the memory.
    sums = np.zeros((1, table.shape[1]))
    for row in table:
        if len(sums) > 1 and len(sums) * len(orders) > _MAX_LIST:
            yield sums
            sums = np.zeros((1, len(row)))
        sums = (sums[:, np.newaxis] + row.take(orders)).reshape(-1, len(row))
    yield sums


def _count_arrangements(systems: int, topics: int, limit: int) -> int | None:
    """Return the number of arrangements, or None if it exceeds `limit`."""
    if not topics:
        return 1
    if systems > 12 or topics * math.lgamma(systems + 1) > math.log(limit) + 1.0:
        return None
    count = math.factorial(systems) ** topics
    return count if count <= limit else None


def _block_statistics(
    table: Floats,
    unpermuted_sums: Floats,
    statistic: Statistic,
    orders: Ints | None,
    seed: int | None,
    start: int,
    stop: int,
) -> Floats:
    """Return the statistic of arrangements `start` to `stop`, or of random ones if there is a seed."""
    sums = np.broadcast_to(unpermuted_sums, (stop - start, len(unpermuted_sums))).copy()
    rng = np.random.default_rng((seed or 0, start))
    if orders is None:
        keys = _RandomOrders(len(unpermuted_sums), rng)
        for row in table:
            sums += row.take(keys.orders(stop - start))
        return statistic(sums)
    numbers = np.arange(start, stop)
    for group_sums in _group_sums(table, orders):
        if seed is None:
            numbers, index = np.divmod(numbers, len(group_sums))
        else:
            index = rng.integers(len(group_sums), size=stop - start)
        sums += group_sums.take(index, axis=0)
    return statistic(sums)


class _RandomOrders:
    """Generator of random orders of the systems by sorting random keys."""

    def __init__(self, systems: int, rng: np.random.Generator) -> None:
        self.number = np.arange(systems, dtype=np.uint64)
        self.bits = np.uint64((1 << max(1, (systems - 1).bit_length())) - 1)
        self.rng = rng

    def orders(self, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Return `count` random orders, one per row."""
        keys = self.rng.integers(
            np.iinfo(np.uint64).max, size=(count, len(self.number)), dtype=np.uint64, endpoint=True
        )
        keys &= ~self.bits
        keys |= self.number
        keys.sort(axis=1)
        keys &= self.bits
        return keys.view(np.int64)


def dunnett(values: ArrayLike, baseline: int = 0, *, level: float = 0.95) -> AgainstBaseline:
    """Compare all systems with a baseline by Dunnett's test, with the residual variance of the two-way ANOVA.

    Fewer comparisons than all pairs, so each has more power. (`scipy.stats.dunnett` is for independent groups and does
    not remove the variance between topics.)

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    baseline
        Row of the baseline.
    level
        Simultaneous confidence level of all intervals.

    Returns
    -------
    AgainstBaseline
        Two-sided, with simultaneous intervals. Fewer than two topics: p is NaN. No residual variance: p is 0 for
        systems that differ. Equal means: p is 1.

    Raises
    ------
    InputError
        If there are fewer than two systems, a score is infinite, or an option is out of range.

    Notes
    -----
    Dunnett (1955, 1964): the differences have a multivariate t distribution with correlations 1/2. The test assumes
    normal residuals with the same variance for all systems. With two systems it is the paired t-test.

    Examples
    --------
    >>> test = dunnett([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.p.round(4).tolist(), round(test.critical, 3)
    ([1.0, 0.0452, 0.0003], 0.122)
    """
    check_share("level", level)
    blocks = complete_scores(values)
    check_baseline(baseline, len(blocks.scores))
    differences, n_others, n = blocks.differences[baseline], len(blocks.scores) - 1, blocks.n
    fields: dict[str, Any] = {"test": "dunnett", "baseline": baseline, "level": level, **blocks.counted}
    fields["differences"] = differences
    if n < 2:
        undefined = np.full_like(differences, np.nan)
        return AgainstBaseline(p=undefined, statistic=undefined, critical=math.nan, note=blocks.note, **fields)
    error = math.sqrt(anova_of_scores(blocks).residual_variance / n)
    df, q = n_others * (n - 1), studentize(differences, error)
    critical = error * baseline_critical(n_others, df, significance(level))
    margin = np.where(np.arange(n_others + 1) == baseline, 0.0, critical)
    return AgainstBaseline(
        p=baseline_tail(np.abs(q), n_others, df),
        statistic=q / math.sqrt(2.0),
        low=differences - margin,
        high=differences + margin,
        critical=critical,
        note=NO_RESIDUAL if error == 0.0 and differences.any() else blocks.uneven_note,
        **fields,
    )


def randomized_dunnett(
    values: ArrayLike, baseline: int = 0, *, level: float = 0.95, resamples: int = 100_000, seed: int = 0
) -> AgainstBaseline:
    """Compare all systems with a baseline by permuting the scores within topics.

    Like `randomized_tukey`, but each difference is compared with the largest difference from the baseline.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    baseline
        Row of the baseline.
    level
        Confidence level of the family, for `critical` and `significant`.
    resamples
        Number of permutations; all are listed if there are not more.
    seed
        Of the permutations.

    Returns
    -------
    AgainstBaseline
        Two-sided; p as in `randomized_tukey`. No intervals. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, a score is infinite, or an option is out of range.

    Examples
    --------
    >>> test = randomized_dunnett([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.p.round(3).tolist(), test.exact, test.resamples
    ([1.0, 0.63, 0.006], True, 1296)
    """
    blocks = complete_scores(values)
    check_baseline(baseline, len(blocks.scores))
    differences, statistic = blocks.differences[baseline], partial(_largest_difference, baseline=baseline)
    fields = permutation_result(blocks, differences, statistic, level, resamples, seed, relabeling=False)
    return AgainstBaseline(test="randomized-dunnett", baseline=baseline, statistic=differences, **fields)


def check_baseline(baseline: int, systems: int) -> None:
    """Raise InputError unless the baseline is a row of the scores."""
    if not 0 <= baseline < systems:
        raise InputError(
            f"`baseline` must be a row index from 0 to {systems - 1}, got {baseline}", fix="count rows from 0"
        )


def _largest_difference(sums: Floats, baseline: int) -> Floats:
    return np.abs(sums - sums[:, baseline, np.newaxis]).max(axis=1)


def tukey_hsd(values: ArrayLike, *, level: float = 0.95) -> AllPairs:
    """Compare all pairs of systems by Tukey's HSD, with the residual variance of the two-way ANOVA.

    The variance between topics, which is much larger than that between systems, is removed first, because all systems
    have the same topics. (`scipy.stats.tukey_hsd` is for independent groups and does not remove it.)

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    level
        Simultaneous confidence level of all intervals.

    Returns
    -------
    AllPairs
        With simultaneous intervals. Fewer than two topics: p is NaN. No residual variance: p is 0 for pairs that
        differ. Equal means: p is 1.

    Raises
    ------
    InputError
        If there are fewer than two systems, a score is infinite, or `level` is out of range.

    Notes
    -----
    The test assumes normal residuals with the same variance for all systems; `note` warns if the differences of one
    system vary clearly more. With two systems it is the paired t-test.

    Examples
    --------
    >>> test = tukey_hsd([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.p.round(4).tolist()
    [[1.0, 0.0585, 0.0004], [0.0585, 1.0, 0.0044], [0.0004, 0.0044, 1.0]]
    >>> round(test.critical, 4)
    0.1304
    """
    check_share("level", level)
    blocks = complete_scores(values)
    differences, systems, n = blocks.differences, len(blocks.scores), blocks.n
    fields: dict[str, Any] = {"test": "tukey", "differences": differences, "level": level, **blocks.counted}
    if n < 2:
        undefined = np.full_like(differences, np.nan)
        return AllPairs(p=undefined, statistic=undefined, critical=math.nan, note=blocks.note, **fields)
    error = math.sqrt(anova_of_scores(blocks).residual_variance / n)
    df = (systems - 1) * (n - 1)
    statistic = studentize(np.abs(differences), error)
    critical = error * studentized_range_critical(systems, df, significance(level))
    margin = critical * (1.0 - np.eye(systems))
    return AllPairs(
        p=studentized_range_tail(statistic.ravel(), systems, df).reshape(statistic.shape),
        statistic=statistic,
        low=differences - margin,
        high=differences + margin,
        critical=critical,
        note=NO_RESIDUAL if error == 0.0 and differences.any() else blocks.uneven_note,
        **fields,
    )


def randomized_tukey(values: ArrayLike, *, level: float = 0.95, resamples: int = 100_000, seed: int = 0) -> AllPairs:
    """Compare all pairs of systems by randomized Tukey HSD (Carterette 2012).

    Under the null hypothesis, the scores of a topic could occur in any order. Scores are permuted within topics, and
    each difference is compared with the distribution of the largest difference of two permuted means.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.
    level
        Confidence level of the family, for `critical` and `significant`.
    resamples
        Number of permutations; all are listed if there are not more.
    seed
        Of the permutations.

    Returns
    -------
    AllPairs
        p is (b + 1) / (B + 1) for b of B permutations with a largest difference at least as large (within rounding), or
        b / B of all permutations. No intervals. Fewer than two topics: p is NaN.

    Raises
    ------
    InputError
        If there are fewer than two systems, a score is infinite, or an option is out of range.

    Notes
    -----
    The only assumption is that all systems have the same distribution of scores. The error rate of the family is exact
    if no systems differ. If some differ, their differences widen the null distribution: the test is then stricter than
    Tukey's HSD, and the more so the more systems differ.

    Examples
    --------
    >>> test = randomized_tukey([[0.2, 0.4, 0.6, 0.3], [0.3, 0.4, 0.8, 0.5], [0.6, 0.7, 0.9, 0.7]])
    >>> test.p.round(3).tolist(), test.exact, test.resamples
    ([[1.0, 0.694, 0.009], [0.694, 1.0, 0.241], [0.009, 0.241, 1.0]], True, 216)
    """
    blocks = complete_scores(values)
    fields = permutation_result(blocks, blocks.differences, _score_range, level, resamples, seed, relabeling=True)
    return AllPairs(test="randomized-tukey", statistic=np.abs(blocks.differences), **fields)


def _score_range(sums: Floats) -> Floats:
    return sums.max(axis=1) - sums.min(axis=1)
