"""Evaluator in a browser. The numbers are classics of teaching material, or computed by hand beside."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

Show = Any
FIVE = "/evaluator?list=3,0,2,1,0&cutoff=5&gain=exp2"
TOPS = """[...document.querySelectorAll('.row, .group, #pinned > .measure')]
  .map((one) => one.getBoundingClientRect().top)"""
SHIFTS = """new PerformanceObserver((all) => {
  for (const one of all.getEntries()) window.shift = (window.shift ?? 0) + one.value;
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.fixture
def show(serve: Any, tab: Any, sample: Any) -> Show:
    """Open the evaluator, wait until it can be used, and hold in the end that console and network were clean."""
    opened = []

    def opening(path: str = "/evaluator", **options: Any) -> Any:
        view = tab(f"{serve(sample)}{path}", **options)
        view.page.wait_for_selector("html[data-ready]")
        opened.append(view)
        return view.page

    opening.tabs = opened  # type: ignore[attr-defined]
    yield opening
    for view in opened:
        view.clean()
        view.fits()


def grade(page: Any, rank: int, side: str = "list") -> Any:
    """Return the selected grade at a rank."""
    return page.locator(f"#{side} .row").nth(rank - 1).locator("[role=radio][aria-checked=true]")


def grades(page: Any, side: str = "list") -> str:
    return "".join(page.locator(f"#{side} [role=radio][aria-checked=true]").all_inner_texts())


def docs(page: Any, side: str = "list") -> list[str]:
    return [field.input_value() for field in page.locator(f"#{side} .doc").all()]


def says(page: Any, measure: str, text: str, column: str = "value-a") -> None:
    """Hold what stands in a column of a measure, once it stands there."""
    expect(page.locator(f'.measure[data-name="{measure}"] .{column}')).to_have_text(text)


def test_grades_by_keys_and_an_exponential_gain(show: Show) -> None:
    page = show("/evaluator?list=0,0,0,0,0")
    grade(page, 1).focus()
    for key in "3v0v2v1v0":
        page.keyboard.press("ArrowDown" if key == "v" else key)
    page.get_by_label("Gain").select_option("exp2")
    page.get_by_label("Cutoff K", exact=True).fill("5")
    says(page, "DCG(gain=exp2)@5", "8.9307")
    says(page, "IdealDCG(gain=exp2)@5", "9.3928")
    says(page, "nDCG(gain=exp2)@5", "0.9508")
    assert grades(page) == "30210"


def test_average_precision_divides_by_all_relevant_documents(show: Show) -> None:
    page = show("/evaluator?list=0,0,0,0,0")
    for rank in (1, 3, 5):
        page.get_by_role("radiogroup", name=f"Grade of d{rank}, rank {rank}").get_by_role("radio", name="1").click()
    says(page, "AP", "0.7556")
    page.get_by_label("Relevant documents").fill("4")
    says(page, "AP", "0.5667")
    page.get_by_label("Relevant documents").fill("2")
    expect(page.locator("#problem")).to_contain_text("must be at least 3")
    says(page, "AP", "0.5667")
    page.get_by_label("Relevant documents").fill("")
    says(page, "AP", "0.7556")
    expect(page.locator("#problem")).to_be_hidden()
    show.tabs[0].faults[:] = [fault for fault in show.tabs[0].faults if "400" not in fault]


def test_average_precision_of_the_textbooks_by_keys(show: Show) -> None:
    """Relevant ranks, how many are relevant, AP by hand, RR."""
    page = show("/evaluator?list=0,0,0,0,0,0,0,0,0")
    for ranks, relevant, ap, rr in (
        ({1, 2, 5, 9}, 4, "0.7611", "1.0000"),  # (1 + 1 + 3/5 + 4/9) / 4
        ({3, 7}, 3, "0.2063", "0.3333"),  # (1/3 + 2/7) / 3
        ({2, 5, 8}, 7, "0.1821", "0.5000"),  # (1/2 + 2/5 + 3/8) / 7
        ({2, 4, 5, 7}, 4, "0.5429", "0.5000"),  # the three lists of "cat in a box"
        ({1, 4, 5, 7}, 4, "0.6679", "1.0000"),
        ({5, 8}, 2, "0.2250", "0.2000"),
    ):
        page.get_by_label("Relevant documents").fill("")
        grade(page, 1).focus()
        for rank in range(1, 10):
            page.keyboard.press("1" if rank in ranks else "0")
            page.keyboard.press("ArrowDown")
        page.get_by_label("Relevant documents").fill(str(relevant))
        says(page, "AP", ap)
        says(page, "RR", rr)


def test_an_ideal_order_is_not_yet_reached(show: Show) -> None:
    """The list [3, 2, 0, 1, 2] with exponential gain is printed as 1.00 in places; it is 0.969."""
    page = show("/evaluator?list=0,0,0,0,0&cutoff=5&gain=exp2")
    grade(page, 1).focus()
    for key in "3v2v0v1v2":
        page.keyboard.press("ArrowDown" if key == "v" else key)
    says(page, "IdealDCG(gain=exp2)@5", "10.8235")
    says(page, "nDCG(gain=exp2)@5", "0.9686")


def test_rows_are_added_by_keys_and_a_linear_gain(show: Show) -> None:
    page = show("/evaluator?list=0")
    grade(page, 1).focus()
    for number in "7246143":
        page.keyboard.press("+")
        page.keyboard.press(number)
    page.get_by_label("Cutoff K", exact=True).fill("2")
    says(page, "nDCG@2", "0.4095")
    assert docs(page) == [f"d{rank}" for rank in range(1, 9)]


def test_a_missing_document_counts_in_the_ideal(show: Show) -> None:
    page = show()
    grade(page, 5).focus()
    for _ in range(3):
        page.keyboard.press("Delete")
    for key in ("4", "ArrowUp", "0"):
        page.keyboard.press(key)
    page.get_by_label("Grades not returned").fill("4")
    page.get_by_label("Gain").select_option("linear")
    page.get_by_label("Cutoff K", exact=True).fill("2")
    assert grades(page) == "04"
    says(page, "nDCG@2", "0.3869")


def test_the_original_discount(show: Show) -> None:
    page = show("/evaluator?list=3,2,3,0,0,1,2,2,3,0")
    page.get_by_label("Discount").select_option("original")
    says(page, "DCG(discount=original)@10", "9.6051")
    says(page, "nDCG(discount=original)@10", "0.8825")


def test_dragging_with_the_mouse_shows_moved_rows(show: Show) -> None:
    page = show(FIVE)
    says(page, "nDCG(gain=exp2)@5", "", "moved")
    first, third = (page.locator("#list .handle").nth(i).bounding_box() for i in (1, 2))
    page.mouse.move(third["x"] + 8, third["y"] + 10)
    page.mouse.down()
    page.mouse.move(first["x"] + 8, first["y"] + 20, steps=4)
    says(page, "nDCG(gain=exp2)@5", "0.9926")  # while it is held
    page.mouse.move(first["x"] + 8, first["y"] + 6, steps=4)
    page.mouse.up()
    assert docs(page) == ["d1", "d3", "d2", "d4", "d5"]
    says(page, "nDCG(gain=exp2)@5", "0.9926")  # (7 + 3/log2(3) + 1/log2(5)) / 9.3928
    says(page, "nDCG(gain=exp2)@5", "+0.0418", "moved")
    says(page, "RR", "", "moved")
    assert page.locator("#list .row .moved").all_inner_texts() == ["", "▲3", "▼2", "", ""]
    expect(page.locator("#announcement")).to_have_text("d3 moved from rank 3 to rank 2.")
    page.get_by_role("button", name="Undo").click()
    says(page, "nDCG(gain=exp2)@5", "0.9508")
    assert docs(page) == ["d1", "d2", "d3", "d4", "d5"]


def test_escape_ends_a_drag(show: Show) -> None:
    page = show(FIVE)
    box = page.locator("#list .handle").first.bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 8, box["y"] + 150, steps=6)
    assert docs(page)[0] != "d1"
    page.keyboard.press("Escape")
    page.mouse.up()
    assert docs(page) == ["d1", "d2", "d3", "d4", "d5"]
    says(page, "nDCG(gain=exp2)@5", "0.9508")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()


def test_dragging_with_a_finger(show: Show) -> None:
    page = show(FIVE, width=375, height=800, has_touch=True, is_mobile=True)
    page.locator("#list").scroll_into_view_if_needed()
    top, fifth = (page.locator("#list .handle").nth(i).bounding_box() for i in (0, 4))
    x = top["x"] + 10
    finger = page.context.new_cdp_session(page)
    places = [fifth["y"] + 12 - step * (fifth["y"] - top["y"] + 6) / 8 for step in range(9)]
    for kind, y in [("touchStart", places[0]), *[("touchMove", y) for y in places[1:]]]:
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("#announcement")).to_have_text("d5 moved from rank 5 to rank 1.")
    assert docs(page) == ["d5", "d1", "d2", "d3", "d4"]
    says(page, "RR", "0.5000")
    says(page, "RR", "−0.5000", "moved")


