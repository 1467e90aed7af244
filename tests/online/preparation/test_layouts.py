"""Every layout becomes a log whose rows all have a place, and in which what stands twice is found."""

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
from raw_made import Engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUERY = {"query_id": "q", "client_id": "u", "user_query": "car", "timestamp": 1767607200000}
CLICK = {"action_name": "click", "query_id": "q", "client_id": "u", "timestamp": 1767607201000}
EVENTS = [CLICK | {"event_id": "1"}, CLICK | {"event_id": "1"}, CLICK, CLICK, CLICK | {"timestamp": 1767607202000}]
"""Of five events one is named twice and one is equal to another without a name."""


def _lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def _ubi(folder: Path) -> None:
    _lines(folder / "log.ndjson", [QUERY, *EVENTS])


def _bulk(folder: Path) -> None:
    index = [{"index": {"_index": "ubi_queries"}}, QUERY]
    _lines(folder / "bulk", [*index, *(one for each in EVENTS for one in ({"index": {"_index": "ubi_events"}}, each))])


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
        for one in sorted(folder.glob("*.parquet")):
            archive.write(one, one.name)
            one.unlink()


def _mapping(folder: Path) -> None:
    _lines(folder / "log.ndjson", [{"id": "q", "who": "u", "text": "car", "at": 1767607200000}])
    renamed = [{"what": one["action_name"], "id": "q", "who": "u", "at": one["timestamp"]} for one in EVENTS]
    named = [
        {**one, "event": each["event_id"]} if "event_id" in each else one
        for one, each in zip(renamed, EVENTS, strict=True)
    ]
    _lines(folder / "events.ndjson", named)


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
TWICE = {"duplicate-event": 2}
LOGS: dict[str, tuple[Callable[[Path], None], dict[str, Any], tuple[int, int], dict[str, int]]] = {
    "ubi": (_ubi, {}, (1, 5), TWICE),
    "bulk": (_bulk, {}, (1, 5), TWICE),
    "csv": (_csv, {}, (1, 5), TWICE),
    "parquet": (_parquet, {}, (1, 5), TWICE),
    "zip": (_zip, {}, (1, 5), TWICE),
    "mapping": (_mapping, {"mapping": MAPPING}, (1, 5), TWICE),
    "wscd": (_wscd, {}, (1, 2), {}),  # without a clock, equal rows prove nothing
    "trec-session": (_trec, {}, (1, 1), {}),
    "open-bandit": (_bandit, {}, (2, 1), {}),
    "clickmodels": (_clickmodels, {"layout": "clickmodels"}, (1, 1), {}),
}


@pytest.mark.parametrize("name", LOGS)
def test_every_layout(tmp_path: Path, name: str) -> None:
    write, options, counts, twice = LOGS[name]
    folder = tmp_path / "log"
    folder.mkdir()
    write(folder)
    if "mapping" in options:
        (tmp_path / "mapping.toml").write_text(options["mapping"])
        options = {"mapping": tmp_path / "mapping.toml"}
    engine = Engine(threads=2)
    log = make_log(read_raw([folder], engine, **options), engine)
    assert not excluded(log, "query")
    assert excluded(log, "event") == twice
    assert tuple(one.read for one in log.accounts) == counts
    assert len(log.event.to_arrow()) == counts[1] - sum(twice.values())
    assert not [one for one in log.findings if one.done == "lost"]
    engine.con.close()
