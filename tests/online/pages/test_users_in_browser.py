"""Pages about A/B tests, watches, and changes in the browser, and their JSON equivalents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.data.sample import LOG
from judged.online import abtest, read_log
from judged.online.user_metrics import user_metrics
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


def open_page(page: Any, name: str, width: int) -> None:
    if width < 1024:
        page.get_by_role("button", name="Menu").click()
    page.get_by_label("Workbench").get_by_role("link", name=name, exact=True).click()
    expect(page.locator("h1")).to_have_text(name)


@pytest.mark.parametrize("width", [390, 1280])
def test_navigation_between_user_pages(serve: Any, tab: Any, workspace: Any, width: int) -> None:
    browser_tab = tab(serve(workspace) + "/", width)
    page = browser_tab.page
    for name in ("Metrics", "A/B test", "Monitoring", "Change"):
        open_page(page, name, width)
        expect(page.locator("#navigation [aria-current]")).to_have_text(name)
        expect(page.locator(".headline .chip")).to_be_visible()
        browser_tab.accessible()
        browser_tab.fits()
    browser_tab.clean()


def test_metrics_by_slice_and_by_day(serve: Any, tab: Any, workspace: Any) -> None:
    browser_tab = tab(serve(workspace) + "/users", 1280)
    page = browser_tab.page
    with page.expect_navigation():
        page.get_by_role("combobox", name="Slices").select_option("device")
    expect(page.locator("[data-table=by_slice] tbody tr")).to_have_count(4)
    page.get_by_role("link", name="Abandonment").click()
    expect(page.locator(".headline .figure")).to_contain_text("Abandonment")
    expect(page.locator("[data-table=by_slice] td.drawing svg")).to_have_count(4)
    browser_tab.accessible()
    browser_tab.clean()


def test_days_of_a_watched_series_have_different_positions(serve: Any, tab: Any, workspace: Any) -> None:
    page = tab(serve(workspace) + "/users/watch", 1280).page
    points = page.locator("svg .mark-symbol path")
    expect(points.first).to_be_visible()
    positions = {point.get_attribute("transform") for point in points.all()} - {None}
    assert len({position.split(",")[0] for position in positions}) > 25


def test_cards_of_a_change(serve: Any, tab: Any, workspace: Any) -> None:
    page = tab(serve(workspace) + "/change?first=bm25&second=tfidf", 1280).page
    cards = page.locator(".card")
    expect(cards.first).to_contain_text("bm25")
    chips = {card.locator("h3").inner_text(): card.locator(".chip").all_inner_texts() for card in cards.all()}
    assert chips["Is the candidate better?"] == ["▼ worse"]
    assert chips["Is the candidate better in the A/B test?"] == ["? keep running"]
    assert not any(
        list(chips.values())[-cards.locator("b", has_text="No data").count() :]
    )  # the last ones have no chip


def test_json_equals_the_functions(workspace: Any) -> None:
    client, log = TestClient(make_app(workspace)), read_log(LOG)
    assert client.get("/api/v1/users").json() == user_metrics(log).to_dict()
    sliced = client.get("/api/v1/users", params={"measure": "ExitRate", "by": "device"}).json()
    assert sliced == user_metrics(log, "ExitRate", by="device").to_dict()
    assert client.get("/api/v1/users/test").json() == abtest(log).to_dict()
    assert client.get("/api/v1/users/watch").json() == watch(workspace.parts["watch"]).to_dict()
    change = client.get("/api/v1/change", params={"first": "bm25", "second": "tfidf"}).json()
    assert (change["baseline"], change["candidate"], change["decision"]) == ("bm25", "tfidf", "undecided")


def test_missing_and_invalid_inputs(sample: Any) -> None:
    client = TestClient(make_app(replace(sample, parts={})))
    assert "--log LOG" in client.get("/users").text
    assert "--log LOG" in client.get("/users/test").text
    assert "--watch CONFIG" in client.get("/users/watch").text
    assert {client.get(f"/api/v1/users{path}").status_code for path in ("", "/test", "/watch")} == {400}
    for query in ("measure=Revenue", "measure=none", "by=none"):
        assert TestClient(make_app(sample)).get(f"/users?{query}").status_code == 400
    assert client.get("/change", params={"first": "bm25", "second": "bm25"}).status_code == 400
    assert client.get("/api/v1/change", params={"first": "none"}).status_code == 400
    client = TestClient(make_app(replace(sample, parts={"watch": "none.toml"})))
    assert client.get("/users/watch").status_code == 400
