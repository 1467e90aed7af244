"""Conversion of spans to stages, by the conventions of OpenInference and of OpenTelemetry for GenAI."""

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

from judged.pipelines.traces.attributes import REDACTED, first_value, get_list, get_path, parse_json, query_text
from judged.pipelines.traces.recorder import document_row, line_of, span_of
from judged.pipelines.traces.traces import Document

if TYPE_CHECKING:
    from judged.pipelines.traces.reading import Row
    from judged.pipelines.traces.traces import Kind, Span


Format: TypeAlias = Literal["judged", "openinference", "opentelemetry", "ubi"]
"""Formats of traces."""

Documents: TypeAlias = "tuple[Document, ...] | None"

_RETRIEVALS = ("retrieval", "retrieve", "retrieve_documents")
_RERANKS = ("rerank", "rerank_documents")
_IDS = ("id", "document_id", "doc_id", "source_id", "name")
_SCORES = ("score", "relevance_score")
_WITHOUT_ID = "documents without an id (use --id-from to name the key that contains the id)"


@dataclass(frozen=True)
class ParsedStage:
    """Stage as recorded by its span.

    Parameters
    ----------
    kind, name
        Kind, and name in its trace.
    documents
        Documents that it returned; None if not recorded.
    inputs
        Documents in its input; None if not recorded.
    query, model
        Text of the query, and model.
    facts
        Other facts.
    """

    kind: Kind
    name: str
    documents: Documents
    inputs: Documents = None
    query: str | None = None
    model: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


def span_kind(row: Row, attributes: Row) -> str:
    """Return a name for the kind of a span, for counting: its kind, its operation, or else its name."""
    kind = get_path(attributes, "openinference.span.kind") or row.get("span_kind")
    return str(kind or get_path(attributes, "gen_ai.operation.name") or f"{row.get('name', 'unnamed')} (no kind)")


def parse_stage(
    row: Row, attributes: Row, counts: Counter[str], format: Format | None, id_from: str | None
) -> ParsedStage | None:
    """Convert a span to a stage; None if it is not a stage. Problems are counted in `counts`."""
    name = str(row.get("name") or "retriever")
    kind = str(get_path(attributes, "openinference.span.kind") or row.get("span_kind") or "").upper()
    operation = get_path(attributes, "gen_ai.operation.name")
    if format != "opentelemetry" and kind in ("RETRIEVER", "RERANKER"):
        if kind == "RETRIEVER":
            value = get_path(attributes, "input.value")
            documents = _documents(attributes, counts, id_from, "retrieval.documents")
            query = query_text(value) or (value if isinstance(value, str) and value != REDACTED else None)
            return ParsedStage("candidates", name, documents, None, query, facts=facts_of(attributes))
        inputs = _documents(attributes, counts, id_from, "reranker.input_documents")
        documents = _documents(attributes, counts, id_from, "reranker.output_documents", inputs=inputs)
        query = first_value(attributes, "reranker.query") or query_text(get_path(attributes, "input.value"))
        model = first_value(attributes, "reranker.model_name")
        return ParsedStage("rerank", name, documents, inputs, query, model, facts_of(attributes, "reranker.top_k"))
    if format == "openinference" or operation not in (*_RETRIEVALS, *_RERANKS):
        return None
    model = first_value(attributes, "gen_ai.request.model", "gen_ai.rerank.model")
    if operation in _RETRIEVALS:
        documents = _documents(attributes, counts, id_from, "gen_ai.retrieval.documents")
        query = query_text(first_value(attributes, "gen_ai.retrieval.query.text", "gen_ai.retrieval.query_text"))
        facts = facts_of(attributes, "gen_ai.retrieval.top_k", "gen_ai.request.top_k")
        source = first_value(attributes, "gen_ai.data_source.id")
        return ParsedStage("candidates", str(source or name), documents, None, query, model, facts)
    inputs = _documents(attributes, counts, id_from, "gen_ai.rerank.input_documents")
    paths = ("gen_ai.rerank.output_documents", "gen_ai.rerank.documents")
    documents = _documents(attributes, counts, id_from, *paths, inputs=inputs)
    query = query_text(first_value(attributes, "gen_ai.rerank.query.text", "gen_ai.rerank.query_text"))
    facts = facts_of(attributes, "gen_ai.rerank.top_n", "gen_ai.request.top_k")
    return ParsedStage("rerank", name, documents, inputs, query, model, facts)


