"""Hand-written typed logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from judged.online.engine import Database
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog, LogColumn

TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "array<int32>": pa.list_(pa.int32()),
}
EVERYTHING = frozenset(
    [
        "shown",
        "clicks",
        "impressions",
        "dwell",
        "hovers",
        "zero_results",
        "carts",
        "purchases",
        "values",
        "latency",
        "sessions",
        "rescues",
        "reading",
        "second_pages",
        "filters",
        "suggestions",
        "thumbs",
        "ratings",
        "queries",
        "users",
        "unclicked",
        "ranks",
        "next_pages",
    ]
)


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[LogColumn], options: Sequence[str] = ()) -> pa.Table:
    """Create a typed table; missing values of a row are null."""
    rows = list(rows)
    fields = [pa.field(column.name, TYPES[column.type]) for column in columns]
    fields += [pa.field(name, pa.string()) for name in options]
    return pa.Table.from_pylist([{f.name: row.get(f.name) for f in fields} for row in rows], schema=pa.schema(fields))


def typed_log(
    pages: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    *,
    attributes: Sequence[str] = (),
    has: frozenset[str] = EVERYTHING,
    shown: Sequence[Mapping[str, Any]] | None = None,
    **options: Any,
) -> InteractionLog:
    """Create a log from pages and events with keys, ranks, and times; other columns have simple defaults."""
    usual = {"filtered": False, "page": 1, "first_rank": 1, "zero_results": False}
    serps = [{**usual, "query_norm": page.get("query"), "query_id": f"p{page['serp']}", **page} for page in pages]
    results = shown or [
        {"serp": page["serp"], "rank": page["first_rank"] + i, "object_id": f"{page['query']}-{page['first_rank'] + i}"}
        for page in serps
        for i in range(page["n_shown"])
    ]
    numbered_events = [{"event": i, **event} for i, event in enumerate(events)]
    by_session: dict[Any, list[dict[str, Any]]] = {}
    for row in [*serps, *numbered_events]:
        by_session.setdefault(row["session"], []).append(row)
    sessions = []
    for session, session_rows in by_session.items():
        times = [row["time_ms"] for row in session_rows]
        n_serps = sum("n_shown" in row for row in session_rows)
        sessions.append(
            {
                "session": session,
                "session_id": f"s{session}",
                "user": session_rows[0]["user"],
                "user_id": f"u{session_rows[0]['user']}",
            }
            | {
                "start_ms": min(times),
                "end_ms": max(times),
                "n_serps": n_serps,
                "n_events": len(session_rows) - n_serps,
            }
        )
    engine = Database()
    tables = {
        "serp": table_of(serps, SERP, attributes),
        "shown": table_of(results, SHOWN),
        "event": table_of(numbered_events, EVENT),
        "session": table_of(sessions, SESSION),
    }
    return InteractionLog(
        **{name: engine.register(table, name) for name, table in tables.items()},
        has=has,
        attributes=tuple(attributes),
        **options,
    )
