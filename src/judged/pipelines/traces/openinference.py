"""Traces as spans by the conventions of OpenInference, for Phoenix and whatever else reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from judged.pipelines.traces.attributes import dig, first, listed, parsed
from judged.pipelines.traces.own import document_row, line_of, span_of

if TYPE_CHECKING:
    from judged.pipelines.traces.records import Row
    from judged.pipelines.traces.traces import Document, Span

STAGE = "judged.stage"
"""The attribute that holds what OpenInference has no word for: our line of the stage, without its documents."""

_START = datetime(1970, 1, 1, tzinfo=UTC)  # when it happened is not known, only how long it took


def lines_of(spans: Iterable[Span]) -> Iterator[str]:
    """Write stages as spans, one a line, with a span around those of each trace."""
    for trace, stages in groupby(spans, lambda span: span.trace_id):
        key, root, now = _hash(trace, 16), _hash(f"{trace}/", 8), _START
        asked = ""
        for span in stages:
            end = now + timedelta(milliseconds=span.latency_ms or 0)
            yield _line(span.stage, key, _hash(f"{trace}/{span.stage}", 8), root, now, end, _attributes(span))
            asked, now = asked or span.query or span.query_id, end
        around = {"openinference.span.kind": "CHAIN", "input.value": asked}
        yield _line("query", key, root, None, _START, now, around)


def _hash(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()


def _line(
    name: str, trace: str, span: str, parent: str | None, start: datetime, end: datetime, attributes: Mapping[str, Any]
) -> str:
    row = {
        "name": name,
        "context": {"trace_id": trace, "span_id": span},
        "span_kind": attributes["openinference.span.kind"],
        "parent_id": parent,
        "start_time": start.isoformat(),
        "end_time": end.isoformat(),
        "status_code": "OK",
        "attributes": attributes,
    }
    return json.dumps(row, ensure_ascii=False)


def _attributes(span: Span) -> dict[str, Any]:
    reranks, facts = span.kind == "rerank", span.facts
    path = "reranker.output_documents" if reranks else "retrieval.documents"
    known: dict[str, Any] = {
        "input.value": span.query or span.query_id,
        "reranker.query": span.query if reranks else None,
        "reranker.model_name": span.model if reranks else None,
        "reranker.top_k": facts.get("top_k") if reranks else None,
        "session.id": facts.get("session_id"),
        "user.id": facts.get("user_id"),
        STAGE: line_of(replace(span, documents=None if span.documents is None else ())),
    }
    for place, one in enumerate(cast("list[Row]", facts.get("feedback") or [])):
        known |= {f"annotations.{place}.annotation.{name}": value for name, value in one.items()}
    for place, one in enumerate(span.documents or ()):
        known |= {f"{path}.{place}.document.{name}": value for name, value in _document(one, place + 1)}
    kind = "RERANKER" if reranks else "RETRIEVER"
    return {"openinference.span.kind": kind, **{name: value for name, value in known.items() if value is not None}}


def _document(one: Document, place: int) -> Iterator[tuple[str, Any]]:
    row = document_row(one, place)
    yield "id", row.pop("id")
    if (score := row.pop("score", None)) is not None:
        yield "score", score
    if row:
        yield "metadata", json.dumps({STAGE: row}, ensure_ascii=False)


def own_span(attributes: Row) -> Span | None:
    """Read a stage that `lines_of` wrote; None for any other span."""
    row = parsed(str(first(attributes, STAGE) or ""))
    if not isinstance(row, dict):
        return None
    rows = listed(attributes, "retrieval.documents") or listed(attributes, "reranker.output_documents") or ()
    known = [_read(cast("Row", element)) for _, element in rows]
    return span_of(row | ({"documents": known} if known else {}))


def _read(element: Row) -> dict[str, Any]:
    more = parsed(str(dig(element, "document.metadata") or "")) or {}
    return {"id": dig(element, "document.id"), "score": dig(element, "document.score"), **(more.get(STAGE) or {})}
