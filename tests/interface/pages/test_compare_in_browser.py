from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

HERE = "/compare?first=bm25&second=rrf"


def query_of(address: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(address).query)


def wait_for_charts(view: Any) -> Any:
    view.page.wait_for_selector("html[data-charts-rendered]")
    return view.page


def bars(page: Any) -> Any:
    return page.locator("#chart-differences .mark-rect path")


def points(page: Any) -> Any:
    return page.locator("#chart-scores .mark-symbol path")


def first_topics(page: Any, most: int = 3) -> list[str]:
    return page.locator("table.topics tbody th").all_inner_texts()[:most]


def test_visible_content(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(serve(sample) + HERE)
    page = wait_for_charts(view)
    assert page.locator(".headline .sentence").inner_text().startswith("No significant difference between ")
    expect(bars(page)).to_have_count(48)
    expect(points(page)).to_have_count(48)
    assert page.locator("#measures tr.selected").inner_text().startswith("nDCG@10\t0.4240\t0.4257\t+0.0017\t")
    expect(page.locator("table.topics tbody tr")).to_have_count(48)
    assert first_topics(page) == ["t46", "t29", "t30"]
    view.accessible()
    view.fits()
    view.clean()


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1280, "light"), (2560, "dark")])
def test_on_any_screen(serve: Any, tab: Any, sample: Any, width: int, scheme: str) -> None:
    view = tab(f"{serve(sample)}{HERE}&by=relevant_band", width=width, color_scheme=scheme)
    page = wait_for_charts(view)
    expect(bars(page)).to_have_count(48)
    room = page.locator("#chart-differences").evaluate("figure => figure.clientWidth")
    assert page.locator("#chart-differences .chart svg").evaluate("svg => svg.clientWidth") <= room
    view.accessible()
    view.fits()
    view.clean()


@pytest.mark.parametrize(("chart", "topic"), [("differences", "t46"), ("scores", "t46")])
def test_a_click_on_a_mark_opens_its_topic(serve: Any, tab: Any, sample: Any, chart: str, topic: str) -> None:
    view = tab(serve(sample) + HERE)
    page = wait_for_charts(view)
    marks = bars(page) if chart == "differences" else points(page)
    with page.expect_request(lambda request: "/topic?" in request.url) as request_info:
        marks.first.click(force=True)
    query = query_of(request_info.value.url)
    assert query == {"topic": [topic], "first": ["bm25"], "second": ["rrf"], "measure": ["nDCG@10"]}


def test_a_bar_tells_its_query(serve: Any, tab: Any, sample: Any) -> None:
    page = wait_for_charts(tab(serve(sample) + HERE))
    bars(page).first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    tooltip = page.locator("#vg-tooltip-element").inner_text()
    assert "recursion too deep" in tooltip
    assert "+0.3587" in tooltip


def test_rows_link_to_topics(serve: Any, tab: Any, sample: Any) -> None:
    page = wait_for_charts(tab(serve(sample) + HERE))
    address = page.locator("table.topics tbody th a").first.get_attribute("href")
    assert address.startswith("/topic?")
    assert query_of(address) == {"topic": ["t46"], "first": ["bm25"], "second": ["rrf"], "measure": ["nDCG@10"]}


def test_sorting_filtering_and_searching_by_keyboard(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(serve(sample) + HERE)
    page = wait_for_charts(view)
    page.get_by_role("link", name="Difference", exact=True).focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert first_topics(page) == ["t10", "t20", "t17"]
    assert page.locator("table.topics th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.get_by_role("link", name="rrf better").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("table.topics tbody tr")).to_have_count(18)
    assert page.locator(".kinds a[aria-current]").inner_text() == "rrf better 18"
    page.locator("#q").focus()
    page.keyboard.type("FILE")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert query_of(page.url)["sort"] == ["difference"]
    rows = page.locator("table.topics tbody tr").all_inner_texts()
    assert rows
    assert all("file" in row for row in rows)
    view.clean()


def test_choosing_by_keyboard(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(serve(sample) + HERE)
    page = wait_for_charts(view)
    page.get_by_label("Measure", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("AP")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator(".headline .figure").inner_text().startswith(("+", "\N{MINUS SIGN}"))
    assert "AP, " in page.locator(".headline .figure").inner_text()
    with page.expect_navigation():
        page.get_by_role("link", name="R@100").press("Enter")
    assert page.get_by_label("Measure", exact=True).input_value() == "R@100"
    with page.expect_navigation():
        page.get_by_role("link", name="Swap").press("Enter")
    query = query_of(page.url)
    assert (query["first"], query["second"], query["measure"]) == (["rrf"], ["bm25"], ["R@100"])
    view.clean()


def test_invalid_values_stay_in_their_field(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}{HERE}&measure=nDGC@10")
    page = view.page
    field = page.get_by_label("Measure", exact=True)
    assert field.input_value() == "nDGC@10"
    assert field.get_attribute("aria-invalid") == "true"
    assert "nDGC" in page.locator("#problem").inner_text()
    view.accessible()
    view.fits()


def test_by_slice(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(serve(sample) + HERE)
    page = wait_for_charts(view)
    page.locator("#slices summary").click()
    with page.expect_navigation():
        page.get_by_label("Attribute").select_option("relevant_band")
    names = page.locator("#slices tbody th").all_inner_texts()
    assert names[0] == "all topics"
    assert "relevant_band=6-20" in names
    with page.expect_navigation():
        page.get_by_role("link", name="relevant_band=6-20").click()
    assert query_of(page.url)["where"] == ["relevant_band == '6-20'"]
    expect(page.locator("table.topics tbody tr")).to_have_count(23)
    view.clean()


def test_only_charts_are_missing_without_scripts(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(serve(sample) + HERE, java_script_enabled=False)
    page = view.page
    expect(page.locator("table.topics tbody tr")).to_have_count(48)
    page.get_by_role("link", name="rrf worse").click()
    expect(page.locator("table.topics tbody tr")).to_have_count(20)
