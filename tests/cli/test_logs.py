"""`judged logs`: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from judged.online.opening import read_log
from judged.online.tables import EVENT, SERP, SESSION, SHOWN
from made_log import closed_databases
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from command_line import Ended

DAY = "2026-01-05T10:"


def page(query_id: str, at: str, hits: list[str], **more: object) -> dict[str, object]:
    record = {"query_id": query_id, "client_id": "ann", "user_query": "Lamp", "timestamp": f"{DAY}{at}Z"}
    return {**record, "query_response_hit_ids": hits, **more}


def click(query_id: str, at: str, name: str, place: int) -> dict[str, object]:
    what = {"object": {"object_id": name}, "position": {"ordinal": place}}
    record = {"query_id": query_id, "client_id": "ann", "action_name": "click", "timestamp": f"{DAY}{at}Z"}
    return {**record, "event_attributes": what}


CLEAN = [
    page("1", "00:00", ["a", "b"]),
    click("1", "00:09", "b", 2),
    page("2", "01:00", []),
    click("1", "50:00", "a", 1),
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    lines = {
        "clean.ndjson": CLEAN,
        "astray.ndjson": [*CLEAN, click("9", "00:20", "c", 3), page("1", "00:00", [], query='{"size": 0}')],
    }
    for name, records in lines.items():
        (tmp_path / name).write_text("\n".join(map(json.dumps, records)) + "\n")
    yield from closed_databases(monkeypatch)


def test_a_clean_log(run: Callable[..., Ended]) -> None:
    done = run("logs", "check", "clean.ndjson")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == "clean.ndjson: ubi, 1 file, 2026-01-05 10:00 to 2026-01-05 10:01 UTC"
    assert done.lines[1] == "2 pages, 2 events, 2 events on pages, 1 sessions, 1 users"
    assert [line.split() for line in done.lines[3:6]] == [
        ["rows", "read", "kept"],
        ["query", "2", "2"],
        ["event", "2", "2"],
    ]
    assert done.lines[-1].startswith("fit:")
    told = {line.split()[0]: line.split()[1] for line in done.lines if " yes " in line or " no " in line}
    assert (told["clicks"], told["zero_results"], told["impressions"], told["values"]) == ("yes", "yes", "no", "no")


def test_a_log_that_is_not_fit(run: Callable[..., Ended]) -> None:
    done = run("logs", "check", "astray.ndjson")
    assert done.code == 1
    assert "facet-request     query  excluded     1        3  33.3 %" in done.out
    assert "unknown-query-id (event): 1 events on pages that were not logged" in done.out
    assert "at astray.ndjson:5" in done.out
    assert [line for line in done.lines if line.startswith("not fit")] == [
        "not fit: 1 of 3 query rows (33.3 %) are left out, more than 5 %: facet-request 1",
        "not fit: only 66.7 % of the events that name a page are on one, less than 95 %: unknown-query-id 1",
    ]


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    done = run("logs", "check", "astray.ndjson", "-o", "out.json")
    assert (done.code, done.out) == (1, "")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["accounts"][0] == {"table": "query", "read": 3, "kept": 2, "excluded": {"facet-request": 1}}
    assert [(one["rule"], one["rows"], one["of"], one["share"]) for one in found["findings"]] == [
        ("facet-request", 1, 3, 1 / 3), ("unknown-query-id", 1, 3, 1 / 3),
    ]  # fmt: skip
    assert found["counts"]["events on pages"] == 2
    assert set(found["tells"]) | set(found["cannot_tell"]) >= {"clicks", "values"}
    markdown = run("logs", "check", "astray.ndjson", "--format", "markdown").out
    assert "| facet-request | query | excluded | 1 | 3 | 33.3 % |" in markdown
    assert "## What this log can tell" in markdown


def test_a_converted_log_is_the_same_log(run: Callable[..., Ended], tmp_path: Path) -> None:
    done = run("logs", "convert", "astray.ndjson", "--to", "made/log")
    assert done.code == 0
    assert sorted(one.name for one in (tmp_path / "made/log").iterdir()) == [
        "event.parquet", "log.json", "serp.parquet", "session.parquet", "shown.parquet",
    ]  # fmt: skip
    assert run("logs", "check", "made/log").out == run("logs", "check", "astray.ndjson").out
    first, second = read_log("astray.ndjson"), read_log(tmp_path / "made/log")
    for name, columns in (("serp", SERP), ("shown", SHOWN), ("event", EVENT), ("session", SESSION)):
        one, two = getattr(first, name), getattr(second, name)
        assert [(column, str(kind).lstrip("!")) for column, kind in two.schema().items()][: len(columns)] == [
            (column.name, column.type) for column in columns
        ]
        assert [str(kind) for kind in one.schema().values()][: len(columns)] == [column.type for column in columns]
        assert sorted(map(repr, one.to_pyarrow().to_pylist())) == sorted(map(repr, two.to_pyarrow().to_pylist()))
    assert (second.findings, second.accounts, second.policies) == (first.findings, first.accounts, first.policies)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "none.ndjson"), "none.ndjson"),
        (("check", "clean.ndjson", "--layout", "csv"), "no layout 'csv'"),
        (("check", "clean.ndjson", "--session-gap", "0"), "session-gap"),
        (("check", "clean.ndjson", "-o", "clean.ndjson"), "this file is an input"),
        (("check", "broken"), "this is not what 'judged logs convert' writes"),
        (("convert", "clean.ndjson", "--to", "."), "there are other files in this folder"),
        (("convert", "clean.ndjson"), "--to"),
    ],
)
def test_what_is_refused(run: Callable[..., Ended], tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "broken").mkdir()
    for name in ("log.json", "serp.parquet"):
        (tmp_path / "broken" / name).write_text("{}")
    done = run("logs", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Fix:" in done.err


@needs_shared
def test_the_official_sample_with_its_seven_defects() -> None:
    log = read_log(SHARED / "logs" / "ubi_esci" / "ubi_queries_events.ndjson.gz", now_ms=1_790_000_000_000)
    found = {one.rule: (one.rows, one.of) for one in log.findings}
    assert found["unknown-query-id"] == (944, 3446)
    assert found["facet-request"] == (186, 473)
    assert found["mixed-rank-base"] == (1060, 2866)
    # 41 of the 287 clicks have no impression, nor have the 11 of item_click; 12 more are not in the list of their page
    assert found["click-without-impression"] == (41 + 11 + 12, 287 + 11)
    (repeated,) = [one for one in log.findings if one.rule == "repeated-query-id"]
    assert "(84 query_ids stand in several rows, up to 6" in repeated.problem
    pages = log.serp.zero_results.notnull().sum().to_pyarrow().as_py()
    empty = log.serp.zero_results.sum().to_pyarrow().as_py()
    assert (empty, pages) == (6, 84)  # 7.1 %, and not the 70.3 % of all 273 rows with a list
    listed = log.accounts[0].read - 200
    assert round(100 * (186 + empty) / listed, 1) == 70.3
