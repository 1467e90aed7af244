"""Work in the page, by keyboard: the palette, keys, tables, charts, forms, notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("opening", ["/", "Control+k"])
def test_a_measure_of_another_tool_is_three_keys_away(serve: Any, sample: Any, tab: Any, opening: str) -> None:
    view = tab(f"{serve(sample)}/open")
    page = view.page
    page.keyboard.press(opening)
    expect(page.locator("#palette input")).to_be_focused()
    page.keyboard.type("ndcg_cut_10")
    expect(page.locator("#search-results [aria-selected=true] b")).to_have_text("nDCG")
    view.accessible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn/nDCG")
    page.keyboard.press("/")
    page.keyboard.type("bm25")
    expect(page.locator("#search-results li").nth(1)).to_contain_text("bm25_")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # round to the last one
    expect(page.locator("#search-results li").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    view.clean()


def test_keys_are_shown_and_are_no_keys_where_somebody_types(serve: Any, sample: Any, tab: Any) -> None:
    view = tab(f"{serve(sample)}/evaluator")
    page = view.page
    page.keyboard.press("?")
    expect(page.locator("#keyboard-help")).to_contain_text("grade the row")
    expect(page.locator("#keyboard-help")).to_contain_text("find a topic")
    page.keyboard.press("Escape")
    expect(page.locator("#keyboard-help")).to_have_count(0)
    page.goto(f"{serve(sample)}/topics")
    page.focus("input[name=q]")
    page.keyboard.type("/?")
    assert page.input_value("input[name=q]") == "/?"
    view.clean()


def test_without_scripts_the_search_is_a_page(serve: Any, sample: Any, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{serve(sample)}/topics")
    page.click("#find")
    page.fill("main input[name=q]", "mrr")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="RR", exact=True).click()
    page.wait_for_url("**/learn/RR")
    context.close()


def test_a_table_is_sorted_filtered_and_saved(serve: Any, sample: Any, tab: Any) -> None:
    view = tab(f"{serve(sample)}/traces")
    page = view.page
    topics = page.locator("[data-table=topics]")
    head = topics.get_by_role("button", name="nDCG@10")
    head.press("Enter")
    expect(topics.locator("tbody tr").first).to_contain_text("t06")
    head.press("Enter")
    expect(topics.locator("tbody tr").first).to_contain_text("0.0000")
    assert topics.locator("th[aria-sort=ascending]").inner_text().startswith("nDCG@10")
    topics.get_by_role("button", name="topic").press("Enter")
    expect(topics.locator("tbody tr").first).to_contain_text("t01")
    page.locator("[data-table=topics] + .save-menu summary").press("Enter")
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").and_(page.locator("[href*='.topics.']")).press("Enter")
    head, *rows = Path(got.value.path()).read_text(encoding="utf-8").splitlines()
    assert head.startswith("query_id,score,best,")
    assert len(rows) == len(sample.query_ids)
    view.accessible()
    page.get_by_role("searchbox", name="Filter").first.fill("t07")
    expect(page.locator(".filter [role=status]").first).to_contain_text("1 of ")
    view.clean()


@pytest.mark.parametrize(("form", "begins"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_a_chart_is_saved(serve: Any, sample: Any, tab: Any, form: str, begins: bytes) -> None:
    view = tab(f"{serve(sample)}/leaderboard?curve=nDCG")
    page = view.page
    page.locator(".save-menu.picture summary").first.click()
    with page.expect_download() as got:
        page.get_by_role("button", name=form).first.click()
    assert Path(got.value.path()).read_bytes().startswith(begins)
    view.clean()


def test_a_choice_applies_at_once_and_the_focus_stays(serve: Any, sample: Any, tab: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard")
    page = view.page
    page.select_option("#baseline", "rrf")
    page.wait_for_url("**baseline=rrf**")
    expect(page.locator("#baseline")).to_be_focused()
    page.focus("#where")
    expect(page.locator("#conditions option").first).to_be_attached()
    page.keyboard.type("words > 3 and ")
    offered = page.eval_on_selector_all("#conditions option", "all => all.map((one) => one.value)")
    assert "words > 3 and query_class == 'explore'" in offered
    view.clean()


def test_a_note_to_self_is_there_again_and_can_be_taken_along(serve: Any, sample: Any, tab: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t02")
    page = view.page
    page.locator("#private-note summary").press("Enter")
    page.get_by_label("Private note on t02").fill("no judged document <b>fits</b>")
    page.reload()
    expect(page.get_by_label("Private note on t02")).to_have_value("no judged document <b>fits</b>")
    with page.expect_download() as got:
        page.locator("#private-note a").click()
    assert json.loads(Path(got.value.path()).read_text(encoding="utf-8")) == {"t02": "no judged document <b>fits</b>"}
    page.goto(f"{serve(sample)}/topics")
    expect(page.locator("[data-notes]")).to_contain_text("no judged document <b>fits</b>")
    page.goto(f"{serve(sample)}/topic?topic=t03")
    expect(page.get_by_label("Private note on t03")).to_have_value("")
    view.clean()


@pytest.mark.parametrize("path", ["/search?q=map", "/topics?where=kind+%3D%3D", "/topic?topic=t01&rel=2"])
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1280, "dark")])
def test_pages_fit_and_are_accessible(serve: Any, sample: Any, tab: Any, path: str, width: int, scheme: str) -> None:
    view = tab(serve(sample) + path, width=width, color_scheme=scheme)
    view.fits()
    view.accessible()
