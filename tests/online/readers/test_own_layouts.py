"""Logs with layouts of their own, read without a mapping: metrics agree with a recount of the searches in pandas."""

from __future__ import annotations

import csv
import json
import random
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judged.data.column_names import use_columns
from judged.errors import InputError, JudgedWarning
from judged.online import draft_mapping, online_metrics, read_log

START = 1767600000
Search = dict[str, Any]


def searches(most_clicks: int) -> list[Search]:
    """Return 40 searches of 8 users in 16 sessions, with their results and clicks."""
    generator = random.Random(most_clicks)  # noqa: S311
    rows: list[Search] = []
    for number in range(40):
        session = number % 16
        results = [f"d{n}" for n in generator.sample(range(90), generator.randint(0, 6))]
        ranks = sorted(
            generator.sample(range(1, len(results) + 1), min(generator.randint(0, most_clicks), len(results)))
        )
        time = START + 86_400 * session + 600 * (number // 16)
        clicks = [
            {"doc": results[rank - 1], "rank": rank, "time": time + 20 * i + 5, "dwell": generator.randint(3, 120)}
            for i, rank in enumerate(ranks)
        ]
        rows.append(
            {"page": f"p{number}", "session": f"s{session}", "user": f"u{session % 8}", "time": time,
             "query": f"red {generator.choice(['shoes', 'hat'])} {number}", "results": results, "clicks": clicks,
             "device": generator.choice(["phone", "desktop"]), "cart": bool(clicks) and generator.random() < 0.4,
             "purchase": bool(clicks) and generator.random() < 0.3}
        )  # fmt: skip
    return rows


def recount(rows: list[Search]) -> dict[str, float]:
    """Return twelve metrics."""
    pages: Any = pd.DataFrame(rows)
    clicks: Any = pd.DataFrame([{"page": row["page"], **click} for row in rows for click in row["clicks"]])
    answered: Any = pages[pages["results"].str.len() > 0]
    by_page = clicks.groupby("page")["rank"]
    clicked = pages[pages["page"].isin(clicks["page"])]
    return {
        "PageCTR": len(clicked) / len(answered),
        "ClicksPerPage": len(clicks) / len(answered),
        "SessionCTR": clicked["session"].nunique() / pages["session"].nunique(),
        "TopmostClickRR": (1 / by_page.min()).sum() / len(answered),
        "MeanClickRank": clicks["rank"].mean(),
        "DeepestClickRank": by_page.max().mean(),
        "ImpressionCTR": len(clicks) / pages["results"].str.len().sum(),
        "ZeroResults": (pages["results"].str.len() == 0).mean(),
        "DwellTime": clicks["dwell"].mean(),
        "SatisfiedClicks(t=30)": (clicks["dwell"] >= 30).mean(),
        "AddToCart": pages["cart"].mean(),
        "Conversion": pages["purchase"].mean(),
    }


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def write_table(path: Path, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def page_per_row(path: Path, rows: list[Search]) -> Path:
    records: list[dict[str, Any]] = []
    for row in rows:
        click = row["clicks"][0] if row["clicks"] else {}
        records.append(
            {"when": iso(row["time"]), "person": row["user"], "visit": row["session"], "platform": row["device"],
             "search_text": row["query"], "results": "|".join(row["results"]), "clicked": click.get("doc", ""),
             "dwell_sec": click.get("dwell", ""), "added_to_cart": int(row["cart"]), "purchased": int(row["purchase"])}
        )  # fmt: skip
    return write_table(path.with_suffix(".csv"), records)


def click_per_row(path: Path, rows: list[Search]) -> Path:
    records = [
        {"search_id": row["page"], "user_id": row["user"], "session_id": row["session"],
         "clicked_at": iso(click["time"]), "query": row["query"], "doc_id": click["doc"],
         "position": click["rank"], "reading_secs": click["dwell"]}
        for row in rows for click in row["clicks"]
    ]  # fmt: skip
    return write_table(path.with_suffix(".csv"), records)


def events(rows: list[Search]) -> list[tuple[str, Search, dict[str, Any]]]:
    """Return the name, the search, and the details of each event, in order of time."""
    listed: list[tuple[str, Search, dict[str, Any]]] = []
    for row in sorted(rows, key=lambda row: row["time"]):
        listed.append(("search", row, {"time": row["time"]}))
        listed += [("click", row, click) for click in row["clicks"]]
        listed += [(name, row, {"time": row["time"] + 60}) for name in ("cart", "purchase") if row[name]]
    return listed


def event_per_row(path: Path, rows: list[Search]) -> Path:
    lines: list[str] = []
    for name, row, details in events(rows):
        record = {"event": name, "userId": row["user"], "sessionId": row["session"], "ts": details["time"] * 1000}
        if name == "search":
            record |= {"query": row["query"], "results": row["results"], "device": row["device"]}
        if name == "click":
            record |= {"docId": details["doc"], "position": details["rank"], "dwell_ms": details["dwell"] * 1000}
        lines.append(json.dumps(record) + "\n")
    path.with_suffix(".jsonl").write_text("".join(lines))
    return path.with_suffix(".jsonl")


def nested(path: Path, rows: list[Search]) -> Path:
    records = [
        {"search": {"search_id": row["page"], "query": row["query"], "time": iso(row["time"])},
         "user": {"user_id": row["user"], "session_id": row["session"]},
         "results": [{"doc": doc} for doc in row["results"]],
         "clicks": [{"doc": click["doc"], "rank": click["rank"], "time": iso(click["time"]),
                     "dwell_sec": click["dwell"]} for click in row["clicks"]],
         "cart": row["cart"], "purchased": row["purchase"]}
        for row in rows
    ]  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(records, indent=1))
    return path.with_suffix(".json")


GERMAN = {"search": "suche", "click": "klick", "cart": "warenkorb", "purchase": "kauf"}


def german(path: Path, rows: list[Search]) -> Path:
    records = [
        {"zeitstempel": details["time"], "nutzer": row["user"], "sitzung": row["session"], "ereignis": GERMAN[name],
         "suchbegriff": row["query"], "treffer": len(row["results"]) if name == "search" else "",
         "position": details.get("rank", ""), "artikel": details.get("doc", ""),
         "zeit_auf_seite": details.get("dwell", "")}
        for name, row, details in events(rows)
    ]  # fmt: skip
    return write_table(path.with_suffix(".csv"), records, ";")


NO_RANKED_PAGES = {"PageCTR", "ClicksPerPage", "SessionCTR", "TopmostClickRR", "ImpressionCTR", "ZeroResults"}
LAYOUTS: list[tuple[Callable[[Path, list[Search]], Path], int, dict[str, str], set[str]]] = [
    (page_per_row, 1, {}, set()),
    (click_per_row, 2, {"time": "clicked_at"}, NO_RANKED_PAGES | {"AddToCart", "Conversion"}),
    (event_per_row, 2, {}, set()),
    (nested, 2, {}, set()),
    (german, 2, {}, {"ImpressionCTR"}),
]


@pytest.mark.parametrize(("write", "most_clicks", "columns", "unavailable"), LAYOUTS)
def test_twelve_metrics_agree_with_a_recount(
    tmp_path: Path, write: Callable[[Path, list[Search]], Path], most_clicks: int, columns: dict[str, str],
    unavailable: set[str],
) -> None:  # fmt: skip
    rows = searches(most_clicks)
    path = write(tmp_path / "log", rows)
    with use_columns(columns), pytest.warns(JudgedWarning, match="read with these columns"):
        log = read_log(path)
    expected = recount(rows)
    scores = online_metrics(log, list(expected))
    assert {str(metric) for metric, _ in scores.refused} == unavailable
    values = {str(row.metric): row.value for row in scores.estimates if str(row.metric) in expected}
    assert {
        name: value / 1000 if name == "DwellTime" and value > 1000 else value for name, value in values.items()
    } == (pytest.approx({name: value for name, value in expected.items() if name not in unavailable}))
    assert not [note for note in scores.notes if "dwell is estimated" in str(note)]
    assert write is nested or len(draft_mapping(path).splitlines()) <= 30


CASES = Path(__file__).parents[2] / "own_files/files"


@pytest.mark.parametrize(
    ("names", "pages", "expected"),
    [
        # judged computes PageCTR and ClicksPerPage over pages with results, and the share of empty pages separately.
        (["ga4_bigquery/events_20240612.json"], 8, {"PageCTR": 4 / 6, "ClicksPerPage": 5 / 6, "ZeroResults": 2 / 8}),
        (["snowplow_twice/enriched.ndjson"], 6, {"PageCTR": 3 / 5, "ClicksPerPage": 4 / 5, "ZeroResults": 1 / 6}),
        (["algolia_events/insights_events.json"], 4, {"MeanClickRank": 4.4}),
        (
            ["seconds_and_millis/suchlog.csv"],
            7,
            {"PageCTR": 4 / 5, "ClicksPerPage": 1, "ZeroResults": 2 / 7, "TimeToFirstClick": 12.75},
        ),
        (
            ["ubi_zero_based/ubi_queries.ndjson", "ubi_zero_based/ubi_events.ndjson"],
            6,
            {"PageCTR": 4 / 5, "ClicksPerPage": 6 / 5, "ZeroResults": 1 / 6, "MeanClickRank": 2},
        ),
    ],
)
def test_logs_of_new_users(names: list[str], pages: int, expected: dict[str, float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        log = read_log([CASES / name for name in names])
    scores = online_metrics(log, list(expected))
    assert dict(scores.counts)["pages"] == pages
    values = {str(row.metric): row.value for row in scores.estimates if str(row.metric) in expected}
    assert values == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("abtest_table/experiment_rerank_v2.csv", "table of sums per user and variant"),
        ("gsc_total/Queries.csv", "report of Google Search Console"),
    ],
)
def test_sums_are_no_log(name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_log(CASES / name)


def test_the_error_about_unclear_columns_has_the_option_that_reads_the_log(tmp_path: Path) -> None:
    rows = [
        {
            "x": iso(START + 60 * n),
            "user_id": "u",
            "was": f"red shoes {n}",
            "gezeigt": "d1|d2|d3",
            "gewaehlt": f"d{n}",
            "gadget": gadget,
        }
        for n, gadget in enumerate(["phone", "desktop", "phone", "desktop"])
    ]
    rows[0]["gewaehlt"] = ""
    path = write_table(tmp_path / "log.csv", rows)
    with pytest.raises(InputError, match="query is recognized from the values of was") as caught:
        read_log(path)
    option = str(caught.value).split('--columns "')[1].split('"')[0]
    with use_columns(dict(pair.split("=") for pair in option.split(","))), pytest.warns(JudgedWarning):
        log = read_log(path)
    scores = online_metrics(log, ["PageCTR"], by="gadget")
    values = {(str(row.metric), row.slice): row.value for row in scores.estimates}
    assert [values["PageCTR", name] for name in (None, "phone", "desktop")] == [0.75, 0.5, 1]


def test_a_folder_of_files_with_the_same_columns(tmp_path: Path) -> None:
    rows = searches(1)
    page_per_row(tmp_path / "monday", rows[:20])
    page_per_row(tmp_path / "tuesday", rows[20:])
    with pytest.warns(JudgedWarning, match="monday.csv: read with these columns"):
        assert len(read_log(tmp_path).serp.to_arrow("serp")) == 40
    write_table(tmp_path / "wednesday.csv", [{"time": iso(START), "query": "red", "shown": "d1|d2", "clicked": "d1"}])
    with pytest.raises(InputError, match=r"wednesday.csv: the columns differ from the columns of .*monday.csv"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"query": "wass"}, "no column 'wass'. Fix: did you mean 'was'"),
        ({"querry": "was"}, "unknown name 'querry'. Fix: did you mean 'query'"),
        ({"time": "x"}, "no column is recognized as clicks.*clicks=COLUMN"),
    ],
)
def test_columns_that_cannot_be_read(tmp_path: Path, columns: dict[str, str], problem: str) -> None:
    path = write_table(tmp_path / "log.csv", [{"x": iso(START), "was": "red shoes"}])
    with use_columns(columns), pytest.raises(InputError, match=problem):
        read_log(path)


