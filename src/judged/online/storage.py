"""Reading of logs, and storage of typed logs as a folder of four Parquet tables and a JSON file."""

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
from judged.online.engine import Database, Relation, duckdb_library, identifier, literal, translate_parquet_errors
from judged.online.findings import Account, LogFinding
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog, validate
from judged.results.files import atomic_folder
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.online.readers.files import LogFile
    from judged.online.readers.raw import RawLog
    from judged.results.types import Table


VERSION = 5
"""Version of the folder layout; another version of judged may not be able to read it."""

ABOUT = "log.json"
TABLES = {"serp": SERP, "shown": SHOWN, "event": EVENT, "session": SESSION}
_ROW_GROUP = 250_000


def is_stored(path: Path | str) -> bool:
    """Return whether a path is the folder of a typed log."""
    return (Path(path) / ABOUT).is_file() and (Path(path) / "serp.parquet").is_file()


def store_log(log: InteractionLog, folder: Path | str) -> tuple[Path, ...]:
    """Write a prepared log to a folder, from which it opens without another preparation.

    Parameters
    ----------
    log
        The log.
    folder
        Output folder, created if needed. An older log in it is replaced when the new one is complete.

    Returns
    -------
    tuple of Path
        Written files.

    Raises
    ------
    InputError
        If the folder contains other files, or cannot be created.
    OutputError
        If the disk is full.
    """
    folder = Path(folder)
    expected = {ABOUT, *(f"{name}.parquet" for name in TABLES)}
    try:
        unexpected = sorted({path.name for path in folder.iterdir()} - expected) if folder.exists() else []
    except OSError as error:
        problem = f"the folder cannot be created ({error.strerror})"
        raise InputError(problem, fix="use another folder", path=str(folder)) from None
    if unexpected:
        problem = f"the folder contains other files, such as {unexpected[0]}"
        raise InputError(problem, fix="use a new folder", path=str(folder))
    fields: dict[str, Any] = {"judged_log": VERSION, **{name: getattr(log, name) for name in _ABOUT}}
    fields |= {"has": sorted(log.has), **{name: list(map(asdict, fields[name])) for name in ("findings", "accounts")}}
    text = json.dumps(fields, indent=2, ensure_ascii=False) + "\n"
    # An interrupted conversion leaves the previous log unchanged.
    with atomic_folder(folder) as new_folder:
        for name in TABLES:
            _write(getattr(log, name), new_folder / f"{name}.parquet")
        (new_folder / ABOUT).write_text(text, encoding="utf-8")
    return tuple(sorted(folder / name for name in expected))


def _write(table: Relation, path: Path) -> None:
    """Write a table in batches, since it may be larger than memory."""
    # ENUM types of DuckDB are stored as text, which other programs can read.
    columns = [f"CAST({identifier(name)} AS VARCHAR) AS {identifier(name)}" if kind.startswith("ENUM") else
               identifier(name) for name, kind in table.types.items()]  # fmt: skip
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROW_GROUP}"
    try:
        table.engine.con.execute(f"COPY (SELECT {', '.join(columns)} FROM {table}) TO {literal(str(path))} ({options})")
    # Usually a full disk, which the caller reports as an OutputError.
    except duckdb_library().IOException as error:
        raise OSError(errno.EIO, str(error).split("\n")[0]) from None


def open_stored(folder: Path | str, engine: Database, tables: Mapping[str, Relation] | None = None) -> InteractionLog:
    """Open a log that `store_log` wrote; `tables` replaces its Parquet files.

    Raises
    ------
    InputError
        If a file is missing or damaged, or was written by a later version.
    """
    folder = Path(folder)
    fields = _read_about(folder)
    tables = tables or {name: _open(folder / f"{name}.parquet", engine) for name in TABLES}
    try:
        return InteractionLog(**tables, **{name: _ABOUT[name](fields[name]) for name in _ABOUT})
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _damaged("the file was not written by 'judged logs convert'", folder / ABOUT) from None


