"""The bench on which a log is made: SQL over named tables of one database, and the choices that hold for all of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.online.engine import identifier
from judged.online.log import RAW_QUERY

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation
    from judged.online.readers.raw import RawLog


Bots: TypeAlias = Literal["exclude", "keep"]

DAY = 86_400_000
ROW_BITS = 40
"""A key is the number of the file, and behind it the row in so many bits: where a row comes from can be told by it."""

SCRIPTS = (
    "bot|crawl|spider|slurp|scrapy|headless|phantomjs|selenium|puppeteer|playwright|curl/|wget|python-requests|"
    "python-urllib|okhttp|java/|go-http-client|libwww|httpclient|monitor|uptime|pingdom|lighthouse"
)
"""What stands in the user agents of programs, in lower case: a regular expression."""


@dataclass(frozen=True)
class Choices:
    """What is chosen when a log is made: see `make_log`."""

    session_gap: float = 30.0
    bots: Bots = "exclude"
    bot_pages: int = 100
    bot_minutes: float = 60.0
    rank_base: Literal[0, 1] | None = None
    now_ms: int = 0


@dataclass(frozen=True)
class Work:
    """A raw log on the bench.

    SQL is written with ``$query`` and ``$event`` for the raw tables and any other ``$name`` for tables made here; they
    vanish with the database. They are temporary tables on purpose: DuckDB writes those several times faster, and puts
    them into its folder where memory ends.
    """

    engine: Engine
    raw: RawLog
    choices: Choices
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.run("CREATE VIEW $query AS FROM $rows", rows=self.raw.queries)
        self.run("CREATE VIEW $event AS FROM $rows", rows=self.raw.events)

    @property
    def gap_ms(self) -> int:
        """Inactivity that ends a session; without a clock nothing does."""
        return round(self.choices.session_gap * 60_000) if self.raw.has_time else 2**62

    def run(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """Run SQL, and give its few rows."""
        return self.engine.con.execute(self.written(sql, **values)).fetchall()

    def one(self, sql: str, **values: object) -> dict[str, Any]:
        """Run SQL, and give its first row by the names of its columns."""
        done = self.engine.con.execute(self.written(sql, **values))
        names, rows = [column[0] for column in done.description], done.fetchall()
        return dict(zip(names, rows[0], strict=True))

    def table(self, name: str) -> Relation:
        """Give a table made here."""
        return self.engine.table(self._name(name))

    def written(self, sql: str, **values: object) -> str:
        """Fill in names and values."""
        text = Template(sql)
        names = {name: self._name(name) for name in text.get_identifiers()}
        return text.substitute({**names, **values})

    def place(self, key: int) -> str:
        """Say where a row comes from."""
        file, row = key >> ROW_BITS, key & ((1 << ROW_BITS) - 1)
        name = self.raw.files[file] if file < len(self.raw.files) else str(file)
        return f"{name}:{row}"

    def places(self, table: str, key: str, where: str, limit: int = 3) -> tuple[str, ...]:
        """Say where the first rows come from that meet a condition."""
        found = self.run(
            "SELECT $key FROM $from WHERE $where ORDER BY $key LIMIT $limit",
            key=key, where=self.written(where), limit=limit, **{"from": self._name(table)},
        )  # fmt: skip
        return tuple(self.place(one[0]) for one in found)

    def _name(self, name: str) -> str:
        return f"made_{self.mark}_{name}"


def hashed(*columns: str) -> str:
    """Write the key of texts, or of keys: 63 bits of their hash, so that no list of all texts is ever needed.

    Among a million texts, two have the same key with a probability of 1 in 18 million.
    """
    return f"(hash({', '.join(columns)}) >> 1)::BIGINT"


def hashed_or_null(column: str) -> str:
    """Write the key of a text, which is null for none, and for an empty one."""
    return f"CASE WHEN {column} <> '' THEN {hashed(column)} END"


KEY = f"(file::BIGINT << {ROW_BITS}) + row"
"""The key of a row of a raw table."""

SCRIPTED = f"(coalesce(bot, false) OR coalesce(regexp_matches(user_agent, '(?i){SCRIPTS}'), false))"
"""A row of a raw table that says itself that a program made it."""


RULES = ("", "no-query-id", "odd-time", "future-time", "facet-request", "repeated-query-id", "bot")
"""Rules that leave a query out, by the number in the column ``rule_no``; 0: it is a page."""

_NO_ID, _ODD_TIME, _FUTURE, _FACET, _REPEATED, _BOT = range(1, 7)

OWN = "own "
"""Put before the names of the log's own columns while it is made: they can be called anything, "session" too."""

