"""The section of a report that says where the evidence of answers went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.pipelines.rag import Responses, waterfall
from judged.pipelines.traces import Traces, read_traces
from judged.reports.material import ReportPart, quoted
from judged.results import Chart, Section, Sentences, Table

if TYPE_CHECKING:
    from judged.reports.material import Material


def answers(material: Material, given: Any, traces: Any) -> ReportPart:
    """Write the section: the waterfall, behind the runs that are called as systems, or else behind traces."""
    responses = Responses.of(given)
    runs = {name: run for name, run in material.runs.items() if name in responses.run_names} or None
    if traces and not isinstance(traces, Traces):
        traces = read_traces(traces, topics=material.topics)
    answer = waterfall(
        responses, material.qrels, runs=runs, traces=None if runs else traces or None, slicing=material.slicing
    )
    parts: list[Any] = []
    for block in answer.blocks():
        if isinstance(block, Table) and not block.folded:
            parts.append(quoted(block, f"answers_{block.name}", title=block.title, note=block.note))
        elif isinstance(block, Chart):
            parts.append(quoted(block, f"answers{block.name.title()}"))
    section = Section("answers", "Where the evidence of answers went", (Sentences(answer.sentences), *parts))
    return ReportPart(section, {"waterfall": answer}, answer.sentences[0], answer.warnings)
