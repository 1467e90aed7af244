"""What a search system did on the way from the query to the list: stage by stage, and against judgments."""

from judged.pipelines.traces.diff import TraceDiff, diff
from judged.pipelines.traces.entities import Entities
from judged.pipelines.traces.failures import FAILURES, Failures, failures
from judged.pipelines.traces.funnel import funnel
from judged.pipelines.traces.funnel_answer import TraceFunnel
from judged.pipelines.traces.gaps import Gaps, gaps
from judged.pipelines.traces.own import Recorder, write_traces
from judged.pipelines.traces.reading import TraceCheck, check_traces, read_traces
from judged.pipelines.traces.traces import Document, Span, Stage, Traces, traces_of_runs
from judged.pipelines.traces.why import Why, why

__all__ = [
    "FAILURES",
    "Document",
    "Entities",
    "Failures",
    "Gaps",
    "Recorder",
    "Span",
    "Stage",
    "TraceCheck",
    "TraceDiff",
    "TraceFunnel",
    "Traces",
    "Why",
    "check_traces",
    "diff",
    "failures",
    "funnel",
    "gaps",
    "read_traces",
    "traces_of_runs",
    "why",
    "write_traces",
]
