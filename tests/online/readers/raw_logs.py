"""Helpers for tests of readers: a shared engine, and raw tables as rows in order, without null values."""

from __future__ import annotations

import json
from functools import cache

from judged.online.engine import Database
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.raw import DUCKDB_TYPES
from judged.online.storage import read_raw


@cache
def shared_engine():
    return Database(memory="900MB", threads=2)


def rows(table, *, full=False):
    """Return the rows by file, row and time; without null values unless `full`."""
    records = table.to_arrow().to_pylist()
    for record in records:
        record.pop("record", None)  # a hash
    records.sort(key=lambda row: (row["file"], row["row"], row["time_ms"] or 0, row.get("position") or 0))
    if full:
        return records
    return [{key: value for key, value in record.items() if value is not None} for record in records]


def check_columns(table, columns):
    """Assert that a table has the columns in order, with their types, and then only text attributes."""
    assert list(table.columns)[: len(columns)] == [column.name for column in columns]
    for column in columns:
        assert table.types[column.name] == DUCKDB_TYPES[column.type], column.name
    assert {table.types[name] for name in table.columns[len(columns) :]} <= {"VARCHAR"}


def write_mapping(tmp_path, text):
    path = tmp_path / "log.toml"
    path.write_text(text, encoding="utf-8")
    return path


def read_mapped(tmp_path, text, files):
    """Read files, from name to text or records, by the text of a mapping or the name of a packaged mapping."""
    paths = []
    for name, content in files.items():
        lines = content if isinstance(content, str) else "".join(json.dumps(record) + "\n" for record in content)
        paths.append(tmp_path / name)
        paths[-1].write_text(lines, encoding="utf-8")
    log = read_raw(paths, shared_engine(), mapping=write_mapping(tmp_path, text) if "=" in text else text)
    check_columns(log.queries, RAW_QUERY)
    check_columns(log.events, RAW_EVENT)
    return log
