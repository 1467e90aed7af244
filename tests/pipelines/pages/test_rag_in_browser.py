"""Pages of answers as a person uses them: from where evidence is lost to one answer beside its context."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.interface.pages.workspace import open_workspace
from judged.pipelines.rag import Responses, explain, waterfall
from judged.web.app import make_app
from pipelines.rag.planted_losses import planted

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def answered() -> Any:
    """Two systems, of which the second one cites less; one sentence is hostile."""
    made = planted({"old": {"context": 0.2}, "new": {"context": 0.2, "cited": 0.6}}, topics=30)
    tables = {name: list(rows) for name, rows in made.responses.items()}
    tables["sentences"] = [
        {name: row[name] for name in ("query_id", "run_id", "sentence")} | {"text": HOSTILE}
        for row in tables["citations"]
    ]
    opened = open_workspace(made.qrels, made.runs, title="planted")
    return replace(opened, parts={**opened.parts, "responses": Responses.of(tables)})


@pytest.mark.parametrize("width", [390, 1280])
def test_from_the_step_to_one_answer(serve: Any, tab: Any, answered: Any, width: int) -> None:
    shown = tab(serve(answered) + "/", width)
    page = shown.page
    page.get_by_label("Workbench").get_by_role("link", name="Answers").click()
    with page.expect_navigation():
        page.get_by_label("Run behind the answers").select_option("last")
    expect(page.locator("main")).to_contain_text("work on “cited” first")
    shown.accessible()
    shown.fits()
    page.locator("summary", has_text=re.compile("^What was lost, and where")).click()
    page.get_by_role("link", name="q000", exact=True).first.click()
    expect(page.locator("h2").first).to_have_text("q000")
    expect(page.locator("main")).to_contain_text(HOSTILE)
    expect(page.locator("main")).to_contain_text("What it was given")
    shown.accessible()
    shown.fits()
    shown.clean()


def test_twins_say_what_functions_say(answered: Any) -> None:
    client = TestClient(make_app(answered))
    given = client.get("/api/v1/rag?run=last").json()
    assert (
        given
        == waterfall(answered.parts["responses"], answered.qrels, runs={"last": answered.judged("last").run}).to_dict()
    )
    one = client.get("/api/v1/rag/topic?topic=q003&system=new").json()
    assert one == explain(answered.parts["responses"], topic="q003", run="new", qrels=answered.qrels).to_dict()


@pytest.mark.parametrize("address", ["/rag?run=none", "/rag/topic?topic=none", "/rag/topic?system=none"])
def test_what_is_not_there_is_refused(answered: Any, address: str) -> None:
    client = TestClient(make_app(answered))
    assert client.get(address).status_code == client.get(f"/api/v1{address}").status_code == 400


def test_without_answers_the_page_says_how_to_open_them(answered: Any) -> None:
    client = TestClient(make_app(replace(answered, parts={})))
    assert "--rag RESPONSES" in client.get("/rag").text
    assert client.get("/api/v1/rag").status_code == 400
