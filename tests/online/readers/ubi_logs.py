"""A small UBI log, written in each format that is read."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

from judged.online.engine import Database
from judged.online.readers.raw import RawLog
from judged.online.storage import read_raw

QUERIES: list[dict[str, Any]] = [
    {
        "application": "shop",
        "query_id": "q1",
        "client_id": "u1",
        "session_id": "s1",
        "user_query": "red car",
        "timestamp": "2026-01-05T10:00:00.250Z",
        "query_response_hit_ids": ["a", "b", "c"],
        "query_attributes": {
            "page": 1,
            "page_size": 10,
            "result_count": 42,
            "filters": {"brand": "x"},
            "experiment": {"name": "e1", "variant": "B", "probability": 0.5},
            "interleaving": {"teams": ["A", "B", "A"]},
            "propensities": [0.5, 0.25, 1.0],
            "latency_ms": 12.5,
            "language": "de",
            "device": "mobile",
            "rescued": False,
            "suggested": True,
            "bot": False,
            "ranker": "bm25",
            "trace_id": "t1",
            "user_agent": "Mozilla",
            "country": "AT",
            "page_id": "p/1",
        },
    },
    {
        "application": "shop",
        "query_id": "q2",
        "client_id": "u2",
        "session_id": "s2",
        "user_query": "",
        "timestamp": "2026-01-05T10:01:00.000Z",
        "query_response_hit_ids": [],
        "query_attributes": {"page": 2, "result_count": 0, "country": "DE"},
    },
]

EVENTS: list[dict[str, Any]] = [
    {
        "application": "shop",
        "action_name": "click",
        "query_id": "q1",
        "client_id": "u1",
        "session_id": "s1",
        "user_query": "red car",
        "timestamp": "2026-01-05T10:00:05.000Z",
        "event_attributes": {
            "object": {"object_id": "b"},
            "position": {"ordinal": 2},
            "dwell_ms": 31000,
            "propensity": 0.25,
            "value": 9.5,
        },
    },
    {
        "application": "shop",
        "action_name": "page_exit",
        "query_id": "q2",
        "client_id": "u2",
        "session_id": "s2",
        "timestamp": "2026-01-05T10:01:09.000Z",
        "event_attributes": {"dwell_time": 9.0},
    },
]


INDEXED = [*(("ubi_queries", query) for query in QUERIES), *(("ubi_events", event) for event in EVENTS)]


def write_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def write_bulk(path: Path) -> Path:
    lines: list[str] = []
    for index, records in (("ubi_queries", QUERIES), ("ubi_events", EVENTS)):
        for record in records:
            lines += [json.dumps({"index": {"_index": index}}), json.dumps(record)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def write_prefixed(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.json", "".join(f"{index}\t{json.dumps(record)}\n" for index, record in INDEXED))
    return path


def write_export(path: Path) -> Path:
    text = "".join(json.dumps({"_index": index, "_source": record}) + "\n" for index, record in INDEXED)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def write_parquet(folder: Path) -> Path:
    """Write structs, and times as timestamps."""
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        table = pa.Table.from_pylist(records)
        local_times = compute.utf8_replace_slice(table["timestamp"], 23, 24, "")
        times = local_times.cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
        column_index = table.column_names.index("timestamp")
        parquet.write_table(table.set_column(column_index, "timestamp", times), folder / f"{name}.parquet")
    return folder


def write_json_parquet(folder: Path) -> Path:
    """Write attributes and ids as JSON text, and times as text."""
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        texts = [as_json_texts(record) for record in records]
        parquet.write_table(pa.Table.from_pylist(texts), folder / f"{name}.parquet")
    return folder


def as_json_texts(record: dict[str, Any]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in record.items()}


def flatten(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict) and name != "filters":
            cells |= flatten(value, f"{prefix}{name}.")
        else:
            cells[prefix + name] = json.dumps(value) if isinstance(value, (list, dict, bool)) else value
    return cells


def write_flat_parquet(folder: Path) -> Path:
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        rows = [flatten(record) for record in records]
        names = list(dict.fromkeys(key for row in rows for key in row))
        table = pa.table({key: [row.get(key) for row in rows] for key in names})
        parquet.write_table(table, folder / f"{name}.parquet")
    return folder


def write_csv(folder: Path, *, nested: bool, delimiter: str = ",") -> Path:
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        rows = [as_json_texts(record) if nested else flatten(record) for record in records]
        names = list(dict.fromkeys(key for row in rows for key in row))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    return folder


@cache
def engine() -> Database:
    """Return one database for all tests. All tables that are read have different names."""
    return Database(memory="900MB", threads=1)


def read(*paths: Path, **options: Any) -> RawLog:
    return read_raw(list(paths), engine(), **options)


def rows(table: Any, *without: str) -> list[dict[str, Any]]:
    """Return rows in the order of the log."""
    records = table.to_arrow().sort_by([("file", "ascending"), ("row", "ascending")]).to_pylist()
    return [{name: value for name, value in row.items() if name not in {"record", *without}} for row in records]
