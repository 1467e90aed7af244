"""Small logs to slice, on both backends at once."""

from __future__ import annotations

from typing import Any

import ibis
import pyarrow as pa
import pytest

from judged.online.engine import rows_of
from judged.online.log import InteractionLog
from judged.online.slicing import slice_pages
from judged.online.tables import EVENT, SERP, SESSION, SHOWN

BACKENDS = ("duckdb", "polars")
TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
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
    """Make the same log in both backends: page n has the key n, from 0; attributes are names and types of Arrow."""
    usual = {"session": 0, "user": 0, "time_ms": 0, "page": 1, "first_rank": 1, "n_shown": 10, "filtered": False}
    rows = [{"serp": at, **usual, **page} for at, page in enumerate(pages)]
    clicks = [{"event": at, "action": "click", **event} for at, event in enumerate(events)]
    tables = {
        "serp": table(rows, SERP, attributes),
        "shown": table(shown, SHOWN),
        "event": table(clicks, EVENT),
        "session": table([], SESSION),
    }
    made = []
    for backend in BACKENDS:
        connection = getattr(ibis, backend).connect()
        kept = {name: connection.create_table(name, one) for name, one in tables.items()}
        made.append(InteractionLog(**kept, attributes=tuple(attributes or ()), has=frozenset(has), **more))
    return made


def sliced(both, by, **more: Any):
    """Slice both; they agree. Give the slices of the pages in the order of their keys, the values, and the note."""
    found = []
    for log in both:
        made = slice_pages(log, by, **more)
        assert made.table.columns == ("serp", "slice")
        rows = sorted((row["serp"], row["slice"]) for row in rows_of(made.table))
        assert [serp for serp, _ in rows] == sorted(row["serp"] for row in rows_of(log.serp.select("serp")))
        slices = [name for _, name in rows]
        assert sorted(made.values) == sorted(set(slices))
        found.append((slices, made.values, made.note))
    assert found[0] == found[1]
    return found[0]


def refused(both, by, **more: Any):
    """Give the message, which is the same for both."""
    texts = []
    for log in both:
        with pytest.raises(ValueError, match="Fix: ") as error:
            slice_pages(log, by, **more)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    return texts[0]
