"""Systems compared, with all that is needed to read it: what the forms of a comparison stand on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.measures import parse

if TYPE_CHECKING:
    from judged.comparison.choices import Choices
    from judged.comparison.pair import MeasureComparison, Pair
    from judged.evaluation import Scores
    from judged.stats import IntervalName


@dataclass(frozen=True, eq=False)
class ComparedSystems:
    """Systems compared as numbers: the part of a comparison that its forms stand on."""

    scores: Scores  # what is compared
    measures: tuple[MeasureComparison, ...]  # one a measure: aggregates with intervals, and pairs with their tests
    choices: Choices  # test, correction, alpha, seed and the other options
    ci: IntervalName  # how the intervals of the aggregates were made
    warnings: tuple[str, ...] = ()  # what should be known before the numbers are used

    @cached_property
    def order(self) -> list[int]:
        """The systems from best to worst by the first measure."""
        return self.measures[0].order()

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of all measures."""
        return tuple(pair for one in self.measures for pair in one.pairs)

    def measure(self, name: str | None = None) -> MeasureComparison:
        """Give what was found by one measure; the first, if none is named.

        Raises
        ------
        InputError
            If it was not compared.
        """
        if name is None:
            return self.measures[0]
        known = {one.name: one for one in self.measures}
        found = known.get(name) or known.get(str(parse(name)))
        if found is None:
            raise InputError(f"{name} was not compared", fix=f"one of {', '.join(known)}")
        return found

    def pair(self, first: str, second: str, measure: str | None = None) -> Pair:
        """Give one pair, in whichever order the two are named; its own fields say which is first.

        Raises
        ------
        InputError
            If the two were not compared by this measure.
        """
        one = self.measure(measure)
        found = one.by_runs.get((first, second)) or one.by_runs.get((second, first))
        if found is None:
            raise InputError(
                f"{first!r} and {second!r} were not compared by {one.name}",
                fix=one.untested or f"name two of {', '.join(self.scores.run_names)}; with a baseline, one is it",
            )
        return found
