"""Correct p-values for the number of comparisons made."""

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
    "none": "the p-values as they are",
    "bonferroni": "times the number of comparisons: holds the chance of any false finding (family-wise error)",
    "holm": "Bonferroni step by step from the least p (Holm 1979): the same guarantee, never less powerful",
    "hochberg": "Holm's steps from the largest p (Hochberg 1988): for independent or positively dependent tests",
    "bh": "Benjamini and Hochberg (1995): holds the expected share of false findings, under positive dependence",
    "by": "Benjamini and Yekutieli (2001): the same under any dependence",
}


def adjust(p_values: ArrayLike, correction: str = "holm") -> Floats:
    """Give p-values that may be compared with alpha although many comparisons were made.

    Parameters
    ----------
    p_values
        (N,) from 0 to 1. NaN: a comparison that was not made; it stays NaN and does not count.
    correction
        A name in `CORRECTIONS`.

    Returns
    -------
    (N,) float64
        In the order given; never below the p-value given, at most 1, and in the same order of size.

    Raises
    ------
    InputError
        If there is no such method, or a value is not a probability.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    correction = one_of("correction", correction, CORRECTIONS)
    given = np.array(p_values, dtype=np.float64)
    if given.ndim != 1:
        raise InputError(f"the p-values have {given.ndim} dimensions", fix="give a list of numbers")
    made = ~np.isnan(given)
    counted = given[made]
    if np.any((counted < 0) | (counted > 1)):
        raise InputError("a p-value is not between 0 and 1", fix="give probabilities, or NaN for no comparison")
    order = np.argsort(counted, kind="stable")
    adjusted = np.empty_like(counted)
    adjusted[order] = np.minimum(_RULES[correction](counted[order]), 1.0) if len(order) else counted
    given[made] = np.maximum(adjusted, counted)  # a product may round below its factor
    return given


def interval_alphas(p_values: ArrayLike, correction: str, alpha: float) -> Floats:
    """Give 1 - level for an interval of each comparison that excludes 0 just where its corrected p is at most alpha.

    >>> interval_alphas([0.01, 0.02, 0.3], "holm", 0.05).round(4).tolist()  # the second is found at 0.05 / 2
    [0.0167, 0.025, 0.0167]
    >>> interval_alphas([0.01, 0.02, 0.3], "bh", 0.06).tolist()
    [0.04, 0.04, 0.04]
    """
    # For Bonferroni, Holm and Hochberg it is alpha / N, so that together the N intervals hold all true values with
    # probability 1 - alpha; but for what only a later step finds significant, it is that of the last step that was
    # taken. For `bh` and `by` it is the share of alpha that the R significant ones had: then at most alpha of the
    # intervals of significant comparisons are expected to miss (Benjamini and Yekutieli 2005). Returns in the order
    # given; NaN for a comparison that was not made.
    adjusted = adjust(p_values, correction)
    made = int(np.count_nonzero(~np.isnan(adjusted)))
    found = adjusted <= alpha * (1 + _ROUNDING)
    rejected = int(np.count_nonzero(found))
    share = max(rejected, 1) if correction in {"bh", "by"} else 1
    harmonic = _harmonic(made) if correction == "by" else 1.0
    base = alpha if correction == "none" or not made else alpha * share / (made * harmonic)
    later = found & (np.asarray(p_values) > base * (1 + _ROUNDING))
    alphas = np.where(later, alpha / max(made - rejected + 1, 1), base)
    return np.where(np.isnan(adjusted), np.nan, alphas)


def corrected_family(
    found: Sequence[Difference],
    method: str,
    alpha: float,
    again: Callable[[list[int], float], Sequence[Difference]],  # tests those at some places of `found` at another level
) -> list[Difference]:
    """Correct the p-values of a family, and give each difference the interval that goes with its corrected p."""
    p_values = [one.p for one in found]
    adjusted = adjust(p_values, method).tolist()
    alphas = interval_alphas(p_values, method, alpha)
    name = method if np.count_nonzero(~np.isnan(alphas)) > 1 else "none"
    made = [one.corrected(p, name, alpha) for one, p in zip(found, adjusted, strict=True)]
    off = [
        at for at, one in enumerate(found) if one.interval is not None and abs(1 - one.level - alphas[at]) > _ROUNDING
    ]
    for wanted in sorted({float(alphas[at]) for at in off}):
        places = [at for at in off if alphas[at] == wanted]
        for at, one in zip(places, again(places, 1 - wanted), strict=True):
            made[at] = replace(made[at], level=one.level, interval=one.interval)
    return made


def _left(rising: Floats) -> Any:
    """Give how many hypotheses are left at each step: N, N - 1, ..., 1."""
    return np.arange(len(rising), 0, -1)


def _harmonic(count: int) -> float:
    return float((1.0 / np.arange(1, count + 1)).sum())


def _least_from_above(steps: Floats) -> Floats:
    return np.minimum.accumulate(steps[::-1])[::-1]


_RULES: dict[str, Callable[[Floats], Floats]] = {
    "none": lambda rising: rising,
    "bonferroni": lambda rising: rising * len(rising),
    "holm": lambda rising: np.maximum.accumulate(rising * _left(rising)),
    "hochberg": lambda rising: _least_from_above(rising * _left(rising)),
    "bh": lambda rising: _least_from_above(rising * len(rising) / _left(rising)[::-1]),
    "by": lambda rising: _least_from_above(rising * len(rising) * _harmonic(len(rising)) / _left(rising)[::-1]),
}


def share_limits(counts: Ints, sizes: Ints, level: float) -> tuple[Floats, Floats]:
    """Give the interval of each share ``counts / sizes`` by Clopper and Pearson (Biometrika 1934).

    >>> [end.round(4).tolist() for end in share_limits(np.array([0, 3]), np.array([10, 3]), 0.95)]
    [[0.0, 0.2924], [0.3085, 1.0]]
    """
    from scipy.special import betaincinv

    missed, rest = (1.0 - level) / 2.0, sizes - counts
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rest + 1, missed), 0.0)
    high = np.where(rest > 0, betaincinv(counts + 1, np.maximum(rest, 1), 1.0 - missed), 1.0)
    return low, high


def rate_limits(counts: Floats, expected: Floats, level: float) -> tuple[Floats, Floats]:
    """Give the interval of each rate ``counts / expected`` of a Poisson count (Garwood, Biometrika 1936).

    >>> [end.round(3).tolist() for end in rate_limits(np.array([0.0, 10.0]), np.array([1.0, 1.0]), 0.95)]
    [[0.0, 4.795], [3.689, 18.39]]
    """
    # Whole numbers are not asked for: counts divided by how much more they vary than a Poisson count are none.
    from scipy.special import gammaincinv

    missed = (1.0 - level) / 2.0
    low = gammaincinv(np.maximum(counts, 1e-9), missed)  # exactly 0 for no count
    return low / expected, gammaincinv(counts + 1.0, 1.0 - missed) / expected


def chances_of_more(counts: Ints, sizes: Ints, all_counts: int, all_sizes: int) -> tuple[Floats, Floats]:
    """Give the chance that a group has so many or more, had all that there are been dealt to the groups at random.

    Fisher's exact test, one-sided, of each group against all others. The lady who names three of four cups rightly:

    >>> [chances.round(4).tolist() for chances in chances_of_more(np.array([3]), np.array([4]), 4, 8)]
    [[0.2429], [0.0143]]
    """
    # `sizes`: of the groups, `counts`: how many of their members have it; `all_counts`, `all_sizes`: of all groups. The
    # second array is the least chance that a group of this size can have.
    from scipy.special import gammaln

    def chosen(n: Floats | int, k: Floats) -> Floats:
        """Give the logarithm of the number of ways to choose k of n."""
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    chance, least = np.ones(len(sizes)), np.ones(len(sizes))
    order = np.argsort(sizes, kind="stable")
    starts = np.unique(sizes[order], return_index=True)[1]
    for members in np.split(order, starts[1:]):
        if not len(members):
            continue
        size = int(sizes[members[0]])
        had = np.arange(min(size, all_counts) + 1.0)  # a number that is too small has no chance
        chances = np.exp(chosen(all_counts, had) + chosen(all_sizes - all_counts, size - had)
                         - chosen(all_sizes, np.array(float(size))))  # fmt: skip
        tails = np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)
        chance[members] = tails[counts[members]]
        least[members] = tails[-1]
    return chance, least


def told(p_values: Floats, least: Floats, fdr: float) -> tuple[Bools, Floats]:
    """Choose groups with at most this share of false ones on average, and adjust p-values for how many could be.

    A group that is so small that its p-value cannot be small is not counted among the tests (Gilbert, Applied
    Statistics 2005, after Tarone); among the others it is Benjamini and Hochberg's rule.

    >>> told(np.array([0.01, 0.5, 0.5]), np.array([0.001, 0.4, 0.4]), 0.05)
    (array([ True, False, False]), array([0.01,  nan,  nan]))
    """
    ordered = np.sort(least)
    tests = next(m for m in itertools.count(1) if np.searchsorted(ordered, fdr / m, "right") <= m)
    testable = least <= fdr / tests
    adjusted = np.full(len(p_values), np.nan)
    if testable.any():
        adjusted[testable] = adjust(p_values[testable], "bh")
    return adjusted <= fdr, adjusted


@dataclass(frozen=True, eq=False)
class Discoveries(ReadOnly):
    """The topics that lost.

    Parameters
    ----------
    fdr
        The false discovery rate: on average, at most this share of the topics found has no real loss.
    threshold
        The topics found lost at least this much; NaN where none is found.
    mask
        (T,): the topics found.
    estimate
        The estimated share of false findings, (1 + gains as large) / losses as large; NaN where none is found.
    n
        Topics that have a difference, 0 among them.
    losses, gains
        How many of them lost, and gained, by more than rounding.
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
        """How many topics are found."""
        return int(np.count_nonzero(self.mask))

    @property
    def fewest(self) -> int:
        """The fewest losses that can be told from luck at this rate; a verdict requires six in any case."""
        return math.ceil(1 / self.fdr * (1 - ROUNDING))

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        if self.count:
            as_large = round(self.estimate * self.count) - 1
            return (
                f"{self.count} of {topics_text(self.n)} lost {self.threshold:.3g} or more, where {as_large} gained as"
                f" much: on average at most {self.fdr:.0%} of topics found like this are luck, if chance raises scores"
                " as often and as far as it lowers them. If noise is skewed (many small losses, few large gains), more"
                " of them are."
            )
        if self.losses < self.fewest:
            seen = "no topic lost" if not self.losses else f"only {self.losses} of {topics_text(self.n)} lost"
            return (
                f"No single topic can be said to have lost: {seen}, and at a false discovery rate of {self.fdr:.0%}"
                f" fewer than {self.fewest} losses can never be told from luck."
            )
        if lacking := insufficiency(self.losses, "verdict"):
            return (
                f"No single topic can be said to have lost: only {self.losses} of {topics_text(self.n)} lost, and at"
                f" least {lacking.required:g} losses are required."
            )
        return (
            f"No single topic can be said to have lost at a false discovery rate of {self.fdr:.0%}: {self.losses} of"
            f" {self.n} lost and {self.gains} gained, and gains are too frequent at every size."
        )


