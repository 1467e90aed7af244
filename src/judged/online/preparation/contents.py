"""What a log can tell, by what stands in it: a metric that needs more is refused, and not reported as 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.online.findings import EXCLUDED_LIMIT
from judged.online.metrics import TELLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.online.preparation.work import Work


def abilities(work: Work, counts: Mapping[str, int]) -> frozenset[str]:
    """Tell what the log can tell, of `TELLS`; `counts` are those of its events: see `event_findings`."""
    pages = work.one(
        """
        SELECT bool_or(n_returned IS NOT NULL) AS shown,
            bool_or(n_total IS NOT NULL OR ($empty_told AND n_returned IS NOT NULL)) AS zero_results,
            bool_or(latency_ms IS NOT NULL) AS latency, bool_or(rescued IS NOT NULL) AS rescues,
            bool_or(suggested IS NOT NULL) AS suggestions, bool_or(filtered) AS filters,
            bool_or(page > 1) AS second_pages,
            bool_or(query IS NOT NULL) AS queries,
            count(*) FILTER (own_user IS NULL) <= $nobodies * count(*) AND count(own_user) > 0 AS users,
            bool_or(own_user IS NOT NULL OR own_session IS NOT NULL) AS sessions,
            count(DISTINCT session) < count(*) AS next_pages
        FROM $page WHERE rule_no = 0""",
        empty_told=str(work.raw.empty_told).lower(),
        nobodies=EXCLUDED_LIMIT,
    )
    on_pages = {name: counts[f"{name}_on_pages"] for name in ("clicks", "impressions")}
    told = {name for name, has in {**pages, **counts, **on_pages}.items() if has and name in TELLS}
    if "clicks" in told:
        told = (told | ({"unclicked"} if work.raw.left_told else set())) - _selected(work)
    if "impressions" in told:
        told.add("shown")
    if work.raw.has_time and "clicks" in told and (counts["dwelling"] or ("sessions" in told and _goes_on(work))):
        told.add("dwell")
    return frozenset(told)


_ENOUGH = 20
"""Of so many pages or results, one at least is not clicked: else the log holds what was clicked, and nothing else."""

_SELECTED = f"""
SELECT count(*) >= {_ENOUGH} AND count(c.serp) = count(*) AS unclicked,
    sum(n_returned) >= {_ENOUGH} AND sum(n_returned) = sum(c.opened) FILTER (n_returned IS NOT NULL) AS shown
FROM (SELECT serp, n_returned FROM $page WHERE rule_no = 0) AS p
LEFT JOIN (SELECT serp, count(DISTINCT rank) AS opened FROM $act
    WHERE rule_no = 0 AND link = 1 AND action = 'click' GROUP BY serp) AS c ON p.serp = c.serp
"""


def _selected(work: Work) -> set[str]:
    """Name what the log seems to tell and cannot, since only what was clicked came into it."""
    return {name for name, clicked_alone in work.one(_SELECTED).items() if clicked_alone}


_LATER = """
SELECT 1 FROM (SELECT session, min(time_ms) AS first FROM $act WHERE rule_no = 0 AND link = 1 AND action = 'click'
    GROUP BY session $some) AS c
JOIN $what AS l ON l.session = c.session AND l.time_ms > c.first WHERE l.rule_no = 0 $done LIMIT 1
"""


def _goes_on(work: Work) -> bool:
    """Tell whether anything ever follows a click in its session: most often a page does, in one of a few sessions."""
    page, act = work.written("$page"), work.written("$act")
    tries = [(some, what) for some in ("LIMIT 1000", "") for what in (page, act)]
    done = {page: "", act: "AND l.action <> 'other'"}
    return any(work.run(_LATER, what=what, done=done[what], some=some) for some, what in tries)
