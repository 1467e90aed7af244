"""Findings of the preparation of a log: rules with row counts, computed in few queries."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from judged.online.findings import RULES, Account, LogFinding, rule_texts
from judged.online.preparation import events
from judged.online.preparation import work as pages
from judged.online.preparation.work import KEY, hashed
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.online.findings import FindingAction
    from judged.online.preparation.identity import EventSummary
    from judged.online.preparation.work import Work

_NOTE_BITS = {
    "clock-skew": events.SKEWED,
    "rank-disagrees": events.DISAGREES,
    "rank-beyond-list": events.BEYOND,
    "negative-rank": events.NEGATIVE,
}
_COUNT_CONDITIONS = {
    **{rule or "joined": f"link = {number}" for number, rule in enumerate(events.LINKS)},
    **{rule: f"notes & {bit} > 0" for rule, bit in _NOTE_BITS.items()},
    "ranked": f"(rank IS NOT NULL OR notes & {events.NEGATIVE} > 0)",
    "clicks": "action = 'click'",
    "impressions": "action = 'impression'",
    "clicks_on_pages": "link = 1 AND action = 'click'",
    "clicks_at_page_time": f"link = 1 AND action = 'click' AND notes & {events.AT_PAGE_TIME} > 0",
    "ranks": "link = 1 AND action = 'click' AND rank IS NOT NULL",
    "impressions_on_pages": "link = 1 AND action = 'impression'",
    "hovers": "link = 1 AND action = 'hover'",
    "carts": "action = 'add_to_cart'",
    "purchases": "action = 'purchase'",
    "reading": "link = 1 AND action IN ('copy', 'hover', 'scroll')",
    "thumbs": "link = 1 AND action IN ('like', 'dislike')",
    "ratings": "link = 1 AND action = 'rating' AND $has_value",
    "values": "action = 'purchase' AND $has_value",
    "dwelling": "$dwelling",
}
"""SQL conditions of the counts over events that no rule excludes."""
_EVENTS = "SELECT count(*) AS read, count(*) FILTER (rule_no = 0) AS kept, {} FROM $act".format(
    ", ".join(f'count(*) FILTER (rule_no = 0 AND {where}) AS "{name}"' for name, where in _COUNT_CONDITIONS.items())
)

# Few pages have the same user, session, query, and time. Only their lists are compared.
_REPEATED_PAGES = """
CREATE TEMP TABLE $again AS
SELECT serp FROM (SELECT serp, row_number() OVER (
        PARTITION BY own_user, own_session, query_norm, time_ms, first_rank, hits ORDER BY serp) AS place
    FROM $page SEMI JOIN (SELECT own_user, own_session, query_norm, time_ms FROM $page
        WHERE rule_no = 0 AND query_norm <> '' AND coalesce(own_user, own_session) IS NOT NULL
        GROUP BY ALL HAVING count(*) > 1) AS r
    ON $page.time_ms = r.time_ms AND $page.query_norm = r.query_norm AND $page.own_user IS NOT DISTINCT FROM r.own_user
        AND $page.own_session IS NOT DISTINCT FROM r.own_session
    WHERE rule_no = 0) WHERE place > 1
"""
_CLICKS_WITHOUT_IMPRESSION = f"""
CREATE TEMP TABLE $without_impression AS
SELECT event, notes & {events.ABSENT} > 0 AS absent FROM (
    SELECT a.event, a.notes, a.object_id, {hashed("a.object_id", "$page_key")} AS place
    FROM $act AS a $joined WHERE a.rule_no = 0 AND a.action = 'click')
WHERE notes & {events.ABSENT} > 0 OR ($has_impressions AND object_id IS NOT NULL AND place NOT IN (
    SELECT {hashed("a.object_id", "$page_key")} FROM $act AS a $joined WHERE a.rule_no = 0 AND a.action = 'impression'
        AND $page_key IS NOT NULL))
