"""Users and sessions of pages and events without logged IDs, and a summary of the raw events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.online.engine import sql_list
from judged.online.log import ACTIONS, NAMES, action_of
from judged.online.preparation.work import KEY, SCRIPTED, Work, hashed, hashed_or_null

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_RARE_FACTOR = 10
"""An application counts from 0 if position 0 is at least a tenth as frequent as position 1."""

_MAX_LISTED = 8
"""Maximum number of listed actions and applications: a log may have a million, if they contain an ID."""

_TALLY = """
CREATE TEMP TABLE $tally AS
SELECT application, action, count(*) AS rows, count(position) AS placed, count(*) FILTER (position = 0) AS zeros,
    count(*) FILTER (position = 1) AS ones, count(dwell_ms) AS dwelling, count(*) FILTER ($scripted) AS programs,
    count(propensity) AS propensities, count(value) AS "values"
FROM $event GROUP BY ALL
"""

_NORMALIZED_ACTION = "regexp_replace(lower(action), '[^a-z0-9]', '', 'g')"

_KNOWN_ACTIONS = f"""
SELECT action, sum(rows)::BIGINT AS rows, sum(dwelling)::BIGINT AS dwelling FROM $tally
WHERE action IN $log_names OR {_NORMALIZED_ACTION} IN $normalized_names GROUP BY action ORDER BY rows DESC, action
"""

_APPLICATIONS = f"""
CREATE TEMP TABLE $dialect AS
SELECT *, coalesce($base, CASE WHEN zeros = 0 OR zeros * {_RARE_FACTOR} < ones THEN 1 ELSE 0 END) AS base
FROM (SELECT application, sum(placed)::BIGINT AS placed, sum(zeros)::BIGINT AS zeros, sum(ones)::BIGINT AS ones
    FROM $tally GROUP BY application HAVING sum(placed) > 0)
"""


@dataclass(frozen=True)
class EventSummary:
    """Summary of the raw events. Its size does not depend on the number of names in the log.

    Parameters
    ----------
    rows
        Number of events.
    bases
        First positions of the applications, sorted; empty if no event has a position.
    placed, from_zero
        Events with a position, and events with a position of applications that count from 0.
    counting
        Description of the first positions of the largest applications; the table ``dialect`` has all.
    meanings
        Known actions by their names in the log, the most frequent first.
    unknown, unknown_names
        Number of events with unknown action names, and the most frequent of these names.
    programs, propensities, values
        Number of events from programs, with a propensity, and with a value.
    dwell_is_page_age
        Whether most events that do not open a result have a dwell time too, which is then the age of the page or
        session.
    dwelling
        Number of events with a dwell time.
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
    dwell_is_page_age: bool
    dwelling: int

    @property
    def extras(self) -> tuple[str, ...]:
        """Optional columns that the log has: a column of nulls is as expensive as any other."""
        dwell_count = 0 if self.dwell_is_page_age else self.dwelling
        counts = (("dwell_ms", dwell_count), ("value", self.values), ("propensity", self.propensities))
        return tuple(name for name, count in counts if count)


_OPENING = frozenset({"click", "heartbeat", "page_exit"})
"""Actions that can have a dwell time."""


def summarize_events(work: Work, actions: Mapping[str, str]) -> EventSummary:
    """Summarize the raw events in one pass, by application and action."""
    work.run(_TALLY, scripted=SCRIPTED)
    sums = work.row("""
        SELECT sum(rows) AS rows, sum(dwelling) AS dwelling, sum(programs) AS programs,
            sum(propensities) AS propensities, sum("values") AS "values" FROM $tally""")
    rows, dwelling, programs, propensities, values = (int(value or 0) for value in sums.values())
    synonyms = {name.replace("_", "") for name in (*ACTIONS, *" ".join(NAMES.values()).split())}
    # Only names that could be known leave the database, as a log may have millions of action names.
    candidates = work.run(_KNOWN_ACTIONS, log_names=sql_list(actions), normalized_names=sql_list(synonyms))
    known_actions = [
        (action, count, dwell) for action, count, dwell in candidates if action and action_of(action, actions)
    ]
    opening = [(count, dwell) for action, count, dwell in known_actions if action_of(action, actions) in _OPENING]
    other = rows - sum(count for count, _ in opening)
    other_dwelling = dwelling - sum(dwell for _, dwell in opening)
    return EventSummary(
        rows=rows,
        **_bases(work),
        meanings={action: meaning for action, _, _ in known_actions if (meaning := action_of(action, actions))},
        **_unknown(work, [action for action, _, _ in known_actions]),
        programs=programs,
        propensities=propensities,
        values=values,
        dwell_is_page_age=other_dwelling > 0 and 2 * other_dwelling >= other,
        dwelling=dwelling,
    )


