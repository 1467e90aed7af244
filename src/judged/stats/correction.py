"""Correction of p-values for the number of comparisons."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.results.spelling import one_of
from judged.results.types import ReadOnly
from judged.stats.inputs import ROUNDING, check_share, topics_text
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints
    from judged.stats.results import Difference


_ROUNDING = 1e-12
CORRECTIONS = {
    "none": "p-values without correction",
    "bonferroni": "each p-value times the number of comparisons (Bonferroni): controls the family-wise error rate",
    "holm": "step-down Bonferroni (Holm 1979): controls the family-wise error rate, at least as powerful as Bonferroni",
    "hochberg": "step-up Bonferroni (Hochberg 1988): controls the family-wise error rate under positive dependence",
    "bh": "Benjamini and Hochberg (1995): controls the false discovery rate under positive dependence",
    "by": "Benjamini and Yekutieli (2001): controls the false discovery rate under any dependence",
}


def adjust(p_values: ArrayLike, correction: str = "holm") -> Floats:
    """Adjust p-values for the number of comparisons, so that they can be compared with alpha.

    Parameters
    ----------
    p_values
        (N,) from 0 to 1. NaN: no comparison; it stays NaN and is not counted.
    correction
        A name in `CORRECTIONS`.

    Returns
    -------
    (N,) float64
        In the order of `p_values`; at least the original p-value, at most 1, and ranked in the same way.

    Raises
    ------
    InputError
        If `correction` is unknown, or a value is not between 0 and 1.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    correction = one_of("correction", correction, CORRECTIONS)
    result = np.array(p_values, dtype=np.float64)
    if result.ndim != 1:
        raise InputError(f"`p_values` must have 1 dimension, got {result.ndim}", fix="pass a list of numbers")
    is_comparison = ~np.isnan(result)
    compared = result[is_comparison]
    if np.any((compared < 0) | (compared > 1)):
        raise InputError("p-values must be between 0 and 1", fix="use NaN for comparisons without a p-value")
    order = np.argsort(compared, kind="stable")
    adjusted = np.empty_like(compared)
    adjusted[order] = np.minimum(_ADJUSTMENTS[correction](compared[order]), 1.0) if len(order) else compared
    result[is_comparison] = np.maximum(adjusted, compared)  # a product may be rounded to less than its factor
    return result


def interval_alphas(p_values: ArrayLike, correction: str, alpha: float) -> Floats:
    """Return 1 - level for intervals of comparisons that exclude 0 only where the corrected p-value is <= alpha.

    >>> interval_alphas([0.01, 0.02, 0.3], "holm", 0.05).round(4).tolist()  # the second is found at 0.05 / 2
    [0.0167, 0.025, 0.0167]
    >>> interval_alphas([0.01, 0.02, 0.3], "bh", 0.06).tolist()
    [0.04, 0.04, 0.04]
    """
    # Bonferroni, Holm, and Hochberg: alpha / N, so that all N intervals cover together with probability 1 - alpha; a
    # comparison that only a later step finds significant uses the alpha of that step. `bh` and `by`: R alpha / N for
    # R significant comparisons, so that at most alpha of their intervals are expected to miss the true value
    # (Benjamini and Yekutieli 2005). NaN for comparisons that are NaN in `p_values`.
    adjusted = adjust(p_values, correction)
    n = int(np.count_nonzero(~np.isnan(adjusted)))
    is_significant = adjusted <= alpha * (1 + _ROUNDING)
    rejected = int(np.count_nonzero(is_significant))
    n_selected = max(rejected, 1) if correction in {"bh", "by"} else 1
    harmonic = _harmonic(n) if correction == "by" else 1.0
    base = alpha if correction == "none" or not n else alpha * n_selected / (n * harmonic)
    is_later_step = is_significant & (np.asarray(p_values) > base * (1 + _ROUNDING))
    alphas = np.where(is_later_step, alpha / max(n - rejected + 1, 1), base)
    return np.where(np.isnan(adjusted), np.nan, alphas)


