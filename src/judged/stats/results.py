"""Result and options of a comparison of two systems."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.results.spelling import use_one_of
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.sufficiency import insufficiency

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

_ROUNDING = 1e-12
TEST_NAMES = {
    "randomization": "randomization test",
    "t": "t-test",
    "wilcoxon": "Wilcoxon test",
    "sign": "sign test",
    "bootstrap": "bootstrap test",
    "bca": "BCa bootstrap test",
    "studentized": "studentized bootstrap test",
    "bounded": "bounded test",
    "ratio": "randomization test of the ratio",
    "bayes": "Bayesian comparison",
    "tukey": "Tukey's HSD",
    "randomized-tukey": "randomized Tukey HSD",
    "nemenyi": "Nemenyi's test",
    "dunnett": "Dunnett's test",
    "randomized-dunnett": "randomized test of the largest difference",
}


@dataclass(frozen=True)
class Posterior:
    """Posterior probabilities of the mean difference of two systems."""

    higher: float  # that the second system's true mean is higher
    lower: float  # 1 - higher
    practically_higher: float  # that the mean difference is above the region of practical equivalence
    equivalent: float  # that it is inside
    practically_lower: float  # that it is below
    rope: float  # the region is from -rope to rope


@dataclass(frozen=True)
class Difference:
    """Difference of two systems, second minus first, over the topics with both scores.

    Parameters
    ----------
    test
        A name in `judged.stats.paired.TESTS`: the test that was used, which can differ from the requested one if few
        topics differ.
    difference
        Mean of the differences; for ``ratio`` the logarithm of the ratio of the geometric means. NaN without topics.
    statistic
        Test statistic, which depends on `test`.
    p
        p-value; NaN if there is no test: fewer than two topics, or ``bayes``.
    interval
        Of `difference`; one limit of a one-sided test is infinite. None if the test has no interval.
    level
        Confidence level of the interval.
    alpha
        Significance level for `decisive_p`.
    effect
        Cohen's dz: mean of the differences over their standard deviation. NaN if that is 0, or for one topic.
    n, differing, left_out
        Topics that were compared; those with a difference; topics without a score for one of the systems.
    resamples
        Number of resamples, or of all arrangements if `exact`; None for a test without resampling.
    exact
        Whether the p-value is from the exact null distribution, not from a sample or an approximation.
    seed
        Of the resamples; None without random numbers.
    alternative
        ``greater``: the second system is higher.
    note
        Warning about the result.
    posterior
        For ``bayes``.
    adjusted, correction
        p-value after the correction for many comparisons, and its name; see `corrected`.

    Examples
    --------
    >>> from judged.stats.paired import paired_test
    >>> result = paired_test([0.2, 0.4, 0.5, 0.1, 0.3, 0.2], [0.3, 0.6, 0.6, 0.3, 0.4, 0.3], "t")
    >>> round(result.difference, 3), round(result.p, 4), result.significant
    (0.133, 0.0015, True)
    """

    test: str
    difference: float
    statistic: float
    p: float
    interval: tuple[float, float] | None
    level: float
    alpha: float
    effect: float
    n: int
    differing: int
    left_out: int
    resamples: int | None
    exact: bool
    seed: int | None
    alternative: Alternative
    note: str = ""
    posterior: Posterior | None = None
    adjusted: float | None = None
    correction: str = ""

    @property
    def decisive_p(self) -> float:
        """The adjusted p-value if there was a correction, otherwise `p`."""
        return self.p if self.adjusted is None else self.adjusted

    @property
    def significant(self) -> bool:
        """Whether `decisive_p` is at most alpha; False for NaN, or with too few topics for a verdict."""
        return self.decisive_p <= self.alpha * (1 + _ROUNDING) and insufficiency(self.n, "verdict") is None

    @property
    def side(self) -> int:
        """1 if the statistic favors the second system, -1 if the first, 0 if neither."""
        null_value = {"sign": self.differing / 2, "wilcoxon": self.differing * (self.differing + 1) / 4}
        shift = self.statistic - null_value[self.test] if self.test in null_value else self.difference
        return int(shift > 0) - int(shift < 0)

    def corrected(self, adjusted: float, correction: str, alpha: float | None = None) -> Difference:
        """Return a copy with a p-value adjusted for other comparisons, and the alpha to compare it with.

        The interval is unchanged: `judged.stats.correction.corrected_family` computes one that matches.
        """
        return replace(self, adjusted=adjusted, correction=correction, alpha=self.alpha if alpha is None else alpha)


@dataclass(frozen=True)
class Options:
    """Options of a paired test; see `judged.stats.paired.paired_test`."""

    alternative: Alternative = "two-sided"
    level: float = 0.95
    resamples: int = 100_000
    seed: int = 0
    rope: float = 0.01
    floor: float = 1e-5
    max_difference: float | None = None

    def __post_init__(self) -> None:
        if self.alternative not in get_args(Alternative):
            raise InputError(f"unknown `alternative` {self.alternative!r}", fix=use_one_of(get_args(Alternative)))
        lowest_level = 0.0 if self.alternative == "two-sided" else 0.5
        if not lowest_level < self.level < 1:
            problem = f"`level` must be between {lowest_level:g} and 1, got {self.level}"
            raise InputError(problem, fix="use 0.95, for example")
        check_resampling(self.resamples, self.seed)
        if not 0 <= self.rope < math.inf:
            raise InputError(f"`rope` must be finite and 0 or more, got {self.rope}", fix="use 0.01, for example")
        if not 0 < self.floor < math.inf:
            raise InputError(f"`floor` must be finite and positive, got {self.floor}", fix="use 1e-5, for example")
        if self.max_difference is not None and not 0 < self.max_difference < math.inf:
            raise InputError(
                f"`max_difference` must be a finite number above 0, got {self.max_difference}",
                fix="use the range of the measure: 1 for a measure from 0 to 1",
            )

    @property
    def alpha(self) -> float:
        """Largest significant p-value."""
        return round(1 - self.level, 15)

    @property
    def two_sided_level(self) -> float:
        """Level of the two-sided interval with the same limit as this one-sided one."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Return the limits, with an infinite one for a one-sided test."""
        return (-math.inf if self.alternative == "less" else low, math.inf if self.alternative == "greater" else high)

    def p_of(self, lower: float, upper: float) -> float:
        """Return the p-value from the probabilities of a statistic at most, and at least, as large as observed."""
        if self.alternative == "two-sided":
            return min(1.0, 2 * min(lower, upper))
        return min(1.0, upper if self.alternative == "greater" else lower)


@dataclass(frozen=True)
class PairedResult:
    """Result of a test method for one pair."""

    statistic: float
    p: float
    interval: tuple[float, float] | None = None
    resamples: int | None = None
    exact: bool = False
    seed: int | None = None
    note: str = ""
    posterior: Posterior | None = None


def rejection_rank(alpha: float, n: int) -> int:
    """Return the number of resamples in a share alpha of n, rounded down.

    >>> rejection_rank(1 - 0.9, 100)
    10
    """
    return math.floor(alpha * n * (1 + ROUNDING))
