"""Rows into the database: lines of text by the block, and rows made one by one, with bounded memory either way."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.online.engine import identifier
from judged.online.readers.raw import PLACES, Trouble
from judged.online.tables import Column, arrow_type

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation

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
