"""Two systems compared by one measure, and one measure compared over all systems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate
    from judged.measures import Measure
    from judged.stats.effect import Effects, Equivalence, Wins
    from judged.stats.results import Difference

SHOWN = 4  # decimals of a mean: what looks the same is best together
_ROUNDING = 1e-12


@dataclass(frozen=True)
class TopicDifference:
    """The second system's score minus the first's on one topic."""

    query_id: str
    difference: float
    first: float
    second: float


@dataclass(frozen=True)
class Pair:
    """Two systems over the same topics: the second minus the first.

    Parameters
    ----------
    measure, first, second
        What is compared.
    found
        The difference, its test and its interval. Its `adjusted` p-value is the one that decides.
    effects, wins
        How large the difference is against the spread of the topics, and on how many topics which one is ahead.
        Effects of a geometric mean are those of the logarithms.
    detectable
        The mean difference that such topics would have shown four times out of five; NaN where it is not known.
    equivalence
        Whether the two are surely closer than the margin, where one was given.
    gains, losses
        The topics with the largest differences: for the second system, and against it.
    side
        1 where the test sees the second system higher, -1 where lower. Tests of signs and ranks may see another side
        than the mean difference does.
    alpha
        A p-value up to here is significant.
    lower_is_better
        Whether the smaller number is the better one.
    """

    measure: str
    first: str
    second: str
    found: Difference
    effects: Effects
    wins: Wins
    detectable: float
    equivalence: Equivalence | None
    gains: tuple[TopicDifference, ...]
    losses: tuple[TopicDifference, ...]
    side: int
    alpha: float
    lower_is_better: bool = False

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
    def better(self) -> str | None:
        """The system that is significantly better; None where neither is, or test and mean disagree which."""
        if not self.significant or self.side * self.found.difference <= 0:
            return None
        return self.second if (self.found.difference > 0) != self.lower_is_better else self.first

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        from judged.comparison.sentences import sentence

        return sentence(self)


@dataclass(frozen=True, eq=False)
class MeasureComparison:
    """All systems compared by one measure.

    Parameters
    ----------
    measure
        Which.
    estimates
        One aggregate a system, with its interval, in the order of the runs.
    pairs
        Every pair, or every system against the baseline. Empty where nothing is tested.
    family
        How many comparisons the correction, or the test itself, allowed for.
    untested
        Why nothing is tested; empty otherwise.
    overall
        What a test of all systems at once says before any pair is looked at.
    """

    measure: Measure
    estimates: tuple[Estimate, ...]
    pairs: tuple[Pair, ...]
    family: int
    untested: str = ""
    overall: str = ""

    @property
    def name(self) -> str:
        """The canonical name of the measure."""
        return str(self.measure)

    @property
    def lower_is_better(self) -> bool:
        """Whether the smaller number is the better one."""
        return self.measure.properties.higher_is_better is False

    @cached_property
    def by_runs(self) -> dict[tuple[str, str], Pair]:
        """Each pair by its two names."""
        return {(pair.first, pair.second): pair for pair in self.pairs}

    @cached_property
    def better_than(self) -> dict[str, set[str]]:
        """The systems that each system is significantly better than."""
        found: dict[str, set[str]] = {}
        for pair in self.pairs:
            if pair.better is not None:
                found.setdefault(pair.better, set()).add(pair.first if pair.better == pair.second else pair.second)
        return found

    def order(self) -> list[int]:
        """Give the systems as a leaderboard lists them: best first, those without a number last."""
        return order_of(self.measure, self.estimates)

    def best(self) -> set[int]:
        """Give the systems with the best number."""
        values = [one.value for one in self.estimates]
        top = self.best_of([value for value in values if not math.isnan(value)])
        return {at for at, value in enumerate(values) if round(value, SHOWN) in top}

    def best_of(self, values: Sequence[float]) -> set[float]:
        """Give the best of some numbers, as they are shown; nothing, where better and worse mean nothing."""
        if self.measure.properties.higher_is_better is None or not values:
            return set()
        return {round(min(values) if self.lower_is_better else max(values), SHOWN)}


def order_of(measure: Measure, estimates: Sequence[Estimate]) -> list[int]:
    """Give the systems from best to worst, those without a number last, equal ones as they are given."""
    values = [one.value for one in estimates]
    side = 1 if measure.properties.higher_is_better is False else -1
    return sorted(range(len(values)), key=lambda at: (math.isnan(values[at]), side * values[at]))
