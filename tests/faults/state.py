"""Compare the content of a folder with its earlier content and with the complete output."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from faults.commands import Command

_LEFT = re.compile(r"(^|/)\.[^/]*\.part(/|-|$)|-wal$|-shm$|-journal$")
_OLD = b"old content of this file\n"


def prepare(command: Command, start: str, inputs: Path, out: Path, names: tuple[str, ...] = ()) -> None:
    """Create the folder with the content before a command; `names` are the files that the command writes."""
    out.mkdir(parents=True)
    if start == "empty":
        return
    for name, source in (command.old or {}).items():
        original, target = inputs / source, out / name
        if original.is_dir():
            shutil.copytree(original, target)
        else:
            shutil.copy(original, target)
    for name in names if command.old is None else ():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(_OLD)


def snapshot(command: Command, out: Path) -> dict[str, Any]:
    """Return the content of each file, or the error if it is unreadable."""
    contents: dict[str, Any] = {}
    for path in sorted(out.rglob("*")) if out.exists() else ():
        name = path.relative_to(out).as_posix()
        if path.is_file() and not (name.endswith(("-wal", "-shm")) and (out / name[:-4]).exists()):
            contents[name] = _content(command, path, out)
    return contents


def _content(command: Command, path: Path, out: Path) -> Any:
    if path.stat().st_size == len(_OLD) and path.read_bytes() == _OLD:
        return _OLD
    try:
        if path.suffix == ".db":
            return _rows(path, command.volatile)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows = pq.read_table(path).to_pylist()
            return "complete" if command.timed else sorted(map(repr, rows))
        if not command.timed:
            return path.read_bytes().replace(os.fsencode(out), b"{out}")  # a report holds its command
        text = path.read_text()
        for line in text.splitlines() if path.suffix == ".jsonl" else [text] if path.suffix == ".json" else []:
            json.loads(line)
    except Exception as error:  # noqa: BLE001  damaged content may make a reader raise anything
        return f"DAMAGED: {type(error).__name__}: {error}"
    return "complete"


def _rows(path: Path, volatile: tuple[str, ...]) -> dict[str, list[str]] | str:
    if not path.stat().st_size:
        return "DAMAGED: no byte"
    with closing(sqlite3.connect(path)) as store:
        store.row_factory = sqlite3.Row
        ((checked,),) = store.execute("PRAGMA integrity_check").fetchall()
        if checked != "ok":
            return f"DAMAGED: {checked}"
        names = [row["name"] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(
                repr({key: row[key] for key in row.keys() if key not in volatile})  # noqa: SIM118  of sqlite3
                for row in store.execute(f'SELECT * FROM "{name}"')
                if not (volatile and row.keys() == ["name", "value"] and row["name"] in volatile)
            )
            for name in names
        }


def problems(
    command: Command, out: Path, old: dict[str, Any], new: dict[str, Any], *, killed: bool = False
) -> list[str]:
    """Return the errors of a folder, which must have its earlier content or the output of the command."""
    paths = [path.relative_to(out).as_posix() for path in out.rglob("*")] if out.exists() and not killed else []
    wrong = [f"left behind: {path}" for path in paths if _LEFT.search(path)]
    now = {name: content for name, content in snapshot(command, out).items() if not _LEFT.search(name)}
    if now in (old, new):
        return wrong
    if command.unit == "folder":
        return [*wrong, f"the folder is neither the old nor the new one: {_differing(now, old, new)}"]
    for name in now.keys() | old.keys():
        if name not in now:
            wrong += [f"{name} is gone"] if name in new else []
        elif name not in old and name not in new:
            wrong.append(f"left behind: {name}")
        elif now[name] not in (old.get(name), new.get(name)):
            wrong += _store_problems(command, name, now[name], old.get(name), new.get(name))
    return wrong


def is_new(command: Command, out: Path, new: dict[str, Any]) -> bool:
    """Return whether a folder has all output of a command."""
    return {name: rows for name, rows in snapshot(command, out).items() if not _LEFT.search(name)} == new


def _store_problems(command: Command, name: str, now: Any, old: Any, new: Any) -> list[str]:
    if not isinstance(now, dict):
        return [f"{name}: {now[:80]!r}"]
    if not isinstance(new, dict) or command.rows == "store":
        return [f"{name} is neither the old nor the new one: {_counts(now)} of {_counts(new)}"]
    wrong = [f"{name}: a table is missing: {table}" for table in new.keys() - now.keys()]
    for table, rows in now.items():
        before, after = (old or {}).get(table, []), new.get(table, [])
        if command.rows == "table" and rows not in (before, after):
            wrong.append(f"{name}: {table} has {len(rows)} rows, {len(before)} before, {len(after)} after")
        if not set(rows) <= set(before) | set(after) or not set(before) <= set(rows):
            wrong.append(f"{name}: {table} has rows of neither before nor after, or lacks some")
    return wrong


def _counts(tables: Any) -> str:
    return ", ".join(f"{name} {len(rows)}" for name, rows in tables.items()) if isinstance(tables, dict) else "no store"


def _differing(now: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> str:
    odd = [name for name in now if now[name] != new.get(name) and now[name] != old.get(name)]
    return f"{len(now)} files, {len(old)} before, {len(new)} after; of neither: {', '.join(odd[:3])}"
