"""A typed log as a folder: four Parquet tables, and what was found while it was made."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from judged.components import find
from judged.data.spark import to_spark_sql, translate_errors
from judged.errors import InputError
from judged.online.engine import Engine, Relation, duckdb_library, identifier, literal, whole_files
from judged.online.findings import Account, LogFinding
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog, need
from judged.results.files import atomic_folder

if TYPE_CHECKING:
    from judged.online.readers.files import LogFile
    from judged.online.readers.raw import RawLog
    from judged.results.types import Table


VERSION = 4
"""Of the layout of the folder: a later one may not be understood by an earlier judged."""

ABOUT = "log.json"
TABLES = {"serp": SERP, "shown": SHOWN, "event": EVENT, "session": SESSION}
_ROW_GROUP = 250_000


def is_stored(path: Path | str) -> bool:
    """Tell whether a path is the folder of a typed log."""
    return (Path(path) / ABOUT).is_file() and (Path(path) / "serp.parquet").is_file()


def store_log(log: InteractionLog, folder: Path | str) -> tuple[Path, ...]:
    """Write a log into a folder: it opens again in a moment, with nothing to judge anew.

    Parameters
    ----------
    log
        The log.
    folder
        Is made where it does not exist. An older log in it is replaced when the new one is complete.

    Returns
    -------
    tuple of Path
        The files.

    Raises
    ------
    InputError
        If the folder holds other things, or cannot be made.
    OutputError
        If it does not take the tables: the disk is full.
    """
    folder = Path(folder)
    ours = {ABOUT, *(f"{name}.parquet" for name in TABLES)}
    try:
        strange = sorted(one.name for one in folder.iterdir() if one.name not in ours) if folder.exists() else []
    except OSError as error:
        problem = f"no folder can be made here ({error.strerror})"
        raise InputError(problem, fix="name another", path=str(folder)) from None
    if strange:
        problem = f"there are other files in this folder, such as {strange[0]}"
        raise InputError(problem, fix="name a new folder", path=str(folder))
    kept: dict[str, Any] = {"judged_log": VERSION, **{name: getattr(log, name) for name in _ABOUT}}
    kept |= {"has": sorted(log.has), **{name: list(map(asdict, kept[name])) for name in ("findings", "accounts")}}
    about = json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
    with atomic_folder(folder) as part:
        for name in TABLES:
            _write(getattr(log, name), part / f"{name}.parquet")
        (part / ABOUT).write_text(about, encoding="utf-8")
    return tuple(sorted(folder / name for name in ours))


def _write(table: Relation, path: Path) -> None:
    """Write a table by the batch: it may be larger than memory."""
    columns = [f"CAST({identifier(name)} AS VARCHAR) AS {identifier(name)}" if kind.startswith("ENUM") else
               identifier(name) for name, kind in table.types.items()]  # fmt: skip
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP}"
    try:
        table.engine.con.execute(f"COPY (SELECT {', '.join(columns)} FROM {table}) TO {literal(str(path))} ({options})")
    except duckdb_library().IOException as error:
        raise OSError(errno.EIO, str(error).split("\n")[0]) from None


def open_stored(folder: Path | str, engine: Engine, tables: Mapping[str, Relation] | None = None) -> InteractionLog:
    """Read a log that `store_log` wrote; its tables may be elsewhere.

    Raises
    ------
    InputError
        If a file is missing or damaged, or was written by a later version.
    """
    folder = Path(folder)
    about = _read_about(folder)
    tables = tables or {name: _open(folder / f"{name}.parquet", engine) for name in TABLES}
    try:
        return InteractionLog(**tables, **{name: _ABOUT[name](about[name]) for name in _ABOUT})
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _damaged("what stands in it is not what 'judged logs convert' writes", folder / ABOUT) from None


def _damaged(problem: str, path: Path) -> InputError:
    return InputError(problem, fix="convert the log anew", path=str(path))


def _as_it_is(stored: Any) -> Any:
    return stored


def _account(stored: dict[str, Any]) -> Account:
    values: dict[str, Any] = stored | {"excluded": _pairs(stored["excluded"])}
    account = Account(**values)
    if account.read != account.kept + sum(rows for _, rows in account.excluded):
        raise ValueError
    return account


def _finding(stored: dict[str, Any]) -> LogFinding:
    values: dict[str, Any] = stored | {"places": tuple(stored["places"])}
    return LogFinding(**values)


def _pairs(stored: Sequence[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((key, value) for key, value in stored)


_ABOUT: dict[str, Callable[[Any], Any]] = {
    "name": _as_it_is, "layout": _as_it_is, "files": tuple, "has_time": _as_it_is, "dated": _as_it_is,
    "has": frozenset, "attributes": tuple, "policies": _pairs, "propensity_convention": _as_it_is,
    "findings": lambda stored: tuple(map(_finding, stored)), "accounts": lambda stored: tuple(map(_account, stored)),
}  # fmt: skip
"""What is kept beside the tables, and how each of it is made of what stands in JSON."""


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version = about["judged_log"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise _damaged("this is not what 'judged logs convert' writes", path) from None
    if version != VERSION:
        problem = f"this log was written by another version of judged (layout {version}, not {VERSION})"
        raise _damaged(problem, path)
    if missing := _ABOUT.keys() - set(about):
        raise _damaged(f"there is no {min(missing)}", path)
    return about


def _open(path: Path, engine: Engine) -> Relation:
    import pyarrow.parquet as pq

    try:
        names = set(pq.read_schema(path).names)
    except (OSError, ValueError):  # Arrow's own are among them, and names that are no UTF-8
        raise _damaged("this table is missing or damaged", path) from None
    missing = [one.name for one in TABLES[path.stem] if one.name not in names]
    if missing:
        raise _damaged(f"there is no column {missing[0]}", path)
    with whole_files([path]):
        return engine.query(f"FROM read_parquet({literal(str(path))})")


def read_log(
    paths: str | Path | Sequence[str | Path],
    *,
    layout: str | None = None,
    mapping: str | Path | None = None,
    session_gap: float = 30.0,
    bots: Literal["exclude", "keep"] = "exclude",
    bot_pages: int = 100,
    bot_minutes: float = 60.0,
    rank_base: Literal[0, 1] | None = None,
    now_ms: int | None = None,
    actions: Mapping[str, str] | None = None,
    name: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    tables: str | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> InteractionLog:
    r"""Read what users did on result pages, whatever wrote it.

    No row is dropped without a name: `InteractionLog.accounts` says where each went, and `InteractionLog.findings` what
    was wrong with it.

    Parameters
    ----------
    paths
        Files of one log, packed or not, folders of them, or ``-`` for standard input; or a folder that ``judged logs
        convert`` wrote, for which nothing else needs saying. What is no log in a folder is left out and counted.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: it is found from the first bytes.
    mapping
        A TOML file that says which columns of any other log mean what.
    session_gap
        Minutes of inactivity that end a session, where the log names none.
    bots
        ``exclude``: leave out users who are programs; ``keep``: count them, and say how many.
    bot_pages, bot_minutes
        A user with more than so many pages in so many minutes, or in one session of the log, is a program.
    rank_base
        0 or 1: what the first position is called. None: as the layout says, or found for each application.
    now_ms
        Milliseconds since 1970: what is more than a day later cannot be. None: now.
    actions
        What the log's names of actions mean: one of `judged.online.log.ACTIONS` by name.
    name
        What to call it. None: the name of its first file.
    memory, threads
        The most that the process may take, such as ``1GB``, and how many threads: see `judged.online.engine.Engine`.
    tables
        Where on Spark the tables of a converted log are, ``sc://HOST:PORT/SCHEMA``: see `judged.online.storage`.
    progress
        Called with what is being done and the share of it that is done, None where that is not known.

    Raises
    ------
    InputError
        If the layout is not known, a file cannot be read, or a choice makes no sense.
    MissingExtraError
        If DuckDB is not installed.

    Examples
    --------
    >>> import json, tempfile
    >>> records = [
    ...     {"query_id": "1", "client_id": "ann", "user_query": "lamp", "timestamp": "2026-01-05T10:00:00Z",
    ...      "query_response_hit_ids": ["a", "b"]},
    ...     {"query_id": "1", "client_id": "ann", "action_name": "click", "timestamp": "2026-01-05T10:00:09Z",
    ...      "event_attributes": {"object": {"object_id": "b"}, "position": {"ordinal": 2}}},
    ...     {"query_id": "9", "client_id": "ann", "action_name": "click", "timestamp": "2026-01-05T10:00:30Z"},
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.ndjson"
    ...     _ = path.write_text("\n".join(map(json.dumps, records)))
    ...     log = read_log(path)
    ...     print([(one.table, one.read, one.kept) for one in log.accounts])
    ...     print([(one.rule, one.rows) for one in log.findings])
    ...     print(log.event.where("serp IS NOT NULL").to_arrow("action", "object_id", "rank").to_pylist()[0])
    [('query', 1, 1), ('event', 2, 2)]
    [('unknown-query-id', 1)]
    {'action': 'click', 'object_id': 'b', 'rank': 2}
    """
    given = _named(paths)
    made: dict[str, Any] = {
        "session_gap": session_gap, "bots": bots, "bot_pages": bot_pages, "bot_minutes": bot_minutes,
        "rank_base": rank_base, "actions": actions, "now_ms": now_ms, "name": name,
    }  # fmt: skip
    need(layout=layout, mapping=mapping, memory=memory, threads=threads, tables=tables, **made)
    if tables is not None or (len(given) == 1 and is_stored(given[0])):
        asked = (layout, mapping, session_gap, bots, bot_pages, bot_minutes, rank_base, actions)
        if asked != (None, None, 30.0, "exclude", 100, 60.0, None, None):
            problem = "a converted log was made already: how sessions, bots, ranks and actions are read cannot change"
            raise InputError(problem, fix="convert the log anew with these options", path=str(given[0]))
        if tables is not None:
            from judged.data.spark import connect
            from judged.online.storage import open_on_spark

            return open_on_spark(given[0], *connect(tables))
        return open_stored(given[0], Engine(memory=memory, threads=threads))
    from judged.online.engine import whole_files
    from judged.online.preparation.make import make_log

    engine = Engine(memory=memory, threads=threads)
    with whole_files(given):
        raw = read_raw(given, engine, layout=layout, mapping=mapping, progress=progress)
        return make_log(raw, engine, **made, progress=progress and (lambda step: progress(step, None)))


def _named(paths: Any) -> list[str | Path]:
    """Give the paths of a log, one or several."""
    several = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes))
    given: list[Any] = list(cast("Iterable[Any]", paths)) if several else [paths]
    for one in given:
        if not isinstance(one, (str, Path)):
            raise InputError(f"a {type(one).__name__} names no log", fix="give the path of a file or a folder")
    if not given:
        raise InputError("no log was named", fix="give one file or more")
    return given


_TYPES = {"string": "VARCHAR", "large_string": "VARCHAR", "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT",
          "double": "DOUBLE"}  # fmt: skip
_IN_SPARK = {"int64": "BIGINT", "int32": "INT", "double": "DOUBLE", "bool": "BOOLEAN"}


class SparkEngine(Engine):
    """A session of Spark, classic or Connect, in the place of DuckDB."""

    def __init__(self, session: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.session = session
        self._made = 0
        self._given_up = []

    def keep(self, sql: str, name: str = "kept") -> Relation:
        """Run a query and keep its rows in the cluster."""
        with translate_errors("<spark>"):
            return self._view(self.session.sql(to_spark_sql(sql)).persist(), name)

    def register(self, rows: Table, name: str = "given") -> Relation:
        """Send a table of Arrow."""
        nothing = ", ".join(f"CAST(NULL AS {_spark(field.type)}) AS `{field.name}`" for field in rows.schema)
        with translate_errors("<spark>"):
            sent = len(rows) > 0  # of a table without rows it would not know the types
            frame = self.session.createDataFrame(rows) if sent else self.session.sql(f"SELECT {nothing} WHERE false")
            return self._view(frame, name)

    def _view(self, frame: Any, name: str) -> Relation:
        self._made += 1
        made = f"{name}_{id(self)}_{self._made}"
        frame.createOrReplaceTempView(made)
        self._given_up.append(lambda: (self.session.catalog.dropTempView(made), frame.unpersist()))
        return self.table(made)

    def types(self, table: str) -> dict[str, str]:
        """Name the columns of what stands behind FROM, and their types."""
        fields = self.arrow(f"SELECT * FROM {table} LIMIT 0").schema
        return {field.name: _TYPES.get(str(field.type), str(field.type)) for field in fields}

    def arrow(self, sql: str) -> Table:
        """Run a query and give its rows as a table of Arrow."""
        with translate_errors("<spark>"):
            return self.session.sql(to_spark_sql(sql)).toArrow()


def open_on_spark(folder: Path | str, session: Any, schema: str) -> InteractionLog:
    """Open a typed log whose tables are on Spark; metrics over it are computed there.

    Parameters
    ----------
    folder
        What ``judged logs convert`` wrote; its ``log.json`` alone is read here.
    session
        A session of Spark, classic or Connect.
    schema
        Where its four Parquet files were made into tables: ``serp``, ``shown``, ``event``, ``session``.

    Raises
    ------
    InputError
        If the folder is no log, or Spark lacks a table.
    """
    engine = SparkEngine(session)
    place = ".".join(map(identifier, schema.split(".")))
    tables = {name: engine.query(f"SELECT * FROM {place}.{identifier(name)}") for name in TABLES}
    return open_stored(folder, engine, tables)


def _spark(kind: Any) -> str:
    name = str(kind)
    return f"ARRAY<{_spark(kind.value_type)}>" if name.startswith("list") else _IN_SPARK.get(name, "STRING")


def read_raw(
    paths: Sequence[str | Path],
    engine: Engine,
    *,
    layout: str | None = None,
    mapping: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> RawLog:
    r"""Read log files, as they are written, into raw tables.

    Parameters
    ----------
    paths
        Files, packed or not, folders of them, or ``-`` for standard input. They are one log. What is no log in a
        folder is left out and counted; what is named must be one.
    engine
        Where the rows go.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: it is found from the first bytes.
    mapping
        A TOML file that says which columns of any other log mean what.
    progress
        Called now and then with what is being done and the share of it that is done, None where that is not known.

    Raises
    ------
    InputError
        If the layout is not known, or a file is missing, damaged, or not of that layout.

    Examples
    --------
    >>> import tempfile
    >>> from judged.online.engine import Engine
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "log.ndjson"
    ...     _ = log.write_text('{"query_id": "q", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     raw = read_raw([log], Engine())
    ...     (raw.layout, raw.queries.to_arrow("query", "time_ms").to_pylist())
    ('ubi', [{'query': 'car', 'time_ms': 1767607200000}])
    """
    from judged.online.readers.files import LAYOUTS, detect_layout, find_log_files, skip_non_logs
    from judged.online.readers.mapping_file import packaged_mappings, read_mapping

    if isinstance(paths, (str, Path)):
        paths = [paths]
    if layout is not None and layout not in LAYOUTS and not find("log_readers", layout):
        raise InputError(f"there is no layout {layout!r}", fix=f"use one of {', '.join(LAYOUTS)}")
    if mapping is not None and layout not in {None, "mapping"}:
        raise InputError(f"a mapping and the layout {layout!r}", fix="give one of them")
    if mapping is None and layout == "mapping":
        raise InputError("the layout 'mapping' needs a mapping file", fix="give one: it names the columns")
    said = "mapping" if mapping is not None else layout
    parts, beside = skip_non_logs(find_log_files(paths), has_layout=said is not None)
    known = said or detect_layout(parts)
    if mapping is None and known not in packaged_mappings():
        raw = _by_reader(known, parts, engine, progress)
    else:
        from judged.online.readers.mapping import read

        by = read_mapping(mapping) if mapping is not None else read_mapping(known, packaged_only=True)
        raw = read(parts, engine, mapping=by, layout=known, progress=progress)
    return replace(raw, findings=(*raw.findings, *beside))


def _by_reader(
    layout: str, parts: Sequence[LogFile], engine: Engine, progress: Callable[[str, float | None], None] | None
) -> RawLog:
    from judged.online.readers.files import read_head, unreadable_reason

    # XML says itself how it is encoded, and a layout of another package may be no text.
    for part in parts if layout in {"wscd", "clickmodels"} else ():
        if why := unreadable_reason(read_head(part)):
            raise InputError(why[0], fix=why[1], path=part.name)
    read: Any = find("log_readers", layout)
    return read(parts, engine, progress=progress)
