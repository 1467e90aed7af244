"""Rows into the database: lines of text by the block, and rows made one by one, with bounded memory either way."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier
from judged.online.readers.blocks import LINE_LIMIT
from judged.online.readers.raw import Trouble
from judged.online.tables import Column

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation

PLACES = 5
"""So many places of each kind of trouble are named."""

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


def _arrow(columns: Iterable[Column]) -> Any:
    import pyarrow as pa

    types: dict[str, Any] = {
        "int64": pa.int64(),
        "int32": pa.int32(),
        "float64": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "array<string>": pa.list_(pa.string()),
        "array<int32>": pa.list_(pa.int32()),
        "array<float64>": pa.list_(pa.float64()),
    }
    return pa.schema([pa.field(one.name, types[one.type]) for one in columns])


WORDS = {
    "too-long": (
        f"a line of more than {LINE_LIMIT >> 20} MiB, or a cell of 131,072 characters",
        "log less in one record",
    ),
    "not-utf8": ("bytes that are none of the encoding were replaced", "write logs as UTF-8"),
    "wrong-width": ("the row has not as many cells as the header", "quote cells that hold separators"),
    "open-quote": (
        "a quotation mark that is never closed",
        'double those in a cell, or read them as they are with quote = ""',
    ),
    "broken-json": ("this is no JSON", "write one record a line, whole"),
    "no-record": ("this is JSON, and no object", "write one object a line"),
    "broken-record": ("the record is not as [file] must says", "put it right, or leave it out of the log"),
    "unknown-record": ("nothing is in it that tells what it is", "leave other records out of the log"),
    "odd-time": (
        "this is no time, or one before 1995",
        "write ISO 8601 with Z or an offset, or say its format in a mapping",
    ),
    "no-offset": ("the time has no offset: it was taken as UTC", "write Z or an offset behind it"),
    "long-text": ("a query's text was cut to 10,000 characters", "log what users type"),
}
"""What is wrong with a row, and what to do about it."""


def tell(troubles: Troubles, name: str, rule: str, line: int) -> None:
    """Count a line of a file that is lost, or in which bytes were replaced."""
    problem, fix = WORDS[rule]
    troubles.add(rule, "file", problem, fix=fix, place=f"{name}:{line}", lost=rule != "not-utf8")


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
        schema = _arrow(self._columns)
        values = [pa.array(one, kind) for one, kind in zip(zip(*self._waiting, strict=True), schema.types, strict=True)]
        self._waiting.clear()
        name, con = new_name("lot"), self._engine.con
        con.register(name, pa.table(values, schema=schema))
        try:
            con.execute(f"INSERT INTO {self.name} SELECT * FROM {name}")
        finally:
            con.unregister(name)


class Troubles:
    """Kinds of trouble, counted while rows are made one by one."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, bool, str, str], int] = {}
        self._places: dict[tuple[str, str, bool, str, str], list[str]] = {}

    def add(self, rule: str, table: str, problem: str, *, fix: str, place: str, lost: bool = False) -> None:
        """Count one row."""
        key = (rule, table, lost, problem, fix)
        self._counts[key] = self._counts.get(key, 0) + 1
        places = self._places.setdefault(key, [])
        if len(places) < PLACES:
            places.append(place)

    def given(self) -> tuple[Trouble, ...]:
        """Give what was counted."""
        return tuple(
            Trouble(rule, table, rows, lost, problem, fix, tuple(self._places[rule, table, lost, problem, fix]))
            for (rule, table, lost, problem, fix), rows in self._counts.items()
        )


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