def _unknown(work: Work, known_names: Iterable[str]) -> dict[str, Any]:
    work.run(
        """CREATE TEMP TABLE $unknown AS SELECT coalesce(nullif(action, ''), '(none)') AS name, sum(rows)::BIGINT AS n
        FROM $tally WHERE NOT coalesce(action IN $known, false) GROUP BY name""",
        known=sql_list(known_names),
    )
    rows, names = work.run("SELECT coalesce(sum(n), 0)::BIGINT, count(*) FROM $unknown")[0]
    largest = work.run("SELECT name, n FROM $unknown ORDER BY n DESC, name LIMIT $limit", limit=_MAX_LISTED)
    listed = ", ".join(f"{name} {count:,}" for name, count in largest)
    omitted = names - len(largest)
    return {"unknown": rows, "unknown_names": listed + (f" and {omitted:,} more" if omitted else "")}


def _bases(work: Work) -> dict[str, Any]:
    """Create the table ``dialect`` with a row per application with positions, and summarize it."""
    # The option takes precedence over the layout; None: detected for each application.
    rank_base = work.choices.rank_base if work.choices.rank_base is not None else work.raw.rank_base
    work.run(_APPLICATIONS, base="NULL" if rank_base is None else rank_base)
    sums = work.run("SELECT base, count(*), sum(placed)::BIGINT FROM $dialect GROUP BY base ORDER BY base")
    largest = work.run(
        """SELECT application, base, placed, zeros, ones
        FROM (FROM $dialect ORDER BY placed DESC, application NULLS FIRST LIMIT $limit)
        ORDER BY application NULLS FIRST""",
        limit=_MAX_LISTED,
    )
    omitted = sum(count for _, count, _ in sums) - len(largest)
    descriptions = [_describe_base(*application, is_set=rank_base is not None) for application in largest]
    return {
        "bases": tuple(base for base, _, _ in sums),
        "placed": sum(placed for _, _, placed in sums),
        "from_zero": sum(placed for base, _, placed in sums if base == 0),
        "counting": "; ".join([*descriptions, *([f"{omitted:,} more"] if omitted else [])]),
    }


def _describe_base(application: str | None, base: int, placed: int, zeros: int, ones: int, *, is_set: bool) -> str:
    """Describe the first position of an application, and whether it is certain."""
    # Few positions, or positions 0 in a log that counts from 1, may be errors.
    is_certain = is_set or (zeros + ones >= _RARE_FACTOR and not (base and zeros))
    name = application or "events without an application"
    note = "" if is_certain else ", uncertain"
    return f"{name}: positions start at {base} ({zeros:,} of {placed:,} are 0, {ones:,} are 1{note})"


_SESSION_ALONE = f"CASE WHEN own_session IS NOT NULL THEN {hashed('own_session', '0')} END"
"""Key of the user of a session without a user ID: the session. It is null without a session ID, since the hash of null
would be the same for all."""

_FIRST_EVENT = f"""
CREATE TEMP TABLE $first_event AS
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

_SPLIT_BY_GAP = """
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

