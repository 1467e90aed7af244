"""Agreement of disjoint sets of topics on the order of systems (swap rates, tau), and discriminative power."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal
from judged.stats.inputs import (
    ROUNDING,
    check_share,
    complete_topics,
    paired_differences,
    score_matrix,
    spread,
    topics_text,
)
from judged.stats.sufficiency import MIN_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from judged.results.types import Floats, Ints


_CELLS = 1 << 21  # numbers in memory at a time
_MAX_SWAP_RATE = 0.05  # swap rate up to which a difference is reliable (Voorhees and Buckley 2002)


@dataclass(frozen=True)
class SwapBin:
    """Swap rate of pairs of systems with a difference in this range in one set of topics."""

    low: float  # low <= absolute difference < high
    high: float  # infinite for the last bin
    pairs: int  # comparisons in the bin
    swaps: int  # comparisons with the reverse order in the other set of topics

    @property
    def rate(self) -> float:
        """Swaps per comparison; NaN for an empty bin."""
        return self.swaps / self.pairs if self.pairs else math.nan


@dataclass(frozen=True)
class Stability:
    """Agreement of two disjoint sets of topics on the order of systems."""

    systems: int
    n: int  # topics with a score for every system
    left_out: int
    size: int  # topics in each of the two sets
    samples: int  # pairs of sets
    seed: int
    bins: tuple[SwapBin, ...]
    swap_rate: float  # over all comparisons with a difference in the first set; a tie in the second is not a swap
    # Lower limit of the first bin from which on all bins have a swap rate of at most 5%; infinite if there is none. It
    # depends on the size of the sets: with more topics it is smaller.
    reliable_difference: float
    tau: float  # mean Kendall's tau-b between the two orders; NaN if all systems are tied
    tau_interval: tuple[float, float]  # middle 95% of the samples

    @property
    def sentence(self) -> str:
        """Result in a few sentences."""
        if math.isnan(self.tau):
            return "There are too few topics, or too few different scores, to compare sets of topics."
        reliable = (
            "even the largest differences are reversed in more than 5% of the cases"
            if math.isinf(self.reliable_difference)
            else f"a difference of {self.reliable_difference:g} or more is reversed in at most 5% of the cases"
        )
        return (
            f"Two disjoint sets of {topics_text(self.size)} order two systems differently in "
            f"{self.swap_rate:.1%} of the cases; {reliable}; Kendall's tau between the two orders of the systems is"
            f" {decimal(self.tau, 3)} (95% of samples: {decimal(self.tau_interval[0], 3)} to"
            f" {decimal(self.tau_interval[1], 3)})."
        )


def stability(
    values: ArrayLike,
    *,
    size: int | None = None,
    resamples: int = 1000,
    width: float = 0.01,
    bins: int = 21,
    seed: int = 0,
) -> Stability:
    """Estimate how often two disjoint sets of topics order systems differently (Voorhees and Buckley 2002).

    For every pair of systems, the difference of the means in the first set selects the bin. The comparison is a swap
    if the difference in the second set has the opposite sign. Comparisons without a difference in the first set are not
    counted.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems; topics without a score for some system are left out.
    size
        Number of topics in each set. Default and maximum: half of the topics.
    resamples
        Number of pairs of sets.
    width, bins
        Width of a bin of differences, and number of bins; the last one has no upper limit.
    seed
        Of the random sets.

    Raises
    ------
    InputError
        If an option is out of range.

    Examples
    --------
    >>> swaps = stability([[0.1, 0.2, 0.1, 0.3], [0.2, 0.4, 0.5, 0.6]], resamples=100)
    >>> swaps.swap_rate, swaps.tau
    (0.0, 1.0)
    """
    scores, left_out = complete_topics(score_matrix(values))
    systems, n = scores.shape
    half = n // 2 if size is None else size
    if resamples < 1 or bins < 1 or not width > 0:
        problem = f"`resamples`, `bins`, and `width` must be positive, got {resamples}, {bins}, and {width}"
        raise InputError(problem, fix="use positive numbers")
    if size is not None and not 1 <= size <= n // 2:
        raise InputError(f"`size` must be from 1 to half of the {n} topics, got {size}", fix=f"use {n // 2}")
    pairs = np.zeros(bins, dtype=np.int64)
    swaps, tau = pairs.copy(), np.empty(0)
    for first, second in _split_differences(scores, half, resamples if half else 0, seed):
        bin_index = np.minimum(np.abs(first) / width * (1 + ROUNDING), bins - 1).astype(np.int64)
        pairs += np.bincount(bin_index[first != 0], minlength=bins)
        swaps += np.bincount(bin_index[first * second < 0], minlength=bins)
        tau = np.append(tau, _tau(np.sign(first), np.sign(second)))
    tau = tau[~np.isnan(tau)]
    swap_bins = tuple(
        SwapBin(i * width, (i + 1) * width if i < bins - 1 else math.inf, int(pairs[i]), int(swaps[i]))
        for i in range(bins)
    )
    low, high = np.quantile(tau, [0.025, 0.975]).tolist() if len(tau) else (math.nan, math.nan)
    return Stability(
        systems=systems,
        n=n,
        left_out=left_out,
        size=half,
        samples=resamples,
        seed=seed,
        bins=swap_bins,
        swap_rate=float(swaps.sum() / pairs.sum()) if pairs.sum() else math.nan,
        reliable_difference=_reliable_difference(swap_bins),
        tau=float(tau.mean()) if len(tau) else math.nan,
        tau_interval=(low, high),
    )


def _split_differences(scores: Floats, half: int, samples: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield the differences of all pairs of systems in two disjoint sets of topics, (samples, pairs) each."""
    systems, n = scores.shape
    rng = np.random.default_rng(seed)
    block_size = max(1, _CELLS // max(n, systems * (systems - 1) // 2))
    for start in range(0, samples, block_size):
        size = min(block_size, samples - start)
        topics = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        yield _mean_differences(scores, topics[:, :half]), _mean_differences(scores, topics[:, half : 2 * half])


def _mean_differences(scores: Floats, topics: Ints) -> Floats:
    """Return the difference of means of all pairs of systems in each set of topics: (samples, pairs)."""
    is_member = np.zeros((len(topics), scores.shape[1]))
    np.put_along_axis(is_member, topics, 1.0, axis=1)
    means = is_member @ scores.T / topics.shape[1]
    first, second = np.triu_indices(len(scores), 1)
    differences = means[:, second] - means[:, first]
    differences[np.abs(differences) <= ROUNDING * np.abs(scores).max()] = 0.0
    return differences


def _tau(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's tau-b of each row from the signs of the pairs' differences; NaN if all systems are tied."""
    untied = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return (first * second).sum(axis=1) / np.where(untied > 0, untied, np.nan)


def _reliable_difference(bins: tuple[SwapBin, ...]) -> float:
    """Return the lower limit from which on all bins have few swaps; empty bins at the end do not count."""
    reliable = math.inf
    for swap_bin in reversed(bins):
        if swap_bin.pairs and swap_bin.rate > _MAX_SWAP_RATE:
            break
        if swap_bin.pairs:
            reliable = swap_bin.low
    return reliable


@dataclass(frozen=True)
class Discrimination:
    """P-values of all pairs of systems, and the share of significant ones."""

    test: str  # test of the p-values
    alpha: float
    # Rows of the systems by descending p-value, pairs without one last: plotted in this order, the p-values are Sakai's
    # ASL curve.
    pairs: tuple[tuple[int, int], ...]
    p_values: tuple[float, ...]  # in the order of `pairs`
    differences: tuple[float, ...]  # of the means, second minus first, in the order of `pairs`
    significant: int  # pairs with p <= alpha and enough topics for a verdict; not corrected for the number of pairs
    share: float  # of significant pairs among those with a p-value; NaN if none has one
    # Difference that would be significant for every pair: the largest of t(1 - alpha / 2) SD / sqrt(n). Sakai estimates
    # it from bootstrap samples. NaN if no pair has two topics.
    required: float
    largest_missed: float  # largest absolute difference that is not significant; 0 if all are

    @property
    def sentence(self) -> str:
        """Result in a few sentences."""
        if math.isnan(self.share):
            return "No pair of systems could be tested."
        n_tested = sum(not math.isnan(p) for p in self.p_values)
        requirement = (
            f"; a difference of {decimal(self.required, 3)} would be significant for every pair"
            if self.required > 0
            else ""
        )
        return (
            f"{self.share:.1%} of the pairs of systems ({self.significant} of {n_tested}) differ significantly "
            f"(alpha {self.alpha:g}, {self.test}){requirement}."
        )


def discriminative_power(
    values: ArrayLike,
    *,
    alpha: float = 0.05,
    test: str = "randomization",
    resamples: int = 100_000,
    seed: int = 0,
    p_values: ArrayLike | None = None,
) -> Discrimination:
    """Test all pairs of systems and compute the share of significant ones, to compare measures.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems by topic; NaN for missing scores.
    alpha
        Significance level of each test.
    test, resamples, seed
        As in `judged.stats.paired.paired_tests`.
    p_values
        (S, S): p-values to use instead of these tests, such as those of randomized Tukey HSD, which account for the
        number of pairs (Sakai 2012). ``test`` is then only a label.

    Raises
    ------
    InputError
        If the shapes differ, or an option is invalid.

    Examples
    --------
    >>> scores = [[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [0.2, 0.4, 0.5, 0.6, 0.3, 0.2], [0.3, 0.5, 0.4, 0.7, 0.4, 0.0]]
    >>> result = discriminative_power(scores, test="t")
    >>> result.pairs, result.significant, round(result.largest_missed, 4)
    (((1, 2), (0, 2), (0, 1)), 2, 0.0167)
    """
    check_share("alpha", alpha)
    scores = score_matrix(values)
    pairs = list(combinations(range(len(scores)), 2))
    if p_values is None:
        from judged.stats.paired import paired_tests

        results = paired_tests(scores, pairs, test, level=1 - alpha, resamples=resamples, seed=seed)
        p = np.array([result.p for result in results])
        test = ", ".join(dict.fromkeys(result.test for result in results))  # another test may replace the requested one
    else:
        matrix = np.asarray(p_values, dtype=np.float64)
        if matrix.shape != (len(scores), len(scores)):
            problem = f"`p_values` must have shape {(len(scores), len(scores))}, got {matrix.shape}"
            raise InputError(problem, fix="pass one p-value per pair of systems")
        p = matrix[tuple(np.array(pairs).T)]
    differences, critical, topics = np.array(
        [_critical(scores[first], scores[second], alpha) for first, second in pairs]
    ).T
    order = np.argsort(-p, kind="stable")  # NaN last
    significant = (p <= alpha * (1 + 1e-12)) & (topics >= MIN_UNITS["verdict"])
    tested = ~np.isnan(p)
    return Discrimination(
        test=test,
        alpha=alpha,
        pairs=tuple(pairs[i] for i in order.tolist()),
        p_values=tuple(p[order].tolist()),
        differences=tuple(differences[order].tolist()),
        significant=int(significant.sum()),
        share=float(significant.sum() / tested.sum()) if tested.any() else math.nan,
        required=float(np.nanmax(critical)) if not np.isnan(critical).all() else math.nan,
        largest_missed=float(np.abs(differences[tested & ~significant]).max(initial=0.0)),
    )


def _critical(first: ArrayLike, second: ArrayLike, alpha: float) -> tuple[float, float, int]:
    """Return the mean difference, the smallest one that the t-test would find significant, and the number of topics."""
    from scipy.special import stdtrit

    differences, _ = paired_differences(first, second)
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return mean, math.nan, n
    return mean, float(stdtrit(n - 1, 1 - alpha / 2)) * spread(differences) / math.sqrt(n), n
