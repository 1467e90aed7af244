"""Leaderboard in a browser: with mouse, keyboard, a narrow window, and a dark page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

import judged
from judged.data import sample as shipped
from judged.interface.pages.workspace import open_workspace

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")

MANY = {f"system-{i:02}-{'with-a-long-name-' * (i % 3)}": i for i in range(37)}


def names(page: Any) -> list[str]:
    return page.locator(".board tbody .run-name").all_inner_texts()


def drawn(page: Any) -> None:
    page.wait_for_selector("html[data-charts-rendered]")


def values(page: Any, column: int) -> list[str]:
    """Return the values of a column, without interval and test."""
    cells = page.locator(f".board tbody tr td:nth-of-type({column})").all_inner_texts()
    return [text.split()[0].rstrip("†‡") for text in cells]


def test_choose_a_baseline_from_the_list(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP,P@5")
    page = view.page
    with page.expect_navigation():
        page.get_by_label("Baseline").select_option("tfidf")
    expected = judged.evaluate(shipped.qrels(), shipped.runs(), ["AP", "P@5"]).compare(baseline="tfidf")
    assert "better than the baseline tfidf." in page.locator(".headline .sentence").inner_text()
    pair = expected.pair("tfidf", "bm25", "AP")
    assert pair.better == "bm25"
    row = page.locator(".board tbody tr", has=page.get_by_text("bm25", exact=True))
    assert row.locator("td").nth(2).inner_text().endswith("better")
    assert row.locator("td").nth(3).inner_text() == f"{pair.result.decisive_p:.4f}"
    assert (
        f"7 tests against tfidf, for each of 2 measures: {expected.caption}."
        in page.locator(".statistics .methods-note").text_content()
    )
    view.clean()


def test_make_a_run_the_baseline_by_its_link_and_show_differences(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP")
    page = view.page
    page.get_by_label("Actions for rrf", exact=True).click()
    page.get_by_role("link", name="Use as baseline").locator("visible=true").click()
    page.get_by_role("link", name="Show intervals and differences from the baseline").click()
    page.wait_for_url("**details=difference**")
    assert "baseline=rrf" in page.url
    expected = judged.compare(shipped.qrels(), shipped.runs(), "AP", baseline="rrf")
    pair = expected.pair("rrf", "tfidf")
    low, high = pair.shown_interval or (0, 0)
    row = page.locator(".board tbody tr", has=page.get_by_text("tfidf", exact=True))
    text = f"{pair.shown_difference:+.4f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
    assert row.locator("td").nth(4).inner_text().replace("\n", " ").startswith(text)
    assert page.locator(".board thead th").all_inner_texts()[5] == "difference"
    page.get_by_role("link", name="Hide intervals and differences").click()
    page.wait_for_url(lambda url: "details" not in url)
    expect(page.locator(".board thead th")).to_have_count(6)
    view.clean()


def test_sort_by_keyboard(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP,P@5")
    page = view.page
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), ["AP", "P@5"])
    by_name = {run: scores.value("P@5", run) for run in scores.run_names}
    page.locator("thead").get_by_role("link", name="P@5").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**sort=-P**")
    assert names(page) == sorted(by_name, key=lambda run: -by_name[run])
    assert values(page, 2) == [f"{value:.4f}" for value in sorted(by_name.values(), reverse=True)]
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.locator("thead").get_by_role("link", name="P@5").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sort=P" in url)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert names(page) == sorted(by_name, key=lambda run: by_name[run])
    page.locator("thead").get_by_role("link", name="Run").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**sort=run**")
    assert names(page) == sorted(by_name)
    view.clean()


def test_tabs_reach_every_control_in_order(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP")
    page = view.page
    page.locator("select[name=baseline]").focus()
    reached = []
    for _ in range(9):
        reached.append(
            page.evaluate(
                "document.activeElement.name || document.activeElement.className || document.activeElement.tagName"
            )
        )
        page.keyboard.press("Tab")
    assert reached[:7] == ["baseline", "where", "rel", "test", "correction", "primary", "SUMMARY"]
    page.locator(".board .scroll").focus()  # the table can be scrolled by keys
    assert page.evaluate("document.activeElement.className") == "scroll"
    view.clean()


def test_filter_by_a_slice_and_by_an_expression(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP&baseline=rrf")
    page = view.page
    page.get_by_label("Topics where").fill("query_class == 'how-to'")
    page.keyboard.press("Enter")
    page.wait_for_url("**where=**")
    assert (
        "Means are over the 18 of 48 topics that satisfy the condition query_class == 'how-to'."
        in page.locator(".statistics .methods-note").text_content()
    )
    assert "n = 18 topics" in page.locator(".statistics .methods-note").text_content()
    assert "baseline=rrf" in page.url  # the rest of the state stays
    assert page.get_by_label("Topics where").input_value() == "query_class == 'how-to'"
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), "AP")
    mask = sample.mask("query_class == 'how-to'")
    best = max(scores.over_topics(mask).value("AP", run) for run in scores.run_names)
    assert values(page, 1)[0] == f"{best:.4f}"
    page.get_by_label("Topics where").fill("words > 7 and")
    page.keyboard.press("Enter")
    page.wait_for_selector("#where-problem")
    assert "'words > 7 and' is not an expression" in page.locator("#where-problem").inner_text()
    assert page.get_by_label("Topics where").input_value() == "words > 7 and"
    assert page.get_by_role("heading", name="No topics to show").is_visible()
    view.accessible()
    page.get_by_label("Topics where").fill("words > 7")
    page.keyboard.press("Enter")
    page.wait_for_selector(".board")
    assert (
        f"{int(sample.mask('words > 7').sum())} of 48 topics that satisfy the condition words > 7."
        in page.locator(".statistics .methods-note").text_content()
    )
    assert view.faults == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]
    assert view.foreign == []


def test_choose_measures(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard")
    page = view.page
    page.get_by_text("Measures (4)").click()
    page.locator(".measures").get_by_label("RR@10", exact=True).uncheck()
    page.locator(".measures").get_by_label("GMAP").check()
    page.get_by_label("Other measures, separated by commas").fill("ndcg_cut_5, nDCG(gain=exp2)@3")
    page.get_by_role("button", name="Show these measures").click()
    page.wait_for_url("**GMAP**")
    heads = [text.rstrip("↓↑") for text in page.locator(".board thead th").all_inner_texts()]
    assert set(heads) >= {"nDCG@10", "AP", "R@100", "GMAP", "nDCG@5", "nDCG(gain=exp2)@3"}
    page.locator("details.measures summary").click()
    assert page.locator(".measures").get_by_label("nDCG(gain=exp2)@3").is_checked()
    assert page.get_by_label("Other measures, separated by commas").input_value() == ""
    view.clean()


def test_charts_are_drawn(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/leaderboard?measures=AP")
    page = view.page
    with page.expect_navigation():
        page.locator("select[name=curve]").select_option("P")
    drawn(page)
    expect(page.locator(".board svg.interval")).to_have_count(8)
    lines = page.locator("#chart-curve svg .mark-line path")
    assert lines.count() == 8
    assert "P@k" in page.locator("#chart-curve svg text").all_text_contents()
    page.locator("#curve").get_by_text("Data of this chart").click()
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), "P@5")
    head = page.locator("#curve table thead th").all_inner_texts()
    row = page.locator("#curve table tbody tr", has=page.locator("th", has_text="5").first).all_inner_texts()
    five = next(value.split("\t") for value in row if value.split("\t")[0] == "5")
    assert five[head.index("rrf")].startswith(f"{scores.value('P@5', 'rrf'):.4f} [")
    view.clean()
    view.accessible()


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1280, "light")])
def test_it_fits_and_can_be_read(serve: Any, tab: Any, sample: Any, width: int, scheme: str) -> None:
    view = tab(f"{serve(sample)}/leaderboard?details=difference&curve=nDCG", width=width, color_scheme=scheme)
    drawn(view.page)
    if width < 640:  # settings are folded
        view.page.locator("details.settings > summary").click()
    view.page.locator("details.measures summary").click()
    view.fits()
    view.accessible()
    view.clean()


def test_many_runs_scroll_by_themselves(serve: Any, tab: Any) -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(6)}
    runs = {name: {topic: [*(f"x{n}" for n in range(i)), "d"] for topic in qrels} for name, i in MANY.items()}
    view = tab(f"{serve(open_workspace(qrels, runs))}/leaderboard", width=375)
    page = view.page
    view.fits()
    board = page.locator(".board .scroll")
    assert names(page) == list(MANY)
    head = page.locator("thead th").nth(1)
    name = page.locator("tbody th").nth(0)
    before = (head.bounding_box()["y"], name.bounding_box()["x"])
    board.evaluate("board => board.scrollTo(150, 600)")
    assert board.evaluate("board => [board.scrollLeft, board.scrollTop]") == [150, 600]
    assert (head.bounding_box()["y"], name.bounding_box()["x"]) == before  # the head and the names stay
    assert page.evaluate("scrollY") == 0
    view.accessible()
    view.clean()


def test_hostile_names_are_shown_as_they_are(serve: Any, tab: Any) -> None:
    qrels = {f"q{i}": {"d": 1} for i in range(6)}
    hostile = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "long " * 60]
    runs = {name: {topic: [f"x{i}", "d"] for topic in qrels} for i, name in enumerate(hostile)}
    view = tab(f"{serve(open_workspace(qrels, runs))}/leaderboard?curve=P", width=375)
    drawn(view.page)
    assert names(view.page) == [name.strip() for name in hostile]
    expect(view.page.locator("img")).to_have_count(0)
    view.fits()
    view.clean()


def test_page_without_runs_links_to_opening_files(serve: Any, tab: Any) -> None:
    view = tab(f"{serve(open_workspace({'q': {'d': 1}}, None))}/leaderboard")
    assert view.page.get_by_role("link", name="Open runs").get_attribute("href") == "/open"
    expect(view.page.locator("table")).to_have_count(0)
    view.accessible()
    view.clean()
