"""The log in the wire format of User Behavior Insights 1.3.0, in the dialect that `judged.online.readers` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from judged.data.compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged._types import Table

Form: TypeAlias = Literal["parquet", "ndjson", "bulk", "csv"]
_UNREADABLE = ("yesterday", "31/02/2026 25:61", "")
_STAMP = pa.timestamp("ms", "UTC")


def query_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_QUERY as UBI's queries."""
    experiment = _struct(name=columns["experiment"], variant=columns["variant"], probability=columns["assign_p"])
    attributes = _struct(
        page=columns["page"],
        page_size=columns["size"],
        result_count=columns["n_total"],
        rescued=columns["rescued"],
        filtered=columns["filtered"],
        language=columns["language"],
        device=columns["device"],
        latency_ms=columns["latency_ms"],
        experiment=experiment,
        ranker=columns["ranker"],
        user_agent=columns["user_agent"],
    )
    return pa.table(
        {
            "query_id": columns["query_id"],
            "client_id": columns["user_id"],
            "session_id": columns["session_id"],
            "application": columns["application"],
            "user_query": columns["query"],
            "timestamp": columns["time_ms"].cast(_STAMP),
            "query_response_hit_ids": columns["hit_ids"],
            "query_attributes": attributes,
        }
    )


def event_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_EVENT as UBI's events; times are texts where some are none."""
    nowhere = pc.is_null(columns["position"])
    position = _struct(ordinal=columns["position"])
    product = _struct(object_id=columns["object_id"])
    attributes = pa.StructArray.from_arrays(
        [position, product, columns["value"]], ["position", "object", "value"], mask=nowhere
    )
    return pa.table(
        {
            "event_id": columns["event_id"],
            "action_name": columns["action"],
            "query_id": columns["query_id"],
            "session_id": columns["session_id"],
            "client_id": columns["user_id"],
            "application": columns["application"],
            "timestamp": _times(columns),
            "event_attributes": attributes,
        }
    )


def write(folder: Path, queries: Table, events: Table, form: Form, *, truncated: bool) -> tuple[Path, ...]:
    """Write both tables into files of a form; see `SimulatedLog.write`."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {"ubi_queries": queries, "ubi_events": events}
    if form == "parquet":
        return tuple(_parquet(folder / f"{name}.parquet", table) for name, table in given.items())
    if form == "csv":
        return tuple(_csv(folder / f"{name}.csv", table) for name, table in given.items())
    if form == "ndjson":
        lines = {folder / f"{name}.ndjson": list(_lines(table)) for name, table in given.items()}
    else:
        lines = {folder / "ubi.ndjson": [line for name, table in given.items() for line in _bulk(name, table)]}
    for path, every in lines.items():
        cut = truncated and path.name != "ubi_queries.ndjson"
        path.write_text("\n".join(every)[: -len(every[-1]) // 2] if cut and every else "\n".join([*every, ""]))
    return tuple(lines)


def _parquet(path: Path, table: Table) -> Path:
    pq.write_table(table, path)
    return path


def _csv(path: Path, table: Table) -> Path:
    """Write structs as columns with dots in their names, and lists as JSON."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    for at, one in enumerate(table.schema):
        if pa.types.is_list(one.type):
            table = table.set_column(at, one.name, pa.array([json.dumps(each) for each in table[at].to_pylist()]))
        if pa.types.is_timestamp(one.type):
            table = table.set_column(at, one.name, _written(table[at]))
    pyarrow.csv.write_csv(table, path)
    return path


def _bulk(name: str, table: Table) -> Iterator[str]:
    head = json.dumps({"index": {"_index": name}})
    for line in _lines(table):
        yield head
        yield line


def _lines(table: Table) -> Iterator[str]:
    """Give rows as JSON, without what is null: UBI's schema has no nulls."""
    if pa.types.is_timestamp(table.schema.field("timestamp").type):
        table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", _written(table["timestamp"]))
    for row in table.to_pylist():
        yield json.dumps(_known(row))


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items() if one is not None}  # pyright: ignore[reportUnknownVariableType]
    return value


def _times(columns: Mapping[str, Any]) -> Any:
    times = columns["time_ms"].cast(_STAMP)
    damaged = np.flatnonzero(columns["unreadable"].to_numpy(zero_copy_only=False))
    if not len(damaged):
        return times
    replaced = pa.array([_UNREADABLE[at % len(_UNREADABLE)] for at in range(len(damaged))])
    return pc.replace_with_mask(_written(times), columns["unreadable"], replaced)


def _written(times: Any) -> Any:
    """Write times as ISO 8601 with a Z."""
    return pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ")


def _struct(**parts: Any) -> Any:
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))