def test_moving_by_keys_keeps_the_focus_on_the_row(show: Show) -> None:
    page = show(FIVE)
    grade(page, 3).focus()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    assert docs(page) == ["d3", "d1", "d2", "d4", "d5"]
    assert page.evaluate("document.activeElement.parentElement.getAttribute('aria-label')") == "Grade of d3, rank 1"
    says(page, "nDCG(gain=exp2)@5", "0.8354")  # (3 + 7/log2(3) + 1/log2(5)) / 9.3928
    page.keyboard.press("ArrowDown")
    page.keyboard.press("0")
    assert grades(page) == "20010"


def test_marks_and_numbers_of_any_kind(show: Show) -> None:
    page = show(FIVE)
    grade(page, 2).focus()
    page.keyboard.press("u")
    says(page, "Judged@5", "0.8000")
    page.keyboard.press("0")
    page.keyboard.press(".")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(grade(page, 2)).to_have_text("0.5")
    assert page.evaluate("document.activeElement.textContent") == "0.5"
    page.get_by_role("button", name="Other grade of d4, rank 4").click()
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    expect(grade(page, 4)).to_have_text("12")
    says(page, "CG(gain=exp2)@5", "4105.4142")  # 7 + (sqrt(2) - 1) + 3 + 4095
    page.keyboard.press("-")
    expect(grade(page, 4)).to_have_text("–")


