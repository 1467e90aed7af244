"""Facts of sessions: one row a session, made of the facts of its pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from judged.online.engine import Relation, identifier
from judged.online.metrics import written

COLUMNS = {
    "session": "1",
    "clicked": "1 if any result was opened",
    "queries": "pages that count as asked",
    "money": "money that came of its pages, winsorised",
    "succeeded_{t}": "1 if a page came to a success: a click of t seconds dwell or more, a cart, a purchase",
    "time_to_success_{t}": "seconds from the first page to the first success, counted in milliseconds",
    "queries_to_success_{t}": "queries up to the first success",
}
"""The columns of the facts of a session, and what they mean."""

_TOTALS = {
    "clicked": "max(clicked)",
    "queries": "CAST(sum(asked) AS BIGINT)",
    "money": "CAST(sum(money) AS BIGINT)",
}


def of_pages(columns: Collection[str]) -> tuple[str, ...]:
    """Name the facts of pages that some of `COLUMNS` are made of, beside the times of pages and successes.

    >>> of_pages({"clicked", "succeeded_30"}), of_pages({"queries_to_success_30"})
    (('clicked',), ('asked', 'repeated'))
    """
    repeats = any(name.startswith("queries_to_success") for name in columns)
    needed = {
        "clicked": "clicked" in columns, "asked": repeats or "queries" in columns, "repeated": repeats,
        "money": "money" in columns,
    }  # fmt: skip
    return tuple(name for name, is_needed in needed.items() if is_needed)


def session_facts(
    pages: Relation, columns: Collection[str], thresholds: Sequence[float], *, sliced: bool = False
) -> Relation:
    """Give one row a session, or a session and slice: a session counts in each slice that it has a page in, by these.

    Parameters
    ----------
    pages
        `PageFacts.select` of `of_pages`.
    columns
        Some of `COLUMNS`.
    thresholds
        Seconds of dwell that make a success.
    sliced
        By their column ``slice``.

    Returns
    -------
    Relation
        ``session, user``, the slice, the columns, and ``session_count``, 1.
    """
    keys = "session, slice" if sliced else "session"
    repeats = "repeated" in of_pages(columns)
    totals = [f"{sql} AS {name}" for name, sql in _TOTALS.items() if name in columns]
    made, ready = list[str](), [name for name in _TOTALS if name in columns]
    for t in map(written, thresholds):
        first, until = f"min({identifier(f'success_ms_{t}')}) OVER own", identifier(f"until_{t}")
        names = ("first", "ended", "ended_ms", "open_ms", "queries_to_success")
        end, ended, ended_ms, open_ms, queries = (identifier(f"{name}_{t}") for name in names)
        made.append(f"{first} AS {until}")
        totals.append(f"min({until}) AS {end}")
        ready += [
            f"CASE WHEN {end} IS NOT NULL THEN 1 ELSE 0 END AS {identifier(f'succeeded_{t}')}",
            f"coalesce(greatest({end} - start_ms, 0), 0) AS {identifier(f'time_to_success_{t}')}",
        ]
        if not repeats:
            continue
        totals += [
            f"sum(CASE WHEN time_ms <= {until} THEN asked ELSE 0 END) AS {ended}",
            f"max(CASE WHEN time_ms <= {until} AND asked > 0 THEN time_ms END) AS {ended_ms}",
            f"max(CASE WHEN time_ms <= {until} AND repeated > 0 THEN time_ms END) AS {open_ms}",
        ]
        # a repeat counts when it ends: among the pages until the success, it has not
        going_on = f"CASE WHEN {open_ms} >= coalesce({ended_ms}, {open_ms}) THEN 1 ELSE 0 END"
        ready.append(f"CASE WHEN {end} IS NULL THEN 0 ELSE greatest({ended} + {going_on}, 1) END AS {queries}")
    page = f"(SELECT *, {', '.join(made)} FROM {pages} WINDOW own AS (PARTITION BY {keys}))" if made else f"{pages}"
    return pages.engine.query(f"""
        WITH session AS (
            SELECT {keys}, min("user") AS "user", min(time_ms) AS start_ms{"".join(f", {sql}" for sql in totals)}
            FROM {page} GROUP BY {keys})
        SELECT {keys}, "user"{"".join(f", {sql}" for sql in ready)}, 1 AS session_count
        FROM session""")
