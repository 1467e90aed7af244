"""Resampling: one matrix product serves all pairs and all resamples, in blocks of bounded memory.

Differences are converted to integer multiples of a unit. The unit is small enough to lose no precision and large enough
that every sum is exact in floating point. So sums do not depend on the order of addition, on threads, or on other rows:
the same seed gives identical results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from judged.stats.interval import acceleration, bca_limits
from judged.stats.results import PairedResult, rejection_rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.types import Bools, Floats
    from judged.stats.results import Options


_BLOCK_WEIGHTS = (
    1 << 18
)  # weights per block; changing it changes all seeded results, because it assigns random bits to resamples
_MAX_CACHED_WEIGHTS = 1 << 23  # weights that are cached for the next block of rows; more are generated again
_MAX_SUMS = 1 << 22  # sums in memory at a time
_BITS = 52  # bits of a float's fraction
_HEAD = 4096  # values from which an upper bound is estimated


class Weights(Protocol):
    """Multiplicity and sign of each topic in each resample."""

    @property
    def n(self) -> int:
        """Number of topics."""
        ...

    @property
    def count(self) -> int:
        """Number of resamples that `blocks` yields."""
        ...

    def blocks(self) -> Iterator[Floats]:
        """Yield all resamples in blocks of (b, T); every call yields the same ones."""
        ...


@dataclass(frozen=True)
class SignFlips:
    """Sign flips for Fisher's randomization test: random ones, or all of them if there are at most `resamples`.

    If all are listed, the first topic keeps its sign, because the other half are their negatives.

    >>> [block.tolist() for block in SignFlips(n=2, resamples=100, seed=0).blocks()]
    [[[1.0, 1.0], [1.0, -1.0]]]
    """

    n: int
    resamples: int
    seed: int

    @property
    def exact(self) -> bool:
        """Whether all sign flips are listed."""
        return self.n < 60 and 1 << self.n <= self.resamples

    @property
    def count(self) -> int:
        """Number of rows that `blocks` yields."""
        return 1 << (self.n - 1) if self.exact else self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Yield the signs in blocks of (b, T)."""
        rng = np.random.default_rng(self.seed)
        for start, size in _blocks(self.count, self.n):
            if self.exact:
                number = np.arange(start, start + size)[:, None]
                flipped = np.concatenate([np.zeros_like(number), number >> np.arange(self.n - 1) & 1], axis=1)
            else:
                random_bytes = rng.integers(0, 256, size=(size, (self.n + 7) // 8), dtype=np.uint8)
                flipped = np.unpackbits(random_bytes, axis=1, count=self.n)
            yield (1 - 2 * flipped.astype(np.int8)).astype(np.float64)


@dataclass(frozen=True)
class ResampledTopics:
    """Number of times each topic is drawn, with replacement, in samples of all topics."""

    n: int
    resamples: int
    seed: int

    @property
    def count(self) -> int:
        """Number of resamples."""
        return self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Yield how often each topic is drawn, in blocks of (b, T)."""
        rng = np.random.default_rng(self.seed)
        for _, size in _blocks(self.resamples, self.n):
            topics = rng.integers(self.n, size=(size, self.n))
            cells = topics + self.n * np.arange(size)[:, None]
            yield np.bincount(cells.ravel(), minlength=size * self.n).reshape(size, -1).astype(np.float64)


def resampled_sums(weights: Weights, *tables: Floats) -> Iterator[tuple[int, list[Floats]]]:
    """Yield ``(first, sums)`` for blocks of p rows from `first` on: the sums of each table by resample, (p, B) each."""
    # The arrays are reused and overwritten at the next step.
    rows = len(tables[0])
    block_size = min(rows, max(1, _MAX_SUMS // (weights.count * len(tables))))
    cached = list(weights.blocks()) if block_size < rows and weights.count * weights.n <= _MAX_CACHED_WEIGHTS else None
    buffers = [np.empty((block_size, weights.count)) for _ in tables]
    for first in range(0, rows, block_size):
        table_rows = [np.ascontiguousarray(table[first : first + block_size]) for table in tables]
        sums = [buffer[: len(table_rows[0])] for buffer in buffers]
        column = 0
        for block in cached or weights.blocks():
            for rows_of_table, out in zip(table_rows, sums, strict=True):
                np.matmul(rows_of_table, block.T, out=out[:, column : column + len(block)])
            column += len(block)
        yield first, sums


def to_integers(values: Floats, times: int = 1) -> tuple[Floats, Floats]:
    """Convert each row to integer multiples of a unit, so that sums of up to ``times`` all of them are exact.

    >>> numbers, units = to_integers(np.array([[0.1, -0.3]]))
    >>> float(abs(numbers[0] * units[0] - [0.1, -0.3]).max()) <= 1e-16
    True
    """
    # `values`: (P, T), no row all 0. Returns (P, T) and (P,): `numbers * units` differs from `values` by half a unit at
    # most.
    _, exponents = np.frexp(times * np.abs(values).sum(axis=1))
    units = np.ldexp(1.0, exponents - _BITS)
    return np.rint(values / units[:, None]), units


def kth_smallest(values: Floats, rank: int) -> float:
    """Return the ``rank``-th smallest value, counted from 1; minus infinity for rank 0 or less.

    >>> kth_smallest(np.array([0.3, 0.1, 0.2]), 2)
    0.2
    """
    # The values are in random order, so the first ones estimate an upper bound, and only values below it are sorted.
    if rank < 1:
        return -math.inf
    head = np.sort(values[:_HEAD])
    bound = head[min(len(head) - 1, int(1.5 * rank * len(head) / len(values)) + 20)]
    below = values[values <= bound]
    candidates = below if len(below) >= rank else values
    return float(np.partition(candidates, rank - 1)[rank - 1])


def _blocks(count: int, topics: int) -> Sequence[tuple[int, int]]:
    """Split ``count`` resamples into blocks. Their size depends only on the number of topics."""
    size = max(1, _BLOCK_WEIGHTS // topics)
    return [(start, min(size, count - start)) for start in range(0, count, size)]


_CONSTANT_TOLERANCE = 1e-12  # times the largest square: the variance of a resample of equal values is below this


def percentile(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test by the shift method (Efron and Tibshirani 1993, section 16.4), with the interval that inverts the test."""
    # p = (b + 1) / (B + 1), where b counts the resamples of the differences shifted to a mean of 0 with a mean at least
    # as far from 0 as observed. The interval contains the means that the test does not reject. `differences`: (P, T)
    # with T > 1, no constant row. `rounding`: (P,), sums that differ by less are equal.

    def result(means: Floats, row: Floats, tolerance: float) -> PairedResult:
        mean, two_sided = float(row.mean()), options.alternative == "two-sided"
        side = -1 if options.alternative == "less" else 1
        deviations = np.abs(means - mean) if two_sided else side * (means - mean)
        observed = abs(mean) if two_sided else side * mean
        p = (int(np.count_nonzero(deviations >= observed - tolerance)) + 1) / (len(means) + 1)
        # means further away than `margin` are rejected
        margin = -kth_smallest(-deviations, rejection_rank(options.alpha, len(means) + 1))
        low, high = (0.0 if abs(limit) <= tolerance else limit for limit in (mean - margin, mean + margin))
        return _resampled(mean, p, options.interval(low, high), options)

    return _from_means(result, differences, rounding, options)


def bca(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Compute the bias-corrected and accelerated (BCa) interval (Efron 1987), and p by inverting it."""
    # p is 1 - level of the interval that just reaches 0, and at least 1 / (B + 1). Parameters as for `percentile`.
    from scipy.special import ndtr, ndtri

    def result(means: Floats, row: Floats, tolerance: float) -> PairedResult:
        mean, accel = float(row.mean()), acceleration(row - row.mean())
        bias, z_zero = (float(ndtri(_share_below(means, value, tolerance))) for value in (mean, 0.0))
        shift = z_zero - bias  # invert the BCa transformation of the limits
        denominator = 1 + accel * shift
        z = shift / denominator - bias if denominator > 0 else math.copysign(math.inf, shift)
        p = max(options.p_of(float(ndtr(-z)), float(ndtr(z))), 1 / (len(means) + 1))
        low, high = bca_limits(means, mean, accel, options.two_sided_level).tolist()
        return _resampled(mean, p, options.interval(low, high), options)

    return _from_means(result, differences, rounding, options)


def studentized(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Compute the studentized (bootstrap-t) test and interval (Efron and Tibshirani 1993, section 12.5)."""
    # Each resample gives t* = (its mean - the mean) / its standard error. p is twice the smaller of the shares,
    # (b + 1) / (B + 1), of t* >= t and t* <= t; the interval contains the means that the test does not reject. t* of a
    # resample without variance is infinite, so that limits can be infinite with few topics. Parameters as for
    # `percentile`.
    topics = differences.shape[1]
    means = differences.mean(axis=1)
    centered = differences - means[:, None]
    largest = np.abs(centered).max(axis=1)
    scaled = centered / largest[:, None]
    numbers, units = to_integers(scaled, topics)
    squares, square_units = to_integers(scaled**2, topics)
    errors = np.sqrt((scaled**2).sum(axis=1) / (topics * (topics - 1))) * largest
    results: list[PairedResult] = []
    weights = ResampledTopics(topics, options.resamples, options.seed)
    for first, (sums, sums_of_squares) in resampled_sums(weights, numbers, squares):
        for row in range(first, first + len(sums)):
            mean_shifts = sums[row - first] * (float(units[row]) / topics)
            mean_squares = sums_of_squares[row - first] * (float(square_units[row]) / topics)
            tolerance = float(rounding[row] / largest[row]) / topics
            t_values = _t_values(mean_shifts, mean_squares, topics, tolerance)
            mean, error, mean_tolerance = float(means[row]), float(errors[row]), float(rounding[row]) / topics
            results.append(_t_result(t_values, mean, error, mean_tolerance, options))
    return results


def _t_values(mean_shifts: Floats, mean_squares: Floats, topics: int, tolerance: float) -> Floats:
    """Compute t of each resample from the means of its values and of their squares; no value exceeds 1 in size."""
    variances = mean_squares - mean_shifts**2
    is_constant = variances <= _CONSTANT_TOLERANCE
    degenerate = np.where(np.abs(mean_shifts) <= tolerance, 0.0, np.copysign(np.inf, mean_shifts))
    errors = np.sqrt(np.where(is_constant, 1.0, variances) / (topics - 1))
    return np.where(is_constant, degenerate, mean_shifts / errors)


def _t_result(t_values: Floats, mean: float, error: float, tolerance: float, options: Options) -> PairedResult:
    """Compute p and the interval from the resampled t values."""
    t, t_tolerance = mean / error, tolerance / error
    upper, lower = (
        (int(np.count_nonzero(is_extreme)) + 1) / (len(t_values) + 1)
        for is_extreme in (t_values >= t - t_tolerance, t_values <= t + t_tolerance)
    )
    rank = rejection_rank(options.alpha / 2 if options.alternative == "two-sided" else options.alpha, len(t_values) + 1)
    low, high = mean + error * kth_smallest(-t_values, rank), mean - error * kth_smallest(t_values, rank)
    return _resampled(t, options.p_of(lower, upper), options.interval(low, high), options)


def _from_means(
    result: Callable[[Floats, Floats, float], PairedResult], differences: Floats, rounding: Floats, options: Options
) -> list[PairedResult]:
    """Apply `result` to the resampled means, the differences, and the rounding tolerance of each row."""
    topics = differences.shape[1]
    numbers, units = to_integers(differences, topics)
    weights = ResampledTopics(topics, options.resamples, options.seed)
    results: list[PairedResult] = []
    for first, (block,) in resampled_sums(weights, numbers):
        block *= units[first : first + len(block), None] / topics  # noqa: PLW2901 - in place: the array is reused anyway
        results += [
            result(means, differences[row], float(rounding[row]) / topics) for row, means in enumerate(block, first)
        ]
    return results


def _share_below(means: Floats, value: float, tolerance: float) -> float:
    """Return the share of means below a value plus half of those equal to it; never 0 or 1."""
    below = np.count_nonzero(means < value - tolerance)
    equal = np.count_nonzero(np.abs(means - value) <= tolerance)
    smallest = 0.5 / len(means)
    return min(max((int(below) + 0.5 * int(equal)) / len(means), smallest), 1 - smallest)


def _resampled(statistic: float, p: float, interval: tuple[float, float], options: Options) -> PairedResult:
    return PairedResult(statistic, p, interval, options.resamples, exact=False, seed=options.seed)


def randomization(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row is 0 by Fisher's randomization test: random sign flips."""
    # p is the share of sign flips with a sum at least as far from 0, ties within rounding included. For random flips it
    # is (b + 1) / (B + 1), as the observed signs are one more flip. The interval contains the shifts of the second
    # system that the same flips do not reject. If the differences are shifted by x, flipping a subset F of topics gives
    # a sum at least as high as observed exactly if the mean difference over F is at most x. So the limits are quantiles
    # of the means over random subsets of topics (Hartigan 1969). An interval excludes 0 if p <= alpha, and is infinite
    # if so few topics cannot be significant. `differences`: (P, T) with T > 1, no row all 0. `rounding`: (P,), sums
    # that differ by less are equal.
    topics = differences.shape[1]
    flips = SignFlips(topics, options.resamples, options.seed)
    numbers, units = to_integers(differences)
    table = np.concatenate([np.ones((1, topics)), numbers])  # the sum of the signs gives the number of flips
    results: list[PairedResult] = []
    limits = None
    for first, (sums,) in resampled_sums(flips, table):
        skip = 0
        if limits is None:
            limits, skip = _ShiftLimits(sums[0], flips, options), 1
        for row, flipped_sums in enumerate(sums[skip:], first + skip - 1):
            total, unit = float(numbers[row].sum()), float(units[row])
            # conversion to integers changes each number by half a unit at most
            tolerance = float(rounding[row]) / unit + topics
            shifts = limits.compute(flipped_sums, total)
            low, high = (0.0 if abs(shift) <= tolerance else shift * unit for shift in shifts)
            results.append(
                PairedResult(
                    statistic=float(differences[row].mean()),
                    p=_p_value(flipped_sums, total, tolerance, flips, options),
                    interval=options.interval(low, high),
                    resamples=1 << topics if flips.exact else flips.count,
                    exact=flips.exact,
                    seed=None if flips.exact else options.seed,
                )
            )
    return results


@dataclass(frozen=True)
class _SubsetMeans:
    """Means over the subset of topics that each resample flips, or does not flip."""

    non_empty: Bools | None  # resamples with a non-empty subset; None: all
    inverse_sizes: Floats  # of the non-empty subsets
    n_empty: int

    @staticmethod
    def from_sizes(sizes: Floats) -> _SubsetMeans:
        non_empty = sizes > 0
        n_empty = len(sizes) - int(np.count_nonzero(non_empty))
        return _SubsetMeans(non_empty if n_empty else None, 1.0 / sizes[non_empty], n_empty)

    def write(self, double_sums: Floats, out: Floats) -> int:
        """Write the subset means to the beginning of ``out``, from twice their sums. Return how many were written."""
        means = out[: len(self.inverse_sizes)]
        np.multiply(double_sums if self.non_empty is None else double_sums[self.non_empty], self.inverse_sizes, means)
        means *= 0.5
        return len(means)


class _ShiftLimits:
    """Smallest and largest shift that the randomization test does not reject; its buffers serve all pairs."""

    def __init__(self, signs: Floats, flips: SignFlips, options: Options) -> None:
        self._subsets = [_SubsetMeans.from_sizes((flips.n - signs) / 2)]
        if options.alternative == "two-sided" or flips.exact:  # the topics that are not flipped are a subset, too
            self._subsets.append(_SubsetMeans.from_sizes((flips.n + signs) / 2))
        if flips.exact:
            arrangements = flips.count if options.alternative == "two-sided" else 2 * flips.count
            rank = rejection_rank(options.alpha, arrangements) + 1
        else:
            rank = rejection_rank(options.alpha, flips.count + 1)
        # flipping an empty subset gives the observed sum for every shift
        self._rank = rank - sum(subset.n_empty for subset in self._subsets)
        self._alternative = options.alternative
        self._means = np.empty(sum(len(subset.inverse_sizes) for subset in self._subsets))
        self._double_sums = np.empty_like(signs)

    def compute(self, flipped_sums: Floats, total: float) -> tuple[float, float]:
        n_written = 0
        for subset, combine in zip(self._subsets, (np.subtract, np.add), strict=False):
            combine(total, flipped_sums, out=self._double_sums)  # total = sum of both subsets, flipped sum = difference
            n_written += subset.write(self._double_sums, self._means[n_written:])
        low = kth_smallest(self._means, self._rank) if self._alternative != "less" else -math.inf
        np.negative(self._means, out=self._means)
        high = -kth_smallest(self._means, self._rank) if self._alternative != "greater" else math.inf
        return low, high


def _p_value(flipped_sums: Floats, total: float, rounding: float, flips: SignFlips, options: Options) -> float:
    threshold = (-total if options.alternative == "less" else total) - rounding
    if options.alternative == "two-sided":
        threshold = abs(total) - rounding
        n_extreme = flips.count
        if threshold > 0:
            n_extreme = _count_beyond(flipped_sums, threshold) + _count_beyond(flipped_sums, threshold, below=True)
        return n_extreme / flips.count if flips.exact else (n_extreme + 1) / (flips.count + 1)
    n_extreme = _count_beyond(flipped_sums, threshold, below=options.alternative == "less")
    if not flips.exact:
        return (n_extreme + 1) / (flips.count + 1)
    return (n_extreme + _count_beyond(flipped_sums, threshold, below=options.alternative != "less")) / (2 * flips.count)


def _count_beyond(sums: Floats, threshold: float, *, below: bool = False) -> int:
    """Count the sums of at least ``threshold``, or of at most ``-threshold``."""
    return int(np.count_nonzero(sums <= -threshold if below else sums >= threshold))
