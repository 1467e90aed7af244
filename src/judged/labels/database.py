"""Database connection of a store: opening, inserting, error handling, and addresses without passwords."""

from __future__ import annotations

import errno
import shutil
import time
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from judged.errors import InputError, JudgedError, OutputError, is_full
from judged.results.files import atomic_write

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine, ExceptionContext
    from sqlalchemy import Table as SqlTable

ROWS = 5_000
"""Number of rows per statement."""
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_MAX_ATTEMPTS = 4  # to open a store
_MIN_FREE_BYTES = 1 << 16  # SQLite's auxiliary files start with 32 kB


class StoreLayout(NamedTuple):
    """The tables of a kind of database."""

    about: SqlTable  # names and values; its metadata has all other tables
    version: int  # of the tables
    content: str  # content, for messages
    create_command: str  # command that creates a store


def open_database(where: str | Path, layout: StoreLayout, begin: Callable[[Connection], Any], *, new: bool) -> Engine:
    """Open a database of this layout; if it does not exist and `new`, create it with the rows that `begin` inserts.

    Raises
    ------
    InputError
        If it cannot be opened, has another content, does not exist, or was written by a newer version of judged.
    OutputError
        If the disk is full.
    """
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

    address = without_password(where)
    if not new and "://" not in str(where) and not Path(where).is_file():
        raise InputError("this store does not exist", fix=f"create it: {layout.create_command} {address}", path=address)
    try:
        if new and "://" not in str(where) and str(where) != ":memory:" and not Path(where).exists():
            _create_file(where, layout, begin)
        engine = create_store_engine(str(where))
        for attempt in range(_MAX_ATTEMPTS):
            try:
                _prepare(engine, layout, begin, new, address)
                break
            except (IntegrityError, OperationalError, ProgrammingError, _BusyError):
                # Another process may be creating the same store: try again.
                if attempt + 1 == _MAX_ATTEMPTS:
                    raise
                time.sleep(0.1 * (attempt + 1))
    except JudgedError:
        raise
    except (SQLAlchemyError, ValueError) as error:  # ValueError: the port is not a number
        fix = "use the path of a file, or postgresql://user@host/database"
        cause = getattr(error, "orig", None)  # SQLAlchemy's own message can contain the password
        reason = f" ({str(cause).splitlines()[0]})" if cause is not None and str(cause) else ""
        raise InputError(f"the store of {layout.content} cannot be opened{reason}", fix=fix, path=address) from None
    return engine


def _create_file(path: str | Path, layout: StoreLayout, begin: Callable[[Connection], Any]) -> None:
    """Create an SQLite file with all tables atomically; keep a file that another process has created."""
    engine = create_store_engine("sqlite://")
    _prepare(engine, layout, begin, new=True, address=str(path))
    # Build in memory and write atomically: a process that is killed leaves no partial store.
    with engine.connect() as connection, atomic_write(path, new=True) as temporary_path:
        temporary_path.write_bytes(cast("sqlite3.Connection", connection.connection.driver_connection).serialize())
    engine.dispose()


def _prepare(engine: Engine, layout: StoreLayout, begin: Callable[[Connection], Any], new: bool, address: str) -> None:
    from sqlalchemy import insert, inspect, select

    about, names = layout.about, set(inspect(engine).get_table_names())
    if names and about.name not in names:
        raise InputError(f"this database is not a store of {layout.content}", fix="use a new file", path=address)
    if not names and not new:
        problem = f"this database has no {layout.content}"
        raise InputError(problem, fix=f"create it: {layout.create_command} {address}", path=address)
    if engine.dialect.name == "sqlite":  # WAL: concurrent readers and one writer
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    # Also adds tables that are new since the store was created.
    about.metadata.create_all(engine)
    with engine.begin() as connection:
        version = connection.scalar(select(about.c.value).where(about.c.name == "version"))
        if version is None:
            connection.execute(insert(about), {"name": "version", "value": str(layout.version)})
            begin(connection)
        elif int(version) > layout.version:
            fix = "update judged"
            problem = (
                f"a newer version of judged wrote this store (store format {version}; this version reads"
                f" {layout.version} or lower)"
            )
            raise InputError(problem, fix=fix, path=address)


