"""Typed logs made by hand."""

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


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[LogColumn], more: Sequence[str] = ()) -> pa.Table:
    """Make a typed table; what a row does not name is null."""
    rows = list(rows)
    fields = [pa.field(column.name, TYPES[column.type]) for column in columns]
    fields += [pa.field(name, pa.string()) for name in more]
    return pa.Table.from_pylist([{f.name: row.get(f.name) for f in fields} for row in rows], schema=pa.schema(fields))


def typed_log(
    pages: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    *,
    attributes: Sequence[str] = (),
    has: frozenset[str] = EVERYTHING,
    shown: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> InteractionLog:
    """Make a log of pages and events: keys, ranks and times as given, the rest as plain as it can be."""
    usual = {"filtered": False, "page": 1, "first_rank": 1, "zero_results": False}
    serps = [{**usual, "query_norm": page.get("query"), "query_id": f"p{page['serp']}", **page} for page in pages]
    results = shown or [
        {"serp": one["serp"], "rank": one["first_rank"] + at, "object_id": f"{one['query']}-{one['first_rank'] + at}"}
        for one in serps
        for at in range(one["n_shown"])
    ]
    done = [{"event": at, **event} for at, event in enumerate(events)]
    by_session: dict[Any, list[dict[str, Any]]] = {}
    for row in [*serps, *done]:
        by_session.setdefault(row["session"], []).append(row)
    sessions = []
    for session, own in by_session.items():
        times = [row["time_ms"] for row in own]
        n_serps = sum("n_shown" in row for row in own)
        sessions.append(
            {"session": session, "session_id": f"s{session}", "user": own[0]["user"], "user_id": f"u{own[0]['user']}"}
            | {"start_ms": min(times), "end_ms": max(times), "n_serps": n_serps, "n_events": len(own) - n_serps}
        )
    engine = Database()
    made = {
        "serp": table_of(serps, SERP, attributes),
        "shown": table_of(results, SHOWN),
        "event": table_of(done, EVENT),
        "session": table_of(sessions, SESSION),
    }
    return InteractionLog(
        **{name: engine.register(table, name) for name, table in made.items()},
        has=has,
        attributes=tuple(attributes),
        **more,
    )
