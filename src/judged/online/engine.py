"""The database: DuckDB inside the process, with bounded memory, and files that it finds to be damaged."""

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

_FOLDERS = "judged-log-"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGTPE])(i?)B\s*", re.IGNORECASE)
_BESIDE = 400e6  # bytes: what Python, Arrow, and what is fetched for them take beside the database
_LEAST = _BESIDE + 200e6
_USUAL = 2.5e9
_THREAD = 250e6  # what one more thread is worth


def duckdb_library() -> Any:
    """Give DuckDB.

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
    """A table of a log's database, or a query of it that is not run yet.

    Written into SQL it is what stands behind FROM.

    Parameters
    ----------
    engine
        The database.
    sql
        The quoted name of a table, or a query in parentheses.

    Examples
    --------
    >>> numbers = Engine().query("SELECT unnest([1, 2]) AS n")
    >>> numbers.columns, numbers.to_arrow().to_pylist()
    (('n',), [{'n': 1}, {'n': 2}])
    >>> numbers.where("n > 1").to_polars()["n"].to_list()
    [2]
    """

    engine: Engine = field(repr=False)
    sql: str

    @cached_property
    def types(self) -> dict[str, str]:
        """The columns and their types, in DuckDB's words."""
        return self.engine.types(self.sql)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.types)

    def where(self, condition: str) -> Relation:
        """Give the rows that meet a condition, in SQL."""
        return self.engine.query(f"SELECT * FROM {self} WHERE {condition}")

    def to_arrow(self, *columns: str) -> Table:
        """Run it and give its rows, or some columns of them, as a table of Arrow."""
        chosen = ", ".join(map(identifier, columns)) or "*"
        return self.engine.arrow(f"SELECT {chosen} FROM {self.sql}")

    def to_polars(self) -> pl.DataFrame:
        """Run it and give its rows as a data frame of polars."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """Run it and give its rows as a data frame of pandas."""
        return self.to_arrow().to_pandas()

    def __str__(self) -> str:
        return self.sql


class Engine:
    """A DuckDB of this process, in a folder that vanishes with it: what does not fit into memory goes there.

    Parameters
    ----------
    memory
        The most that the process may take, such as ``1GB``, of which the database gets all but 400 MB. None: 2.5 GB,
        or a tenth of the machine's where that is more.
    threads
        At most so many; None: as many as there are cores, and with `memory` no more than one for each 250 MB.

    Raises
    ------
    InputError
        If `memory` is no size, or too little to work in.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> Engine(memory="1GB").rows("SELECT current_setting('memory_limit') AS n")
    [{'n': '572.2 MiB'}]
    """

    def __init__(self, *, memory: str | None = None, threads: int | None = None) -> None:
        options: dict[str, Any] = {}
        most = None if memory is None else _checked(memory)
        if most is not None:
            threads = threads or max(1, min(os.cpu_count() or 1, int((most - _BESIDE) / _THREAD)))
        if threads is not None:
            options["threads"] = threads
        library = duckdb_library()
        self.folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
        weakref.finalize(self, remove_folder, self.folder)
        options["temp_directory"] = str(self.folder / "spill")
        self.con: duckdb.DuckDBPyConnection = library.connect(str(self.folder / "log.duckdb"), config=options)
        self.con.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
        self.con.execute("SET enable_progress_bar = false")  # it would print one in notebooks and under python -c
        its_own = _bytes(self.con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])
        its_own = min(its_own, 0.8 * _machine())  # early ones do not find out how much memory there is
        most = most or max(_USUAL, its_own / 0.8 / 10)  # its own limit is 80 % of the machine's memory
        self.con.execute(f"SET memory_limit = '{int(min(most - _BESIDE, its_own))}B'")
        self._made = 0
        self._given_up: list[Callable[[], object]] = []

    @contextmanager
    def scratch(self) -> Generator[None]:
        """Give up, behind what is done in it, all tables that were kept and registered for it.

        >>> engine = Engine()
        >>> with engine.scratch():
        ...     kept = engine.keep("SELECT 1 AS n")
        >>> engine.rows("SELECT count(*) AS n FROM duckdb_tables()")
        [{'n': 0}]
        """
        begun = len(self._given_up)
        try:
            yield
        finally:
            while len(self._given_up) > begun:
                self._given_up.pop()()

    def table(self, name: str) -> Relation:
        """Give a table by its name."""
        return Relation(self, identifier(name))

    def query(self, sql: str) -> Relation:
        """Give what a query will give, not run yet."""
        return Relation(self, f"({sql})")

    def keep(self, sql: str, name: str = "kept") -> Relation:
        """Run a query and keep its rows in the database."""
        self._made += 1
        made = f"{name}_{self._made}"
        self.con.execute(f"CREATE TEMP TABLE {made} AS {sql}")
        self._given_up.append(lambda: self.con.execute(f"DROP TABLE {made}").fetchall())
        return self.table(made)

    def register(self, rows: Table, name: str = "given") -> Relation:
        """Give a table of Arrow as one of the database; it is read where it is."""
        self._made += 1
        made = f"{name}_{self._made}"
        self.con.register(made, rows)
        self._given_up.append(lambda: self.con.unregister(made))
        return self.table(made)

    def types(self, table: str) -> dict[str, str]:
        """Name the columns of what stands behind FROM, and their types."""
        return {row[0]: row[1] for row in self.con.execute(f"DESCRIBE FROM {table}").fetchall()}

    def arrow(self, sql: str) -> Table:
        """Run a query and give its rows as a table of Arrow."""
        return self.con.sql(sql).to_arrow_table()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Run a query and give its rows: only ever done with small results."""
        return self.arrow(sql).to_pylist()


