"""Logged events into the typed ones: joined to their pages once, ranked from 1, what is wrong noted beside them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier, literal
from judged.online.log import ACTIONS
from judged.online.preparation.work import DAY, KEY, SCRIPTED, hashed, hashed_or_null, most_on_a_page

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    from judged.online.preparation.identity import Peek
    from judged.online.preparation.work import Work

RULES = ("", "odd-time", "future-time", "bot", "duplicate-event")
"""Rules that leave an event out, by the number in the column ``rule_no``."""

_ODD, _FUTURE, _BOT, _DUPLICATE = range(1, 5)

LINKS = ("no-query-id", "", "excluded-page", "unknown-query-id")
"""What became of the page that an event names, by the number in the column ``link``; 1: it is on it."""

SKEWED, DISAGREES, BEYOND, NEGATIVE, ABSENT = 1, 2, 4, 8, 16
"""Bits of the column ``notes``."""

_NAMES = frozenset({"file", "row", "event_id"})
"""Columns in which equal events may differ."""

_PARTS = 20_000_000
"""So many events are searched for duplicates at a time: 160 MB of keys."""

_FAR = 1_000_000_000
_POSITION = f"(CASE WHEN position > {_FAR} THEN {_FAR} WHEN position < -{_FAR} THEN -{_FAR} ELSE position END)::INTEGER"
"""Positions are cut at a billion: an INTEGER has to hold what comes of adding to them."""

_HOMES = """
CREATE TEMP $kind $home AS
SELECT named, serp, session, "user", time_ms, hits, ranks, n_returned, first_rank, 0 AS rule_no
FROM $page WHERE rule_no = 0
"""

_STRAYS = """
INSERT INTO $home SELECT named, NULL, NULL, any_value("user"), NULL, NULL, NULL, NULL, 1, min(rule_no)
FROM $page WHERE rule_no <> 0 AND named IS NOT NULL AND query_id <> '' AND named NOT IN (SELECT named FROM $home)
GROUP BY named
"""

_ACTS = f"""
CREATE TEMP TABLE $act AS
SELECT event, serp, session, "user", time_ms, action, object_id,
    CASE WHEN place > 0 AND listed IS NOT NULL THEN listed WHEN logged >= first_rank THEN logged
        WHEN logged >= 1 THEN first_rank - 1 + logged END::INTEGER AS rank$extras, link, rule_no, odd,
    (CASE WHEN time_ms < page_ms THEN {SKEWED} ELSE 0 END
        + CASE WHEN place > 0 AND logged <> listed AND logged <> listed - first_rank + 1 THEN {DISAGREES} ELSE 0 END
        + CASE WHEN place <= 0 AND logged > coalesce(list_max(ranks), first_rank - 1 + n_returned) THEN {BEYOND} ELSE 0
            END
        + CASE WHEN logged < 1 THEN {NEGATIVE} ELSE 0 END
        + CASE WHEN place = 0 THEN {ABSENT} ELSE 0 END)::TINYINT AS notes
FROM (SELECT *, CASE WHEN ranks IS NULL THEN first_rank - 1 + place ELSE ranks[place] END AS listed
FROM (SELECT event, h.serp, h.session, h."user", e.time_ms, action, object_id$extras, logged,
        h.time_ms AS page_ms, n_returned, first_rank, ranks,
        CASE WHEN hits IS NULL THEN NULL WHEN object_id IS NULL THEN -1
            WHEN ranks IS NULL AND logged >= first_rank AND hits[logged - first_rank + 1] = thing
                THEN logged - first_rank + 1
            WHEN ranks IS NULL AND logged >= 1 AND hits[logged] = thing THEN logged
            WHEN hits[list_position(ranks, logged)] = thing THEN list_position(ranks, logged)
            ELSE coalesce(list_position(hits, thing), 0) END AS place,
        (CASE WHEN h.serp IS NOT NULL THEN 1 WHEN e.named IS NULL THEN 0 WHEN h.rule_no > 0 THEN 2 ELSE 3 END
            )::TINYINT AS link,
        (CASE WHEN e.rule_no > 0 THEN e.rule_no $robots ELSE 0 END)::TINYINT AS rule_no,
        h.serp IS NULL AS odd
    FROM (SELECT {KEY} AS event, {hashed_or_null("query_id")} AS named$owner, $time AS time_ms, $meaning AS action,
            nullif(object_id, '') AS object_id, (hash(object_id) & 4294967295)::UINTEGER AS thing$extras,
            {_POSITION} + $offset AS logged,
            CASE WHEN time_ms IS NULL AND $timed THEN {_ODD} WHEN time_ms > $future AND $timed THEN {_FUTURE}
                WHEN $scripted THEN {_BOT} ELSE 0 END AS rule_no
        FROM $event) AS e
    LEFT JOIN $home AS h ON e.named = h.named))
