"""Whose a page is, and in which session, where the query itself does not say: its events are asked, then the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.engine import listed
from judged.online.log import ACTIONS, NAMES, action_of
from judged.online.preparation.work import KEY, SCRIPTED, Work, hashed, hashed_or_null

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_RARE = 10
"""Positions 0 are how a log counts, and no accident, if they are at least a tenth as frequent as positions 1."""

_NAMED = 8
"""So many unknown actions and applications are named: a log can have a million, where an id got into their place."""

_TALLY = """
CREATE TEMP TABLE $tally AS
SELECT application, action, count(*) AS rows, count(position) AS placed, count(*) FILTER (position = 0) AS zeros,
    count(*) FILTER (position = 1) AS ones, count(dwell_ms) AS dwelling, count(*) FILTER ($scripted) AS programs,
    count(propensity) AS propensities, count(value) AS "values"
FROM $event GROUP BY ALL
"""

_PLAIN = "regexp_replace(lower(action), '[^a-z0-9]', '', 'g')"

_KNOWN = f"""
SELECT action, sum(rows)::BIGINT AS rows, sum(dwelling)::BIGINT AS dwelling FROM $tally
WHERE action IN $given OR {_PLAIN} IN $plain GROUP BY action ORDER BY rows DESC, action
"""

_DIALECT = f"""
CREATE TEMP TABLE $dialect AS
SELECT *, coalesce($base, CASE WHEN zeros = 0 OR zeros * {_RARE} < ones THEN 1 ELSE 0 END) AS base
FROM (SELECT application, sum(placed)::BIGINT AS placed, sum(zeros)::BIGINT AS zeros, sum(ones)::BIGINT AS ones
    FROM $tally GROUP BY application HAVING sum(placed) > 0)
