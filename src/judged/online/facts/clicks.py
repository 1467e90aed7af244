"""Facts of clicks: one row a click, with how long the visit lasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.online.engine import Relation, listed
from judged.online.tables import AFTER_THE_CLICK, RETURNS

if TYPE_CHECKING:
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
