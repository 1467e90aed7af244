"""All layouts: every row is accounted for, and duplicate events are excluded."""

from __future__ import annotations

import csv
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from judged.online.preparation.make import make_log
from judged.online.storage import read_raw
from made_log import excluded
from raw_made import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUERY = {"query_id": "q", "client_id": "u", "user_query": "car", "timestamp": 1767607200000}
CLICK = {"action_name": "click", "query_id": "q", "client_id": "u", "timestamp": 1767607201000}
EVENTS = [CLICK | {"event_id": "1"}, CLICK | {"event_id": "1"}, CLICK, CLICK, CLICK | {"timestamp": 1767607202000}]
"""Five events with one repeated event ID, and one equal pair without IDs."""


def _lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _ubi(folder: Path) -> None:
    _lines(folder / "log.ndjson", [QUERY, *EVENTS])


def _bulk(folder: Path) -> None:
    index = [{"index": {"_index": "ubi_queries"}}, QUERY]
    _lines(
        folder / "bulk", [*index, *(line for event in EVENTS for line in ({"index": {"_index": "ubi_events"}}, event))]
    )


def _csv(folder: Path) -> None:
    for name, records in (("queries", [QUERY]), ("events", EVENTS)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)


def _parquet(folder: Path) -> None:
    for name, records in (("queries", [QUERY]), ("events", EVENTS)):
        parquet.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")


def _zip(folder: Path) -> None:
    _parquet(folder)
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for path in sorted(folder.glob("*.parquet")):
            archive.write(path, path.name)
            path.unlink()


def _mapping(folder: Path) -> None:
    _lines(folder / "log.ndjson", [{"id": "q", "who": "u", "text": "car", "at": 1767607200000}])
    records = [{"what": event["action_name"], "id": "q", "who": "u", "at": event["timestamp"]} for event in EVENTS]
    for record, event in zip(records, EVENTS, strict=True):
        record.update({"event": event["event_id"]} if "event_id" in event else {})
    _lines(folder / "events.ndjson", records)


def _wscd(folder: Path) -> None:
    (folder / "log").write_text("0\t0\tQ\t0\t0\t7\t103\n" + "0\t10\tC\t7\n" * 2)


def _trec(folder: Path) -> None:
    (folder / "log.xml").write_text(
        """<sessiontrack2012><session num="1" starttime="10:00:00.000000"><topic num="1"/>
        <interaction num="1" starttime="10:00:05.000000"><query>car</query><results>
        <result rank="1"><url>a</url><clueweb09id>d1</clueweb09id><title/><snippet/></result></results>
        <clicked><click num="1" starttime="10:00:09.0" endtime="10:00:19.0"><rank>1</rank></click></clicked>
        </interaction></session></sessiontrack2012>"""
    )


def _bandit(folder: Path) -> None:
    header = "timestamp,item_id,position,click,propensity_score\n"
    (folder / "all.csv").write_text(
        header + "2019-11-24 00:00:01+00:00,3,1,1,0.5\n2019-11-24 00:00:02+00:00,4,2,0,0.5\n"
    )


def _clickmodels(folder: Path) -> None:
    (folder / "log").write_text('0\tcar\t1\t0\t["a", "b"]\t[false, false]\t[1, 0]\n')


MAPPING = """
[queries]
files = "log.ndjson"

[queries.columns]
query_id = "id"
user_id = "who"
query = "text"
time = "at"

[events]
files = "events.ndjson"

[events.columns]
event_id = { path = "event", optional = true }
action = "what"
query_id = "id"
user_id = "who"
time = "at"
"""
DUPLICATES = {"duplicate-event": 2}
LOGS: dict[str, tuple[Callable[[Path], None], dict[str, Any], tuple[int, int], dict[str, int]]] = {
    "ubi": (_ubi, {}, (1, 5), DUPLICATES),
    "bulk": (_bulk, {}, (1, 5), DUPLICATES),
    "csv": (_csv, {}, (1, 5), DUPLICATES),
    "parquet": (_parquet, {}, (1, 5), DUPLICATES),
    "zip": (_zip, {}, (1, 5), DUPLICATES),
    "mapping": (_mapping, {"mapping": MAPPING}, (1, 5), DUPLICATES),
    "wscd": (_wscd, {}, (1, 2), {}),  # without timestamps, equal rows are not duplicates
    "trec-session": (_trec, {}, (1, 1), {}),
    "open-bandit": (_bandit, {}, (2, 1), {}),
    "clickmodels": (_clickmodels, {"layout": "clickmodels"}, (1, 1), {}),
}


@pytest.mark.parametrize("name", LOGS)
def test_every_layout(tmp_path: Path, name: str) -> None:
    write, options, counts, duplicates = LOGS[name]
    folder = tmp_path / "log"
    folder.mkdir()
    write(folder)
    if "mapping" in options:
        (tmp_path / "mapping.toml").write_text(options["mapping"])
        options = {"mapping": tmp_path / "mapping.toml"}
    engine = Database(threads=2)
    log = make_log(read_raw([folder], engine, **options), engine)
    assert not excluded(log, "query")
    assert excluded(log, "event") == duplicates
    assert tuple(account.read for account in log.accounts) == counts
    assert len(log.event.to_arrow()) == counts[1] - sum(duplicates.values())
    assert not [finding for finding in log.findings if finding.action == "lost"]
    engine.con.close()
