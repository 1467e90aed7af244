"""JSON Lines format of traces, one line for each stage, and a recorder for pipelines."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from judged.data import sample
from judged.data.json_rows import check_shape
from judged.errors import InputError
from judged.pipelines.traces.traces import KINDS, Document, Span, Traces, traces_of_runs
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from types import TracebackType

    from judged.data.run import Run
    from judged.pipelines.traces.traces import Kind


_ID = (str, int)
_STAGE = {
    "trace_id?": _ID, "query_id?": _ID, "query?": str, "model?": str, "parents?": [_ID], "facts?": dict,
    "settings?": dict, "documents?": list,
}  # fmt: skip


def write_traces(traces: Traces, path: str | Path, *, format: Literal["judged", "openinference"] = "judged") -> None:
    """Write traces as JSON Lines; an existing file is replaced atomically.

    Parameters
    ----------
    traces
        Traces to write.
    path
        Output file.
    format
        ``judged``: one line for each stage. ``openinference``: spans, with an attribute ``judged.stage`` for fields
        that OpenInference does not define. Durations are preserved, but times are not: spans begin in 1970.

    Raises
    ------
    InputError
        If the format is unknown, or the folder does not exist.
    OutputError
        If the file cannot be written.
    """
    from judged.pipelines.traces.conventions import lines_of

    if format not in ("judged", "openinference"):
        raise InputError(f"unknown format {format!r}", fix="use format='judged' or format='openinference'")
    lines = lines_of(traces.spans) if format == "openinference" else map(line_of, traces.spans)
    with atomic_write(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def line_of(span: Span) -> str:
    """Format a stage as one line of JSON, without unknown fields.

    >>> line_of(Span("t", "q", "bm25", "candidates", documents=(Document("a", 1),)))
    '{"trace_id": "t", "query_id": "q", "stage": "bm25", "kind": "candidates", "documents": [{"id": "a"}]}'
    """
    row: dict[str, Any] = {"trace_id": span.trace_id, "query_id": span.query_id, "stage": span.stage, "kind": span.kind}
    row |= {"parents": list(span.parents)} if span.parents else {}
    fields = {"query": span.query, "latency_ms": span.latency_ms, "model": span.model}
    row |= {name: value for name, value in fields.items() if value is not None}
    row |= {"settings": dict(span.settings)} if span.settings else {}
    row |= {"facts": dict(span.facts)} if span.facts else {}
    if span.documents is not None:
        row["documents"] = [document_row(document, place) for place, document in enumerate(span.documents, 1)]
    return json.dumps(row, ensure_ascii=False)


def document_row(document: Document, place: int) -> dict[str, Any]:
    """Convert a document to a JSON object, with its rank only if it differs from its place."""
    row: dict[str, Any] = {"id": document.doc_id}
    row |= {"rank": document.rank} if document.rank != place else {}
    row |= {"score": document.score} if document.score is not None else {}
    row |= {"source": document.source} if document.source else {}
    return row | ({"features": dict(document.features)} if document.features else {})


def span_of(row: Mapping[str, Any]) -> Span:
    """Convert a JSON object to a stage.

    Raises
    ------
    ValueError
        If the object is invalid.
    """
    check_shape(row, _STAGE, "a stage")
    query_id = row.get("query_id", row.get("query"))
    if query_id is None or not isinstance(row.get("stage"), str):
        raise ValueError("a line must have `stage`, and `query_id` or `query`")
    kind = row.get("kind", "candidates")
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r:.40}")
    documents = row.get("documents")
    return Span(
        trace_id=str(row.get("trace_id", query_id)),
        query_id=str(query_id),
        stage=row["stage"],
        kind=kind,
        parents=tuple(map(str, row.get("parents") or ())),
        documents=None if documents is None else documents_of(documents),
        query=row.get("query"),
        latency_ms=_number(row.get("latency_ms")),
        model=row.get("model"),
        facts=row.get("facts") or {},
        settings=row.get("settings") or {},
    )


def documents_of(rows: Iterable[Any]) -> tuple[Document, ...]:
    """Convert objects or ids to documents; of repeated documents the first one is used."""
    documents: dict[str, Document] = {}
    for place, element in enumerate(rows, 1):
        row: Mapping[str, Any] = element if isinstance(element, Mapping) else {"id": element}
        check_shape(row, {"features?": dict}, "a document")
        if row.get("id") is None:
            raise ValueError("a document must have an id")
        rank, score, source = int(row.get("rank", place)), _number(row.get("score")), str(row.get("source") or "")
        check_shape(rank, int, "rank of a document")
        document = Document(str(row["id"]), rank, score, source, row.get("features") or {})
        documents.setdefault(document.doc_id, document)
    return tuple(documents.values())


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not isfinite(number):
        raise ValueError(f"{value} is not a finite number")
    return number


_PAGE_SIZE = 10


def sample_traces() -> Traces:
    """Return traces of a pipeline on the sample's topics.

    Candidates are `bm25` and `tfidf_char`, 50 documents each; `rrf` fuses them by reciprocal rank and returns 50;
    users see the first ten.

    >>> [(stage.name, stage.kind, stage.parents) for stage in sample_traces().stages][2:]
    [('rrf', 'fuse', ('bm25', 'tfidf_char')), ('shown', 'shown', ('rrf',))]
    """
    runs = {run.name: run for run in sample.runs()}
    stages = {name: runs[name] for name in ("bm25", "tfidf_char", "rrf")} | {"shown": runs["rrf"]}
    traces = traces_of_runs(stages, parents={"tfidf_char": (), "rrf": ("bm25", "tfidf_char")})
    queries = sample.topics()
    spans = [replace(span, query=queries.text(span.query_id)) for span in traces.spans]
    return Traces(tuple(map(_first_page, spans)), "pydocs")


def _first_page(span: Span) -> Span:
    return replace(span, kind="shown", documents=(span.documents or ())[:_PAGE_SIZE]) if span.stage == "shown" else span


def write_traces_of_runs(
    runs: Mapping[str, Run],
    parents: Mapping[str, tuple[str, ...]],
    settings: Mapping[str, Mapping[str, Any]],
    path: Path,
) -> None:
    """Write runs as stages of traces, with the parents and the settings of each stage."""
    traces = traces_of_runs(runs, parents=parents)
    spans = [replace(span, settings=settings.get(span.stage, {})) for span in traces.spans]
    write_traces(replace(traces, spans=tuple(spans)), path)


def write_sample_traces(path: Path) -> None:
    """Write the traces of the sample."""
    write_traces(sample_traces(), path)


_LOGGER = logging.getLogger("judged.pipelines.traces")


class Recorder:
    """Recorder of the stages of a pipeline, as JSON Lines for `read_traces`.

    Each trace is appended to the file when it ends, so several threads and processes can share a file on a local file
    system. Errors are never raised into the pipeline: they are counted, and the first one is logged.

    Parameters
    ----------
    path
        Output file; new traces are appended.

    Attributes
    ----------
    faults : int
        Number of stages and traces that could not be written.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> recorder = Recorder(Path(mkdtemp()) / "traces.jsonl")
    >>> with recorder.query("q1", "cheap flights") as trace:
    ...     trace.stage("bm25", "candidates", {"d1": 7.5, "d2": 5.0})
    ...     trace.stage("dense", "candidates", [("d3", 0.9)])
    ...     trace.stage("fuse", "fuse", ["d3", "d1", "d2"])
    >>> from judged.pipelines.traces import read_traces
    >>> [(stage.name, stage.parents) for stage in read_traces(recorder.path).stages]
    [('bm25', ()), ('dense', ()), ('fuse', ('bm25', 'dense'))]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.faults = 0

    def query(self, query_id: str, text: str | None = None, *, trace_id: str | None = None) -> RecordedTrace:
        """Return a context manager that records one query.

        Parameters
        ----------
        query_id
            Topic.
        text
            Text of the query.
        trace_id
            Id of the request. Default: a new one.
        """
        return RecordedTrace(self, {"trace_id": trace_id or uuid.uuid4().hex, "query_id": query_id}, text)

    def fault(self, error: Exception) -> None:
        """Count a failure, and log the first one."""
        self.faults += 1
        if self.faults == 1:
            _LOGGER.warning(
                "%s: a trace could not be written (%r); further errors are counted but not logged", self.path, error
            )


