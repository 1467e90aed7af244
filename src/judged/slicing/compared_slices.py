"""Two systems slice by slice, and whether their difference varies: what the forms of `compare_slices` stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.slicing.slice_scores import measure_named

if TYPE_CHECKING:
    from judged.comparison import Choices, Comparison, Pair
    from judged.slicing.slices import Slicing
    from judged.stats.heterogeneity import AgainstRest, Heterogeneity


@dataclass(frozen=True)
class SlicePair:
    """Two systems over the topics of a slice: the second minus the first."""

    slice: str
    measure: str
    first: str
    second: str
    n: int  # topics that have a score for both
    share: float  # of all topics that are in the slice
    difference: float  # of the means; the ratio of geometric means, for a measure that is one. NaN without a topic.
    minimum: int  # with fewer topics nothing is tested
    small: bool  # whether it has fewer
    pair: Pair | None  # the test, with its p-value corrected for all comparisons of the family; None for a small slice
    # the difference over the slice against that over the other topics; None for a small slice. Not corrected.
    rest: AgainstRest | None

    @property
    def better(self) -> str | None:
        """The system that is significantly better on the slice; None where neither is."""
        return None if self.pair is None else self.pair.better


@dataclass(frozen=True)
class BetweenSlices:
    """Whether the difference of two systems varies between slices, or could be the same in all."""

    measure: str
    first: str
    second: str
    slices: tuple[str, ...]  # those that were tested, in the order of `found.groups`
    found: Heterogeneity
    adjusted: float  # its p-value, corrected for the pairs and measures of the call (Holm)
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the difference varies: `adjusted` is at most alpha."""
        return self.adjusted <= self.alpha * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class ComparedSlices:
    """Systems compared slice by slice, as numbers: the part of a result that its forms stand on."""

    overall: Comparison  # over all topics, corrected by itself: what `compare` returns
    slicing: Slicing  # of the same topics
    rows: tuple[SlicePair, ...] = field(repr=False)  # by measure, pair and slice; small slices last
    # one a measure and pair. Empty where slices overlap, or fewer than two can be tested.
    between: tuple[BetweenSlices, ...] = field(repr=False)
    choices: Choices  # test, correction, alpha, seed and the other options. Its family is `all`, or `measure`.
    families: dict[str, int]  # for each measure, how many comparisons its p-values are corrected for
    warnings: tuple[str, ...] = ()  # what should be known before the numbers are used
    where: str = ""  # the expression by which these topics were chosen; empty for all

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The systems that were compared: first and second."""
        return tuple(dict.fromkeys((row.first, row.second) for row in self.rows))

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that were compared."""
        return tuple(dict.fromkeys(row.measure for row in self.rows))

    def of(self, measure: str | None = None, second: str | None = None) -> tuple[SlicePair, ...]:
        """Give the slices of one measure and pair; the first of each, if none is named.

        Raises
        ------
        InputError
            If it was not compared.
        """
        if not self.rows:
            raise InputError("nothing was compared: no measure is a mean", fix="take one that is, such as nDCG@10")
        name, system = measure_named(measure, self.measures), second or self.pairs[0][1]
        found = tuple(row for row in self.rows if (row.measure, row.second) == (name, system))
        if not found:
            raise InputError(f"{system!r} was not compared", fix=f"one of {', '.join(two for _, two in self.pairs)}")
        return found

    def row(self, name: str, measure: str | None = None, second: str | None = None) -> SlicePair:
        """Give one slice.

        Raises
        ------
        InputError
            If there is no such slice, or it was not compared.
        """
        found = {row.slice: row for row in self.of(measure, second)}
        if name not in found:
            raise InputError(f"no slice {name!r}", fix=f"one of {', '.join(found)}")
        return found[name]

    def heterogeneity(self, measure: str | None = None, second: str | None = None) -> BetweenSlices | None:
        """Say of one measure and pair whether the difference varies between slices; None where it was not tested."""
        first = self.of(measure, second)[0]
        wanted = first.measure, first.second
        return next((one for one in self.between if (one.measure, one.second) == wanted), None)
