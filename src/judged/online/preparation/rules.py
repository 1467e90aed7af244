"""What was found while a log was made: each rule with its rows, counted in few passes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from judged.online.findings import RULES, Account, LogFinding, worded
from judged.online.preparation import events
from judged.online.preparation import work as pages
from judged.online.preparation.work import KEY, hashed
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.online.findings import Done
    from judged.online.preparation.identity import Peek
    from judged.online.preparation.work import Work

_NOTES = {
    "clock-skew": events.SKEWED,
    "rank-disagrees": events.DISAGREES,
    "rank-beyond-list": events.BEYOND,
    "negative-rank": events.NEGATIVE,
}
_COUNTED = {
    **{rule or "joined": f"link = {at}" for at, rule in enumerate(events.LINKS)},
    **{rule: f"notes & {bit} > 0" for rule, bit in _NOTES.items()},
    "ranked": f"(rank IS NOT NULL OR notes & {events.NEGATIVE} > 0)",
    "clicks": "action = 'click'",
    "impressions": "action = 'impression'",
    "clicks_on_pages": "link = 1 AND action = 'click'",
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
"""What is counted of events that no rule leaves out."""
_EVENTS = "SELECT count(*) AS read, count(*) FILTER (rule_no = 0) AS kept, {} FROM $act".format(
    ", ".join(f'count(*) FILTER (rule_no = 0 AND {where}) AS "{name}"' for name, where in _COUNTED.items())
)

_UNSEEN = f"""
CREATE TEMP TABLE $unseen AS
SELECT event, notes & {events.ABSENT} > 0 AS absent FROM (
    SELECT a.event, a.notes, a.object_id, {hashed("a.object_id", "$home")} AS place
    FROM $act AS a $joined WHERE a.rule_no = 0 AND a.action = 'click')
WHERE notes & {events.ABSENT} > 0 OR ($asked AND object_id IS NOT NULL AND place NOT IN (
    SELECT {hashed("a.object_id", "$home")} FROM $act AS a $joined WHERE a.rule_no = 0 AND a.action = 'impression'
        AND $home IS NOT NULL))
