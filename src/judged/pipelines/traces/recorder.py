"""Traces as they happen: a recorder for pipelines."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from types import TracebackType

    from judged.pipelines.traces.traces import Kind

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