def test_a_reload_keeps_everything(show: Show) -> None:
    page = show(FIVE)
    grade(page, 2).focus()
    page.keyboard.press("2")
    page.keyboard.press("Alt+ArrowDown")
    name = page.get_by_label("Document at rank 1")
    name.fill("a/b, c: ü")
    name.press("Enter")
    page.get_by_label("Cutoff K", exact=True).fill("3")
    says(page, "P@3", "1.0000")
    page.locator('.measure[data-name="AP"] .name').click()
    expect(page).to_have_url(re.compile(r"cutoff=3.*focus=AP"))
    values = page.locator(".measure .value-a").all_inner_texts()
    parameters = parse_qs(urlsplit(page.url).query)
    assert parameters["list"] == ["3:a%2Fb%2C%20c%3A%20%C3%BC,2:d3,2:d2,1,0"]
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert docs(page) == ["a/b, c: ü", "d3", "d2", "d4", "d5"]
    assert page.locator(".measure .value-a").all_inner_texts() == values
    assert page.locator("#calculation > .calculation").get_attribute("data-name") == "AP"
    assert page.locator("#pinned .measure[data-focus]").get_attribute("data-name") == "AP"


def test_second_list(show: Show) -> None:
    page = show(FIVE)
    page.get_by_role("button", name="Add a second list").click()
    says(page, "nDCG(gain=exp2)@5", "0.0000", "difference")
    grade(page, 3, "other").focus()
    page.keyboard.press("Alt+ArrowUp")
    says(page, "nDCG(gain=exp2)@5", "0.9926", "value-b")
    says(page, "nDCG(gain=exp2)@5", "+0.0418", "difference")
    assert page.locator("#list .row .other-rank").all_inner_texts() == ["1", "3", "2", "4", "5"]
    page.keyboard.press("0")  # a document has one grade: d3 is not relevant in either list
    assert (grades(page), grades(page, "other")) == ("30010", "30010")
    page.get_by_role("button", name="Remove B").click()
    expect(page.locator("#second-list")).to_be_hidden()
    expect(page.locator(".measures-head .difference")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"evaluator\?((?!other).)*$"))