def test_unused_columns_are_reported_once_and_explained_in_the_draft(tmp_path: Path) -> None:
    rows = [
        {"time": iso(START + n), "query": f"red {n}", "shown": "d1|d2", "clicked": "d1", "note": f"n{n}",
         "page_title": f"a {n}"}
        for n in range(3)
    ]  # fmt: skip
    path = write_table(tmp_path / "log.csv", rows)
    text = draft_mapping(path)
    assert "# note: not used (n0; n1; n2)" in text
    assert "# page_title: not used, could be query (a 0; a 1; a 2)" in text
    (tmp_path / "log.toml").write_text(text)
    findings = {row.rule: row for row in read_log(path, mapping=tmp_path / "log.toml").findings}
    unused = findings["unused-columns"]
    assert (unused.rows, unused.of, unused.problem) == (2, 6, "columns: not used: note, page_title")


@pytest.mark.parametrize(
    ("name", "unit", "values"),
    [
        ("dwell_ms", 1, [500, 20_000]),
        ("reading_secs", 1000, [5, 20]),
        ("reading_time", 1000, [5, 20]),
        ("reading_time", 1, [5000, 20_000]),
        ("zeit_auf_seite", 1000, [5, 20]),
        ("Verweildauer (s)", 1000, [5, 20]),
    ],
)
def test_units_of_dwell_times(tmp_path: Path, name: str, unit: int, values: list[int]) -> None:
    rows = [
        {"time": iso(START + n), "query": f"red {n}", "shown": "d1|d2", "clicked": "d1", name: value}
        for n, value in enumerate(values)
    ]
    with pytest.warns(JudgedWarning, match="dwell in (milli)?seconds"):
        log = read_log(write_table(tmp_path / "log.csv", rows))
    assert log.event.to_arrow("dwell_ms")["dwell_ms"].to_pylist() == [unit * value for value in values]


