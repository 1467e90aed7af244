"""DuckDB database of a log: memory limits, temporary tables, and errors about damaged files."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, MissingExtraError
from judged.results.files import remove_folder
from judged.results.types import cached_property

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from judged.results.types import Table

_FOLDER_PREFIX = "judged-log-"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGTPE])(i?)B\s*", re.IGNORECASE)
_OVERHEAD = 400e6  # bytes for Python, Arrow, and fetched results outside of the database
_MIN_MEMORY = _OVERHEAD + 200e6
_DEFAULT_MEMORY = 2.5e9
_MEMORY_PER_THREAD = 250e6  # bytes; an additional thread with less memory makes queries slower


def duckdb_library() -> Any:
    """Import DuckDB.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("DuckDB", "logs") from None
    return duckdb


@dataclass(frozen=True)
class Relation:
    """Table of a log's database, or a query that has not run yet.

    Its string is valid SQL after FROM.

    Parameters
    ----------
    engine
        The database.
    sql
        Quoted name of a table, or query in parentheses.

    Examples
    --------
    >>> numbers = Database().query("SELECT unnest([1, 2]) AS n")
    >>> numbers.columns, numbers.to_arrow().to_pylist()
    (('n',), [{'n': 1}, {'n': 2}])
    >>> numbers.where("n > 1").to_polars()["n"].to_list()
    [2]
    """

    engine: Database = field(repr=False)
    sql: str

    @cached_property
    def types(self) -> dict[str, str]:
        """DuckDB types by column."""
        return self.engine.types(self.sql)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.types)

    def where(self, condition: str) -> Relation:
        """Return the rows that meet a condition in SQL."""
        return self.engine.query(f"SELECT * FROM {self} WHERE {condition}")

    def to_arrow(self, *columns: str) -> Table:
        """Run the query and return all or some columns as an Arrow table."""
        selection = ", ".join(map(identifier, columns)) or "*"
        return self.engine.arrow(f"SELECT {selection} FROM {self.sql}")

    def to_polars(self) -> pl.DataFrame:
        """Run the query and return a polars data frame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """Run the query and return a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __str__(self) -> str:
        return self.sql


