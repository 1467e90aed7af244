"""One small UBI log, and how it is written in every form that is read."""

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

from judged.online.engine import Engine
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


def written_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    return path


def written_bulk(path: Path) -> Path:
    lines: list[str] = []
    for index, records in (("ubi_queries", QUERIES), ("ubi_events", EVENTS)):
        for one in records:
            lines += [json.dumps({"index": {"_index": index}}), json.dumps(one)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def written_prefixed(path: Path) -> Path:
    kinds = [*(("ubi_queries", one) for one in QUERIES), *(("ubi_events", one) for one in EVENTS)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.json", "".join(f"{name}\t{json.dumps(one)}\n" for name, one in kinds))
    return path


def written_export(path: Path) -> Path:
    kinds = [*(("ubi_queries", one) for one in QUERIES), *(("ubi_events", one) for one in EVENTS)]
    text = "".join(json.dumps({"_index": name, "_source": one}) + "\n" for name, one in kinds)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def written_parquet(folder: Path) -> Path:
    """Structs, and times as timestamps."""
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        table = pa.Table.from_pylist(records)
        clocks = compute.utf8_replace_slice(table["timestamp"], 23, 24, "")
        times = clocks.cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
        at = table.column_names.index("timestamp")
        parquet.write_table(table.set_column(at, "timestamp", times), folder / f"{name}.parquet")
    return folder


def written_json_parquet(folder: Path) -> Path:
    """Attributes as JSON text, ids as JSON text, times as text."""
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        texts = [{key: one if isinstance(one, str) else json.dumps(one) for key, one in row.items()} for row in records]
        parquet.write_table(pa.Table.from_pylist(texts), folder / f"{name}.parquet")
    return folder


def flat(record: dict[str, Any], before: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, one in record.items():
        if isinstance(one, dict) and name != "filters":
            cells |= flat(one, f"{before}{name}.")
        else:
            cells[before + name] = json.dumps(one) if isinstance(one, (list, dict, bool)) else one
    return cells


def written_flat_parquet(folder: Path) -> Path:
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        rows = [flat(one) for one in records]
        names = list(dict.fromkeys(key for row in rows for key in row))
        table = pa.table({key: [row.get(key) for row in rows] for key in names})
        parquet.write_table(table, folder / f"{name}.parquet")
    return folder


def written_csv(folder: Path, *, nested: bool, delimiter: str = ",") -> Path:
    folder.mkdir()
    for name, records in (("q", QUERIES), ("e", EVENTS)):
        if nested:
            rows = [
                {key: one if isinstance(one, str) else json.dumps(one) for key, one in row.items()} for row in records
            ]
        else:
            rows = [flat(one) for one in records]
        names = list(dict.fromkeys(key for row in rows for key in row))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    return folder


@cache
def engine() -> Engine:
    """Give one database for all tests: every table that is read has a name of its own."""
    return Engine(memory="900MB", threads=1)


def read(*paths: Path, **options: Any) -> RawLog:
    return read_raw(list(paths), engine(), **options)


def rows(table: Any, *without: str) -> list[dict[str, Any]]:
    """Give rows in the order of the log."""
    found = table.to_arrow().sort_by([("file", "ascending"), ("row", "ascending")]).to_pylist()
    return [{name: value for name, value in row.items() if name not in {"record", *without}} for row in found]
