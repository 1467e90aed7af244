"""Small logs to slice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from judged.online.engine import Database
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog
from judged.online.slicing import slice_pages

TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "array<int32>": pa.list_(pa.int32()),
    "float64": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}


def table(rows, columns, attributes=None):
    """Build a typed table from rows; missing values are null."""
    fields = [pa.field(field.name, TYPES[field.type]) for field in columns]
    fields += [pa.field(name, kind) for name, kind in (attributes or {}).items()]
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in fields} for row in rows], pa.schema(fields)
    )


def logs(pages, *, events=(), shown=(), attributes=None, has=("clicks", "shown"), **fields: Any):
    """Build a log with pages numbered from 0; `attributes`: names and Arrow types."""
    defaults = {"session": 0, "user": 0, "time_ms": 0, "page": 1, "first_rank": 1, "n_shown": 10, "filtered": False}
    rows = [{"serp": i, **defaults, **page} for i, page in enumerate(pages)]
    clicks = [{"event": i, "action": "click", **event} for i, event in enumerate(events)]
    tables = {
        "serp": table(rows, SERP, attributes),
        "shown": table(shown, SHOWN),
        "event": table(clicks, EVENT),
        "session": table([], SESSION),
    }
    engine = Database()
    relations = {name: engine.register(table, name) for name, table in tables.items()}
    return InteractionLog(**relations, attributes=tuple(attributes or ()), has=frozenset(has), **fields)


def sliced(log, by, **options: Any):
    """Return the slice of each page in the order of keys, the values, and the note."""
    sliced_pages = slice_pages(log, by, **options)
    assert sliced_pages.table.columns == ("serp", "slice")
    rows = sorted((row["serp"], row["slice"]) for row in sliced_pages.table.to_arrow().to_pylist())
    assert [serp for serp, _ in rows] == sorted(log.serp.to_arrow("serp")["serp"].to_pylist())
    slices = [name for _, name in rows]
    assert sorted(sliced_pages.values) == sorted(set(slices))
    return slices, sliced_pages.values, sliced_pages.note


def refused(log, by, **options: Any):
    """Return the error message."""
    with pytest.raises(ValueError, match="Fix: ") as error:
        slice_pages(log, by, **options)
    return str(error.value)