def add_new(connection: Connection, table: SqlTable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows whose key does not exist yet."""
    from sqlalchemy.dialects import postgresql, sqlite

    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    storable_rows = [{name: to_storable(name, value) for name, value in row.items()} for row in rows]
    for start in range(0, len(storable_rows), ROWS):
        connection.execute(insert(table).on_conflict_do_nothing(), storable_rows[start : start + ROWS])


def create_store_engine(where: str) -> Engine:
    """Create an engine for an SQLite file or for PostgreSQL."""
    from sqlalchemy import create_engine, event

    scheme, separator, location = where.partition("://")
    if separator and scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
        return create_engine(f"postgresql+psycopg://{location}", hide_parameters=True)
    if separator and scheme != "sqlite":
        fix = "use the path of a file, or postgresql://user@host/name"
        raise InputError(
            f"a store must be an SQLite file or a PostgreSQL database, got {scheme}://",
            fix=fix,
            path=without_password(where),
        )
    address = where if where.startswith("sqlite:") else f"sqlite:///{where}"
    engine = create_engine(address, hide_parameters=True)  # no texts, answers, and tokens in errors

    if engine.url.database not in {None, "", ":memory:"}:
        # Dispose at the end of the process: SQLite removes its log when the last connection is closed.
        weakref.finalize(engine, engine.pool.dispose)
    raise_error = partial(_raise_judged_error, engine.url.database or "", without_password(where))
    event.listen(engine, "handle_error", raise_error)

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        for setting in ("synchronous=FULL", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {setting}")

    return engine


class _BusyError(InputError):
    """Another process has locked the store for longer than the timeout."""


def _raise_judged_error(path: str, address: str, context: ExceptionContext) -> None:
    """Raise an error of judged if the database is busy, damaged, or cannot be written."""
    error = context.original_exception
    name = str(getattr(error, "sqlite_errorname", ""))  # missing if a text cannot be decoded
    # SQLite error names distinguish a full disk, a lock, and damage; messages vary by version.
    full = is_full(error)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and Path(path).parent.is_dir():
        # SQLite does not report why it could not create or extend an auxiliary file, so check the free space.
        full = shutil.disk_usage(Path(path).parent).free < _MIN_FREE_BYTES
    if full or name.startswith("SQLITE_IOERR"):
        raise OutputError(address, OSError(errno.ENOSPC if full else errno.EIO, str(error)))
    if name.startswith("SQLITE_BUSY"):
        raise _BusyError("another process has locked the store", fix="try again later", path=address)
    if name.startswith(_DAMAGED) or (not name and "Could not decode" in str(error)):
        raise InputError(
            f"the database is damaged ({error})", fix="restore the database from a copy", path=address
        ) from None


def to_storable(name: str, value: Any) -> Any:
    """Replace NUL and unpaired surrogates, which databases cannot store in a text; raise InputError for IDs."""
    # Fast path: most texts need no check by character.
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    stored = value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if stored != value and name in {"query_id", "doc_id"}:
        problem = f"`{name}` must not contain NUL or unpaired surrogates, got {value!r:.60}"
        raise InputError(problem, fix="change the ID")
    return stored


def without_password(where: str | Path) -> str:
    """Return an address without the password.

    >>> without_password("postgresql://ann:a:b@c@host/labels?password=d"), without_password("labels.db")
    ('postgresql://ann@host/labels', 'labels.db')
    """
    scheme, separator, location = str(where).partition("://")
    user, at_sign, host_and_path = location.partition("?")[0].rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}{at_sign}{host_and_path}"
