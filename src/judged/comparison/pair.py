"""Two systems compared by one measure, and one measure compared over all systems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from judged.comparison.sentences import sentence
from judged.comparison.tested_pair import TestedPair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate
    from judged.measures import Measure

SHOWN = 4  # decimals of a mean: what looks the same is best together


@dataclass(frozen=True)
class Pair(TestedPair):
    """Two systems over the same topics: the second minus the first."""

    @property
    def sentence(self) -> str:
        """What may be concluded, and what not."""
        return sentence(self)


@dataclass(frozen=True, eq=False)
class MeasureComparison:
    """All systems compared by one measure."""

    measure: Measure
    estimates: tuple[Estimate, ...]  # one aggregate a system, with its interval, in the order of the runs
    pairs: tuple[Pair, ...]  # every pair, or every system against the baseline. Empty where nothing is tested.
    family: int  # how many comparisons the correction, or the test itself, allowed for
    untested: str = ""  # why nothing is tested; empty otherwise
    overall: str = ""  # what a test of all systems at once says before any pair is looked at

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