def test_pasting_a_list(show: Show) -> None:
    page = show()
    page.get_by_role("button", name="Paste a list").click()
    page.get_by_role("textbox", name="List").fill("alpha 2\nbeta many")
    page.get_by_role("button", name="Use this list").click()
    expect(page.locator("#paste-problem")).to_contain_text("many")
    page.get_by_role("textbox", name="List").fill("alpha 2\nbeta 0\ngamma 1")
    page.get_by_role("button", name="Use this list").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert (docs(page), grades(page)) == (["alpha", "beta", "gamma"], "201")
    says(page, "AP", "0.8333")
    page.get_by_role("button", name="Paste a list").click()
    page.get_by_role("radio", name="List B").check()
    page.get_by_role("textbox", name="List").fill("N R N R")
    page.get_by_role("button", name="Use this list").click()
    expect(page.locator("#announcement")).to_have_text("Read as relevant (R, 1) or not relevant (N, 0) in rank order.")
    assert (grades(page), grades(page, "other")) == ("201", "0101")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#second-list")).to_be_hidden()
    show.tabs[0].faults[:] = [fault for fault in show.tabs[0].faults if "400" not in fault]


def test_two_lists_are_pasted_at_once(show: Show) -> None:
    page = show("/evaluator?list=3,0,2,1,0&gain=exp2")
    page.get_by_role("button", name="Paste a list").click()
    page.get_by_role("textbox", name="List").fill("3 2 0 1\n\n2 3 1 0")
    page.get_by_role("button", name="Use this list").click()
    expect(page.locator("#second-list")).to_be_visible()
    assert (grades(page), grades(page, "other")) == ("3201", "2310")


def test_consecutive_grades_are_one_undo_step(show: Show) -> None:
    page = show("/evaluator?list=0:a,0:b,1:c&pin=RR")
    grade(page, 2).focus()
    page.keyboard.press("1")
    says(page, "RR", "+0.1667", "moved")  # 1/2 - 1/3
    page.keyboard.press("ArrowUp")
    page.keyboard.press("1")
    says(page, "RR", "+0.6667", "moved")  # 1 - 1/3


def test_the_measure_in_focus_shows_its_steps_and_they_stay_live(show: Show) -> None:
    page = show(f"{FIVE}&focus=AP")
    measure = page.locator("#calculation")
    expect(measure.locator(".lines li").last).to_contain_text("AP =")
    page.get_by_role("button", name="nDCG(gain=exp2)@5").click()
    expect(measure.locator(".lines li").last).to_have_text(
        "nDCG(gain=exp2)@5 = DCG / IdealDCG = 8.9307 / 9.3928 = 0.9508"
    )
    assert measure.locator(".contributions tbody tr").all_inner_texts()[0].split() == [
        "1",
        "d1",
        "0.7453",
    ]  # 7 / 9.3928
    assert measure.locator(".share rect").nth(0).get_attribute("width") == "100.00%"
    assert measure.locator(".curve circle").count() == 5
    measure.get_by_text("All steps").click()
    grade(page, 3).focus()
    page.keyboard.press("Alt+ArrowUp")
    expect(measure.locator(".lines li").last).to_have_text(
        "nDCG(gain=exp2)@5 = DCG / IdealDCG = 9.3235 / 9.3928 = 0.9926"
    )
    page.get_by_label("Cutoff K", exact=True).fill("2")
    expect(measure.locator(".lines li").last).to_contain_text("nDCG(gain=exp2)@2")
    assert measure.locator("details.sheets").get_attribute("open") is not None
    assert page.locator("#calculation .definition a").get_attribute("href") == "/learn/nDCG"