"""


@dataclass(frozen=True)
class Peek:
    """What the first look shows; nothing in it grows with the number of names that a log has.

    Parameters
    ----------
    rows
        Events read.
    bases
        The positions at which applications begin to count, sorted; nothing where no event has a position.
    placed, from_zero
        Events with a position, and those of applications that count from 0.
    counting
        How applications count, those with the most positions; the table ``dialect`` has each of them.
    meanings
        Actions by the log's names, the most frequent first, where they mean something.
    unknown, unknown_names
        Events of other names, and the most frequent of these.
    programs, propensities, values
        How many events come from programs, carry a propensity, carry a value.
    dwell_everywhere
        What the log calls dwell stands on most events that open nothing as well: it is the age of the page or of the
        session then, and no visit.
    dwelling
        Events that carry a dwell.
    """

    rows: int
    bases: tuple[int, ...]
    placed: int
    from_zero: int
    counting: str
    meanings: Mapping[str, str]
    unknown: int
    unknown_names: str
    programs: int
    propensities: int
    values: int
    dwell_everywhere: bool
    dwelling: int

    @property
    def extras(self) -> tuple[str, ...]:
        """Columns that few logs have: a column of nulls costs as much as any other."""
        dwelling = self.dwelling and not self.dwell_everywhere
        having = (("dwell_ms", dwelling), ("value", self.values), ("propensity", self.propensities))
        return tuple(name for name, count in having if count)


_OPENING = frozenset({"click", "heartbeat", "page_exit"})
"""Actions that may rightly carry a dwell."""


def peek(work: Work, actions: Mapping[str, str]) -> Peek:
    """Look at the events once, by application and action."""
    work.run(_TALLY, scripted=SCRIPTED)
    sums = work.one("""
        SELECT sum(rows) AS rows, sum(dwelling) AS dwelling, sum(programs) AS programs,
            sum(propensities) AS propensities, sum("values") AS "values" FROM $tally""")
    rows, dwelling, programs, propensities, values = (int(value or 0) for value in sums.values())
    plain = {name.replace("_", "") for name in (*ACTIONS, *" ".join(NAMES.values()).split())}
    named = work.run(_KNOWN, given=listed(actions), plain=listed(plain))
    known = [(action, count, dwell) for action, count, dwell in named if action and action_of(action, actions)]
    opening = [one for one in known if action_of(one[0], actions) in _OPENING]
    aside = rows - sum(count for _, count, _ in opening)
    aside_dwelling = dwelling - sum(dwell for _, _, dwell in opening)
    return Peek(
        rows=rows,
        **_bases(work),
        meanings={action: meaning for action, _, _ in known if (meaning := action_of(action, actions))},
        **_unknown(work, [action for action, _, _ in known]),
        programs=programs,
        propensities=propensities,
        values=values,
        dwell_everywhere=aside_dwelling > 0 and 2 * aside_dwelling >= aside,
        dwelling=dwelling,
    )


def _unknown(work: Work, known: Iterable[str]) -> dict[str, Any]:
    work.run(
        """CREATE TEMP TABLE $unknown AS SELECT coalesce(nullif(action, ''), '(none)') AS name, sum(rows)::BIGINT AS n
        FROM $tally WHERE NOT coalesce(action IN $known, false) GROUP BY name""",
        known=listed(known),
    )
    rows, names = work.run("SELECT coalesce(sum(n), 0)::BIGINT, count(*) FROM $unknown")[0]
    most = work.run("SELECT name, n FROM $unknown ORDER BY n DESC, name LIMIT $limit", limit=_NAMED)
    said = ", ".join(f"{name} {count:,}" for name, count in most)
    left = names - len(most)
    return {"unknown": rows, "unknown_names": said + (f" and {left:,} more" if left else "")}


def _bases(work: Work) -> dict[str, Any]:
    """Make the table ``dialect``, a row an application with positions, and sum it up."""
    given = work.choices.rank_base if work.choices.rank_base is not None else work.raw.rank_base
    work.run(_DIALECT, base="NULL" if given is None else given)
    sums = work.run("SELECT base, count(*), sum(placed)::BIGINT FROM $dialect GROUP BY base ORDER BY base")
    most = work.run(
        """SELECT application, base, placed, zeros, ones
        FROM (FROM $dialect ORDER BY placed DESC, application NULLS FIRST LIMIT $limit)
        ORDER BY application NULLS FIRST""",
        limit=_NAMED,
    )
    left = sum(count for _, count, _ in sums) - len(most)
    said = [_counting(*one, given=given is not None) for one in most]
    return {
        "bases": tuple(base for base, _, _ in sums),
        "placed": sum(placed for _, _, placed in sums),
        "from_zero": sum(placed for base, _, placed in sums if base == 0),
        "counting": "; ".join([*said, *([f"{left:,} more"] if left else [])]),
    }


def _counting(application: str | None, base: int, placed: int, zeros: int, ones: int, *, given: bool) -> str:
    """Say how an application counts, and how sure that is."""
    sure = given or (zeros + ones >= _RARE and not (base and zeros))
    name = application or "events without an application"
    return f"{name} from {base} ({zeros:,} of {placed:,} positions are 0, {ones:,} are 1{'' if sure else ', not sure'})"


_SESSION_ALONE = f"CASE WHEN own_session IS NOT NULL THEN {hashed('own_session', '0')} END"
"""Who asked in a session of nobody: the session itself. The hash of no session is no key: it would be one for all."""

_TOLD = f"""
CREATE TEMP TABLE $told AS
SELECT named, min_by(own_session, instant) FILTER (own_session IS NOT NULL) AS own_session,
    min_by(session_id, instant) FILTER (own_session IS NOT NULL) AS session_id,
    min_by(own_user, instant) FILTER (own_user IS NOT NULL) AS own_user,
    min_by(user_id, instant) FILTER (own_user IS NOT NULL) AS user_id
FROM (SELECT {hashed_or_null("query_id")} AS named, {hashed_or_null("session_id")} AS own_session, session_id,
        {hashed_or_null("user_id")} AS own_user, user_id, (coalesce(time_ms, 0), file, row) AS instant FROM $event)
