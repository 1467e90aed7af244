"""What was chosen goes along: from each page to every other, under the names that these know."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient

from judged.interface.pages.filters import shared_choices
from judged.interface.pages.workspace import open_workspace
from judged.web.app import make_app

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace

QRELS = {f"q{i}": {"d": 1, "n": 0} for i in range(12)}
RUNS = {name: dict.fromkeys(QRELS, lists) for name, lists in (("a", ["x", "d"]), ("b", ["d"]), ("c", ["n", "d"]))}
PAIR = {"measure": "AP", "baseline": "a", "run": "c", "where": "judged >= 1", "rel": "2"}
FROM = {
    "/leaderboard": "measures=AP,RR&baseline=a&run=c",
    "/compare": "measure=AP&first=a&second=c",
    "/topics": "measure=AP&runs=a&runs=c",
    "/topic": "topic=q1&measure=AP&first=a&second=c",
    "/matrix": "y=AP&baseline=a&run=c&x=R@5",
    "/slices": "measures=AP&baseline=a&run=c&by=judged",
}


@pytest.fixture(scope="module")
def opened() -> Workspace:
    return open_workspace(QRELS, RUNS)


@pytest.mark.parametrize("path", FROM)
def test_every_page_hands_on_what_was_chosen(path: str, opened: Workspace) -> None:
    client = TestClient(make_app(opened), base_url="http://127.0.0.1")
    page = client.get(f"{path}?{FROM[path]}&where=judged+>%3D+1&rel=2")
    assert page.status_code == 200
    nav = unescape(page.text.split("<nav", 1)[1].split("</nav>", 1)[0])
    queries_by_path = {urlsplit(link).path: urlsplit(link).query for link in re.findall(r'href="([^"]+)"', nav)}
    for target in ("/leaderboard", "/compare", "/topics", "/matrix", "/slices"):
        assert shared_choices(target, parse_qs(queries_by_path[target])) == PAIR, target
        assert client.get(f"{target}?{queries_by_path[target]}").status_code == 200, (
            target
        )  # each knows all that it is handed
    assert parse_qs(queries_by_path["/traces"]) == {"where": ["judged >= 1"], "rel": ["2"]}
    assert parse_qs(queries_by_path["/rag"]) == {"where": ["judged >= 1"]}  # it has no measure with a level
    assert queries_by_path["/learn"] == queries_by_path["/evaluator"] == ""


def test_what_was_refused_goes_nowhere(opened: Workspace) -> None:
    page = TestClient(make_app(opened), base_url="http://127.0.0.1").get("/compare?first=nobody")
    assert page.status_code == 400
    assert 'href="/leaderboard"' in page.text