@pytest.mark.parametrize(("text", "key"), [("MRR", "RR"), ("hit rate", "Success"), ("ndcg_cut_10", "nDCG")])
def test_measure_search_by_any_name_sets_the_focus(show: Show, text: str, key: str) -> None:
    page = show(FIVE)
    page.get_by_label("Find a measure").fill(text)
    expect(page.locator("#search-status")).to_contain_text("match")
    page.get_by_label("Find a measure").press("Enter")
    expect(page.locator(f'.measure[data-key="{key}"]')).to_have_attribute("data-focus", "yes")
    expect(page.locator("#calculation > .calculation")).to_have_attribute("data-name", re.compile(rf"^{key}\b"))
    page.get_by_label("Find a measure").fill("")
    expect(page.locator(".group[open]")).to_have_count(0)


def test_measures_are_pinned_and_remembered(show: Show) -> None:
    page = show(FIVE)
    page.get_by_text("User model").click()
    page.locator('.measure[data-key="RBP"] .pin').click()
    page.locator('.measure[data-key="F"] .pin').click()
    pinned = "[...document.querySelectorAll('#pinned > .measure')].map((one) => one.dataset.key).join()"
    expect(page).to_have_url(re.compile("pin=P,R,AP,nDCG,RR,RBP"))
    assert page.evaluate(pinned) == "P,R,AP,nDCG,RR,RBP"
    page.goto(f"{page.url.split('?')[0]}?list=1,0")
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(pinned) == "P,R,AP,nDCG,RR,RBP"


def test_a_cutoff_is_checked_as_it_is_typed(show: Show) -> None:
    page = show(FIVE)
    field = page.get_by_label("Cutoff K", exact=True)
    for text in ("0", "", "2.5", "1001"):
        field.fill(text)
        expect(page.locator("#cutoff-error")).to_contain_text("from 1 to 1000. The scores still use 5.")
        assert field.get_attribute("aria-invalid") == "true"
    field.press("Enter")
    says(page, "P@5", "0.6000")
    field.fill("2")
    expect(page.locator("#cutoff-error")).to_have_text("")
    says(page, "P@2", "0.5000")


def test_undo_redo_and_browser_buttons_share_one_history(show: Show) -> None:
    page = show(FIVE)
    undo, redo = (page.get_by_role("button", name=name) for name in ("Undo", "Redo"))
    expect(undo).to_be_disabled()
    grade(page, 2).focus()
    for key in "13":
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f"list=3,{key},2,1,0"))
    page.keyboard.press("Control+z")
    expect(page).to_have_url(re.compile("list=3,1,2,1,0"))
    assert page.evaluate("document.activeElement.closest('.row').querySelector('.rank').textContent") == "2"
    page.go_back()
    expect(grade(page, 2)).to_have_text("0")
    says(page, "AP", "0.8056")
    expect(undo).to_be_disabled()
    page.keyboard.press("Control+y")
    expect(grade(page, 2)).to_have_text("1")
    redo.click()
    expect(grade(page, 2)).to_have_text("3")
    says(page, "AP", "1.0000")
    expect(redo).to_be_disabled()
    undo.click()
    expect(grade(page, 2)).to_have_text("1")
    page.get_by_label("Cutoff K", exact=True).fill("3")
    expect(page).to_have_url(re.compile("cutoff=3"))
    expect(redo).to_be_disabled()


def test_true_and_false_positives_and_negatives_at_the_cutoff(show: Show) -> None:
    page = show("/evaluator?list=1,0,1,0,1&missing=1&cutoff=3")
    cells = [page.locator(f"#list-counts .{name}") for name in ("tp", "fp", "fn", "tn")]
    assert [cell.inner_text() for cell in cells] == ["2", "1", "2", "–"]
    page.get_by_label("Documents in collection").fill("100")
    expect(cells[3]).to_have_text("95")
    says(page, "Accuracy(n=100)@3", "0.9700")


