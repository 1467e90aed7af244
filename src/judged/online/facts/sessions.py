"""Facts of sessions: one row a session, made of the facts of its pages."""

from __future__ import annotations

from collections.abc import Sequence

from judged.online.engine import Relation, identifier
from judged.online.metrics.metric import written

COLUMNS = {
    "session": "1",
    "clicked": "1 if any result was opened",
    "queries": "pages that count as asked",
    "succeeded_{t}": "1 if a page came to a success: a click of t seconds dwell or more, a cart, a purchase",
    "time_to_success_{t}": "seconds from the first page to the first success, counted in milliseconds",
    "queries_to_success_{t}": "queries up to the first success",
}
"""The columns of the facts of a session, and what they mean."""

OF_PAGES = ("clicked", "asked", "repeated")
"""The facts of pages that they are made of, beside the times of pages and successes."""


def session_facts(pages: Relation, thresholds: Sequence[float], *, sliced: bool = False) -> Relation:
    """Give one row a session, or a session and slice: a session counts in each slice that it has a page in, by these.

    Parameters
    ----------
    pages
        `PageFacts.select` of `OF_PAGES`.
    thresholds
        Seconds of dwell that make a success.
    sliced
        By their column ``slice``.

    Returns
    -------
    Relation
        ``session, user``, the slice, `COLUMNS`, and ``session_count``, 1.
    """
    keys = "session, slice" if sliced else "session"
    sums, made = list[str](), list[str]()
    for t in map(written, thresholds):
        first, until = f"min({identifier(f'success_ms_{t}')}) OVER own", identifier(f"until_{t}")
        sums += [
            f"min({until}) AS {identifier(f'first_{t}')}",
            f"sum(CASE WHEN time_ms <= {until} THEN asked ELSE 0 END) AS {identifier(f'ended_{t}')}",
            f"max(CASE WHEN time_ms <= {until} AND asked > 0 THEN time_ms END) AS {identifier(f'ended_ms_{t}')}",
            f"max(CASE WHEN time_ms <= {until} AND repeated > 0 THEN time_ms END) AS {identifier(f'open_ms_{t}')}",
        ]
        made += [f"{first} AS {until}"]
    ready = list[str]()
    for t in map(written, thresholds):
        names = ("first", "ended", "ended_ms", "open_ms", "queries_to_success")
        end, ended, ended_ms, open_ms, queries = (identifier(f"{name}_{t}") for name in names)
        # a repeat counts when it ends: among the pages until the success, it has not
        going_on = f"CASE WHEN {open_ms} >= coalesce({ended_ms}, {open_ms}) THEN 1 ELSE 0 END"
        ready += [
            f"CASE WHEN {end} IS NOT NULL THEN 1 ELSE 0 END AS {identifier(f'succeeded_{t}')}",
            f"coalesce(greatest({end} - start_ms, 0), 0) AS {identifier(f'time_to_success_{t}')}",
            f"CASE WHEN {end} IS NULL THEN 0 ELSE greatest({ended} + {going_on}, 1) END AS {queries}",
        ]
    return pages.engine.query(f"""
        WITH page AS (
            SELECT *{"".join(f", {one}" for one in made)} FROM {pages} WINDOW own AS (PARTITION BY {keys})),
        session AS (
            SELECT {keys}, min("user") AS "user", min(time_ms) AS start_ms, max(clicked) AS clicked,
                CAST(sum(asked) AS BIGINT) AS queries{"".join(f", {one}" for one in sums)}
            FROM page GROUP BY {keys})
        SELECT {keys}, "user", queries, clicked{"".join(f", {one}" for one in ready)}, 1 AS session_count
        FROM session""")
