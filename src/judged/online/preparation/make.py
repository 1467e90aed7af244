"""Preparation of a typed log from raw rows: shown results, supported data, and the log itself."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from judged.online.engine import identifier
from judged.online.findings import EXCLUDED_LIMIT, by_harm
from judged.online.log import ATTRIBUTE_LIMIT, EVENT, SERP, SESSION, InteractionLog, check_actions, validate
from judged.online.metrics import CAPABILITIES
from judged.online.preparation.events import make_events
from judged.online.preparation.identity import identify_events, identify_pages, make_sessions, summarize_events
from judged.online.preparation.rules import event_findings, query_findings, trouble_findings
from judged.online.preparation.work import (
    KEY,
    OWN,
    Bots,
    PreparationOptions,
    Work,
    attributes,
    exclude_bots,
    find_programs,
    make_pages,
)
from judged.online.readers.raw import DUCKDB_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.online.engine import Database, Relation
    from judged.online.preparation.identity import EventSummary
    from judged.online.readers.raw import RawLog


def capabilities(work: Work, counts: Mapping[str, int]) -> frozenset[str]:
    """Return the supported capabilities. `counts` are those of `event_findings`."""
    pages = work.row(
        """
        SELECT bool_or(n_returned IS NOT NULL) AS shown,
            bool_or(n_total IS NOT NULL OR ($empty_lists_logged AND n_returned IS NOT NULL)) AS zero_results,
            bool_or(latency_ms IS NOT NULL) AS latency, bool_or(rescued IS NOT NULL) AS rescues,
            bool_or(suggested IS NOT NULL) AS suggestions, bool_or(filtered) AS filters,
            bool_or(page > 1) AS second_pages,
            bool_or(query IS NOT NULL) AS queries,
            count(*) FILTER (own_user IS NULL) <= $max_share * count(*) AND count(own_user) > 0 AS users,
            bool_or(own_user IS NOT NULL OR own_session IS NOT NULL) AS sessions,
            count(DISTINCT session) < count(*) AS next_pages
        FROM $page WHERE rule_no = 0""",
        empty_lists_logged=str(work.raw.logs_empty_pages).lower(),
        max_share=EXCLUDED_LIMIT,
    )
    # Clicks and impressions without a page do not support metrics of pages.
    on_pages = {name: counts[f"{name}_on_pages"] for name in ("clicks", "impressions")}
    supported = {name for name, has in {**pages, **counts, **on_pages}.items() if has and name in CAPABILITIES}
    if "clicks" in supported:
        supported |= {"unclicked"} if work.raw.logs_unclicked_pages else set()
        # If all pages were clicked, shares of clicked pages would be 1 by construction.
        supported -= {name for name, only_clicked in work.row(_ONLY_CLICKED).items() if only_clicked}
    if "impressions" in supported:
        supported.add("shown")
    # A visit has a duration if a dwell time is logged, or if the session continues after the click. If each click has
    # the time of its page, the time of the clicks was not logged.
    if work.raw.has_time and "clicks" in supported:
        has_click_times = counts["clicks_at_page_time"] < counts["clicks_on_pages"]
        has_ends = counts["dwelling"] or (has_click_times and _continues_after_click(work, supported))
        supported |= {"dwell"} if has_ends else set()
    return frozenset(supported)


_MIN_SAMPLE = 20
"""If at least this many pages (or results) are logged, and all were clicked, the log contains only clicked pages (or
results)."""

_ONLY_CLICKED = f"""
SELECT count(*) >= {_MIN_SAMPLE} AND count(c.serp) = count(*) AS unclicked,
    sum(n_returned) >= {_MIN_SAMPLE} AND sum(n_returned) = sum(c.opened) FILTER (n_returned IS NOT NULL) AS shown
FROM (SELECT serp, n_returned FROM $page WHERE rule_no = 0) AS p
LEFT JOIN (SELECT serp, count(DISTINCT rank) AS opened FROM $act
    WHERE rule_no = 0 AND link = 1 AND action = 'click' GROUP BY serp) AS c ON p.serp = c.serp
"""


_AFTER_CLICK = """
SELECT 1 FROM (SELECT session, min(time_ms) AS first FROM $act WHERE rule_no = 0 AND link = 1 AND action = 'click'
    GROUP BY session $limit) AS c
JOIN $table AS l ON l.session = c.session AND l.time_ms > c.first WHERE l.rule_no = 0 $condition LIMIT 1
"""


def _continues_after_click(work: Work, supported: set[str]) -> bool:
    """Return whether any page or event follows a click in its session. A sample of sessions is tried first."""
    if "sessions" not in supported:
        return False
    page, event = work.substitute("$page"), work.substitute("$act")
    tables = {page: "", event: "AND l.action <> 'other'"}
    queries = ((table, limit) for limit in ("LIMIT 1000", "") for table in tables)
    return any(work.run(_AFTER_CLICK, table=name, condition=tables[name], limit=limit) for name, limit in queries)


_VIEWED = """
CREATE TEMP TABLE $viewed AS
SELECT serp, object_id, min(rank) AS rank, $propensity_sql AS propensity
FROM $act WHERE rule_no = 0 AND serp IS NOT NULL AND action = 'impression' AND object_id IS NOT NULL
    AND serp IN (SELECT serp FROM $page WHERE rule_no = 0 AND n_returned IS NULL)
