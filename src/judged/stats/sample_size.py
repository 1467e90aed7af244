"""Power of tests over topics, and how many topics are needed: Sakai's topic set size design, with exact distributions.

Sakai (2014 and 2016, Information Retrieval Journal 19) took approximations of Nagata (2003) that a spreadsheet can
compute; here the noncentral t and F distributions themselves are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.stats.bounded import LARGEST_BET
from judged.stats.inputs import check_share, complete_topics, paired_differences, score_matrix, spread, topics_text
from judged.stats.resampling import ResampledTopics
from judged.stats.results import share
from judged.stats.student import student_cdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged.results.types import Floats
    from judged.stats.results import Alternative


_LARGE = 1_000_000  # topics; from here on the distributions are those of infinitely many
_HALVINGS = 200


def power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Give the probability that the two-sided paired t-test finds a true difference significant.

    Parameters
    ----------
    difference
        The true mean difference.
    sd
        The standard deviation of the differences between topics.
    n
        Topics.
    alpha
        The level of the test.

    Returns
    -------
    float
        From alpha (no difference) to 1. NaN for fewer than two topics, and if both difference and deviation are 0.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> round(power(0.5, 1.0, 34), 4)
    0.8078
    """
    _check(sd=sd, alpha=alpha)
    if n < 2 or (sd == 0 and difference == 0):
        return math.nan
    if sd == 0:
        return 1.0
    return _power_of_t(math.sqrt(n) * abs(difference) / sd, n - 1, alpha)


def minimum_detectable(sd: float, n: int, alpha: float = 0.05, power: float = 0.8) -> float:
    """Give the smallest true difference that the two-sided paired t-test finds significant with this probability.

    Parameters
    ----------
    sd
        The standard deviation of the differences between topics.
    n
        Topics.
    alpha, power
        The level of the test; the probability of finding the difference, above alpha.

    Returns
    -------
    float
        NaN for fewer than two topics, or a deviation that is NaN; 0 if the deviation is 0.

    Raises
    ------
    InputError
        If an option makes no sense.

    Examples
    --------
    >>> round(minimum_detectable(0.1, 43), 4)
    0.0437
    """
    _check(sd=sd, alpha=alpha, power=power)
    if n < 2 or math.isnan(sd):
        return math.nan
    return _noncentrality_of_t(n, alpha, power) * sd / math.sqrt(n)


