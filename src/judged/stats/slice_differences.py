"""Tests whether groups of topics differ: all groups, or one group against the rest. Knows only numbers by topic.

The tests permute the assignment of topics to groups. Their statistics divide by the variance of each group, as Welch's
do. With the plain F statistic, small groups with a larger variance would be significant although all means are equal:
at a nominal 0.05, in 29% of simulations with standard deviations 3, 2, 1, 1 and 10, 20, 40, 80 topics. The p-value is
the larger of two: permutations assume equal variances, Welch's distributions assume normal means, and each holds where
the other may fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints
    from judged.stats.sufficiency import Insufficiency

_BLOCK_LABELS = 1 << 18  # permuted labels in memory at a time
_LARGE_GROUP = 200  # topics; for larger groups, Welch's distributions replace the permutations
_MAX_LABELS = 1 << 25  # permuted labels in total, unless that allows fewer than _MIN_PERMUTATIONS
_MIN_PERMUTATIONS = 1000


@dataclass(frozen=True)
class Heterogeneity:
    """Test whether a number by topic, such as a difference of two systems, has the same mean in all groups."""

    # Welch's F: weighted sum of squared distances of the group means from their common mean, over groups - 1. NaN if
    # there is no test.
    statistic: float
    p: float  # the larger of the permutation p-value and that of Welch's F
    groups: tuple[int, ...]  # ascending
    n: tuple[int, ...]  # topics of each group
    means: tuple[float, ...]
    between: float  # eta squared: share of the variance between topics that is between groups
    resamples: int | None  # number of permutations; None: all groups are large, and p is that of Welch's F
    seed: int  # of the permutations
    note: str = ""  # reason why there is no test

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Shortage of topics in the smallest group for a verdict; None if all groups have enough."""
        return insufficiency(min(self.n, default=0), "verdict")


@dataclass(frozen=True)
class AgainstRest:
    """Mean of one group of topics compared with the mean of all other topics."""

    difference: float  # mean of the group minus mean of the rest; NaN if either is empty
    interval: tuple[float, float] | None  # Welch's interval, not corrected for several groups
    statistic: float  # Welch's t; NaN if there is no test
    p: float  # two-sided; the larger of the permutation p-value and that of Welch's t
    n: int
    n_rest: int
    resamples: int | None  # number of permutations; None: both sides are large, and p is that of Welch's t
    seed: int  # of the permutations

    @property
    def insufficiency(self) -> Insufficiency | None:
        """Shortage of topics on the smaller side for a verdict; None if both sides have enough."""
        return insufficiency(min(self.n, self.n_rest), "verdict")


