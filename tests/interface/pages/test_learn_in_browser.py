"""The pages to learn from, as a reader uses them: with a keyboard, on a telephone, in the dark, and without scripts."""

from __future__ import annotations

import pytest

from judged.scoring.measures.registry import REGISTRY

PAGES = ("/learn", "/learn/nDCG", "/learn/lessons/gain-and-discount", "/choose", "/choose?about=described")


@pytest.fixture(scope="module")
def address(serve, sample):
    return serve(sample)


def ready(shown):
    """Wait until the list can be edited."""
    shown.page.locator("[data-example] .row").first.wait_for()


def grade(shown, rank, value):
    shown.page.locator("[data-example] .row").nth(rank - 1).locator(f'button[data-grade="{value}"]').click()


def value_becomes(shown, text):
    shown.page.wait_for_function(
        "text => document.querySelector('[data-example] .value')?.textContent === text", arg=text
    )


def test_a_grade_that_is_changed_changes_the_score_as_by_hand(tab, address):
    shown = tab(f"{address}/learn/AP")
    ready(shown)
    value_becomes(shown, "0.5667")  # (1 + 2/3 + 3/5) / 4
    grade(shown, 2, 1)
    value_becomes(shown, "0.7600")  # (1 + 2/2 + 3/3 + 4/5) / 5
    assert "R = relevant documents in the qrels = 5" in shown.page.locator("[data-example]").inner_text()
    grade(shown, 1, 0)
    value_becomes(shown, "0.4417")  # (1/2 + 2/3 + 3/5) / 4
    shown.clean()


def test_a_graded_example_with_its_missing_document(tab, address):
    shown = tab(f"{address}/learn/CG")
    ready(shown)
    value_becomes(shown, "6.0000")  # CG@5
    grade(shown, 2, 3)
    value_becomes(shown, "9.0000")
    assert shown.page.get_by_role("list", name="Judged and not returned").locator("b").all_inner_texts() == ["2"]
    shown.clean()


def test_a_lesson_is_guessed_looked_up_and_gone_on_from(tab, address):
    shown = tab(f"{address}/learn/lessons/rank-matters")
    page = shown.page
    ready(shown)
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
    grade(shown, 1, 0)
    grade(shown, 2, 1)
    value_becomes(shown, "0.4417")  # what the lesson says of the swap
    page.get_by_role("link", name="Gain and discount").click()
    assert page.locator("h1").inner_text() == "Gain and discount"
    assert page.get_by_text("Lesson 5 of 9").is_visible()
    shown.clean()


def test_the_name_of_another_tool_is_found_from_the_keyboard(tab, address):
    shown = tab(f"{address}/learn")
    page = shown.page
    page.get_by_label("Name or words").focus()
    page.keyboard.type("ndcg_cut_10")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn?q=ndcg_cut_10*")
    assert page.get_by_role("status").inner_text() == f"1 measure of {len(REGISTRY)}. ndcg_cut_10 is called nDCG here."
    page.get_by_role("status").get_by_role("link", name="nDCG").press("Enter")
    page.wait_for_url("**/learn/nDCG")
    ready(shown)
    shown.clean()


def test_the_chooser_is_answered_from_the_keyboard(tab, address):
    shown = tab(f"{address}/choose?about=described")
    page = shown.page
    page.locator('input[name="relevant"][value="few"]').focus()
    page.keyboard.press("ArrowUp")  # one
    page.locator('input[name="length"][value="100"]').focus()
    page.keyboard.press("ArrowDown")  # 1000
    page.keyboard.press("Enter")
    page.wait_for_url("**relevant=one*")
    chosen = page.locator(".chosen a").all_inner_texts()
    assert chosen == ["RR@10", "Success@10", "R@100", "R@1000", "Judged@10"]
    page.get_by_role("link", name="Success@10").first.click()
    page.wait_for_url("**/learn/Success")
    ready(shown)
    shown.clean()


def test_formulas_are_drawn_and_not_read_out_as_code(tab, address):
    shown = tab(f"{address}/learn/DCG")
    ready(shown)
    size = shown.page.locator(".formula math").first.bounding_box()
    fraction = shown.page.locator(".formula mfrac").first.bounding_box()
    parts = [one.bounding_box() for one in shown.page.locator(".formula mfrac > *").all()[:2]]
    assert parts[0]["y"] + parts[0]["height"] <= parts[1]["y"] + 1  # one above the other
    assert fraction["height"] > 30
    assert size["width"] > 100
    shown.clean()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(tab, address, path, scheme):
    shown = tab(f"{address}{path}", color_scheme=scheme)
    if shown.page.locator("[data-example]").count():
        ready(shown)
    for details in shown.page.locator("main details").all():
        details.evaluate("one => { one.open = true; }")
    shown.accessible()
    shown.clean()


@pytest.mark.parametrize("path", [*PAGES, "/learn?q=xyzzy", "/learn/BPMD", "/learn/Compat", "/learn/PrefShare"])
def test_pages_fit_a_telephone(tab, address, path):
    shown = tab(f"{address}{path}", width=375)
    if shown.page.locator("[data-example]").count():
        ready(shown)
    shown.fits()
    shown.clean()


def test_without_scripts_the_example_and_its_steps_are_there(tab, address):
    shown = tab(f"{address}/learn/AP", java_script_enabled=False)
    example = shown.page.locator(".example")
    assert "0.5667" in example.inner_text()
    assert "AP = sum of precision / R = 2.2667 / 4 = 0.5667" in example.inner_text()
    assert example.locator(".ranks li b").all_inner_texts() == ["1", "0", "1", "0", "1"]
    shown.clean()
