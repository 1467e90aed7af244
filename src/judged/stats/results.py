"""What a comparison of two systems found: the number, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.stats.inputs import ROUNDING, check_resampling
from judged.stats.sufficiency import insufficiency

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]

_ROUNDING = 1e-12
TEST_NAMES = {
    "randomisation": "randomisation test",
    "t": "t-test",
    "wilcoxon": "Wilcoxon test",
    "sign": "sign test",
    "bootstrap": "bootstrap test",
    "bca": "BCa bootstrap test",
    "studentised": "studentised bootstrap test",
    "bounded": "bounded test",
    "ratio": "randomisation test of the ratio",
    "bayes": "Bayesian comparison",
    "tukey": "Tukey's HSD",
    "randomised-tukey": "randomised Tukey HSD",
    "nemenyi": "Nemenyi's test",
    "dunnett": "Dunnett's test",
    "randomised-dunnett": "randomised test of the largest difference",
}


@dataclass(frozen=True)
class Posterior:
    """What a Bayesian comparison believes about the mean difference after seeing the topics."""

    higher: float  # probability that the second system's true mean is higher
    lower: float  # probability that it is lower: `1 - higher`
    # practically_higher, equivalent, practically_lower: probabilities that the mean difference is above, inside and
    # below the region of practical equivalence
    practically_higher: float
    equivalent: float
    practically_lower: float
    rope: float  # that region is from `-rope` to `rope`


@dataclass(frozen=True)
class Difference:
    """The second system minus the first, over the topics that have a score for both.

    Parameters
    ----------
    test
        A name in `judged.stats.paired.TESTS`: the test that was done, which where few topics differ may be another
        than the one that was asked for.
    difference
        Mean of the differences; for ``ratio`` the logarithm of the ratio of the geometric means. NaN without a topic.
    statistic
        What the test is made of: see `test`.
    p
        Probability of a difference at least as large if there were none. NaN where there is no test: fewer than
        two topics, or ``bayes``.
    interval
        For `difference`; a one-sided test has an infinite limit. None where the test gives none.
    level
        Of the interval.
    alpha
        A deciding p-value up to here is significant.
    effect
        Cohen's dz: mean of the differences over their standard deviation. NaN if that is 0, or for one topic.
    n, differing, left_out
        Topics that were compared; those of them with a difference; topics that lack a score for one of the two.
    resamples
        How many were drawn, or all there are where `exact`; None for a test that draws none.
    exact
        The p-value is that of the exact null distribution, not of a sample from it or an approximation.
    seed
        Of the resamples; None where nothing was drawn.
    alternative
        ``greater``: the second system is higher.
    note
        What else a reader must know.
    posterior
        For ``bayes``.
    adjusted, correction
        The p-value after correction for many comparisons, and how; see `corrected`.

    Examples
    --------
    >>> from judged.stats.paired import paired_test
    >>> found = paired_test([0.2, 0.4, 0.5, 0.1, 0.3, 0.2], [0.3, 0.6, 0.6, 0.3, 0.4, 0.3], "t")
    >>> round(found.difference, 3), round(found.p, 4), found.significant
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
        """The p-value that decides: the adjusted one where there was a correction."""
        return self.p if self.adjusted is None else self.adjusted

    @property
    def significant(self) -> bool:
        """Whether the deciding p-value is at most alpha; never for NaN, or with too few topics for a verdict."""
        return self.decisive_p <= self.alpha * (1 + _ROUNDING) and insufficiency(self.n, "verdict") is None

    @property
    def side(self) -> int:
        """1 where the test sees the second system higher, -1 where lower: in the mean, the wins, or the ranks."""
        middle = {"sign": self.differing / 2, "wilcoxon": self.differing * (self.differing + 1) / 4}
        seen = self.statistic - middle[self.test] if self.test in middle else self.difference
        return int(seen > 0) - int(seen < 0)

    def corrected(self, adjusted: float, correction: str, alpha: float | None = None) -> Difference:
        """Give the same difference with a p-value adjusted for the other comparisons made, to be held against alpha.

        The interval stays what it is: `judged.stats.correction.corrected_family` gives one that fits.
        """
        return replace(self, adjusted=adjusted, correction=correction, alpha=self.alpha if alpha is None else alpha)


@dataclass(frozen=True)
class Options:
    """What a paired test is asked; see `judged.stats.paired.paired_test`."""

    alternative: Alternative = "two-sided"
    level: float = 0.95
    resamples: int = 100_000
    seed: int = 0
    rope: float = 0.01
    floor: float = 1e-5
    max_difference: float | None = None

    def __post_init__(self) -> None:
        if self.alternative not in get_args(Alternative):
            raise InputError(
                f"no alternative {self.alternative!r}", fix=f"use one of {', '.join(get_args(Alternative))}"
            )
        least = 0.0 if self.alternative == "two-sided" else 0.5
        if not least < self.level < 1:
            raise InputError(f"the level {self.level} is not between {least:g} and 1", fix="use 0.95, for example")
        check_resampling(self.resamples, self.seed)
        if not 0 <= self.rope < math.inf:
            raise InputError(
                f"the region of practical equivalence {self.rope} is not usable", fix="use 0.01, for example"
            )
        if not 0 < self.floor < math.inf:
            raise InputError(
                f"the floor {self.floor} is not above 0", fix="use 1e-5, for example: its logarithm is taken"
            )
        if self.max_difference is not None and not 0 < self.max_difference < math.inf:
            raise InputError(
                f"`max_difference` must be a finite number above 0, got {self.max_difference}",
                fix="give the range of the measure: 1 for one from 0 to 1",
            )

    @property
    def alpha(self) -> float:
        """The largest p-value that counts as significant."""
        return round(1 - self.level, 15)

    @property
    def two_sided_level(self) -> float:
        """The level whose two-sided interval has the limit of this one-sided one."""
        return self.level if self.alternative == "two-sided" else 2 * self.level - 1

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Give the interval whose limits these are, without the one that a one-sided test does not have."""
        return (
            -math.inf if self.alternative == "less" else low,
            math.inf if self.alternative == "greater" else high,
        )

    def p_of(self, lower: float, upper: float) -> float:
        """Give the p-value from the chances of a statistic as low, and as high, as the one seen."""
        if self.alternative == "two-sided":
            return min(1.0, 2 * min(lower, upper))
        return min(1.0, upper if self.alternative == "greater" else lower)


@dataclass(frozen=True)
class PairedResult:
    """What a method answers about one pair."""

    statistic: float
    p: float
    interval: tuple[float, float] | None = None
    resamples: int | None = None
    exact: bool = False
    seed: int | None = None
    note: str = ""
    posterior: Posterior | None = None


def share(alpha: float, of: int) -> int:
    """Give how many of ``of`` resamples a share of alpha is, rounded down.

    >>> share(1 - 0.9, 100)
    10
    """
    return math.floor(alpha * of * (1 + ROUNDING))