def test_lists_with_grades_of_their_own_are_compared_and_swapped(show: Show) -> None:
    """R N R N N N N N R R and N R N N R R R N N N, of 4 relevant documents; AP by hand."""
    page = show("/evaluator?list=1,0,1,0,0,0,0,0,1,1")
    page.get_by_role("button", name="Add a second list").click()
    page.get_by_role("button", name="Grade B separately").click()
    grade(page, 1, "other").focus()
    for key in "0v1v0v0v1v1v1v0v0v0":
        page.keyboard.press("ArrowDown" if key == "v" else key)
    assert (grades(page), grades(page, "other")) == ("1010000011", "0100111000")
    says(page, "AP", "0.6000")
    says(page, "AP", "0.4929", "value-b")
    page.locator('.measure[data-key="AP"] .name').click()
    expect(page.locator("#calculation .list-difference")).to_have_text(
        "B − A = −0.1071: rank 1 −0.2500, rank 3 −0.1667, rank 7 +0.1429, rank 2 +0.1250, and 4 more ranks."
    )
    page.get_by_role("button", name="Swap A and B").click()
    says(page, "AP", "0.4929")
    says(page, "AP", "+0.1071", "difference")
    assert (grades(page), grades(page, "other")) == ("0100111000", "1010000011")


def test_the_newest_of_many_quick_changes_is_shown(show: Show) -> None:
    page = show(FIVE)
    grade(page, 1).focus()
    for key in "0123012301":
        page.keyboard.press(key)
    says(page, "DCG(gain=exp2)@5", "2.9307")  # 1 + 3/2 + 1/log2(5)
    expect(page).to_have_url(re.compile(r"list=1,0,2,1,0&"))


def test_measures_out_of_view_are_requested_when_idle(show: Show) -> None:
    page = show("/evaluator?list=3,0,2,1,0,3,1,0,0,2,1,0,3,0,0,1,2,0,0,1&focus=AP.1&cutoff=5", height=400)
    grade(page, 20).focus()
    expect(page.locator("#pinned")).not_to_be_in_viewport()
    page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")
    with page.expect_request(lambda request: "/numbers?" in request.url) as first:
        page.keyboard.press("3")
    assert "&only=AP" in first.value.url
    with page.expect_request(lambda request: "/numbers?" in request.url) as request_info:
        pass
    assert "&only=" not in request_info.value.url
    says(page, "P@5", "0.6000")


def test_a_topic_of_a_run(show: Show, sample: Any) -> None:
    page = show()
    page.get_by_text("Load an example").click()
    page.locator("#load [name=run]").select_option("bm25")
    page.locator("#load [name=topic]").fill(sample.query_ids[0])
    page.get_by_role("button", name="Load").click()
    page.wait_for_selector("html[data-ready]")
    run = sample.rows("bm25").run(sample.query_ids[0])
    assert len(docs(page)) == min(20, run.table.num_rows)
    assert sample.query(sample.query_ids[0]) in page.locator(".source").inner_text()


def test_hostile_names_stay_text(show: Show) -> None:
    page = show(FIVE)
    name = page.get_by_label("Document at rank 1")
    name.fill("<img src=x onerror=alert(1)>")
    name.press("Enter")
    page.locator('.measure[data-name="AP"] .name').click()
    expect(page.locator(".contributions tbody tr").first).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page).to_have_url(re.compile("img"))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert docs(page)[0] == "<img src=x onerror=alert(1)>"
    expect(page.locator("main img")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1280, "light"), (2560, "dark")])
def test_it_is_accessible_and_fits(show: Show, width: int, scheme: str) -> None:
    page = show(f"{FIVE}&other=0:d2,3:d1,2:d3,-:x", width=width, color_scheme=scheme)
    grade(page, 3).focus()
    page.keyboard.press("Alt+ArrowUp")
    says(page, "nDCG(gain=exp2)@5", "+0.0418", "moved")
    page.locator('.measure[data-name="AP"] .name').click()
    expect(page.locator("#calculation .lines li").last).to_contain_text("AP =")
    page.get_by_text("Ranked, binary").click()
    page.get_by_label("Cutoff K", exact=True).fill("0")
    page.wait_for_timeout(250)  # rows have glided to their places
    show.tabs[0].accessible()