"""


_BEHIND = f"""
CREATE TEMP TABLE $behind AS
SELECT serp, min(shift)::INTEGER AS shift FROM (
    SELECT serp, object_id, n_returned, logged, logged - list_position(hits, thing) AS shift FROM (
        SELECT p.serp, a.object_id, p.n_returned, p.hits, (hash(a.object_id) & 4294967295)::UINTEGER AS thing, logged
        FROM (SELECT serp, event, object_id FROM $act WHERE rule_no = 0 AND serp IN (
            SELECT serp FROM $act WHERE rule_no = 0 AND notes & {DISAGREES} > 0)) AS a
        JOIN $page AS p ON a.serp = p.serp
        JOIN (SELECT {KEY} AS event, {_POSITION} + $offset AS logged FROM $event) AS e ON a.event = e.event
        WHERE p.unplaced))
GROUP BY serp
HAVING min(shift) = max(shift) AND min(shift) > 0 AND (count(DISTINCT object_id) > 1 OR min(logged) > min(n_returned))
"""


def make_events(work: Work, seen: Peek) -> None:
    """Make the table ``act``: a row for each logged event, what is left out marked in the column ``rule_no``."""
    left_out = work.one("SELECT count(*) FILTER (rule_no NOT IN (0, 4, 5)) AS n FROM $page")["n"]
    strays = left_out or _facets_alone(work)
    with _meanwhile(work, hashed("event_id"), "event_id <> ''", seen.rows) as named_twice:
        _make_acts(work, seen, strays=bool(strays))
        if _first_ranks_told(work, seen):
            work.run("DROP TABLE $act")
            work.run(f"DROP {_kept(bool(strays))} $home")
            _make_acts(work, seen, strays=bool(strays))
        exclude_duplicates(work, seen.rows, *named_twice.result())


def _kept(strays: bool) -> str:
    return "TABLE" if strays else "VIEW"  # a view costs nothing


def _first_ranks_told(work: Work, seen: Peek) -> int:
    """Let positions say where pages begin that do not say it themselves; give how many pages they say it of.

    They do where all positions on a page are as far behind the places in its list: of two results or more, or at one
    behind the end of the list, where nothing in the list can have stood but on a later page.
    """
    work.run(_BEHIND, offset=_offsets(work, seen))
    work.run(
        """
        UPDATE $page SET first_rank = shift + 1, page = shift // $most + 1 FROM $behind AS b
        WHERE $page.serp = b.serp""",
        most=most_on_a_page(work),
    )
    return work.one("SELECT count(*) AS n FROM $behind")["n"]


def _make_acts(work: Work, seen: Peek, *, strays: bool) -> None:
    work.run(_HOMES, kind=_kept(strays))
    if strays:
        work.run(_STRAYS)
    excluded = work.choices.bots == "exclude"
    robots = f"""WHEN h."user" IN (FROM $robot) OR e.own_user IN (FROM $robot) THEN {_BOT}"""
    some = excluded and work.one("SELECT count(*) AS n FROM $robot")["n"]
    work.run(
        _ACTS,
        robots=work.written(robots) if some else "",
        owner=f", {hashed_or_null('user_id')} AS own_user" if some else "",
        scripted=SCRIPTED if excluded and seen.programs else "false",
        timed=str(work.raw.has_time).lower(),
        time="time_ms" if work.raw.has_time else "coalesce(time_ms, row)",
        meaning=_meanings(seen),
        offset=_offsets(work, seen),
        extras="".join(f", {name}" for name in seen.extras),
        future=work.choices.now_ms + DAY,
    )
    work.run("UPDATE $act SET time_ms = 0 WHERE time_ms IS NULL")


def _facets_alone(work: Work) -> bool:
    return bool(
        work.one("""SELECT count(*) AS n FROM (SELECT named FROM $page WHERE rule_no = 4
        EXCEPT SELECT named FROM $page WHERE rule_no = 0)""")["n"]
    )


def _meanings(seen: Peek) -> str:
    """Write what an action means: only names that mean something need a branch."""
    kinds = ", ".join(map(literal, ACTIONS))
    cases = "".join(
        f" WHEN {literal(name)} THEN {literal(action)}::ENUM({kinds})" for name, action in seen.meanings.items()
    )
    other = f"'other'::ENUM({kinds})"
    return f"(CASE action{cases} ELSE {other} END)" if cases else other


def _offsets(work: Work, seen: Peek) -> str:
    """Write what is added to a position so that it starts at 1."""
    if len(seen.bases) <= 1:
        return str(1 - next(iter(seen.bases), 1))
    name = "coalesce('=' || application, '')"  # no application is one too
    return work.written(f"(CASE WHEN {name} IN (SELECT {name} FROM $dialect WHERE base = 0) THEN 1 ELSE 0 END)")


def exclude_duplicates(work: Work, rows: int, count: int, named: list[int]) -> None:
    """Mark events that stand in the log twice: under the same event_id, or, without one, equal as whole records.

    Records are compared by our columns first, and those few that are equal in them by all that the log says of them.
    Without a clock, equal rows prove nothing: two clicks on one result look alike. Nor do equal rows of an action that
    means nothing here.
    """
    if named:
        _mark(work, named, hashed("event_id"), "event_id <> ''", "event_id")
    if work.raw.has_time and count < rows:
        every = ", ".join(identifier(name) for name in work.raw.events.columns if name not in _NAMES | {"record"})
        nameless = "(event_id IS NULL OR event_id = '')"
        _, equal = _twice(work, work.engine.con, hashed(every), nameless, rows)
        if equal:
            _mark(work, equal, hashed(every), nameless, f"{every}, record", "AND action <> 'other'")


@contextmanager
def _meanwhile(work: Work, key: str, where: str, rows: int) -> Generator[Future[tuple[int, list[int]]]]:
    """Run `_twice` beside the database's other work; if that fails, nobody waits for it."""
    with work.engine.con.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(_twice, work, cursor, key, where, rows)
        except BaseException:
            cursor.interrupt()
            raise


