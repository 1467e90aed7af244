"""Logs built from one dict per page."""

from __future__ import annotations

import gzip
import json
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.engine import Database
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TYPES = {"int64": pa.int64(), "int32": pa.int32(), "array<int32>": pa.list_(pa.int32()),
          "float64": pa.float64(), "string": pa.string(),
          "boolean": pa.bool_()}  # fmt: skip


def log_of(pages: Sequence[dict[str, Any]], *, has_time: bool = True, **log_fields: Any) -> InteractionLog:
    """Build a log from pages.

    A page is ``{"shown": ids, "clicks": ids or (id, seconds), "user": 1, "session": 1, "topic": "t", "query": "text",
    "page": 1}``; other keys become attributes. Pages are 1000 s apart, clicks 1 s; dwell is 5 s by default.
    """
    serps, results, events, sessions = [], [], [], {}
    page_keys = {"shown", "clicks", "user", "session", "query", "page", "seen"}
    attributes = sorted({name for page in pages for name in page} - page_keys)
    event_keys = count()
    for serp, page in enumerate(pages):
        user, session = page.get("user", serp), page.get("session", page.get("user", serp))
        start, first_rank = 1_000_000 * serp, 1 + 10 * (page.get("page", 1) - 1)
        query = page.get("query")
        serps.append({
            "serp": serp, "query_id": f"p{serp}", "session": session, "user": user, "time_ms": start, "query": query,
            "query_norm": None if query is None else " ".join(query.lower().split()), "filtered": False,
            "page": page.get("page", 1), "first_rank": first_rank, "n_shown": len(page["shown"]),
            **{name: page.get(name) for name in attributes},
        })  # fmt: skip
        results += [{"serp": serp, "rank": first_rank + row, "object_id": doc, "seen": page.get("seen", {}).get(doc)}
                  for row, doc in enumerate(page["shown"])]  # fmt: skip
        for order, click in enumerate(page.get("clicks", ())):
            doc, seconds = click if isinstance(click, tuple) else (click, 5.0)
            rank = first_rank + page["shown"].index(doc) if doc in page["shown"] else None
            events.append({"event": next(event_keys), "serp": serp, "session": session, "user": user, "action": "click",
                           "time_ms": start + 1000 * (order + 1), "object_id": doc, "rank": rank,
                           "dwell_ms": round(1000 * seconds)})  # fmt: skip
        sessions[session] = {"session": session, "user": user, "start_ms": 0, "end_ms": 0, "n_serps": 0, "n_events": 0}
    arrow_tables = {
        "serp": _table(serps, SERP, attributes),
        "shown": _table(results, SHOWN),
        "event": _table(events, EVENT),
        "session": _table(list(sessions.values()), SESSION),
    }
    tables = {name: _engine().register(table, name) for name, table in arrow_tables.items()}
    return InteractionLog(
        **tables, name="made", has_time=has_time, has=log_fields.pop("has", frozenset({"shown", "clicks", "dwell"})),
        attributes=tuple(attributes), **log_fields,
    )  # fmt: skip


@cache
def _engine() -> Database:
    return Database(threads=1)


def _table(rows: list[dict[str, Any]], columns: Any, attributes: Sequence[str] = ()) -> pa.Table:
    fields = [pa.field(column.name, _TYPES[column.type]) for column in columns]
    fields += [pa.field(name, pa.string()) for name in attributes if name not in {column.name for column in columns}]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def session_2012(folder: Path) -> list[dict[str, Any]]:
    """Return the pages of the TREC 2012 Session track."""
    pages = []
    for row in _lines(folder / "trec_session" / "session2012.jsonl.gz"):
        docs = {result["rank"]: result["docid"] for result in row["results"]}
        clicks = [(docs[click["rank"]], click["dwell_s"]) for click in row["clicks"] if click["rank"] in docs]
        page = {"shown": [docs[rank] for rank in sorted(docs)], "clicks": clicks, "session": int(row["session_id"]),
                "user": int(row["session_id"]), "query": row["query"], "topic": row["topic"]["num"]}  # fmt: skip
        pages.append({**page, "goal": row["topic"]["goal"], "product": row["topic"]["product"]})
    return pages


def session_2014(folder: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
    """Return the labeled pages of the TREC 2014 Session track, and the highest grade of each result by query."""
    pages: list[dict[str, Any]] = []
    grades: dict[str, dict[str, int]] = {}
    for row in _lines(folder / "session2014_graphcm" / "normalized_with_labels.jsonl.gz"):
        clicks = [row["results"][rank - 1] for rank in sorted(row["clicks"])]
        session = int(row["session_id"])
        pages.append({"shown": row["results"], "clicks": clicks, "session": session, "user": session,
                      "query": row["query"], "topic": row["query_id"]})  # fmt: skip
        query_grades = grades.setdefault(row["query_id"], {})
        for doc, grade in zip(row["results"], row["relevance"], strict=True):
            query_grades[doc] = max(query_grades.get(doc, -9), grade)
    return pages, grades


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