def test_every_control_is_reached_by_tab_and_has_a_name(show: Show) -> None:
    page = show(FIVE)
    nameless, control_ids = [], set()
    page.locator("#undo").evaluate("one => document.getElementById('reset').focus()")
    for _ in range(60):
        focused = page.evaluate(
            "(() => { const one = document.activeElement; return [one.id || one.className || one.tagName,"
            " one.getAttribute('aria-label') || one.labels?.[0]?.textContent || one.textContent,"
            " one.checkVisibility()]; })()"
        )
        control_ids.add(focused[0])
        if not focused[1].strip() or not focused[2]:
            nameless.append(focused)
        page.keyboard.press("Tab")
    assert nameless == []
    assert {"paste", "compare", "handle", "more", "doc", "up", "relevant", "filter", "name", "pin"} <= control_ids


def test_the_first_paint_is_the_page(show: Show, browser: Any, serve: Any, sample: Any) -> None:
    page = show(FIVE)
    says(page, "RR", "", "moved")
    values = page.locator(".measure > *").all_text_contents()
    tops = page.evaluate(TOPS)
    context = browser.new_context(java_script_enabled=False, viewport=page.viewport_size)
    plain = context.new_page()
    plain.goto(f"{serve(sample)}{FIVE}")
    assert plain.locator(".measure > *").all_text_contents() == values
    plain.get_by_label("List: grade or grade:name").fill("0,1")
    plain.get_by_label("Cutoff K").fill("2")
    plain.get_by_role("button", name="Evaluate").click()
    assert plain.locator('.measure[data-name="P@2"] .value-a').inner_text() == "0.5000"
    plain.get_by_role("button", name="RR", exact=True).click()
    assert plain.locator("#calculation .lines li").last.inner_text().endswith("0.5000")
    context.close()
    page.add_init_script(SHIFTS)
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.wait_for_timeout(300)
    assert (page.evaluate("window.shift") or 0) < 0.01
    assert tops == page.evaluate(TOPS)


def test_an_example_of_a_page_that_teaches(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/static/icon.svg")
    page = view.page
    body = (
        '<!DOCTYPE html><html lang="en"><title>x</title><link rel="icon" href="/static/icon.svg">'
        '<link rel="stylesheet" href="/shared/look.css">'
        '<link rel="stylesheet" href="/static/workbench.css"><link rel="stylesheet" href="/static/evaluator.css">'
        '<script type="module" src="/static/evaluator/example.js"></script><main>'
        '<div data-example data-measure="nDCG(gain=exp2)@5" data-list="3,0,2,1,0">before</div>'
        '<div data-example data-measure="AP" data-list="1,0,1,0,1" data-missing="1">before</div></main></html>'
    )
    page.route("**/lesson", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(f"{serve(sample)}/lesson")
    first, second = page.locator("[data-example]").nth(0), page.locator("[data-example]").nth(1)
    expect(first.locator(".score .value")).to_have_text("0.9508")
    expect(second.locator(".score .value")).to_have_text("0.5667")
    first.get_by_role("radio", name="3").nth(2).click()
    expect(first.locator(".lines li").last).to_contain_text("= 0.9173")  # (7 + 7/2 + 1/log2(5)) / (7 + 7/log2(3) + 1/2)
    first.get_by_role("button", name="Move up").click()
    expect(first.locator(".score")).to_contain_text("previously 0.9")
    assert docs_of(first) == ["d1", "d3", "d2", "d4", "d5"]
    link = first.get_by_role("link", name="Open in the evaluator")
    expect(link).to_have_attribute("href", re.compile(r"^/evaluator\?list=3,3:d3"))
    view.accessible()
    view.clean()


def docs_of(place: Any) -> list[str]:
    return [field.input_value() for field in place.locator(".doc").all()]
