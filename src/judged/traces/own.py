"""Our own layout of traces: JSON lines, one a stage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from judged.atomic import replaced
from judged.traces.traces import KINDS, Document, Span, Traces


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
    row |= {"facts": dict(span.facts)} if span.facts else {}
    if span.documents is not None:
        row["documents"] = [_document(one, at) for at, one in enumerate(span.documents, 1)]
    return json.dumps(row, ensure_ascii=False)


def _document(one: Document, place: int) -> dict[str, Any]:
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
        facts=given.get("facts") or {},
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
