"""Facts of sessions: one row a session, made of the facts of its pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judged.online.engine import ibis_library
from judged.online.metrics.metric import written
from judged.online.tables import Relation

COLUMNS = {
    "session": "1",
    "clicked": "1 if any result was opened",
    "queries": "pages that count as asked",
    "succeeded_{t}": "1 if a page came to a success: a click of t seconds dwell or more, a cart, a purchase",
    "time_to_success_{t}": "seconds from the first page to the first success",
    "queries_to_success_{t}": "queries up to the first success",
}
"""The columns of the facts of a session, and what they mean."""

OF_PAGES = ("clicked", "asked", "repeated")
"""The facts of pages that they are made of, beside the times of pages and successes."""


def session_facts(pages: Relation, thresholds: Sequence[float], *, by: str | None = None) -> Relation:
    """Give one row a session, or a session and slice: a session counts in each slice that it has a page in, by these.

    Parameters
    ----------
    pages
        `page_facts`, with the column `by` where it is sliced.
    thresholds
        Seconds of dwell that make a success.
    by
        The column of the slice.

    Returns
    -------
    ibis.Table
        ``session, user``, the slice, and `COLUMNS` as doubles.
    """
    keys = ["session"] if by is None else ["session", by]
    names = [written(t) for t in thresholds]
    rows = _until_success(pages, names, keys)
    sums: dict[str, Any] = {"user": rows.user.min(), "start_ms": rows.time_ms.min()}
    sums |= {"clicked_pages": rows.clicked.sum(), "queries": rows.asked.sum()}
    for t in names:
        sums |= _to_success(rows, t)
    sessions = rows.group_by(*keys).agg(**sums)
    made = {"clicked": (sessions.clicked_pages > 0).ifelse(1.0, 0.0)}
    for t in names:
        made |= _of_success(sessions, t)
    return sessions.select(*keys, "user", "queries", **made, session_count=ibis_library().literal(1.0))


_NEVER = -(2**62)  # milliseconds


def _until_success(pages: Relation, names: Sequence[str], keys: list[str]) -> Relation:
    """Put beside each page when its session first came to a success; null where it never did."""
    firsts = pages.filter(ibis_library().or_(*(pages[f"success_ms_{t}"].notnull() for t in names)))
    firsts = firsts.group_by(*keys).agg(**{f"first_{t}": firsts[f"success_ms_{t}"].min() for t in names})
    return pages.left_join(firsts, keys, rname="f_{name}")


def _to_success(rows: Relation, t: str) -> dict[str, Any]:
    """Add up, of the pages until the first success, those that count as asked and those whose repetitions go on."""
    until = (rows.time_ms <= rows[f"first_{t}"]).fill_null(False)
    never = ibis_library().null("int64")
    return {
        f"first_{t}": rows[f"first_{t}"].max(),
        f"ended_{t}": until.ifelse(rows.asked, 0.0).sum(),
        f"ended_ms_{t}": (until & (rows.asked > 0)).ifelse(rows.time_ms, never).max().fill_null(_NEVER),
        f"open_ms_{t}": (until & (rows.repeated > 0)).ifelse(rows.time_ms, never).max().fill_null(_NEVER),
    }


def _of_success(sessions: Relation, t: str) -> dict[str, Any]:
    """Say whether a session succeeded, after how long, and with which query."""
    first = sessions[f"first_{t}"]
    succeeded = first.notnull().ifelse(1.0, 0.0)
    seconds = ((first - sessions.start_ms).clip(lower=0) / 1000.0).fill_null(0.0)
    # a repeat counts when it ends: among these pages, until the success, it has not
    opened = sessions[f"open_ms_{t}"]
    going_on = ((opened >= sessions[f"ended_ms_{t}"]) & (opened > _NEVER)).ifelse(1.0, 0.0)
    queries = (sessions[f"ended_{t}"] + going_on).clip(lower=1.0) * succeeded
    return {f"succeeded_{t}": succeeded, f"time_to_success_{t}": seconds, f"queries_to_success_{t}": queries}
