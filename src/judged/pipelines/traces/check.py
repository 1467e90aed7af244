"""What traces hold: their stages, how many queries went through each, and what is not recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from judged.results import COUNT, TEXT, Answer, Column, Table, counted, number

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Traces
    from judged.results import Block
    from judged.results.notes import Note


@dataclass(frozen=True, eq=False, repr=False)
class TraceCheck(Answer):
    """The stages of traces, and what is not recorded of them.

    Parameters
    ----------
    traces
        The traces.
    notes
        What could not be read.
    """

    kind: ClassVar[str] = "trace-check"

    traces: Traces
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What was traced."""
        return f"{self.traces.name}: {counted(len(self.traces.query_ids), 'query', 'queries')}"

    def facts(self) -> Mapping[str, Any]:
        """Give the name and the number of queries."""
        return {"traces": self.traces.name, "n": len(self.traces.query_ids)}

    def blocks(self) -> tuple[Block, ...]:
        """Give one row a stage, those without documents too."""
        spans = self.traces.spans
        steps = {stage.name: stage for stage in self.traces.stages}
        names = [*steps, *dict.fromkeys(span.stage for span in spans if span.stage not in steps)]
        of = {name: [span for span in spans if span.stage == name] for name in names}
        documents = {name: [len(span.documents) for span in of[name] if span.documents is not None] for name in names}
        took = {name: [span.latency_ms for span in of[name] if span.latency_ms is not None] for name in names}
        middle = {name: median(given) if given else None for name, given in took.items()}
        columns = (
            Column("stage", names, TEXT),
            Column("kind", [of[name][0].kind if of[name] else steps[name].kind for name in names], TEXT),
            Column("step", [steps[name].step if name in steps else None for name in names], COUNT),
            Column(
                "parents", [", ".join(steps[name].parents) if name in steps else "" for name in names], TEXT, "given by"
            ),
            Column("n", [len(of[name]) for name in names], COUNT, "queries"),
            Column("documents", [sum(documents[name]) for name in names], COUNT),
            Column("unrecorded", [self._unrecorded(name) for name in names], COUNT, "not recorded"),
            Column("unscored", [self._unscored(name) for name in names], COUNT, "without score"),
            Column("untimed", [len(of[name]) - len(took[name]) for name in names], COUNT, "without latency"),
            Column("latency_ms", [middle[name] for name in names], number(1), "median ms"),
        )
        return (Table("stages", columns, self.title, labels=2),)

    def _unrecorded(self, stage: str) -> int:
        """Return for how many queries the documents are unknown, also where the span itself is missing."""
        if stage not in {one.name for one in self.traces.stages}:
            return 0
        return sum(self.traces.state(query, stage) == "unrecorded" for query in self.traces.query_ids)

    def _unscored(self, stage: str) -> int:
        every = (one for span in self.traces.spans if span.stage == stage for one in span.documents or ())
        return sum(one.score is None for one in every)


def check_traces(traces: Traces) -> TraceCheck:
    """Say which stages traces have, and what is not recorded of them."""
    return TraceCheck(traces, traces.notes)