WHERE named IN (SELECT named FROM $page WHERE rule_no = 0 AND (own_session IS NULL OR own_user IS NULL))
GROUP BY named
"""

_OWNERS = f"""
CREATE TEMP TABLE $owner AS
SELECT own_session, min(own_user) AS own_user, min_by(user_id, own_user) AS user_id FROM (
    SELECT own_session, own_user, user_id FROM $page WHERE rule_no = 0
    UNION ALL SELECT {hashed_or_null("session_id")}, {hashed_or_null("user_id")}, user_id FROM $event)
WHERE own_session IS NOT NULL AND own_user IS NOT NULL GROUP BY own_session
"""

_STREAM = """
CREATE TEMP TABLE $cut AS
SELECT kind, id, coalesce(last_value(coalesce(mark, CASE WHEN begins THEN fresh END) IGNORE NULLS) OVER (
    PARTITION BY "user" ORDER BY instant, kind, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), fresh) AS session
FROM (SELECT *, $fresh AS fresh, mark IS NULL AND coalesce(
        instant - lag(instant) OVER (PARTITION BY "user" ORDER BY instant, kind, id) > $gap, true) AS begins
    FROM (SELECT 0 AS kind, serp AS id, "user", time_ms AS instant, session AS mark FROM $page WHERE rule_no = 0
        UNION ALL SELECT CASE WHEN serp IS NULL THEN 1 ELSE 2 END, event, "user", time_ms,
            CASE WHEN serp IS NULL THEN session END FROM $act WHERE rule_no = 0)
    WHERE "user" IN (
        SELECT "user" FROM $page WHERE rule_no = 0 AND session IS NULL
        UNION ALL SELECT "user" FROM $act WHERE rule_no = 0 AND serp IS NULL AND session IS NULL))
"""

_LOOSE = f"""
CREATE TEMP TABLE $loose AS
SELECT event, coalesce(own_user, owner, {_SESSION_ALONE}, {hashed("event", "1")}) AS "user",
    own_session, named, coalesce(own_user, owner) IS NULL AS nobody
FROM (SELECT a.event, e.own_user, e.own_session, e.named, o.own_user AS owner
    FROM (SELECT event FROM $act WHERE odd AND rule_no = 0) AS a
    JOIN (SELECT {KEY} AS event, {hashed_or_null("query_id")} AS named, {hashed_or_null("session_id")} AS own_session,
        {hashed_or_null("user_id")} AS own_user FROM $event) AS e ON a.event = e.event
    LEFT JOIN $owner AS o ON e.own_session = o.own_session)
"""

_SESSIONS = """
CREATE TEMP VIEW $session AS
SELECT session, p.session_id, p."user", p.user_id, least(p.first, e.first) AS start_ms,
    greatest(p.last, e.last) AS end_ms, n_serps, coalesce(n_events, 0) AS n_events
FROM (SELECT session, any_value("user") AS "user", any_value(session_id) AS session_id, any_value(user_id) AS user_id,
        min(time_ms) AS first, max(time_ms) AS last, count(*) AS n_serps
    FROM $page WHERE rule_no = 0 GROUP BY session) AS p
LEFT JOIN (SELECT session, min(time_ms) AS first, max(time_ms) AS last, count(*) AS n_events
    FROM $act WHERE rule_no = 0 GROUP BY session) AS e USING (session)
"""

_PAGELESS = f"""
UNION ALL SELECT session, e.session_id, "user", coalesce(e.user_id, o.user_id), first, last, 0, n_events
FROM (SELECT session, any_value("user") AS "user", min(time_ms) AS first, max(time_ms) AS last, count(*) AS n_events,
        min(event) AS event
    FROM $act WHERE odd AND rule_no = 0 AND session NOT IN (SELECT session FROM $page WHERE rule_no = 0)
    GROUP BY session) AS s
LEFT JOIN (SELECT {KEY} AS event, nullif(session_id, '') AS session_id, nullif(user_id, '') AS user_id,
        {hashed_or_null("session_id")} AS own_session FROM $event) AS e ON s.event = e.event
