"""The engine of resampling: one matrix product serves all pairs and all resamples, in blocks of bounded memory.

Differences are made whole numbers of a unit so small that nothing is lost, and so large that every sum of them is a
float without rounding. Sums then depend neither on the order of addition nor on threads nor on what else stands
in the table: the same seed gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from judged.stats.interval import acceleration, bca_limits
from judged.stats.results import PairedResult, share

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.results.types import Bools, Floats
    from judged.stats.results import Options


_DRAWN = 1 << 18  # weights made at a time: it decides which resample gets which random bits, so that it never changes
_KEPT = 1 << 23  # weights that are kept for the next block of rows; more are made again
_HELD = 1 << 22  # sums held at a time
_BITS = 52  # of a float's fraction
_HEAD = 4096  # values from which a bound is guessed


class Weights(Protocol):
    """How often, and with which sign, each topic counts in each resample."""

    @property
    def n(self) -> int:
        """How many topics there are."""
        ...

    @property
    def count(self) -> int:
        """How many resamples `blocks` makes."""
        ...

    def blocks(self) -> Iterator[Floats]:
        """Give all resamples, (b, T) at a time; the same ones at each call."""
        ...


@dataclass(frozen=True)
class SignFlips:
    """Signs for Fisher's randomisation test: drawn, or all of them where there are at most `resamples`.

    Where all are listed, the first topic keeps its sign: the other half are their negatives.

    >>> [block.tolist() for block in SignFlips(n=2, resamples=100, seed=0).blocks()]
    [[[1.0, 1.0], [1.0, -1.0]]]
    """

    n: int
    resamples: int
    seed: int

    @property
    def exact(self) -> bool:
        """Whether all signs are listed."""
        return self.n < 60 and 1 << self.n <= self.resamples

    @property
    def count(self) -> int:
        """How many rows `blocks` makes."""
        return 1 << (self.n - 1) if self.exact else self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Give the signs, (b, T) at a time."""
        rng = np.random.default_rng(self.seed)
        for start, size in _parts(self.count, self.n):
            if self.exact:
                place = np.arange(start, start + size)[:, None]
                flipped = np.concatenate([np.zeros_like(place), place >> np.arange(self.n - 1) & 1], axis=1)
            else:
                drawn = rng.integers(0, 256, size=(size, (self.n + 7) // 8), dtype=np.uint8)
                flipped = np.unpackbits(drawn, axis=1, count=self.n)
            yield (1 - 2 * flipped.astype(np.int8)).astype(np.float64)


@dataclass(frozen=True)
class ResampledTopics:
    """How often each topic was drawn, with replacement, as many as there are."""

    n: int
    resamples: int
    seed: int

    @property
    def count(self) -> int:
        """How many resamples there are."""
        return self.resamples

    def blocks(self) -> Iterator[Floats]:
        """Give the times that each topic was drawn, (b, T) at a time."""
        rng = np.random.default_rng(self.seed)
        for _, size in _parts(self.resamples, self.n):
            drawn = rng.integers(self.n, size=(size, self.n))
            cells = drawn + self.n * np.arange(size)[:, None]
            yield np.bincount(cells.ravel(), minlength=size * self.n).reshape(size, -1).astype(np.float64)


def resampled_sums(weights: Weights, *tables: Floats) -> Iterator[tuple[int, list[Floats]]]:
    """Add up each row of each table in each resample."""
    # Yields, for a block of p rows from `first` on: one (p, B) for each table. They are overwritten at the next step.
    rows = len(tables[0])
    step = min(rows, max(1, _HELD // (weights.count * len(tables))))
    kept = list(weights.blocks()) if step < rows and weights.count * weights.n <= _KEPT else None
    held = [np.empty((step, weights.count)) for _ in tables]
    for first in range(0, rows, step):
        parts = [np.ascontiguousarray(table[first : first + step]) for table in tables]
        sums = [room[: len(part)] for room, part in zip(held, parts, strict=True)]
        at = 0
        for block in kept or weights.blocks():
            for part, into in zip(parts, sums, strict=True):
                np.matmul(part, block.T, out=into[:, at : at + len(block)])
            at += len(block)
        yield first, sums


def whole_numbers(values: Floats, times: int = 1) -> tuple[Floats, Floats]:
    """Write each row as whole numbers of a unit, so that sums of up to ``times`` all of them are exact.

    >>> numbers, units = whole_numbers(np.array([[0.1, -0.3]]))
    >>> float(abs(numbers[0] * units[0] - [0.1, -0.3]).max()) <= 1e-16
    True
    """
    # `values`: (P, T), each row with something other than 0. Returns (P, T) and (P,): `values` is `numbers * units` but
    # for half a unit.
    _, exponents = np.frexp(times * np.abs(values).sum(axis=1))
    units = np.ldexp(1.0, exponents - _BITS)
    return np.rint(values / units[:, None]), units


def least(values: Floats, rank: int) -> float:
    """Give the ``rank``-th smallest value, counted from 1; minus infinity for rank 0 or less.

    >>> least(np.array([0.3, 0.1, 0.2]), 2)
    0.2
    """
    # The values stand in random order, so that some of them tell where to look, and few need sorting.
    if rank < 1:
        return -math.inf
    head = np.sort(values[:_HEAD])
    bound = head[min(len(head) - 1, int(1.5 * rank * len(head) / len(values)) + 20)]
    below = values[values <= bound]
    among = below if len(below) >= rank else values
    return float(np.partition(among, rank - 1)[rank - 1])


def _parts(count: int, topics: int) -> Sequence[tuple[int, int]]:
    """Cut ``count`` resamples into blocks whose size depends on nothing but the number of topics."""
    size = max(1, _DRAWN // topics)
    return [(start, min(size, count - start)) for start in range(0, count, size)]


_LEVEL = 1e-12  # of the largest square: a resample that draws one value only has no variance but rounding


def percentile(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test by the shift method (Efron and Tibshirani 1993, 16.4); the interval inverts it."""
    # p is the share, (b + 1) / (B + 1), of resamples of the differences shifted to a mean of 0 whose mean is at least
    # as far from 0 as the one seen. The interval holds the means that this would not reject. `differences`: (P, T) with
    # T > 1, no row of one value only. `rounding`: (P,): sums that differ by this much are the same.

    def found(means: Floats, row: Floats, slack: float) -> PairedResult:
        mean, two_sided = float(row.mean()), options.alternative == "two-sided"
        side = -1 if options.alternative == "less" else 1
        moved = np.abs(means - mean) if two_sided else side * (means - mean)
        far = abs(mean) if two_sided else side * mean
        p = (int(np.count_nonzero(moved >= far - slack)) + 1) / (len(means) + 1)
        most = -least(-moved, share(options.alpha, len(means) + 1))  # a mean further off than this is rejected
        low, high = (0.0 if abs(limit) <= slack else limit for limit in (mean - most, mean + most))
        return _resampled(mean, p, options.interval(low, high), options)

    return _by_means(found, differences, rounding, options)


def bca(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Give the bias-corrected and accelerated interval (Efron 1987), and p by inverting it."""
    # p is one less the level at which the interval's nearer limit reaches 0, and at least 1 / (B + 1). Parameters as
    # for `percentile`.
    from scipy.special import ndtr, ndtri

    def found(means: Floats, row: Floats, slack: float) -> PairedResult:
        mean, skew = float(row.mean()), acceleration(row - row.mean())
        bias, zero = (float(ndtri(_share_below(means, value, slack))) for value in (mean, 0.0))
        stretched = zero - bias  # undo the stretching of the interval's limits
        room = 1 + skew * stretched
        z = stretched / room - bias if room > 0 else math.copysign(math.inf, stretched)
        p = max(options.p_of(float(ndtr(-z)), float(ndtr(z))), 1 / (len(means) + 1))
        low, high = bca_limits(means, mean, skew, options.two_sided_level).tolist()
        return _resampled(mean, p, options.interval(low, high), options)

    return _by_means(found, differences, rounding, options)


def studentised(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Compare t with its bootstrap distribution (Efron and Tibshirani 1993, 12.5), equal tails."""
    # Each resample gives t* = (its mean - the mean) / its standard error. The p-value is twice the smaller of the
    # shares, (b + 1) / (B + 1), of t* at least and at most t; the interval holds the means that this would not reject.
    # A resample without variance counts as infinitely far: with few topics, limits become infinite. Parameters as for
    # `percentile`.
    topics = differences.shape[1]
    means = differences.mean(axis=1)
    apart = differences - means[:, None]
    largest = np.abs(apart).max(axis=1)
    scaled = apart / largest[:, None]
    numbers, units = whole_numbers(scaled, topics)
    squares, square_units = whole_numbers(scaled**2, topics)
    errors = np.sqrt((scaled**2).sum(axis=1) / (topics * (topics - 1))) * largest
    found: list[PairedResult] = []
    weights = ResampledTopics(topics, options.resamples, options.seed)
    for first, (sums, sums_of_squares) in resampled_sums(weights, numbers, squares):
        for row in range(first, first + len(sums)):
            moved = sums[row - first] * (float(units[row]) / topics)
            mean_squares = sums_of_squares[row - first] * (float(square_units[row]) / topics)
            slack = float(rounding[row] / largest[row]) / topics
            t_values = _t_values(moved, mean_squares, topics, slack)
            found.append(_by_t(t_values, float(means[row]), float(errors[row]), float(rounding[row]) / topics, options))
    return found


def _t_values(moved: Floats, mean_squares: Floats, topics: int, slack: float) -> Floats:
    """Give t of each resample from the mean of its values and of their squares; values are 1 at most."""
    variances = mean_squares - moved**2
    level = variances <= _LEVEL
    far = np.where(np.abs(moved) <= slack, 0.0, np.copysign(np.inf, moved))
    return np.where(level, far, moved / np.sqrt(np.where(level, 1.0, variances) / (topics - 1)))


def _by_t(t_values: Floats, mean: float, error: float, slack: float, options: Options) -> PairedResult:
    """Read p and interval off the resampled t."""
    t, loose = mean / error, slack / error
    upper, lower = (
        (int(np.count_nonzero(reached)) + 1) / (len(t_values) + 1)
        for reached in (t_values >= t - loose, t_values <= t + loose)
    )
    rank = share(options.alpha / 2 if options.alternative == "two-sided" else options.alpha, len(t_values) + 1)
    low, high = mean + error * least(-t_values, rank), mean - error * least(t_values, rank)
    return _resampled(t, options.p_of(lower, upper), options.interval(low, high), options)


def _by_means(
    found: Callable[[Floats, Floats, float], PairedResult], differences: Floats, rounding: Floats, options: Options
) -> list[PairedResult]:
    """Ask ``found`` about each row: its resampled means, its differences, and what counts as rounding of a mean."""
    topics = differences.shape[1]
    numbers, units = whole_numbers(differences, topics)
    weights = ResampledTopics(topics, options.resamples, options.seed)
    results: list[PairedResult] = []
    for first, (block,) in resampled_sums(weights, numbers):
        block *= units[first : first + len(block), None] / topics  # noqa: PLW2901 - in place: the engine lends its array
        results += [
            found(means, differences[row], float(rounding[row]) / topics) for row, means in enumerate(block, first)
        ]
    return results


def _share_below(means: Floats, value: float, slack: float) -> float:
    """Give the share of means below a value, half of those that equal it, never 0 or 1."""
    below = np.count_nonzero(means < value - slack)
    equal = np.count_nonzero(np.abs(means - value) <= slack)
    edge = 0.5 / len(means)
    return min(max((int(below) + 0.5 * int(equal)) / len(means), edge), 1 - edge)


def _resampled(statistic: float, p: float, interval: tuple[float, float], options: Options) -> PairedResult:
    return PairedResult(statistic, p, interval, options.resamples, exact=False, seed=options.seed)


def randomisation(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row is 0 by flipping signs."""
    # The p-value is the share of sign flips whose sum is at least as far from 0; sums that are the same but for
    # rounding count. Drawn flips: (b + 1) / (B + 1), as the signs that were seen are one more flip. The interval holds
    # every shift of the second system that the same flips would not reject. Flipping the topics F of differences
    # shifted by x gives a sum as high as the one seen just where the mean difference over F is at most x: the limits
    # are quantiles of the means over random subsets of topics (Hartigan 1969). An interval excludes 0 where p is at
    # most alpha, and is infinite where so few topics cannot be significant. `differences`: (P, T) with T > 1, no row
    # all 0. `rounding`: (P,): sums that differ by this much are the same.
    topics = differences.shape[1]
    flips = SignFlips(topics, options.resamples, options.seed)
    numbers, units = whole_numbers(differences)
    table = np.concatenate([np.ones((1, topics)), numbers])  # the sum of the signs themselves says how many flipped
    found: list[PairedResult] = []
    finding = None
    for first, (sums,) in resampled_sums(flips, table):
        skip = 0
        if finding is None:
            finding, skip = _Limits(sums[0], flips, options), 1
        for row, flipped in enumerate(sums[skip:], first + skip - 1):
            total, unit = float(numbers[row].sum()), float(units[row])
            slack = float(rounding[row]) / unit + topics  # each number is half a unit off, at most
            low, high = (0.0 if abs(limit) <= slack else limit * unit for limit in finding.of(flipped, total))
            found.append(
                PairedResult(
                    statistic=float(differences[row].mean()),
                    p=_p(flipped, total, slack, flips, options),
                    interval=options.interval(low, high),
                    resamples=1 << topics if flips.exact else flips.count,
                    exact=flips.exact,
                    seed=None if flips.exact else options.seed,
                )
            )
    return found


@dataclass(frozen=True)
class _Subsets:
    """The topics that each resample flips, or those that it leaves, where there are some."""

    some: Bools | None  # None: in all resamples
    inverse: Floats  # one over how many, for those resamples
    empty: int  # the other resamples

    @staticmethod
    def of(sizes: Floats) -> _Subsets:
        """Sort out the resamples in which a subset is empty."""
        some = sizes > 0
        empty = len(sizes) - int(np.count_nonzero(some))
        return _Subsets(some if empty else None, 1.0 / sizes[some], empty)

    def means(self, twice: Floats, into: Floats) -> int:
        """Put the means over the subsets into the beginning of ``into``, from twice their sums; give how many."""
        found = into[: len(self.inverse)]
        np.multiply(twice if self.some is None else twice[self.some], self.inverse, out=found)
        found *= 0.5
        return len(found)


class _Limits:
    """Finds the least and the greatest shift that is not rejected; its arrays serve all pairs."""

    def __init__(self, signs: Floats, flips: SignFlips, options: Options) -> None:
        self._subsets = [_Subsets.of((flips.n - signs) / 2)]
        if options.alternative == "two-sided" or flips.exact:  # then the topics that are left are a subset, too
            self._subsets.append(_Subsets.of((flips.n + signs) / 2))
        if flips.exact:
            listed = flips.count if options.alternative == "two-sided" else 2 * flips.count
            rank = share(options.alpha, listed) + 1
        else:
            rank = share(options.alpha, flips.count + 1)
        # a flip of nothing gives the sum that was seen, whatever the shift
        self._rank = rank - sum(subset.empty for subset in self._subsets)
        self._alternative = options.alternative
        self._means = np.empty(sum(len(subset.inverse) for subset in self._subsets))
        self._twice = np.empty_like(signs)

    def of(self, flipped: Floats, total: float) -> tuple[float, float]:
        at = 0
        for subset, add in zip(self._subsets, (np.subtract, np.add), strict=False):
            add(total, flipped, out=self._twice)
            at += subset.means(self._twice, self._means[at:])
        low = least(self._means, self._rank) if self._alternative != "less" else -math.inf
        np.negative(self._means, out=self._means)
        high = -least(self._means, self._rank) if self._alternative != "greater" else math.inf
        return low, high


def _p(flipped: Floats, total: float, rounding: float, flips: SignFlips, options: Options) -> float:
    edge = (-total if options.alternative == "less" else total) - rounding
    if options.alternative == "two-sided":
        edge = abs(total) - rounding
        reached = _beyond(flipped, edge) + _beyond(flipped, edge, below=True) if edge > 0 else flips.count
        return reached / flips.count if flips.exact else (reached + 1) / (flips.count + 1)
    reached = _beyond(flipped, edge, below=options.alternative == "less")
    if not flips.exact:
        return (reached + 1) / (flips.count + 1)
    return (reached + _beyond(flipped, edge, below=options.alternative != "less")) / (2 * flips.count)


def _beyond(sums: Floats, edge: float, *, below: bool = False) -> int:
    """Count the sums of at least ``edge``, or of at most ``-edge``."""
    return int(np.count_nonzero(sums <= -edge if below else sums >= edge))
