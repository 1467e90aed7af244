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
    assert set(FROM) - {"/topic"} < set(navigation(page.text))
    for target, query in navigation(page.text).items():
        assert shared_choices(target, parse_qs(query)) == PAIR, target
        assert (there := client.get(f"{target}?{query}")).status_code == 200, target
        # pages that do not use a choice keep it for their links
        assert shared_choices("/compare", parse_qs(navigation(there.text)["/compare"])) == PAIR, target


def navigation(page: str) -> dict[str, str]:
    """Return the query strings of the links of the navigation by path."""
    links = re.findall(r'href="([^"]+)"', unescape(page.split("<nav", 1)[1].split("</nav>", 1)[0]))
    return {urlsplit(link).path: urlsplit(link).query for link in links}


def test_what_was_refused_goes_nowhere(opened: Workspace) -> None:
    page = TestClient(make_app(opened), base_url="http://127.0.0.1").get("/compare?first=nobody")
    assert page.status_code == 400
    assert 'href="/leaderboard"' in page.text
