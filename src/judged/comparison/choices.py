"""How systems are compared: the test, the correction, and what counts as a difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from judged.errors import InputError
from judged.results.spelling import one_of
from judged.stats.inputs import check_resampling

Family: TypeAlias = Literal["measure", "all"]

MANY = {
    "tukey": "Tukey's HSD on a two-way layout",
    "randomised-tukey": "randomised Tukey HSD",
    "nemenyi": "Nemenyi's test on ranks",
    "dunnett": "Dunnett's test against one baseline",
    "randomised-dunnett": "randomised test of the largest difference from the baseline",
}
"""Tests of all systems at once; each allows for its own comparisons, and takes no correction."""

AGAINST_BASELINE = ("dunnett", "randomised-dunnett")
_FAMILY_WISE = ("bonferroni", "holm", "hochberg")
_FEW_TOPICS = 300  # 100,000 resamples of more topics take seconds where many runs are compared
_NO_RESAMPLES = ("t", "wilcoxon", "sign", "bounded", "bayes", "tukey", "nemenyi", "dunnett")


MANY_TOPICS = 2000
"""With more topics Student's t-test is the default: it gives the p-value of the randomisation test, at once."""


def default_test(topics: int) -> str:
    """Return the test that is used for so many topics if none is named.

    >>> default_test(50), default_test(6980)
    ('randomisation', 't')
    """
    return "t" if topics > MANY_TOPICS else "randomisation"


def default_resamples(topics: int) -> int:
    """Return the number of resamples that is used for so many topics if none is given.

    >>> default_resamples(50), default_resamples(1000)
    (100000, 10000)
    """
    return 10_000 if topics > _FEW_TOPICS else 100_000


def known_tests() -> dict[str, str]:
    """Give every test by name: those of two systems, and those of many."""
    from judged.stats.paired import TESTS

    return {**TESTS, **MANY}


@dataclass(frozen=True)
class Choices:
    """How systems are compared; it travels with the result."""

    test: str = "randomisation"  # a name in `known_tests()`
    # for the number of comparisons: a name in `judged.stats.correction.CORRECTIONS`. Tests of many systems take none.
    correction: str = "holm"
    family: Family = "measure"  # what is corrected together: the pairs of one `measure`, or the pairs of `all` measures
    alpha: float = 0.05  # a p-value up to here counts as significant. Intervals leave out 0 where the corrected p is.
    # resamples, seed: of tests by resampling
    resamples: int = 100_000
    seed: int = 0
    min_difference: float = 0.0  # the least difference on a topic that counts as a win or a loss
    # systems whose difference is surely smaller are called equivalent; None: nothing is said of it
    margin: float | None = None
    baseline: str | None = None  # the system that all others are compared with; None: every pair

    def __post_init__(self) -> None:
        from judged.stats.correction import CORRECTIONS

        for name, known in (("test", known_tests()), ("correction", CORRECTIONS), ("family", get_args(Family))):
            object.__setattr__(self, name, one_of(name, getattr(self, name), known))
        if not 0 < self.alpha < 0.5:
            raise InputError(f"alpha {self.alpha} is not between 0 and 0.5", fix="use 0.05, for example")
        check_resampling(self.resamples, self.seed)
        if not (math.isfinite(self.min_difference) and self.min_difference >= 0):
            raise InputError(f"the minimum difference {self.min_difference} makes no sense", fix="give a number from 0")
        if self.margin is not None and not (math.isfinite(self.margin) and self.margin > 0):
            raise InputError(f"the margin {self.margin} makes no sense", fix="give a number above 0, such as 0.02")
        if self.test in AGAINST_BASELINE and self.baseline is None:
            raise InputError(f"{self.test} compares with a baseline", fix="name a baseline, or use tukey for all pairs")
        if self.many and self.family == "all":
            raise InputError(
                f"{self.test} allows for the pairs of one measure, not for all measures together",
                fix="leave out family, or take a test of two systems, such as randomisation",
            )

    @property
    def many(self) -> bool:
        """Whether all systems are tested at once."""
        return self.test in MANY

    @property
    def level(self) -> float:
        """That of the intervals."""
        return 1 - self.alpha

    @property
    def draws(self) -> bool:
        """Whether the test draws at random."""
        return self.test not in _NO_RESAMPLES

    def alpha_of_one(self, family: int) -> float:
        """Give the alpha that the strictest step of a family of so many comparisons goes by."""
        shared = self.many or self.correction in _FAMILY_WISE
        return self.alpha / max(family, 1) if shared and self.test != "bayes" else self.alpha
