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
    firsts: dict[str, Any] = {f"first_{t}": pages[f"success_ms_{t}"].min() for t in map(written, thresholds)}
    sums = {"clicked_pages": pages.clicked.sum(), "queries": pages.asked.sum(), "start_ms": pages.time_ms.min()}
    sessions = pages.group_by(*keys).agg(user=pages.user.min(), **sums, **firsts)
    sessions = sessions.mutate(session_count=1.0, clicked=(sessions.clicked_pages > 0).ifelse(1.0, 0.0))
    for t in map(written, thresholds):
        sessions = _with_successes(sessions, pages, t, keys)
    wide = ["user", "clicked", "queries"]
    wide += [f"{stem}_{t}" for t in map(written, thresholds) for stem in _OF_SUCCESS]
    return sessions.select(*keys, *wide, session_count="session_count")


_NEVER = -(2**62)  # milliseconds
_OF_SUCCESS = ("succeeded", "time_to_success", "queries_to_success")


def _with_successes(sessions: Relation, pages: Relation, t: str, keys: list[str]) -> Relation:
    """Add what is known of the first success."""
    first = sessions[f"first_{t}"]
    seconds = ((first - sessions.start_ms).clip(lower=0) / 1000.0).fill_null(0.0)
    sessions = sessions.mutate(**{f"succeeded_{t}": first.notnull().ifelse(1.0, 0.0), f"time_to_success_{t}": seconds})
    successful = sessions.filter(sessions[f"first_{t}"].notnull()).select(*keys, until=f"first_{t}")
    asked = pages.select(*keys, "time_ms", "asked", "repeated").join(successful, keys)
    asked = asked.filter(asked.time_ms <= asked.until)
    counted = asked.group_by(*keys).agg(
        ended=asked.asked.sum(),
        ended_ms=_times(asked, "asked").max().fill_null(_NEVER),
        open_ms=_times(asked, "repeated").max().fill_null(_NEVER),
    )
    going_on = (counted.open_ms > counted.ended_ms).ifelse(1.0, 0.0)  # a repeat counts when it ends: here it has not
    counted = counted.select(*keys, **{f"queries_to_success_{t}": counted.ended + going_on})
    joined = sessions.left_join(counted, keys, rname="q_{name}")
    succeeded = joined[f"succeeded_{t}"]
    queries = joined[f"queries_to_success_{t}"].fill_null(0.0).clip(lower=1.0) * succeeded
    return joined.mutate(**{f"queries_to_success_{t}": queries}).drop(*(f"q_{key}" for key in keys))


def _times(pages: Relation, flag: str) -> Any:
    return (pages[flag] > 0).ifelse(pages.time_ms, ibis_library().null("int64"))
