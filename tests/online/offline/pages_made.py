"""Logs made by hand: a dict a page."""

from __future__ import annotations

import gzip
import json
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.engine import Engine
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TYPES = {"int64": pa.int64(), "int32": pa.int32(), "array<int32>": pa.list_(pa.int32()),
          "float64": pa.float64(), "string": pa.string(),
          "boolean": pa.bool_()}  # fmt: skip


def log_of(pages: Sequence[dict[str, Any]], *, has_time: bool = True, **more: Any) -> InteractionLog:
    """Make a log of pages.

    A page is ``{"shown": ids, "clicks": ids or (id, seconds), "user": 1, "session": 1, "topic": "t", "query": "text",
    "page": 1}``; what else is in it becomes an attribute. Pages are 1000 s apart, clicks 1 s, each lasts 5 s or as
    told.
    """
    serps, shown, events, sessions = [], [], [], {}
    known = {"shown", "clicks", "user", "session", "query", "page", "seen"}
    attributes = sorted({name for page in pages for name in page} - known)
    keys = count()
    for at, page in enumerate(pages):
        user, session = page.get("user", at), page.get("session", page.get("user", at))
        start, first = 1_000_000 * at, 1 + 10 * (page.get("page", 1) - 1)
        query = page.get("query")
        serps.append({
            "serp": at, "query_id": f"p{at}", "session": session, "user": user, "time_ms": start, "query": query,
            "query_norm": None if query is None else " ".join(query.lower().split()), "filtered": False,
            "page": page.get("page", 1), "first_rank": first, "n_shown": len(page["shown"]),
            **{name: page.get(name) for name in attributes},
        })  # fmt: skip
        shown += [{"serp": at, "rank": first + place, "object_id": doc, "seen": page.get("seen", {}).get(doc)}
                  for place, doc in enumerate(page["shown"])]  # fmt: skip
        for order, click in enumerate(page.get("clicks", ())):
            doc, seconds = click if isinstance(click, tuple) else (click, 5.0)
            rank = first + page["shown"].index(doc) if doc in page["shown"] else None
            events.append({"event": next(keys), "serp": at, "session": session, "user": user, "action": "click",
                           "time_ms": start + 1000 * (order + 1), "object_id": doc, "rank": rank,
                           "dwell_ms": round(1000 * seconds)})  # fmt: skip
        sessions[session] = {"session": session, "user": user, "start_ms": 0, "end_ms": 0, "n_serps": 0, "n_events": 0}
    made = {
        "serp": _table(serps, SERP, attributes),
        "shown": _table(shown, SHOWN),
        "event": _table(events, EVENT),
        "session": _table(list(sessions.values()), SESSION),
    }
    tables = {name: _engine().register(table, name) for name, table in made.items()}
    return InteractionLog(
        **tables, name="made", has_time=has_time, has=more.pop("has", frozenset({"shown", "clicks", "dwell"})),
        attributes=tuple(attributes), **more,
    )  # fmt: skip


@cache
def _engine() -> Engine:
    return Engine(threads=1)


def _table(rows: list[dict[str, Any]], columns: Any, attributes: Sequence[str] = ()) -> pa.Table:
    fields = [pa.field(one.name, _TYPES[one.type]) for one in columns]
    fields += [pa.field(name, pa.string()) for name in attributes if name not in {one.name for one in columns}]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def session_2012(folder: Path) -> list[dict[str, Any]]:
    """Give the pages of the TREC 2012 Session track."""
    pages = []
    for row in _lines(folder / "trec_session" / "session2012.jsonl.gz"):
        docs = {one["rank"]: one["docid"] for one in row["results"]}
        clicks = [(docs[one["rank"]], one["dwell_s"]) for one in row["clicks"] if one["rank"] in docs]
        page = {"shown": [docs[rank] for rank in sorted(docs)], "clicks": clicks, "session": int(row["session_id"]),
                "user": int(row["session_id"]), "query": row["query"], "topic": row["topic"]["num"]}  # fmt: skip
        pages.append({**page, "goal": row["topic"]["goal"], "product": row["topic"]["product"]})
    return pages


def session_2014(folder: Path) -> tuple[list[dict[str, Any]], dict[str, dict[str, int]]]:
    """Give the labeled pages of the TREC 2014 Session track, and the highest grade of each result by query."""
    pages: list[dict[str, Any]] = []
    grades: dict[str, dict[str, int]] = {}
    for row in _lines(folder / "session2014_graphcm" / "normalized_with_labels.jsonl.gz"):
        clicks = [row["results"][rank - 1] for rank in sorted(row["clicks"])]
        session = int(row["session_id"])
        pages.append({"shown": row["results"], "clicks": clicks, "session": session, "user": session,
                      "query": row["query"], "topic": row["query_id"]})  # fmt: skip
        known = grades.setdefault(row["query_id"], {})
        for doc, grade in zip(row["results"], row["relevance"], strict=True):
            known[doc] = max(known.get(doc, -9), grade)
    return pages, grades


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
