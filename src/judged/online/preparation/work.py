"""Shared state of the preparation of a log: SQL over named tables, options, and the table of pages."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.online.engine import identifier
from judged.online.log import RAW_QUERY

if TYPE_CHECKING:
    from judged.online.engine import Database, Relation
    from judged.online.readers.raw import RawLog


Bots: TypeAlias = Literal["exclude", "keep"]

DAY = 86_400_000
ROW_BITS = 40
"""Number of bits for the row in a key; the higher bits are the file number, so a key identifies the source of a row."""

SCRIPTS = (
    "bot|crawl|spider|slurp|scrapy|headless|phantomjs|selenium|puppeteer|playwright|curl/|wget|python-requests|"
    "python-urllib|okhttp|java/|go-http-client|libwww|httpclient|monitor|uptime|pingdom|lighthouse"
)
"""Regular expression for user agents of programs, in lower case."""


@dataclass(frozen=True)
class PreparationOptions:
    """Options of the preparation: see `make_log`."""

    session_gap: float = 30.0
    bots: Bots = "exclude"
    bot_pages: int = 100
    bot_minutes: float = 60.0
    rank_base: Literal[0, 1] | None = None
    now_ms: int = 0


@dataclass(frozen=True)
class Work:
    """Raw log in preparation, with its options.

    In SQL, ``$query`` and ``$event`` are the raw tables, and any other ``$name`` is a temporary table of the
    preparation. DuckDB writes temporary tables several times faster, and spills them to its folder.
    """

    engine: Database
    raw: RawLog
    choices: PreparationOptions
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.run("CREATE VIEW $query AS FROM $rows", rows=self.raw.queries)
        self.run("CREATE VIEW $event AS FROM $rows", rows=self.raw.events)

    @property
    def gap_ms(self) -> int:
        """Milliseconds of inactivity that end a session; practically infinite without timestamps."""
        return round(self.choices.session_gap * 60_000) if self.raw.has_time else 2**62

    def run(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """Run SQL and return all rows, for small results."""
        return self.engine.con.execute(self.substitute(sql, **values)).fetchall()

    def row(self, sql: str, **values: object) -> dict[str, Any]:
        """Run SQL and return the first row as a dict."""
        cursor = self.engine.con.execute(self.substitute(sql, **values))
        names, rows = [column[0] for column in cursor.description], cursor.fetchall()
        return dict(zip(names, rows[0], strict=True))

    def table(self, name: str) -> Relation:
        """Return a table of the preparation."""
        return self.engine.table(self._name(name))

    def substitute(self, sql: str, **values: object) -> str:
        """Substitute table names and values in SQL."""
        text = Template(sql)
        names = {name: self._name(name) for name in text.get_identifiers()}
        return text.substitute({**names, **values})

    def place(self, key: int) -> str:
        """Return the source of a row as ``file:line``."""
        file, row = key >> ROW_BITS, key & ((1 << ROW_BITS) - 1)
        name = self.raw.files[file] if file < len(self.raw.files) else str(file)
        return f"{name}:{row}"

    def places(self, table: str, key: str, where: str, limit: int = 3) -> tuple[str, ...]:
        """Return the sources of the first rows that meet a condition."""
        rows = self.run(
            "SELECT $key FROM $from WHERE $where ORDER BY $key LIMIT $limit",
            key=key, where=self.substitute(where), limit=limit, **{"from": self._name(table)},
        )  # fmt: skip
        return tuple(self.place(key) for (key,) in rows)

    def _name(self, name: str) -> str:
        return f"made_{self.mark}_{name}"


# DuckDB's hash is unsigned; the shift makes it a positive BIGINT.
def hashed(*columns: str) -> str:
    """Return SQL for a 63-bit hash of columns, which serves as a key without a table of all texts.

    The probability of a collision among a million texts is 1 in 18 million.
    """
    return f"(hash({', '.join(columns)}) >> 1)::BIGINT"


def hashed_or_null(column: str) -> str:
    """Return SQL for the hash of a text column, null for null and empty texts."""
    return f"CASE WHEN {column} <> '' THEN {hashed(column)} END"


KEY = f"(file::BIGINT << {ROW_BITS}) + row"
"""SQL of the key of a raw row."""

SCRIPTED = f"(coalesce(bot, false) OR coalesce(regexp_matches(user_agent, '(?i){SCRIPTS}'), false))"
"""SQL condition of a raw row that declares itself as produced by a program."""


# The order of the rules is their precedence: a row counts for the first one that matches.
RULES = ("", "no-query-id", "odd-time", "future-time", "facet-request", "repeated-query-id", "bot")
"""Rules that exclude a query, indexed by the column ``rule_no``; 0: not excluded."""

_NO_ID, _ODD_TIME, _FUTURE, _FACET, _REPEATED, _BOT = range(1, 7)

OWN = "own "
"""Prefix of the log's additional columns in the work tables, which could have a name such as "session"."""

