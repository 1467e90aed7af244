"""What `compare_slices` returns: two systems slice by slice, and whether their difference varies between slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.slicing.sliced import measure_named

if TYPE_CHECKING:
    from judged.comparison import Choices, Comparison, Pair
    from judged.slicing.slices import Slicing
    from judged.stats.heterogeneity import AgainstRest, Heterogeneity
    from judged.tables import Table


@dataclass(frozen=True)
class SlicePair:
    """Two systems over the topics of a slice: the second minus the first.

    Attributes
    ----------
    slice, measure, first, second : str
    n : int
        Topics that have a score for both.
    share : float
        Of all topics that are in the slice.
    difference : float
        Of the means; the ratio of geometric means, for a measure that is one. NaN without a topic.
    minimum : int
        With fewer topics nothing is tested.
    small : bool
        Whether it has fewer.
    pair : Pair or None
        The test, with its p-value corrected for all comparisons of the family; None for a small slice.
    rest : AgainstRest or None
        The difference over the slice against that over the other topics; None for a small slice. Not corrected.
    """

    slice: str
    measure: str
    first: str
    second: str
    n: int
    share: float
    difference: float
    minimum: int
    small: bool
    pair: Pair | None
    rest: AgainstRest | None

    @property
    def better(self) -> str | None:
        """The system that is significantly better on the slice; None where neither is."""
        return None if self.pair is None else self.pair.better


@dataclass(frozen=True)
class BetweenSlices:
    """Whether the difference of two systems varies between slices, or could be the same in all.

    Attributes
    ----------
    measure, first, second : str
    slices : tuple of str
        Those that were tested, in the order of ``found.groups``.
    found : Heterogeneity
    adjusted : float
        Its p-value, corrected for the pairs and measures of the call (Holm).
    alpha : float
    """

    measure: str
    first: str
    second: str
    slices: tuple[str, ...]
    found: Heterogeneity
    adjusted: float
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the difference varies: `adjusted` is at most alpha."""
        return self.adjusted <= self.alpha * (1 + 1e-12)


@dataclass(frozen=True, eq=False, repr=False)
class SliceComparison:
    """Systems compared slice by slice.

    Attributes
    ----------
    overall : Comparison
        Over all topics, corrected by itself: what `compare` returns.
    slicing : Slicing
        Of the same topics.
    rows : tuple of SlicePair
        By measure, pair and slice; small slices last.
    between : tuple of BetweenSlices
        One a measure and pair. Empty where slices overlap, or fewer than two can be tested.
    choices : Choices
        Test, correction, alpha, seed and the other options. Its family is ``all``, or ``measure``.
    families : dict of int
        For each measure, how many comparisons its p-values are corrected for.
    warnings : tuple of str
        What should be known before the numbers are used.

    Examples
    --------
    >>> from judged import evaluate
    >>> from judged.slicing.comparing import compare_slices
    >>> from judged.slicing.slices import slice_topics
    >>> ids = [f"q{at}" for at in range(30)]
    >>> scores = evaluate({query: {"d": 1} for query in ids}, {
    ...     "old": {query: ["x", "d"] for query in ids},
    ...     "new": {query: ["d"] if at < 10 else ["x", "d"] for at, query in enumerate(ids)}}, "RR")
    >>> kinds = {query: {"kind": "law" if at < 10 else "news"} for at, query in enumerate(ids)}
    >>> found = compare_slices(scores, slice_topics(kinds, "kind"))
    >>> found.row("kind=law").better, found.row("kind=news").better
    ('new', None)
    >>> found.row("kind=law").pair.found.p, found.row("kind=law").pair.found.adjusted
    (0.001953125, 0.00390625)
    """

    overall: Comparison
    slicing: Slicing
    rows: tuple[SlicePair, ...] = field(repr=False)
    between: tuple[BetweenSlices, ...] = field(repr=False)
    choices: Choices
    families: dict[str, int]
    warnings: tuple[str, ...] = ()

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

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha."""
        from judged.slicing.layout import comparison_caption

        return comparison_caption(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not: of each measure and pair."""
        from judged.slicing.sentences import sentences_of_comparison

        return sentences_of_comparison(self)

    def table(self, measure: str | None = None, *, second: str | None = None) -> Table:
        """Lay out one row a slice, of one measure and pair: difference, interval, p, topics won, what would be seen.

        Raises
        ------
        InputError
            If it was not compared.
        """
        from judged.slicing.layout import comparison_table

        return comparison_table(self, self.of(measure, second))

    def text(self, width: int | None = None) -> str:
        """Write for a terminal."""
        from judged.slicing.layout import comparison_text

        return comparison_text(self, width)

    def markdown(self) -> str:
        """Write tables and sentences in Markdown."""
        from judged.slicing.layout import comparison_markdown

        return comparison_markdown(self)

    def csv(self) -> str:
        """Write every number in full precision."""
        from judged.slicing.document import comparison_rows

        return comparison_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        from judged.slicing.document import comparison_document

        return comparison_document(self)

    def chart(self, measure: str | None = None, *, width: int = 420, height: int | None = None) -> Any:
        """Draw the differences with intervals by slice, for one measure; a chart of altair.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        from judged.slicing.charts import comparison_chart

        return comparison_chart(self, measure or self.measures[0], width=width, height=height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.table().html(notes=(self.caption, *self.sentences, *self.warnings))
