"""How far separate sets of topics agree on the order of systems: swap rates by size of the difference, and tau."""

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


_CELLS = 1 << 21  # numbers held at a time
_ACCEPTED = 0.05  # of swaps: Voorhees and Buckley call a difference reliable from here on


@dataclass(frozen=True)
class SwapBin:
    """How often two systems swapped places whose difference in one set of topics was so large."""

    # low, high: of the absolute difference: `low <= difference < high`; the last bin has no end
    low: float
    high: float
    # pairs, swaps: comparisons that fell into the bin, and those in which the other set of topics had the order
    # reversed
    pairs: int
    swaps: int

    @property
    def rate(self) -> float:
        """Swaps by comparison; NaN for an empty bin."""
        return self.swaps / self.pairs if self.pairs else math.nan


@dataclass(frozen=True)
class Stability:
    """How far two separate sets of topics agree on the order of the systems."""

    # systems, n, left_out: systems; topics with a score for every system; the others
    systems: int
    n: int
    left_out: int
    size: int  # topics in each of the two sets
    # samples, seed: how often two sets were drawn
    samples: int
    seed: int
    bins: tuple[SwapBin, ...]
    swap_rate: float  # over all comparisons in which the first set had a difference; none in the second is not a swap
    # the least lower end of a bin from which on no bin swaps in more than 5% of its comparisons; infinite if there is
    # none. It holds for sets of this size; with more topics it would be smaller.
    reliable_difference: float
    # Kendall's tau-b between the orders of the systems in the two sets: mean over the samples. NaN where all systems
    # tied.
    tau: float
    tau_interval: tuple[float, float]  # the middle 95% of the samples

    @property
    def sentence(self) -> str:
        """What the sets of topics show, in plain words."""
        if math.isnan(self.tau):
            return "The topics, or the differences between the systems, are too few to compare sets of topics."
        reliable = (
            "no difference is large enough to be reversed in less than 5% of the cases"
            if math.isinf(self.reliable_difference)
            else f"a difference of {self.reliable_difference:g} or more is reversed in at most 5% of the cases"
        )
        return (
            f"Two separate sets of {topics_text(self.size)} order two systems the other way round in "
            f"{self.swap_rate:.1%} of the cases; {reliable}; tau between the orders is {decimal(self.tau, 3)} "
            f"({decimal(self.tau_interval[0], 3)} to {decimal(self.tau_interval[1], 3)})."
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
    """Draw two separate sets of topics again and again, and see how often they order systems differently.

    Voorhees and Buckley (2002): for every two systems, the difference of the means in the first set says into which
    bin the comparison falls; it is a swap if the difference in the second set has the other sign. Where the first set
    has no difference there is nothing to swap, and the comparison counts in no bin.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems; topics that lack one are left out.
    size
        Topics in each set, at most half of them: the default.
    resamples
        How often two sets are drawn.
    width, bins
        The width of a bin of differences, and how many there are; the last one has no end.
    seed
        Of the draws.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> found = stability([[0.1, 0.2, 0.1, 0.3], [0.2, 0.4, 0.5, 0.6]], resamples=100)
    >>> found.swap_rate, found.tau
    (0.0, 1.0)
    """
    scores, left_out = complete_topics(score_matrix(values))
    systems, n = scores.shape
    half = n // 2 if size is None else size
    if resamples < 1 or bins < 1 or not width > 0:
        raise InputError(
            f"{resamples} samples, {bins} bins of width {width} make no sense", fix="give numbers above 0 for all"
        )
    if size is not None and not 1 <= size <= n // 2:
        raise InputError(f"two separate sets of {size} topics cannot be drawn from {n}", fix=f"at most {n // 2}")
    pairs = np.zeros(bins, dtype=np.int64)
    swaps, tau = pairs.copy(), np.empty(0)
    for one, two in _halves(scores, half, resamples if half else 0, seed):
        bin_of = np.minimum(np.abs(one) / width * (1 + ROUNDING), bins - 1).astype(np.int64)
        pairs += np.bincount(bin_of[one != 0], minlength=bins)
        swaps += np.bincount(bin_of[one * two < 0], minlength=bins)
        tau = np.append(tau, _tau(np.sign(one), np.sign(two)))
    tau = tau[~np.isnan(tau)]
    made = tuple(
        SwapBin(at * width, (at + 1) * width if at < bins - 1 else math.inf, int(pairs[at]), int(swaps[at]))
        for at in range(bins)
    )
    low, high = np.quantile(tau, [0.025, 0.975]).tolist() if len(tau) else (math.nan, math.nan)
    return Stability(
        systems=systems,
        n=n,
        left_out=left_out,
        size=half,
        samples=resamples,
        seed=seed,
        bins=made,
        swap_rate=float(swaps.sum() / pairs.sum()) if pairs.sum() else math.nan,
        reliable_difference=_reliable(made),
        tau=float(tau.mean()) if len(tau) else math.nan,
        tau_interval=(low, high),
    )


def _halves(scores: Floats, half: int, samples: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Give the differences of every two systems in two separate sets of topics, (samples, pairs) each, in blocks."""
    systems, n = scores.shape
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // max(n, systems * (systems - 1) // 2))
    for start in range(0, samples, block):
        size = min(block, samples - start)
        drawn = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        yield _differences(scores, drawn[:, :half]), _differences(scores, drawn[:, half : 2 * half])


def _differences(scores: Floats, drawn: Ints) -> Floats:
    """Give the difference of means of every two systems in each drawn set: (samples, pairs)."""
    chosen = np.zeros((len(drawn), scores.shape[1]))
    np.put_along_axis(chosen, drawn, 1.0, axis=1)
    means = chosen @ scores.T / drawn.shape[1]
    first, second = np.triu_indices(len(scores), 1)
    found = means[:, second] - means[:, first]
    found[np.abs(found) <= ROUNDING * np.abs(scores).max()] = 0.0
    return found


def _tau(one: Floats, two: Floats) -> Floats:
    """Give Kendall's tau-b of each row from the signs of all pairs' differences; NaN where one order is all ties."""
    untied = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
    return (one * two).sum(axis=1) / np.where(untied > 0, untied, np.nan)


def _reliable(bins: tuple[SwapBin, ...]) -> float:
    """Find the lower end from which on no bin has too many swaps; empty bins at the end prove nothing."""
    reliable = math.inf
    for one in reversed(bins):
        if one.pairs and one.rate > _ACCEPTED:
            break
        if one.pairs:
            reliable = one.low
    return reliable


@dataclass(frozen=True)
class Discrimination:
    """The p-values of all pairs of systems, and what share of them is significant."""

    test: str  # the test that gave the p-values
    alpha: float
    # rows of the systems, by falling p-value: a curve of p-values over this order is Sakai's ASL curve. Pairs without a
    # p-value stand at the end.
    pairs: tuple[tuple[int, int], ...]
    # p_values, differences: in the same order; difference of the means, second minus first
    p_values: tuple[float, ...]
    differences: tuple[float, ...]
    # pairs with `p <= alpha` and enough topics for a verdict. Nothing here corrects p-values for the number of pairs.
    significant: int
    share: float  # of the pairs that have a p-value. NaN if none has.
    # the difference that would have been significant for every pair: the largest of their critical differences t(1 -
    # alpha / 2) SD / sqrt(n). Sakai reads the same off bootstrap samples. NaN if no pair has two topics.
    required: float
    largest_missed: float  # the largest absolute difference that was not significant; 0 if all were

    @property
    def sentence(self) -> str:
        """The discriminative power in plain words."""
        if math.isnan(self.share):
            return "No two systems could be tested."
        tested = sum(not math.isnan(p) for p in self.p_values)
        enough = f"; for every pair, a difference of {decimal(self.required, 3)} would" if self.required > 0 else ""
        return (
            f"{self.share:.1%} of the pairs of systems ({self.significant} of {tested}) differ significantly "
            f"(alpha {self.alpha:g}, {self.test}){enough}."
        )


def discriminative_power(
    values: ArrayLike,
    *,
    alpha: float = 0.05,
    test: str = "randomisation",
    resamples: int = 100_000,
    seed: int = 0,
    p_values: ArrayLike | None = None,
) -> Discrimination:
    """Test all pairs of systems, and say what share is significant: the more, the better a measure tells them apart.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems by topic; NaN where there is none.
    alpha
        The level of each test.
    test, resamples, seed
        As in `judged.stats.paired.paired_tests`.
    p_values
        (S, S): p-values from elsewhere in place of these tests, such as those of randomised Tukey HSD, which keep the
        number of pairs in account (Sakai 2012). ``test`` then only names them.

    Raises
    ------
    InputError
        If the shapes do not fit, or an option makes no sense.

    Examples
    --------
    >>> scores = [[0.1, 0.2, 0.1, 0.3, 0.2, 0.1], [0.2, 0.4, 0.5, 0.6, 0.3, 0.2], [0.3, 0.5, 0.4, 0.7, 0.4, 0.0]]
    >>> found = discriminative_power(scores, test="t")
    >>> found.pairs, found.significant, round(found.largest_missed, 4)
    (((1, 2), (0, 2), (0, 1)), 2, 0.0167)
    """
    check_share("alpha", alpha)
    scores = score_matrix(values)
    pairs = list(combinations(range(len(scores)), 2))
    if p_values is None:
        from judged.stats.paired import paired_tests

        found = paired_tests(scores, pairs, test, level=1 - alpha, resamples=resamples, seed=seed)
        p = np.array([one.p for one in found])
        test = ", ".join(dict.fromkeys(one.test for one in found))  # where topics tie, it may not be what was asked
    else:
        matrix = np.asarray(p_values, dtype=np.float64)
        if matrix.shape != (len(scores), len(scores)):
            raise InputError(f"p-values of shape {matrix.shape} do not fit", fix="give one for every two systems")
        p = matrix[tuple(np.array(pairs).T)]
    differences, critical, topics = np.array([_critical(scores[one], scores[two], alpha) for one, two in pairs]).T
    order = np.argsort(-p, kind="stable")  # NaN last
    significant = (p <= alpha * (1 + 1e-12)) & (topics >= MIN_UNITS["verdict"])
    tested = ~np.isnan(p)
    return Discrimination(
        test=test,
        alpha=alpha,
        pairs=tuple(pairs[at] for at in order.tolist()),
        p_values=tuple(p[order].tolist()),
        differences=tuple(differences[order].tolist()),
        significant=int(significant.sum()),
        share=float(significant.sum() / tested.sum()) if tested.any() else math.nan,
        required=float(np.nanmax(critical)) if not np.isnan(critical).all() else math.nan,
        largest_missed=float(np.abs(differences[tested & ~significant]).max(initial=0.0)),
    )


def _critical(first: ArrayLike, second: ArrayLike, alpha: float) -> tuple[float, float, int]:
    """Return the mean difference, the least that the t-test would have found significant, and the number of topics."""
    from scipy.special import stdtrit

    differences, _ = paired_differences(first, second)
    n = len(differences)
    mean = float(differences.mean()) if n else math.nan
    if n < 2:
        return mean, math.nan, n
    return mean, float(stdtrit(n - 1, 1 - alpha / 2)) * spread(differences) / math.sqrt(n), n
