"""Fitness of a log: the check and all results report the same reasons."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from judged.online import findings as log_findings
from judged.online import online_metrics
from judged.online.check import check_log
from judged.online.findings import Account, LogFinding, unfit_reasons
from judged.online.storage import read_log
from made_log import closed_databases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INVALID_JSON = '{"query_id": '


@pytest.fixture(autouse=True)
def _close_databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from closed_databases(monkeypatch)


def page(number: int, **fields: Any) -> str:
    time = f"2026-01-05T10:{number % 60:02d}:00Z"
    record = {"query_id": f"q{number}", "client_id": f"u{number % 9}", "user_query": "lamp", "timestamp": time}
    return json.dumps({**record, "query_response_hit_ids": ["a", "b"], **fields})


def click(number: int, query_id: str) -> str:
    attributes = {"object": {"object_id": "a"}, "position": {"ordinal": 1}}
    record = {
        "query_id": query_id,
        "client_id": f"u{number % 9}",
        "action_name": "click",
        "event_attributes": attributes,
    }
    return json.dumps({**record, "timestamp": f"2026-01-05T10:{number % 60:02d}:09Z"})


PAGES = [page(number) for number in range(20)]
FACETS = [page(number, query_response_hit_ids=[], query='{"size": 0}') for number in range(20, 24)]
CLICKS = [click(number, f"q{number}") for number in range(10)]


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        ([*PAGES, *CLICKS], []),
        (
            [*PAGES, *FACETS, *CLICKS],
            ["4 of 24 query rows (16.7%) are excluded or lost, more than 5%: facet-request 4"],
        ),
        (
            [*PAGES, *CLICKS, *CLICKS[:2]],
            ["2 of 12 event rows (16.7%) are excluded or lost, more than 5%: duplicate-event 2"],
        ),
        (
            [*PAGES, *CLICKS, *[INVALID_JSON] * 3],
            ["3 of 33 records of a file could not be read, more than 5%: broken-json"],
        ),
        (
            [*PAGES, *CLICKS, click(1, "none")],
            [
                (
                    "only 90.9% of the events with a query_id belong to a valid page, but at least 95% are"
                    " required (unknown-query-id 1)"
                )
            ],
        ),
    ],
)
def test_results_and_the_check_have_the_same_doubts(tmp_path: Path, lines: list[str], reasons: list[str]) -> None:
    (tmp_path / "log.ndjson").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "log.ndjson")
    assert list(check_log(log).unfit_reasons) == reasons
    expected = tuple(f"log.ndjson is not fit for metrics: {reason}." for reason in reasons)
    notes = online_metrics(log, ["PageCTR"]).notes
    assert tuple(str(note) for note in notes if note.rule == "unfit-log") == expected


def test_lost_and_excluded_rows_are_added() -> None:
    """4 of 100 rows are not readable and 3 of the other 96 are excluded: each alone is below the limit."""
    lost = LogFinding("bad-row", "query", 4, 100, "lost", "rows: too short", "")
    excluded = LogFinding("bot", "query", 3, 96, "excluded", "pages of programs", "")
    account = Account("query", 96, 93, (("bot", 3),))
    assert unfit_reasons([account], [lost, excluded]) == (
        "7 of 100 query rows (7.0%) are excluded or lost, more than 5%: bot 3, bad-row 4",
    )
    assert unfit_reasons([account], [excluded]) == unfit_reasons([Account("query", 96, 96, ())], [lost]) == ()
    assert unfit_reasons([Account("query", 0, 0, ())], []) == ("the log has no queries, so it has no pages",)


@pytest.mark.parametrize(
    ("table", "problem", "expected"),
    [
        ("query", "rows: too short", "some-rule (query): 4 rows: too short."),
        ("folder", "files: no log", "some-rule (folder): 4 files: no log."),
        ("event", "clicks of nobody", "some-rule (event): 4 rows: clicks of nobody."),
    ],
)
def test_the_counted_noun_is_not_repeated(table: str, problem: str, expected: str) -> None:
    assert log_findings.format_finding(LogFinding("some-rule", table, 4, 9, "kept", problem, "")) == expected


def test_files_of_a_folder_are_not_rows() -> None:
    findings = (LogFinding("strange-file", "folder", 1, 4, "excluded", "file: no log", ""),)
    assert log_findings.summarize_findings(findings) == ("excluded: strange-file 1 of 4 files",)
    assert unfit_reasons([Account("query", 9, 9, ())], findings) == ()
