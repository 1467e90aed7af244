"""Matrix and slices in a browser: a rectangle drawn by mouse, fields by keyboard, links of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.pages.workspace import Workspace

SIDES = ("x0", "x1", "y0", "y1")


def wait_for_charts(view: Any) -> Any:
    view.page.wait_for_selector("html[data-charts-rendered]")
    return view.page


def plot(page: Any) -> tuple[float, float, float, float]:
    """Return the position of the plot in the window: left, top, width, height."""
    place = page.locator('[data-chart="run"]')
    place.scroll_into_view_if_needed()
    box = place.locator(".mark-group.root .background").first.bounding_box()
    return box["x"], box["y"], box["width"], box["height"]


def brush(page: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Draw a rectangle, by shares of the plot from its lower left corner."""
    left, top, width, height = plot(page)
    page.mouse.move(left + x[0] * width, top + (1 - y[0]) * height)
    page.mouse.down()
    page.mouse.move(left + x[1] * width, top + (1 - y[1]) * height, steps=4)
    with page.expect_response(lambda answer: "/matrix?" in answer.url):
        page.mouse.up()
    page.locator("#selected:not([aria-busy])").wait_for()


def shown(page: Any) -> list[str]:
    return sorted(page.locator("#selected tbody th").all_inner_texts())


def inside(sample: Workspace, run: str, box: list[float]) -> list[str]:
    """Select by hand what lies in a rectangle."""
    scores = sample.scores(["R@100", "nDCG@10"], [run])
    x, y = scores.values[0]
    mask = (x >= box[0]) & (x <= box[1]) & (y >= box[2]) & (y <= box[3])
    return sorted(np.array(scores.query_ids)[mask].tolist())


def box_of(address: str) -> list[float]:
    query = parse_qs(urlsplit(address).query)
    return [float(query[name][0]) for name in SIDES]


def test_a_rectangle_selects_the_topics_in_it(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace
) -> None:
    view = tab(f"{serve(sample)}/matrix?run=rrf")
    page = wait_for_charts(view)
    brush(page, (0.1, 0.62), (0.13, 0.71))
    box = box_of(page.url)
    assert box == pytest.approx([0.1, 0.62, 0.13, 0.71], abs=0.005)
    expected = inside(sample, "rrf", box)
    assert shown(page) == expected
    assert 5 < len(expected) < 25
    count = page.inner_text("#count")
    assert count.startswith(f"{len(expected)} topics of 48 selected")
    assert [float(page.input_value(f"#box [name={name}]")) for name in SIDES] == box
    assert page.get_attribute("#json-link", "href").endswith(urlsplit(page.url).query)
    page.reload()
    wait_for_charts(view)
    assert (shown(page), page.inner_text("#count")) == (expected, count)
    rectangle = page.locator('[data-chart="run"] .brush_brush path, [data-chart="run"] .mark-rect.brush_brush').first
    left, _, width, _ = plot(page)
    box_of_rectangle = rectangle.bounding_box()
    assert [(box_of_rectangle["x"] - left) / width, box_of_rectangle["width"] / width] == pytest.approx(
        [0.1, 0.52], abs=0.02
    )
    view.clean()


def test_back_and_an_empty_click(serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace) -> None:
    view = tab(f"{serve(sample)}/matrix?run=rrf&baseline=bm25")
    page = wait_for_charts(view)
    brush(page, (0.3, 0.9), (0.2, 0.9))
    selected = shown(page)
    left, top, width, height = plot(page)
    with page.expect_response(lambda answer: "/matrix?" in answer.url):
        page.mouse.click(left + 0.02 * width, top + 0.5 * height)
    page.locator('#count:has-text("All 48 topics")').wait_for()
    assert "x0" not in page.url
    with page.expect_response(lambda answer: "/matrix?" in answer.url):
        page.go_back()
    page.locator('#count:has-text("selected")').wait_for()
    assert shown(page) == selected == inside(sample, "rrf", box_of(page.url))
    view.clean()


