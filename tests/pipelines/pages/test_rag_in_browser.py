"""Pages of answers in a browser: from lost evidence to one answer with its context."""

from __future__ import annotations

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
def workspace_with_answers() -> Any:
    """Two systems, the second with fewer citations; one sentence contains HTML."""
    losses = planted({"old": {"context": 0.2}, "new": {"context": 0.2, "cited": 0.6}}, topics=30)
    tables = {name: list(rows) for name, rows in losses.responses.items()}
    tables["sentences"] = [
        {name: row[name] for name in ("query_id", "run_id", "sentence")} | {"text": HOSTILE}
        for row in tables["citations"]
    ]
    workspace = open_workspace(losses.qrels, losses.runs, title="planted")
    return replace(workspace, parts={**workspace.parts, "responses": Responses.of(tables)})


@pytest.mark.parametrize("width", [390, 1280])
def test_lost_evidence_links_to_one_answer(serve: Any, tab: Any, workspace_with_answers: Any, width: int) -> None:
    browser_tab = tab(serve(workspace_with_answers) + "/", width)
    page = browser_tab.page
    if width < 1024:
        page.get_by_role("button", name="Menu").click()
    page.get_by_label("Workbench").get_by_role("link", name="Answers").click()
    if width < 1024:
        page.locator("details.settings > summary").click()
    with page.expect_navigation():
        page.get_by_label("Run of the context").select_option("last")
    expect(page.locator("main")).to_contain_text("Work on “cited” first")
    browser_tab.accessible()
    browser_tab.fits()
    page.get_by_role("link", name="q000", exact=True).first.click()
    expect(page.locator("h1")).to_have_text("q000")
    expect(page.locator("main")).to_contain_text(HOSTILE)
    expect(page.locator("main")).to_contain_text("Context")
    browser_tab.accessible()
    browser_tab.fits()
    browser_tab.clean()


def test_json_agrees_with_python(workspace_with_answers: Any) -> None:
    client = TestClient(make_app(workspace_with_answers))
    waterfall_json = client.get("/api/v1/rag?run=last").json()
    assert (
        waterfall_json
        == waterfall(
            workspace_with_answers.parts["responses"],
            workspace_with_answers.qrels,
            runs={"last": workspace_with_answers.judged("last").run},
        ).to_dict()
    )
    answer_json = client.get("/api/v1/rag/topic?topic=q003&system=new").json()
    assert (
        answer_json
        == explain(
            workspace_with_answers.parts["responses"], topic="q003", run="new", qrels=workspace_with_answers.qrels
        ).to_dict()
    )


@pytest.mark.parametrize("path", ["/rag?run=none", "/rag/topic?topic=none", "/rag/topic?system=none"])
def test_unknown_names_are_rejected(workspace_with_answers: Any, path: str) -> None:
    client = TestClient(make_app(workspace_with_answers))
    assert client.get(path).status_code == client.get(f"/api/v1{path}").status_code == 400


def test_the_page_without_answers_explains_how_to_open_them(workspace_with_answers: Any) -> None:
    client = TestClient(make_app(replace(workspace_with_answers, parts={})))
    assert "--rag RESPONSES" in client.get("/rag").text
    assert client.get("/api/v1/rag").status_code == 400