_BLANKS = [f"chr({code})" for code in (9, 10, 13, 160, 12288)]
# Most texts have single blanks only. Testing for others is much cheaper than normalizing all texts.
_HAS_OTHER_BLANKS = " OR ".join(f"contains(query, {blank})" for blank in ("'  '", *_BLANKS))
_NORMALIZED = f"regexp_replace(translate(lower(query), {' || '.join(_BLANKS)}, '     '), ' +', ' ', 'g')"
_NORM = f"trim(CASE WHEN {_HAS_OTHER_BLANKS} THEN {_NORMALIZED} ELSE lower(query) END)"

_RANKS = """(CASE WHEN len(ranks) = len(hit_ids) THEN
    list_transform(ranks, lambda rank: CASE WHEN rank BETWEEN 1 AND 1000000000 THEN rank END) END)"""
"""Logged ranks of the results; invalid ranks are null."""

_SENT = """(CASE WHEN list_count(hit_ids) = len(hit_ids) THEN len(hit_ids)
    ELSE list_max(list_transform(hit_ids, lambda id, nth: CASE WHEN id IS NOT NULL THEN nth END)) END)"""
"""Length of a list: up to the last result with an ID, since results without an ID keep their position."""

_PAGES = f"""
CREATE TEMP TABLE $page AS
SELECT *, CASE WHEN own_user IS NOT NULL THEN own_user END AS "user",
    CASE WHEN own_user IS NOT NULL AND own_session IS NOT NULL THEN {hashed("own_user", "own_session")} END AS session
FROM (SELECT {KEY} AS serp, query_id, {hashed("query_id")} AS named, nullif(session_id, '') AS session_id,
    nullif(user_id, '') AS user_id, {hashed_or_null("session_id")} AS own_session,
    {hashed_or_null("user_id")} AS own_user, $time AS time_ms, application, query, {_NORM} AS query_norm, language,
    device, coalesce(filtered, false) AS filtered, greatest(coalesce(page, 1), 1)::INTEGER AS page, size, n_total,
    least(1e9, coalesce(first_rank, list_min({_RANKS}), (greatest(coalesce(page, 1), 1) - 1)::DOUBLE
        * coalesce(nullif(size, 0), $most) + 1))::INTEGER AS first_rank,
    CASE WHEN {_RANKS} IS DISTINCT FROM range(list_min({_RANKS}), list_min({_RANKS}) + len(hit_ids))::INTEGER[]
        THEN {_RANKS} END AS ranks,
    first_rank IS NULL AND ranks IS NULL AND page IS NULL AS unplaced,
    {_SENT}::INTEGER AS n_returned,
    list_transform(hit_ids, lambda id: CASE WHEN id IS NOT NULL THEN (hash(id) & 4294967295)::UINTEGER END) AS hits,
    rescued, suggested, latency_ms, experiment,
    variant, assign_p, ranker, trace_id, {SCRIPTED} AS bot$attributes,
    (CASE WHEN query_id IS NULL OR query_id = '' THEN {_NO_ID} WHEN time_ms IS NULL AND $timed THEN {_ODD_TIME}
        WHEN time_ms > $future AND $timed THEN {_FUTURE} WHEN size = 0 THEN {_FACET} ELSE 0 END)::TINYINT AS rule_no
FROM $query)
"""

