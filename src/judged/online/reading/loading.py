"""Rows into the database: lines of text by the block, and rows made one by one, with bounded memory either way."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from judged.data import files
from judged.errors import InputError
from judged.online.engine import identifier
from judged.online.reading.blocks import LINE_LIMIT, line_blocks
from judged.online.reading.raw import Trouble
from judged.online.tables import Column

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation

Progress: TypeAlias = Callable[[int], None] | None
"""Called with the number of records that were read since the last call."""

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

_LINE = (Column("file", "int32", False, ""), Column("row", "int64", False, ""), Column("line", "string", False, ""))


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


def load_lines(
    paths: Sequence[Path | str], engine: Engine, sql: str, progress: Progress = None, encoding: str = "utf-8"
) -> tuple[int, tuple[Trouble, ...]]:
    """Run SQL once over all lines of files that are not blank; give how many there were, and which were too long.

    Parameters
    ----------
    paths
        Text files, compressed or not.
    sql
        Reads from ``{lines}``, which has the columns ``file`` (from 0), ``row`` (from 1) and ``line``, without its
        end. Bytes that are none of the encoding become U+FFFD there.
    encoding
        Of the texts.
    """
    import pyarrow as pa

    count = 0
    troubles = Troubles()
    failed: list[InputError] = []

    def counted() -> Iterator[Any]:
        nonlocal count
        try:
            for batch in _batches(paths, troubles, encoding):
                count += batch.num_rows
                if progress is not None:
                    progress(batch.num_rows)
                yield batch
        except InputError as error:  # the database would wrap it in an error of its own
            failed.append(error)

    name = new_name("lines")
    reader = pa.RecordBatchReader.from_batches(_arrow(_LINE), counted())
    con = engine.con
    con.register(name, reader)
    try:
        con.execute(sql.replace("{lines}", name))
    finally:
        con.unregister(name)
    if failed:
        raise failed[0]
    trouble = troubles.given()
    return count + sum(one.rows for one in trouble), trouble


def text_blocks(path: Path | str, troubles: Troubles) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines by the block, and the number of the first; lines that are too long are counted instead."""
    problem = f"a line of more than {LINE_LIMIT >> 20} MiB"

    def too_long(row: int) -> None:
        place = f"{path}:{row}"
        troubles.add("too-long", "file", problem, fix="log less in one record", place=place, lost=True)

    with files.opened(path) as file:
        yield from line_blocks(file, too_long)


def _batches(paths: Sequence[Path | str], troubles: Troubles, encoding: str) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    schema = _arrow(_LINE)
    for file, path in enumerate(paths):
        for first, block in text_blocks(path, troubles):
            lines = block.decode(encoding, errors="replace").split("\n")
            if not lines[-1]:
                lines.pop()
            kept = [(number, line.rstrip("\r")) for number, line in enumerate(lines, start=first) if line.strip()]
            rows = np.fromiter((number for number, _ in kept), np.int64, len(kept))
            columns = [pa.array(np.full(len(kept), file, np.int32)), pa.array(rows)]
            yield pa.record_batch([*columns, pa.array([line for _, line in kept], pa.string())], schema=schema)


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


class Rows:
    """A table that is filled row by row, a lot at a time."""

    def __init__(self, engine: Engine, name: str, columns: Sequence[Column], attributes: Sequence[str] = ()) -> None:
        self.name = new_name(name)
        self._engine = engine
        self._columns = (*columns, *(Column(one, "string", True, "") for one in attributes))
        self._waiting: list[Mapping[str, Any]] = []
        named = ", ".join(f"{identifier(one.name)} {DUCKDB[one.type]}" for one in self._columns)
        engine.con.execute(f"CREATE TABLE {self.name} ({named})")

    def add(self, row: Mapping[str, Any]) -> None:
        """Put one row in; columns that it lacks are null."""
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
        lot = pa.Table.from_pylist(list(map(dict, self._waiting)), schema=_arrow(self._columns))
        self._waiting.clear()
        name = new_name("lot")
        con = self._engine.con
        con.register(name, lot)
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


def existing(paths: Sequence[Path | str]) -> tuple[str, ...]:
    """Give the names of the files.

    Raises
    ------
    InputError
        If there are none.
    """
    if not paths:
        raise InputError("no files are given", fix="name at least one")
    return tuple(str(path) for path in paths)