class RecordedTrace:
    """Trace of one query, created by `Recorder.query`."""

    def __init__(self, recorder: Recorder, ids: Mapping[str, Any], text: str | None) -> None:
        self._recorder, self._ids, self._text = recorder, ids, text
        self._lines: list[str] = []
        self._leaves: list[str] = []  # stages that are not yet the parent of another one

    def __enter__(self) -> Self:
        return self

    def stage(
        self,
        name: str,
        kind: Kind,
        documents: Any = None,
        *,
        parents: Sequence[str] | None = None,
        query: str | None = None,
        latency_ms: float | None = None,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> None:
        """Record a stage.

        Parameters
        ----------
        name
            Name of the stage.
        kind
            Kind: rewrite, candidates, score, fuse, rerank, shown, or cited.
        documents
            Documents that it returned, in order: ids, pairs of id and score, objects with ``id``, ``score``,
            ``source``, and ``features``, or ``{id: score}``; None if not recorded.
        parents
            Stages whose documents are its input. Default: none for ``candidates`` and ``rewrite``, otherwise all stages
            that are not yet the parent of another one.
        query
            Text that it received. Default: that of the query.
        latency_ms, model
            Duration in milliseconds, and model or hash of the configuration.
        settings
            Configuration, such as ``{"depth": 50}``, to compare it with that of other traces.
        **facts
            Other facts, such as ``session_id``.
        """
        try:
            if parents is None:
                parents = [] if kind in ("candidates", "rewrite") else list(self._leaves)
            fields = {"parents": list(parents), "query": query or self._text, "latency_ms": latency_ms, "model": model}
            row = {**self._ids, "stage": name, "kind": kind}
            row |= {key: value for key, value in fields.items() if value not in (None, [])}
            row |= {"settings": dict(settings)} if settings else {}
            row |= {"facts": facts} if facts else {}
            if documents is not None:
                pairs = documents.items() if isinstance(documents, Mapping) else documents
                row["documents"] = [_document_row(element) for element in cast("Iterable[Any]", pairs)]
            self._lines.append(json.dumps(row, ensure_ascii=False, default=json_value))
            if kind != "rewrite":
                self._leaves = [*(leaf for leaf in self._leaves if leaf not in parents), name]
        except Exception as error:  # noqa: BLE001  recording must not stop the pipeline
            self._recorder.fault(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Append the trace to the file."""
        try:
            if self._lines:
                append_data(self._recorder.path, ("\n".join(self._lines) + "\n").encode("utf-8", "replace"))
        except Exception as fault:  # noqa: BLE001  recording must not stop the pipeline
            self._recorder.fault(fault)


def append_data(path: Path, data: bytes) -> None:
    """Append to a file, which several processes can do at a time."""
    # A single write in append mode is not interleaved with writes of other processes.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            os.write(descriptor, b"\n")  # ends the incomplete line, so that the next trace is readable
            raise OSError(f"only {written} of {len(data)} bytes could be written")
    finally:
        os.close(descriptor)


def _document_row(document: Any) -> Any:
    if isinstance(document, tuple):
        pair = cast("tuple[Any, ...]", document)
        if hasattr(pair, "_asdict"):  # a `judged.pipelines.traces.Document`
            return {"id": pair[0], "rank": pair[1], "score": pair[2], "source": pair[3], "features": pair[4]}
        return {"id": pair[0], "score": pair[1]}
    return document


def json_value(value: Any) -> Any:
    """Convert a value for JSON: NumPy scalars to numbers, and others to texts."""
    return value.item() if hasattr(value, "item") else str(value)
