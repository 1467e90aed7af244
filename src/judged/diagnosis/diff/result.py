"""What `diff` returns: topics, each with its documents in both rankings, and the forms in which that can be had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.diagnosis.diff.layout import documents_table, long_table, markdown, text, topics_table
from judged.diagnosis.diff.rows import DiffRow, DiffTable, MeanPair, ScorePair, TopicRows
from judged.diagnosis.diff.sentences import sentences, topic_sentence
from judged.stats.pairing import plain

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["Diff", "DiffRow", "MeanPair", "ScorePair", "TopicDiff"]


@dataclass(frozen=True)
class TopicDiff(TopicRows):
    """One topic in two rankings. Its attributes are those of `TopicRows`."""

    @property
    def sentence(self) -> str:
        """Say what changed, and what made the difference."""
        return topic_sentence(self)

    def table(self) -> Table:
        """Lay out a row a document."""
        return documents_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        measures = tuple(one.measure for one in self.scores)
        return {
            "query_id": self.query_id,
            "query": self.query,
            "outcome": self.outcome,
            "scores": {
                one.measure: _numbers(first=one.first, second=one.second, difference=one.difference)
                for one in self.scores
            },
            "returned": list(self.returned),
            "unjudged": list(self.unjudged),
            "counts": dict(self.counts),
            "below": dict(zip(measures, self.below, strict=True)),
            "sentence": self.sentence,
            "documents": [row.to_dict(measures) for row in self.rows],
        }


@dataclass(frozen=True, repr=False)
class Diff(DiffTable):
    """Two rankings side by side. Its attributes are those of `DiffTable`; the topics are `TopicDiff`."""

    topics: tuple[TopicDiff, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say how the runs differ over all topics, and what is shown of it."""
        return sentences(self)

    def table(self) -> Table:
        """Lay out a row a topic: both scores by the first measure, and what moved."""
        return topics_table(self)

    def documents(self) -> Table:
        """Lay out a row a topic and document, in full precision: for CSV."""
        return long_table(self)

    def text(self, *, width: int | None = None, colour: bool = False, ascii_only: bool = False) -> str:
        """Write for a terminal: both lists in two columns."""
        return text(self, width=width, colour=colour, ascii_only=ascii_only)

    def markdown(self) -> str:
        """Write as Markdown: a table a topic."""
        return markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            **self.provenance.to_dict(),
            "first": self.runs[0],
            "second": self.runs[1],
            "measures": list(self.measures),
            "means": [plain(one) for one in self.means],
            "depth": self.depth,
            "named": self.named,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
            "topics": [one.to_dict() for one in self.topics],
        }

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])


def _numbers(**values: float) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