GROUP BY serp, object_id
"""

_LISTED = f"""
SELECT l.serp, (CASE WHEN ranks IS NULL THEN first_rank + nth - 1 ELSE ranks[nth] END)::INTEGER AS rank, l.object_id,
    l.team, $propensity AS propensity, $seen AS seen
FROM (SELECT serp, first_rank, ranks, unnest(hit_ids) AS object_id, unnest(list_resize(teams, len(hit_ids))) AS team,
        unnest(list_resize(propensities, len(hit_ids))) AS propensity, unnest(range(1, len(hit_ids) + 1)) AS nth
    FROM (SELECT p.serp, first_rank, p.ranks, q.hit_ids, q.teams, q.propensities
        FROM (SELECT {KEY} AS serp, hit_ids, teams, propensities FROM $query) AS q
        JOIN (SELECT serp, first_rank, ranks FROM $page WHERE rule_no = 0 AND n_returned > 0) AS p
            ON q.serp = p.serp)) AS l
$joined
WHERE l.object_id IS NOT NULL AND (ranks IS NULL OR ranks[nth] IS NOT NULL)
"""

_SEEN_RESULTS = """
LEFT JOIN (SELECT serp, object_id, $propensity_sql AS propensity, bool_or(action = 'impression') AS seen FROM $act
    WHERE rule_no = 0 AND serp IS NOT NULL AND object_id IS NOT NULL AND (action = 'impression' OR $has_propensity)
    GROUP BY serp, object_id) AS v ON l.serp = v.serp AND l.object_id = v.object_id
"""


def create_viewed_results(work: Work, impressions: int, propensities: int) -> bool:
    """Create the table ``viewed`` of impressions on pages without a logged list; return whether it is needed."""
    unlisted = work.row("SELECT count(*) AS n FROM $page WHERE rule_no = 0 AND n_returned IS NULL")["n"]
    if not (unlisted and impressions):
        return False
    work.run(_VIEWED, propensity_sql=_propensity_sql(propensities))
    return True


def shown_results(work: Work, impressions: int, propensities: int, *, viewed: bool) -> Relation:
    """Return the shown results as a lazy query, so that the lists remain where they were read."""
    condition = "propensity IS NOT NULL" if propensities else "false"
    propensity_sql = _propensity_sql(propensities)
    join = work.substitute(_SEEN_RESULTS, propensity_sql=propensity_sql, has_propensity=condition)
    sql = work.substitute(
        _LISTED,
        propensity="coalesce(l.propensity, v.propensity)" if propensities else "l.propensity",
        seen="coalesce(v.seen, false)" if impressions else "NULL::BOOLEAN",
        joined=join if impressions or propensities else "",
    )
    if viewed:
        sql += work.substitute("""
            UNION ALL SELECT serp, rank, object_id, NULL, propensity, true FROM $viewed WHERE rank IS NOT NULL""")
    return work.engine.query(sql)


def _propensity_sql(propensities: int) -> str:
    return "max(propensity)" if propensities else "NULL::DOUBLE"


_RETURNED = "least(p.n_total, p.size)"
_RETURNED_INTEGER = f"CASE WHEN {_RETURNED} > 2147483647 THEN 2147483647 ELSE {_RETURNED} END"
"""SQL for the number of returned results of a page without a logged list."""

_SERP = """
CREATE TEMP $kind $serp AS
SELECT p.* EXCLUDE (ranks), coalesce(p.n_returned, $sent, 0)::INTEGER AS n_shown, $ranks AS ranks,
    CASE WHEN n_total IS NOT NULL THEN n_total = 0 WHEN n_returned IS NOT NULL THEN n_returned = 0 END AS zero_results
