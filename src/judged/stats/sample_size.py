"""Power of tests over topics, and the number of topics required: Sakai's topic set size design.

Sakai (2014 and 2016, Information Retrieval Journal 19) used approximations of Nagata (2003) that a spreadsheet can
compute. This module uses the exact noncentral t and F distributions.
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
from judged.stats.results import rejection_rank
from judged.stats.student import student_cdf

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from judged.results.types import Floats
    from judged.stats.results import Alternative


_LARGE = 1_000_000  # topics; from here on, t is treated as normal
_HALVINGS = 200


def power(difference: float, sd: float, n: int, alpha: float = 0.05) -> float:
    """Compute the probability that the two-sided paired t-test finds a true difference significant.

    Parameters
    ----------
    difference
        True mean difference.
    sd
        Standard deviation of the differences between topics.
    n
        Number of topics.
    alpha
        Significance level.

    Returns
    -------
    float
        From alpha (no difference) to 1. NaN for fewer than two topics, and if both `difference` and `sd` are 0.

    Raises
    ------
    InputError
        If `sd` is negative or infinite, or `alpha` is not between 0 and 1.

    Examples
    --------
    >>> round(power(0.5, 1.0, 34), 4)
    0.8078
    """
    _check_design(sd=sd, alpha=alpha)
    if n < 2 or (sd == 0 and difference == 0):
        return math.nan
    if sd == 0:
        return 1.0
    return _power_of_t(math.sqrt(n) * abs(difference) / sd, n - 1, alpha)


def minimum_detectable(sd: float, n: int, alpha: float = 0.05, power: float = 0.8) -> float:
    """Compute the smallest true difference that the two-sided paired t-test detects with a given power.

    Parameters
    ----------
    sd
        Standard deviation of the differences between topics.
    n
        Number of topics.
    alpha, power
        Significance level; probability of detecting the difference, above `alpha`.

    Returns
    -------
    float
        NaN for fewer than two topics or if `sd` is NaN; 0 if `sd` is 0.

    Raises
    ------
    InputError
        If an option is out of range.

    Examples
    --------
    >>> round(minimum_detectable(0.1, 43), 4)
    0.0437
    """
    _check_design(sd=sd, alpha=alpha, power=power)
    if n < 2 or math.isnan(sd):
        return math.nan
    return _noncentrality_of_t(n, alpha, power) * sd / math.sqrt(n)


def topics_needed_t(difference: float, sd: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Compute the number of topics that the two-sided paired t-test needs to detect a true difference.

    >>> topics_needed_t(0.5, 1.0), topics_needed_t(0.05, 0.1)
    (34, 34)
    """
    # `difference`: true mean difference, not 0; its sign does not matter. The result is at least 2.
    _check_design(sd=sd, alpha=alpha, power=power, difference=difference)
    return _smallest_sufficient_n(lambda n: (_noncentrality_of_t(n, alpha, power) * sd / difference) ** 2)


def _smallest_sufficient_n(needed: Callable[[int], float]) -> int:
    """Return the smallest n >= 2 with ``needed(n) <= n``, where `needed` uses the degrees of freedom of n."""
    if (limit := needed(_LARGE)) > _LARGE:
        return math.ceil(limit)
    low, high = 1, 2
    while needed(high) > high:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) > middle else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _noncentrality_of_t(n: int, alpha: float, power: float) -> float:
    """Find the noncentrality with this power by bisection; the power increases with it."""
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
    """Return P(|T| > critical value) for a noncentral T; T squared is noncentral F with 1 and df degrees of freedom."""
    # F covers both tails, and scipy.special's noncentral F stays accurate where its noncentral t returns NaN.
    from scipy.special import fdtri, ncfdtr

    probability = float(1 - ncfdtr(1, df, noncentrality**2, fdtri(1, df, 1 - alpha)))
    return 1.0 if math.isnan(probability) else probability  # NaN: the series fails for a large noncentrality


def _check_design(*, sd: float, alpha: float = 0.05, power: float = 0.8, difference: float = 1.0) -> None:
    if sd < 0 or math.isinf(sd):
        raise InputError(
            f"the standard deviation must be finite and not negative, got {sd}", fix="use 0.1, for example"
        )
    check_share("alpha", alpha)
    check_share("power", power, alpha)
    if difference == 0 or not math.isfinite(difference):
        problem = f"the difference must be finite and not 0, got {difference}"
        raise InputError(problem, fix="use the smallest difference that matters")


@dataclass(frozen=True)
class PairPlan:
    """Detectable difference and required topics of two systems."""

    first: int  # row of the first system
    second: int  # row of the second system
    n_observed: int  # topics with a score for both systems
    left_out: int
    difference: float  # observed mean of second minus first; not used by the plan
    sd: float  # standard deviation of the differences (n_observed - 1); NaN for fewer than two topics
    n: int  # planned number of topics; by default n_observed
    detectable: float  # smallest true difference that is detected with the required power
    topics_needed: int | None  # to detect `PowerPlan.difference`; None without one, or if `sd` is 0 or NaN


