"""Logs with layouts of their own, read without a mapping: metrics agree with a recount of the same searches in pandas."""

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
    generator = random.Random(most_clicks)
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
             "query": f"red {generator.choice(['shoes', 'hat', 'coat'])} {number}", "results": results, "clicks": clicks,
             "device": generator.choice(["phone", "desktop"]), "cart": bool(clicks) and generator.random() < 0.4,
             "purchase": bool(clicks) and generator.random() < 0.3}
        )  # fmt: skip
    return rows


def recount(rows: list[Search]) -> dict[str, float]:
    """Return twelve metrics."""
    pages = pd.DataFrame(rows)
    clicks = pd.DataFrame([{"page": row["page"], **click} for row in rows for click in row["clicks"]])
    answered = pages[pages["results"].str.len() > 0]
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
        {"search_id": row["page"], "user_id": row["user"], "session_id": row["session"], "clicked_at": iso(click["time"]),
         "query": row["query"], "doc_id": click["doc"], "position": click["rank"], "reading_secs": click["dwell"]}
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
         "clicks": [{"doc": click["doc"], "rank": click["rank"], "time": iso(click["time"]), "dwell_sec": click["dwell"]}
                    for click in row["clicks"]],
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
