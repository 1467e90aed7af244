"""What tests of readers share: an engine, and raw tables as rows in order, without what is null."""

from __future__ import annotations

import json
from functools import cache

from judged.online.engine import Engine
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.raw import DUCKDB
from judged.online.storage import read_raw


@cache
def shared_engine():
    return Engine(memory="900MB", threads=2)


def rows(table, *, full=False):
    """The rows by file, row and time; null values are left out."""
    found = table.to_arrow().to_pylist()
    for one in found:
        one.pop("record", None)  # a hash
    found.sort(key=lambda one: (one["file"], one["row"], one["time_ms"] or 0, one.get("position") or 0))
    return found if full else [{key: value for key, value in one.items() if value is not None} for one in found]


def columns_are(table, columns):
    """The table has our columns, in order and type; what follows is attributes, as text."""
    assert list(table.columns)[: len(columns)] == [one.name for one in columns]
    for one in columns:
        assert table.types[one.name] == DUCKDB[one.type], one.name
    assert {table.types[name] for name in table.columns[len(columns) :]} <= {"VARCHAR"}


def mapping_of(tmp_path, text):
    """A mapping with this text."""
    path = tmp_path / "log.toml"
    path.write_text(text, encoding="utf-8")
    return path


def read_mapped(tmp_path, text, files):
    """Read files, name to text or records, by the text of a mapping or the name of a packaged one."""
    paths = []
    for name, content in files.items():
        lines = content if isinstance(content, str) else "".join(json.dumps(one) + "\n" for one in content)
        paths.append(tmp_path / name)
        paths[-1].write_text(lines, encoding="utf-8")
    log = read_raw(paths, shared_engine(), mapping=mapping_of(tmp_path, text) if "=" in text else text)
    columns_are(log.queries, RAW_QUERY)
    columns_are(log.events, RAW_EVENT)
    return log