def corrected_family(
    differences: Sequence[Difference],
    method: str,
    alpha: float,
    retest: Callable[[list[int], float], Sequence[Difference]],  # tests the differences at these indices at a level
) -> list[Difference]:
    """Correct the p-values of a family, and add to each difference the interval that matches its corrected p-value."""
    p_values = [difference.p for difference in differences]
    adjusted = adjust(p_values, method).tolist()
    alphas = interval_alphas(p_values, method, alpha)
    name = method if np.count_nonzero(~np.isnan(alphas)) > 1 else "none"
    corrected = [difference.corrected(p, name, alpha) for difference, p in zip(differences, adjusted, strict=True)]
    mismatched = [
        i
        for i, difference in enumerate(differences)
        if difference.interval is not None and abs(1 - difference.level - alphas[i]) > _ROUNDING
    ]
    for new_alpha in sorted({float(alphas[i]) for i in mismatched}):
        indices = [i for i in mismatched if alphas[i] == new_alpha]
        for i, retested in zip(indices, retest(indices, 1 - new_alpha), strict=True):
            corrected[i] = replace(corrected[i], level=retested.level, interval=retested.interval)
    return corrected


def _remaining_hypotheses(sorted_p: Floats) -> Any:
    """Return the number of hypotheses that remain at each step: N, N - 1, ..., 1."""
    return np.arange(len(sorted_p), 0, -1)


def _harmonic(count: int) -> float:
    return float((1.0 / np.arange(1, count + 1)).sum())


def _running_minimum(adjusted: Floats) -> Floats:
    return np.minimum.accumulate(adjusted[::-1])[::-1]


_ADJUSTMENTS: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda sorted_p: sorted_p,
    "bonferroni": lambda sorted_p: sorted_p * len(sorted_p),
    "holm": lambda sorted_p: np.maximum.accumulate(sorted_p * _remaining_hypotheses(sorted_p)),
    "hochberg": lambda sorted_p: _running_minimum(sorted_p * _remaining_hypotheses(sorted_p)),
    "bh": lambda sorted_p: _running_minimum(sorted_p * len(sorted_p) / _remaining_hypotheses(sorted_p)[::-1]),
    "by": lambda sorted_p: _running_minimum(
        sorted_p * len(sorted_p) * _harmonic(len(sorted_p)) / _remaining_hypotheses(sorted_p)[::-1]
    ),
}


def clopper_pearson_intervals(counts: Ints, sizes: Ints, level: float) -> tuple[Floats, Floats]:
    """Compute the Clopper-Pearson interval of each proportion ``counts / sizes`` (Biometrika 1934).

    >>> [limit.round(4).tolist() for limit in clopper_pearson_intervals(np.array([0, 3]), np.array([10, 3]), 0.95)]
    [[0.0, 0.2924], [0.3085, 1.0]]
    """
    from scipy.special import betaincinv

    tail, failures = (1.0 - level) / 2.0, sizes - counts
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), failures + 1, tail), 0.0)
    high = np.where(failures > 0, betaincinv(counts + 1, np.maximum(failures, 1), 1.0 - tail), 1.0)
    return low, high


def poisson_rate_intervals(counts: Floats, expected: Floats, level: float) -> tuple[Floats, Floats]:
    """Compute the interval of each rate ``counts / expected`` of a Poisson count (Garwood, Biometrika 1936).

    >>> [limit.round(3).tolist() for limit in poisson_rate_intervals(np.array([0.0, 10.0]), np.array([1.0, 1.0]), 0.95)]
    [[0.0, 4.795], [3.689, 18.39]]
    """
    # Counts may be fractions: overdispersed counts are divided by their dispersion.
    from scipy.special import gammaincinv

    tail = (1.0 - level) / 2.0
    low = gammaincinv(np.maximum(counts, 1e-9), tail)  # exactly 0 for a count of 0
    return low / expected, gammaincinv(counts + 1.0, 1.0 - tail) / expected


