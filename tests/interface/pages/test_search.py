"""One search over topics, runs, measures and pages."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from judged.interface.pages.answers import NAVIGATION
from judged.interface.pages.search import MOST, AskedSearch, search
from judged.interface.pages.workspace import open_workspace
from judged.web.app import make_app


def first(workspace: Any, typed: str) -> tuple[str, str]:
    row = search(workspace, AskedSearch(q=typed)).table("found").records()[0]
    return row["kind"], row["name"]


@pytest.mark.parametrize(
    ("typed", "found"),
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
def test_the_first_is_what_was_meant(sample: Any, typed: str, found: tuple[str, str]) -> None:
    assert first(sample, typed) == found


def test_every_address_works_and_page_and_twin_say_the_same(sample: Any) -> None:
    tried = TestClient(make_app(sample))
    for typed in ("", "list", "nDCG", "nothing is called so"):
        rows = tried.get("/api/v1/search", params={"q": typed}).json()["found"]
        shown = tried.get("/search", params={"q": typed}).text
        for row in rows:
            assert row["address"].replace("&", "&amp;") in shown
            assert tried.get(row["address"]).status_code == 200, row
    assert set(NAVIGATION) >= {row["address"] for row in rows}


def test_many_topics_leave_room_for_the_rest() -> None:
    many = {f"a{at}": {"d": 1} for at in range(500)}
    rows = search(open_workspace(many, {}), AskedSearch(q="a")).table("found").records()
    kinds = [row["kind"] for row in rows]
    assert kinds.count("topic") == MOST
    assert {"page", "measure"} <= {*kinds}