def test_positions_by_index_begin_with_zero(tmp_path: Path) -> None:
    record = {"q": "red", "shown": ["a", "b"], "clicks": ["b", "a"], "dwell": [7, 9]}
    (tmp_path / "log.jsonl").write_text(json.dumps(record))
    mapping = """
[queries.columns]
query_id = "#row"
query = "q"
hit_ids = "shown"
[events]
each = "clicks"
[events.columns]
query_id = "#row"
action = { value = "click" }
object_id = "@"
dwell = { path = "dwell", at = "@index" }
"""
    (tmp_path / "log.toml").write_text("rank_base = 1" + mapping)
    events = read_log(tmp_path / "log.jsonl", mapping=tmp_path / "log.toml").event
    assert events.to_arrow("object_id", "rank", "dwell_ms").to_pylist() == [
        {"object_id": "b", "rank": 2, "dwell_ms": 7},
        {"object_id": "a", "rank": 1, "dwell_ms": 9},
    ]
    (tmp_path / "log.toml").write_text("rank_base = 1" + mapping + 'position = "@index"\n')
    with pytest.raises(InputError, match=r"@index\" counts from 0.*rank_base = 0"):
        read_log(tmp_path / "log.jsonl", mapping=tmp_path / "log.toml")


@pytest.mark.parametrize(
    ("results", "clicks", "columns"),
    [("|", "|", {}), ("|", ";", {}), (" ", "|", {}), (" ", ";", {"clicks": "opened", "dwell": "secs"})],
)
def test_few_searches_with_several_clicks_and_their_seconds(
    tmp_path: Path, results: str, clicks: str, columns: dict[str, str]
) -> None:
    pages = [(["d1", "d3"], [12, 40]), (["d5"], [7]), ([], []), (["d7"], [33]), (["d2"], [2])]
    shown = results.join(f"d{n}" for n in range(1, 9))
    lines = ["ts,uid,query,shown,opened,secs,device"]
    for number, (ids, seconds) in enumerate(pages):
        cells = [clicks.join(ids), clicks.join(map(str, seconds)), ("phone", "desktop")[number % 2]]
        lines.append(f"2026-01-05T10:0{number}:00Z,u{number % 2},red {number},{shown},{','.join(cells)}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings(), use_columns(columns):
        warnings.simplefilter("ignore")
        log = read_log(tmp_path / "log.csv")
    events = log.event.to_arrow("object_id", "dwell_ms").to_pylist()
    expected = {doc: 1000 * time for ids, times in pages for doc, time in zip(ids, times, strict=True)}
    assert {event["object_id"]: event["dwell_ms"] for event in events} == expected
