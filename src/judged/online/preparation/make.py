"""From a raw log to the typed one: every row has a place, and what is left out has a name."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from judged.online.actions import checked
from judged.online.arguments import need
from judged.online.engine import identifier
from judged.online.findings import by_harm
from judged.online.log import InteractionLog
from judged.online.preparation.contents import abilities
from judged.online.preparation.events import make_events
from judged.online.preparation.first_look import peek
from judged.online.preparation.identity import identify_events, identify_pages, make_sessions
from judged.online.preparation.pages import OWN, attributes, exclude_bots, find_programs, make_pages
from judged.online.preparation.rules import event_findings, query_findings, trouble_findings
from judged.online.preparation.shown import shown_results, view_impressions
from judged.online.preparation.work import Bots, Choices, Work
from judged.online.readers.raw import DUCKDB
from judged.online.tables import ATTRIBUTE_LIMIT, EVENT, SERP, SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.online.engine import Engine, Relation
    from judged.online.preparation.first_look import Peek
    from judged.online.readers.raw import RawLog

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
    said = progress or _nothing
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


def _nothing(step: str) -> None:
    del step


def _log(work: Work, seen: Peek, nobodies: int, name: str | None) -> InteractionLog:
    raw = work.raw
    of_queries, found = query_findings(work)
    of_events, counts, more = event_findings(work, seen, nobodies)
    findings = (*trouble_findings(work, (of_queries, of_events)), *found, *more)
    viewed = view_impressions(work, counts["impressions"], seen.propensities)
    own = _own_names(work)
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


def _own_names(work: Work) -> dict[str, str]:
    """Name the log's own columns, and where they are now; what is called like one of ours gets another name."""
    ours = {column.name for column in SERP}
    names = attributes(work)[:ATTRIBUTE_LIMIT]
    return {f"{name}_attribute" if name in ours else name: OWN + name for name in names}


def _events(work: Work) -> Relation:
    table = work.table("act")
    columns = [
        identifier(one.name) if one.name in table.columns else f"CAST(NULL AS {DUCKDB[one.type]}) AS {one.name}"
        for one in EVENT
    ]
    return work.engine.query(f"SELECT {', '.join(columns)} FROM {table} WHERE rule_no = 0")


def _policies(work: Work, seen: Peek) -> tuple[tuple[str, str], ...]:
    chosen = work.choices
    given = chosen.rank_base is not None or work.raw.rank_base is not None
    base = " and ".join(map(str, seen.bases.found)) or "no positions"
    return (
        ("session_gap", f"{chosen.session_gap:g} minutes"),
        ("bots", chosen.bots),
        ("bot_rate", f"more than {chosen.bot_pages} pages in {chosen.bot_minutes:g} minutes or one session"),
        ("rank_base", f"{base} ({'given' if given else 'found'})"),
    )
