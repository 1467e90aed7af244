"""What a search system did on the way from the query to the list: stage by stage, and against judgments."""

from judged.traces.check import TraceCheck, check_traces
from judged.traces.diff import TraceDiff, diff
from judged.traces.entities import Entities
from judged.traces.failures import FAILURES, Failures, failures
from judged.traces.funnel import funnel
from judged.traces.funnel_answer import TraceFunnel
from judged.traces.gaps import Gaps, gaps
from judged.traces.own import write_traces
from judged.traces.reading import read_traces
from judged.traces.recorder import Recorder
from judged.traces.traces import Document, Span, Stage, Traces, traces_of_runs
from judged.traces.why import Why, why

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
