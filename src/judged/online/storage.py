"""A typed log as a folder: four Parquet tables, and what was found while it was made."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.engine import duckdb_library, identifier, literal, whole_files
from judged.online.findings import Account, LogFinding
from judged.online.log import InteractionLog
from judged.online.tables import EVENT, SERP, SESSION, SHOWN
from judged.results.atomic import replaced_folder

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation

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
    with replaced_folder(folder) as part:
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