def hypergeometric_p_values(counts: Ints, sizes: Ints, all_counts: int, all_sizes: int) -> tuple[Floats, Floats]:
    """Compute Fisher's exact test, one-sided, of each group against all others.

    Returns the p-values P(X >= counts) and the smallest p-value possible for each group size. In the tea-tasting
    experiment, three of four cups are identified correctly:

    >>> [p.round(4).tolist() for p in hypergeometric_p_values(np.array([3]), np.array([4]), 4, 8)]
    [[0.2429], [0.0143]]
    """
    # `counts` of the `sizes` members of each group have the property, `all_counts` of `all_sizes` over all groups.
    from scipy.special import gammaln

    def log_binomial(n: Floats | int, k: Floats) -> Floats:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    p_values, smallest_p = np.ones(len(sizes)), np.ones(len(sizes))
    order = np.argsort(sizes, kind="stable")
    starts = np.unique(sizes[order], return_index=True)[1]
    for members in np.split(order, starts[1:]):
        if not len(members):
            continue
        size = int(sizes[members[0]])
        count = np.arange(min(size, all_counts) + 1.0)  # the probability of an impossible count is exp(-inf) = 0
        log_ways = log_binomial(all_counts, count) + log_binomial(all_sizes - all_counts, size - count)
        probabilities = np.exp(log_ways - log_binomial(all_sizes, np.array(float(size))))
        tails = np.minimum(np.cumsum(probabilities[::-1])[::-1], 1.0)
        p_values[members] = tails[counts[members]]
        smallest_p[members] = tails[-1]
    return p_values, smallest_p


def select_discoveries(p_values: Floats, smallest_p: Floats, fdr: float) -> tuple[Bools, Floats]:
    """Select groups with a false discovery rate of at most `fdr`, and return their adjusted p-values.

    Groups that are too small to have a small p-value are not counted as tests (Tarone 1990; Gilbert, Applied
    Statistics 2005). The others are tested by the procedure of Benjamini and Hochberg.

    >>> select_discoveries(np.array([0.01, 0.5, 0.5]), np.array([0.001, 0.4, 0.4]), 0.05)
    (array([ True, False, False]), array([0.01,  nan,  nan]))
    """
    sorted_smallest = np.sort(smallest_p)
    n_tests = next(m for m in itertools.count(1) if np.searchsorted(sorted_smallest, fdr / m, "right") <= m)
    is_testable = smallest_p <= fdr / n_tests
    adjusted = np.full(len(p_values), np.nan)
    if is_testable.any():
        adjusted[is_testable] = adjust(p_values[is_testable], "bh")
    return adjusted <= fdr, adjusted


@dataclass(frozen=True, eq=False)
class Discoveries(ReadOnly):
    """Topics with a significant loss.

    Parameters
    ----------
    fdr
        False discovery rate: expected share of the selected topics without a real loss, at most.
    threshold
        Smallest loss of a selected topic; NaN if none is selected.
    mask
        (T,): whether each topic is selected.
    estimate
        Estimated false discovery proportion, (1 + gains as large) / losses as large; NaN if no topic is selected.
    n
        Topics with a difference, including 0.
    losses, gains
        Topics that lost, or gained, by more than rounding error.
    left_out
        Topics without a difference (NaN).
    """

    fdr: float
    threshold: float
    mask: Bools = field(repr=False)
    estimate: float
    n: int
    losses: int
    gains: int
    left_out: int = 0

    @property
    def count(self) -> int:
        """Number of selected topics."""
        return int(np.count_nonzero(self.mask))

    @property
    def fewest(self) -> int:
        """Minimum number of losses for any discovery at this rate; a verdict requires six in any case."""
        return math.ceil(1 / self.fdr * (1 - ROUNDING))

    @property
    def sentence(self) -> str:
        """Result in a few sentences, with its limits."""
        if self.count:
            as_large = round(self.estimate * self.count) - 1
            return (
                f"{self.count} of {topics_text(self.n)} are worse by {self.threshold:.3g} or more, and"
                f" {as_large} are better by {self.threshold:.3g} or more. The expected share of false discoveries among"
                f" these {self.count} worse topics is at most {self.fdr:.0%}, if noise raises and lowers"
                " scores equally often and equally strongly. If noise is skewed (many small decreases, few large"
                " increases), the share of false discoveries is higher."
            )
        if self.losses < self.fewest:
            losses = (
                "no topic is worse" if not self.losses else f"only {self.losses} of {topics_text(self.n)} are worse"
            )
            return (
                f"No topic is significantly worse: {losses}. With fewer than {self.fewest} worse topics, no"
                f" topic can be significantly worse at a false discovery rate of {self.fdr:.0%}."
            )
        if shortage := insufficiency(self.losses, "verdict"):
            return (
                f"No topic is significantly worse: only {self.losses} of {topics_text(self.n)} are worse."
                f" The test requires at least {shortage.required:g} worse topics."
            )
        return (
            f"No topic is significantly worse at a false discovery rate of {self.fdr:.0%}: {self.losses} of"
            f" {topics_text(self.n)} are worse, and {self.gains} are better. For every threshold t, too many"
            " topics are better by at least t, compared with the topics that are worse by at least t."
        )


