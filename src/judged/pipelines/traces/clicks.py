"""What users clicked on: as it was traced, or of a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.records import records_of
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.pipelines.traces.traces import Traces


def clicks_of(traces: Traces, stage: str) -> dict[str, dict[str, float]]:
    """Take the clicks that were recorded with the list that people saw: ids in the fact ``clicks``."""
    found: dict[str, dict[str, float]] = {}
    for span in traces.spans:
        given = span.facts.get("clicks") if span.stage == stage else None
        if isinstance(given, Mapping):
            found[span.query_id] = {str(doc): float(times) for doc, times in given.items()}
        elif isinstance(given, (list, tuple)):
            found[span.query_id] = dict(Counter(map(str, given)))
    return found


def read_clicks(clicks: Any) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Read clicks: rows of ``query_id``, ``doc_id`` and, where it is not 1, ``clicks``; a row without a document: none.

    Where rows have ``expected`` too, the clicks that ranks let expect as `judged.online.clicks.coec` counts them, the
    second are these; a document without any was not shown.

    Raises
    ------
    InputError
        If they cannot be read so.

    >>> read_clicks([{"query_id": "q", "doc_id": "a", "clicks": 2}, {"query_id": "left", "doc_id": None}])
    ({'q': {'a': 2.0}, 'left': {}}, {})
    """
    where = str(clicks) if isinstance(clicks, (str, Path)) else "<clicks>"
    fix = "give columns query_id, doc_id and clicks"
    found: dict[str, dict[str, float]] = {}
    expected: dict[str, dict[str, float]] = {}
    for line, row in records_of(clicks, where, "clicks", fix):
        query, doc, times = row.get("query_id", row.get("query")), row.get("doc_id"), row.get("clicks", 1)
        try:
            count, hoped = float(1 if times is None else times), float(row.get("expected") or 0)
        except (TypeError, ValueError, OverflowError):
            count = hoped = math.nan
        if query is None or "doc_id" not in row or not (0 <= count < math.inf and 0 <= hoped < math.inf):
            problem = "a row without query_id or doc_id, or whose clicks or expected clicks are not a count"
            raise InputError(problem, fix=fix, path=where, line=line)
        known = found.setdefault(str(query), {})
        if doc is not None and doc != "":
            known[str(doc)] = known.get(str(doc), 0.0) + count
            if hoped:
                own = expected.setdefault(str(query), {})
                own[str(doc)] = own.get(str(doc), 0.0) + hoped
    return found, expected