def test_fields_and_quadrants_by_keyboard(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace
) -> None:
    view = tab(f"{serve(sample)}/matrix?run=bm25")
    page = wait_for_charts(view)
    page.focus("#box [name=x0]")
    for value in ("0.2", "0.7", "0.1", "0.6"):
        page.keyboard.type(value)
        page.keyboard.press("Tab")
    with page.expect_response(lambda answer: "/matrix?" in answer.url):
        page.keyboard.press("Enter")
    page.locator('#count:has-text("selected")').wait_for()
    assert box_of(page.url) == [0.2, 0.7, 0.1, 0.6]
    assert shown(page) == inside(sample, "bm25", [0.2, 0.7, 0.1, 0.6])
    assert page.evaluate("document.activeElement.id") == "selected-title"
    page.focus('.quadrants a:text-is("ranking problem")')
    page.keyboard.press("Enter")
    page.locator('#count:has-text("ranking problem")').wait_for()
    assert len(shown(page)) == int(page.inner_text('.quadrants li:has-text("ranking problem") span')) == 8
    assert "x0" not in page.url
    view.clean()


def test_without_scripts_the_fields_select(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace
) -> None:
    page = tab(f"{serve(sample)}/matrix?run=bm25&by=query_class", java_script_enabled=False).page
    page.fill("#box [name=x0]", "0.9")
    with page.expect_navigation():
        page.click("#box button")
    assert shown(page) == inside(sample, "bm25", [0.9, 9, -9, 9])
    with page.expect_navigation():
        page.click('table.slices a:text-is("query_class=how-to")')
    assert page.inner_text("#count").startswith("All 18 topics")


def test_a_click_on_a_dot_and_on_a_slice(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace
) -> None:
    view = tab(f"{serve(sample)}/matrix?run=bm25&by=query_class")
    page = wait_for_charts(view)
    scores = sample.scores(["R@100", "nDCG@10"], ["bm25"])
    x, y = scores.values[0][:, scores.query_ids.index("t30")]  # alone at its place
    left, top, width, height = plot(page)
    page.mouse.click(left + x * width, top + (1 - y) * height)
    page.wait_for_url("**/topic?**")
    assert parse_qs(urlsplit(page.url).query) == {"first": ["bm25"], "measure": ["nDCG@10"], "topic": ["t30"]}
    page.go_back()
    wait_for_charts(view)
    left, top, width, height = plot(page)
    with page.expect_response(lambda answer: "/matrix?" in answer.url):
        page.mouse.click(left + width - 1, top + 1)  # three topics have 1 on both axes
    page.locator('#count:has-text("selected")').wait_for()
    assert shown(page) == inside(sample, "bm25", [1, 1, 1, 1])
    assert len(shown(page)) == 3
    data = page.request.get(f"{serve(sample)}/api/v1/matrix?run=bm25&by=query_class").json()
    line = next(row for row in data["points"] if row["slice"] == "query_class=known-item")
    left, top, width, height = plot(page)
    page.mouse.click(left + line["x"] * width, top + (1 - line["y"]) * height)
    page.wait_for_url("**where=**")
    assert page.inner_text("#count").startswith("All 14 topics")
    view.clean()


def test_slice_links_filter_and_invalid_expressions_are_reported(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace
) -> None:
    view = tab(f"{serve(sample)}/slices?run=bm25")
    page = wait_for_charts(view)
    page.click('nav.chips a:text-is("relevant_band")')
    wait_for_charts(view)
    expect(page.locator("table.slices tbody tr:not(.average)")).to_have_count(5)
    topics = page.locator("table.slices tbody tr").nth(1).locator("td").first.inner_text().split("\n")[0]
    page.locator("table.slices tbody tr").nth(1).get_by_text("matrix").click()
    assert page.inner_text("#count").startswith(f"All {topics.split()[0]} topics")
    view.clean()
    page.goto(f"{serve(sample)}/slices")
    page.fill("#where", "kind = 3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#where-problem")
    assert "is not an expression" in page.inner_text("#where-problem")
    assert page.input_value("#where") == "kind = 3"


@pytest.mark.parametrize(("width", "theme"), [(375, "dark"), (1280, "light")])
def test_both_pages_fit_and_can_be_read(
    serve: Callable[[Any], str], tab: Callable[..., Any], sample: Workspace, width: int, theme: str
) -> None:
    pages = ("/matrix?by=query_class&baseline=rrf&x0=0.2&x1=0.7", "/slices?by=query_class&run=rrf&baseline=bm25")
    for address in pages:
        view = tab(serve(sample) + address, width=width, color_scheme=theme)
        wait_for_charts(view)
        view.fits()
        view.accessible()
        view.clean()
