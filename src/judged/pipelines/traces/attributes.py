"""What a recorded span says: its ids, its times, its attributes, whichever exporter wrote it."""

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
_PLACE = re.compile(r"[0-9]{1,9}")
REDACTED = "__REDACTED__"
"""What OpenInference writes for what must not be recorded."""

_ASKED = ("query", "question", "query_str", "str_or_query_bundle", "search_query", "user_query", "input", "text", "q")
_ANSWERED = ("answer", "output", "response", "result", "content", "text")


def attributes_of(row: Row) -> Row | None:
    """Give the attributes of a span, flat or nested; None for what is no span.

    >>> attributes_of({"name": "s", "attributes": [{"key": "top_k", "value": {"intValue": "3"}}]})
    {'top_k': 3}
    >>> attributes_of({"name": "s", "attributes.input.value": "jazz"})
    {'input.value': 'jazz'}
    """
    given = row.get("attributes")
    if isinstance(given, str):
        given = parsed(given)
    if isinstance(given, list):
        pairs = cast("list[Any]", given)
        return {
            one["key"]: _value(one.get("value"))
            for one in pairs
            if isinstance(one, dict) and isinstance(one.get("key"), str)
        }
    if isinstance(given, Mapping):
        return cast("Row", given)
    prefix = "attributes."
    columns = {name[len(prefix) :]: value for name, value in row.items() if name.startswith(prefix)}
    return columns or (None if "name" not in row or not span_id(row) else {})


def _value(given: Any) -> Any:
    """Read a value of OTLP."""
    if not isinstance(given, dict):
        return given
    for kind, value in cast("Row", given).items():
        if kind == "arrayValue":
            return [_value(one) for one in value.get("values", ())]
        if kind == "kvlistValue":
            return {one["key"]: _value(one.get("value")) for one in value.get("values", ())}
        return int(value) if kind == "intValue" else value
    return None


def dig(tree: Any, path: str) -> Any:
    """Give the value at a path of names, whichever of its dots are levels; None where there is none.

    >>> dig({"a.b": {"c": 1}}, "a.b.c"), dig({"a": {"b.c": 1}}, "a.b.c"), dig({"a": 1}, "a.b")
    (1, 1, None)
    """
    if not isinstance(tree, Mapping):
        return None
    found = cast("Row", tree)
    if path in found:
        return found[path]
    end = path.find(".")
    while end > 0:
        value = dig(found[path[:end]], path[end + 1 :]) if path[:end] in found else None
        if value is not None:
            return value
        end = path.find(".", end + 1)
    return None


def first(tree: Any, *paths: str) -> Any:
    """Give the first value that is there, is not empty and was not redacted."""
    values = (dig(tree, path) for path in paths)
    return next((value for value in values if value is not None and value not in ("", REDACTED)), None)


def listed(attributes: Row, path: str) -> list[tuple[int, Any]] | None:
    """Give the elements of a list with their places, from 1; None where it was not recorded.

    It may be a list, its JSON, an object by place, or an attribute for each value of each element.

    >>> listed({"docs.1.document.id": "b", "docs.0.document.id": "a"}, "docs")
    [(1, {'document.id': 'a'}), (2, {'document.id': 'b'})]
    >>> listed({"docs": '[{"id": "a"}]'}, "docs"), listed({"docs": "__REDACTED__"}, "docs")
    ([(1, {'id': 'a'})], None)
    """
    value = dig(attributes, path)
    if isinstance(value, str):
        value = parsed(value)
    if isinstance(value, list):
        return list(enumerate(cast("list[Any]", value), 1))
    rows: dict[int, Any] = {}
    if isinstance(value, Mapping):
        rows = {int(key) + 1: one for key, one in cast("Row", value).items() if _PLACE.fullmatch(str(key))}
    elif value is None:
        prefix = f"{path}."
        for key, one in attributes.items():
            if key.startswith(prefix):
                place, _, name = key[len(prefix) :].partition(".")
                if _PLACE.fullmatch(place):
                    rows.setdefault(int(place) + 1, {})[name] = one
    return sorted(rows.items()) or None


def parsed(text: str | bytes) -> Any:
    """Read JSON; None for what is none, or has half of a character, which no file can hold."""
    try:
        plain = text.decode() if isinstance(text, bytes) else text
        found = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return found if is_encodable(found, plain) else None


