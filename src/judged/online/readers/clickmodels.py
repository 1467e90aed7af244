"""Logs for the click model library of Chuklin et al.: one page a line, seven columns with tabs between.

The columns are a hash of the session, the query, the region, the weight of an intent, and three JSON values: results,
layout (whether a result comes from a vertical) and clicks. The JSON values are lists, or objects from the position,
which starts at 0, to the value. The order of clicks and all times are missing.

Source: the documentation of https://github.com/varepsilon/clickmodels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judged.online.readers.files import Opener, Part
from judged.online.readers.raw import RawLog, Rows, Trouble, Troubles
from judged.online.readers.records import Lines
from judged.online.tables import RAW_EVENT, RAW_QUERY

if TYPE_CHECKING:
    from judged.online.engine import Engine

_SPAN = 10_000
"""Ordinals of the next page begin so much later: no page has as many results or clicks."""


def read(parts: Sequence[Part], engine: Engine, *, progress: Opener = None) -> RawLog:
    """Read such files; each line is a session of its own, of nobody.

    A click that was counted twice is two events. Clicks are put in the order of ranks, since theirs is not logged.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    troubles, lines, ordinal = Troubles(), 0, 0
    pages, clicks = Rows(engine, "query", RAW_QUERY, ("region",)), Rows(engine, "event", RAW_EVENT)
    for batch in Lines(parts, range(len(parts)), troubles, progress=progress).batches():
        for file, row, line in zip(*(batch[name].to_pylist() for name in ("file", "row", "line")), strict=True):
            lines += 1
            record = _record(line.strip("\r\n"))
            if record is None:
                place = f"{parts[file].name}:{row}"
                troubles.add(Trouble.of("clickmodels", "broken-line", "file", place, lost=True))
                continue
            ordinal += _SPAN
            _add(record, {"file": file, "row": row, "query_id": f"{file}:{row}"}, ordinal, pages, clicks)
    return RawLog(
        queries=pages.done(),
        events=clicks.done(),
        layout="clickmodels",
        files=tuple(part.name for part in parts),
        rank_base=0,
        actions={"click": "click"},
        lines=lines + sum(one.rows for one in troubles.given() if one.rule == "too-long"),
        trouble=troubles.given(),
        has_time=False,
    )


def _record(line: str) -> tuple[str, str, str, dict[int, str], dict[int, int]] | None:
    """Give session, query, region, results and clicks, both by position from 0; None where it is no such record."""
    parts = line.split("\t")
    if len(parts) != 7:
        return None
    try:
        urls, clicks = _by_position(json.loads(parts[4])), _by_position(json.loads(parts[6]))
        counts = {at: int(count) for at, count in clicks.items() if count}
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    if not all(0 <= at < _SPAN for at in urls) or not all(
        0 <= at < _SPAN and 0 <= one <= _SPAN for at, one in counts.items()
    ):
        return None
    return parts[0], parts[1], parts[2], {at: str(urls[at]) for at in sorted(urls)}, counts


def _by_position(value: Any) -> dict[int, Any]:
    if isinstance(value, dict):
        return {int(at): one for at, one in value.items()}
    if isinstance(value, list):
        return dict(enumerate(value))
    raise TypeError


def _add(
    record: tuple[str, str, str, dict[int, str], dict[int, int]],
    place: dict[str, Any],
    ordinal: int,
    pages: Rows,
    clicks: Rows,
) -> None:
    session, query, region, urls, counts = record
    who = {**place, "session_id": session}
    gaps = list(urls) != list(range(len(urls)))
    shown = {"hit_ids": list(urls.values()), "ranks": [at + 1 for at in urls] if gaps else None}
    pages.add({**who, "time_ms": ordinal, "query": query, **shown, "region": region})
    clicked = (at for at in sorted(counts) for _ in range(counts[at]))
    for order, at in enumerate(clicked, 1):
        what = {"time_ms": ordinal + order, "action": "click", "object_id": urls.get(at), "position": at}
        clicks.add({**who, **what})
