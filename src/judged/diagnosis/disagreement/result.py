"""What `disagreement` returns: two systems, two measures, and the topics on which they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.diagnosis.disagreement.chart import chart
from judged.diagnosis.disagreement.document import document
from judged.diagnosis.disagreement.layout import (
    agreement_table,
    causes_table,
    long_table,
    markdown,
    sentences,
    slice_table,
    text,
)
from judged.diagnosis.disagreement.sides import SIGNS, MeanSide, SliceDisagreement, TopicDisagreement, TwoSides

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["SIGNS", "Disagreement", "MeanSide", "SliceDisagreement", "TopicDisagreement"]


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement(TwoSides):
    """Two systems as two measures see them: its attributes, and its ways to numbers, are those of `TwoSides`."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what the measures disagree on, what it rests on, and why."""
        return sentences(self)

    def table(self) -> Table:
        """Lay out the topics that cause the disagreement."""
        return causes_table(self)

    def agreement_table(self) -> Table:
        """Lay out how many topics are up, same or down by both measures."""
        return agreement_table(self)

    def slice_table(self) -> Table:
        """Lay out a row a slice."""
        return slice_table(self)

    def long_table(self) -> Table:
        """Lay out every topic in full precision: for CSV."""
        return long_table(self)

    def chart(self, *, width: int = 420, height: int = 360) -> Any:
        """Draw every topic by its differences under both measures.

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, width, height)

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal."""
        return text(self, width=width)

    def markdown(self) -> str:
        """Write as Markdown."""
        return markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return document(self)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])
