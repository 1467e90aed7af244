"""Typed events: joined to their pages, ranked from 1, with problems in the column ``notes``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier, literal
from judged.online.log import ACTIONS
from judged.online.preparation.work import DAY, KEY, SCRIPTED, hashed, hashed_or_null, longest_list

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    from judged.online.preparation.identity import EventSummary
    from judged.online.preparation.work import Work

RULES = ("", "odd-time", "future-time", "bot", "duplicate-event")
"""Rules that exclude an event, indexed by the column ``rule_no``."""

_ODD, _FUTURE, _BOT, _DUPLICATE = range(1, 5)

LINKS = ("no-query-id", "", "excluded-page", "unknown-query-id")
"""Problems of the reference to a page, indexed by the column ``link``; 1: no problem."""

SKEWED, DISAGREES, BEYOND, NEGATIVE, ABSENT, AT_PAGE_TIME = 1, 2, 4, 8, 16, 32
"""Bits of the column ``notes``."""

_VARYING_COLUMNS = frozenset({"file", "row", "event_id"})
"""Columns that may differ between duplicates."""

_PART_SIZE = 20_000_000
"""Number of events that are searched for duplicates at a time: 160 MB of keys."""

_MAX = 1_000_000_000
_POSITION = f"(CASE WHEN position > {_MAX} THEN {_MAX} WHEN position < -{_MAX} THEN -{_MAX} ELSE position END)::INTEGER"
"""Positions are clipped at a billion, so that adding to them does not overflow an INTEGER."""

_PAGES_BY_KEY = """
CREATE TEMP $kind $home AS
SELECT named, serp, session, "user", time_ms, hits, ranks, n_returned, first_rank, 0 AS rule_no
FROM $page WHERE rule_no = 0
"""

_EXCLUDED_PAGES = """
INSERT INTO $home SELECT named, NULL, NULL, any_value("user"), NULL, NULL, NULL, NULL, 1, min(rule_no)
FROM $page WHERE rule_no <> 0 AND named IS NOT NULL AND query_id <> '' AND named NOT IN (SELECT named FROM $home)
GROUP BY named
"""

_TYPED_EVENTS = f"""
CREATE TEMP TABLE $act AS
SELECT event, serp, session, "user", time_ms, action, object_id,
    CASE WHEN place > 0 AND listed IS NOT NULL THEN listed WHEN logged >= first_rank THEN logged
        WHEN logged >= 1 THEN first_rank - 1 + logged END::INTEGER AS rank$extras, link, rule_no, odd,
    (CASE WHEN time_ms < page_ms THEN {SKEWED} ELSE 0 END
        + CASE WHEN place > 0 AND logged <> listed AND logged <> listed - first_rank + 1 THEN {DISAGREES} ELSE 0 END
        + CASE WHEN place <= 0 AND logged > coalesce(list_max(ranks), first_rank - 1 + n_returned) THEN {BEYOND} ELSE 0
            END
        + CASE WHEN logged < 1 THEN {NEGATIVE} ELSE 0 END
        + CASE WHEN place = 0 THEN {ABSENT} ELSE 0 END
        + CASE WHEN time_ms = page_ms THEN {AT_PAGE_TIME} ELSE 0 END)::TINYINT AS notes
FROM (SELECT *, CASE WHEN ranks IS NULL THEN first_rank - 1 + place ELSE ranks[place] END AS listed
FROM (SELECT event, h.serp, h.session, h."user", e.time_ms, action, object_id$extras, logged,
        h.time_ms AS page_ms, n_returned, first_rank, ranks,
        CASE WHEN hits IS NULL THEN NULL WHEN object_id IS NULL THEN -1
            WHEN ranks IS NULL AND logged >= first_rank AND hits[logged - first_rank + 1] = object_hash
                THEN logged - first_rank + 1
            WHEN ranks IS NULL AND logged >= 1 AND hits[logged] = object_hash THEN logged
            WHEN hits[list_position(ranks, logged)] = object_hash THEN list_position(ranks, logged)
            ELSE coalesce(list_position(hits, object_hash), 0) END AS place,
        (CASE WHEN h.serp IS NOT NULL THEN 1 WHEN e.named IS NULL THEN 0 WHEN h.rule_no > 0 THEN 2 ELSE 3 END
            )::TINYINT AS link,
        (CASE WHEN e.rule_no > 0 THEN e.rule_no $robots ELSE 0 END)::TINYINT AS rule_no,
        h.serp IS NULL AS odd
    FROM (SELECT {KEY} AS event, {hashed_or_null("query_id")} AS named$owner, $time AS time_ms, $meaning AS action,
            nullif(object_id, '') AS object_id, (hash(object_id) & 4294967295)::UINTEGER AS object_hash$extras,
            {_POSITION} + $offset AS logged,
            CASE WHEN time_ms IS NULL AND $timed THEN {_ODD} WHEN time_ms > $future AND $timed THEN {_FUTURE}
                WHEN $scripted THEN {_BOT} ELSE 0 END AS rule_no
        FROM $event) AS e
    LEFT JOIN $home AS h ON e.named = h.named))
