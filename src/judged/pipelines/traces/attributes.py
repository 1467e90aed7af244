"""Access to spans of different exporters: ids, times, attributes, and texts inside JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from judged.data import files
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.pipelines.traces.reading import Row


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_INDEX = re.compile(r"[0-9]{1,9}")
REDACTED = "__REDACTED__"
"""Placeholder of OpenInference for values that must not be recorded."""

_FRAMEWORK_KEYS = ("query_str", "str_or_query_bundle", "search_query", "user_query")
_QUERY_KEYS = ("query", "question", *_FRAMEWORK_KEYS, "input", "text", "q")
_ANSWER_KEYS = ("answer", "output", "response", "result", "content", "text")


def attributes_of(row: Row) -> Row | None:
    """Return the attributes of a span, flat or nested; None if `row` is not a span.

    >>> attributes_of({"name": "s", "attributes": [{"key": "top_k", "value": {"intValue": "3"}}]})
    {'top_k': 3}
    >>> attributes_of({"name": "s", "attributes.input.value": "jazz"})
    {'input.value': 'jazz'}
    """
    attributes = row.get("attributes")
    if isinstance(attributes, str):
        attributes = parse_json(attributes)
    if isinstance(attributes, list):
        return {
            pair["key"]: _value(pair.get("value"))
            for pair in cast("list[Any]", attributes)
            if isinstance(pair, dict) and isinstance(pair.get("key"), str)
        }
    if isinstance(attributes, Mapping):
        return cast("Row", attributes)
    prefix = "attributes."
    columns = {name[len(prefix) :]: value for name, value in row.items() if name.startswith(prefix)}
    return columns or (None if "name" not in row or not span_id(row) else {})


def _value(attribute: Any) -> Any:
    """Convert an `AnyValue` of OTLP."""
    if not isinstance(attribute, dict):
        return attribute
    for kind, value in cast("Row", attribute).items():
        if kind == "arrayValue":
            return [_value(element) for element in value.get("values", ())]
        if kind == "kvlistValue":
            return {element["key"]: _value(element.get("value")) for element in value.get("values", ())}
        return int(value) if kind == "intValue" else value
    return None


def get_path(tree: Any, path: str) -> Any:
    """Return the value at a dotted path; None if it is missing.

    A dot can be part of a key or separate levels, as exporters differ.

    >>> get_path({"a.b": {"c": 1}}, "a.b.c"), get_path({"a": {"b.c": 1}}, "a.b.c"), get_path({"a": 1}, "a.b")
    (1, 1, None)
    """
    if not isinstance(tree, Mapping):
        return None
    mapping = cast("Row", tree)
    if path in mapping:
        return mapping[path]
    end = path.find(".")
    while end > 0:
        value = get_path(mapping[path[:end]], path[end + 1 :]) if path[:end] in mapping else None
        if value is not None:
            return value
        end = path.find(".", end + 1)
    return None


def first_value(tree: Any, *paths: str) -> Any:
    """Return the first value that is present, not empty, and not redacted."""
    values = (get_path(tree, path) for path in paths)
    return next((value for value in values if value is not None and value not in ("", REDACTED)), None)


def get_list(attributes: Row, path: str) -> list[tuple[int, Any]] | None:
    """Return the elements of a list with their positions, from 1; None if it was not recorded.

    Exporters store a list, its JSON, an object with indices as keys, or one attribute for each value of an element.

    >>> get_list({"docs.1.document.id": "b", "docs.0.document.id": "a"}, "docs")
    [(1, {'document.id': 'a'}), (2, {'document.id': 'b'})]
    >>> get_list({"docs": '[{"id": "a"}]'}, "docs"), get_list({"docs": "__REDACTED__"}, "docs")
    ([(1, {'id': 'a'})], None)
    """
    value = get_path(attributes, path)
    if isinstance(value, str):
        value = parse_json(value)
    if isinstance(value, list):
        return list(enumerate(cast("list[Any]", value), 1))
    rows: dict[int, Any] = {}
    if isinstance(value, Mapping):
        rows = {int(key) + 1: element for key, element in cast("Row", value).items() if _INDEX.fullmatch(str(key))}
    elif value is None:
        prefix = f"{path}."
        for key, element in attributes.items():
            if key.startswith(prefix):
                index, _, name = key[len(prefix) :].partition(".")
                if _INDEX.fullmatch(index):
                    rows.setdefault(int(index) + 1, {})[name] = element
    return sorted(rows.items()) or None


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; None if it is invalid, or contains unpaired surrogates, which cannot be written to files."""
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        value = json.loads(decoded)
    except (ValueError, RecursionError):
        return None
    return value if is_encodable(value, decoded) else None


