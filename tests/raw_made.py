"""Hand-written raw logs: rows as dictionaries, which are registered in an engine like rows of a reader."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.online.engine import Database, Relation
from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.raw import RawLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.log import LogColumn

ARROW = {
    "int64": pa.int64(), "int32": pa.int32(), "float64": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()), "array<int32>": pa.list_(pa.int32()),
    "array<float64>": pa.list_(pa.float64()),
}  # fmt: skip

NOW = 1_700_000_000_000
"""The time of all logs made here, and "now" for rules about the future."""


def raw_table(rows: Sequence[dict[str, Any]], columns: Sequence[LogColumn], attributes: Sequence[str] = ()) -> pa.Table:
    """Return a raw table; rows are numbered from 1 in file 0 unless they have these columns."""
    numbered_rows = [{"file": 0, "row": number, **row} for number, row in enumerate(rows, 1)]
    schema = pa.schema(
        [(column.name, ARROW[column.type]) for column in columns] + [(name, pa.string()) for name in attributes]
    )
    unknown = {name for row in numbered_rows for name in row} - set(schema.names)
    assert not unknown, unknown
    return pa.Table.from_pylist(numbered_rows, schema=schema)


def stored(engine: Database, name: str, rows: Any) -> Relation:
    """Create a table that every connection sees."""
    engine.con.execute(f"CREATE TABLE {name} AS FROM {engine.register(rows)}")
    return engine.table(name)


def raw_log(
    queries: Sequence[dict[str, Any]],
    events: Sequence[dict[str, Any]] = (),
    *,
    engine: Database | None = None,
    attributes: Sequence[str] = (),
    **fields: Any,
) -> tuple[RawLog, Database]:
    """Return a raw log and the engine that holds it."""
    engine = engine or Database()
    tables = [
        stored(engine, f"raw_{kind}_{uuid.uuid4().hex}", raw_table(rows, columns, attribute_names))
        for kind, rows, columns, attribute_names in (
            ("query", queries, RAW_QUERY, attributes),
            ("event", events, RAW_EVENT, ()),
        )
    ]
    return RawLog(*tables, **{"layout": "ubi", "files": ("log.ndjson",), **fields}), engine


def query(
    query_id: str | None, i: float = 0, hits: Sequence[str] | None = ("a", "b", "c"), **more: Any
) -> dict[str, Any]:
    """Return a query, `at` seconds after NOW, of user u in session s."""
    hit_ids = None if hits is None else list(hits)
    return {
        "query_id": query_id, "user_id": "u", "session_id": "s", "query": "cats", "time_ms": NOW + round(i * 1000),
        "hit_ids": hit_ids, **more,
    }  # fmt: skip


def event(query_id: str | None, action: str, i: float = 1, object_id: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an event, `at` seconds after NOW, of user u in session s."""
    return {
        "query_id": query_id, "user_id": "u", "session_id": "s", "action": action, "object_id": object_id,
        "time_ms": NOW + round(i * 1000), **more,
    }  # fmt: skip