def heterogeneity(
    differences: ArrayLike, groups: ArrayLike, *, resamples: int = 10_000, seed: int = 0
) -> Heterogeneity:
    """Test whether groups of topics have the same mean, by permuting the assignment of topics to groups.

    Parameters
    ----------
    differences
        (T,): one number per topic. Topics with a NaN are left out.
    groups
        (T,) integers. Topics with a negative number are in no group and are left out. Groups do not overlap.
    resamples, seed
        Number of permutations B, with p = (b + 1) / (B + 1), and their seed. Fewer are drawn for many thousand
        topics, and none if all groups have more than 200 topics: p is then that of Welch's F.

    Returns
    -------
    Heterogeneity
        Groups with one topic are left out. Without a test if fewer than two groups remain.

    Raises
    ------
    InputError
        If the shapes differ, a number is infinite, or an option is invalid.

    Notes
    -----
    The error rate holds if the groups have equal variances, whatever the distribution, and if the group means are
    nearly normal. It does not hold if small groups are both skewed and vary far more than large ones: 11% instead of
    5% for groups of 10, 40, and 80 topics with exponential numbers, where the smallest varies ten times as much
    (docs/calibration.md). The variance of each group is pooled with that of all topics, as if one more topic had it,
    so that a small group of equal numbers is not treated as if its mean were known exactly.

    Examples
    --------
    >>> test = heterogeneity([0.0, 0.1, 0.2, 0.1, 0.9, 1.0, 0.8, 0.9], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> round(test.between, 3), test.p < 0.05  # 2 of the 70 assignments are as extreme
    (0.97, True)
    """
    values, group_codes = _check_values(differences, groups, resamples, seed)
    included = ~np.isnan(values) & (group_codes >= 0)
    group_ids, counts = np.unique(group_codes[included], return_counts=True)
    group_ids = group_ids[counts > 1]
    included &= np.isin(group_codes, group_ids)
    values, labels = values[included], np.searchsorted(group_ids, group_codes[included])
    sizes = np.bincount(labels, minlength=len(group_ids))
    means = [float(values[labels == label].mean()) for label in range(len(group_ids))]
    if len(group_ids) < 2:
        note = "at least two groups with two or more topics are required"
        return Heterogeneity(
            math.nan, math.nan, *_group_summaries(group_ids, sizes, means), math.nan, resamples, seed, note
        )
    centered = _center(values)
    total = float((centered**2).sum())
    if total == 0:
        return Heterogeneity(
            0.0, 1.0, *_group_summaries(group_ids, sizes, means), 0.0, resamples, seed, "all topics have the same value"
        )
    between = float((np.bincount(labels, centered) ** 2 / sizes).sum()) / total
    observed = float(_welch_f(labels[None, :], centered, sizes)[0])
    if sizes.min() > _LARGE_GROUP:
        p, n_permutations = _p_of_welch_f(observed, labels, centered, sizes), None
    else:
        n_permutations = min(resamples, max(_MAX_LABELS // len(values), _MIN_PERMUTATIONS))
        threshold = observed - ROUNDING * max(observed, 1.0)
        blocks = _permutations(labels, n_permutations, seed)
        n_extreme = sum(int((_welch_f(block, centered, sizes) >= threshold).sum()) for block in blocks)
        p = max((n_extreme + 1) / (n_permutations + 1), _p_of_welch_f(observed, labels, centered, sizes))
    return Heterogeneity(observed, p, *_group_summaries(group_ids, sizes, means), between, n_permutations, seed)


def against_rest(
    values: ArrayLike, members: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[AgainstRest, ...]:
    """Compare each group of topics with all topics outside of it; groups may overlap.

    >>> comparison, = against_rest([0.0, 0.1, 0.2, 0.1, 0.9, 1.0, 0.8, 0.9], [[0, 0, 0, 0, 1, 1, 1, 1]])
    >>> round(comparison.difference, 3), [round(limit, 3) for limit in comparison.interval]
    (0.8, [0.659, 0.941])
    """
    # `values`: (T,), topics with a NaN are left out. `members`: (G, T) bool, the topics of each group. All groups share
    # the permutations. If a group and its rest have more than 200 topics each, p is that of Welch's t.
    masks = np.asarray(members, dtype=np.bool_)
    if masks.ndim != 2:
        raise InputError(
            f"`members` must have 2 dimensions, got shape {masks.shape}",
            fix="pass one row per group, one column per topic",
        )
    numbers, _ = _check_values(values, np.zeros(masks.shape[1]), resamples, seed)
    has_value = ~np.isnan(numbers)
    numbers, masks = numbers[has_value], masks[:, has_value]
    centered = _center(numbers)
    sizes = masks.sum(axis=1)
    is_tested = (sizes > 1) & (len(numbers) - sizes > 1)
    smaller = np.minimum(sizes, len(numbers) - sizes)
    observed = np.full(len(masks), np.nan)
    if is_tested.any():
        indicators = masks[is_tested].astype(np.float64)
        observed[is_tested] = _welch_t(indicators @ centered, indicators @ centered**2, sizes[is_tested], centered)
    is_permuted = is_tested & (smaller <= _LARGE_GROUP)
    p = np.full(len(masks), np.nan)
    statistics = np.abs(observed[is_permuted])
    p[is_permuted] = _permutation_p_values(statistics, smaller[is_permuted], centered, resamples, seed)
    for group in np.flatnonzero(is_tested).tolist():
        df = _satterthwaite_df(numbers[masks[group]], numbers[~masks[group]])
        p[group] = np.fmax(p[group], _p_of_t(float(observed[group]), df))
    permutations_by_group = [resamples if is_small else None for is_small in is_permuted.tolist()]
    return tuple(
        _group_against_rest(numbers, mask, float(t), float(p_value), level, n_permutations, seed)
        for mask, t, p_value, n_permutations in zip(masks, observed, p, permutations_by_group, strict=True)
    )


def _check_values(values: ArrayLike, groups: ArrayLike, resamples: int, seed: int) -> tuple[Floats, Ints]:
    numbers, codes = np.asarray(values, dtype=np.float64), np.asarray(groups).astype(np.int64)
    if numbers.ndim != 1 or numbers.shape != codes.shape:
        raise InputError(
            f"numbers and groups must have the same length, got shapes {numbers.shape} and {codes.shape}",
            fix="pass one number and one group per topic",
        )
    if np.isinf(numbers).any():
        raise InputError("numbers must be finite, got an infinite number", fix="use NaN for topics without a value")
    check_resampling(resamples, seed)
    return numbers, codes


def _group_summaries(
    group_ids: Ints, sizes: Ints, means: list[float]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]:
    return tuple(group_ids.tolist()), tuple(sizes.tolist()), tuple(means)


def _center(values: Floats) -> Floats:
    """Subtract the mean. Set differences that are only rounding error to 0."""
    if not len(values):
        return values
    centered = values - values.mean()
    return np.where(np.abs(centered) <= ROUNDING * np.abs(values).max(), 0.0, centered)


def _permutations(labels: Ints, resamples: int, seed: int) -> Iterator[Ints]:
    """Yield the labels in random orders, in blocks of (b, T)."""
    rng = np.random.default_rng(seed)
    block_size = max(1, _BLOCK_LABELS // max(len(labels), 1))
    for start in range(0, resamples, block_size):
        yield rng.permuted(np.tile(labels, (min(block_size, resamples - start), 1)), axis=1)


def _welch_f(labels: Ints, centered: Floats, sizes: Ints) -> Floats:
    """Compute the statistic of each assignment of topics to groups: (b, T) to (b,)."""
    squared = centered**2
    overall_variance = squared.sum() / (len(centered) - 1)
    weights, means = (np.empty((len(sizes), len(labels))) for _ in range(2))
    for label, size in enumerate(sizes.tolist()):
        indicators = (labels == label).astype(np.float64)
        sums = indicators @ centered
        means[label] = sums / size
        within_squares = np.maximum(indicators @ squared - sums * means[label], 0.0)
        weights[label] = size * size / (within_squares + overall_variance)
    common_mean = (weights * means).sum(axis=0) / weights.sum(axis=0)
    statistics: Floats = (weights * (means - common_mean) ** 2).sum(axis=0) / (len(sizes) - 1)
    return statistics


def _p_of_welch_f(observed: float, labels: Ints, centered: Floats, sizes: Ints) -> float:
    """Return the p-value of Welch's F distribution (Welch 1951)."""
    from scipy.special import fdtrc

    within_squares = np.bincount(labels, centered**2) - np.bincount(labels, centered) ** 2 / sizes
    if not (within_squares > 0).all():
        within_squares = within_squares + (centered**2).sum() / (len(centered) - 1)
    weights = sizes * (sizes - 1) / within_squares
    weight_imbalance = float(((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum())
    k = len(sizes)
    correction = 1 + 2 * (k - 2) / (k**2 - 1) * weight_imbalance
    return float(fdtrc(k - 1, (k**2 - 1) / (3 * weight_imbalance), observed / correction))


def _permutation_p_values(observed: Floats, sizes: Ints, centered: Floats, resamples: int, seed: int) -> Floats:
    """Return the share of random groups of each size with a t at least as far from 0: (G,)."""
    # The first topics of a random order are a random group of any size, so all groups share the orders.
    n_extreme = np.zeros(len(sizes))
    if not len(sizes):
        return n_extreme
    largest, squared = int(sizes.max()), centered**2
    slack = ROUNDING * np.maximum(observed, 1.0)
    samples = _cached_samples(len(centered), largest, resamples, seed)
    block_size = max(1, _BLOCK_LABELS // len(centered))
    for start in range(0, resamples, block_size):
        block = samples[start : start + block_size]
        sums = np.cumsum(centered[block], axis=1)[:, sizes - 1]
        squares = np.cumsum(squared[block], axis=1)[:, sizes - 1]
        n_extreme += (np.abs(_welch_t(sums, squares, sizes, centered)) >= observed - slack).sum(axis=0)
    p_values: Floats = (n_extreme + 1) / (resamples + 1)
    return p_values


@lru_cache(maxsize=2)
def _cached_samples(topics: int, size: int, resamples: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return all samples at once, (resamples, size); many runs and measures over the same topics share them."""
    return np.concatenate([block.astype(np.int32) for block in _sample_topics(topics, size, resamples, seed)])


def _sample_topics(topics: int, size: int, resamples: int, seed: int) -> Iterator[Ints]:
    """Yield samples of topics without replacement, in blocks of (b, size), by a partial Fisher-Yates shuffle."""
    # The first topics do not depend on `size`, so that a group's p-value does not depend on the other groups.
    block_size = max(1, _BLOCK_LABELS // topics)
    for start in range(0, resamples, block_size):
        n_rows = min(block_size, resamples - start)
        rng = np.random.default_rng([seed, start])
        order, rows = np.tile(np.arange(topics), (n_rows, 1)), np.arange(n_rows)
        for position in range(size):
            other = rng.integers(position, topics, size=n_rows)
            swapped = order[:, position].copy()
            order[:, position] = order[rows, other]
            order[rows, other] = swapped
        yield order[:, :size]


def _welch_t(sums: Floats, squares: Floats, sizes: Ints, centered: Floats) -> Floats:
    """Compute Welch's t of groups against the rest from their sums and sums of squares of centered numbers."""
    # Variances are pooled with that of all topics as in `_welch_f`.
    total_squares, rest_sizes = float((centered**2).sum()), len(centered) - sizes
    overall_variance = total_squares / max(len(centered) - 1, 1)
    group_squares = np.maximum(squares - sums**2 / sizes, 0.0) + overall_variance
    rest_squares = np.maximum(total_squares - squares - sums**2 / rest_sizes, 0.0) + overall_variance
    errors = group_squares / sizes**2 + rest_squares / rest_sizes**2
    differences = sums / sizes + sums / rest_sizes  # centered, so the rest has the opposite sum
    return differences / np.sqrt(np.where(errors > 0, errors, 1.0))


def _p_of_t(t: float, df: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))


def _group_against_rest(
    numbers: Floats, mask: Bools, statistic: float, p: float, level: float, resamples: int | None, seed: int
) -> AgainstRest:
    group, rest = numbers[mask], numbers[~mask]
    difference = float(group.mean() - rest.mean()) if len(group) and len(rest) else math.nan
    interval = None if math.isnan(p) else _welch_interval(group, rest, difference, level)
    return AgainstRest(difference, interval, statistic, p, len(group), len(rest), resamples, seed)


def _welch_interval(group: Floats, rest: Floats, difference: float, level: float) -> tuple[float, float]:
    """Compute Welch's interval, with Satterthwaite's degrees of freedom rounded down."""
    error = math.sqrt(float(group.var(ddof=1) / len(group) + rest.var(ddof=1) / len(rest)))
    if not error > 0:
        return difference, difference
    half = student_quantile((1 + level) / 2, max(math.floor(_satterthwaite_df(group, rest) + 1e-9), 1)) * error
    return difference - half, difference + half


def _satterthwaite_df(group: Floats, rest: Floats) -> float:
    """Compute Satterthwaite's degrees of freedom, or those for equal variances if both variances are 0."""
    squared_errors = np.array([group.var(ddof=1) / len(group), rest.var(ddof=1) / len(rest)])
    total = float(squared_errors.sum())
    if not total > 0:
        return len(group) + len(rest) - 2
    return total**2 / float((squared_errors**2 / np.array([len(group) - 1, len(rest) - 1])).sum())
