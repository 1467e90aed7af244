"""A name that turns the direction of text turns nothing beside it, in the sentences of answers, reports and pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from fastapi.testclient import TestClient

import judged
from judged.interface.pages.workspace import open_workspace
from judged.results.escaping import isolate_directions
from judged.web.app import make_app

TURNS = "\u202e"
SILENT = {"title", "option", "script", "style", "textarea"}
TOPICS = [f"q{TURNS}{at}" for at in range(12)]
QRELS = {topic: {f"d{TURNS}1": 2, f"d{TURNS}2": 0, f"d{TURNS}3": 1} for topic in TOPICS}
RUNS = {
    f"good{TURNS}doog": {topic: {f"d{TURNS}1": 3.0, f"d{TURNS}2": 2.0} for topic in TOPICS},
    f"bad{TURNS}dab": {topic: {f"d{TURNS}2": 3.0, f"d{TURNS}3": 2.0, f"d{TURNS}4": 1.0} for topic in TOPICS},
}


class Shown(HTMLParser):
    """Collects the texts that turn, by whether a ``bdi`` holds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.held: list[str] = []
        self.loose: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if TURNS in data and not SILENT & set(self.open):
            (self.held if "bdi" in self.open else self.loose).append(data)


def check(page: str) -> None:
    shown = Shown(page)
    assert shown.loose == []
    assert shown.held
    assert [text for text in shown.held if re.search(r"\s", text.strip())] == []


def test_only_the_name_is_held() -> None:
    made = isolate_directions(f"<p>The run a{TURNS}b, of (x{TURNS}y): 0.5 &lt; c{TURNS}d.</p>")
    held = [f"a{TURNS}b", f"x{TURNS}y", f"c{TURNS}d"]
    assert made == f"<p>The run <bdi>{held[0]}</bdi>, of (<bdi>{held[1]}</bdi>): 0.5 &lt; <bdi>{held[2]}</bdi>.</p>"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["compare", "disagree", "matrix", "diff", "report"])
def test_answers(name: str) -> None:
    runs = list(RUNS.values()) if name == "diff" else [RUNS]
    check(getattr(judged, name)(QRELS, *runs).html())


@pytest.mark.filterwarnings("ignore")
def test_pages_of_the_workbench() -> None:
    with TestClient(make_app(open_workspace(QRELS, RUNS)), base_url="http://127.0.0.1") as client:
        for path in ("/", "/topics", "/matrix", "/slices", "/compare", f"/topic?topic={TOPICS[0]}"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            check(answer.text)