class Database:
    """DuckDB database in a temporary folder, to which it spills data that does not fit into memory.

    Parameters
    ----------
    memory
        Memory limit of the process, such as ``1GB``; the database gets all but 400 MB of it. None: 2.5 GB, or 10% of
        the memory of the machine if that is more.
    threads
        Maximum number of threads. None: the number of cores, but with `memory` at most one per 250 MB.

    Raises
    ------
    InputError
        If `memory` is not a valid size, or too small.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> Database(memory="1GB").rows("SELECT current_setting('memory_limit') AS n")
    [{'n': '572.2 MiB'}]
    """

    def __init__(self, *, memory: str | None = None, threads: int | None = None) -> None:
        options: dict[str, Any] = {}
        limit = None if memory is None else _parse_memory_limit(memory)
        if limit is not None:
            threads = threads or max(1, min(os.cpu_count() or 1, int((limit - _OVERHEAD) / _MEMORY_PER_THREAD)))
        if threads is not None:
            options["threads"] = threads
        library = duckdb_library()
        self.folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
        # Removes the folder at interpreter exit too, unlike __del__.
        weakref.finalize(self, remove_folder, self.folder)
        options["temp_directory"] = str(self.folder / "spill")
        self.con: duckdb.DuckDBPyConnection = library.connect(str(self.folder / "log.duckdb"), config=options)
        # Queries sort where order matters; preserving insertion order would need more memory.
        self.con.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        self.con.execute("SET enable_progress_bar = false")  # DuckDB would print it in notebooks
        # The default limit of DuckDB is 80% of the memory of the machine, which old versions do not detect.
        duckdb_limit = _parse_bytes(self.con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])
        duckdb_limit = min(duckdb_limit, 0.8 * _machine_memory())
        limit = limit or max(_DEFAULT_MEMORY, duckdb_limit / 0.8 / 10)
        self.con.execute(f"SET memory_limit = '{int(min(limit - _OVERHEAD, duckdb_limit))}B'")
        self._table_count = 0
        self._cleanups: list[Callable[[], object]] = []

    @contextmanager
    def scratch(self) -> Generator[None]:
        """Drop the tables that are created and registered within the context.

        >>> engine = Database()
        >>> with engine.scratch():
        ...     table = engine.keep("SELECT 1 AS n")
        >>> engine.rows("SELECT count(*) AS n FROM duckdb_tables()")
        [{'n': 0}]
        """
        previous = len(self._cleanups)
        try:
            yield
        finally:
            # Contexts may be nested: only the tables of this context are dropped.
            while len(self._cleanups) > previous:
                self._cleanups.pop()()

    def table(self, name: str) -> Relation:
        """Return a table by name."""
        return Relation(self, identifier(name))

    def query(self, sql: str) -> Relation:
        """Return a query as a relation, without running it."""
        return Relation(self, f"({sql})")

    def keep(self, sql: str, name: str = "stored") -> Relation:
        """Run a query and store its rows in a temporary table."""
        self._table_count += 1
        table_name = f"{name}_{self._table_count}"
        self.con.execute(f"CREATE TEMP TABLE {table_name} AS {sql}")
        self._cleanups.append(lambda: self.con.execute(f"DROP TABLE {table_name}").fetchall())
        return self.table(table_name)

    def register(self, rows: Table, name: str = "registered") -> Relation:
        """Register an Arrow table, without copying it, and return it as a relation."""
        self._table_count += 1
        table_name = f"{name}_{self._table_count}"
        self.con.register(table_name, rows)
        self._cleanups.append(lambda: self.con.unregister(table_name))
        return self.table(table_name)

    def types(self, table: str) -> dict[str, str]:
        """Return the column names and types of a table or query."""
        return {row[0]: row[1] for row in self.con.execute(f"DESCRIBE FROM {table}").fetchall()}

    def arrow(self, sql: str) -> Table:
        """Run a query and return an Arrow table."""
        return self.con.sql(sql).to_arrow_table()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query and return its rows as dicts; for small results only."""
        return self.arrow(sql).to_pylist()


def identifier(name: str) -> str:
    """Quote an identifier for SQL.

    >>> identifier("user")
    '"user"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """Quote a string for SQL.

    >>> print(literal("it's"), literal(None))
    'it''s' NULL
    """
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def sql_list(texts: Iterable[str]) -> str:
    """Format strings as the right-hand side of IN.

    >>> sql_list(["a", "b"])
    "('a', 'b')"
    """
    return f"({', '.join(map(literal, texts)) or 'NULL'})"


def _machine_memory() -> float:
    """Return the memory of the machine in bytes, or infinity if it is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _parse_memory_limit(memory: str) -> float:
    limit = _parse_bytes(memory)
    if limit < _MIN_MEMORY:
        minimum = f"{_MIN_MEMORY / 1e6:.0f}MB"
        raise InputError(f"`memory` must be at least {minimum}, got {memory}", fix=f"use {minimum} or more")
    return limit


def _parse_bytes(size: str) -> float:
    """Parse a memory size and return bytes.

    >>> _parse_bytes("1.5GB"), _parse_bytes("1 KiB")
    (1500000000.0, 1024.0)
    """
    match = _SIZE.fullmatch(size)
    if not match:
        raise InputError(
            f"the memory limit must be a number with a unit, got {size!r}", fix="use MB or GB, such as 4GB"
        )
    return float(match[1]) * (1024 if match[3] else 1000) ** (" KMGTPE".index(match[2].upper()))


@contextmanager
def translate_memory_errors() -> Generator[None]:
    """Convert out-of-memory errors of the database to InputError.

    Raises
    ------
    InputError
        If the database runs out of memory.
    MissingExtraError
        If DuckDB is not installed.
    """
    library = duckdb_library()
    try:
        yield
    except library.OutOfMemoryException:
        raise InputError("the log does not fit into the memory limit", fix="use more memory, such as 4GB") from None


_FILE = re.compile(r'file "([^"]+)"')
_DAMAGE_MESSAGES = ("Failed to read file", "Parquet file", "Could not read enough bytes")


@contextmanager
def translate_parquet_errors(paths: Sequence[str | Path]) -> Generator[None]:
    """Convert database errors about damaged Parquet files to InputError with the path.

    Parameters
    ----------
    paths
        Files that are read, for errors without a file name.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        message = str(error).split("\n", 1)[0]
        # Errors of the decompression have no subclass; errors in SQL have one.
        if type(error) is not duckdb.Error and not any(text in message for text in _DAMAGE_MESSAGES):
            raise
        match = _FILE.search(message)
        path = match[1] if match else ""
        if not path or Path(path).name.startswith(("unpacked-", "named-")):  # a temporary copy
            path = ", ".join(map(str, paths))
        problem = f"the Parquet file is damaged ({message.replace(match[1], path) if match else message})"
        raise InputError(problem, fix="create or download the file again", path=path) from None
