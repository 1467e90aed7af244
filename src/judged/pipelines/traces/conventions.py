"""What spans say of a stage, by the conventions of OpenInference and of OpenTelemetry's GenAI."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from judged.pipelines.traces.attributes import REDACTED, asked, dig, first, listed, parsed
from judged.pipelines.traces.own import document_row, line_of, span_of
from judged.pipelines.traces.traces import Document

if TYPE_CHECKING:
    from judged.pipelines.traces.reading import Row
    from judged.pipelines.traces.traces import Kind, Span


Format: TypeAlias = Literal["judged", "openinference", "opentelemetry", "ubi"]
"""A layout of traces."""

Documents: TypeAlias = "tuple[Document, ...] | None"

_RETRIEVALS = ("retrieval", "retrieve", "retrieve_documents")
_RERANKS = ("rerank", "rerank_documents")
_IDS = ("id", "document_id", "doc_id", "source_id", "name")
_SCORES = ("score", "relevance_score")


@dataclass(frozen=True)
class Recorded:
    """A stage as its span tells it.

    Parameters
    ----------
    kind, name
        What it does, and what it is called in its trace.
    documents
        What it passed on; None: not recorded.
    given
        What it was given; None: not recorded.
    query, model
        What it was asked, and what did it.
    facts
        What else is known.
    """

    kind: Kind
    name: str
    documents: Documents
    given: Documents = None
    query: str | None = None
    model: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def span_kind(row: Row, attributes: Row) -> str:
    """Say what kind of span it is, for counting: its kind, its operation, or else its name."""
    kind = dig(attributes, "openinference.span.kind") or row.get("span_kind")
    return str(kind or dig(attributes, "gen_ai.operation.name") or f"{row.get('name', 'unnamed')} (no kind)")


def recorded_stage(
    row: Row, attributes: Row, odd: Counter[str], format: Format | None, id_from: str | None
) -> Recorded | None:
    """Make a stage of a span, if it is one; what is odd about it is counted."""
    name = str(row.get("name") or "retriever")
    kind = str(dig(attributes, "openinference.span.kind") or row.get("span_kind") or "").upper()
    operation = dig(attributes, "gen_ai.operation.name")
    if format != "opentelemetry" and kind in ("RETRIEVER", "RERANKER"):
        if kind == "RETRIEVER":
            value = dig(attributes, "input.value")
            documents = _documents(attributes, odd, id_from, "retrieval.documents")
            query = asked(value) or (value if isinstance(value, str) and value != REDACTED else None)
            return Recorded("candidates", name, documents, None, query, facts=facts_of(attributes))
        given = _documents(attributes, odd, id_from, "reranker.input_documents")
        documents = _documents(attributes, odd, id_from, "reranker.output_documents", given=given)
        query = first(attributes, "reranker.query") or asked(dig(attributes, "input.value"))
        model = first(attributes, "reranker.model_name")
        return Recorded("rerank", name, documents, given, query, model, facts_of(attributes, "reranker.top_k"))
    if format == "openinference" or operation not in (*_RETRIEVALS, *_RERANKS):
        return None
    model = first(attributes, "gen_ai.request.model", "gen_ai.rerank.model")
    if operation in _RETRIEVALS:
        documents = _documents(attributes, odd, id_from, "gen_ai.retrieval.documents")
        query = asked(first(attributes, "gen_ai.retrieval.query.text", "gen_ai.retrieval.query_text"))
        facts = facts_of(attributes, "gen_ai.retrieval.top_k", "gen_ai.request.top_k")
        source = first(attributes, "gen_ai.data_source.id")
        return Recorded("candidates", str(source or name), documents, None, query, model, facts)
    given = _documents(attributes, odd, id_from, "gen_ai.rerank.input_documents")
    paths = ("gen_ai.rerank.output_documents", "gen_ai.rerank.documents")
    documents = _documents(attributes, odd, id_from, *paths, given=given)
    query = asked(first(attributes, "gen_ai.rerank.query.text", "gen_ai.rerank.query_text"))
    facts = facts_of(attributes, "gen_ai.rerank.top_n", "gen_ai.request.top_k")
    return Recorded("rerank", name, documents, given, query, model, facts)


def _documents(
    attributes: Row, odd: Counter[str], id_from: str | None, *paths: str, given: Documents = None
) -> Documents:
    """Make documents of the first list that was recorded; None where there is none, or none of them has an id."""
    for path in paths:
        rows = listed(attributes, path)
        if rows is not None:
            return documents_of(rows, odd, id_from=id_from, given=given)
        if (value := dig(attributes, path)) is not None:
            odd["lists of documents that were redacted" if value == REDACTED else f"{path} of an unknown shape"] += 1
    return None


def documents_of(
    rows: Sequence[tuple[int, Any]], odd: Counter[str], *, id_from: str | None = None, given: Documents = None
) -> Documents:
    """Make documents of elements and their places; of one that is listed twice the first place counts.

    `given` is what the stage was given: an element may be an index into it.

    >>> rows = [(1, {"document.id": 7, "document.score": 0.5}), (2, {"document": {"id": "x"}}), (3, {"text": "no id"})]
    >>> [(one.doc_id, one.rank, one.score) for one in documents_of(rows, Counter())]
    [('7', 1, 0.5), ('x', 2, None)]
    """
    found: dict[str, Document] = {}
    for place, element in rows:
        known = _flat(element)
        doc_id = _id(known, id_from)
        if doc_id is None and given is not None:
            index = known.get("index")
            doc_id = next((one.doc_id for one in given if one.rank - 1 == index), None)
        if doc_id is None:
            redacted = REDACTED in map(known.get, _IDS)
            odd["documents whose id was redacted" if redacted else "documents without an id"] += 1
        elif doc_id in found:
            odd["documents listed twice"] += 1
        else:
            found[doc_id] = Document(doc_id, place, _score(known))
    return tuple(found.values()) if found or not rows else None


def _flat(element: Any) -> Row:
    """Take a document out of what is around it."""
    if isinstance(element, str) and element.startswith("{"):
        element = parsed(element)  # a list of texts is what attributes of spans may hold
    if not isinstance(element, dict):
        return {"id": element} if isinstance(element, (str, int)) else {}
    row = cast("Row", element)
    inner = row.get("document")
    known = {key.removeprefix("document."): value for key, value in row.items() if value is not None}
    return known | cast("dict[str, Any]", inner) if isinstance(inner, dict) else known


def _id(known: Row, id_from: str | None) -> str | None:
    if id_from is not None:
        metadata = known.get("metadata")
        value = first(known, id_from) or first(parsed(metadata) if isinstance(metadata, str) else metadata, id_from)
        return str(value) if isinstance(value, (str, int)) else None
    for name in _IDS:
        value = known.get(name)
        if value is not None and value != "":
            return str(value) if value != REDACTED and isinstance(value, (str, int)) else None
    return None


def _score(known: Row) -> float | None:
    for name in _SCORES:
        try:
            score = float(known[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        return score if math.isfinite(score) else None
    return None


def facts_of(attributes: Row, *top_k: str) -> dict[str, Any]:
    """Give what is known of who asked and how, and of what was thought of it."""
    known = {
        "session_id": first(attributes, "session.id", "gen_ai.conversation.id"),
        "user_id": first(attributes, "user.id", "enduser.id"),
        "top_k": first(attributes, *top_k),
        "feedback": feedback_of(attributes),
    }
    return {name: value for name, value in known.items() if value}


def feedback_of(attributes: Row) -> list[dict[str, Any]]:
    """Give the annotations of a span, its trace or its session: each with name and score or label, and who gave it.

    >>> feedback_of({"annotations.0.annotation.name": "helpful", "annotations.0.annotation.score": 1})
    [{'name': 'helpful', 'score': 1}]
    """
    words = ("annotation", "evaluation")
    if not any(word in name for name in attributes for word in words):
        return []
    given = [
        {key.removeprefix("annotation.").removeprefix("evaluation."): value for key, value in one.items()}
        for word in words
        for path in (f"{word}s", f"trace.{word}s", f"session.{word}s")
        for _, row in listed(attributes, path) or ()
        if isinstance(row, Mapping)
        for one in (cast("Row", row.get(word, row)),)
    ]
    return [one for one in given if "name" in one]


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
