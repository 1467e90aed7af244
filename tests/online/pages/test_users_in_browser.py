"""Pages of A/B tests, the watch and changes as a person uses them, and their twins."""

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
def opened(sample: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("watch")
    days = "".join(f"2026-03-{1 + at:02},{10 + at % 3 + 20 * (at > 24)},100\n" for at in range(31))
    (folder / "review.csv").write_text(f"date,numerator,denominator\n{days}")
    watched = "[watch]\nbaseline_from = 2026-03-01\nbaseline_to = 2026-03-20\n[[series]]\nname = 'wrong'\n"
    (folder / "watch.toml").write_text(watched + "table = 'review.csv'\nbetter = 'less'\n")
    return replace(sample, parts={**sample.parts, "watch": str(folder / "watch.toml")})


@pytest.mark.parametrize("width", [390, 1280])
def test_from_users_to_the_watch_and_to_a_change(serve: Any, tab: Any, opened: Any, width: int) -> None:
    shown = tab(serve(opened) + "/", width)
    page = shown.page
    bar = page.get_by_label("Workbench")
    bar.get_by_role("link", name="Users").click()
    expect(page.locator("table").first).to_be_visible()
    shown.accessible()
    shown.fits()
    page.get_by_role("link", name="Watch over production").click()
    expect(page.get_by_text("wrong is off since 2026-03-26")).to_be_visible()
    points = page.locator("svg .mark-symbol path")
    expect(points.first).to_be_visible()
    across = {
        point.get_attribute("transform").split(",")[0] for point in points.all() if point.get_attribute("transform")
    }
    assert len(across) > 25  # days stand apart
    shown.accessible()
    shown.fits()
    bar.get_by_role("link", name="Change").click()
    for label, run in (("Candidate", "tfidf"), ("Baseline", "bm25")):
        with page.expect_navigation():
            page.get_by_label(label).select_option(run)
    expect(page.get_by_text("Is it better? bm25 is better than tfidf")).to_be_visible()
    expect(page.get_by_text("Do users fare better? tfidf: keep running")).to_be_visible()
    shown.accessible()
    shown.fits()
    shown.clean()


def test_twins_say_what_functions_say(opened: Any) -> None:
    client = TestClient(make_app(opened))
    assert client.get("/api/v1/users").json() == abtest(read_log(LOG)).to_dict()
    assert client.get("/api/v1/users/watch").json() == watch(opened.parts["watch"]).to_dict()
    made = client.get("/api/v1/change", params={"first": "bm25", "second": "tfidf"}).json()
    assert (made["baseline"], made["candidate"], made["decision"]) == ("bm25", "tfidf", "undecided")


def test_what_is_not_open_says_how_to_open_it_and_what_is_wrong_is_said(sample: Any) -> None:
    client = TestClient(make_app(replace(sample, parts={})))
    assert "--log LOG" in client.get("/users").text
    assert "--watch CONFIG" in client.get("/users/watch").text
    assert client.get("/api/v1/users").status_code == client.get("/api/v1/users/watch").status_code == 400
    assert client.get("/change", params={"first": "bm25", "second": "bm25"}).status_code == 400
    assert client.get("/api/v1/change", params={"first": "none"}).status_code == 400
    client = TestClient(make_app(replace(sample, parts={"watch": "none.toml"})))
    assert client.get("/users/watch").status_code == 400
