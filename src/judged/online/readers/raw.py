"""Raw tables: rows as a log has them, what was wrong with them, and how they come into the database."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier
from judged.online.findings import worded
from judged.online.log import Column, arrow_type

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation

PLACES = 5
"""So many places of each kind of trouble are named."""


@dataclass(frozen=True)
class Trouble:
    """Rows or values that a reader could not use, of one kind.

    Parameters
    ----------
    rule
        Short name that does not change: ``broken-json``, ``odd-time``, ``wrong-type``, ``absent-column``.
    table
        ``query``, ``event`` or ``file``; or ``folder``: files that were left out of it.
    rows
        How many rows, or files of a folder.
    lost
        The rows are not in the raw tables: they could not be read at all. Otherwise a value in them is null.
    problem, fix
        What is wrong, and what to do about it.
    places
        The first few, as ``file:line``.
    """

    rule: str
    table: str
    rows: int
    lost: bool
    problem: str
    fix: str
    places: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, where: str, rule: str, table: str, *places: str, rows: int = 1, lost: bool = False, **words: str
    ) -> Trouble:
        """Make one of a rule, in the words of ``rules.toml``."""
        return cls(rule, table, rows, lost, *worded(where, rule, **words), places)


class Troubles:
    """Kinds of trouble, counted."""

    def __init__(self, found: Iterable[Trouble] = ()) -> None:
        self._found: dict[tuple[object, ...], Trouble] = {}
        for one in found:
            self.add(one)

    def add(self, one: Trouble) -> None:
        """Count what is of the same kind together, with its first places."""
        key = (one.rule, one.table, one.lost, one.problem, one.fix)
        if (first := self._found.get(key)) is not None:
            one = replace(first, rows=first.rows + one.rows, places=(*first.places, *one.places)[:PLACES])
        self._found[key] = one

    def tell(self, name: str, rule: str, line: int) -> None:
        """Count a line of a file that is lost, or in which bytes were replaced."""
        self.add(Trouble.of("mapping", rule, "file", f"{name}:{line}", lost=rule != "not-utf8"))

    def given(self) -> tuple[Trouble, ...]:
        """Give what was counted."""
        return tuple(self._found.values())


@dataclass(frozen=True)
class RawLog:
    """A log as it was written.

    Parameters
    ----------
    queries, events
        Tables of the engine with the columns RAW_QUERY and RAW_EVENT, and attributes behind those of the queries.
    layout
        The reader's name: ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``, ``clickmodels`` or ``mapping``.
    files
        Their names as the user wrote them.
    rank_base
        0 or 1 where the layout fixes it, None where it must be found from the positions.
    propensity_convention
        What propensities are probabilities of, one of CONVENTIONS; empty: the log does not declare it.
    actions
        What the log's names of actions mean, where the layout or the mapping says so: log's name to one of ACTIONS.
    lines
        Records read, the lost ones included.
    trouble
        What could not be used.
    has_time
        False: the log orders what happened and has no clock; times are then ordinals, and no duration is reported.
    dated
        False: it says at what time of a day, and not of which: days are made up.
    empty_told
        False: a page without results would not be in it, so that nothing is said of how many are empty.
    left_told
        False: a page without a click would not be in it, so that nothing is said of how many are left without one.
    """

    queries: Relation
    events: Relation
    layout: str
    files: tuple[str, ...]
    rank_base: int | None = None
    propensity_convention: str = ""
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    lines: int = 0
    trouble: tuple[Trouble, ...] = ()
    has_time: bool = True
    dated: bool = True
    empty_told: bool = True
    left_told: bool = True


ROWS = 20_000
"""Rows made one by one go into the database in lots of this size."""

DUCKDB = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "array<string>": "VARCHAR[]",
    "array<int32>": "INTEGER[]",
    "array<float64>": "DOUBLE[]",
}
"""Our types in DuckDB's words."""


def new_name(prefix: str) -> str:
    """Make a name for a table that no other table has."""
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def selected(columns: Sequence[Column], known: Mapping[str, str], attributes: Mapping[str, str] | None = None) -> str:
    """Write the columns of a SELECT: the known ones by their expressions, null for all others, attributes behind.

    >>> selected((Column("row", "int64", False, ""), Column("page", "int32", True, "")), {"row": "n"}, {"day": "d"})
    'CAST(n AS BIGINT) AS "row", CAST(NULL AS INTEGER) AS "page", CAST(d AS VARCHAR) AS "day"'
    """
    own = [f"CAST({known.get(one.name, 'NULL')} AS {DUCKDB[one.type]}) AS {identifier(one.name)}" for one in columns]
    more = [f"CAST({sql} AS VARCHAR) AS {identifier(name)}" for name, sql in (attributes or {}).items()]
    return ", ".join(own + more)


def run(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    """Run SQL and give its few rows."""
    return engine.con.execute(sql).fetchall()


class Rows:
    """A table that is filled row by row, a lot at a time."""

    def __init__(self, engine: Engine, name: str, columns: Sequence[Column], attributes: Sequence[str] = ()) -> None:
        self.name = new_name(name)
        self._engine = engine
        self._columns = (*columns, *(Column(one, "string", True, "") for one in attributes))
        self._waiting: list[Sequence[Any]] = []
        named = ", ".join(f"{identifier(one.name)} {DUCKDB[one.type]}" for one in self._columns)
        engine.con.execute(f"CREATE TABLE {self.name} ({named})")

    def add(self, row: Mapping[str, Any]) -> None:
        """Put one row in; columns that it lacks are null."""
        self.put([row.get(one.name) for one in self._columns])

    def put(self, row: Sequence[Any]) -> None:
        """Put the values of one row in."""
        self._waiting.append(row)
        if len(self._waiting) >= ROWS:
            self._flush()

    def done(self) -> Relation:
        """Give the table."""
        self._flush()
        return self._engine.table(self.name)

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        schema = pa.schema([pa.field(one.name, arrow_type(one.type)) for one in self._columns])
        values = [pa.array(one, kind) for one, kind in zip(zip(*self._waiting, strict=True), schema.types, strict=True)]
        self._waiting.clear()
        name, con = new_name("lot"), self._engine.con
        con.register(name, pa.table(values, schema=schema))
        try:
            con.execute(f"INSERT INTO {self.name} SELECT * FROM {name}")
        finally:
            con.unregister(name)


def trouble_of(engine: Engine, files: Sequence[str], rows: str, condition: str, like: Trouble) -> tuple[Trouble, ...]:
    """Count the rows of a table that are in trouble.

    Parameters
    ----------
    rows
        The table, with columns ``file`` and ``row``.
    condition
        What rows in trouble meet, in SQL.
    like
        What it is; its count and places are filled in.

    Returns
    -------
    tuple of Trouble
        One; none where no row is in trouble.
    """
    found = f"FROM {rows} WHERE {condition}"
    count = run(engine, f"SELECT count(*) {found}")[0][0]
    if not count:
        return ()
    first = run(engine, f"SELECT file, row {found} ORDER BY file, row LIMIT {PLACES}")
    return (replace(like, rows=count, places=tuple(f"{files[file]}:{row}" for file, row in first)),)


@contextmanager
def dropped_after(engine: Engine, *names: str) -> Generator[None]:
    """Drop tables that only the reading needed."""
    try:
        yield
    finally:
        for name in names:
            engine.con.execute(f"DROP TABLE IF EXISTS {name}")
