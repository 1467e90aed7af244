"""A metric and a format of logs: one line per page, ``page user query d1 d2* d3``, with a star at each click."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.online import online_metric
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.files import opened
from judged.online.readers.raw import RawLog, TableWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Database
    from judged.online.readers.files import LogFile

OPENED_SHARE = replace(
    online_metric("PageCTR"), name="OpenedShare", title="Share of all pages with a click", denominator="page"
)


def read_stars(parts: Sequence[LogFile], engine: Database, *, progress: Any = None) -> RawLog:
    """Insert pages and clicks into the database that analyzes the log."""
    del progress
    pages, clicks, lines = TableWriter(engine, "query", RAW_QUERY), TableWriter(engine, "event", RAW_EVENT), 0
    for file, part in enumerate(parts):
        with opened(part) as text:
            for row, line in enumerate(text, 1):
                page, user, query, *results = line.decode().split()
                shared = {"file": file, "row": row, "query_id": page, "user_id": user, "time_ms": row}
                pages.add({**shared, "query": query, "hit_ids": [result.rstrip("*") for result in results]})
                for rank, result in enumerate(results, 1):
                    if result.endswith("*"):
                        clicks.add({**shared, "action": "click", "object_id": result[:-1], "position": rank})
                lines += 1
    names = tuple(part.name for part in parts)
    clicked = {"click": "click"}
    return RawLog(
        pages.finish(), clicks.finish(), "stars", names, rank_base=1, actions=clicked, lines=lines, has_time=False
    )