def identifier(name: str) -> str:
    """Quote a name for SQL.

    >>> identifier("user")
    '"user"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str | None) -> str:
    """Quote a text for SQL.

    >>> print(literal("it's"), literal(None))
    'it''s' NULL
    """
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def listed(texts: Iterable[str]) -> str:
    """Write texts as the right side of IN.

    >>> listed(["a", "b"])
    "('a', 'b')"
    """
    return f"({', '.join(map(literal, texts)) or 'NULL'})"


def _machine() -> float:
    """Give the memory of the machine in bytes; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _checked(memory: str) -> float:
    """Read a size that the process can work in, in bytes."""
    most = _bytes(memory)
    if most < _LEAST:
        raise InputError(f"{memory} is too little memory to work in", fix=f"give {_LEAST / 1e6:.0f}MB or more")
    return most


def _bytes(size: str) -> float:
    """Read a size in bytes.

    >>> _bytes("1.5GB"), _bytes("1 KiB")
    (1500000000.0, 1024.0)
    """
    found = _SIZE.fullmatch(size)
    if not found:
        raise InputError(f"{size!r} is no size of memory", fix="write a number and MB or GB, such as 4GB")
    return float(found[1]) * (1024 if found[3] else 1000) ** (" KMGTPE".index(found[2].upper()))


@contextmanager
def within_memory() -> Generator[None]:
    """Say what can be done where the database runs out of memory.

    Raises
    ------
    InputError
        In the place of the database's own error.
    MissingExtraError
        If it is not installed.
    """
    library = duckdb_library()
    try:
        yield
    except library.OutOfMemoryException:
        raise InputError(
            "the log does not fit into the memory that it may take", fix="give more, such as 4GB"
        ) from None


_FILE = re.compile(r'file "([^"]+)"')
_SIGNS = ("Failed to read file", "Parquet file", "Could not read enough bytes")


@contextmanager
def whole_files(paths: Sequence[str | Path]) -> Generator[None]:
    """Say which file is damaged where the database stumbles over it.

    Parameters
    ----------
    paths
        What is read: the database does not always say in which file it was.

    Raises
    ------
    InputError
        In the place of the database's own error.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        first = str(error).split("\n", 1)[0]
        # What its readers of packed data throw has no class of its own; whatever is wrong with SQL has one.
        if type(error) is not duckdb.Error and not any(sign in first for sign in _SIGNS):
            raise
        named = _FILE.search(first)
        where = named[1] if named else ""
        if not where or Path(where).name.startswith(("unpacked-", "named-")):  # a copy of ours
            where = ", ".join(map(str, paths))
        problem = f"the data of a Parquet file is damaged ({first.replace(named[1], where) if named else first})"
        raise InputError(problem, fix="make or fetch the file again", path=where) from None
