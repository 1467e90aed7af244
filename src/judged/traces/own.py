"""Our own layout of traces: JSON lines, one a stage."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from judged.answer import counted
from judged.atomic import replaced
from judged.errors import InputError
from judged.notes import Note
from judged.traces.traces import KINDS, Document, Span, Traces, one_trace_a_query

if TYPE_CHECKING:
    from os import PathLike


def write_traces(traces: Traces, path: str | Path) -> None:
    """Write traces as JSON lines, one a stage; a file of that name is replaced when all is written.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    with replaced(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(f"{line_of(span)}\n" for span in traces.spans)


def line_of(span: Span) -> str:
    """Write a stage as one line of JSON; what is not known is left out.

    >>> line_of(Span("t", "q", "bm25", "candidates", documents=(Document("a", 1),)))
    '{"trace_id": "t", "query_id": "q", "stage": "bm25", "kind": "candidates", "documents": [{"id": "a"}]}'
    """
    row: dict[str, Any] = {"trace_id": span.trace_id, "query_id": span.query_id, "stage": span.stage, "kind": span.kind}
    row |= {"parents": list(span.parents)} if span.parents else {}
    given = {"query": span.query, "latency_ms": span.latency_ms, "model": span.model}
    row |= {name: value for name, value in given.items() if value is not None}
    if span.documents is not None:
        row["documents"] = [_document(one, at) for at, one in enumerate(span.documents, 1)]
    return json.dumps(row, ensure_ascii=False)


def _document(one: Document, place: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": one.doc_id}
    row |= {"rank": one.rank} if one.rank != place else {}
    row |= {"score": one.score} if one.score is not None else {}
    row |= {"source": one.source} if one.source else {}
    return row | ({"features": dict(one.features)} if one.features else {})


def read_traces(paths: str | PathLike[str] | Iterable[str | PathLike[str]], *, name: str | None = None) -> Traces:
    """Read traces of JSON lines, gzipped or not.

    A line is one stage of one request: ``trace_id``, ``query_id`` (or ``query``), ``stage``, ``kind`` (rewrite,
    candidates, score, fuse, rerank, shown, cited), and, where known, ``parents``, ``query``, ``latency_ms``, ``model``
    and ``documents``: objects with ``id`` and, where known, ``score``, ``rank``, ``source`` and ``features``, or ids
    alone. A line that cannot be read is counted and left out.

    Parameters
    ----------
    paths
        One file or more.
    name
        What to call the traces; None: the first file's name.

    Raises
    ------
    InputError
        If a file cannot be read, or none of its lines is a stage.
    """
    given = [paths] if not isinstance(paths, Iterable) or isinstance(paths, (str, bytes)) else paths
    files = [Path(cast("str", one)) for one in given]
    spans: list[Span] = []
    odd: Counter[str] = Counter()
    places: dict[str, str] = {}
    for file in files:
        for number, line in enumerate(_lines(file), 1):
            if not line.strip():
                continue
            try:
                spans.append(span_of(json.loads(line)))
            except (ValueError, TypeError, KeyError) as error:
                what = "no JSON" if isinstance(error, json.JSONDecodeError) else str(error.args[0])
                odd[what] += 1
                places.setdefault(what, f"{file}:{number}")
    if not spans:
        why = "; ".join(f"{what} ({places[what]})" for what in odd) or "the file is empty"
        raise InputError(f"no stage of a trace here: {why}", fix="see docs/traces.md", path=str(files[0]))
    kept, notes = one_trace_a_query(spans)
    notes += [
        Note("unread-lines", f"{counted(times, 'line')} left out, first {places[what]}: {what}")
        for what, times in odd.items()
    ]
    return Traces(tuple(kept), name or files[0].name.split(".")[0], tuple(notes))


def span_of(row: Any) -> Span:
    """Make a stage of a JSON object.

    Raises
    ------
    ValueError
        If it is none; the message says what is wrong.
    """
    if not isinstance(row, Mapping):
        raise ValueError("a line is no object")
    given = cast("Mapping[str, Any]", row)
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
        parents=tuple(map(str, given.get("parents", ()))),
        documents=None if listed is None else documents_of(listed),
        query=given.get("query"),
        latency_ms=_number(given.get("latency_ms")),
        model=given.get("model"),
    )


def documents_of(listed: Iterable[Any]) -> tuple[Document, ...]:
    """Make documents of objects or ids; of one that is listed twice the first place counts."""
    found: dict[str, Document] = {}
    for place, one in enumerate(listed, 1):
        row: Mapping[str, Any] = one if isinstance(one, Mapping) else {"id": one}
        if row.get("id") is None:
            raise ValueError("a document without id")
        made = Document(
            str(row["id"]),
            int(row.get("rank", place)),
            _number(row.get("score")),
            str(row.get("source") or ""),
            row.get("features") or {},
        )
        found.setdefault(made.doc_id, made)
    return tuple(found.values())


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _lines(path: Path) -> Iterator[str]:
    """Read lines; of a file that breaks off within one, all before it."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", fix="check the file", path=str(path)) from None
