"""`judged logs`: what it prints, how it ends, and what it refuses."""

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
    assert done.lines[1] == "2 pages, 2 events, 2 events on pages, 1 session, 1 user"
    assert [line.split() for line in done.lines[3:6]] == [
        ["rows", "read", "kept"],
        ["query", "2", "2"],
        ["event", "2", "2"],
    ]
    assert done.lines[-1].startswith("fit:")
    told = {line.split()[0]: line.split()[1] for line in done.lines if " yes " in line or " no " in line}
    assert (told["clicks"], told["zero_results"], told["impressions"], told["values"]) == ("yes", "yes", "no", "no")


@pytest.mark.parametrize("size", ["banana", "-1GB", "1MB", "4"])
def test_sizes_of_memory_that_are_none(run: Callable[..., Ended], size: str) -> None:
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
    assert "Fix: give more, such as 4GB." in done.err


@pytest.mark.parametrize("length", ["nan", "inf"])
@pytest.mark.parametrize("option", ["--bot-minutes", "--session-gap"])
def test_lengths_of_time_that_are_none(run: Callable[..., Ended], option: str, length: str) -> None:
    done = run("logs", "check", "clean.ndjson", option, length)
    assert done.code == 2
    assert "Fix: " in done.err


def test_a_file_of_nothing_is_said_to_be_empty(run: Callable[..., Ended]) -> None:
    Path("empty.ndjson").write_text(" \n")
    Path("packed.ndjson.gz").write_bytes(gzip.compress(b""))
    for command in (("logs", "check"), ("logs", "convert", "--to", "made"), ("online", "metrics"), ("online", "dwell")):
        for name in ("empty.ndjson", "packed.ndjson.gz"):
            done = run(*command, name)
            assert (done.code, done.out) == (2, "")
            assert done.err == f"error: {name}: the file is empty. Fix: name a log with queries and events.\n"
    both = run("logs", "check", "empty.ndjson", "packed.ndjson.gz")
    assert "empty.ndjson: the file is empty, and so are all 2 of this log" in both.err
    assert not Path("made").exists()


def test_a_mapping_that_meets_no_row_is_not_an_empty_file(run: Callable[..., Ended]) -> None:
    Path("rows.jsonl").write_text('{"id": "1", "who": "ann", "words": "a", "kind": "page"}\n')
    columns = '[queries.columns]\nquery_id = "id"\nuser_id = "who"\nquery = "words"\n'
    Path("none.toml").write_text(f'[queries]\nwhere = {{ kind = "serp" }}\n{columns}')
    done = run("logs", "check", "rows.jsonl", "--mapping", "none.toml")
    assert done.code == 2
    assert "rows.jsonl: no query and no event stands in it. Fix: see that it is not empty, and that its" in done.err


