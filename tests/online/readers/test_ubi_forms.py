"""The same log gives the same raw tables in each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from online.readers.ubi_logs import (
    EVENTS,
    QUERIES,
    read,
    rows,
    write_bulk,
    write_csv,
    write_export,
    write_flat_parquet,
    write_json_parquet,
    write_lines,
    write_parquet,
    write_prefixed,
)

QUERY = {
    "event_id": None,
    "query_id": "q1",
    "session_id": "s1",
    "user_id": "u1",
    "time_ms": 1767607200250,
    "application": "shop",
    "query": "red car",
    "language": "de",
    "device": "mobile",
    "filtered": True,
    "page": 1,
    "size": 10,
    "first_rank": None,
    "n_total": 42,
    "hit_ids": ["a", "b", "c"],
    "teams": ["A", "B", "A"],
    "propensities": [0.5, 0.25, 1.0],
    "rescued": False,
    "suggested": True,
    "latency_ms": 12.5,
    "experiment": "e1",
    "variant": "B",
    "assign_p": 0.5,
    "ranker": "bm25",
    "trace_id": "t1",
    "bot": False,
    "user_agent": "Mozilla",
    "country": "AT",
    "page_id": "p/1",
}
CLICK = {
    "query_id": "q1",
    "session_id": "s1",
    "user_id": "u1",
    "time_ms": 1767607205000,
    "application": "shop",
    "action": "click",
    "object_id": "b",
    "position": 2,
    "dwell_ms": 31000,
    "value": 9.5,
    "propensity": 0.25,
    "query": "red car",
}
WRITERS = {
    "lines": lambda folder: write_lines(folder / "log.ndjson", [*QUERIES, *EVENTS]),
    "bulk": lambda folder: write_bulk(folder / "bulk.json"),
    "prefixed": lambda folder: write_prefixed(folder / "log.zip"),
    "export": lambda folder: write_export(folder / "export.json.gz"),
    "parquet": lambda folder: write_parquet(folder / "p"),
    "parquet-json": lambda folder: write_json_parquet(folder / "j"),
    "parquet-flat": lambda folder: write_flat_parquet(folder / "f"),
    "csv": lambda folder: write_csv(folder / "c", nested=True),
    "csv-flat": lambda folder: write_csv(folder / "d", nested=False, delimiter=";"),
}


@pytest.mark.parametrize("form", WRITERS)
def test_every_column_of_a_log_in_every_form(tmp_path: Path, form: str) -> None:
    raw = read(WRITERS[form](tmp_path))
    first, second = rows(raw.queries, "file", "row")
    assert first == {name: value for name, value in QUERY.items() if name != "event_id"} | {"ranks": None}
    assert {name: value for name, value in second.items() if value is not None} == {
        "query_id": "q2",
        "session_id": "s2",
        "user_id": "u2",
        "time_ms": 1767607260000,
        "application": "shop",
        "page": 2,
        "n_total": 0,
        "hit_ids": [],
        "country": "DE",
    } | ({} if second["query"] is None else {"query": ""})
    click, leave = rows(raw.events, "file", "row")
    assert {name: value for name, value in click.items() if value is not None} == CLICK
    assert (leave["action"], leave["dwell_ms"], leave["position"], leave["object_id"]) == (
        "page_exit",
        9000,
        None,
        None,
    )
    assert raw.layout == "ubi"
    assert raw.lines == 4
    assert [finding for finding in raw.findings if finding.rule != "no-offset"] == []
    assert raw.rank_base is None


def test_rows_say_where_they_stand(tmp_path: Path) -> None:
    bulk = read(WRITERS["bulk"](tmp_path))
    assert [row["row"] for row in rows(bulk.queries)] == [2, 4]
    assert [row["row"] for row in rows(bulk.events)] == [6, 8]
    table = read(WRITERS["parquet"](tmp_path))
    assert [Path(name).name for name in table.files] == ["e.parquet", "q.parquet"]
    assert [(row["file"], row["row"]) for row in rows(table.queries)] == [(1, 1), (1, 2)]
    comma = read(WRITERS["csv"](tmp_path))
    assert [(row["file"], row["row"]) for row in rows(comma.events)] == [(0, 2), (0, 3)]


def test_files_of_several_forms_are_one_log(tmp_path: Path) -> None:
    queries = write_lines(tmp_path / "q.ndjson", QUERIES)
    raw = read(queries, write_parquet(tmp_path / "p") / "e.parquet", write_csv(tmp_path / "c", nested=True))
    assert [row["query_id"] for row in rows(raw.queries)] == ["q1", "q2", "q1", "q2"]
    assert [row["country"] for row in rows(raw.queries)] == ["AT", "DE"] * 2
    assert [row["file"] for row in rows(raw.events)] == [1, 1, 2, 2]
    assert raw.lines == 8