@dataclass(frozen=True)
class PowerPlan:
    """Power of the paired t-test for a number of topics."""

    n: int  # planned number of topics
    n_observed: int  # topics with a score for every system; 0 if the standard deviation was passed
    left_out: int  # topics without a score for every system
    systems: int  # 0 if the standard deviation was passed
    # Standard deviation of the differences between two systems: root of the mean variance over all pairs, which is the
    # root of twice the residual mean square of a two-way ANOVA.
    sd: float
    detectable: float  # smallest true difference that is detected with this power; NaN if `sd` is unknown
    alpha: float  # significance level of the two-sided test
    power: float
    difference: float | None = None  # difference to detect, if one was passed
    topics_needed: int | None = None  # to detect it; None without one, or if `sd` is 0 or NaN
    pairs: tuple[PairPlan, ...] = ()  # all pairs of systems, each with its own standard deviation and topics

    @property
    def sentence(self) -> str:
        """Result in a few sentences."""
        if math.isnan(self.detectable):
            return (
                f"{topics_text(self.n_observed if self.systems else self.n)}: at least two are required for planning."
            )
        if self.sd == 0:
            return "The differences do not vary between these topics, so the detectable difference cannot be computed."
        demonstrative = "these " if self.systems and self.n == self.n_observed else ""
        rule = f"{self.power:.0%} power, alpha {self.alpha:g}"
        text = (
            f"With {demonstrative}{topics_text(self.n)} you can detect a difference of"
            f" {format_difference(self.detectable)} ({rule})."
        )
        if self.systems > 2:
            low, high = (format_difference(limit) for limit in self.range)
            text += f" For pairs of the {self.systems} systems, the detectable difference is {low} to {high}."
        if self.topics_needed is not None:
            text += f" To detect a difference of {self.difference:g}, you need {topics_text(self.topics_needed)}."
        return text

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest detectable difference of the pairs; NaN if no pair has one."""
        detectable = [pair.detectable for pair in self.pairs if not math.isnan(pair.detectable)]
        return (min(detectable), max(detectable)) if detectable else (math.nan, math.nan)


def plan(
    values: ArrayLike, *, n: int | None = None, difference: float | None = None, alpha: float = 0.05, power: float = 0.8
) -> PowerPlan:
    r"""Compute which differences between systems are detectable, from their variation between topics.

    The observed differences are not used: the power for the observed difference would only restate its p-value.

    Parameters
    ----------
    values
        (S, T): scores of at least two systems by topic; NaN for missing scores.
    n
        Number of topics to plan for. Default: the topics of `values`.
    difference
        True difference for which the required number of topics is computed.
    alpha, power
        Significance level of the two-sided paired t-test; probability of detecting the difference. For many
        comparisons, divide `alpha` by their number.

    Returns
    -------
    PowerPlan
        With fewer than two topics, all results are NaN. If the differences do not vary, nothing can be planned, and
        the sentence says so.

    Raises
    ------
    InputError
        If there are fewer than two systems, or an option is out of range.

    Examples
    --------
    >>> design = plan([[0.2, 0.4, 0.5, 0.1, 0.3], [0.3, 0.6, 0.5, 0.3, 0.3]], difference=0.05)
    >>> design.sentence.replace(". ", ".\n").splitlines()
    ['With these 5 topics you can detect a difference of 0.168 (80% power, alpha 0.05).',
     'To detect a difference of 0.05, you need 34 topics.']
    """
    scores = score_matrix(values)
    _check_n_topics(n)
    complete, left_out = complete_topics(scores)
    design: dict[str, Any] = {"alpha": alpha, "power": power, "difference": difference}
    pairs: list[PairPlan] = []
    for first, second in combinations(range(len(scores)), 2):
        differences, n_missing = paired_differences(scores[first], scores[second])
        n_paired, sd = len(differences), spread(differences)
        mean, n_planned = float(differences.mean()) if n_paired else math.nan, n or n_paired
        results = _detectable_and_needed(sd, n_planned, **design)
        pairs.append(PairPlan(first, second, n_paired, n_missing, mean, sd, n_planned, **results))
    n_complete, sd = complete.shape[1], _pooled_sd(pairs)
    results = _detectable_and_needed(sd, n or n_complete, **design)
    return PowerPlan(n or n_complete, n_complete, left_out, len(scores), sd, **design, **results, pairs=tuple(pairs))


def plan_of_sd(
    sd: float, n: int, *, difference: float | None = None, alpha: float = 0.05, power: float = 0.8
) -> PowerPlan:
    """Compute a plan from a known or assumed standard deviation of the differences; otherwise like `plan`.

    >>> plan_of_sd(0.1, 43).sentence
    'With 43 topics you can detect a difference of 0.044 (80% power, alpha 0.05).'
    """
    # If a paper reports the standard deviation of the scores, `sd` is at most about sqrt(2) times that. It is smaller
    # for systems that find the same topics difficult.
    _check_n_topics(n)
    if math.isnan(sd):
        raise InputError("the standard deviation must not be NaN", fix="use 0.1, for example")
    design: dict[str, Any] = {"alpha": alpha, "power": power, "difference": difference}
    return PowerPlan(n, 0, 0, 0, float(sd), **design, **_detectable_and_needed(sd, n, **design))


def format_difference(value: float) -> str:
    """Format a difference with three decimals, or two significant digits if it is small.

    >>> [format_difference(value) for value in (0.03125, 0.00123, 12.3456, math.nan)]
    ['0.031', '0.0012', '12.346', '-']
    """
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def _detectable_and_needed(sd: float, n: int, difference: float | None, alpha: float, power: float) -> dict[str, Any]:
    detectable = minimum_detectable(sd, n, alpha, power)
    needed = None if difference is None or not sd > 0 else topics_needed_t(difference, sd, alpha, power)
    return {"detectable": detectable, "topics_needed": needed}


def _pooled_sd(pairs: list[PairPlan]) -> float:
    """Pool the standard deviations of the pairs, weighted by degrees of freedom."""
    variances_and_weights = [(pair.sd**2, pair.n_observed - 1) for pair in pairs if not math.isnan(pair.sd)]
    if not variances_and_weights:
        return math.nan
    variances, weights = zip(*variances_and_weights, strict=True)
    return float(np.sqrt(np.average(variances, weights=weights)))


def _check_n_topics(n: int | None) -> None:
    if n is not None and n < 1:
        raise InputError(f"the number of topics must be a positive integer, got {n}", fix="use 50, for example")


_RESAMPLES = 1000
_MAX_EXACT = (
    12  # topics up to which all sign flips of each resample are listed; for more, t rejects nearly the same ones
)
_NORMAL_FROM = 1000  # topics from which on means are treated as normal


def detectable(
    differences: Floats,
    alpha: float,
    power: float = 0.8,
    *,
    flips: bool = False,
    critical: float = math.nan,
    seed: int = 0,
) -> float:
    """Estimate the true mean difference that a test detects with this power, in either direction, by resampling.

    >>> round(detectable(np.linspace(-0.1, 0.2, 43), 0.05), 2)
    0.04
    """
    # Topics are resampled from the centered differences; a true difference D would shift each of them by D. If the
    # interval of a resample reaches down to -x, the test rejects for every D > x. The result is the `power` quantile of
    # x, or that of the other direction if it is larger. `flips`: whether the test is the randomization test. For more
    # than 12 topics Student's t replaces it and the bootstraps, as they agree on the same resamples. NaN if the
    # differences do not vary, or no difference can be significant with so few topics.
    n, sd = len(differences), spread(differences)
    if not sd > 0:
        return math.nan
    if n > _NORMAL_FROM and math.isnan(critical):
        return minimum_detectable(sd, n, alpha, power)
    centered = (differences - differences.mean()) * math.sqrt(
        n / (n - 1)
    )  # corrects the bias of the resampled variance
    if flips and n <= _MAX_EXACT:
        low, high = _randomization_limits(centered, alpha, seed)
    else:
        weights = _resampling_weights(n, seed)
        means = weights @ centered / n
        variances = np.maximum(weights @ centered**2 / n - means**2, 0.0)
        half = _t_quantile(n, alpha) * np.sqrt(variances / (n - 1)) if math.isnan(critical) else critical
        low, high = means - half, means + half
    limit = max(np.quantile(-low, power, method="higher"), np.quantile(high, power, method="higher"))
    return float(limit) if math.isfinite(limit) else math.nan


def _randomization_limits(centered: Floats, alpha: float, seed: int) -> tuple[Floats, Floats]:
    """Return the interval limits of the randomization test in each resample: quantiles of subset means."""
    n = len(centered)
    resampled = centered[np.random.default_rng(seed).integers(n, size=(_RESAMPLES // 4, n))]
    subsets = (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1
    means = resampled @ (subsets / subsets.sum(axis=1, keepdims=True)).T
    rank = rejection_rank(alpha, 1 << (n - 1))  # the identity flip counts but is not listed
    if rank < 1:
        return np.full(len(resampled), -np.inf), np.full(len(resampled), np.inf)
    means.partition((rank - 1, means.shape[1] - rank), axis=1)
    return means[:, rank - 1], means[:, -rank]


@lru_cache(maxsize=4)
def _resampling_weights(n: int, seed: int) -> Floats:
    """Return how often each topic occurs in each resample; cached because many pairs share it."""
    return np.concatenate(list(ResampledTopics(n, _RESAMPLES, seed).blocks()))


@lru_cache(maxsize=256)
def _t_quantile(n: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - alpha / 2))


_SIGN_FLIPS = ("randomization", "ratio")
_SIGN_TESTS = ("sign", "wilcoxon")
_BOOTSTRAPS = ("bootstrap", "bca", "studentized")
_ROUNDING = 1e-12

MIN_DIFFERING = {"t": 6, **dict.fromkeys(_BOOTSTRAPS, 40)}
"""Minimum number of topics with a difference for a test to hold its error rate, by simulation (docs/calibration.md)."""

MIN_EFFECTIVE_DIFFERING: dict[str, int] = dict.fromkeys(("bca", "studentized"), 12)
"""Minimum of `effective_differing` for a test to hold its error rate, by simulation (docs/calibration.md)."""


def effective_differing(differences: Floats) -> Floats:
    """Compute Kish's effective number of topics with a difference, weighted by squared differences: (..., T) to (...).

    Equal differences count fully, (near) ties do not count, and normal differences count a third on average. NaN if
    no topic has a difference.

    >>> effective_differing(np.array([[0.1, -0.1, 0.0], [0.5, 0.001, -0.001]])).round(3).tolist()
    [2.0, 1.0]
    """
    largest = np.abs(differences).max(axis=-1, keepdims=True)
    squares = (differences / np.where(largest > 0, largest, np.nan)) ** 2
    return squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1)


def holds_error_rate(test: str, n: int, differing: int) -> bool:
    """Return whether a test holds its error rate over n topics of which `differing` have a difference.

    >>> holds_error_rate("bca", 5000, 2), holds_error_rate("bca", 48, 43)
    (False, True)
    >>> holds_error_rate("t", 5, 5), holds_error_rate("t", 5000, 4)
    (True, False)
    """
    # Many resamples miss the few topics with a difference: below 40 such topics, the bootstraps reject true nulls up to
    # ten times too often. If most differences are near-ties, BCa and the studentized bootstrap do so even with 200
    # topics, which `effective_differing` detects. Student's t fails only if most topics tie and a few have the same
    # difference.
    return differing >= MIN_DIFFERING.get(test, 0) or (test == "t" and differing == n)


def smallest_p(
    n: int,
    test: str = "randomization",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> float:
    """Return a lower bound of the p-value of a paired test, however large the differences are.

    >>> smallest_p(5), smallest_p(5, alternative="less"), smallest_p(5, "t"), smallest_p(48, resamples=999)
    (0.0625, 0.03125, 0.0, 0.001)
    >>> smallest_p(48, differing=3), smallest_p(5, "bootstrap"), round(smallest_p(48, "t", differing=6), 4)
    (0.25, 0.0625, 0.0127)
    """
    # Tests that flip, count, or rank signs have 2^m arrangements of m topics with a difference, one of which is the
    # most extreme in each direction. With resampling, the observed data are one more arrangement. |t| is largest if
    # all m differences are equal. A bet of the bounded test multiplies the wealth by at most 1 + LARGEST_BET. Returns 1
    # for fewer than two topics and 0 for tests without a bound, such as `bayes`.
    m = n if differing is None else differing
    if n < 2 or m < 1:
        return 1.0
    sides = 2 if alternative == "two-sided" else 1
    if test in _SIGN_TESTS:
        return sides * 2.0**-m
    if test in _SIGN_FLIPS or not holds_error_rate(test, n, m):
        is_exact = n < 60 and 1 << n <= resamples
        return max(sides * 2.0**-m, 0.0 if is_exact else 1 / (resamples + 1))
    if test == "bounded":
        return min(1.0, sides * (1 + LARGEST_BET) ** -n)
    if test == "t" and m < n:
        return sides * student_cdf(-math.sqrt(m * (n - 1) / (n - m)), n - 1)
    return 1 / (resamples + 1) if test in _BOOTSTRAPS else 0.0


def cannot_be_significant(
    alpha: float,
    n: int,
    test: str = "randomization",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> bool:
    """Return whether no difference can be significant, because `smallest_p` is above alpha.

    >>> cannot_be_significant(0.05, 5), cannot_be_significant(0.05, 6), cannot_be_significant(0.05 / 2, 6)
    (True, False, True)
    >>> cannot_be_significant(0.05, 5, "t")
    False
    """
    # For one of many comparisons, pass the corrected alpha, such as alpha / family size.
    return smallest_p(n, test, alternative, resamples, differing=differing) > alpha * (1 + _ROUNDING)