def is_encodable(value: Any, text: str) -> bool:
    """Return whether no text of a value has half of a character; `text` is the JSON that it was read from."""
    if not _SURROGATE.search(text):
        return True
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def asked(text: Any) -> str | None:
    """Give the text of a query, also where it stands in JSON; None where there is none.

    >>> asked("cheap flights"), asked('{"query": "cheap flights", "top_k": 3}'), asked('{"a": 1}')
    ('cheap flights', 'cheap flights', None)
    """
    return _text_in(text, _ASKED, levels=3)


def answered(text: Any) -> str | None:
    """Give the text of an answer, also where it stands in JSON; None where there is none.

    >>> answered("At noon."), answered('{"answer": "At noon."}'), answered('{"a": 1}'), answered("__REDACTED__")
    ('At noon.', 'At noon.', None, None)
    """
    return _text_in(text, _ANSWERED, levels=1)


def _text_in(text: Any, names: Sequence[str], levels: int) -> str | None:
    """Return a text, or the one under the first of some names that JSON has, so many levels deep; None if none is."""
    value = parsed(text) if isinstance(text, str) and text.lstrip()[:1] in ("{", "[", '"') else text
    value = text if value is None else value
    for _ in range(levels):
        value = first(value, *names) if isinstance(value, Mapping) else value
    return value if isinstance(value, str) and value not in ("", REDACTED) else None


def span_id(row: Row) -> str:
    """Give the id of a span; ``""`` where there is none."""
    return str(first(row, "spanId", "span_id", "context.span_id", "spanContext.spanId") or "")


def trace_id(row: Row) -> str:
    """Give the id of the trace."""
    return str(first(row, "traceId", "trace_id", "context.trace_id", "spanContext.traceId") or "")


def parent_id(row: Row) -> str:
    """Give the id of the span around it; ``""`` for the outermost."""
    return str(first(row, "parentSpanId", "parent_id", "parent_span_id", "parentSpanContext.spanId") or "")


def times(row: Row) -> Iterator[float | None]:
    """Give start and end in seconds."""
    yield _seconds(first(row, "startTimeUnixNano", "start_time", "startTime", "start_time_unix_nano"))
    yield _seconds(first(row, "endTimeUnixNano", "end_time", "endTime", "end_time_unix_nano"))


def _seconds(given: Any) -> float | None:
    """Read a time, in a unit that its size tells.

    >>> same = "1770131992242000000", 1770131992242, [1770131992, 242000000], "2026-02-03T15:19:52.242Z"
    >>> {round(_seconds(given), 3) for given in same}
    {1770131992.242}
    """
    if isinstance(given, list):
        pair = cast("list[Any]", given)
        return _seconds(pair[0] + pair[1] / 1e9) if len(pair) == 2 else None
    if isinstance(given, datetime):
        return given.timestamp()
    try:
        number = float(given)
    except OverflowError:
        return None
    except (TypeError, ValueError):
        try:
            return datetime.fromisoformat(given).timestamp()
        except (TypeError, ValueError):
            return None
    if not isfinite(number):
        return None
    return number / next((unit for unit in (1e9, 1e6, 1e3) if number > 1e8 * unit), 1.0)


def read_mapping(path: str | Path) -> dict[str, str]:
    """Read documents by chunk: a JSON object, or lines of a chunk and its document, by tab, comma or blanks.

    Raises
    ------
    InputError
        If a line has not two fields, or names another document for a chunk than one before it.
    """
    text = files.text(files.local(path), str(path))
    whole = parsed(text) if text.lstrip().startswith("{") else None
    if isinstance(whole, Mapping):
        return {str(chunk): str(document) for chunk, document in cast("Mapping[str, object]", whole).items()}
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("\t" if "\t" in line else "," if "," in line else None)
        if not line.strip():
            continue
        if len(fields) != 2:
            problem = f"{len(fields)} fields, not a chunk and its document"
            raise InputError(
                problem, fix="write two fields a line, with a tab between them", path=str(path), line=number
            )
        chunk, document = (field.strip() for field in fields)
        if found.setdefault(chunk, document) != document:
            problem = f"{chunk!r} is of {found[chunk]!r} and of {document!r}"
            raise InputError(problem, fix="name one document for each chunk", path=str(path), line=number)
    return found
