"""What `compare_slices` returns: two systems slice by slice, and whether their difference varies between slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.slicing.charts import comparison_chart
from judged.slicing.compared_slices import BetweenSlices, ComparedSlices, SlicePair
from judged.slicing.document import comparison_document, comparison_rows
from judged.slicing.layout import comparison_caption, comparison_markdown, comparison_table, comparison_text
from judged.slicing.sentences import sentences_of_comparison

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["BetweenSlices", "SliceComparison", "SlicePair"]


@dataclass(frozen=True, eq=False, repr=False)
class SliceComparison(ComparedSlices):
    """Systems compared slice by slice: its attributes, and its ways to numbers, are those of `ComparedSlices`.

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

    @property
    def caption(self) -> str:
        """By which test, with which correction and alpha."""
        return comparison_caption(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not: of each measure and pair."""
        return sentences_of_comparison(self)

    def table(self, measure: str | None = None, *, second: str | None = None) -> Table:
        """Lay out one row a slice, of one measure and pair: difference, interval, p, topics won, what would be seen.

        Raises
        ------
        InputError
            If it was not compared.
        """
        return comparison_table(self, self.of(measure, second))

    def text(self, width: int | None = None) -> str:
        """Write for a terminal."""
        return comparison_text(self, width)

    def markdown(self) -> str:
        """Write tables and sentences in Markdown."""
        return comparison_markdown(self)

    def csv(self) -> str:
        """Write every number in full precision."""
        return comparison_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return comparison_document(self)

    def chart(self, measure: str | None = None, *, width: int = 420, height: int | None = None) -> Any:
        """Draw the differences with intervals by slice, for one measure; a chart of altair.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        return comparison_chart(self, measure or self.measures[0], width=width, height=height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.table().html(notes=(self.caption, *self.sentences, *self.warnings))
