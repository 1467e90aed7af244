"""What was lost on one topic, as an answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged.diagnosis.stages.trace import PARTS
from judged.results import Answer, Sentences, Table
from judged.results.decimals import decimal

if TYPE_CHECKING:
    from judged.diagnosis.stages.answer import Stages
    from judged.results import Block
    from judged.results.notes import Note
    from judged.scoring.evaluation.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False)
class TopicLoss(Answer):
    """What was lost on one topic, by which part, and where each relevant document was lost."""

    kind: ClassVar[str] = "topic"

    stages: Stages
    query_id: str
    query: str  # its text; empty where it is not known
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The topic."""
        return f"{self.query_id}: {self.query}" if self.query else self.query_id

    def facts(self) -> dict[str, Any]:
        """Give the topic, its text and the measures."""
        return {"query_id": self.query_id, "query": self.query, **self.stages.facts()}

    def blocks(self) -> tuple[Block, ...]:
        """Give what was lost by which part, and the documents that the system lost."""
        documents, numbers = self._documents(), self.stages.topics_table()
        place = numbers.column("query_id").values.index(self.query_id)
        said = Sentences(self.sentences, title=self.title)
        return said, documents, replace(numbers.take([place]), only="data", folded=False)

    def _documents(self) -> Table:
        table = self.stages.documents_table()
        places = [at for at, query in enumerate(table.column("query_id").values) if query == self.query_id]
        return replace(table.take(places), only="" if places else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What each system scored, and what it lost by which part."""
        stages, at = self.stages, self.stages.query_ids.index(self.query_id)
        said: list[str] = []
        for trace in stages.traces:
            parts = " and ".join(
                f"{decimal(float(part[at]))} by {name}" for name, part in zip(PARTS, trace.parts, strict=True)
            )
            said.append(
                f"{trace.name}: {trace.verdicts(stages.choices)[at]}: {stages.measure}"
                f" {decimal(float(trace.score[at]))} of {decimal(float(trace.best[at]))}, lost {parts}; relevant"
                f" documents among the first {stages.choices.cutoff}: {trace.found[at]} of {trace.relevant[at]}."
            )
        if not len(self._documents()):
            barren = not stages.trace.relevant[at]
            said.append("No relevant document is known." if barren else "No relevant document was lost.")
        return tuple(said)
