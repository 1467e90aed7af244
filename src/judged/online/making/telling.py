"""What a log can tell, by what stands in it: a metric that needs more is refused, and not reported as 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from judged.online.making.work import Work

FAMILIES = {
    "shown": "what was on a page: CTR over shown results",
    "clicks": "clicks: CTR, abandonment, ranks of clicks",
    "impressions": "what came into view: CTR over seen results",
    "dwell": "how long visits last: satisfied clicks, quick returns",
    "hovers": "hovers over results",
    "zero_results": "pages on which nothing was found",
    "carts": "products put into the cart",
    "purchases": "purchases",
    "values": "money",
    "latency": "how long the engine takes",
    "sessions": "what a user does next: reformulation, success by session",
    "queries": "what was typed: reformulation, queries by session",
    "users": "who asked: sessions of a user",
    "rescues": "queries that were changed since nothing was found",
    "copies": "answers that are copied without a click",
}
"""What a log may tell, and which metrics need it."""


def abilities(work: Work, extras: Collection[str]) -> frozenset[str]:
    """Tell what the log can tell, of `FAMILIES`; `extras` are the columns of events that not every log has."""
    pages = work.one("""
        SELECT bool_or(n_returned IS NOT NULL) AS shown,
            bool_or(n_total IS NOT NULL OR n_returned IS NOT NULL) AS zero_results,
            bool_or(latency_ms IS NOT NULL) AS latency, bool_or(rescued IS NOT NULL) AS rescues,
            bool_or(query IS NOT NULL) AS queries, bool_or(own_user IS NOT NULL) AS users,
            bool_or(own_user IS NOT NULL OR own_session IS NOT NULL) AS sessions
        FROM $page WHERE rule_no = 0""")
    events = work.one("""
        SELECT bool_or(action = 'click') AS clicks, bool_or(action = 'impression') AS impressions,
            bool_or(action = 'hover') AS hovers, bool_or(action = 'add_to_cart') AS carts,
            bool_or(action = 'purchase') AS purchases, bool_or(action = 'copy') AS copies,
            bool_or($valued) AS values,
            bool_or($dwelling) AS dwelling
        FROM $act WHERE rule_no = 0""",
        valued="action IN ('add_to_cart', 'purchase') AND value IS NOT NULL" if "value" in extras else "false",
        dwelling="action = 'click' AND dwell_ms IS NOT NULL" if "dwell_ms" in extras else "false")  # fmt: skip
    told = {name for name, has in {**pages, **events}.items() if has and name in FAMILIES}
    if "impressions" in told:
        told.add("shown")
    if work.raw.has_time and "clicks" in told and (events["dwelling"] or ("sessions" in told and _goes_on(work))):
        told.add("dwell")
    return frozenset(told)


_LATER = """
SELECT 1 FROM (SELECT session, min(time_ms) AS first FROM $act WHERE rule_no = 0 AND action = 'click' GROUP BY session)
    AS c JOIN $what AS l ON l.session = c.session AND l.time_ms > c.first WHERE l.rule_no = 0 $done LIMIT 1
"""


def _goes_on(work: Work) -> bool:
    """Tell whether anything ever follows a click in its session: most often a page does."""
    page, act = work.written("$page"), work.written("$act")
    done = "AND l.action <> 'other'"
    return bool(work.run(_LATER, what=page, done="") or work.run(_LATER, what=act, done=done))