"""


def query_findings(work: Work) -> tuple[Account, Iterator[LogFinding]]:
    """Return the account of the queries, and their findings."""
    counts = {rule: int(n) for rule, n in work.run("SELECT rule_no, count(*) FROM $page GROUP BY rule_no")}
    read, included = sum(counts.values()), counts.get(0, 0)
    by_rule = {rule: counts.get(number, 0) for number, rule in enumerate(pages.RULES) if number}
    return Account("query", read, included, _excluded(by_rule)), _iter_query_findings(work, by_rule, read, included)


def _iter_query_findings(work: Work, by_rule: dict[str, int], read: int, included: int) -> Iterator[LogFinding]:
    for number, rule in enumerate(pages.RULES):
        if number and by_rule[rule]:
            details = _query_details(work, rule)
            yield _finding(work, "query", rule, by_rule[rule], read, f"rule_no = {number}", details)
    conditions = {"no-user": "rule_no = 0 AND own_user IS NULL"}
    conditions["first-rank-from-positions"] = "serp IN (SELECT serp FROM $behind)"
    if work.raw.has_time:
        work.run(_REPEATED_PAGES)
        conditions["repeated-page"] = "serp IN (FROM $again)"
    if work.choices.bots == "keep":
        conditions = {"bot": 'rule_no = 0 AND "user" IN (FROM $robot)', **conditions}
    for rule, where in conditions.items():
        if count := work.row(f"SELECT count(*) AS n FROM $page WHERE {where}")["n"]:
            details, action = _query_details(work, rule), "kept" if rule == "bot" else None
            yield _finding(work, "query", rule, count, included, where, details, action=action)
    # A session ID with two users is split into one session per user.
    shared = """rule_no = 0 AND own_session IN (SELECT own_session FROM $page WHERE rule_no = 0
        GROUP BY own_session HAVING min("user") <> max("user"))"""
    sessions = work.row(f"SELECT count(DISTINCT own_session) AS sessions, count(*) AS pages FROM $page WHERE {shared}")
    if sessions["sessions"]:
        details = f" ({sessions['sessions']:,} sessions)"
        yield _finding(work, "query", "session-of-two-users", sessions["pages"], included, shared, details)


def _parts(*counts: tuple[int, str]) -> str:
    """Describe the parts of the rows that a rule applies to, except empty parts."""
    return f" ({', '.join(f'{count:,} {description}' for count, description in counts if count)})"


def _query_details(work: Work, rule: str) -> str:
    if rule == "facet-request":
        counts = work.row("""
            SELECT count(*) FILTER (size = 0) AS explicit, count(*) FILTER (size IS DISTINCT FROM 0) AS implicit
            FROM $page WHERE rule_no = 4""")  # fmt: skip
        return _parts(
            (counts["explicit"], "with size 0"),
            (counts["implicit"], "with an empty list and a query_id that has results in another row"),
        )
    if rule == "repeated-query-id":
        repeats = work.row("""SELECT count(*) AS ids, max(n) AS most FROM (
            SELECT count(*) AS n FROM $page WHERE query_id <> '' GROUP BY named HAVING count(*) > 1)""")  # fmt: skip
        return (
            f" ({repeats['ids']:,} query_ids have several rows, at most {repeats['most']} each; rows of facet requests"
            " are included)"
        )
    if rule == "bot":
        users = work.row("SELECT count(*) AS n FROM $robot")["n"]
        options = work.choices
        return (
            f" ({counted(users, 'user')}: detected by a flag, by the user agent, or by more than {options.bot_pages}"
            f" pages in {options.bot_minutes:g} minutes or in one session)"
        )
    return ""


def event_findings(
    work: Work, summary: EventSummary, without_user: int
) -> tuple[Account, dict[str, int], Iterator[LogFinding]]:
    """Return the account of the events, their counts (see `_COUNT_CONDITIONS`), and their findings."""
    has_value = "value IS NOT NULL" if "value" in summary.extras else "false"
    dwelling = "link = 1 AND action = 'click' AND dwell_ms IS NOT NULL" if "dwell_ms" in summary.extras else "false"
    counts = {rule: int(value) for rule, value in work.row(_EVENTS, has_value=has_value, dwelling=dwelling).items()}
    rule_counts = {rule: int(n) for rule, n in work.run("SELECT rule_no, count(*) FROM $act GROUP BY rule_no")}
    by_rule = {rule: rule_counts.get(number, 0) for number, rule in enumerate(events.RULES) if number}
    account = Account("event", counts["read"], counts["kept"], _excluded(by_rule))
    return account, counts, _iter_event_findings(work, summary, counts, by_rule, without_user)


def _iter_event_findings(
    work: Work, summary: EventSummary, counts: dict[str, int], by_rule: dict[str, int], without_user: int
) -> Iterator[LogFinding]:
    included, on_pages = counts["kept"], counts["joined"]
    for number, rule in enumerate(events.RULES):
        if number and by_rule[rule]:
            yield _finding(work, "event", rule, by_rule[rule], counts["read"], f"rule_no = {number}")
    with_query_id = included - counts["no-query-id"]
    for number, rule in enumerate(events.LINKS):
        if rule and counts[rule]:
            total = included if rule == "no-query-id" else with_query_id
            yield _finding(work, "event", rule, counts[rule], total, f"rule_no = 0 AND link = {number}")
    for rule, bit in _NOTE_BITS.items():
        if counts[rule]:
            total = on_pages if rule == "clock-skew" else counts["ranked"]
            where = f"rule_no = 0 AND notes & {bit} > 0"
            details = _median_skew(work, where) if rule == "clock-skew" else ""
            yield _finding(work, "event", rule, counts[rule], total, where, details)
    yield from _iter_convention_findings(work, summary)
    clicks_finding = _clicks_without_impression(work, counts)
    if clicks_finding is not None:
        yield clicks_finding
    if without_user:
        condition = "event IN (SELECT event FROM $loose WHERE no_user)"
        yield _finding(work, "event", "no-user", without_user, included, condition)


def _iter_convention_findings(work: Work, summary: EventSummary) -> Iterator[LogFinding]:
    """Yield findings about positions, action names, and dwell times in the raw events."""
    if 0 in summary.bases and work.choices.rank_base is None and work.raw.rank_base is None:
        rule, details = "mixed-rank-base" if len(summary.bases) > 1 else "zero-based-ranks", f" ({summary.counting})"
        yield _finding(work, "event", rule, summary.from_zero, summary.placed, "position = 0", details, raw=True)
    if summary.unknown:
        details = f" ({summary.unknown_names})"
        yield _finding(work, "event", "unknown-action", summary.unknown, summary.rows, "action = 'other'", details)
    if summary.dwell_is_page_age:
        yield _finding(work, "event", "dwell-on-every-event", summary.dwelling, summary.rows, "dwell_ms > 0", raw=True)


def _clicks_without_impression(work: Work, counts: dict[str, int]) -> LogFinding | None:
    if not counts["clicks"]:
        return None
    # The table exists only if some events have no page.
    has_pageless_events = bool(work.run("SELECT 1 FROM duckdb_tables() WHERE table_name = '$loose'"))
    work.run(
        _CLICKS_WITHOUT_IMPRESSION,
        has_impressions="true" if counts["impressions"] else "false",
        # The query ID identifies pages that were not logged.
        page_key="coalesce(a.serp, -l.named)" if has_pageless_events else "a.serp",
        joined=work.substitute("LEFT JOIN $loose AS l ON a.event = l.event") if has_pageless_events else "",
    )
    counts_row = work.row("SELECT count(*) AS n, count(*) FILTER (absent) AS absent FROM $without_impression")
    count, absent = counts_row["n"], counts_row["absent"]
    if not count:
        return None
    details = _parts(
        (absent, "on objects outside the result list of the page"), (count - absent, "on results without an impression")
    )
    where = "event IN (SELECT event FROM $without_impression)"
    return _finding(work, "event", "click-without-impression", count, counts["clicks"], where, details)


def _median_skew(work: Work, where: str) -> str:
    """Describe the median time by which events precede their page."""
    skew_ms = work.row(
        f"""SELECT median(p.time_ms - a.time_ms) AS half FROM $act AS a JOIN $page AS p USING (serp)
        WHERE a.{where.replace("notes", "a.notes")}"""
    )["half"]
    return f" (median: {skew_ms / 1000:g} s)"


def _excluded(by_rule: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((rule, count) for rule, count in by_rule.items() if count)


def _finding(
    work: Work, table: str, rule: str, rows: int, total: int, where: str, details: str = "",
    *, action: FindingAction | None = None, raw: bool = False,
) -> LogFinding:  # fmt: skip
    key = f"({KEY})" if raw else ("serp" if table == "query" else "event")
    source = ("query" if table == "query" else "event") if raw else ("page" if table == "query" else "act")
    rule_action = action or cast("FindingAction", RULES[table][rule]["action"])
    texts = rule_texts(table, rule, more=details)
    return LogFinding(rule, table, rows, total, rule_action, *texts, work.places(source, key, where))


def trouble_findings(work: Work, accounts: Iterable[Account]) -> Iterator[LogFinding]:
    """Yield the problems of the reader, as shares of the rows of their table or of all records of the files."""
    totals = Counter({account.table: account.read for account in accounts})
    # Problems of unknown records are compared with all lines of the files.
    totals.update(dict.fromkeys({trouble.table for trouble in work.raw.findings} - set(totals), work.raw.lines))
    totals["folder"] = len(work.raw.files)
    for trouble in work.raw.findings:
        if trouble.table == "folder" or (trouble.lost and trouble.table != "file"):
            totals[trouble.table] += trouble.rows
    for trouble in work.raw.findings:
        action: FindingAction = "lost" if trouble.lost else "excluded" if trouble.table == "folder" else "kept"
        unit = {"folder": "file", "column": "column"}.get(trouble.table, "row")
        problem = f"{unit if trouble.rows == 1 else unit + 's'}: {trouble.problem}"
        total = trouble.total or max(totals[trouble.table], trouble.rows)
        yield LogFinding(trouble.rule, trouble.table, trouble.rows, total, action, problem, trouble.fix, trouble.places)