FROM $page AS p $viewed WHERE rule_no = 0
"""


def make_log(
    raw: RawLog,
    engine: Database,
    *,
    session_gap: float = 30.0,
    bots: Bots = "exclude",
    bot_pages: int = 100,
    bot_minutes: float = 60.0,
    rank_base: Literal[0, 1] | None = None,
    now_ms: int | None = None,
    actions: Mapping[str, str] | None = None,
    name: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> InteractionLog:
    """Prepare a typed log from raw rows.

    Parameters
    ----------
    raw
        Raw log of a reader.
    engine
        Database of its tables.
    session_gap
        Minutes of inactivity that end a session, for rows without a session ID.
    bots
        ``exclude`` or ``keep`` users that are programs.
    bot_pages, bot_minutes
        A user with more than `bot_pages` pages in `bot_minutes` minutes, or in one session, is a program.
    rank_base
        Number of the first position, 0 or 1. None: defined by the layout, or detected for each application.
    now_ms
        Milliseconds since 1970; times more than a day later are invalid. None: the current time.
    actions
        Names of actions in the log, mapped to names in ACTIONS; takes precedence over the raw log.
    name
        Name of the log. None: name of the first file.
    progress
        Called with the name of each step.

    Raises
    ------
    InputError
        If an option is invalid.
    """
    validate(session_gap=session_gap, bots=bots, bot_pages=bot_pages, bot_minutes=bot_minutes, rank_base=rank_base)
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    work = Work(engine, raw, PreparationOptions(session_gap, bots, bot_pages, bot_minutes, rank_base, now))
    report = progress or (lambda _: None)
    report("events")
    summary = summarize_events(work, check_actions({**raw.actions, **(actions or {})}))
    report("pages")
    make_pages(work)
    identify_pages(work)
    find_programs(work, summary.programs)
    exclude_bots(work)
    report("events on pages")
    make_events(work, summary)
    report("sessions")
    without_user = identify_events(work)
    make_sessions(work)
    return _typed_log(work, summary, without_user, name)


def _typed_log(work: Work, summary: EventSummary, without_user: int, name: str | None) -> InteractionLog:
    raw = work.raw
    query_account, from_queries = query_findings(work)
    event_account, counts, from_events = event_findings(work, summary, without_user)
    accounts = (query_account, event_account)
    findings = (*trouble_findings(work, accounts), *from_queries, *from_events)
    viewed = create_viewed_results(work, counts["impressions"], summary.propensities)
    standard_columns = {column.name for column in SERP}
    # The reader reports omitted columns in a finding.
    names = attributes(work)[:ATTRIBUTE_LIMIT]
    # Attributes with the name of a standard column get a suffix.
    attribute_columns = {f"{name}_attribute" if name in standard_columns else name: OWN + name for name in names}
    return InteractionLog(
        serp=_serp(work, attribute_columns, has_impressions=counts["impressions"] > 0, viewed=viewed),
        shown=shown_results(work, counts["impressions"], summary.propensities, viewed=viewed),
        event=_events(work),
        session=work.engine.query(
            f"SELECT {', '.join(identifier(column.name) for column in SESSION)} FROM {work.table('session')}"
        ),
        name=name or (PurePath(raw.files[0]).name if raw.files else "log"),
        layout=raw.layout,
        files=raw.files,
        has_time=raw.has_time,
        dated=raw.dated,
        has=capabilities(work, counts),
        findings=by_harm(findings),
        accounts=accounts,
        attributes=tuple(attribute_columns),
        policies=_policies(work, summary),
        propensity_convention=raw.propensity_convention,
    )


def _serp(work: Work, attribute_columns: Mapping[str, str], *, has_impressions: bool, viewed: bool) -> Relation:
    viewed_join = """LEFT JOIN (SELECT serp, count(*) AS n,
        coalesce(list(rank ORDER BY rank) FILTER (rank IS NOT NULL), []) AS ranks FROM $viewed GROUP BY serp
        ) AS v USING (serp)"""
    in_view = "CASE WHEN v.ranks IS DISTINCT FROM range(p.first_rank, p.first_rank + v.n)::INTEGER[] THEN v.ranks END"
    work.run(
        _SERP,
        kind="TABLE" if viewed else "VIEW",  # A view that only renames columns costs nothing.
        viewed=work.substitute(viewed_join) if viewed else "",
        sent=("v.n" if viewed else "NULL") if has_impressions else _RETURNED_INTEGER,
        ranks=f"coalesce(p.ranks, {in_view})" if viewed else "p.ranks",
    )
    columns = [identifier(column.name) for column in SERP]
    columns += [f"{identifier(column)} AS {identifier(name)}" for name, column in attribute_columns.items()]
    return work.engine.query(f"SELECT {', '.join(columns)} FROM {work.table('serp')}")


def _events(work: Work) -> Relation:
    table = work.table("act")
    columns = [
        identifier(column.name)
        if column.name in table.columns
        else f"CAST(NULL AS {DUCKDB_TYPES[column.type]}) AS {column.name}"
        for column in EVENT
    ]
    return work.engine.query(f"SELECT {', '.join(columns)} FROM {table} WHERE rule_no = 0")


def _policies(work: Work, summary: EventSummary) -> tuple[tuple[str, str], ...]:
    options = work.choices
    is_set = options.rank_base is not None or work.raw.rank_base is not None
    base = " and ".join(map(str, summary.bases)) or "no positions"
    return (
        ("session_gap", f"{options.session_gap:g} minutes"),
        ("bots", options.bots),
        ("bot_rate", f"more than {options.bot_pages} pages in {options.bot_minutes:g} minutes or in one session"),
        ("rank_base", f"{base} ({'set' if is_set else 'detected'})"),
    )