def _damaged(problem: str, path: Path) -> InputError:
    return InputError(problem, fix="convert the log again", path=str(path))


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
"""Fields in the JSON file, and the functions that convert them from JSON."""


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / ABOUT
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        version = fields["judged_log"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise _damaged("the file was not written by 'judged logs convert'", path) from None
    if version != VERSION:
        problem = f"the log was converted by another version of judged (table layout {version}, expected {VERSION})"
        raise _damaged(problem, path)
    if missing := _ABOUT.keys() - set(fields):
        raise _damaged(f"missing field {min(missing)!r}", path)
    return fields


def _open(path: Path, engine: Database) -> Relation:
    import pyarrow.parquet as pq

    try:
        names = set(pq.read_schema(path).names)
    except (OSError, ValueError):  # includes Arrow errors and column names that are not UTF-8
        raise _damaged("the table is missing or damaged", path) from None
    missing = [column.name for column in TABLES[path.stem] if column.name not in names]
    if missing:
        raise _damaged(f"missing column {missing[0]!r}", path)
    with translate_parquet_errors([path]):
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
    r"""Read an interaction log in any supported layout.

    `InteractionLog.accounts` counts kept and excluded rows, and `InteractionLog.findings` lists the problems.

    Parameters
    ----------
    paths
        Files of one log, compressed or not, folders of them, or ``-`` for standard input; or a folder that ``judged
        logs convert`` wrote. Other files in a folder are skipped and counted.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: detected from the first bytes.
    mapping
        TOML file that maps the columns of a log with another layout.
    session_gap
        Minutes of inactivity that end a session, if the log has no session IDs.
    bots
        ``exclude`` or ``keep`` users that are programs.
    bot_pages, bot_minutes
        A user with more than `bot_pages` pages in `bot_minutes` minutes, or in one session, is a program.
    rank_base
        Number of the first position, 0 or 1. None: defined by the layout, or detected for each application.
    now_ms
        Milliseconds since 1970; times more than a day later are invalid. None: the current time.
    actions
        Names of actions in the log, mapped to names in `judged.online.log.ACTIONS`.
    name
        Name of the log. None: name of the first file.
    memory, threads
        Memory limit of the process, such as ``1GB``, and number of threads: see `judged.online.engine.Database`.
    tables
        Spark schema with the tables of a converted log, ``sc://HOST:PORT/SCHEMA``: see `judged.online.storage`.
    progress
        Called with the name of each step and the finished share, None if unknown.

    Raises
    ------
    InputError
        If the layout is unknown, a file cannot be read, or an option is invalid.
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
    ...     print([(account.table, account.read, account.kept) for account in log.accounts])
    ...     print([(finding.rule, finding.rows) for finding in log.findings])
    ...     print(log.event.where("serp IS NOT NULL").to_arrow("action", "object_id", "rank").to_pylist()[0])
    [('query', 1, 1), ('event', 2, 2)]
    [('unknown-query-id', 1)]
    {'action': 'click', 'object_id': 'b', 'rank': 2}
    """
    sources = _path_list(paths)
    options: dict[str, Any] = {
        "session_gap": session_gap, "bots": bots, "bot_pages": bot_pages, "bot_minutes": bot_minutes,
        "rank_base": rank_base, "actions": actions, "now_ms": now_ms, "name": name,
    }  # fmt: skip
    validate(layout=layout, mapping=mapping, memory=memory, threads=threads, tables=tables, **options)
    if tables is not None or (len(sources) == 1 and is_stored(sources[0])):
        # Options with an effect on preparation must have their defaults.
        preparation = (layout, mapping, session_gap, bots, bot_pages, bot_minutes, rank_base, actions)
        if preparation != (None, None, 30.0, "exclude", 100, 60.0, None, None):
            problem = "options for sessions, bots, ranks, and actions have no effect on a converted log"
            raise InputError(problem, fix="convert the original log again with these options", path=str(sources[0]))
        if tables is not None:
            from judged.data.spark import connect
            from judged.online.storage import open_on_spark

            return open_on_spark(sources[0], *connect(tables))
        return open_stored(sources[0], Database(memory=memory, threads=threads))
    from judged.online.engine import translate_parquet_errors
    from judged.online.preparation.make import make_log

    engine = Database(memory=memory, threads=threads)
    with translate_parquet_errors(sources):
        raw = read_raw(sources, engine, layout=layout, mapping=mapping, progress=progress)
        return make_log(raw, engine, **options, progress=progress and (lambda step: progress(step, None)))


def _path_list(paths: Any) -> list[str | Path]:
    is_list = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes))
    path_list: list[Any] = list(cast("Iterable[Any]", paths)) if is_list else [paths]
    for path in path_list:
        if not isinstance(path, (str, Path)):
            raise InputError(f"expected a path, got {type(path).__name__}", fix="use the path of a file or folder")
    if not path_list:
        raise InputError("no files", fix="use at least one file")
    return path_list


_TYPES = {"string": "VARCHAR", "large_string": "VARCHAR", "bool": "BOOLEAN", "int32": "INTEGER", "int64": "BIGINT",
          "double": "DOUBLE"}  # fmt: skip
_IN_SPARK = {"int64": "BIGINT", "int32": "INT", "double": "DOUBLE", "bool": "BOOLEAN"}


class SparkEngine(Database):
    """Spark session, classic or Connect, as a replacement for DuckDB."""

    def __init__(self, session: Any) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.session = session
        self._table_count = 0
        self._cleanups = []

    def keep(self, sql: str, name: str = "stored") -> Relation:
        """Run a query and cache its rows in the cluster."""
        with translate_errors("<spark>"):
            return self._create_view(self.session.sql(to_spark_sql(sql)).persist(), name)

    def register(self, rows: Table, name: str = "registered") -> Relation:
        """Send an Arrow table to the cluster."""
        columns = ", ".join(f"CAST(NULL AS {_spark(field.type)}) AS `{field.name}`" for field in rows.schema)
        empty = f"SELECT {columns} WHERE false"
        with translate_errors("<spark>"):
            # Spark cannot infer the types of a table without rows.
            frame = self.session.createDataFrame(rows) if len(rows) else self.session.sql(empty)
            return self._create_view(frame, name)

    def _create_view(self, frame: Any, name: str) -> Relation:
        self._table_count += 1
        view = f"{name}_{id(self)}_{self._table_count}"
        frame.createOrReplaceTempView(view)
        self._cleanups.append(lambda: (self.session.catalog.dropTempView(view), frame.unpersist()))
        return self.table(view)

    def types(self, table: str) -> dict[str, str]:
        """Return the column names and types of a table or query."""
        fields = self.arrow(f"SELECT * FROM {table} LIMIT 0").schema
        return {field.name: _TYPES.get(str(field.type), str(field.type)) for field in fields}

    def arrow(self, sql: str) -> Table:
        """Run a query and return an Arrow table."""
        with translate_errors("<spark>"):
            return self.session.sql(to_spark_sql(sql)).toArrow()


