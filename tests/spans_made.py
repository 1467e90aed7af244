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
            DocumentAttributes.DOCUMENT_SCORE: 0.9 - at / 10,
            DocumentAttributes.DOCUMENT_CONTENT: f"text of {doc}",
            DocumentAttributes.DOCUMENT_METADATA: json.dumps({"source": f"file-{doc}"}),
        }
        for at, doc in enumerate(ids)
    ]
    if nested:
        return {path: rows}
    return {f"{path}.{at}.{name}": value for at, row in enumerate(rows) for name, value in row.items()}


def retriever(ids: str, query: str = "Cheap  Flights", *, nested: bool = False) -> Row:
    kind = OpenInferenceSpanKindValues.RETRIEVER.value
    return {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: kind,
        SpanAttributes.INPUT_VALUE: query,
        **documents(SpanAttributes.RETRIEVAL_DOCUMENTS, ids, nested=nested),
    }


def reranker(given: str, ids: str, *, nested: bool = False) -> Row:
    return {
        SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.RERANKER.value,
        RerankerAttributes.RERANKER_QUERY: "Cheap  Flights",
        RerankerAttributes.RERANKER_MODEL_NAME: "cross",
        RerankerAttributes.RERANKER_TOP_K: 2,
        **documents(RerankerAttributes.RERANKER_INPUT_DOCUMENTS, given, nested=nested),
        **documents(RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS, ids, nested=nested),
    }


def chain(query: str = "Cheap  Flights") -> Row:
    name, score, by = (
        f"{SpanAttributes.TRACE_ANNOTATIONS}.0.{one}"
        for one in (
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
    """Write spans as a collector does."""

    def value(given: Any) -> Row:
        if isinstance(given, list):
            return {"arrayValue": {"values": [value(one) for one in given]}}
        if isinstance(given, dict):
            return {"kvlistValue": {"values": [{"key": key, "value": value(one)} for key, one in given.items()]}}
        if isinstance(given, int):
            return {"intValue": str(given)}
        return {"doubleValue": given} if isinstance(given, float) else {"stringValue": given}

    spans = [
        {
            "traceId": row["context"]["trace_id"],
            "spanId": row["context"]["span_id"],
            "parentSpanId": row["parent_id"] or "",
            "name": row["name"],
            "startTimeUnixNano": str(round((START + float(row["start_time"][17:-1]) - 52) * 1e9)),
            "endTimeUnixNano": str(round((START + float(row["end_time"][17:-1]) - 52) * 1e9)),
            "attributes": [{"key": key, "value": value(one)} for key, one in row["attributes"].items()],
        }
        for row in rows
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}


def javascript(rows: list[Row]) -> list[Row]:
    """Write spans as the SDK for JavaScript does."""
    ids = ("trace_id", "span_id")
    return [
        {
            "name": row["name"],
            "spanContext": dict(zip(("traceId", "spanId"), (row["context"][one] for one in ids), strict=True)),
            **({"parentSpanContext": {"spanId": row["parent_id"]}} if row["parent_id"] else {}),
            "startTime": [START, round((float(row["start_time"][17:-1]) - 52) * 1e9)],
            "endTime": [START, round((float(row["end_time"][17:-1]) - 52) * 1e9)],
            "attributes": row["attributes"],
        }
        for row in rows
    ]