def _twice(work: Work, con: Any, key: str, where: str, rows: int) -> tuple[int, list[int]]:
    """Count keys, and find those that occur more than once: sorting numbers is several times cheaper than grouping."""
    import numpy as np

    count, found = 0, list[int]()
    parts = rows // _PARTS + 1
    for part in range(parts):
        one_part = f"WHERE one % {parts} = {part}" if parts > 1 else ""
        sql = work.written(
            "SELECT one FROM (SELECT $key AS one FROM $event WHERE $where) $one_part",
            key=key, where=where, one_part=one_part,
        )  # fmt: skip
        keys = np.sort(con.execute(sql).fetchnumpy()["one"])
        count += len(keys)
        found += np.unique(keys[1:][keys[1:] == keys[:-1]]).tolist()
    return count, found


def _mark(work: Work, keys: list[int], key: str, where: str, equal: str, known: str = "") -> None:
    """Mark all but the first of what is equal, among events that no other rule leaves out."""
    import pyarrow as pa

    con = work.engine.con
    name = f"twice_{work.mark}"
    con.register(name, pa.table({"key": pa.array(keys, pa.int64())}))
    work.run(
        f"""
        UPDATE $act SET rule_no = {_DUPLICATE} FROM (
            SELECT event, row_number() OVER (PARTITION BY $equal ORDER BY event) AS nth FROM (
                SELECT {KEY} AS event, $equal FROM $event
                WHERE $where AND $key IN (SELECT key FROM $twice)
                    AND {KEY} IN (SELECT event FROM $act WHERE rule_no = 0 $known))) AS one
        WHERE nth > 1 AND one.event = $act.event""",
        equal=equal, where=where, key=key, twice=name, known=known,
    )  # fmt: skip
    con.unregister(name)