_BLANKS = [f"chr({code})" for code in (9, 10, 13, 160, 12288)]
_ODD = " OR ".join(f"contains(query, {blank})" for blank in ("'  '", *_BLANKS))  # far cheaper than mending every text
_MENDED = f"regexp_replace(translate(lower(query), {' || '.join(_BLANKS)}, '     '), ' +', ' ', 'g')"
_NORM = f"trim(CASE WHEN {_ODD} THEN {_MENDED} ELSE lower(query) END)"

_RANKS = """(CASE WHEN len(ranks) = len(hit_ids) THEN
    list_transform(ranks, lambda one: CASE WHEN one BETWEEN 1 AND 1000000000 THEN one END) END)"""
"""Ranks that the log itself gives, beside the ids; what is no rank is not known."""

_SENT = """(CASE WHEN list_count(hit_ids) = len(hit_ids) THEN len(hit_ids)
    ELSE list_max(list_transform(hit_ids, lambda one, nth: CASE WHEN one IS NOT NULL THEN nth END)) END)"""
"""What has no id keeps its place in a list; behind the last id is nothing; of a list without ids nothing is known."""

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
    list_transform(hit_ids, lambda one: CASE WHEN one IS NOT NULL THEN (hash(one) & 4294967295)::UINTEGER END) AS hits,
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
    """Make the table ``page``: a row for each logged query, what is no page marked in the column ``rule_no``."""
    own = attributes(work)
    paged = work.one("SELECT max(page) > 1 AS paged FROM $query")["paged"]
    work.run(
        _PAGES,
        timed=str(work.raw.has_time).lower(),
        time="time_ms" if work.raw.has_time else "coalesce(time_ms, row)",
        future=work.choices.now_ms + DAY,
        most=most_on_a_page(work) if paged else 1,
        attributes="".join(f", {identifier(name)} AS {identifier(OWN + name)}" for name in own),
    )
    work.run(_REPEATS)
    work.run("""
        UPDATE $page SET rule_no = one.rule_no,
            time_ms = CASE WHEN one.rule_no = 0 THEN one.earliest ELSE $page.time_ms END
        FROM $repeat AS one WHERE $page.serp = one.serp""")


def most_on_a_page(work: Work) -> int:
    """Give how many results a page holds, where it does not say it: as many as any list has."""
    return work.one("SELECT max(len(hit_ids)) AS most FROM $query")["most"] or 10


def attributes(work: Work) -> tuple[str, ...]:
    """Name the columns of the raw queries that are the log's own."""
    known = {column.name for column in RAW_QUERY}
    return tuple(name for name in work.raw.queries.columns if name not in known)


def exclude_bots(work: Work) -> None:
    """Mark the pages of users who are programs: they say so, or ask faster than people do.

    Whoever is a program once is one always: all of that user's pages go, so that no user is half in the log.
    """
    pages, window = work.choices.bot_pages, round(work.choices.bot_minutes * 60_000)
    work.run("""
        CREATE TEMP TABLE $robot AS
        SELECT DISTINCT "user" FROM (
            SELECT "user" FROM $page WHERE bot AND "user" IS NOT NULL
            UNION ALL SELECT p."user" FROM $page AS p JOIN $program AS e USING (named)
            UNION ALL SELECT told FROM $program WHERE told IS NOT NULL
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
    """Make the table ``program``: pages and users of events that say themselves that a program made them."""
    work.run(
        "CREATE TEMP TABLE $program AS SELECT DISTINCT $named AS named, $told AS told FROM $event WHERE $scripted",
        named=hashed_or_null("query_id"), told=hashed_or_null("user_id"), scripted=SCRIPTED if count else "false",
    )  # fmt: skip