def _documents(
    attributes: Row, counts: Counter[str], id_from: str | None, *paths: str, inputs: Documents = None
) -> Documents:
    """Return the documents of the first recorded list; None without a list or without ids."""
    for path in paths:
        rows = get_list(attributes, path)
        if rows is not None:
            return documents_of(rows, counts, id_from=id_from, inputs=inputs)
        if (value := get_path(attributes, path)) is not None:
            problem = "redacted lists of documents" if value == REDACTED else f"{path} in an unknown format"
            counts[problem] += 1
    return None


def documents_of(
    rows: Sequence[tuple[int, Any]], counts: Counter[str], *, id_from: str | None = None, inputs: Documents = None
) -> Documents:
    """Convert list elements with their positions to documents; of repeated documents the first one is used.

    `inputs` are the documents in the input of the stage: an element can be an index into them.

    >>> rows = [(1, {"document.id": 7, "document.score": 0.5}), (2, {"document": {"id": "x"}}), (3, {"text": "no id"})]
    >>> [(document.doc_id, document.rank, document.score) for document in documents_of(rows, Counter())]
    [('7', 1, 0.5), ('x', 2, None)]
    """
    documents: dict[str, Document] = {}
    for rank, element in rows:
        fields = _flat(element)
        doc_id = _id(fields, id_from)
        if doc_id is None and inputs is not None:
            index = fields.get("index")
            doc_id = next((document.doc_id for document in inputs if document.rank - 1 == index), None)
        if doc_id is None:
            redacted = REDACTED in map(fields.get, _IDS)
            counts["documents with a redacted id" if redacted else _WITHOUT_ID] += 1
        elif doc_id in documents:
            counts["duplicate documents in a list"] += 1
        else:
            documents[doc_id] = Document(doc_id, rank, _score(fields))
    return tuple(documents.values()) if documents or not rows else None


def _flat(element: Any) -> Row:
    if isinstance(element, str) and element.startswith("{"):
        element = parse_json(element)  # attributes of spans can hold lists of texts, but not of objects
    if not isinstance(element, dict):
        return {"id": element} if isinstance(element, (str, int)) else {}
    row = cast("Row", element)
    inner = row.get("document")
    fields = {key.removeprefix("document."): value for key, value in row.items() if value is not None}
    return fields | cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields


def _id(fields: Row, id_from: str | None) -> str | None:
    if id_from is not None:
        metadata = fields.get("metadata")
        metadata = parse_json(metadata) if isinstance(metadata, str) else metadata
        value = first_value(fields, id_from) or first_value(metadata, id_from)
        return str(value) if isinstance(value, (str, int)) else None
    for name in _IDS:
        value = fields.get(name)
        if value is not None and value != "":
            return str(value) if value != REDACTED and isinstance(value, (str, int)) else None
    return None


def _score(fields: Row) -> float | None:
    for name in _SCORES:
        try:
            score = float(fields[name])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        return score if math.isfinite(score) else None
    return None


def facts_of(attributes: Row, *top_k: str) -> dict[str, Any]:
    """Return session, user, number of results, and feedback."""
    facts = {
        "session_id": first_value(attributes, "session.id", "gen_ai.conversation.id"),
        "user_id": first_value(attributes, "user.id", "enduser.id"),
        "top_k": first_value(attributes, *top_k),
        "feedback": feedback_of(attributes),
    }
    return {name: value for name, value in facts.items() if value}