LEFT JOIN $owner AS o ON e.own_session = o.own_session AND s."user" = o.own_user
"""


def identify_pages(work: Work) -> None:
    """Give each page its user; and its session, where the log names one."""
    gaps = work.one("""
        SELECT count(*) FILTER (own_session IS NULL OR own_user IS NULL) AS missing FROM $page WHERE rule_no = 0""")
    if not gaps["missing"]:
        return
    work.run(_TOLD)
    work.run("""
        UPDATE $page SET own_session = coalesce($page.own_session, one.own_session),
            own_user = coalesce($page.own_user, one.own_user), user_id = coalesce($page.user_id, one.user_id),
            session_id = coalesce($page.session_id, one.session_id)
        FROM $told AS one WHERE $page.named = one.named AND ($page.own_session IS NULL OR $page.own_user IS NULL)""")
    _owners(work)
    work.run("""
        UPDATE $page SET own_user = one.own_user, user_id = one.user_id FROM $owner AS one
        WHERE $page.own_session = one.own_session AND $page.own_user IS NULL""")
    work.run(
        """UPDATE $page SET "user" = coalesce(own_user, $session_alone, $page_alone),
            session = CASE WHEN own_session IS NOT NULL THEN $session WHEN own_user IS NULL THEN $page_alone END
        WHERE "user" IS NULL OR session IS NULL""",
        session_alone=_SESSION_ALONE, page_alone=hashed("serp", "2"),
        session=hashed(f"coalesce(own_user, {_SESSION_ALONE})", "own_session"),
    )  # fmt: skip


def _owners(work: Work) -> None:
    """Find the users of sessions, for what names a session and nobody."""
    if not work.run("SELECT 1 FROM duckdb_tables() WHERE table_name = '$owner'"):
        work.run(_OWNERS)


def identify_events(work: Work) -> int:
    """Give each event its user and session, and each page its session; give how many events have no user.

    An event takes after its page, whatever else it says. Whatever has no session is put into the last one of its user,
    or begins a new one after so long a pause.
    """
    nobody = 0
    if work.one("SELECT count(*) AS n FROM $act WHERE odd AND rule_no = 0")["n"]:
        _owners(work)
        work.run(_LOOSE)
        work.run("""
            UPDATE $act SET "user" = one."user", session = CASE WHEN one.own_session IS NOT NULL THEN $session
                WHEN one.nobody THEN one."user" END
            FROM $loose AS one WHERE $act.event = one.event""",
            session=hashed('one."user"', "one.own_session"))  # fmt: skip
        nobody = work.one("SELECT count(*) FILTER (nobody) AS n FROM $loose")["n"]
    cut = """SELECT (SELECT count(*) FROM $page WHERE rule_no = 0 AND session IS NULL)
        + (SELECT count(*) FROM $act WHERE rule_no = 0 AND session IS NULL AND serp IS NULL) AS n"""
    if work.one(cut)["n"]:
        work.run(_STREAM, gap=work.gap_ms, fresh=hashed('"user"', "kind", "id"))
        work.run(
            "UPDATE $page SET session = c.session FROM $cut AS c WHERE kind = 0 AND serp = id AND $page.session IS NULL"
        )
        work.run(
            "UPDATE $act SET session = c.session FROM $cut AS c WHERE kind = 1 AND event = id AND $act.session IS NULL"
        )
        work.run("""UPDATE $act SET session = p.session FROM $page AS p
            WHERE $act.serp = p.serp AND $act.session IS NULL""")  # fmt: skip
    return nobody


def make_sessions(work: Work) -> None:
    """Make the view ``session``: one row each, with what was in it. Counting all events by session is for who asks."""
    pageless = work.one("SELECT count(*) AS n FROM $act WHERE odd AND rule_no = 0")["n"]
    work.run(_SESSIONS + _PAGELESS if pageless else _SESSIONS)
