"""The log of a study, read by the online half: it counts what the study counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.online import online_metrics, read_log
from judged.studies import StudyRecords
from judged.studies.records import write_log


def records() -> StudyRecords:
    """Make six people with two trials each: a click or two, of which one was looked at for a known time."""
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("participants", "trials", "events")}
    for participant in range(6):
        tables["participants"].append({"participant": f"p{participant}", "group": "novice"})
        for position, system in enumerate(("alpha", "beta"), 1):
            trial, start = (
                {"participant": f"p{participant}", "position": position},
                1_700_000_000_000 + participant * 10**7 + position * 10**6,
            )
            tables["trials"].append(
                {**trial, "query_id": "q", "system": system, "started": start, "practice": participant == 5}
            )
            first = {"page": 1, "query": "faust", "rank": 1, "shown": ["a", "b"]}
            rows: list[dict[str, Any]] = [
                {"action": "query", **first},
                {"action": "click", "page": 1, "doc_id": "b", "rank": 2},
                {"action": "back", "page": 1, "doc_id": "b", "rank": 2, "value": 40.0},
                {"action": "save", "page": 1, "doc_id": "b", "rank": 2, "value": 3.0},
                {"action": "query", **first, "page": 2, "rank": 3, "shown": ["c"]},
            ]
            rows += [{"action": "click", "page": 2, "doc_id": "c", "rank": 3}] if system == "beta" else []
            tables["events"] += [{**trial, **row, "time": start + 1000 * i} for i, row in enumerate(rows)]
    return StudyRecords.of(tables)


def test_the_online_half_counts_the_same(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    study_records = records()
    write_log(study_records, tmp_path / "log.ndjson")
    log = read_log(tmp_path / "log.ndjson", bots="keep")
    assert {account.table: (account.read, account.kept) for account in log.accounts} == {
        "query": (24, 24),
        "event": (42, 42),
    }
    counts = {rule.rule: rule.rows for rule in log.findings}
    assert not set(counts) & {"unknown-query-id", "clicks-not-shown", "duplicate-query-id", "bad-time"}, counts
    events = log.event.to_arrow("action", "object_id", "rank", "dwell_ms", "value").to_pylist()
    clicks = [row for row in events if row["action"] == "click"]
    expected = [row for row in study_records["events"].to_pylist() if row["action"] == "click"]
    assert sorted((row["object_id"], row["rank"]) for row in clicks) == sorted(
        (row["doc_id"], row["rank"]) for row in expected
    )
    assert sorted(row["dwell_ms"] or 0 for row in clicks) == [0] * 6 + [40_000] * 12
    assert [row["value"] for row in events if row["action"] == "rating"] == [3.0] * 12
    impressions = log.shown.to_arrow("object_id", "rank").to_pylist()
    assert {(row["object_id"], row["rank"]) for row in impressions} == {("a", 1), ("b", 2), ("c", 3)}


def test_systems_can_be_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    write_log(records(), tmp_path / "log.ndjson")
    scores = online_metrics(read_log(tmp_path / "log.ndjson"), ["PageCTR"], by="ranker", where="practice == 'false'")
    clicked = {estimate.slice: (estimate.numerator, estimate.denominator) for estimate in scores.estimates}
    assert clicked == {None: (15, 20), "alpha": (5, 10), "beta": (10, 10)}
