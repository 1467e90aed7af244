"""What `stages` returns: what a system lost by its stages, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.diagnosis.stages.chart import chart
from judged.diagnosis.stages.document import document, slice_rows, topic_rows
from judged.diagnosis.stages.layout import changes_table, documents_table, parts_table, topics_table, verdicts_table
from judged.diagnosis.stages.sentences import sentences
from judged.diagnosis.stages.split import SplitLoss
from judged.diagnosis.stages.text import markdown, text, topic_text
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Stages(SplitLoss):
    """What a system lost, split exactly into its stages; and the same for a second one that it is held against.

    Its attributes, and its ways to numbers, are those of `SplitLoss`.

    Examples
    --------
    >>> from judged.diagnosis.stages.making import stages
    >>> qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    >>> run = {"q1": ["a"], "q2": ["x", "y", "a"], "q3": ["x"]}
    >>> found = stages(qrels, run, measure="RR@10", depth=2)
    >>> found.trace.parts.tolist()  # candidates and ranking, by topic
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    >>> found.verdicts
    ('little lost', 'not found', 'not found')
    """

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return sentences(self)

    def table(self) -> Table:
        """Lay out one row a slice and system: score, recall of the candidates, parts of the loss with intervals."""
        return parts_table(self)

    def verdicts_table(self) -> Table:
        """Lay out one row a slice and system: how many topics have which verdict."""
        return verdicts_table(self)

    def changes_table(self) -> Table:
        """Lay out one row a slice and part: how much the score, or the part, changed, with corrected p-values.

        Raises
        ------
        InputError
            If there is no system to compare with.
        """
        if self.against is None:
            raise InputError("there is no second system", fix="give against=")
        return changes_table(self)

    def topics_table(self, limit: int | None = None) -> Table:
        """Lay out one row a topic, largest loss first."""
        return topics_table(self, limit)

    def documents_table(self, query_id: str | None = None) -> Table:
        """Lay out the relevant documents that are not on the page, or not returned: where each was lost.

        Raises
        ------
        InputError
            If there is no such topic.
        """
        if query_id is not None and query_id not in self.query_ids:
            raise InputError(f"no topic {query_id!r} here", fix=f"one of {', '.join(self.query_ids[:5])}, ...")
        return documents_table(self, query_id)

    def text(self, width: int | None = None, *, topics: bool = False) -> str:
        """Write for a terminal; with ``topics``, every topic."""
        return text(self, width, topics=topics)

    def markdown(self, *, topics: bool = False) -> str:
        """Write tables and sentences in Markdown."""
        return markdown(self, topics=topics)

    def topic_text(self, query_id: str, width: int | None = None, *, query: str = "", markdown: bool = False) -> str:
        """Write one topic: what was scored, what was lost by which part, and where each document was lost.

        Parameters
        ----------
        query_id
            The topic.
        width
            Of the terminal; None for any.
        query
            Its text, where it is to be shown.
        markdown
            Whether to write Markdown.

        Raises
        ------
        InputError
            If there is no such topic.
        """
        self.documents_table(query_id)
        return topic_text(self, query_id, width, query=query, markdown=markdown)

    def csv(self, *, topics: bool | None = None) -> str:
        """Write every topic in full precision, or every slice. None: slices, where there are any."""
        every = self.slicing is None if topics is None else topics
        return (topic_rows(self) if every else slice_rows(self)).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return document(self)

    def chart(self, *, by: str = "slice", width: int = 480, height: int | None = None) -> Any:
        """Draw stacked bars: score and parts of the loss, a bar a ``slice`` (and system), or a ``topic``.

        Raises
        ------
        InputError
            If ``by`` is neither.
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, by, width, height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])
