"""Our own layout of traces: JSON lines, one a stage."""

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
    "documents?": list,
}  # fmt: skip


def write_traces(traces: Traces, path: str | Path, *, format: Literal["judged", "openinference"] = "judged") -> None:
    """Write traces as JSON lines; a file of that name is replaced when all is written.

    Parameters
    ----------
    traces
        The traces.
    path
        The file.
    format
        ``judged``: our own layout, a line a stage. ``openinference``: spans, with what their conventions have no word
        for in attributes ``judged.stage``, so that nothing is lost. Their times tell how long a stage took, not when
        it was: they begin in 1970.

    Raises
    ------
    InputError
        If there is no such format, or no such place to write to.
    OutputError
        If the file cannot be written.
    """
    from judged.pipelines.traces.conventions import lines_of

    if format not in ("judged", "openinference"):
        raise InputError(f"traces are not written as {format!r}", fix="choose judged or openinference")
    lines = lines_of(traces.spans) if format == "openinference" else map(line_of, traces.spans)
    with atomic_write(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def line_of(span: Span) -> str:
    """Write a stage as one line of JSON; what is not known is left out.

    >>> line_of(Span("t", "q", "bm25", "candidates", documents=(Document("a", 1),)))
    '{"trace_id": "t", "query_id": "q", "stage": "bm25", "kind": "candidates", "documents": [{"id": "a"}]}'
    """
    row: dict[str, Any] = {"trace_id": span.trace_id, "query_id": span.query_id, "stage": span.stage, "kind": span.kind}
    row |= {"parents": list(span.parents)} if span.parents else {}
    given = {"query": span.query, "latency_ms": span.latency_ms, "model": span.model}
    row |= {name: value for name, value in given.items() if value is not None}
    row |= {"facts": dict(span.facts)} if span.facts else {}
    if span.documents is not None:
        row["documents"] = [document_row(one, at) for at, one in enumerate(span.documents, 1)]
    return json.dumps(row, ensure_ascii=False)


def document_row(one: Document, place: int) -> dict[str, Any]:
    """Write a document as an object; its rank only where it is not its place."""
    row: dict[str, Any] = {"id": one.doc_id}
    row |= {"rank": one.rank} if one.rank != place else {}
    row |= {"score": one.score} if one.score is not None else {}
    row |= {"source": one.source} if one.source else {}
    return row | ({"features": dict(one.features)} if one.features else {})


def span_of(given: Mapping[str, Any]) -> Span:
    """Make a stage of a JSON object.

    Raises
    ------
    ValueError
        If it is none; the message says what is wrong.
    """
    check_shape(given, _STAGE, "a stage")
    query_id = given.get("query_id", given.get("query"))
    if query_id is None or not isinstance(given.get("stage"), str):
        raise ValueError("a line without stage, or without query_id and query")
    kind = given.get("kind", "candidates")
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r:.40}, not one of {', '.join(KINDS)}")
    listed = given.get("documents")
    return Span(
        trace_id=str(given.get("trace_id", query_id)),
        query_id=str(query_id),
        stage=given["stage"],
        kind=kind,
        parents=tuple(map(str, given.get("parents") or ())),
        documents=None if listed is None else documents_of(listed),
        query=given.get("query"),
        latency_ms=_number(given.get("latency_ms")),
        model=given.get("model"),
        facts=given.get("facts") or {},
    )


def documents_of(listed: Iterable[Any]) -> tuple[Document, ...]:
    """Make documents of objects or ids; of one that is listed twice the first place counts."""
    found: dict[str, Document] = {}
    for place, one in enumerate(listed, 1):
        row: Mapping[str, Any] = one if isinstance(one, Mapping) else {"id": one}
        check_shape(row, {"features?": dict}, "a document")
        if row.get("id") is None:
            raise ValueError("a document without id")
        rank, score, source = int(row.get("rank", place)), _number(row.get("score")), str(row.get("source") or "")
        check_shape(rank, int, "rank of a document")
        made = Document(str(row["id"]), rank, score, source, row.get("features") or {})
        found.setdefault(made.doc_id, made)
    return tuple(found.values())


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not isfinite(number):
        raise ValueError(f"{value} is not a finite number")
    return number


_SHOWN = 10  # documents of a page


def sample_traces() -> Traces:
    """Give what stages of a pipeline made of the sample's topics.

    Candidates are `bm25` and `tfidf_char`, 50 documents each; `rrf` is what reciprocal rank fusion made of them, cut at
    50; people are shown the first ten.

    >>> [(stage.name, stage.kind, stage.parents) for stage in sample_traces().stages][2:]
    [('rrf', 'fuse', ('bm25', 'tfidf_char')), ('shown', 'shown', ('rrf',))]
    """
    runs = {run.name: run for run in sample.runs()}
    stages = {name: runs[name] for name in ("bm25", "tfidf_char", "rrf")} | {"shown": runs["rrf"]}
    traces = traces_of_runs(stages, parents={"tfidf_char": (), "rrf": ("bm25", "tfidf_char")})
    queries = sample.topics()
    spans = [replace(span, query=queries.text(span.query_id)) for span in traces.spans]
    return Traces(
        tuple(
            replace(span, kind="shown", documents=(span.documents or ())[:_SHOWN]) if span.stage == "shown" else span
            for span in spans
        ),
        "pydocs",
    )