def feedback_of(attributes: Row) -> list[dict[str, Any]]:
    """Return the annotations of a span, its trace, or its session, with name, score or label, and annotator.

    >>> feedback_of({"annotations.0.annotation.name": "helpful", "annotations.0.annotation.score": 1})
    [{'name': 'helpful', 'score': 1}]
    """
    words = ("annotation", "evaluation")
    if not any(word in name for name in attributes for word in words):
        return []
    annotations = [
        cast("Row", row.get(word, row))
        for word in words
        for path in (f"{word}s", f"trace.{word}s", f"session.{word}s")
        for _, row in get_list(attributes, path) or ()
        if isinstance(row, Mapping)
    ]
    feedback = [
        {key.removeprefix("annotation.").removeprefix("evaluation."): value for key, value in annotation.items()}
        for annotation in annotations
    ]
    return [annotation for annotation in feedback if "name" in annotation]


STAGE = "judged.stage"
"""Attribute with our own line of the stage, without its documents, for fields that OpenInference does not define."""

_START = datetime(1970, 1, 1, tzinfo=UTC)  # only durations are known


def lines_of(spans: Iterable[Span]) -> Iterator[str]:
    """Convert stages to spans, one line each, with a root span for each trace."""
    for trace, stages in groupby(spans, lambda span: span.trace_id):
        key, root, start = _hash(trace, 16), _hash(f"{trace}/", 8), _START
        query = ""
        for span in stages:
            end = start + timedelta(milliseconds=span.latency_ms or 0)
            yield _line(span.stage, key, _hash(f"{trace}/{span.stage}", 8), root, start, end, _attributes(span))
            query, start = query or span.query or span.query_id, end
        yield _line("query", key, root, None, _START, start, {"openinference.span.kind": "CHAIN", "input.value": query})


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
    is_rerank, facts = span.kind == "rerank", span.facts
    path = "reranker.output_documents" if is_rerank else "retrieval.documents"
    attributes: dict[str, Any] = {
        "input.value": span.query or span.query_id,
        "reranker.query": span.query if is_rerank else None,
        "reranker.model_name": span.model if is_rerank else None,
        "reranker.top_k": facts.get("top_k") if is_rerank else None,
        "session.id": facts.get("session_id"),
        "user.id": facts.get("user_id"),
        STAGE: line_of(replace(span, documents=None if span.documents is None else ())),
    }
    for i, annotation in enumerate(cast("list[Row]", facts.get("feedback") or [])):
        attributes |= {f"annotations.{i}.annotation.{name}": value for name, value in annotation.items()}
    for i, document in enumerate(span.documents or ()):
        attributes |= {f"{path}.{i}.document.{name}": value for name, value in _document(document, i + 1)}
    kind = "RERANKER" if is_rerank else "RETRIEVER"
    return {"openinference.span.kind": kind, **{name: value for name, value in attributes.items() if value is not None}}


def _document(document: Document, place: int) -> Iterator[tuple[str, Any]]:
    row = document_row(document, place)
    yield "id", row.pop("id")
    if (score := row.pop("score", None)) is not None:
        yield "score", score
    if row:
        yield "metadata", json.dumps({STAGE: row}, ensure_ascii=False)


def parse_own_span(attributes: Row) -> Span | None:
    """Parse a stage that `lines_of` wrote; None for any other span."""
    row = parse_json(str(first_value(attributes, STAGE) or ""))
    if not isinstance(row, dict):
        return None
    rows = get_list(attributes, "retrieval.documents") or get_list(attributes, "reranker.output_documents") or ()
    documents = [_own_document(cast("Row", element)) for _, element in rows]
    return span_of(row | ({"documents": documents} if documents else {}))


def _own_document(element: Row) -> dict[str, Any]:
    metadata = parse_json(str(get_path(element, "document.metadata") or "")) or {}
    doc_id, score = (get_path(element, f"document.{name}") for name in ("id", "score"))
    return {"id": doc_id, "score": score, **(metadata.get(STAGE) or {})}