def open_on_spark(folder: Path | str, session: Any, schema: str) -> InteractionLog:
    """Open a typed log whose tables are on Spark, which then computes the metrics.

    Parameters
    ----------
    folder
        Folder written by ``judged logs convert``; only its ``log.json`` is read.
    session
        Spark session, classic or Connect.
    schema
        Schema with the tables ``serp``, ``shown``, ``event``, ``session``, loaded from the four Parquet files.

    Raises
    ------
    InputError
        If the folder is not a log, or Spark lacks a table.
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
    engine: Database,
    *,
    layout: str | None = None,
    mapping: str | Path | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> RawLog:
    r"""Read log files, as they are written, into raw tables.

    Parameters
    ----------
    paths
        Files of one log, compressed or not, folders of them, or ``-`` for standard input. Other files in a folder are
        skipped and counted.
    engine
        Database for the rows.
    layout
        One of ``ubi``, ``wscd``, ``trec-session``, ``open-bandit``; None: detected from the first bytes.
    mapping
        TOML file that maps the columns of a log with another layout. None: a file of an unknown layout is read with a
        drafted mapping if the draft has no doubts.
    progress
        Called with the name of each step and the finished share, None if unknown.

    Raises
    ------
    InputError
        If the layout is unknown, or a file is missing, damaged, or has another layout.

    Examples
    --------
    >>> import tempfile
    >>> from judged.online.engine import Database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = Path(folder) / "log.ndjson"
    ...     _ = log.write_text('{"query_id": "q", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     raw = read_raw([log], Database())
    ...     (raw.layout, raw.queries.to_arrow("query", "time_ms").to_pylist())
    ('ubi', [{'query': 'car', 'time_ms': 1767607200000}])
    """
    from judged.online.readers import files, unmapped
    from judged.online.readers.mapping_file import packaged_mappings, read_mapping

    if isinstance(paths, (str, Path)):
        paths = [paths]
    if layout is not None and layout not in files.LAYOUTS and not find("log_readers", layout):
        raise InputError(f"unknown layout {layout!r}", fix=use_one_of(files.LAYOUTS))
    if mapping is not None and layout not in {None, "mapping"}:
        raise InputError(
            f"`mapping` and the layout {layout!r} cannot be combined", fix="use only the mapping or only the layout"
        )
    if mapping is None and layout == "mapping":
        raise InputError("the layout 'mapping' requires a mapping file", fix="use --mapping FILE")
    requested = "mapping" if mapping is not None else layout
    log_files = [files.split_json(log_file, engine) for log_file in files.find_log_files(paths)]
    columns = unmapped.log_columns()
    if columns and requested is not None:
        problem = "--columns cannot be combined with a mapping or a layout"
        raise InputError(problem, fix="omit --columns; for columns of QRELS, write --columns qrels.doc_id=COLUMN")
    requested = "mapping" if columns else requested
    error = None
    try:
        parts, skipped = files.skip_non_logs(log_files, has_layout=requested is not None)
        resolved = requested or files.detect_layout(parts)
    except files.UnknownLayoutError as unknown:
        parts, skipped = files.skip_non_logs(log_files, has_layout=True)
        resolved, error = "mapping", unknown
    # Packaged mappings are layouts without a reader of their own.
    if resolved != "mapping" and resolved not in packaged_mappings():
        raw = _read_with_plugin(resolved, parts, engine, progress)
    else:
        from judged.online.readers.mapping import read

        if mapping is None and resolved == "mapping":
            table = unmapped.draft_for_reading(parts, columns, error)
        else:
            table = read_mapping(resolved, packaged_only=True) if mapping is None else read_mapping(mapping)
        raw = read(parts, engine, mapping=table, layout=resolved, progress=progress)
    return replace(raw, findings=(*raw.findings, *skipped))


def _read_with_plugin(
    layout: str, parts: Sequence[LogFile], engine: Database, progress: Callable[[str, float | None], None] | None
) -> RawLog:
    from judged.online.readers.files import read_head, unreadable_reason

    # XML declares its encoding, and a layout of a plugin may be binary.
    for part in parts if layout in {"wscd", "clickmodels"} else ():
        if error := unreadable_reason(read_head(part)):
            raise InputError(error[0], fix=error[1], path=part.name)
    read_log: Any = find("log_readers", layout)
    return read_log(parts, engine, progress=progress)