_EVENTS_WITHOUT_PAGE = f"""
CREATE TEMP TABLE $loose AS
SELECT event, coalesce(own_user, owner, {_SESSION_ALONE}, {hashed("event", "1")}) AS "user",
    own_session, named, coalesce(own_user, owner) IS NULL AS no_user
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

_SESSIONS_WITHOUT_PAGES = f"""
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
    """Assign users, and sessions if the log has session IDs, to pages."""
    gaps = work.row("""
        SELECT count(*) FILTER (own_session IS NULL OR own_user IS NULL) AS missing FROM $page WHERE rule_no = 0""")
    if not gaps["missing"]:
        return
    # First by the events of the page, then by other rows of the session, and at last by the page itself.
    work.run(_FIRST_EVENT)
    work.run("""
        UPDATE $page SET own_session = coalesce($page.own_session, e.own_session),
            own_user = coalesce($page.own_user, e.own_user), user_id = coalesce($page.user_id, e.user_id),
            session_id = coalesce($page.session_id, e.session_id)
        FROM $first_event AS e WHERE $page.named = e.named AND ($page.own_session IS NULL OR $page.own_user IS NULL)""")
    _create_owners(work)
    work.run("""
        UPDATE $page SET own_user = e.own_user, user_id = e.user_id FROM $owner AS e
        WHERE $page.own_session = e.own_session AND $page.own_user IS NULL""")
    work.run(
        """UPDATE $page SET "user" = coalesce(own_user, $session_alone, $page_alone),
            session = CASE WHEN own_session IS NOT NULL THEN $session WHEN own_user IS NULL THEN $page_alone END
        WHERE "user" IS NULL OR session IS NULL""",
        session_alone=_SESSION_ALONE, page_alone=hashed("serp", "2"),
        session=hashed(f"coalesce(own_user, {_SESSION_ALONE})", "own_session"),
    )  # fmt: skip


def _create_owners(work: Work) -> None:
    """Create the table of the users of sessions, for rows with a session ID but no user ID."""
    if not work.run("SELECT 1 FROM duckdb_tables() WHERE table_name = '$owner'"):
        work.run(_OWNERS)


def identify_events(work: Work) -> int:
    """Assign users and sessions to events, and sessions to pages; return the number of events without a user.

    The user and session of the page take precedence over those of the event. Rows without a session ID belong to the
    last session of the user, or begin a new one after a gap.
    """
    no_user = 0
    if work.row("SELECT count(*) AS n FROM $act WHERE odd AND rule_no = 0")["n"]:
        _create_owners(work)
        work.run(_EVENTS_WITHOUT_PAGE)
        work.run("""
            UPDATE $act SET "user" = e."user", session = CASE WHEN e.own_session IS NOT NULL THEN $session
                WHEN e.no_user THEN e."user" END
            FROM $loose AS e WHERE $act.event = e.event""",
            session=hashed('e."user"', "e.own_session"))  # fmt: skip
        no_user = work.row("SELECT count(*) FILTER (no_user) AS n FROM $loose")["n"]
    # Splitting all rows of a user by gaps is expensive, so it runs only if needed.
    unassigned = """SELECT (SELECT count(*) FROM $page WHERE rule_no = 0 AND session IS NULL)
        + (SELECT count(*) FROM $act WHERE rule_no = 0 AND session IS NULL AND serp IS NULL) AS n"""
    if work.row(unassigned)["n"]:
        work.run(_SPLIT_BY_GAP, gap=work.gap_ms, fresh=hashed('"user"', "kind", "id"))
        work.run(
            "UPDATE $page SET session = c.session FROM $cut AS c WHERE kind = 0 AND serp = id AND $page.session IS NULL"
        )
        work.run(
            "UPDATE $act SET session = c.session FROM $cut AS c WHERE kind = 1 AND event = id AND $act.session IS NULL"
        )
        work.run("""UPDATE $act SET session = p.session FROM $page AS p
            WHERE $act.serp = p.serp AND $act.session IS NULL""")  # fmt: skip
    return no_user


def make_sessions(work: Work) -> None:
    """Create the view ``session``, a row each. It is lazy, since counting all events by session is expensive."""
    pageless = work.row("SELECT count(*) AS n FROM $act WHERE odd AND rule_no = 0")["n"]
    work.run(_SESSIONS + _SESSIONS_WITHOUT_PAGES if pageless else _SESSIONS)
