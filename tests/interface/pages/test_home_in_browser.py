"""Home page, upload form, and API page in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browsing import served
from judged.web.app import make_app
from judged.web.uploads import Limits

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
RUN = "q1 Q0 d2 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d3 1 1.0 t\n"


@pytest.fixture(scope="module")
def address(sample):
    """A workbench of its own: what is open is replaced."""
    with served(make_app(sample, limits=Limits(file=2_000, total=3_000))) as address:
        yield address


@pytest.fixture
def files(tmp_path):
    for name, text in {"my.qrels": QRELS, "a.run": RUN, "b.run": RUN, "bad.run": RUN + "q1 Q0 d5 3 ten t\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "large.run").write_text(RUN * 100)
    return tmp_path


@pytest.mark.parametrize("page", ["/", "/open", "/api"])
@pytest.mark.parametrize(("width", "scheme"), [(375, "light"), (1280, "dark")])
def test_pages_fit_are_accessible_and_quiet(serve, sample, tab, page, width, scheme):
    view = tab(serve(sample) + page, width=width, color_scheme=scheme)
    view.fits()
    view.accessible()
    view.clean()


def test_files_are_opened_and_the_sample_comes_back(address, tab, files):
    view = tab(f"{address}/open")
    page = view.page
    page.set_input_files("#qrels", files / "my.qrels")
    page.set_input_files("#runs", [files / "a.run", files / "b.run"])
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_url(f"{address}/")
    assert page.locator("header .collection").inner_text() == "my"
    expect(page.locator("tbody tr")).to_have_count(2)
    assert page.locator("tbody tr").first.inner_text().split() == ["a", "0.8155", "●", "baseline", "0", "3"]
    page.get_by_role("link", name="Open other files").click()
    page.get_by_role("button", name="Open the sample").click()
    page.wait_for_url(f"{address}/")
    assert page.locator("header .collection").inner_text().startswith("the sample")
    view.clean()


def test_a_form_by_keyboard_and_without_scripts(address, browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/open")
    page.set_input_files("#qrels", files / "my.qrels")
    page.set_input_files("#runs", files / "bad.run")
    page.focus("#documents")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#error")
    error_text = page.inner_text("#error")
    assert "bad.run:4" in error_text
    assert "The previous data are still open" in error_text
    page.set_input_files("#qrels", files / "my.qrels")
    page.get_by_role("button", name="Open", exact=True).press("Enter")
    page.wait_for_url(f"{address}/")
    assert "No run is open" in page.inner_text("main")
    context.close()


def test_oversized_files_are_reported_before_upload(address, tab, files):
    view = tab(f"{address}/open")
    page = view.page
    page.set_input_files("#runs", files / "large.run")
    assert page.inner_text("#size-problem") == "A file can have at most 1 MB, but large.run has 1 MB."
    assert page.get_by_role("button", name="Open", exact=True).is_disabled()
    page.set_input_files("#runs", [])
    assert page.locator("#size-problem").is_hidden()
    assert page.get_by_role("button", name="Open", exact=True).is_enabled()
    view.clean()


def test_another_site_cannot_open_anything(address, browser):
    """A page of another origin sends a form to the workbench: it is refused, whatever the page is."""
    context = browser.new_context()
    page = context.new_page()
    before = page.goto(f"{address}/api/v1/open").text()
    page.goto("about:blank")
    page.set_content(f"<form method=post action='{address}/open/sample'><button>x</button></form>")
    with page.expect_response(f"{address}/open/sample") as got:
        page.click("button")
    assert got.value.status == 403
    assert page.goto(f"{address}/api/v1/open").text() == before
    context.close()


def test_an_example_of_the_api_works_when_it_is_clicked(serve, sample, tab):
    view = tab(f"{serve(sample)}/api")
    page = view.page
    page.locator("#get-api-v1-open .example a").click()
    assert '"judgments":1613' in page.content()
    page.go_back()
    expect(page.locator("#get-api-v1-slices tbody tr")).to_have_count(8)
    view.clean()
