"""Pages about clicks in the browser, and their JSON equivalents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.data.sample import LOG
from judged.online import clicks, read_log
from judged.web.app import make_app


@pytest.mark.parametrize("width", [390, 1280])
def test_navigation_between_click_pages(serve: Any, tab: Any, sample: Any, width: int) -> None:
    browser_tab = tab(serve(sample) + "/", width)
    page = browser_tab.page
    if width < 1024:
        page.get_by_role("button", name="Menu").click()
    page.get_by_label("Workbench").get_by_role("link", name="Clicks").click()
    for name in ("Position bias", "Clicks and judgments"):
        expect(page.locator("table").first).to_be_visible()
        browser_tab.accessible()
        browser_tab.fits()
        page.get_by_role("link", name=name).click()
        expect(page.locator("h1")).to_have_text(name)
    expect(page.locator("table").first).to_be_visible()
    browser_tab.accessible()
    browser_tab.fits()
    browser_tab.clean()


def test_json_equals_the_functions(sample: Any) -> None:
    client, log = TestClient(make_app(sample)), read_log(LOG)
    assert client.get("/api/v1/clicks").json() == clicks.compare_models(log).to_dict()
    assert client.get("/api/v1/clicks/ranks").json() == clicks.propensities(log).to_dict()


def test_pages_without_a_log(sample: Any, tmp_path: Any) -> None:
    client = TestClient(make_app(replace(sample, parts={})))
    assert "--log LOG" in client.get("/clicks").text
    assert client.get("/api/v1/clicks/people").status_code == 400
    (tmp_path / "empty.jsonl").write_text("")
    client = TestClient(make_app(replace(sample, parts={"log": (str(tmp_path / "empty.jsonl"),)})))
    assert client.get("/clicks/ranks").status_code == client.get("/api/v1/clicks/ranks").status_code == 400
