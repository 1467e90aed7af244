"""One search over topics, runs, measures and pages."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from judged.interface.pages.answers import NAVIGATION
from judged.interface.pages.search import MAX_RESULTS, SearchQuery, search
from judged.interface.pages.workspace import open_workspace
from judged.web.app import make_app


def first(workspace: Any, typed: str) -> tuple[str, str]:
    row = search(workspace, SearchQuery(q=typed)).table("matches").records()[0]
    return row["kind"], row["name"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ndcg_cut_10", ("measure", "nDCG")),
        ("MRR", ("measure", "RR")),
        ("map", ("measure", "AP")),
        ("success_5", ("measure", "Success")),
        ("t07", ("topic", "t07")),
        ("Elements  COMMON", ("topic", "t01")),
        ("bm25", ("run", "bm25")),
        ("rrf", ("run", "rrf")),
        ("leader", ("page", "Leaderboard")),
    ],
)
def test_the_first_result_is_the_expected_one(sample: Any, typed: str, expected: tuple[str, str]) -> None:
    assert first(sample, typed) == expected


def test_all_results_link_to_pages_and_page_and_json_agree(sample: Any) -> None:
    http = TestClient(make_app(sample))
    for typed in ("", "list", "nDCG", "nothing is called so"):
        rows = http.get("/api/v1/search", params={"q": typed}).json()["matches"]
        page_text = http.get("/search", params={"q": typed}).text
        for row in rows:
            assert row["address"].replace("&", "&amp;") in page_text
            assert http.get(row["address"]).status_code == 200, row
    assert set(NAVIGATION) >= {row["address"] for row in rows}


def test_many_topics_leave_room_for_the_rest() -> None:
    many = {f"a{i}": {"d": 1} for i in range(500)}
    rows = search(open_workspace(many, {}), SearchQuery(q="a")).table("matches").records()
    kinds = [row["kind"] for row in rows]
    assert kinds.count("topic") == MAX_RESULTS
    assert {"page", "measure"} <= {*kinds}
