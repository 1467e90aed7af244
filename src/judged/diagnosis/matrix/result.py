"""What `performance_matrix` returns: runs, slices and topics by two measures, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.diagnosis.matrix.chart import chart
from judged.diagnosis.matrix.document import document, slice_rows, topic_rows
from judged.diagnosis.matrix.layout import changes_table, points_table, summary_table, topics_table
from judged.diagnosis.matrix.sentences import sentences
from judged.diagnosis.matrix.text import markdown, text
from judged.diagnosis.matrix.two_measures import TwoMeasures

if TYPE_CHECKING:
    from judged.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(TwoMeasures):
    """Runs, slices and topics by two measures, against cuts that come from a baseline.

    Its attributes, and its ways to numbers, are those of `TwoMeasures`.
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not; of many runs, in short."""
        return sentences(self, full=not self.many)

    def table(self) -> Table:
        """Lay out one row a run and slice: both measures with intervals, and the quadrant."""
        return points_table(self)

    def changes_table(self) -> Table:
        """Lay out one row a run and slice: how much both measures changed against the baseline."""
        return changes_table(self)

    def topics_table(self, run: str | None = None) -> Table:
        """Lay out one row a topic (and run): both measures, the quadrant, and how it changed."""
        return topics_table(self, run)

    def summary_table(self) -> Table:
        """Lay out one row a run, without intervals: both measures, how they changed, and how many slices are what."""
        return summary_table(self)

    def text(self, width: int | None = None, *, topics: bool = False, per_run: bool = False) -> str:
        """Write for a terminal; with ``topics``, every topic; of many runs a summary, or with ``per_run`` all."""
        return text(self, width, topics=topics, per_run=per_run)

    def markdown(self, *, topics: bool = False, per_run: bool = False) -> str:
        """Write tables and sentences in Markdown."""
        return markdown(self, topics=topics, per_run=per_run)

    def csv(self, *, topics: bool | None = None) -> str:
        """Write every topic in full precision, or every slice. None: slices, where there are any."""
        every = self.slicing is None if topics is None else topics
        return (topic_rows(self) if every else slice_rows(self)).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return document(self)

    def chart(self, run: str | None = None, *, width: int = 380, height: int = 380) -> Any:
        """Draw topics, slices with their intervals, and the cuts: one run, or all side by side.

        Raises
        ------
        InputError
            If there is no such run.
        MissingExtraError
            If altair is not installed.
        """
        if run is not None:
            self.values(run)
        return chart(self, run, width, height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])