"""


_SHIFTED_PAGES = f"""
CREATE TEMP TABLE $behind AS
SELECT serp, min(shift)::INTEGER AS shift FROM (
    SELECT serp, object_id, n_returned, logged, logged - list_position(hits, object_hash) AS shift FROM (
        SELECT p.serp, a.object_id, p.n_returned, p.hits, logged,
            (hash(a.object_id) & 4294967295)::UINTEGER AS object_hash
        FROM (SELECT serp, event, object_id FROM $act WHERE rule_no = 0 AND serp IN (
            SELECT serp FROM $act WHERE rule_no = 0 AND notes & {DISAGREES} > 0)) AS a
        JOIN $page AS p ON a.serp = p.serp
        JOIN (SELECT {KEY} AS event, {_POSITION} + $offset AS logged FROM $event) AS e ON a.event = e.event
        WHERE p.unplaced))
GROUP BY serp
HAVING min(shift) = max(shift) AND min(shift) > 0 AND (count(DISTINCT object_id) > 1 OR min(logged) > min(n_returned))
"""


def make_events(work: Work, summary: EventSummary) -> None:
    """Create the table ``act``: a row per logged event, with excluded events marked in ``rule_no``."""
    excluded = work.row("SELECT count(*) FILTER (rule_no NOT IN (0, 4, 5)) AS n FROM $page")["n"]
    has_excluded_pages = excluded or _has_pages_of_facets_only(work)
    # Hashing and sorting event IDs uses another core than the joins below.
    with _duplicates_in_background(work, hashed("event_id"), "event_id <> ''", summary.rows) as duplicate_ids:
        _create_events(work, summary, has_excluded_pages=bool(has_excluded_pages))
        # New first ranks change the ranks of events, which are then computed again.
        if _infer_first_ranks(work, summary):
            work.run("DROP TABLE $act")
            work.run(f"DROP {_storage_kind(bool(has_excluded_pages))} $home")
            _create_events(work, summary, has_excluded_pages=bool(has_excluded_pages))
        exclude_duplicates(work, summary.rows, *duplicate_ids.result())


def _storage_kind(has_excluded_pages: bool) -> str:
    return "TABLE" if has_excluded_pages else "VIEW"  # A view costs nothing if there are no rows to add.


def _infer_first_ranks(work: Work, summary: EventSummary) -> int:
    """Infer the first rank of pages without one from event positions; return the number of these pages.

    This requires that all positions on a page have the same offset from the places in its list, for at least two
    results, or for one position after the end of the list, which is only possible on a later page.
    """
    work.run(_SHIFTED_PAGES, offset=_offsets(work, summary))
    work.run(
        """
        UPDATE $page SET first_rank = shift + 1, page = shift // $page_size + 1 FROM $behind AS b
        WHERE $page.serp = b.serp""",
        page_size=longest_list(work),
    )
    return work.row("SELECT count(*) AS n FROM $behind")["n"]


def _create_events(work: Work, summary: EventSummary, *, has_excluded_pages: bool) -> None:
    work.run(_PAGES_BY_KEY, kind=_storage_kind(has_excluded_pages))
    if has_excluded_pages:
        work.run(_EXCLUDED_PAGES)
    excluded = work.choices.bots == "exclude"
    robots = f"""WHEN h."user" IN (FROM $robot) OR e.own_user IN (FROM $robot) THEN {_BOT}"""
    # Without bots, the joins with the table of robots are omitted.
    has_robots = excluded and work.row("SELECT count(*) AS n FROM $robot")["n"]
    work.run(
        _TYPED_EVENTS,
        robots=work.substitute(robots) if has_robots else "",
        owner=f", {hashed_or_null('user_id')} AS own_user" if has_robots else "",
        scripted=SCRIPTED if excluded and summary.programs else "false",
        timed=str(work.raw.has_time).lower(),
        time="time_ms" if work.raw.has_time else "coalesce(time_ms, row)",
        meaning=_meanings(summary),
        offset=_offsets(work, summary),
        extras="".join(f", {name}" for name in summary.extras),
        future=work.choices.now_ms + DAY,
    )
    # Without timestamps the column must not be null either.
    work.run("UPDATE $act SET time_ms = 0 WHERE time_ms IS NULL")


def _has_pages_of_facets_only(work: Work) -> bool:
    return bool(
        work.row("""SELECT count(*) AS n FROM (SELECT named FROM $page WHERE rule_no = 4
        EXCEPT SELECT named FROM $page WHERE rule_no = 0)""")["n"]
    )


def _meanings(summary: EventSummary) -> str:
    """Return SQL for the action of an event. Only known names need a branch."""
    kinds = ", ".join(map(literal, ACTIONS))
    cases = "".join(
        f" WHEN {literal(name)} THEN {literal(action)}::ENUM({kinds})" for name, action in summary.meanings.items()
    )
    other = f"'other'::ENUM({kinds})"
    return f"(CASE action{cases} ELSE {other} END)" if cases else other


def _offsets(work: Work, summary: EventSummary) -> str:
    """Return SQL for the number to add to a position so that positions start at 1."""
    if len(summary.bases) <= 1:
        return str(1 - next(iter(summary.bases), 1))
    name = "coalesce('=' || application, '')"  # events without an application form one too
    return work.substitute(f"(CASE WHEN {name} IN (SELECT {name} FROM $dialect WHERE base = 0) THEN 1 ELSE 0 END)")


def exclude_duplicates(work: Work, rows: int, count: int, keys_of_ids: list[int]) -> None:
    """Mark duplicate events: with the same event_id, or, without an ID, equal in all fields.

    Records are compared by the standard columns first, and only equal ones by all fields. Equal rows without
    timestamps, such as two clicks on a result, are not duplicates; equal rows of unknown actions are not marked either.
    """
    if keys_of_ids:
        _mark(work, keys_of_ids, hashed("event_id"), "event_id <> ''", "event_id")
    if work.raw.has_time and count < rows:
        names = [name for name in work.raw.events.columns if name not in _VARYING_COLUMNS | {"record"}]
        columns = ", ".join(map(identifier, names))
        without_id = "(event_id IS NULL OR event_id = '')"
        _, keys = _duplicate_keys(work, work.engine.con, hashed(columns), without_id, rows)
        if keys:
            _mark(work, keys, hashed(columns), without_id, f"{columns}, record", "AND action <> 'other'")


@contextmanager
def _duplicates_in_background(work: Work, key: str, where: str, rows: int) -> Generator[Future[tuple[int, list[int]]]]:
    """Run `_duplicate_keys` in parallel to other queries. If those fail, interrupt it."""
    with work.engine.con.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(_duplicate_keys, work, cursor, key, where, rows)
        except BaseException:
            cursor.interrupt()
            raise


def _duplicate_keys(work: Work, con: Any, key: str, where: str, rows: int) -> tuple[int, list[int]]:
    """Count keys, and return those that occur more than once. Sorting numbers is several times faster than grouping."""
    import numpy as np

    # Keys are split into parts by their remainder, so that equal keys are in the same part.
    count, duplicates = 0, list[int]()
    parts = rows // _PART_SIZE + 1
    for part in range(parts):
        part_filter = f"WHERE key % {parts} = {part}" if parts > 1 else ""
        sql = work.substitute(
            "SELECT key FROM (SELECT $key AS key FROM $event WHERE $where) $part_filter",
            key=key, where=where, part_filter=part_filter,
        )  # fmt: skip
        # After sorting, duplicates are adjacent.
        keys = np.sort(con.execute(sql).fetchnumpy()["key"])
        count += len(keys)
        duplicates += np.unique(keys[1:][keys[1:] == keys[:-1]]).tolist()
    return count, duplicates


def _mark(work: Work, keys: list[int], key: str, where: str, equal: str, condition: str = "") -> None:
    """Mark all but the first of equal events, among events that no other rule excludes."""
    import pyarrow as pa

    con = work.engine.con
    name = f"duplicates_{work.mark}"
    con.register(name, pa.table({"key": pa.array(keys, pa.int64())}))
    work.run(
        f"""
        UPDATE $act SET rule_no = {_DUPLICATE} FROM (
            SELECT event, row_number() OVER (PARTITION BY $equal ORDER BY event) AS nth FROM (
                SELECT {KEY} AS event, $equal FROM $event
                WHERE $where AND $key IN (SELECT key FROM $twice)
                    AND {KEY} IN (SELECT event FROM $act WHERE rule_no = 0 $condition))) AS d
        WHERE nth > 1 AND d.event = $act.event""",
        equal=equal, where=where, key=key, twice=name, condition=condition,
    )  # fmt: skip
    con.unregister(name)