def topics_needed_t(difference: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Give how many topics the two-sided paired t-test needs to find a true difference with this probability.

    >>> topics_needed_t(0.5, 1.0), topics_needed_t(0.05, 0.1)
    (34, 34)
    """
    # `difference`: the true mean difference, not 0. Its sign does not matter. Returns at least 2.
    _check(sd=sd, alpha=alpha, power=power, difference=difference)
    return _fewest(lambda n: (_noncentrality_of_t(n, alpha, power) * sd / difference) ** 2)


def _fewest(needed: Callable[[int], float]) -> int:
    """Find the smallest n of at least 2 that is as much as is needed with the degrees of freedom of n."""
    if (most := needed(_LARGE)) > _LARGE:
        return math.ceil(most)
    low, high = 1, 2
    while needed(high) > high:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) > middle else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _noncentrality_of_t(n: int, alpha: float, power: float) -> float:
    """Find by bisection where the power, which rises, is as large."""
    low, high = 0.0, 1.0
    while _power_of_t(high, n - 1, alpha) < power:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if _power_of_t(middle, n - 1, alpha) < power else (low, middle)
    return high


def _power_of_t(noncentrality: float, df: int, alpha: float) -> float:
    """Give P(|T| > the critical value) for a noncentral T: T squared is a noncentral F with 1 and df degrees."""
    # Both tails at once, and the noncentral F of scipy.special keeps its digits where its noncentral t gives NaN.
    from scipy.special import fdtri, ncfdtr

    found = float(1 - ncfdtr(1, df, noncentrality**2, fdtri(1, df, 1 - alpha)))
    return 1.0 if math.isnan(found) else found  # NaN: too far out for its series


def _check(*, sd: float, alpha: float = 0.05, power: float = 0.8, difference: float = 1.0) -> None:
    if sd < 0 or math.isinf(sd):
        raise InputError(f"the standard deviation {sd} makes no sense", fix="give 0 or more")
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if difference == 0 or not math.isfinite(difference):
        raise InputError(f"the difference {difference} cannot be planned for", fix="give the least that matters")


@dataclass(frozen=True)
class PairPlan:
    """What could be seen between two systems."""

    first: int  # their rows
    second: int  # their rows
    # n_observed, left_out: topics with a score for both, and without
    n_observed: int
    left_out: int
    difference: float  # the observed mean of second minus first; it plays no part in the plan
    sd: float  # the standard deviation of the differences (n_observed - 1); NaN for fewer than two topics
    n: int  # the number of topics that is planned for: those observed, unless another was asked for
    detectable: float  # the smallest true difference that is found with the asked power
    # for the difference that was asked for. None without one, and where the deviation is not known.
    topics_needed: int | None


@dataclass(frozen=True)
class Plan:
    """What the paired t-test could see with so many topics."""

    n: int  # the number of topics that is planned for
    # n_observed, left_out: topics that the deviation was estimated from, which have a score for every system; and the
    # others. Both 0 where the deviation was given.
    n_observed: int
    left_out: int
    systems: int  # 0 where the deviation was given
    # the standard deviation of the differences between two systems: over all pairs, the root of the mean variance. This
    # is the root of twice the residual mean square of a two-way ANOVA.
    sd: float
    detectable: float  # the smallest true difference that is found with the asked power. NaN where it is not known.
    # alpha, power: the level of the two-sided test, and the probability of finding the difference
    alpha: float
    power: float
    difference: float | None = None  # the difference that was asked for
    # the topics to find it. None without one, and where the deviation is not known or 0.
    topics_needed: int | None = None
    pairs: tuple[PairPlan, ...] = ()  # every two systems, each with its own deviation and its own topics

    @property
    def sentence(self) -> str:
        """The plan in plain words."""
        if math.isnan(self.detectable):
            return f"{topics_text(self.n_observed if self.systems else self.n)}: too few to plan from; it takes two."
        if self.sd == 0:
            return "The differences do not vary between these topics: nothing can be planned from them."
        these = "these " if self.systems and self.n == self.n_observed else ""
        rule = f"{self.power:.0%} power, alpha {self.alpha:g}"
        text = f"With {these}{topics_text(self.n)} you could detect {amount(self.detectable)} ({rule})."
        if self.systems > 2:
            low, high = self.range
            text += f" Between two of the {self.systems} systems it is from {amount(low)} to {amount(high)}."
        if self.topics_needed is not None:
            text += f" To detect {self.difference:g} you would need {topics_text(self.topics_needed)}."
        return text

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest of the pairs' detectable differences; NaN where no pair has one."""
        known = [pair.detectable for pair in self.pairs if not math.isnan(pair.detectable)]
        return (min(known), max(known)) if known else (math.nan, math.nan)


def plan(
    values: ArrayLike,
    *,
    n: int | None = None,
    difference: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Plan:
    """Say which differences between systems could be seen, by how much theirs vary from topic to topic.

    The observed differences play no part: the power for what was observed would only restate its p-value.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems by topic; NaN where there is none.
    n
        Plan for another number of topics than these.
    difference
        Also say how many topics would be needed to see a true difference of this size.
    alpha, power
        The level of the two-sided paired t-test; the probability of finding the difference. For many comparisons
        give an alpha that is divided by their number.

    Returns
    -------
    Plan
        With fewer than two topics nothing is known (NaN). Differences that do not vary have a deviation of 0, from
        which nothing can be planned; the sentence says so.

    Raises
    ------
    InputError
        If there are fewer than two systems, or an option makes no sense.

    Examples
    --------
    >>> found = plan([[0.2, 0.4, 0.5, 0.1, 0.3], [0.3, 0.6, 0.5, 0.3, 0.3]], difference=0.05)
    >>> found.sentence
    'With these 5 topics you could detect 0.168 (80% power, alpha 0.05). To detect 0.05 you would need 34 topics.'
    """
    scores = score_matrix(values)
    _check_topics(n)
    complete, left_out = complete_topics(scores)
    pairs: list[PairPlan] = []
    for first, second in combinations(range(len(scores)), 2):
        differences, lacking = paired_differences(scores[first], scores[second])
        known, sd = len(differences), spread(differences)
        mean, planned = float(differences.mean()) if known else math.nan, n or known
        found = _found(sd, planned, difference, alpha, power)
        pairs.append(PairPlan(first, second, known, lacking, mean, sd, planned, **found))
    known, sd = complete.shape[1], _pooled(pairs)
    asked: dict[str, Any] = {"alpha": alpha, "power": power, "difference": difference}
    found = _found(sd, n or known, **asked)
    return Plan(n or known, known, left_out, len(scores), sd, **asked, **found, pairs=tuple(pairs))


def plan_of_sd(sd: float, n: int, *, difference: float | None = None, alpha: float = 0.05, power: float = 0.8) -> Plan:
    """Make a plan from a standard deviation of differences that is known or assumed; else as `plan`.

    >>> plan_of_sd(0.1, 43).sentence
    'With 43 topics you could detect 0.044 (80% power, alpha 0.05).'
    """
    # From the standard deviation of single scores, as a paper may report it, the upper bound of what is needed here is
    # about that times the square root of 2; systems that find the same topics hard differ by less.
    _check_topics(n)
    if math.isnan(sd):
        raise InputError("the standard deviation is not a number", fix="give 0 or more")
    asked: dict[str, Any] = {"alpha": alpha, "power": power, "difference": difference}
    return Plan(n, 0, 0, 0, float(sd), **asked, **_found(sd, n, **asked))


def amount(value: float) -> str:
    """Write a difference for people: three decimals, two digits of a small one.

    >>> amount(0.03125), amount(0.00123), amount(12.3456), amount(math.nan)
    ('0.031', '0.0012', '12.346', '-')
    """
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def _found(sd: float, n: int, difference: float | None, alpha: float, power: float) -> dict[str, Any]:
    """Give what is detectable, and the topics for a difference; from no variation, none can be given."""
    detectable = minimum_detectable(sd, n, alpha, power)
    needed = None if difference is None or not sd > 0 else topics_needed_t(difference, sd, alpha, power)
    return {"detectable": detectable, "topics_needed": needed}


def _pooled(pairs: list[PairPlan]) -> float:
    """Pool the deviations of the pairs, each weighing by its degrees of freedom."""
    known = [(pair.sd**2, pair.n_observed - 1) for pair in pairs if not math.isnan(pair.sd)]
    if not known:
        return math.nan
    variances, weights = zip(*known, strict=True)
    return float(np.sqrt(np.average(variances, weights=weights)))


def _check_topics(topics: int | None) -> None:
    if topics is not None and topics < 1:
        raise InputError(f"{topics} topics make no sense", fix="give a whole number from 1")


_DRAWS = 1000
_FLIPPED = 12  # topics up to which all signs are flipped in each draw; for more, t rejects nearly the same draws
_FORMULA = 1000  # topics from which on means are normal, whatever the differences are


def detectable(
    differences: Floats,
    alpha: float,
    power: float = 0.8,
    *,
    flips: bool = False,
    critical: float = math.nan,
    seed: int = 0,
) -> float:
    """Give the true mean difference that a test of such topics finds with this probability, whichever way it points.

    >>> round(detectable(np.linspace(-0.1, 0.2, 43), 0.05), 2)
    0.04
    """
    # As many topics are drawn from the differences, less their mean; if the true difference were D, each would be
    # higher by D. A draw whose interval reaches down to -x is one in which the test finds every D above x: so D is a
    # quantile of that, or of the same for differences the other way, if that is larger. `flips`: whether it is the
    # randomisation test. For more than 12 topics Student's t stands in for it, as for the bootstraps: on the same draws
    # they agree. Returns NaN where the differences do not vary, or are of so few topics that none could be found. Over
    # more than 1000 topics by the formula for normal differences.
    n, deviation = len(differences), spread(differences)
    if not deviation > 0:
        return math.nan
    if n > _FORMULA and math.isnan(critical):
        return minimum_detectable(deviation, n, alpha, power)
    apart = (differences - differences.mean()) * math.sqrt(n / (n - 1))  # a sample varies less than what it is from
    if flips and n <= _FLIPPED:
        low, high = _by_flips(apart, alpha, seed)
    else:
        times = _times(n, seed)
        means = times @ apart / n
        variances = np.maximum(times @ apart**2 / n - means**2, 0.0)
        half = _quantile(n, alpha) * np.sqrt(variances / (n - 1)) if math.isnan(critical) else critical
        low, high = means - half, means + half
    found = max(np.quantile(-low, power, method="higher"), np.quantile(high, power, method="higher"))
    return float(found) if math.isfinite(found) else math.nan


def _by_flips(apart: Floats, alpha: float, seed: int) -> tuple[Floats, Floats]:
    """Give the limits of the randomisation test's interval in each draw of topics: quantiles of means over subsets."""
    n = len(apart)
    drawn = apart[np.random.default_rng(seed).integers(n, size=(_DRAWS // 4, n))]
    subsets = (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1
    means = drawn @ (subsets / subsets.sum(axis=1, keepdims=True)).T
    rank = share(alpha, 1 << (n - 1))  # of flips of all signs; one of them flips nothing, and is not listed
    if rank < 1:
        return np.full(len(drawn), -np.inf), np.full(len(drawn), np.inf)
    means.partition((rank - 1, means.shape[1] - rank), axis=1)
    return means[:, rank - 1], means[:, -rank]


@lru_cache(maxsize=4)
def _times(n: int, seed: int) -> Floats:
    """Give how often each topic is drawn in each draw: many pairs share it."""
    return np.concatenate(list(ResampledTopics(n, _DRAWS, seed).blocks()))


@lru_cache(maxsize=256)
def _quantile(n: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - alpha / 2))


_SIGN_FLIPS = ("randomisation", "ratio")
_COUNTED = ("sign", "wilcoxon")
_BOOTSTRAPS = ("bootstrap", "bca", "studentised")
_ROUNDING = 1e-12

LEAST_DIFFERING = {"t": 6, **dict.fromkeys(_BOOTSTRAPS, 40)}
"""Topics with a difference from which a test is believed, by simulation (docs/calibration.md)."""

LEAST_EFFECTIVE: dict[str, int] = dict.fromkeys(("bca", "studentised"), 12)
"""Effective number of topics with a difference from which a test is believed; see `effective_differing`."""


def effective_differing(differences: Floats) -> Floats:
    """Return Kish's effective number of topics with a difference, by squared differences: (..., T) to (...).

    Equal differences count fully, topics that tie or nearly tie do not count, and normal differences count a third.
    NaN where no topic has a difference.

    >>> effective_differing(np.array([[0.1, -0.1, 0.0], [0.5, 0.001, -0.001]])).round(3).tolist()
    [2.0, 1.0]
    """
    largest = np.abs(differences).max(axis=-1, keepdims=True)
    squares = (differences / np.where(largest > 0, largest, np.nan)) ** 2
    return squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1)


def believed(test: str, n: int, differing: int) -> bool:
    """Tell whether a test holds its error rate over n topics of which so many differ.

    >>> believed("bca", 5000, 2), believed("bca", 48, 43), believed("t", 5, 5), believed("t", 5000, 4)
    (False, True, True, False)
    """
    # Resampled topics know nothing of values that few topics have: below 40 topics with a difference, the bootstraps
    # reject true nulls up to ten times as often as they say. Where most differences are near-ties, BCa and the
    # studentised bootstrap do so with 200 topics, too: `effective_differing` counts topics by what they contribute.
    # Student's t fails only where most topics tie and a few have the same difference.
    return differing >= LEAST_DIFFERING.get(test, 0) or (test == "t" and differing == n)


def least_p(
    n: int,
    test: str = "randomisation",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> float:
    """Give a p-value that a paired test cannot go below, however large the differences are.

    >>> least_p(5), least_p(5, alternative="less"), least_p(5, "t"), least_p(48, resamples=999)
    (0.0625, 0.03125, 0.0, 0.001)
    >>> least_p(48, differing=3), least_p(5, "bootstrap"), round(least_p(48, "t", differing=6), 4)
    (0.25, 0.0625, 0.0127)
    """
    # Tests that flip signs, or count and rank them, have 2^m arrangements of m topics that differ, of which one is the
    # most extreme to a side; those that draw resamples count what was seen as one more. A t is largest where all m have
    # the same difference. A bet of the bounded test multiplies the wealth by 1.95 at most. Returns 1
    # for fewer than two topics, of which there is no test; 0 for tests that know no bound, such as `bayes`.
    moved = n if differing is None else differing
    if n < 2 or moved < 1:
        return 1.0
    sides = 2 if alternative == "two-sided" else 1
    if test in _COUNTED:
        return sides * 2.0**-moved
    if test in _SIGN_FLIPS or not believed(test, n, moved):
        listed = n < 60 and 1 << n <= resamples
        return max(sides * 2.0**-moved, 0.0 if listed else 1 / (resamples + 1))
    if test == "bounded":
        return min(1.0, sides * (1 + LARGEST_BET) ** -n)
    if test == "t" and moved < n:
        return sides * student_cdf(-math.sqrt(moved * (n - 1) / (n - moved)), n - 1)
    return 1 / (resamples + 1) if test in _BOOTSTRAPS else 0.0


def out_of_reach(
    alpha: float,
    n: int,
    test: str = "randomisation",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> bool:
    """Tell whether no difference could be significant: the least p-value is above alpha.

    >>> out_of_reach(0.05, 5), out_of_reach(0.05, 6), out_of_reach(0.05 / 2, 6), out_of_reach(0.05, 5, "t")
    (True, False, True, False)
    """
    # For one of many comparisons give the alpha that is left after the correction, such as alpha / family.
    return least_p(n, test, alternative, resamples, differing=differing) > alpha * (1 + _ROUNDING)
