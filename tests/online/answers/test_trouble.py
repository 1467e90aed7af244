"""Whether a log is fit: the log and every result of it say the same, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from judged.online import findings as trouble
from judged.online import findings as words
from judged.online import online_metrics
from judged.online.check import check_log
from judged.online.findings import Account, LogFinding, doubts
from judged.online.storage import read_log
from made_log import closed_databases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROKEN = '{"query_id": '


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from closed_databases(monkeypatch)


def page(at: int, **more: Any) -> str:
    time = f"2026-01-05T10:{at % 60:02d}:00Z"
    record = {"query_id": f"q{at}", "client_id": f"u{at % 9}", "user_query": "lamp", "timestamp": time}
    return json.dumps({**record, "query_response_hit_ids": ["a", "b"], **more})


def click(at: int, of: str) -> str:
    what = {"object": {"object_id": "a"}, "position": {"ordinal": 1}}
    record = {"query_id": of, "client_id": f"u{at % 9}", "action_name": "click", "event_attributes": what}
    return json.dumps({**record, "timestamp": f"2026-01-05T10:{at % 60:02d}:09Z"})


PAGES = [page(at) for at in range(20)]
FACETS = [page(at, query_response_hit_ids=[], query='{"size": 0}') for at in range(20, 24)]
CLICKS = [click(at, f"q{at}") for at in range(10)]


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        ([*PAGES, *CLICKS], []),
        ([*PAGES, *FACETS, *CLICKS], ["4 of 24 query rows (16.7 %) are left out, more than 5 %: facet-request 4"]),
        (
            [*PAGES, *CLICKS, *CLICKS[:2]],
            ["2 of 12 event rows (16.7 %) are left out, more than 5 %: duplicate-event 2"],
        ),
        ([*PAGES, *CLICKS, *[BROKEN] * 3], ["3 of 33 records of a file could not be read, more than 5 %: broken-json"]),
        (
            [*PAGES, *CLICKS, click(1, "none")],
            ["only 90.9 % of the events that name a page are on one, less than 95 %: unknown-query-id 1"],
        ),
    ],
)
def test_a_result_and_its_log_have_the_same_doubts(tmp_path: Path, lines: list[str], reasons: list[str]) -> None:
    (tmp_path / "log.ndjson").write_text("\n".join(lines) + "\n")
    log = read_log(tmp_path / "log.ndjson")
    assert list(check_log(log).doubts) == reasons
    expected = tuple(f"log.ndjson is not fit: {one}." for one in reasons)
    noted = online_metrics(log, ["PageCTR"]).notes
    assert tuple(str(note) for note in noted if note.rule == "unfit-log") == expected


def test_rows_that_are_lost_count_beside_those_that_are_left_out() -> None:
    """Of 100 rows 4 could not be read and 3 of the 96 others are left out: each alone would be few enough."""
    lost = LogFinding("bad-row", "query", 4, 100, "lost", "rows: too short", "")
    out = LogFinding("bot", "query", 3, 96, "excluded", "pages of programs", "")
    account = Account("query", 96, 93, (("bot", 3),))
    assert doubts([account], [lost, out]) == (
        "7 of 100 query rows (7.0 %) are left out, more than 5 %: bot 3, bad-row 4",
    )
    assert doubts([account], [out]) == doubts([Account("query", 96, 96, ())], [lost]) == ()
    assert doubts([Account("query", 0, 0, ())], []) == ("no query was read, so there is no page",)


@pytest.mark.parametrize(
    ("table", "problem", "said"),
    [
        ("query", "rows: too short", "some-rule (query): 4 rows: too short."),
        ("folder", "files: no log", "some-rule (folder): 4 files: no log."),
        ("event", "clicks of nobody", "some-rule (event): 4 rows: clicks of nobody."),
    ],
)
def test_what_is_counted_is_said_once(table: str, problem: str, said: str) -> None:
    assert trouble.problem(LogFinding("some-rule", table, 4, 9, "kept", problem, "")) == said


def test_files_of_a_folder_are_no_rows() -> None:
    found = (LogFinding("strange-file", "folder", 1, 4, "excluded", "file: no log", ""),)
    assert words.rules(found) == ("left out: strange-file 1 of 4 files",)
    assert doubts([Account("query", 9, 9, ())], found) == ()