def losers(differences: ArrayLike, fdr: float = 0.1, *, scale: float = 1.0) -> Discoveries:
    """Select the topics with a significant loss.

    The method assumes symmetric noise: a topic without a real loss is as likely to gain as to lose by any amount,
    independently of other topics. The data cannot confirm this. Then the number of topics that gained at least c
    estimates how many of those that lost at least c did so by chance. The smallest c with (1 + gains) / losses of at
    most ``fdr`` controls the false discovery rate in finite samples (Barber and Candès 2015: SeqStep+, the threshold
    of knockoff+).

    Parameters
    ----------
    differences
        (T,): new minus old, by topic. Topics with a NaN are left out and counted.
    fdr
        False discovery rate, between 0 and 1. Fewer than 1 / `fdr` losses, or fewer than six, are never selected.
    scale
        Size of the scores: smaller differences (of differences) than 1e-12 times it count as 0.

    Returns
    -------
    Discoveries

    Raises
    ------
    InputError
        If `differences` is not a list of finite numbers, or `fdr` is not between 0 and 1.

    Examples
    --------
    >>> losses = losers([-0.5] * 9 + [-0.4, -0.1, 0.1, 0.0])
    >>> losses.count, losses.threshold, round(losses.estimate, 3)
    (10, 0.4, 0.1)
    >>> print(losers([-0.5] * 9).sentence)
    No topic is significantly worse: only 9 of 9 topics are worse. With fewer than 10 worse topics, no topic can be
    significantly worse at a false discovery rate of 10%.
    """
    check_share("false discovery rate", fdr)
    changes = np.asarray(differences, dtype=np.float64)
    if changes.ndim != 1 or np.isinf(changes).any():
        raise InputError(
            "`differences` must be a list of finite numbers",
            fix="pass one difference per topic, NaN for a missing difference",
        )
    tolerance = ROUNDING * max(scale, float(np.nanmax(np.abs(changes), initial=0.0)))
    present = changes[~np.isnan(changes)]
    losses, gains = np.sort(-present[present < -tolerance]), np.sort(present[present > tolerance])
    threshold, estimate = math.nan, math.nan
    if not insufficiency(len(losses), "verdict"):
        threshold, estimate = _threshold(losses, gains, fdr, tolerance)
    mask = np.zeros(len(changes), dtype=np.bool_) if math.isnan(threshold) else changes <= -threshold + tolerance
    return Discoveries(
        fdr, threshold, mask, estimate, len(present), len(losses), len(gains), left_out=len(changes) - len(present)
    )


def _threshold(losses: Floats, gains: Floats, fdr: float, tolerance: float) -> tuple[float, float]:
    """Return the smallest loss that satisfies the SeqStep+ rule, and its estimated false discovery proportion."""
    # Only losses are candidate thresholds: between two of them, the selected topics stay the same and the number of
    # gains only decreases.
    losses_beyond = len(losses) - np.searchsorted(losses, losses - tolerance)
    gains_beyond = len(gains) - np.searchsorted(gains, losses - tolerance)
    estimates = (1 + gains_beyond) / np.maximum(losses_beyond, 1)
    admissible = np.flatnonzero(estimates <= fdr * (1 + ROUNDING))
    if not len(admissible):
        return math.nan, math.nan
    return float(losses[admissible[0]]), float(estimates[admissible[0]])
