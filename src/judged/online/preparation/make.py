"""Raw rows to typed tables: what was shown, what the log can tell, and the log that is made."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from judged.online.engine import identifier
from judged.online.findings import EXCLUDED_LIMIT, by_harm
from judged.online.log import ATTRIBUTE_LIMIT, EVENT, SERP, SESSION, InteractionLog, checked, need
from judged.online.metrics import TELLS
from judged.online.preparation.events import make_events
from judged.online.preparation.identity import identify_events, identify_pages, make_sessions, peek
from judged.online.preparation.rules import event_findings, query_findings, trouble_findings
from judged.online.preparation.work import (
    KEY,
    OWN,
    Bots,
    Choices,
    Work,
    attributes,
    exclude_bots,
    find_programs,
    make_pages,
)
from judged.online.readers.raw import DUCKDB_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.online.engine import Engine, Relation
    from judged.online.preparation.identity import Peek
    from judged.online.readers.raw import RawLog


def abilities(work: Work, counts: Mapping[str, int]) -> frozenset[str]:
    """Tell what the log can tell, of `TELLS`; `counts` are those of its events: see `event_findings`."""
    pages = work.one(
        """
        SELECT bool_or(n_returned IS NOT NULL) AS shown,
            bool_or(n_total IS NOT NULL OR ($logs_empty_pages AND n_returned IS NOT NULL)) AS zero_results,
            bool_or(latency_ms IS NOT NULL) AS latency, bool_or(rescued IS NOT NULL) AS rescues,
            bool_or(suggested IS NOT NULL) AS suggestions, bool_or(filtered) AS filters,
            bool_or(page > 1) AS second_pages,
            bool_or(query IS NOT NULL) AS queries,
            count(*) FILTER (own_user IS NULL) <= $nobodies * count(*) AND count(own_user) > 0 AS users,
            bool_or(own_user IS NOT NULL OR own_session IS NOT NULL) AS sessions,
            count(DISTINCT session) < count(*) AS next_pages
        FROM $page WHERE rule_no = 0""",
        logs_empty_pages=str(work.raw.logs_empty_pages).lower(),
        nobodies=EXCLUDED_LIMIT,
    )
    on_pages = {name: counts[f"{name}_on_pages"] for name in ("clicks", "impressions")}
    told = {name for name, has in {**pages, **counts, **on_pages}.items() if has and name in TELLS}
    if "clicks" in told:
        told = (told | ({"unclicked"} if work.raw.logs_unclicked_pages else set())) - {
            name for name, clicked_alone in work.one(_SELECTED).items() if clicked_alone
        }
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


_VIEWED = """
CREATE TEMP TABLE $viewed AS
SELECT serp, object_id, min(rank) AS rank, $chance AS propensity
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

_SEEN = """
LEFT JOIN (SELECT serp, object_id, $chance AS propensity, bool_or(action = 'impression') AS seen FROM $act
    WHERE rule_no = 0 AND serp IS NOT NULL AND object_id IS NOT NULL AND (action = 'impression' OR $likely)
    GROUP BY serp, object_id) AS v ON l.serp = v.serp AND l.object_id = v.object_id
"""


def view_impressions(work: Work, impressions: int, propensities: int) -> bool:
    """Make the table ``viewed``, of what came into view on pages without a logged list; tell if there is any."""
    unlisted = work.one("SELECT count(*) AS n FROM $page WHERE rule_no = 0 AND n_returned IS NULL")["n"]
    if not (unlisted and impressions):
        return False
    work.run(_VIEWED, chance=_chance(propensities))
    return True


def shown_results(work: Work, impressions: int, propensities: int, *, viewed: bool) -> Relation:
    """Give what was shown as an expression: lists stay where they were read, and are taken apart when asked for."""
    joined = bool(impressions or propensities)
    sql = work.written(
        _LISTED,
        propensity="coalesce(l.propensity, v.propensity)" if propensities else "l.propensity",
        seen="coalesce(v.seen, false)" if impressions else "NULL::BOOLEAN",
        joined=work.written(
            _SEEN, chance=_chance(propensities), likely="propensity IS NOT NULL" if propensities else "false"
        )
        if joined
        else "",
    )
    if viewed:
        sql += work.written("""
            UNION ALL SELECT serp, rank, object_id, NULL, propensity, true FROM $viewed WHERE rank IS NOT NULL""")
    return work.engine.query(sql)


def _chance(propensities: int) -> str:
    return "max(propensity)" if propensities else "NULL::DOUBLE"


_MOST = "least(p.n_total, p.size)"
_SENT = f"CASE WHEN {_MOST} > 2147483647 THEN 2147483647 ELSE {_MOST} END"
"""How many results were sent, where no list is logged."""

_SERP = """
CREATE TEMP $kind $serp AS
SELECT p.* EXCLUDE (ranks), coalesce(p.n_returned, $sent, 0)::INTEGER AS n_shown, $ranks AS ranks,
    CASE WHEN n_total IS NOT NULL THEN n_total = 0 WHEN n_returned IS NOT NULL THEN n_returned = 0 END AS zero_results
FROM $page AS p $viewed WHERE rule_no = 0
"""