_REPEATS = f"""
CREATE TEMP TABLE $repeat AS
SELECT serp, earliest, CASE WHEN n_returned = 0 AND filled > 0 THEN {_FACET} WHEN place > 1 THEN {_REPEATED} ELSE 0
    END::TINYINT AS rule_no
FROM (SELECT serp, n_returned,
        count(*) FILTER (n_returned > 0) OVER (PARTITION BY named) AS filled,
        min(time_ms) FILTER (n_returned > 0 OR n_returned IS NULL OR none) OVER (PARTITION BY named) AS earliest,
        row_number() OVER (PARTITION BY named ORDER BY found DESC, time_ms, serp) AS place
    FROM (SELECT *, coalesce(n_returned, n_total, 0) > 0 AS found,
            max(coalesce(n_returned, 0)) OVER (PARTITION BY named) = 0 AS none
        FROM $page WHERE rule_no = 0 AND named IN (
            SELECT named FROM $page WHERE rule_no = 0 GROUP BY named HAVING count(*) > 1)))
"""


def make_pages(work: Work) -> None:
    """Create the table ``page``: a row per logged query, with excluded queries marked in ``rule_no``."""
    # Additional columns are carried along under a prefix, see OWN.
    columns = attributes(work)
    paged = work.row("SELECT max(page) > 1 AS paged FROM $query")["paged"]
    work.run(
        _PAGES,
        timed=str(work.raw.has_time).lower(),
        time="time_ms" if work.raw.has_time else "coalesce(time_ms, row)",
        future=work.choices.now_ms + DAY,
        most=longest_list(work) if paged else 1,
        attributes="".join(f", {identifier(name)} AS {identifier(OWN + name)}" for name in columns),
    )
    # Repeated query IDs: the first row with results is the page, the others are facet requests or copies.
    work.run(_REPEATS)
    work.run("""
        UPDATE $page SET rule_no = r.rule_no,
            time_ms = CASE WHEN r.rule_no = 0 THEN r.earliest ELSE $page.time_ms END
        FROM $repeat AS r WHERE $page.serp = r.serp""")


def longest_list(work: Work) -> int:
    """Return the page size of logs without one: the length of the longest list."""
    return work.row("SELECT max(len(hit_ids)) AS most FROM $query")["most"] or 10


def attributes(work: Work) -> tuple[str, ...]:
    """Return the additional columns of the raw queries."""
    standard_columns = {column.name for column in RAW_QUERY}
    return tuple(name for name in work.raw.queries.columns if name not in standard_columns)


def exclude_bots(work: Work) -> None:
    """Mark the pages of bots: users that declare themselves as programs, or request pages faster than people do.

    All pages of such a user are excluded, so that no user is partly in the log.
    """
    # The rate is checked with lag(): page i and page i - bot_pages within the window.
    pages, window = work.choices.bot_pages, round(work.choices.bot_minutes * 60_000)
    work.run("""
        CREATE TEMP TABLE $robot AS
        SELECT DISTINCT "user" FROM (
            SELECT "user" FROM $page WHERE bot AND "user" IS NOT NULL
            UNION ALL SELECT p."user" FROM $page AS p JOIN $program AS e USING (named)
            UNION ALL SELECT own_user FROM $program WHERE own_user IS NOT NULL
            UNION ALL SELECT "user" FROM $page WHERE rule_no = 0 AND session IS NOT NULL
                GROUP BY "user", session HAVING count(*) > $pages)""", pages=pages)  # fmt: skip
    if work.raw.has_time:
        work.run("""
            INSERT INTO $robot SELECT DISTINCT "user" FROM (
                SELECT "user", time_ms - lag(time_ms, $pages) OVER (PARTITION BY "user" ORDER BY time_ms) AS took
                FROM $page WHERE rule_no = 0 AND "user" IN (
                    SELECT "user" FROM $page WHERE rule_no = 0 GROUP BY "user" HAVING count(*) > $pages))
            WHERE took <= $window""", pages=pages, window=window)  # fmt: skip
    if work.choices.bots == "exclude":
        work.run('UPDATE $page SET rule_no = $rule WHERE rule_no = 0 AND "user" IN (FROM $robot)', rule=_BOT)


def find_programs(work: Work, count: int) -> None:
    """Create the table ``program``: pages and users of events that declare themselves as produced by a program."""
    work.run(
        """CREATE TEMP TABLE $program AS
        SELECT DISTINCT $query_key AS named, $user_key AS own_user FROM $event WHERE $condition""",
        query_key=hashed_or_null("query_id"), user_key=hashed_or_null("user_id"),
        condition=SCRIPTED if count else "false",
    )  # fmt: skip
