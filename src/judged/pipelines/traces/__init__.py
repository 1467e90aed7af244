"""Traces of search pipelines: documents of each stage, and their loss compared with judgments."""

from judged.pipelines.traces.diff import TraceDiff, diff
from judged.pipelines.traces.document_paths import DocumentPaths, explain_document
from judged.pipelines.traces.entities import Entities
from judged.pipelines.traces.failures import FAILURES, Failures, failures
from judged.pipelines.traces.funnel import funnel
from judged.pipelines.traces.funnel_answer import TraceFunnel
from judged.pipelines.traces.gaps import Gaps, gaps
from judged.pipelines.traces.reading import TraceCheck, check_traces, read_traces
from judged.pipelines.traces.recorder import Recorder, write_traces
from judged.pipelines.traces.traces import Document, Span, Stage, Traces, traces_of_runs

__all__ = [
    "FAILURES",
    "Document",
    "DocumentPaths",
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
    "check_traces",
    "diff",
    "explain_document",
    "failures",
    "funnel",
    "gaps",
    "read_traces",
    "traces_of_runs",
    "write_traces",
]
