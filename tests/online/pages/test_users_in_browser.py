"""Pages about A/B tests, watches, and changes in the browser, and their JSON equivalents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.data.sample import LOG
from judged.online import abtest, read_log
from judged.online.watch import watch
from judged.web.app import make_app


@pytest.fixture(scope="module")
def workspace(sample: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("watch")
    days = "".join(f"2026-03-{1 + day:02},{10 + day % 3 + 20 * (day > 24)},100\n" for day in range(31))
    (folder / "review.csv").write_text(f"date,numerator,denominator\n{days}")
    config = "[watch]\nbaseline_from = 2026-03-01\nbaseline_to = 2026-03-20\n[[series]]\nname = 'wrong'\n"
    (folder / "watch.toml").write_text(config + "table = 'review.csv'\nbetter = 'less'\n")
    return replace(sample, parts={**sample.parts, "watch": str(folder / "watch.toml")})


@pytest.mark.parametrize("width", [390, 1280])
def test_navigation_between_user_pages(serve: Any, tab: Any, workspace: Any, width: int) -> None:
    browser_tab = tab(serve(workspace) + "/", width)
    page = browser_tab.page
    bar = page.get_by_label("Workbench")
    bar.get_by_role("link", name="Users").click()
    expect(page.locator("table").first).to_be_visible()
    browser_tab.accessible()
    browser_tab.fits()
    page.get_by_role("link", name="Production monitoring").click()
    expect(page.get_by_text("wrong has had an alarm since 2026-03-26")).to_be_visible()
    points = page.locator("svg .mark-symbol path")
    expect(points.first).to_be_visible()
    x_positions = {
        point.get_attribute("transform").split(",")[0] for point in points.all() if point.get_attribute("transform")
    }
    assert len(x_positions) > 25  # days have different positions
    browser_tab.accessible()
    browser_tab.fits()
    bar.get_by_role("link", name="Change").click()
    for label, run in (("Candidate", "tfidf"), ("Baseline", "bm25")):
        with page.expect_navigation():
            page.get_by_label(label).select_option(run)
    expect(page.get_by_text("Is the candidate better? [bad] bm25 is better than tfidf")).to_be_visible()
    expect(page.get_by_text("Is the candidate better in the A/B test? [undecided] tfidf: keep running")).to_be_visible()
    browser_tab.accessible()
    browser_tab.fits()
    browser_tab.clean()


def test_json_equals_the_functions(workspace: Any) -> None:
    client = TestClient(make_app(workspace))
    assert client.get("/api/v1/users").json() == abtest(read_log(LOG)).to_dict()
    assert client.get("/api/v1/users/watch").json() == watch(workspace.parts["watch"]).to_dict()
    change = client.get("/api/v1/change", params={"first": "bm25", "second": "tfidf"}).json()
    assert (change["baseline"], change["candidate"], change["decision"]) == ("bm25", "tfidf", "undecided")


def test_missing_and_invalid_inputs(sample: Any) -> None:
    client = TestClient(make_app(replace(sample, parts={})))
    assert "--log LOG" in client.get("/users").text
    assert "--watch CONFIG" in client.get("/users/watch").text
    assert client.get("/api/v1/users").status_code == client.get("/api/v1/users/watch").status_code == 400
    assert client.get("/change", params={"first": "bm25", "second": "bm25"}).status_code == 400
    assert client.get("/api/v1/change", params={"first": "none"}).status_code == 400
    client = TestClient(make_app(replace(sample, parts={"watch": "none.toml"})))
    assert client.get("/users/watch").status_code == 400
