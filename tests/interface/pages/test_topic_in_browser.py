"""A person finds the worst topic, opens it, sees what moved and reads a document."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from judged.interface.pages.workspace import open_workspace

HOSTILE = '<img src=x onerror="alert(1)"><script>document.title = "owned"</script><b>bold</b>'


@pytest.fixture(scope="module")
def hostile() -> Any:
    """Run names, ids and texts that try to be HTML; a long text; a query id with a slash and spaces."""
    qrels = {"a/b c?d&é": {"d/1 &<b>": 2, HOSTILE: 1, "gone": 1}, "none": {"x": 0}}
    first = {"a/b c?d&é": {HOSTILE: 3.0, "d/1 &<b>": 2.0, "u": 1.0}, "none": {"x": 1.0}}
    second = {"a/b c?d&é": {"u": 2.0, "d/1 &<b>": 1.0}}
    docs = {HOSTILE: {"title": HOSTILE, "text": HOSTILE}, "d/1 &<b>": "é " * 50_000}
    return open_workspace(qrels, {"A <i>": first, "B": second}, queries={"a/b c?d&é": HOSTILE}, texts=docs)


def until(page: Any, expression: str, expected: Any) -> None:
    """Wait until an expression has a value; `wait_for_function` needs eval, which the pages forbid."""
    deadline = time.monotonic() + 5
    while (value := page.evaluate(expression)) != expected:
        assert time.monotonic() < deadline, f"{expression} is {value!r}"
        page.wait_for_timeout(20)


def follow(page: Any, link: Any) -> None:
    """Click on something that leads to another page, and wait for that."""
    with page.expect_navigation():
        link.click()


def lines(page: Any) -> int:
    """Count the lines between the lists."""
    return page.locator(".moves path").count()


def test_from_the_worst_topic_to_a_document(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topics")
    page = view.page
    follow(page, page.get_by_role("link", name="lowest score first"))
    scores = sample.scores(["nDCG@10"]).values[:, 0, :].mean(axis=0)
    worst = [sample.query_ids[i] for i in scores.argsort(kind="stable")[:3]]
    assert page.locator("[data-table=hardest] tbody th").all_inner_texts()[:3] == worst
    assert page.locator("[data-table=topics] tbody th").all_inner_texts()[:3] == worst
    assert page.locator("th[aria-sort=ascending]").inner_text() == "Mean↑"
    view.accessible()
    follow(page, page.locator("[data-table=topics] tbody").get_by_role("link", name=worst[2]))
    assert page.locator("h1").inner_text() == f"{worst[2]} {sample.query(worst[2])}"
    assert page.locator(".topic-pager .secondary").inner_text() == "3 of 48"
    follow(page, page.get_by_role("link", name="Next topic"))
    assert page.locator(".topic-pager .secondary").inner_text() == "4 of 48"
    follow(page, page.get_by_role("link", name="Previous topic"))
    baseline = sample.default_pair("nDCG@10")[0]
    with page.expect_navigation():
        page.locator("select[name=second]").select_option("bm25_title")
    assert page.locator(".list h3").all_inner_texts() == [baseline, "bm25_title"]
    assert "sort=mean" in page.url
    follow(page, page.get_by_role("link", name="All topics", exact=True))
    assert page.locator("[data-table=topics] tbody th").first.inner_text() == worst[0]
    view.clean()


def test_moved_documents_are_linked(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t05&first=bm25&second=tfidf")
    page = view.page
    both = page.locator(".list").first.locator("a.jump").count()
    assert lines(page) == both == 9
    # each line ends where its document stands on the right
    gaps = page.evaluate(
        """[...document.querySelectorAll(".moves path")].map((path) => {
          const top = document.querySelector(".moves").getBoundingClientRect().top;
          const [, y0, y1] = path.getAttribute("d").match(/^M 3 (\\S+) .* (\\S+)$/).map(Number);
          const place = (side) => {
            const box = document.querySelector(`#${side}-${path.dataset.key} .document-title`).getBoundingClientRect();
            return box.top - top;
          };
          return [y0 - place("a"), y1 - place("b")];
        })"""
    )
    assert all(0 < gap <= 10 for ends in gaps for gap in ends)
    page.locator("#a-1").hover()
    assert page.locator(".document.linked .doc-id").all_inner_texts() == ["collections.Counter.most_common"] * 2
    assert page.locator(".moves path.linked").get_attribute("data-key") == "1"
    page.locator("h1").hover()
    expect(page.locator(".linked")).to_have_count(0)
    view.clean()


def test_lines_follow_when_the_page_changes(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t05&first=bm25&second=tfidf")
    page = view.page
    ends = "[...document.querySelectorAll('.moves path')].map((path) => path.getAttribute('d'))"
    before = page.evaluate(ends)
    page.locator("#a-0 summary").click()
    page.locator("#a-0 .document-text .text").wait_for()
    until(page, f"JSON.stringify({ends}) === {json.dumps(json.dumps(before, separators=(',', ':')))}", expected=False)
    after = page.evaluate(ends)
    assert before[0] == after[0]  # the first document did not move
    assert before[-1] != after[-1]
    page.set_viewport_size({"width": 375, "height": 800})
    until(page, "document.querySelectorAll('.moves path').length", 0)
    page.set_viewport_size({"width": 1500, "height": 800})
    until(page, "document.querySelectorAll('.moves path').length", 9)
    view.clean()


def test_with_the_keyboard_alone(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t05&first=bm25&second=tfidf")
    page = view.page
    link = page.locator("#a-1 a.jump")
    assert link.inner_text() == "rank 4 in tfidf"
    for _ in range(80):
        page.keyboard.press("Tab")
        if link.evaluate("(one) => one === document.activeElement"):
            break
    else:
        pytest.fail("the link is not reached with Tab")
    expect(page.locator(".document.linked")).to_have_count(2)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "b-1"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "rank 2 in bm25"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#b-1 .document-text .text").wait_for()
    assert page.locator("#b-1 .document-text .text").inner_text() == sample.texts.text(
        "collections.Counter.most_common"
    )
    view.clean()


def test_texts_never_run(serve: Any, tab: Any, hostile: Any) -> None:
    view = tab(f"{serve(hostile)}/topics")
    page = view.page
    follow(page, page.get_by_role("region", name="Table of topics").get_by_role("link", name="a/b c?d&é"))
    assert page.locator("h1").inner_text() == f"a/b c?d&é {HOSTILE}"
    mine = page.locator("#a-0")
    assert mine.locator(".doc-id").inner_text() == HOSTILE
    mine.locator("summary").click()
    mine.locator(".document-text .text").wait_for()
    assert mine.locator(".document-text .title").inner_text() == HOSTILE
    assert mine.locator(".document-text .text").inner_text() == HOSTILE
    expect(page.locator("main img, main script:not([type]), main b:not(.headline b, .next b)")).to_have_count(0)
    assert page.title() == "Topic a/b c?d&é · judged"
    long = page.locator("#a-1")
    long.locator("summary").click()
    more = long.get_by_role("button", name="Show all 100,000 characters")
    more.wait_for()
    assert long.locator(".document-text .text").evaluate("(one) => one.textContent.length") == 4000
    more.click()
    until(page, "document.querySelector('#a-1 .document-text .text').textContent.length", 100_000)
    assert long.get_by_role("button").count() == 0
    assert page.locator("#a-2 .state").inner_text() == "unjudged"
    expect(page.locator("#a-2 details")).to_have_count(0)
    page.get_by_text("1 relevant document that neither list shows").click()
    assert page.locator(".missed tbody tr > *").all_inner_texts() == ["gone", "1", "not returned", "not returned"]
    view.accessible()
    view.fits()
    view.clean()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(serve: Any, tab: Any, sample: Any, scheme: str) -> None:
    address = serve(sample)
    view = tab(
        f"{address}/topic?topic=t12&first=bm25&second=bm25_nostem&explain=AP&tools=true", 375, color_scheme=scheme
    )
    page = view.page
    assert not page.locator(".moves").is_visible()
    link = page.locator("#a-0 a.jump")
    assert link.inner_text() == "rank 1 in bm25_nostem"
    link.click()
    assert page.evaluate("document.activeElement.id") == "b-0"
    view.fits()
    view.accessible()
    page.goto(f"{address}/topics?sort=-spread")
    view.fits()
    view.accessible()
    view.clean()


def test_explanation_and_tools_on_demand(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t12&first=bm25&second=bm25_nostem&sort=mean")
    page = view.page
    page.get_by_label("Explain").fill("AP")
    follow(page, page.get_by_role("button", name="Explain"))
    assert page.url.endswith("#explain")
    assert page.locator(".explained summary").first.inner_text() == "Steps of AP of bm25: 0.9167"
    assert "AP = sum of precision / R = 2.7500 / 3 = 0.9167" in page.locator(".explained .lines").first.inner_text()
    follow(page, page.get_by_role("link", name="compare them on this topic"))
    rows = page.locator("[data-table=tools] tbody tr").all_inner_texts()
    assert rows[0].startswith("nDCG@10 of bm25: ")
    gdeval = next(row for row in rows if row.startswith("gdeval"))
    assert re.split(r"\t", gdeval) == ["gdeval", "ndcg@10", "0.94998", "gain=exp2 instead of linear"]
    assert "explain=AP" in page.url
    assert "sort=mean" in page.url
    view.clean()


def test_without_scripts(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t05&first=bm25&second=tfidf", java_script_enabled=False)
    page = view.page
    page.locator("#a-0 summary").click()
    assert page.locator("#a-0 .document-text a").get_attribute("href") == "/api/v1/document?doc_id=math.gcd"
    page.locator("#a-1 a.jump").click()
    assert page.url.endswith("#b-1")


def test_a_topic_that_does_not_exist(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topic?topic=t4")
    assert "the judgments have no topic 't4'" in view.page.locator("main").inner_text()
    assert "use a similar topic: t04" in view.page.locator("main").inner_text()
    assert view.foreign == []


def test_filters_are_kept_while_a_list_is_used(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/topics?sort=-spread")
    page = view.page
    page.get_by_label("Topics where").fill("query_class == 'known-item'")
    page.get_by_text("8 of 8 runs").click()
    for name in sample.run_names[2:]:
        page.locator(f"input[name=runs][value='{name}']").uncheck()
    follow(page, page.get_by_role("button", name="Show", exact=True))
    n_matching = int(sample.mask("query_class == 'known-item'").sum())
    assert page.locator("caption").inner_text() == f"{n_matching} topics of 48"
    heads = page.get_by_role("region", name="Table of topics").locator("thead th")
    assert [text.strip("↑↓") for text in heads.all_inner_texts()] == [
        "Topic", "Query", "Relevant", "Mean", "Range of runs", "bm25", "bm25_nostem",
    ]  # fmt: skip
    assert "sort=-spread" in page.url
    page.get_by_label("Search").fill("zebra")
    with page.expect_navigation():
        page.get_by_label("Search").press("Enter")
    assert page.locator(".empty-state h2").inner_text() == "No topic contains these words"
    view.fits()
    view.clean()
