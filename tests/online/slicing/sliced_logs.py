"""Small logs to slice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from judged.online.engine import Engine
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


def table(rows, columns, more=None):
    """Make a typed table of rows that name what is not null."""
    fields = [pa.field(one.name, TYPES[one.type]) for one in columns]
    fields += [pa.field(name, kind) for name, kind in (more or {}).items()]
    return pa.Table.from_pylist([{one.name: row.get(one.name) for one in fields} for row in rows], pa.schema(fields))


def logs(pages, *, events=(), shown=(), attributes=None, has=("clicks", "shown"), **more: Any):
    """Make a log: page n has the key n, from 0; attributes are names and types of Arrow."""
    usual = {"session": 0, "user": 0, "time_ms": 0, "page": 1, "first_rank": 1, "n_shown": 10, "filtered": False}
    rows = [{"serp": at, **usual, **page} for at, page in enumerate(pages)]
    clicks = [{"event": at, "action": "click", **event} for at, event in enumerate(events)]
    tables = {
        "serp": table(rows, SERP, attributes),
        "shown": table(shown, SHOWN),
        "event": table(clicks, EVENT),
        "session": table([], SESSION),
    }
    engine = Engine()
    kept = {name: engine.register(one, name) for name, one in tables.items()}
    return InteractionLog(**kept, attributes=tuple(attributes or ()), has=frozenset(has), **more)


def sliced(log, by, **more: Any):
    """Give the slices of the pages in the order of their keys, the values, and the note."""
    made = slice_pages(log, by, **more)
    assert made.table.columns == ("serp", "slice")
    rows = sorted((row["serp"], row["slice"]) for row in made.table.to_arrow().to_pylist())
    assert [serp for serp, _ in rows] == sorted(log.serp.to_arrow("serp")["serp"].to_pylist())
    slices = [name for _, name in rows]
    assert sorted(made.values) == sorted(set(slices))
    return slices, made.values, made.note


def refused(log, by, **more: Any):
    """Give the message."""
    with pytest.raises(ValueError, match="Fix: ") as error:
        slice_pages(log, by, **more)
    return str(error.value)
