"""One pipeline as each exporter writes it: two retrievers, a reranker, around them a chain."""

from __future__ import annotations

import json
from typing import Any

from openinference.semconv.trace import (
    AnnotationAttributes,
    DocumentAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)

Row = dict[str, Any]

START = 1_770_131_992  # seconds


def documents(path: str, ids: str, *, nested: bool = False) -> Row:
    """Write documents as attributes; their scores are 0.9, 0.8, ..."""
    rows = [
        {
            DocumentAttributes.DOCUMENT_ID: doc,
            DocumentAttributes.DOCUMENT_SCORE: 0.9 - i / 10,
            DocumentAttributes.DOCUMENT_CONTENT: f"text of {doc}",
            DocumentAttributes.DOCUMENT_METADATA: json.dumps({"source": f"file-{doc}"}),
        }
        for i, doc in enumerate(ids)
    ]
    if nested:
        return {path: rows}
    return {f"{path}.{i}.{name}": value for i, row in enumerate(rows) for name, value in row.items()}


def retriever(ids: str, query: str = "Cheap  Flights", *, nested: bool = False) -> Row:
    kind = OpenInferenceSpanKindValues.RETRIEVER.value
    return {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: kind,
        SpanAttributes.INPUT_VALUE: query,
        **documents(SpanAttributes.RETRIEVAL_DOCUMENTS, ids, nested=nested),
    }


def reranker(input_ids: str, ids: str, *, nested: bool = False) -> Row:
    return {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.RERANKER.value,
        RerankerAttributes.RERANKER_QUERY: "Cheap  Flights",
        RerankerAttributes.RERANKER_MODEL_NAME: "cross",
        RerankerAttributes.RERANKER_TOP_K: 2,
        **documents(RerankerAttributes.RERANKER_INPUT_DOCUMENTS, input_ids, nested=nested),
        **documents(RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS, ids, nested=nested),
    }


def chain(query: str = "Cheap  Flights") -> Row:
    name, score, by = (
        f"{SpanAttributes.TRACE_ANNOTATIONS}.0.{name}"
        for name in (
            AnnotationAttributes.ANNOTATION_NAME,
            AnnotationAttributes.ANNOTATION_SCORE,
            AnnotationAttributes.ANNOTATION_ANNOTATOR_KIND,
        )
    )
    return {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.CHAIN.value,
        SpanAttributes.INPUT_VALUE: query,
        SpanAttributes.SESSION_ID: "s1",
        SpanAttributes.METADATA: json.dumps({"topic": "t7"}),
        name: "helpful",
        score: 1.0,
        by: "HUMAN",
    }


def span(name: str, start: float, end: float, attributes: Row, *, inside: str = "root", trace: str = "t1") -> Row:
    """Write a span as the Python SDK does."""
    return {
        "name": name,
        "context": {"trace_id": trace, "span_id": f"{trace}-{name}-{start}"},
        "parent_id": f"{trace}-{inside}-0" if inside else None,
        "start_time": f"2026-02-03T15:19:{52 + start:09.6f}Z",
        "end_time": f"2026-02-03T15:19:{52 + end:09.6f}Z",
        "attributes": attributes,
    }


def pipeline(*, nested: bool = False) -> list[Row]:
    """Children end before their parents, and are written before them."""
    return [
        span("bm25", 0.5, 1, retriever("xac", nested=nested)),
        span("dense", 0.5, 1.25, retriever("yb", nested=nested)),
        span("rerank", 1.5, 2, reranker("xaybc", "xba", nested=nested)),
        span("answer", 2, 3, {SpanAttributes.OPENINFERENCE_SPAN_KIND: "LLM"}),
        span("root", 0, 3.5, chain(), inside=""),
    ]


def otlp(rows: list[Row]) -> Row:
    """Convert spans to the format of a collector."""

    def typed_value(value: Any) -> Row:
        if isinstance(value, list):
            return {"arrayValue": {"values": [typed_value(item) for item in value]}}
        if isinstance(value, dict):
            return {
                "kvlistValue": {"values": [{"key": key, "value": typed_value(item)} for key, item in value.items()]}
            }
        if isinstance(value, int):
            return {"intValue": str(value)}
        return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}

    spans = [
        {
            "traceId": row["context"]["trace_id"],
            "spanId": row["context"]["span_id"],
            "parentSpanId": row["parent_id"] or "",
            "name": row["name"],
            "startTimeUnixNano": str(round((START + float(row["start_time"][17:-1]) - 52) * 1e9)),
            "endTimeUnixNano": str(round((START + float(row["end_time"][17:-1]) - 52) * 1e9)),
            "attributes": [{"key": key, "value": typed_value(item)} for key, item in row["attributes"].items()],
        }
        for row in rows
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}


def javascript(rows: list[Row]) -> list[Row]:
    """Convert spans to the format of the JavaScript SDK."""
    ids = ("trace_id", "span_id")
    return [
        {
            "name": row["name"],
            "spanContext": dict(zip(("traceId", "spanId"), (row["context"][name] for name in ids), strict=True)),
            **({"parentSpanContext": {"spanId": row["parent_id"]}} if row["parent_id"] else {}),
            "startTime": [START, round((float(row["start_time"][17:-1]) - 52) * 1e9)],
            "endTime": [START, round((float(row["end_time"][17:-1]) - 52) * 1e9)],
            "attributes": row["attributes"],
        }
        for row in rows
    ]