def losers(differences: ArrayLike, fdr: float = 0.1, *, scale: float = 1.0) -> Discoveries:
    """Find the topics that really lost.

    If a topic has no real loss, it is as likely to gain as to lose by an amount, whatever the amount, and
    independently of other topics (symmetric noise; this is assumed, and nothing in the data can show it). Then the
    topics that gained by at least c tell how many of those that lost by at least c are luck. The smallest c with
    (1 + gains) / losses of at most ``fdr`` holds the false discovery rate at ``fdr``, in finite samples (Barber and
    Candès 2015: SeqStep+, the threshold of knockoff+).

    Parameters
    ----------
    differences
        (T,): new minus old, by topic. NaN: the topic is left out, and counted.
    fdr
        The false discovery rate, between 0 and 1. Fewer than 1 / `fdr` losses, or than six, are never declared.
    scale
        The size of the scores: differences, and differences of differences, up to 1e-12 of it are rounding.

    Returns
    -------
    Discoveries

    Raises
    ------
    InputError
        If they are not a row of finite numbers, or the rate is not a share.

    Examples
    --------
    >>> found = losers([-0.5] * 9 + [-0.4, -0.1, 0.1, 0.0])
    >>> found.count, found.threshold, round(found.estimate, 3)
    (10, 0.4, 0.1)
    >>> print(losers([-0.5] * 9).sentence)
    No single topic can be said to have lost: only 9 of 9 topics lost, and at a false discovery rate of 10% fewer
    than 10 losses can never be told from luck.
    """
    check_share("false discovery rate", fdr)
    given = np.asarray(differences, dtype=np.float64)
    if given.ndim != 1 or np.isinf(given).any():
        raise InputError(
            "the differences are not a row of finite numbers", fix="give one difference a topic, NaN for none"
        )
    slack = ROUNDING * max(scale, float(np.nanmax(np.abs(given), initial=0.0)))
    known = given[~np.isnan(given)]
    losses, gains = np.sort(-known[known < -slack]), np.sort(known[known > slack])
    threshold, estimate = math.nan, math.nan
    if not insufficiency(len(losses), "verdict"):
        threshold, estimate = _threshold(losses, gains, fdr, slack)
    mask = np.zeros(len(given), dtype=np.bool_) if math.isnan(threshold) else given <= -threshold + slack
    return Discoveries(
        fdr, threshold, mask, estimate, len(known), len(losses), len(gains), left_out=len(given) - len(known)
    )


def _threshold(losses: Floats, gains: Floats, fdr: float, slack: float) -> tuple[float, float]:
    """Give the least loss that the rule admits, and its estimated rate."""
    # Only losses need be tried as thresholds: between one and the next the topics found stay, and the gains that speak
    # against them only become fewer.
    as_low = len(losses) - np.searchsorted(losses, losses - slack)
    as_high = len(gains) - np.searchsorted(gains, losses - slack)
    estimates = (1 + as_high) / np.maximum(as_low, 1)
    admitted = np.flatnonzero(estimates <= fdr * (1 + ROUNDING))
    if not len(admitted):
        return math.nan, math.nan
    return float(losses[admitted[0]]), float(estimates[admitted[0]])