def write_traces_of_runs(runs: Mapping[str, Run], parents: Mapping[str, tuple[str, ...]], path: Path) -> None:
    """Write runs as the stages of traces, each with the stages that it was made of."""
    write_traces(traces_of_runs(runs, parents=parents), path)


def write_sample_traces(path: Path) -> None:
    """Write the traces of the sample."""
    write_traces(sample_traces(), path)


_LOGGER = logging.getLogger("judged.pipelines.traces")


class Recorder:
    """Write down what a pipeline does, as JSON lines that `read_traces` reads.

    Each trace is appended to the file at once when it ends, so threads and processes may share a file (on a local file
    system). Nothing is ever raised into the pipeline: what could not be written down is counted, and logged once.

    Parameters
    ----------
    path
        The file; it is made, or appended to.

    Attributes
    ----------
    faults : int
        How many stages and traces could not be written down.

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
        """Give the trace of one query, for a ``with`` block.

        Parameters
        ----------
        query_id
            The topic.
        text
            The text of the query.
        trace_id
            The request; None: a new one.
        """
        return RecordedTrace(self, {"trace_id": trace_id or uuid.uuid4().hex, "query_id": query_id}, text)

    def fault(self, error: Exception) -> None:
        """Count what could not be written down, and log the first of it."""
        self.faults += 1
        if self.faults == 1:
            _LOGGER.warning("%s: a trace could not be written down (%r); more are only counted", self.path, error)


class RecordedTrace:
    """What happens to one query; made by `Recorder.query`."""

    def __init__(self, recorder: Recorder, ids: Mapping[str, Any], text: str | None) -> None:
        self._recorder, self._ids, self._text = recorder, ids, text
        self._lines: list[str] = []
        self._open: list[str] = []  # stages that no other follows yet

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
        **facts: Any,
    ) -> None:
        """Write down a stage.

        Parameters
        ----------
        name
            What it is called.
        kind
            What it does: rewrite, candidates, score, fuse, rerank, shown or cited.
        documents
            What it passed on, in order: ids, pairs of id and score, objects with ``id``, ``score``, ``source`` and
            ``features``, or ``{id: score}``; None: not recorded.
        parents
            The stages whose documents it was given; None: of ``candidates`` and ``rewrite`` none, of others all that no
            stage follows yet.
        query
            The text that it was given; None: that of the query.
        latency_ms, model
            How long it took, and what did it.
        **facts
            What else is known, such as ``session_id``.
        """
        try:
            if parents is None:
                parents = [] if kind in ("candidates", "rewrite") else list(self._open)
            known = {"parents": list(parents), "query": query or self._text, "latency_ms": latency_ms, "model": model}
            row = {**self._ids, "stage": name, "kind": kind}
            row |= {key: value for key, value in known.items() if value not in (None, [])}
            row |= {"facts": facts} if facts else {}
            if documents is not None:
                pairs = documents.items() if isinstance(documents, Mapping) else documents
                row["documents"] = [_row(one) for one in cast("Iterable[Any]", pairs)]
            self._lines.append(json.dumps(row, ensure_ascii=False, default=_plain))
            if kind != "rewrite":
                self._open = [*(one for one in self._open if one not in parents), name]
        except Exception as error:  # noqa: BLE001  a pipeline must not fail because of what is written down of it
            self._recorder.fault(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Append the trace to the file."""
        try:
            if self._lines:
                _append(self._recorder.path, ("\n".join(self._lines) + "\n").encode("utf-8", "replace"))
        except Exception as fault:  # noqa: BLE001  as above
            self._recorder.fault(fault)


def _append(path: Path, data: bytes) -> None:
    """Append bytes by one call, which no other process's comes into."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        written = os.write(descriptor, data)
        if written < len(data):
            os.write(descriptor, b"\n")  # the next trace begins on a line of its own
            raise OSError(f"only {written} of {len(data)} bytes could be written")
    finally:
        os.close(descriptor)


def _row(document: Any) -> Any:
    if isinstance(document, tuple):
        pair = cast("tuple[Any, ...]", document)
        if hasattr(pair, "_asdict"):  # a `judged.pipelines.traces.Document`
            return {"id": pair[0], "rank": pair[1], "score": pair[2], "source": pair[3], "features": pair[4]}
        return {"id": pair[0], "score": pair[1]}
    return document


def _plain(value: Any) -> Any:
    """Write numbers of arrays as numbers, and all else that JSON does not know as text."""
    return value.item() if hasattr(value, "item") else str(value)
