"""The database that logs are worked on in: DuckDB inside this process by default, any backend of Ibis by wish.

What metrics need of a backend is little on purpose: filters, joins, grouped sums, and the join "as of" a time. Window
functions are kept out of everything behind the typed tables, since not every backend has them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from judged.errors import InputError, MissingExtraError
from judged.online.tables import Relation

_FOLDERS = "judged-log-"
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT])i?B\s*", re.IGNORECASE)
_LEAST = 64e6


def ibis_library() -> Any:
    """Give Ibis.

    Raises
    ------
    MissingExtraError
        If it, or DuckDB, is not installed.
    """
    try:
        import duckdb
        import ibis
    except ImportError:
        raise MissingExtraError("Ibis with DuckDB", "logs") from None
    del duckdb
    return ibis


class Engine:
    """A DuckDB of this process, in a folder that vanishes with it: what does not fit into memory goes there.

    Parameters
    ----------
    memory
        The most that DuckDB may take, such as ``4GB``; None: four fifths of the machine's.
    threads
        At most so many; None: as many as there are cores.

    Raises
    ------
    InputError
        If `memory` is no size, or too little to work in.

    Examples
    --------
    >>> engine = Engine(memory="200MB")
    >>> engine.sql("SELECT 1 AS one").to_pyarrow().to_pylist()
    [{'one': 1}]
    """

    def __init__(self, *, memory: str | None = None, threads: int | None = None) -> None:
        ibis = ibis_library()
        self.folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
        weakref.finalize(self, shutil.rmtree, str(self.folder), ignore_errors=True)
        options: dict[str, Any] = {"temp_directory": str(self.folder / "spill")}
        if memory is not None:
            options["memory_limit"] = _checked(memory)
        if threads is not None:
            options["threads"] = threads
        self.backend = ibis.duckdb.connect(str(self.folder / "log.duckdb"), **options)
        self.backend.raw_sql("SET preserve_insertion_order = false")
        self._made = 0

    def sql(self, text: str) -> Relation:
        """Give the table that a query of DuckDB makes, not run yet."""
        return self.backend.sql(text)

    def keep(self, table: Relation, name: str = "table") -> Relation:
        """Run an expression and keep its rows in the database."""
        self._made += 1
        return self.backend.create_table(f"{name}_{self._made}", table, temp=False)


def _checked(memory: str) -> str:
    """Give a size back, if it is one that the database can work in.

    >>> _checked("1.5GiB")
    '1.5GiB'
    """
    found = _SIZE.fullmatch(memory)
    if not found:
        raise InputError(f"{memory!r} is no size of memory", fix="write a number and MB or GB, such as 4GB")
    if float(found[1]) * 1000 ** (" KMGT".index(found[2].upper())) < _LEAST:
        raise InputError(f"{memory} is too little memory to work in", fix="give 200MB or more")
    return memory


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
    ibis_library()
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise InputError(
            "the log does not fit into the memory that it may take", fix="give more, such as 4GB"
        ) from None


def kept(table: Relation) -> Relation:
    """Run an expression once and keep its rows while they are used, in whatever backend it lives.

    What Ibis calls a cache is a plan in Polars, which runs again at every use: there the rows are made into a table.
    """
    backend = table.get_backend()
    if backend.name == "polars":
        return backend.create_table(ibis_library().util.gen_name("kept"), table.to_pyarrow())
    return table.cache()


def rows_of(table: Relation) -> list[dict[str, Any]]:
    """Run an expression and give its rows: only ever done with small results."""
    return table.to_pyarrow().to_pylist()


def next_after(left: Relation, right: Relation, *, by: str, at_least: str, time: str, found: str) -> Relation:
    """Give each row of `left` the first row of `right`, of the same group, at or after a time.

    Parameters
    ----------
    left, right
        Tables. `right` needs the columns `by` and `time` and whatever else is wanted of it; of several rows of one
        group and time any is given, not the same by every backend, so that it must have one where that matters.
    by
        The column that both share: the session.
    at_least
        The column of `left` from which to look (whole milliseconds; for "strictly after t" give t + 1).
    time
        The column of `right` that it is compared with.
    found
        Put before the names of the columns of `right` in the result; all are null where there is no such row.
    """
    left, right = _ordered(left, at_least), _ordered(right, time)
    joined = left.asof_join(right, on=left[at_least] <= right[time], predicates=by, rname=found + "{name}")
    return joined.drop(found + by) if found + by in joined.columns else joined


def last_before(left: Relation, right: Relation, *, by: str, at_most: str, time: str, found: str) -> Relation:
    """Give each row of `left` the last row of `right`, of the same group, at or before a time: see `next_after`."""
    left, right = _ordered(left, at_most), _ordered(right, time)
    joined = left.asof_join(right, on=left[at_most] >= right[time], predicates=by, rname=found + "{name}")
    return joined.drop(found + by) if found + by in joined.columns else joined


def _ordered(table: Relation, column: str) -> Relation:
    """Sort for a backend that joins "as of" by walking: Polars. DuckDB sorts by itself."""
    return table.order_by(column) if table.get_backend().name == "polars" else table
