"""What follows: how long clicked results were visited, and what was asked next."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.engine import Relation, listed
from judged.online.facts.reformulation import kinds_of
from judged.online.tables import AFTER_THE_CLICK, RETURNS

if TYPE_CHECKING:
    from judged._types import Table
    from judged.online.log import InteractionLog


def click_facts(log: InteractionLog) -> Relation:
    """Give one row a click on a page, a repeated click on one result too.

    A visit ends when the user is seen on a result page of the same session: asks for one, clicks, sees or hovers over a
    result. What is done on the opened result (a heartbeat, a purchase) does not end it. Nor does it end that a result
    page is left: browsers say so when a result opens in its place. Only an exit that names what was opened does. Where
    nothing follows, the visit lasted at least until its last heartbeat: it is censored, and never dropped.

    Returns
    -------
    Relation
        ``serp, session, user, time_ms, object_id, rank``, and ``dwell_ms`` (observed, or the time until which it was
        watched, at least 0; null without a clock) with ``ended`` (1: observed, 0: censored).
    """
    clicks = f"""
        SELECT serp, session, "user", time_ms, object_id, rank, dwell_ms FROM {log.event}
        WHERE action = 'click' AND serp IS NOT NULL"""
    if not log.has_time:
        return log.engine.keep(
            f"""
            SELECT serp, session, "user", time_ms, object_id, rank, CAST(NULL AS BIGINT) AS dwell_ms,
                CAST(0 AS BIGINT) AS ended
            FROM ({clicks})""",
            "click",
        )
    return log.engine.keep(
        f"""
        WITH click AS ({clicks}),
        opened AS (SELECT session, min(time_ms) AS first_ms FROM click GROUP BY session),
        sign AS (
            SELECT e.session, e.time_ms FROM {log.event} AS e JOIN opened AS o ON e.session = o.session
            WHERE e.time_ms >= o.first_ms
                AND (e.action IN {listed(RETURNS)} OR (e.action = 'page_exit' AND e.object_id IS NOT NULL))
            UNION ALL
            SELECT p.session, p.time_ms FROM {log.serp} AS p JOIN opened AS o ON p.session = o.session
            WHERE p.time_ms >= o.first_ms),
        followed AS (  -- of signs at one time the last one alone is followed by a later one
            SELECT session, time_ms, next_ms FROM (
                SELECT session, time_ms, lead(time_ms) OVER (PARTITION BY session ORDER BY time_ms) AS next_ms
                FROM sign)
            WHERE next_ms > time_ms),
        watched AS (
            SELECT session, max(time_ms) AS watched_ms FROM {log.event}
            WHERE action IN {listed(AFTER_THE_CLICK)} GROUP BY session)
        SELECT c.serp, c.session, c."user", c.time_ms, c.object_id, c.rank,
            coalesce(c.dwell_ms, f.next_ms - c.time_ms, greatest(w.watched_ms - c.time_ms, 0), 0) AS dwell_ms,
            CAST(CASE WHEN c.dwell_ms IS NOT NULL OR f.next_ms IS NOT NULL THEN 1 ELSE 0 END AS BIGINT) AS ended
        FROM click AS c
        LEFT JOIN followed AS f ON f.session = c.session AND f.time_ms = c.time_ms
        LEFT JOIN watched AS w ON w.session = c.session""",
        "click",
    )


PAIRS_AT_ONCE = 50_000
"""So many pairs of texts are Python objects at a time."""


def begin_next_queries(serp: Relation, *, within_ms: int) -> Callable[[], Relation]:
    """Begin to tell how the next query of a session differs from each page's.

    Texts are told apart in a thread, while the database can do other things.

    Parameters
    ----------
    serp
        Pages: the typed table.
    within_ms
        Only what comes so soon is told apart by its text. Repeats are known however late they come.

    Returns
    -------
    finish : callable
        Waits for it, and gives one row a page that a first page follows, strictly later in its session: ``serp``;
        ``next_serp``, of several at that millisecond the one with the smallest key; ``gap_ms``, from page to page;
        ``kind``, one of `judged.online.facts.reformulation.KINDS`, null where one of the two has no text or the next
        came too late; ``again``, true for an unfiltered first page whose text the next one of these has too.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from judged.online.engine import Engine
    >>> pages = {"serp": [1, 2, 3], "session": [7, 7, 7], "time_ms": [0, 5_000, 9_000], "page": [1, 2, 1]}
    >>> pages |= {"filtered": [False] * 3, "query_norm": ["shoes", "shoes", "red shoes"]}
    >>> found = begin_next_queries(Engine().register(pa.table(pages)), within_ms=300_000)()
    >>> found.engine.rows(f"FROM {found} ORDER BY serp")
    [{'serp': 1, 'next_serp': 3, 'gap_ms': 9000, 'kind': 'specialise', 'again': False},
     {'serp': 2, 'next_serp': 3, 'gap_ms': 4000, 'kind': 'specialise', 'again': False}]
    """
    engine = serp.engine
    pairs = engine.keep(
        f"""
        WITH asked AS (
            SELECT session, time_ms, min(CASE WHEN page = 1 THEN serp END) AS opening,
                min(CASE WHEN page = 1 AND NOT filtered THEN serp END) AS plain
            FROM {serp} GROUP BY session, time_ms),
        ahead AS (
            SELECT session, time_ms, first_value(opening IGNORE NULLS) OVER later AS next_serp,
                first_value(plain IGNORE NULLS) OVER later AS next_plain
            FROM asked
            WINDOW later AS (
                PARTITION BY session ORDER BY time_ms ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
        SELECT p.serp, a.next_serp, n.time_ms - p.time_ms AS gap_ms, p.query_norm AS was, n.query_norm AS became,
            p.page = 1 AND NOT p.filtered AND coalesce(p.query_norm = u.query_norm, false) AS again
        FROM {serp} AS p
        JOIN ahead AS a ON a.session = p.session AND a.time_ms = p.time_ms
        JOIN {serp} AS n ON n.serp = a.next_serp
        LEFT JOIN {serp} AS u ON u.serp = a.next_plain""",
        "next_query",
    )
    texts = engine.arrow(f"SELECT DISTINCT was, became FROM {pairs} WHERE was <> became AND gap_ms <= {within_ms}")
    worker = ThreadPoolExecutor(1)
    kinds = worker.submit(_kinds, texts)
    worker.shutdown(wait=False)
    return lambda: engine.query(f"""
        SELECT p.serp, p.next_serp, p.gap_ms,
            CASE WHEN p.was = p.became THEN 'same' WHEN p.gap_ms <= {within_ms} THEN k.kind END AS kind, p.again
        FROM {pairs} AS p
        LEFT JOIN {engine.register(kinds.result())} AS k ON k.was = p.was AND k.became = p.became""")


def _kinds(texts: Any) -> Table:
    """Give the kind of each pair of texts."""
    pieces = [
        pa.table({**{name: batch[name] for name in ("was", "became")}, "kind": kinds_of(batch["was"], batch["became"])})
        for batch in texts.to_batches(max_chunksize=PAIRS_AT_ONCE)
    ]
    return pa.concat_tables(pieces) if pieces else texts.append_column("kind", pa.array([], pa.string()))
