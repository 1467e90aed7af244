"""Facts of clicks: one row an opened result, with how long the visit lasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.online.engine import ibis_library, next_after
from judged.online.tables import AFTER_THE_CLICK, RETURNS, Relation

if TYPE_CHECKING:
    from judged.online.log import InteractionLog


def click_facts(log: InteractionLog) -> Relation:
    """Give one row a click on a page, a repeated click on one result too.

    A visit ends when the user does something else in the same session: asks for a page, clicks, sees or hovers over a
    result, leaves. What is done on the opened result (a heartbeat, a purchase) does not end it. Where nothing follows,
    the visit lasted at least until its last heartbeat: it is censored, and never dropped.

    Returns
    -------
    ibis.Table
        ``serp, session, user, time_ms, object_id, rank``, and ``dwell_ms`` (observed, or the time until which it was
        watched, at least 0; null without a clock) with ``ended`` (1: observed, 0: censored).
    """
    ibis = ibis_library()
    event = log.event
    clicks = event.filter(event.action == "click", event.serp.notnull())
    if not log.has_time:
        unknown = {"dwell_ms": ibis.null("int64"), "ended": ibis.literal(0, "int64")}
        return clicks.select("serp", "session", "user", "time_ms", "object_id", "rank", **unknown)
    clicks = clicks.mutate(later=clicks.time_ms + 1)
    back = _returns(log, clicks)
    followed = next_after(clicks, back, by="session", at_least="later", time="time_ms", found="return_")
    watched = _heartbeats(log)
    known = followed.left_join(watched, "session", rname="heartbeat_{name}")
    until_heartbeat = (known.watched_ms - known.time_ms).fill_null(0).clip(lower=0)
    dwell = ibis.coalesce(known.dwell_ms, known.return_time_ms - known.time_ms, until_heartbeat)
    ended: Relation = known.dwell_ms.notnull() | known.return_time_ms.notnull()
    return known.select(
        "serp", "session", "user", "time_ms", "object_id", "rank", dwell_ms=dwell, ended=ended.cast("int64")
    )


def _returns(log: InteractionLog, clicks: Relation) -> Relation:
    """When a user was seen to be back from what had been opened: session and time, from the session's first click on.

    What came before has nothing to be back from, and most events are impressions: sorting them is most of the cost.
    """
    event = log.event
    back = event.filter(event.action.isin(list(RETURNS))).select("session", "time_ms")
    back = back.union(log.serp.select("session", "time_ms"))
    firsts = clicks.group_by("session").agg(first_ms=clicks.time_ms.min())
    since = back.join(firsts, "session")
    return since.filter(since.time_ms > since.first_ms).select("session", "time_ms")


def _heartbeats(log: InteractionLog) -> Relation:
    """Find the last sign of life on an opened result, by session: only the last visit of a session needs it."""
    event = log.event
    alive = event.filter(event.action.isin(list(AFTER_THE_CLICK)))
    return alive.group_by("session").agg(watched_ms=alive.time_ms.max())