def is_encodable(value: Any, text: str) -> bool:
    """Check that a value has no unpaired surrogates; `text` is the JSON that it was parsed from."""
    if not _SURROGATE.search(text):
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def query_text(text: Any) -> str | None:
    """Return the text of a query, which can be inside JSON; None if it is missing.

    >>> query_text("cheap flights"), query_text('{"query": "cheap flights", "top_k": 3}'), query_text('{"a": 1}')
    ('cheap flights', 'cheap flights', None)
    """
    return _text_in(text, _QUERY_KEYS, levels=3)


def answer_text(text: Any) -> str | None:
    """Return the text of an answer, which can be inside JSON; None if it is missing.

    >>> [answer_text(text) for text in ("At noon.", '{"answer": "At noon."}', '{"a": 1}', "__REDACTED__")]
    ['At noon.', 'At noon.', None, None]
    """
    return _text_in(text, _ANSWER_KEYS, levels=1)


def _text_in(text: Any, names: Sequence[str], levels: int) -> str | None:
    """Return a text, or that under the first of some keys in its JSON, up to `levels` deep; None if it is missing."""
    value = parse_json(text) if isinstance(text, str) and text.lstrip()[:1] in ("{", "[", '"') else text
    value = text if value is None else value
    for _ in range(levels):
        value = first_value(value, *names) if isinstance(value, Mapping) else value
    return value if isinstance(value, str) and value not in ("", REDACTED) else None


def span_id(row: Row) -> str:
    """Return the id of a span; an empty string if it is missing."""
    return str(first_value(row, "spanId", "span_id", "context.span_id", "spanContext.spanId") or "")


def trace_id(row: Row) -> str:
    """Return the id of the trace; an empty string if it is missing."""
    return str(first_value(row, "traceId", "trace_id", "context.trace_id", "spanContext.traceId") or "")


def parent_id(row: Row) -> str:
    """Return the id of the parent span; an empty string for the root."""
    return str(first_value(row, "parentSpanId", "parent_id", "parent_span_id", "parentSpanContext.spanId") or "")


def start_and_end(row: Row) -> Iterator[float | None]:
    """Yield start and end in seconds."""
    yield _seconds(first_value(row, "startTimeUnixNano", "start_time", "startTime", "start_time_unix_nano"))
    yield _seconds(first_value(row, "endTimeUnixNano", "end_time", "endTime", "end_time_unix_nano"))


def _seconds(time: Any) -> float | None:
    """Convert a time to seconds; its unit is inferred from its size.

    >>> equal = "1770131992242000000", 1770131992242, [1770131992, 242000000], "2026-02-03T15:19:52.242Z"
    >>> {round(_seconds(time), 3) for time in equal}
    {1770131992.242}
    """
    if isinstance(time, list):
        pair = cast("list[Any]", time)
        return _seconds(pair[0] + pair[1] / 1e9) if len(pair) == 2 else None
    if isinstance(time, datetime):
        return time.timestamp()
    try:
        number = float(time)
    except OverflowError:
        return None
    except (TypeError, ValueError):
        try:
            return datetime.fromisoformat(time).timestamp()
        except (TypeError, ValueError):
            return None
    if not isfinite(number):
        return None
    return number / next((unit for unit in (1e9, 1e6, 1e3) if number > 1e8 * unit), 1.0)


def read_mapping(path: str | Path) -> dict[str, str]:
    """Read document ids by chunk id from a JSON object, or from lines with two fields.

    Raises
    ------
    InputError
        If a line does not have two fields, or a chunk has two documents.
    """
    text = files.text(files.local(path), str(path))
    mapping = parse_json(text) if text.lstrip().startswith("{") else None
    if isinstance(mapping, Mapping):
        return {str(chunk): str(document) for chunk, document in cast("Mapping[str, object]", mapping).items()}
    document_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t" if "\t" in line else "," if "," in line else None)
        if not line.strip():
            continue
        if len(fields) != 2:
            problem = f"a line must have two fields, a chunk id and a document id, got {len(fields)} fields"
            raise InputError(problem, fix="use chunk<TAB>document", path=str(path), line=number)
        chunk, document = (field.strip() for field in fields)
        if document_of.setdefault(chunk, document) != document:
            problem = f"chunk {chunk!r} has two documents, {document_of[chunk]!r} and {document!r}"
            raise InputError(problem, fix="map each chunk to one document", path=str(path), line=number)
    return document_of
