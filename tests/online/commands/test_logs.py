"""`judged logs`: output, exit codes, and errors."""

from __future__ import annotations

import errno
import gc
import gzip
import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.online.commands import logs
from judged.online.log import EVENT, SERP, SESSION, SHOWN
from judged.online.readers.raw import DUCKDB_TYPES
from judged.online.storage import read_log
from made_log import closed_databases
from shared_data import SHARED, needs_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from command_line import Ended

DAY = "2026-01-05T10:"


def page(query_id: str, time: str, hits: list[str], **fields: object) -> dict[str, object]:
    record = {"query_id": query_id, "client_id": "ann", "user_query": "Lamp", "timestamp": f"{DAY}{time}Z"}
    return {**record, "query_response_hit_ids": hits, **fields}


def click(query_id: str, time: str, name: str, place: int) -> dict[str, object]:
    attributes = {"object": {"object_id": name}, "position": {"ordinal": place}}
    record = {"query_id": query_id, "client_id": "ann", "action_name": "click", "timestamp": f"{DAY}{time}Z"}
    return {**record, "event_attributes": attributes}


CLEAN = [
    page("1", "00:00", ["a", "b"]),
    click("1", "00:09", "b", 2),
    page("2", "01:00", []),
    click("1", "50:00", "a", 1),
]


@pytest.fixture(autouse=True)
def _log_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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
    assert done.lines[1] == "2 pages, 2 events, 2 events on pages, 1 session, 1 user"
    assert [line.split() for line in done.lines[3:6]] == [
        ["table", "read", "kept"],
        ["query", "2", "2"],
        ["event", "2", "2"],
    ]
    assert done.lines[-1].startswith("The log is fit for metrics: ")
    capabilities = {line.split()[0]: line.split()[1] for line in done.lines if " yes " in line or " no " in line}
    assert (
        capabilities["clicks"],
        capabilities["zero_results"],
        capabilities["impressions"],
        capabilities["values"],
    ) == ("yes", "yes", "no", "no")


@pytest.mark.parametrize("size", ["banana", "-1GB", "1MB", "4"])
def test_invalid_memory_sizes(run: Callable[..., Ended], size: str) -> None:
    done = run("logs", "check", "clean.ndjson", "--memory", size)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "Fix: " in done.err


