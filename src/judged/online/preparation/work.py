"""The bench on which a log is made: SQL over named tables of one database, and the choices that hold for all of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

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
