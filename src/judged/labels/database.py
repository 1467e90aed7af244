"""The database below a store: how it is opened, how rows are added, and what of its address may be shown."""

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
"""So many are written in one statement."""
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_TRIES = 4  # to open a store
_LEAST_ROOM = 1 << 16  # bytes: SQLite begins its files beside a store with 32 kB


class Layout(NamedTuple):
    """The tables of a kind of database."""

    about: SqlTable  # names and values; with its metadata all other tables
    version: int  # of these tables
    holds: str  # in words
    make: str  # the command that makes one


def open_database(where: str | Path, layout: Layout, begin: Callable[[Connection], Any], *, new: bool) -> Engine:
    """Open a database with tables of ours; where there is none make it, if `new`, with the rows that `begin` writes.

    Raises
    ------
    InputError
        If it cannot be opened, is something else, is not there, or was written by a newer judged.
    OutputError
        If the disk is full.
    """
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

    shown = without_password(where)
    if not new and "://" not in str(where) and not Path(where).is_file():
        raise InputError("there is no such store", fix=f"make it: {layout.make} {shown}", path=shown)
    try:
        if new and "://" not in str(where) and str(where) != ":memory:" and not Path(where).exists():
            _make(where, layout, begin)
        engine = engine_of(str(where))
        for tried in range(_TRIES):
            try:
                _prepare(engine, layout, begin, new, shown)
                break
            except (IntegrityError, OperationalError, ProgrammingError, _BusyError):  # another process may be making it
                if tried + 1 == _TRIES:
                    raise
                time.sleep(0.1 * (tried + 1))
    except JudgedError:
        raise
    except (SQLAlchemyError, ValueError) as error:  # a port that is no number is a ValueError
        fix = "give the path of a file, or postgresql://user@host/database"
        cause = getattr(error, "orig", None)  # what SQLAlchemy says itself may hold the whole address
        reason = f" ({str(cause).splitlines()[0]})" if cause is not None and str(cause) else ""
        raise InputError(f"the {layout.holds} cannot be opened{reason}", fix=fix, path=shown) from None
    return engine


def _make(path: str | Path, layout: Layout, begin: Callable[[Connection], Any]) -> None:
    """Make a file of SQLite that has all tables from the first moment; one that another process has made stays."""
    made = engine_of("sqlite://")
    _prepare(made, layout, begin, new=True, shown=str(path))
    with made.connect() as connection, atomic_write(path, new=True) as part:
        part.write_bytes(cast("sqlite3.Connection", connection.connection.driver_connection).serialize())
    made.dispose()


def _prepare(engine: Engine, layout: Layout, begin: Callable[[Connection], Any], new: bool, shown: str) -> None:
    from sqlalchemy import insert, inspect, select

    about, names = layout.about, set(inspect(engine).get_table_names())
    if names and about.name not in names:
        raise InputError(f"this database is no store of {layout.holds}", fix="name a new file", path=shown)
    if not names and not new:
        problem = f"this database holds no {layout.holds} yet"
        raise InputError(problem, fix=f"make it: {layout.make} {shown}", path=shown)
    if engine.dialect.name == "sqlite":  # readers and a writer at once; a file that is not ours stays as it is
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    about.metadata.create_all(engine)
    with engine.begin() as connection:
        version = connection.scalar(select(about.c.value).where(about.c.name == "version"))
        if version is None:
            connection.execute(insert(about), {"name": "version", "value": str(layout.version)})
            begin(connection)
        elif int(version) > layout.version:
            fix = "open it with the newer judged that wrote it"
            raise InputError(f"its layout is version {version}", fix=fix, path=shown)


def add_new(connection: Connection, table: SqlTable, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows whose key is not there yet."""
    from sqlalchemy.dialects import postgresql, sqlite

    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    every = [{name: storable(name, value) for name, value in row.items()} for row in rows]
    for start in range(0, len(every), ROWS):
        connection.execute(insert(table).on_conflict_do_nothing(), every[start : start + ROWS])


def engine_of(where: str) -> Engine:
    """Connect to a file of SQLite, or to PostgreSQL."""
    from sqlalchemy import create_engine, event

    scheme, separator, rest = where.partition("://")
    if separator and scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
        return create_engine(f"postgresql+psycopg://{rest}", hide_parameters=True)
    if separator and scheme != "sqlite":
        fix = "give the path of a file, or postgresql://user@host/name"
        raise InputError(f"a store cannot be in {scheme}://", fix=fix, path=without_password(where))
    address = where if where.startswith("sqlite:") else f"sqlite:///{where}"
    engine = create_engine(address, hide_parameters=True)  # errors do not quote texts, answers, and tokens

    if engine.url.database not in {None, "", ":memory:"}:
        # SQLite removes its log when the last connection is closed.
        weakref.finalize(engine, engine.pool.dispose)
    event.listen(engine, "handle_error", partial(_raise_own, engine.url.database or "", without_password(where)))

    @event.listens_for(engine, "connect")
    def careful(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        for said in ("synchronous=FULL", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {said}")

    return engine


class _BusyError(InputError):
    """Another process is writing to a store for longer than this one waits."""


def _raise_own(path: str, shown: str, context: ExceptionContext) -> None:
    """Raise an error of ours where a database cannot write, or is damaged."""
    error = context.original_exception
    name = str(getattr(error, "sqlite_errorname", ""))  # none where a text cannot be decoded
    full = is_full(error)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and Path(path).parent.is_dir():
        # SQLite does not say why it could not make or enlarge one of its files beside the store.
        full = shutil.disk_usage(Path(path).parent).free < _LEAST_ROOM
    if full or name.startswith("SQLITE_IOERR"):
        raise OutputError(shown, OSError(errno.ENOSPC if full else errno.EIO, str(error)))
    if name.startswith("SQLITE_BUSY"):
        raise _BusyError("another process is writing to it", fix="try again when it has ended", path=shown)
    if name.startswith(_DAMAGED) or (not name and "Could not decode" in str(error)):
        raise InputError(f"the database is damaged ({error})", fix="restore it from a copy", path=shown) from None


def storable(name: str, value: Any) -> Any:
    """Replace what no database can hold in a text: NUL and halves of characters; refuse it in ids."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    held = value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if held != value and name in {"query_id", "doc_id"}:
        raise InputError(f"the {name} {value!r:.60} has a character that no text can hold", fix="give it another id")
    return held


def without_password(where: str | Path) -> str:
    """Write an address without the password, wherever it stands.

    >>> without_password("postgresql://ann:a:b@c@host/labels?password=d"), without_password("labels.db")
    ('postgresql://ann@host/labels', 'labels.db')
    """
    scheme, separator, rest = str(where).partition("://")
    user, at, place = rest.partition("?")[0].rpartition("@")
    return f"{scheme}{separator}{user.partition(':')[0]}{at}{place}"