def make_log(
    raw: RawLog,
    engine: Engine,
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
    """Make the typed log of a raw one.

    Parameters
    ----------
    raw
        What a reader gives.
    engine
        The database in which its tables are.
    session_gap
        Minutes of inactivity that end a session, for what names none.
    bots
        ``exclude``: leave out users who are programs; ``keep``: count them, and say how many.
    bot_pages, bot_minutes
        A user with more than so many pages in so many minutes, or in one session of the log, is a program.
    rank_base
        0 or 1: what the first position is called. None: as the layout says, or found by application.
    now_ms
        Milliseconds since 1970: what is more than a day later cannot be. None: now.
    actions
        What the log's names of actions mean, one of ACTIONS by name; goes before what the log says itself.
    name
        What to call it. None: the name of its first file.
    progress
        Called with the name of each step.

    Raises
    ------
    InputError
        If a choice makes no sense.
    """
    need(session_gap=session_gap, bots=bots, bot_pages=bot_pages, bot_minutes=bot_minutes, rank_base=rank_base)
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    work = Work(engine, raw, Choices(session_gap, bots, bot_pages, bot_minutes, rank_base, now))
    said = progress or (lambda _: None)
    said("events")
    seen = peek(work, checked({**raw.actions, **(actions or {})}))
    said("pages")
    make_pages(work)
    identify_pages(work)
    find_programs(work, seen.programs)
    exclude_bots(work)
    said("events on pages")
    make_events(work, seen)
    said("sessions")
    nobodies = identify_events(work)
    make_sessions(work)
    return _log(work, seen, nobodies, name)


def _log(work: Work, seen: Peek, nobodies: int, name: str | None) -> InteractionLog:
    raw = work.raw
    of_queries, found = query_findings(work)
    of_events, counts, more = event_findings(work, seen, nobodies)
    findings = (*trouble_findings(work, (of_queries, of_events)), *found, *more)
    viewed = view_impressions(work, counts["impressions"], seen.propensities)
    ours = {column.name for column in SERP}  # what is called like one of them gets another name
    names = attributes(work)[:ATTRIBUTE_LIMIT]
    own = {f"{name}_attribute" if name in ours else name: OWN + name for name in names}
    return InteractionLog(
        serp=_serp(work, own, impressed=counts["impressions"] > 0, viewed=viewed),
        shown=shown_results(work, counts["impressions"], seen.propensities, viewed=viewed),
        event=_events(work),
        session=work.engine.query(
            f"SELECT {', '.join(identifier(column.name) for column in SESSION)} FROM {work.table('session')}"
        ),
        name=name or (PurePath(raw.files[0]).name if raw.files else "log"),
        layout=raw.layout,
        files=raw.files,
        has_time=raw.has_time,
        dated=raw.dated,
        has=abilities(work, counts),
        findings=by_harm(findings),
        accounts=(of_queries, of_events),
        attributes=tuple(own),
        policies=_policies(work, seen),
        propensity_convention=raw.propensity_convention,
    )


def _serp(work: Work, own: Mapping[str, str], *, impressed: bool, viewed: bool) -> Relation:
    counted = """LEFT JOIN (SELECT serp, count(*) AS n,
        coalesce(list(rank ORDER BY rank) FILTER (rank IS NOT NULL), []) AS ranks FROM $viewed GROUP BY serp
        ) AS v USING (serp)"""
    in_view = "CASE WHEN v.ranks IS DISTINCT FROM range(p.first_rank, p.first_rank + v.n)::INTEGER[] THEN v.ranks END"
    work.run(
        _SERP,
        kind="TABLE" if viewed else "VIEW",  # a view costs nothing where it only names columns
        viewed=work.written(counted) if viewed else "",
        sent=("v.n" if viewed else "NULL") if impressed else _SENT,
        ranks=f"coalesce(p.ranks, {in_view})" if viewed else "p.ranks",
    )
    columns = [identifier(column.name) for column in SERP]
    columns += [f"{identifier(column)} AS {identifier(name)}" for name, column in own.items()]
    return work.engine.query(f"SELECT {', '.join(columns)} FROM {work.table('serp')}")


def _events(work: Work) -> Relation:
    table = work.table("act")
    columns = [
        identifier(one.name) if one.name in table.columns else f"CAST(NULL AS {DUCKDB_TYPES[one.type]}) AS {one.name}"
        for one in EVENT
    ]
    return work.engine.query(f"SELECT {', '.join(columns)} FROM {table} WHERE rule_no = 0")


def _policies(work: Work, seen: Peek) -> tuple[tuple[str, str], ...]:
    chosen = work.choices
    given = chosen.rank_base is not None or work.raw.rank_base is not None
    base = " and ".join(map(str, seen.bases)) or "no positions"
    return (
        ("session_gap", f"{chosen.session_gap:g} minutes"),
        ("bots", chosen.bots),
        ("bot_rate", f"more than {chosen.bot_pages} pages in {chosen.bot_minutes:g} minutes or one session"),
        ("rank_base", f"{base} ({'given' if given else 'found'})"),
    )
