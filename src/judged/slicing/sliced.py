"""What `by_slice` returns: scores of slices, ways to average over them, and which slices differ from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.slicing.charts import score_chart
from judged.slicing.document import score_document, score_rows
from judged.slicing.layout import average_table, score_markdown, score_table, score_text
from judged.slicing.sentences import sentences_of_scores
from judged.slicing.slice_scores import (
    ALL,
    MEAN_OF_SLICES,
    TOPIC_MEAN,
    Average,
    SliceEstimate,
    SliceFinding,
    SliceTable,
    measure_named,
)

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = [
    "ALL",
    "MEAN_OF_SLICES",
    "TOPIC_MEAN",
    "Average",
    "SliceEstimate",
    "SliceFinding",
    "SlicedScores",
    "measure_named",
]


@dataclass(frozen=True, eq=False, repr=False)
class SlicedScores(SliceTable):
    """Scores by slice: its attributes, and its ways to numbers, are those of `SliceTable`.

    Examples
    --------
    >>> from judged import evaluate
    >>> from judged.slicing.by_slice import by_slice
    >>> from judged.slicing.slices import slice_topics
    >>> qrels = {"a": {"d": 1}, "b": {"d": 1}, "c": {"d": 1}}
    >>> scores = evaluate(qrels, {"a": ["d"], "b": ["x", "d"], "c": ["d"]}, "RR")
    >>> kinds = slice_topics({"a": {"kind": "law"}, "b": {"kind": "news"}, "c": {"kind": "law"}}, "kind", minimum=1)
    >>> found = by_slice(scores, kinds, ci="none")
    >>> found.value("kind=law"), found.value("kind=news"), found.average("mean of slices").value
    (1.0, 0.5, 0.75)
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return sentences_of_scores(self)

    def table(self, measure: str | None = None, *, run: str | None = None) -> Table:
        """Lay out one row a slice. With one run, or one that is named: a column a measure; else a column a run.

        Raises
        ------
        InputError
            If there is no such run or measure.
        """
        return score_table(self, measure, run)

    def average_table(self) -> Table:
        """Lay out one row a way to average and run, one column a measure."""
        return average_table(self)

    def text(self, width: int | None = None) -> str:
        """Write for a terminal."""
        return score_text(self, width)

    def markdown(self) -> str:
        """Write tables and sentences in Markdown."""
        return score_markdown(self)

    def csv(self) -> str:
        """Write every number in full precision."""
        return score_rows(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return score_document(self)

    def chart(self, measure: str | None = None, *, width: int = 420, height: int | None = None) -> Any:
        """Draw the runs' numbers with intervals by slice, for one measure; a chart of altair.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        return score_chart(self, self.chosen(None, measure)[1], width=width, height=height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return self.table().html(notes=(*self.sentences, *self.warnings))