@pytest.mark.parametrize(
    "command",
    [("logs", "check"), ("logs", "convert", "--to", "made"), ("online", "metrics"), ("online", "ranks"),
     ("online", "dwell"), ("online", "time", "-m", "PageCTR")],
)  # fmt: skip
def test_without_the_database_there_is_a_sentence(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    Path("clean.ndjson").write_text("\n".join(map(json.dumps, CLEAN)))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run(*command, "clean.ndjson")
    assert (done.code, done.err) == (
        2,
        "error: DuckDB is not installed. Fix: pip install 'judged[logs]'.\n",
    )


def test_what_a_track_publishes_beside_its_pages_is_not_lost(run: Callable[..., Ended]) -> None:
    session = (
        '<session num="1" starttime="10:00:00.0"><topic num="7"><desc>d</desc></topic><interaction num="1"'
        ' starttime="10:00:01.0"><query>tax</query><results><result rank="1"><url>u</url><clueweb09id>d</clueweb09id>'
        '</result></results></interaction><currentquery starttime="10:01:00.0"><query>taxes</query></currentquery>'
        "</session>"
    )
    Path("track.xml").write_text(f"<sessiontrack2012>{session}</sessiontrack2012>")
    done = run("logs", "check", "track.xml")
    assert ["current-query", "query", "lost", "1", "2", "50.0", "%"] in [line.split() for line in done.lines]
    assert (done.code, done.lines[-1][:4]) == (0, "fit:")


def test_no_share_is_above_one(run: Callable[..., Ended]) -> None:
    own = {f"name{at}": 1 for at in range(300)}
    Path("many.ndjson").write_text(
        "\n".join(map(json.dumps, [page("3", "02:00", ["a"], query_attributes=own), *CLEAN]))
    )
    assert run("logs", "check", "many.ndjson", "--format", "json", "-o", "many.json").code == 0
    found = {one["rule"]: one for one in json.loads(Path("many.json").read_text())["findings"]}
    assert found["attributes-left-out"]["share"] == 1


def test_a_mistake_in_a_mapping_of_deep_records(run: Callable[..., Ended]) -> None:
    Path("deep.ndjson").write_text('{"id": "1", "x": ' + "[" * 20_000 + "]" * 20_000 + '}\n{"id": "2", "words": "a"}\n')
    Path("deep.toml").write_text('[queries.columns]\nquery_id = "id"\nuser_id = "id"\nquery = "word"\n')
    gc.collect()  # what earlier tests left behind would warn if it went away in the depth of this recursion
    done = run("logs", "check", "deep.ndjson", "--mapping", "deep.toml")
    assert done.code == 2
    assert "did you mean 'words'?" in done.err


@pytest.mark.parametrize("choice", [{"bots": "no"}, {"rank_base": 7}])
def test_choices_that_there_are_not(choice: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"take exclude or keep|0 or 1"):
        read_log("clean.ndjson", **choice)


def test_standard_input_is_read_once(run: Callable[..., Ended]) -> None:
    with Path("clean.ndjson").open() as lines, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", lines)
        done = run("logs", "check", "-")
    assert done.lines[1] == "2 pages, 2 events, 2 events on pages, 1 session, 1 user"


def test_a_log_that_is_not_fit(run: Callable[..., Ended]) -> None:
    done = run("logs", "check", "astray.ndjson")
    assert done.code == 1
    assert "facet-request     query  excluded     1        3  33.3 %" in done.out
    assert "unknown-query-id (event): 1 row: events on pages that were not logged" in done.out
    assert "At astray.ndjson:5" in done.out
    assert [line for line in done.lines if line.startswith("not fit")] == [
        "not fit: 1 of 3 query rows (33.3 %) are left out, more than 5 %: facet-request 1",
        "not fit: only 66.7 % of the events that name a page are on one, less than 95 %: unknown-query-id 1",
    ]


LONG = "n" * 300
WEIRD = [
    *({**one, "application": f"shop\n\x1b[31m|{LONG}"} for one in CLEAN),
    {**click("1", "00:30", "c", 1), "action_name": f"leap\n\x1b[2J|{LONG}"},
    {**click("1", "00:31", "c", 0), "application": f"\u202eother|{LONG}"},
]


def test_names_of_the_log_break_no_table_and_steer_no_terminal(run: Callable[..., Ended]) -> None:
    Path("weird.ndjson").write_text("\n".join(map(json.dumps, WEIRD)))
    for form in ("table", "markdown"):
        done = run("logs", "check", "weird.ndjson", "--format", form)
        assert done.code == 0
        assert all(one.isprintable() for one in done.out.replace("\n", ""))
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


def test_bots_are_spoken_of_where_there_are_some(run: Callable[..., Ended]) -> None:
    robot = {"user_agent": "Googlebot/2.1"}
    robots = [page("7", "20:00", ["a"], client_id="bob", query_attributes=robot, **robot)]
    Path("robots.ndjson").write_text("\n".join(map(json.dumps, [*CLEAN, *robots])))
    with_bots, without = run("logs", "check", "robots.ndjson"), run("logs", "check", "clean.ndjson")
    assert "\nbot " in with_bots.out
    assert "bots exclude, bot_rate more than 100 pages in 60 minutes" in " ".join(with_bots.out.split())
    assert "Chosen: session_gap 30 minutes, rank_base 1 (found)." in without.out


def test_every_step_is_told_on_a_terminal(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextmanager
    def line(step: str = "reading") -> Iterator[Callable[[str, float | None], None]]:
        told.append(step)
        yield lambda step, _share: told.append(step)

    with logs.progress_line() as silent:
        assert silent is None  # this is no terminal
    monkeypatch.setattr(logs, "progress_line", line)
    making = ["events", "pages", "events on pages", "sessions"]
    asked = {
        ("logs", "check"): [*making, "counting"],
        ("online", "metrics", "-m", "PageCTR"): [*making, "counting", "pages", "users"],
        ("online", "dwell"): [*making, "counting", "visits"],
    }
    for command, steps in asked.items():
        told.clear()
        assert run(*command, "clean.ndjson").code == 0
        assert told[0] == "reading"
        assert [step for step in told if not step.startswith("reading")] == steps


def test_threads_reach_the_database(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    inside = read_log

    def kept(paths: Any, **options: Any) -> Any:
        asked.append((options["threads"], options["memory"]))
        return inside(paths, **options)

    monkeypatch.setattr("judged.online.storage.read_log", kept)
    assert run("logs", "check", "clean.ndjson", "--threads", "1", "--memory", "600MB").code == 0
    assert run("logs", "check", "clean.ndjson", "--threads", "0").code == 2
    assert asked == [(1, "600MB")]


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    done = run("logs", "check", "astray.ndjson", "-o", "out.json")
    assert (done.code, done.out, done.err) == (1, "", "")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["accounts"][0] == {"table": "query", "read": 3, "kept": 2, "excluded": {"facet-request": 1}}
    assert [(one["rule"], one["rows"], one["of"], one["share"]) for one in found["findings"]] == [
        ("facet-request", 1, 3, 1 / 3), ("unknown-query-id", 1, 3, 1 / 3),
    ]  # fmt: skip
    assert found["counts"]["events on pages"] == 2
    tells = {one["name"]: one["has"] for one in found["tells"]}
    assert (tells["clicks"], tells["values"]) == (True, False)
    markdown = run("logs", "check", "astray.ndjson", "--format", "markdown").out
    assert "| facet-request | query | excluded | 1 | 3 | 33.3 % |" in markdown
    assert "### What this log can tell" in markdown


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
        expected = [(column.name, DUCKDB_TYPES[column.type]) for column in columns]
        assert list(two.types.items())[: len(columns)] == expected
        found = [(column, "VARCHAR" if kind.startswith("ENUM") else kind) for column, kind in one.types.items()]
        assert found[: len(columns)] == expected
        assert sorted(map(repr, one.to_arrow().to_pylist())) == sorted(map(repr, two.to_arrow().to_pylist()))
    assert (second.findings, second.accounts, second.policies) == (first.findings, first.accounts, first.policies)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "none.ndjson"), "none.ndjson"),
        (("check", "clean.ndjson", "--layout", "csv"), "no layout 'csv'"),
        (("check", "clean.ndjson", "--session-gap", "0"), "session-gap"),
        (("check", "clean.ndjson", "-o", "clean.ndjson", "--format", "json"), "this file is an input"),
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
    pages = log.serp.where("zero_results IS NOT NULL").to_arrow().num_rows
    empty = log.serp.where("zero_results").to_arrow().num_rows
    assert (empty, pages) == (6, 84)  # 7.1 %, and not the 70.3 % of all 273 rows with a list
    listed = log.accounts[0].read - 200
    assert round(100 * (186 + empty) / listed, 1) == 70.3


@pytest.mark.parametrize(("records", "more"), [(CLEAN, ("-m", "RevenuePerSearch")), (CLEAN, ("--metric", "HoverRate"))])
def test_metrics_of_which_none_can_be_told(
    run: Callable[..., Ended], records: list[object], more: Sequence[str]
) -> None:
    Path("asked.ndjson").write_text("".join(json.dumps(one) + "\n" for one in records))
    done = run("online", "metrics", "asked.ndjson", *more)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: asked.ndjson: no metric can be told: the log ")


def test_a_strange_file_is_named_by_its_first_words(run: Callable[..., Ended]) -> None:
    Path("LICENSE.txt").write_text("\n\n    The license\n")
    done = run("logs", "check", "LICENSE.txt")
    assert done.code == 2
    assert "LICENSE.txt: a file that begins with 'The license' has no known log layout" in done.err
    assert "Fix: say what it is: --layout NAME, or --mapping FILE for a log of your own" in done.err
    assert len(done.err) < 250


def test_the_age_of_results_from_a_file(run: Callable[..., Ended]) -> None:
    made = [{"doc_id": "a", "title": "a", "date": "2026-01-05"}, {"doc_id": "b", "title": "b", "date": "2025-12-01"}]
    Path("docs.jsonl").write_text("\n".join(map(json.dumps, made)))
    asked = ("clean.ndjson", "--by", "freshness")
    done = run("online", "metrics", *asked, "-m", "PageCTR", "--documents", "docs.jsonl", "--format", "json")
    assert done.code == 0
    sizes = {one["slice"]: one["pages"] for one in json.loads(done.out)["slices"]}
    assert sizes == {"0-1": 1, "unknown": 1}  # a is of that day; the other page shows nothing
    for command in (("metrics",), ("ranks",)):
        done = run("online", *command, *asked)
        assert done.code == 2
        assert done.err.endswith("Fix: give --documents FILE: documents with a column date.\n")
    done = run("online", "metrics", "clean.ndjson", "--documents", "docs.jsonl")
    assert (done.code, "give --by freshness as well" in done.err) == (2, True)
    over = run("online", "metrics", *asked, "--documents", "docs.jsonl", "-o", "docs.jsonl", "--format", "csv")
    assert (over.code, "docs.jsonl: this file is an input" in over.err) == (2, True)
    gc.collect()  # errors keep what they came from, and that is to go before its database does


def test_a_disk_that_is_full_leaves_the_log_that_was_there(
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
    ("text", "said"),
    [
        ("x = [[[" * 40_000, "line of more than"), ("x = " + "1" * 4_900, "cannot be read"), ("a = 1\na = 2", ":2:"),
        ("\n".join(["["] * 9_000), "mapping.toml"),
    ],
)  # fmt: skip
def test_a_mapping_that_is_no_toml(run: Callable[..., Ended], text: str, said: str) -> None:
    Path("mapping.toml").write_text(text)
    done = run("logs", "check", "clean.ndjson", "--mapping", "mapping.toml")
    assert (done.code, done.err[:20]) == (2, "error: mapping.toml:")
    assert said in done.err