def test_a_log_beyond_the_memory(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    def full(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("out of memory")

    monkeypatch.setattr("judged.online.check.check_log", full)
    done = run("logs", "check", "clean.ndjson")
    assert (done.code, done.out) == (2, "")
    assert "Fix: use more memory, such as 4GB." in done.err


@pytest.mark.parametrize("length", ["nan", "inf"])
@pytest.mark.parametrize("option", ["--bot-minutes", "--session-gap"])
def test_invalid_durations(run: Callable[..., Ended], option: str, length: str) -> None:
    done = run("logs", "check", "clean.ndjson", option, length)
    assert done.code == 2
    assert "Fix: " in done.err


def test_empty_files(run: Callable[..., Ended]) -> None:
    Path("empty.ndjson").write_text(" \n")
    Path("packed.ndjson.gz").write_bytes(gzip.compress(b""))
    for command in (("logs", "check"), ("logs", "convert", "--to", "made"), ("online", "metrics"), ("online", "dwell")):
        for name in ("empty.ndjson", "packed.ndjson.gz"):
            done = run(*command, name)
            assert (done.code, done.out) == (2, "")
            assert done.err == f"error: {name}: the file is empty. Fix: use a log with queries and events.\n"
    two_files = run("logs", "check", "empty.ndjson", "packed.ndjson.gz")
    assert "empty.ndjson: all 2 files of this log are empty" in two_files.err
    assert not Path("made").exists()


def test_a_mapping_without_matching_rows(run: Callable[..., Ended]) -> None:
    Path("rows.jsonl").write_text('{"id": "1", "who": "ann", "words": "a", "kind": "page"}\n')
    columns = '[queries.columns]\nquery_id = "id"\nuser_id = "who"\nquery = "words"\n'
    Path("none.toml").write_text(f'[queries]\nwhere = {{ kind = "serp" }}\n{columns}')
    done = run("logs", "check", "rows.jsonl", "--mapping", "none.toml")
    assert done.code == 2
    assert (
        "rows.jsonl: the log has no queries and no events. Fix: check the file, and the layout or mapping" in done.err
    )


@pytest.mark.parametrize(
    "command",
    [("logs", "check"), ("logs", "convert", "--to", "made"), ("online", "metrics"), ("online", "ranks"),
     ("online", "dwell"), ("online", "time", "-m", "PageCTR")],
)  # fmt: skip
def test_error_without_duckdb(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    Path("clean.ndjson").write_text("\n".join(map(json.dumps, CLEAN)))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run(*command, "clean.ndjson")
    assert (done.code, done.err) == (
        2,
        "error: DuckDB is not installed. Fix: pip install 'judged[logs]'.\n",
    )


def test_current_queries_of_a_track_do_not_make_a_log_unfit(run: Callable[..., Ended]) -> None:
    session = (
        '<session num="1" starttime="10:00:00.0"><topic num="7"><desc>d</desc></topic><interaction num="1"'
        ' starttime="10:00:01.0"><query>tax</query><results><result rank="1"><url>u</url><clueweb09id>d</clueweb09id>'
        '</result></results></interaction><currentquery starttime="10:01:00.0"><query>taxes</query></currentquery>'
        "</session>"
    )
    Path("track.xml").write_text(f"<sessiontrack2012>{session}</sessiontrack2012>")
    done = run("logs", "check", "track.xml")
    assert ["current-query", "query", "lost", "1", "2", "50.0%"] in [line.split() for line in done.lines]
    assert done.code == 0
    assert "The log is fit for metrics: no problem exceeds its limit. No click was read" in " ".join(done.out.split())


def test_no_share_is_above_one(run: Callable[..., Ended]) -> None:
    attributes = {f"name{i}": 1 for i in range(300)}
    Path("many.ndjson").write_text(
        "\n".join(map(json.dumps, [page("3", "02:00", ["a"], query_attributes=attributes), *CLEAN]))
    )
    assert run("logs", "check", "many.ndjson", "--format", "json", "-o", "many.json").code == 0
    findings = {row["rule"]: row for row in json.loads(Path("many.json").read_text())["findings"]}
    assert findings["attributes-left-out"]["share"] == 1


def test_a_mistake_in_a_mapping_of_deep_records(run: Callable[..., Ended]) -> None:
    Path("deep.ndjson").write_text('{"id": "1", "x": ' + "[" * 20_000 + "]" * 20_000 + '}\n{"id": "2", "words": "a"}\n')
    Path("deep.toml").write_text('[queries.columns]\nquery_id = "id"\nuser_id = "id"\nquery = "word"\n')
    gc.collect()  # objects of earlier tests could otherwise be collected within the recursion, with a warning
    done = run("logs", "check", "deep.ndjson", "--mapping", "deep.toml")
    assert done.code == 2
    assert "did you mean 'words'?" in done.err


@pytest.mark.parametrize("options", [{"bots": "no"}, {"rank_base": 7}])
def test_invalid_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"use exclude or keep|use 0 or 1"):
        read_log("clean.ndjson", **options)


def test_standard_input_is_read_once(run: Callable[..., Ended]) -> None:
    with Path("clean.ndjson").open() as lines, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", lines)
        done = run("logs", "check", "-")
    assert done.lines[1] == "2 pages, 2 events, 2 events on pages, 1 session, 1 user"


def test_a_log_that_is_not_fit(run: Callable[..., Ended]) -> None:
    done = run("logs", "check", "astray.ndjson")
    assert done.code == 1
    assert "facet-request query excluded 1 3 33.3%" in " ".join(done.out.split())
    assert "unknown-query-id (event): 1 row: events on pages that are not in the log" in done.out
    assert "At astray.ndjson:5" in done.out
    assert " ".join(done.out.split()).endswith(
        "The log is not fit for metrics: 1 of 3 query rows (33.3%) are excluded or lost, more than 5%: facet-request 1."
        " The log is not fit for metrics: only 66.7% of the events with a query_id belong to a valid page, but at"
        " least 95% are required (unknown-query-id 1)."
    )


LONG_NAME = "n" * 300
HOSTILE = [
    *({**record, "application": f"shop\n\x1b[31m|{LONG_NAME}"} for record in CLEAN),
    {**click("1", "00:30", "c", 1), "action_name": f"leap\n\x1b[2J|{LONG_NAME}"},
    {**click("1", "00:31", "c", 0), "application": f"\u202eother|{LONG_NAME}"},
]


def test_control_characters_and_long_names_of_the_log_are_clipped(run: Callable[..., Ended]) -> None:
    Path("weird.ndjson").write_text("\n".join(map(json.dumps, HOSTILE)))
    for form in ("table", "markdown"):
        done = run("logs", "check", "weird.ndjson", "--format", form)
        assert done.code == 0
        assert all(character.isprintable() for character in done.out.replace("\n", ""))
        assert "n" * 40 in done.out
        assert "n" * 60 not in done.out
        assert "leap \ufffd[2J" in " ".join(done.out.split())
        assert "unknown-action" in done.out
    assert max(map(len, run("logs", "check", "weird.ndjson").lines)) <= 100


def test_sentences_fit_a_terminal(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("logs", "check", "astray.ndjson").lines
    assert max(map(len, lines)) <= 80
    assert "At astray.ndjson:5." in lines


def test_bot_policies_are_shown_if_there_are_bots(run: Callable[..., Ended]) -> None:
    agent = {"user_agent": "Googlebot/2.1"}
    robots = [page("7", "20:00", ["a"], client_id="bob", query_attributes=agent, **agent)]
    Path("robots.ndjson").write_text("\n".join(map(json.dumps, [*CLEAN, *robots])))
    with_bots, without_bots = run("logs", "check", "robots.ndjson"), run("logs", "check", "clean.ndjson")
    assert "\nbot " in with_bots.out
    assert "bots exclude, bot_rate more than 100 pages in 60 minutes" in " ".join(with_bots.out.split())
    assert "Options: session_gap 30 minutes, rank_base 1 (detected)." in without_bots.out


def test_progress_on_a_terminal(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    @contextmanager
    def recorded_progress(step: str = "reading") -> Iterator[Callable[[str, float | None], None]]:
        steps.append(step)
        yield lambda step, _share: steps.append(step)

    with logs.progress_line() as silent:
        assert silent is None  # stderr is not a terminal
    monkeypatch.setattr(logs, "progress_line", recorded_progress)
    preparation_steps = ["events", "pages", "events on pages", "sessions"]
    commands = {
        ("logs", "check"): [*preparation_steps, "counting"],
        ("online", "metrics", "-m", "PageCTR"): [*preparation_steps, "counting", "pages", "users"],
        ("online", "dwell"): [*preparation_steps, "counting", "visits"],
    }
    for command, expected in commands.items():
        steps.clear()
        assert run(*command, "clean.ndjson").code == 0
        assert steps[0] == "reading"
        assert [step for step in steps if not step.startswith("reading")] == expected


def test_threads_reach_the_database(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    options_used: list[object] = []
    original = read_log

    def recording(paths: Any, **options: Any) -> Any:
        options_used.append((options["threads"], options["memory"]))
        return original(paths, **options)

    monkeypatch.setattr("judged.online.storage.read_log", recording)
    assert run("logs", "check", "clean.ndjson", "--threads", "1", "--memory", "600MB").code == 0
    assert run("logs", "check", "clean.ndjson", "--threads", "0").code == 2
    assert options_used == [(1, "600MB")]


def test_formats(run: Callable[..., Ended], tmp_path: Path) -> None:
    done = run("logs", "check", "astray.ndjson", "-o", "out.json")
    assert (done.code, done.out, done.err) == (1, "", "")
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["accounts"][0] == {"table": "query", "read": 3, "kept": 2, "excluded": {"facet-request": 1}}
    assert [(row["rule"], row["rows"], row["of"], row["share"]) for row in data["findings"]] == [
        ("facet-request", 1, 3, 1 / 3), ("unknown-query-id", 1, 3, 1 / 3),
    ]  # fmt: skip
    assert data["counts"]["events on pages"] == 2
    capabilities = {row["name"]: row["available"] for row in data["capabilities"]}
    assert (capabilities["clicks"], capabilities["values"]) == (True, False)
    markdown = run("logs", "check", "astray.ndjson", "--format", "markdown").out
    assert "| facet-request | query | excluded | 1 | 3 | 33.3% |" in markdown
    assert "### Data for metrics" in markdown


def test_a_converted_log_equals_the_original(run: Callable[..., Ended], tmp_path: Path) -> None:
    done = run("logs", "convert", "astray.ndjson", "--to", "made/log")
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "made/log").iterdir()) == [
        "event.parquet", "log.json", "serp.parquet", "session.parquet", "shown.parquet",
    ]  # fmt: skip
    assert run("logs", "check", "made/log").out == run("logs", "check", "astray.ndjson").out
    first, second = read_log("astray.ndjson"), read_log(tmp_path / "made/log")
    for name, columns in (("serp", SERP), ("shown", SHOWN), ("event", EVENT), ("session", SESSION)):
        original, converted = getattr(first, name), getattr(second, name)
        expected = [(column.name, DUCKDB_TYPES[column.type]) for column in columns]
        assert list(converted.types.items())[: len(columns)] == expected
        types = [(column, "VARCHAR" if kind.startswith("ENUM") else kind) for column, kind in original.types.items()]
        assert types[: len(columns)] == expected
        assert sorted(map(repr, original.to_arrow().to_pylist())) == sorted(map(repr, converted.to_arrow().to_pylist()))
    assert (second.findings, second.accounts, second.policies) == (first.findings, first.accounts, first.policies)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "none.ndjson"), "none.ndjson"),
        (("check", "clean.ndjson", "--layout", "csv"), "unknown layout 'csv'"),
        (("check", "clean.ndjson", "--session-gap", "0"), "session-gap"),
        (("check", "clean.ndjson", "-o", "clean.ndjson", "--format", "json"), "the output file is also an input"),
        (("check", "broken"), "the file was not written by 'judged logs convert'"),
        (("convert", "clean.ndjson", "--to", "."), "the folder contains other files"),
        (("convert", "clean.ndjson"), "--to"),
    ],
)
def test_errors(run: Callable[..., Ended], tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "broken").mkdir()
    for name in ("log.json", "serp.parquet"):
        (tmp_path / "broken" / name).write_text("{}")
    done = run("logs", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Fix:" in done.err


@needs_shared
def test_the_official_sample_with_its_seven_defects() -> None:
    log = read_log(SHARED / "logs" / "ubi_esci" / "ubi_queries_events.ndjson.gz", now_ms=1_790_000_000_000)
    counts = {finding.rule: (finding.rows, finding.of) for finding in log.findings}
    assert counts["unknown-query-id"] == (944, 3446)
    assert counts["facet-request"] == (186, 473)
    assert counts["mixed-rank-base"] == (1060, 2866)
    # 41 of the 287 clicks have no impression, nor have the 11 of item_click; 12 more are not in the list of their page
    assert counts["click-without-impression"] == (41 + 11 + 12, 287 + 11)
    (repeated,) = [finding for finding in log.findings if finding.rule == "repeated-query-id"]
    assert "(84 query_ids have several rows, at most 6 each" in repeated.problem
    pages = log.serp.where("zero_results IS NOT NULL").to_arrow().num_rows
    empty = log.serp.where("zero_results").to_arrow().num_rows
    assert (empty, pages) == (6, 84)  # 7.1 %, and not the 70.3 % of all 273 rows with a list
    rows_with_list = log.accounts[0].read - 200
    assert round(100 * (186 + empty) / rows_with_list, 1) == 70.3


@pytest.mark.parametrize(
    ("records", "metric_options"), [(CLEAN, ("-m", "RevenuePerSearch")), (CLEAN, ("--metric", "HoverRate"))]
)
def test_error_if_no_metric_is_supported(
    run: Callable[..., Ended], records: list[object], metric_options: Sequence[str]
) -> None:
    Path("asked.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = run("online", "metrics", "asked.ndjson", *metric_options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: asked.ndjson: no metric can be computed: the log ")


def test_a_draft_names_the_extra_that_it_needs(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shop.csv").write_text("sid,ts,search_term,urls\n7,2026-01-05T10:00:00Z,red shoes,d7|d9\n")
    assert "pip install" not in run("logs", "draft", "shop.csv", "-o", "shop.toml").err
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run("logs", "draft", "shop.csv", "-o", "shop.toml")
    assert (done.code, done.err) == (2, "error: DuckDB is not installed. Fix: pip install 'judged[logs]'.\n")


def test_the_error_about_an_unknown_layout_quotes_the_file(run: Callable[..., Ended]) -> None:
    Path("LICENSE.txt").write_text("\n\n    The license\n")
    done = run("logs", "check", "LICENSE.txt")
    assert done.code == 2
    assert "LICENSE.txt: a file that begins with 'The license' has no known log layout" in done.err
    assert "Fix: use --layout NAME; for your own layout, run 'judged logs draft FILE" in done.err
    assert len(done.err) < 250


def test_slices_by_the_age_of_results(run: Callable[..., Ended]) -> None:
    documents = [
        {"doc_id": "a", "title": "a", "date": "2026-01-05"},
        {"doc_id": "b", "title": "b", "date": "2025-12-01"},
    ]
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, documents)))
    arguments = ("clean.ndjson", "--by", "freshness")
    done = run("online", "metrics", *arguments, "-m", "PageCTR", "--documents", "docs.jsonl", "--format", "json")
    assert done.code == 0
    sizes = {row["slice"]: row["pages"] for row in json.loads(done.out)["slices"]}
    assert sizes == {"0 days": 1, "unknown": 1}  # "a" is from that day; the other page has no results
    for command in ("funnel", "difference"):
        done = run(
            "online", command, *arguments, "--documents", "docs.jsonl", "--as-of", "2026-01-06", "--format", "json"
        )
        assert (done.code, "to 2026-01-06; bands: thirds" in done.out) == (0, True)
    for command in (("metrics",), ("ranks",), ("funnel",), ("difference",)):
        done = run("online", *command, *arguments)
        assert done.code == 2
        assert done.err.endswith("Fix: use --documents FILE with a column of dates.\n")
    done = run("online", "metrics", "clean.ndjson", "--documents", "docs.jsonl")
    assert (done.code, "add --by freshness" in done.err) == (2, True)
    overwriting = run(
        "online", "metrics", *arguments, "--documents", "docs.jsonl", "-o", "docs.jsonl", "--format", "csv"
    )
    assert (overwriting.code, "docs.jsonl: the output file is also an input" in overwriting.err) == (2, True)
    gc.collect()  # errors refer to frames with tables, which must be freed before their database


def test_a_full_disk_does_not_change_the_existing_log(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("logs", "convert", "clean.ndjson", "--to", "made").code == 0
    before = {path.name: path.read_bytes() for path in Path("made").iterdir()}

    def full(_table: object, path: Path) -> None:
        path.write_text("half")
        if path.stem == "event":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("judged.online.storage._write", full)
    done = run("logs", "convert", "clean.ndjson", "--to", "made")
    assert (done.code, done.err[:12]) == (74, "error: made:")
    assert "no space left" in done.err
    assert {path.name: path.read_bytes() for path in Path("made").iterdir()} == before
    assert not [path for path in Path().iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [[[" * 40_000, "more than 5,000"), ("x = " + "1" * 4_900, "4,300 digits"), ("a = 1\na = 2", ":2:"),
        ("\n".join(["["] * 9_000), "mapping.toml"),
    ],
)  # fmt: skip
def test_invalid_toml_mappings(run: Callable[..., Ended], text: str, message: str) -> None:
    Path("mapping.toml").write_text(text)
    done = run("logs", "check", "clean.ndjson", "--mapping", "mapping.toml")
    assert (done.code, done.err[:20]) == (2, "error: mapping.toml:")
    assert message in done.err
