"""The section of a report that says at which stage of a pipeline what was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.pipelines.traces import Traces, failures, read_traces
from judged.reports.material import ReportPart, quoted
from judged.results import Chart, Section, Sentences, Table

if TYPE_CHECKING:
    from judged.reports.material import Material

_ELSEWHERE = ("topics", "documents")  # they are in the results


def pipeline(material: Material, given: Any) -> ReportPart:
    """Write the section: stages, the parts of the loss by the first measure, and the kinds of failure."""
    traces = given if isinstance(given, Traces) else read_traces(given, topics=material.topics)
    answer = failures(material.qrels, traces, material.lead, attributes=material.attributes)
    parts: list[Any] = []
    for block in (*answer.funnel.blocks(), *answer.blocks()):
        name = f"pipeline_{block.name}"
        if isinstance(block, Table) and block.name not in _ELSEWHERE:
            parts.append(quoted(block, name, title=block.title, note=block.note))
        elif isinstance(block, Chart):
            parts.append(quoted(block, f"pipeline{block.name.title()}"))
    said = (*answer.funnel.sentences, *answer.sentences)
    section = Section("pipeline", "At which stage it is lost", (Sentences(said), *parts))
    warnings = tuple(map(str, traces.notes))
    return ReportPart(section, {"funnel": answer.funnel, "failures": answer}, said[0], warnings)