"""


def query_findings(work: Work) -> tuple[Account, Iterator[LogFinding]]:
    """Count the rules of the queries."""
    counts = {rule: int(n) for rule, n in work.run("SELECT rule_no, count(*) FROM $page GROUP BY rule_no")}
    read, kept = sum(counts.values()), counts.get(0, 0)
    by_rule = {name: counts.get(at, 0) for at, name in enumerate(pages.RULES) if at}
    return Account("query", read, kept, _excluded(by_rule)), _of_queries(work, by_rule, read, kept)


def _of_queries(work: Work, by_rule: dict[str, int], read: int, kept: int) -> Iterator[LogFinding]:
    for at, rule in enumerate(pages.RULES):
        if at and by_rule[rule]:
            more = _more_of_queries(work, rule)
            yield _finding(work, "query", rule, by_rule[rule], read, f"rule_no = {at}", more)
    met = {"no-user": "rule_no = 0 AND own_user IS NULL"}
    met["first-rank-from-positions"] = "serp IN (SELECT serp FROM $behind)"
    if work.choices.bots == "keep":
        met = {"bot": 'rule_no = 0 AND "user" IN (FROM $robot)', **met}
    for rule, where in met.items():
        if count := work.one(f"SELECT count(*) AS n FROM $page WHERE {where}")["n"]:
            more, done = _more_of_queries(work, rule), "kept" if rule == "bot" else None
            yield _finding(work, "query", rule, count, kept, where, more, done=done)
    shared = """rule_no = 0 AND own_session IN (SELECT own_session FROM $page WHERE rule_no = 0
        GROUP BY own_session HAVING min("user") <> max("user"))"""
    of = work.one(f"SELECT count(DISTINCT own_session) AS sessions, count(*) AS pages FROM $page WHERE {shared}")
    if of["sessions"]:
        yield _finding(
            work, "query", "session-of-two-users", of["pages"], kept, shared, f": {of['sessions']:,} of them"
        )


def _more_of_queries(work: Work, rule: str) -> str:
    if rule == "facet-request":
        asked = work.one("""
            SELECT count(*) FILTER (size = 0) AS asked, count(*) FILTER (size IS DISTINCT FROM 0) AS beside
            FROM $page WHERE rule_no = 4""")  # fmt: skip
        return f" ({asked['asked']:,} of size 0, {asked['beside']:,} with an empty list beside a full one)"
    if rule == "repeated-query-id":
        several = work.one("""SELECT count(*) AS ids, max(n) AS most FROM (
            SELECT count(*) AS n FROM $page WHERE query_id <> '' GROUP BY named HAVING count(*) > 1)""")  # fmt: skip
        return (
            f" ({several['ids']:,} query_ids stand in several rows, up to {several['most']}, facet requests included)"
        )
    if rule == "bot":
        users = work.one("SELECT count(*) AS n FROM $robot")["n"]
        chosen = work.choices
        return (
            f" ({counted(users, 'user')}: by a flag, by the user agent, or by more than {chosen.bot_pages} pages in"
            f" {chosen.bot_minutes:g} minutes or in one session)"
        )
    return ""


def event_findings(work: Work, seen: Peek, nobodies: int) -> tuple[Account, dict[str, int], Iterator[LogFinding]]:
    """Count the rules of the events; in the middle, what else was counted."""
    has_value = "value IS NOT NULL" if "value" in seen.extras else "false"
    dwelling = "link = 1 AND action = 'click' AND dwell_ms IS NOT NULL" if "dwell_ms" in seen.extras else "false"
    counts = {name: int(value) for name, value in work.one(_EVENTS, has_value=has_value, dwelling=dwelling).items()}
    out = {rule: int(n) for rule, n in work.run("SELECT rule_no, count(*) FROM $act GROUP BY rule_no")}
    by_rule = {name: out.get(at, 0) for at, name in enumerate(events.RULES) if at}
    account = Account("event", counts["read"], counts["kept"], _excluded(by_rule))
    return account, counts, _of_events(work, seen, counts, by_rule, nobodies)


def _of_events(
    work: Work, seen: Peek, counts: dict[str, int], by_rule: dict[str, int], nobodies: int
) -> Iterator[LogFinding]:
    kept, on_pages = counts["kept"], counts["joined"]
    for at, rule in enumerate(events.RULES):
        if at and by_rule[rule]:
            yield _finding(work, "event", rule, by_rule[rule], counts["read"], f"rule_no = {at}")
    naming = kept - counts["no-query-id"]
    for at, rule in enumerate(events.LINKS):
        if rule and counts[rule]:
            of = kept if rule == "no-query-id" else naming
            yield _finding(work, "event", rule, counts[rule], of, f"rule_no = 0 AND link = {at}")
    for rule, bit in _NOTES.items():
        if counts[rule]:
            of = on_pages if rule == "clock-skew" else counts["ranked"]
            where = f"rule_no = 0 AND notes & {bit} > 0"
            yield _finding(work, "event", rule, counts[rule], of, where, _late(work, where) if bit == 1 else "")
    yield from _of_the_dialect(work, seen)
    unseen = _without_impression(work, counts)
    if unseen is not None:
        yield unseen
    if nobodies:
        loose = "event IN (SELECT event FROM $loose WHERE nobody)"
        yield _finding(work, "event", "no-user", nobodies, kept, loose)


def _of_the_dialect(work: Work, seen: Peek) -> Iterator[LogFinding]:
    """Tell what the first look found: how positions are counted, what actions mean, what dwell is."""
    if 0 in seen.bases and work.choices.rank_base is None and work.raw.rank_base is None:
        rule, more = "mixed-rank-base" if len(seen.bases) > 1 else "zero-based-ranks", f" ({seen.counting})"
        yield _finding(work, "event", rule, seen.from_zero, seen.placed, "position = 0", more, raw=True)
    if seen.unknown:
        more = f" ({seen.unknown_names})"
        yield _finding(work, "event", "unknown-action", seen.unknown, seen.rows, "action = 'other'", more)
    if seen.dwell_everywhere:
        yield _finding(work, "event", "dwell-on-every-event", seen.dwelling, seen.rows, "dwell_ms > 0", raw=True)


def _without_impression(work: Work, counts: dict[str, int]) -> LogFinding | None:
    if not counts["clicks"]:
        return None
    loose = bool(work.run("SELECT 1 FROM duckdb_tables() WHERE table_name = '$loose'"))
    work.run(
        _UNSEEN,
        asked="true" if counts["impressions"] else "false",
        home="coalesce(a.serp, -l.named)" if loose else "a.serp",  # a page that was not logged is one all the same
        joined=work.written("LEFT JOIN $loose AS l ON a.event = l.event") if loose else "",
    )
    found = work.one("SELECT count(*) AS n, count(*) FILTER (absent) AS absent FROM $unseen")
    count, absent = found["n"], found["absent"]
    if not count:
        return None
    more = f" ({absent:,} not in the list of their page, {count - absent:,} in it or without one, but never in view)"
    where = "event IN (SELECT event FROM $unseen)"
    return _finding(work, "event", "click-without-impression", count, counts["clicks"], where, more)


def _late(work: Work, where: str) -> str:
    """Say by how much events come before their page."""
    by = work.one(
        f"""SELECT median(p.time_ms - a.time_ms) AS half FROM $act AS a JOIN $page AS p USING (serp)
        WHERE a.{where.replace("notes", "a.notes")}"""
    )["half"]
    return f", by {by / 1000:g} s at the median"


def _excluded(by_rule: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((rule, count) for rule, count in by_rule.items() if count)


def _finding(
    work: Work, table: str, rule: str, rows: int, of: int, where: str, more: str = "",
    *, done: Done | None = None, raw: bool = False,
) -> LogFinding:  # fmt: skip
    key = f"({KEY})" if raw else ("serp" if table == "query" else "event")
    source = ("query" if table == "query" else "event") if raw else ("page" if table == "query" else "act")
    return LogFinding(
        rule, table, rows, of, done or cast("Done", RULES[table][rule]["done"]), *worded(table, rule, more=more),
        work.places(source, key, where),
    )  # fmt: skip


def trouble_findings(work: Work, accounts: Iterable[Account]) -> Iterator[LogFinding]:
    """Tell what the reader could not use, as shares of the rows of its table, or of all records of the files."""
    of = Counter({one.table: one.read for one in accounts})
    of.update(dict.fromkeys({one.table for one in work.raw.findings} - set(of), work.raw.lines))
    of["folder"] = len(work.raw.files)
    for one in work.raw.findings:
        of[one.table] += one.rows if one.table == "folder" or (one.lost and one.table != "file") else 0
    for one in work.raw.findings:
        done: Done = "lost" if one.lost else "excluded" if one.table == "folder" else "kept"
        unit = "file" if one.table == "folder" else "row"
        problem = f"{unit if one.rows == 1 else unit + 's'}: {one.problem}"
        most = max(of[one.table], one.rows)
        yield LogFinding(one.rule, one.table, one.rows, most, done, problem, one.fix, one.places)
