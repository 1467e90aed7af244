"""The two public samples, compared with Python's own JSON reader."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections import Counter
from functools import cache
from typing import Any

from judged.online.readers.raw import RawLog
from judged.online.storage import read_raw
from online.readers.ubi_logs import engine, rows
from shared_data import SHARED, needs_shared

ESCI = SHARED / "logs" / "ubi_esci" / "ubi_queries_events.ndjson.gz"
CHORUS = SHARED / "logs" / "ubi_chorus" / "log_events.zip"


@cache
def read_once(chorus: bool) -> RawLog:
    return read_raw([CHORUS if chorus else ESCI], engine())


def column(table: Any, name: str) -> list[Any]:
    return [row[name] for row in rows(table)]


@needs_shared
def test_esci_three_dialects_in_one_file() -> None:
    raw = read_once(chorus=False)
    queries, events = rows(raw.queries), rows(raw.events)
    assert (len(queries), len(events), raw.lines) == (473, 3448, 3921)
    assert len({row["query_id"] for row in queries}) == 284
    assert sum(row["hit_ids"] is not None for row in queries) == 273
    with_size = Counter(row["size"] for row in queries)
    assert with_size[None] == 200
    assert with_size[0] == 182  # requests for facets
    assert Counter(row["action"] for row in events).most_common(4) == [
        ("impression", 1999), ("search", 506), ("click", 287), ("add_to_cart", 234),
    ]  # fmt: skip
    assert all(row["time_ms"] is not None for row in queries + events)
    demo = [row for row in events if row["application"] == "ubi-demo"]
    assert len(demo) == 429
    assert all(row["session_id"] for row in demo)
    assert all(1717500000000 < row["time_ms"] < 1717600000000 for row in demo)
    assert sum(row["position"] is not None for row in events) == 2866
    assert sum(row["position"] == 0 for row in events) > 0
    assert sum(row["object_id"] is not None for row in events) == 2738
    assert sum(row["query_id"] is None for row in events) == 2
    assert sum(row["user_agent"] is not None for row in events) == 429
    assert len({row["event_id"] for row in events}) == 3448
    assert {finding.rule: finding.rows for finding in raw.findings} == {"unused-value": 427}
    assert sum(row["dwell_ms"] is not None for row in events) == 2  # the two page exits


@needs_shared
def test_esci_values_are_those_that_python_reads() -> None:
    expected: list[tuple[Any, ...]] = []
    for line in gzip.decompress(ESCI.read_bytes()).decode().splitlines():
        record = json.loads(line)
        if "action_name" in record:
            attributes = record["event_attributes"] or {}
            expected.append((
                record["query_id"], record.get("session_id") or attributes.get("session_id"), record["client_id"],
                record["action_name"], attributes.get("object", {}).get("object_id"),
                attributes.get("position", {}).get("ordinal"), record.get("user_query"),
            ))  # fmt: skip
    names = ("query_id", "session_id", "user_id", "action", "object_id", "position", "query")
    assert [tuple(row[name] for name in names) for row in rows(read_once(chorus=False).events)] == expected


@needs_shared
def test_chorus_counts_and_values() -> None:
    raw = read_once(chorus=True)
    queries, events = rows(raw.queries), rows(raw.events)
    assert (len(queries), len(events), raw.lines) == (4130, 26828, 30958)
    assert Counter(row["action"] for row in events)["on_search"] == 5357
    assert Counter(row["size"] for row in queries).most_common(1)[0][0] == 25
    assert len({row["session_id"] for row in events}) == 996
    assert len({row["user_id"] for row in events}) == 280
    with zipfile.ZipFile(CHORUS) as archive, archive.open(archive.namelist()[0]) as file:
        records = [json.loads(line[12:]) for line in io.TextIOWrapper(file, "utf-8") if line.startswith("ubi_queries")]
    assert [row["hit_ids"] for row in queries] == [record["query_response_object_ids"] for record in records]
    assert [row["time_ms"] for row in queries] == [record["timestamp"] for record in records]
    assert [row["query"] for row in queries] == [record["user_query"] for record in records]
    assert {row["application"] for row in queries} == {"ubi-demo"}  # it is among the attributes
    counted = [row for row in queries if row["n_total"] is not None]  # from the search events
    assert len(counted) > 4000
    assert all(row["n_total"] == len(row["hit_ids"]) for row in counted)
    assert {finding.rule: finding.rows for finding in raw.findings} == {"unused-value": 26828 - 136}
