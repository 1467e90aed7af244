"""Two systems compared by one measure, as numbers: what the sentences about a pair stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.stats.effect import Effects, Equivalence, Wins
    from judged.stats.results import Difference

_ROUNDING = 1e-12


@dataclass(frozen=True)
class TopicDifference:
    """The second system's score minus the first's on one topic."""

    query_id: str
    difference: float
    first: float
    second: float


@dataclass(frozen=True)
class TestedPair:
    """Two systems over the same topics, the second minus the first: what the sentences of a `Pair` stand on."""

    measure: str  # what is compared
    first: str  # what is compared
    second: str  # what is compared
    found: Difference  # the difference, its test and its interval. Its `adjusted` p-value is the one that decides.
    # effects, wins: how large the difference is against the spread of the topics, and on how many topics which one is
    # ahead. Effects of a geometric mean are those of the logarithms.
    effects: Effects
    wins: Wins
    # the mean difference that the test would find four times out of five; NaN where it is not known, or the test does
    # not speak of means
    detectable: float
    equivalence: Equivalence | None  # whether the two are surely closer than the margin, where one was given
    # gains, losses: the topics with the largest differences: for the second system, and against it
    gains: tuple[TopicDifference, ...]
    losses: tuple[TopicDifference, ...]
    # 1 where the test sees the second system higher, -1 where lower. Tests of signs and ranks may see another side than
    # the mean difference does.
    side: int
    alpha: float  # a p-value up to here is significant
    lower_is_better: bool = False  # whether the smaller number is the better one
    sharing: int = 1  # how many comparisons alpha was shared among for `detectable`

    @property
    def significant(self) -> bool:
        """Whether the deciding p-value is at most alpha; for ``bayes``, whether the belief is as strong."""
        if self.found.posterior is not None:
            return max(self.found.posterior.higher, self.found.posterior.lower) >= 1 - self.alpha / 2
        return self.found.decisive_p <= self.alpha * (1 + _ROUNDING)

    @property
    def is_ratio(self) -> bool:
        """Whether the two are compared by the ratio of their geometric means."""
        return self.found.method == "ratio"

    @property
    def shown_difference(self) -> float:
        """The difference as people read it: of means, or the ratio of geometric means."""
        return math.exp(self.found.difference) if self.is_ratio else self.found.difference

    @property
    def shown_interval(self) -> tuple[float, float] | None:
        """The interval of the same."""
        if self.found.interval is None or not all(map(math.isfinite, self.found.interval)):
            return None
        low, high = self.found.interval
        return (math.exp(low), math.exp(high)) if self.is_ratio else (low, high)

    @property
    def agrees(self) -> bool:
        """Whether the interval, if there is one, leaves out 0 just where the difference is significant."""
        if self.shown_interval is None or self.found.interval is None:
            return True
        low, high = self.found.interval
        return self.significant == (low > 0 or high < 0)

    @property
    def favoured(self) -> str | None:
        """The system for which a significant test speaks; tests of signs and ranks do not speak of the mean."""
        if not self.significant or not self.side:
            return None
        return self.second if (self.side > 0) != self.lower_is_better else self.first

    @property
    def better(self) -> str | None:
        """The system that is favoured, where the mean points to it too; else None."""
        return self.favoured if self.side * self.found.difference > 0 else None

    def other(self, system: str) -> str:
        """Give the system that is not this one."""
        return self.first if system == self.second else self.second
