"""Learning pages in a browser: with a keyboard, on a phone, in the dark, and without scripts."""

from __future__ import annotations

import pytest

from judged.scoring.measures.registry import REGISTRY

PAGES = ("/learn", "/learn/nDCG", "/learn/lessons/gain-and-discount", "/choose", "/choose?about=described")


@pytest.fixture(scope="module")
def address(serve, sample):
    return serve(sample)


def ready(view):
    """Wait until the list can be edited."""
    view.page.locator("[data-example] .row").first.wait_for()


def grade(view, rank, value):
    view.page.locator("[data-example] .row").nth(rank - 1).locator(f'button[data-grade="{value}"]').click()


def value_becomes(view, text):
    view.page.wait_for_function(
        "text => document.querySelector('[data-example] .value')?.textContent === text", arg=text
    )


def test_a_grade_that_is_changed_changes_the_score_as_by_hand(tab, address):
    view = tab(f"{address}/learn/AP")
    ready(view)
    value_becomes(view, "0.5667")  # (1 + 2/3 + 3/5) / 4
    grade(view, 2, 1)
    value_becomes(view, "0.7600")  # (1 + 2/2 + 3/3 + 4/5) / 5
    assert "R = relevant documents in the qrels = 5" in view.page.locator("[data-example]").inner_text()
    grade(view, 1, 0)
    value_becomes(view, "0.4417")  # (1/2 + 2/3 + 3/5) / 4
    view.clean()


def test_a_graded_example_with_its_missing_document(tab, address):
    view = tab(f"{address}/learn/CG")
    ready(view)
    value_becomes(view, "6.0000")  # CG@5
    grade(view, 2, 3)
    value_becomes(view, "9.0000")
    assert view.page.get_by_role("list", name="Judged and not returned").locator("b").all_inner_texts() == ["2"]
    view.clean()


def test_a_lesson_is_guessed_looked_up_and_gone_on_from(tab, address):
    view = tab(f"{address}/learn/lessons/rank-matters")
    page = view.page
    ready(view)
    answer = page.locator("details.answer")
    assert not answer.locator("table").is_visible()
    answer.locator("> summary").focus()
    page.keyboard.press("Enter")
    rows = [row.inner_text().split("\t") for row in answer.locator("tbody tr").all()]
    assert rows[:4] == [
        ["AP", "0.567", "0.442", "yes"],
        ["P@5", "0.600", "0.600", "no"],
        ["R@5", "0.750", "0.750", "no"],
        ["RR", "1.000", "0.500", "yes"],
    ]
    grade(view, 1, 0)
    grade(view, 2, 1)
    value_becomes(view, "0.4417")  # what the lesson says of the swap
    page.get_by_role("link", name="Gain and discount").click()
    assert page.locator("h1").inner_text() == "Gain and discount"
    assert page.get_by_text("Lesson 5 of 9").is_visible()
    view.clean()


def test_search_by_tool_name_with_the_keyboard(tab, address):
    view = tab(f"{address}/learn")
    page = view.page
    page.get_by_label("Name or words").focus()
    page.keyboard.type("ndcg_cut_10")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn?q=ndcg_cut_10*")
    assert page.get_by_role("status").inner_text() == f"1 measure of {len(REGISTRY)}. ndcg_cut_10 is called nDCG here."
    page.get_by_role("status").get_by_role("link", name="nDCG").press("Enter")
    page.wait_for_url("**/learn/nDCG")
    ready(view)
    view.clean()


def test_the_chooser_is_answered_from_the_keyboard(tab, address):
    view = tab(f"{address}/choose?about=described")
    page = view.page
    page.locator('select[name="relevant"]').focus()
    page.keyboard.press("ArrowUp")  # one
    page.locator('select[name="length"]').focus()
    page.keyboard.press("ArrowDown")  # 1000
    page.get_by_role("button", name="Show advice").press("Enter")
    page.wait_for_url("**relevant=one*")
    recommended = page.locator(".recommended-measures a").all_inner_texts()
    assert recommended == ["RR@10", "Success@10", "R@100", "R@1000", "Judged@10"]
    page.get_by_role("link", name="Success@10").first.click()
    page.wait_for_url("**/learn/Success")
    ready(view)
    view.clean()


def test_formulas_are_drawn_and_not_read_out_as_code(tab, address):
    view = tab(f"{address}/learn/DCG")
    ready(view)
    size = view.page.locator(".formula math").first.bounding_box()
    fraction = view.page.locator(".formula mfrac").first.bounding_box()
    parts = [part.bounding_box() for part in view.page.locator(".formula mfrac > *").all()[:2]]
    assert parts[0]["y"] + parts[0]["height"] <= parts[1]["y"] + 1  # one above the other
    assert fraction["height"] > 30
    assert size["width"] > 100
    view.clean()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(tab, address, path, scheme):
    view = tab(f"{address}{path}", color_scheme=scheme)
    if view.page.locator("[data-example]").count():
        ready(view)
    for details in view.page.locator("main details").all():
        details.evaluate("one => { one.open = true; }")
    view.accessible()
    view.clean()


@pytest.mark.parametrize("path", [*PAGES, "/learn?q=xyzzy", "/learn/BPMD", "/learn/Compat", "/learn/PrefShare"])
def test_pages_fit_a_telephone(tab, address, path):
    view = tab(f"{address}{path}", width=375)
    if view.page.locator("[data-example]").count():
        ready(view)
    view.fits()
    view.clean()


def test_example_and_steps_without_scripts(tab, address):
    view = tab(f"{address}/learn/AP", java_script_enabled=False)
    example = view.page.locator(".example")
    assert "0.5667" in example.inner_text()
    assert "AP = sum of precision / R = 2.2667 / 4 = 0.5667" in example.inner_text()
    assert example.locator(".ranks li b").all_inner_texts() == ["1", "0", "1", "0", "1"]
    view.clean()
