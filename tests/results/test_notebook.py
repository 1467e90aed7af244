"""The output of a notebook cell: complete, short, readable in all themes, and without effect on the notebook."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

import judged
from judged.data import sample
from judged.results import (
    COUNT,
    NUMBER,
    TEXT,
    Chart,
    Column,
    Headline,
    RankedList,
    RankedLists,
    Section,
    Sentences,
    Table,
)
from judged.results.blocks import Note, RankedDocument
from judged.results.notebook import MAX_ROWS, cell_html

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

pytestmark = pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
TABLE = Table(
    "numbers",
    (Column("name", ["a", "b"], TEXT), Column("value", [0.25, 0.5], NUMBER, ci=[(0.1, 0.3), (0.4, 0.6)])),
    labels=1,
)
LONG = Table("long", (Column("row", list(range(1200)), COUNT),), note="from a log", folded=True)
CHART = Chart("lines", "Title", TABLE, "All grow.", x="value", y="name")
LISTS = RankedLists(
    "topic", "topic t1", (), (RankedList("bm25", "", (RankedDocument("1", "d1", "2", relevant=True),)),)
)
BLOCKS = (
    Section("first", "First part", (TABLE, Sentences(("One.",)))),
    Section("second", "Second part", (CHART, LISTS)),
    LONG,
)
HEADLINE = Headline("better", "better", "b is better than a.", "AP, b - a", 0.25, ci=(0.1, 0.4), reference=0)
THEMES = {"light": ("#212121", "#ffffff"), "dark": ("#e0e0e0", "#111111")}  # of JupyterLab


def curves(n: int) -> Any:
    return judged.curve(sample.qrels(), sample.runs()[:n], "P", cutoffs=5)


class Elements(HTMLParser):
    """Names and attributes of all elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))


def style_rules(text: str, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the depth and the selector of each rule."""
    style = re.sub(r"/\*.*?\*/", "", re.findall(r"<style>(.*?)</style>", text, re.DOTALL)[0], flags=re.DOTALL)
    start = 0
    for match in re.finditer(r"[{};]", style):
        if match[0] == "{":
            yield depth, style[start : match.start()].strip()
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        start = match.end()
    assert depth == 0


def test_the_style_changes_nothing_outside_of_the_output() -> None:
    rules = list(style_rules(cell_html(BLOCKS)))
    assert [selector for depth, selector in rules if depth == 0] == [".judged-result"]
    assert len(rules) > 40
    for _, selector in rules:
        assert not re.search(r"@|(^|[\s,])(:root|html|body)\b", selector)


def test_headings_and_anchors_stay_out_of_the_outline_of_the_notebook() -> None:
    elements = Elements(cell_html(BLOCKS, (), HEADLINE)).all
    names = {name for name, _ in elements}
    assert names.isdisjoint({"h1", "h2", "h3", "h4", "h5", "h6", "script", "link", "img"})
    assert not [attributes for name, attributes in elements if "id" in attributes and name != "clippath"]


def test_one_section_is_open_and_everything_is_there() -> None:
    output = cell_html(BLOCKS, (Note("ties", "There are ties."),), HEADLINE)
    details = [attributes for name, attributes in Elements(output).all if name == "details"]
    assert [("open" in attributes) for attributes in details] == [True, False, False, False, False]
    assert re.findall(r"<summary>(.*?)</summary>", output) == [
        "First part", "Second part", "Data of this chart", "topic t1", "long",
    ]  # fmt: skip
    assert output.index("b is better than a.") < output.index("First part") < output.index("There are ties.")


def test_a_long_table_is_cut_and_says_so() -> None:
    output = cell_html([LONG])
    assert output.count("<tr>") == 1 + MAX_ROWS
    assert f">{MAX_ROWS - 1}<" in output
    assert "from a log; 50 of 1,200 rows; <code>to_pandas(&quot;long&quot;)</code> has all" in output
    assert "50 of 51 rows" in cell_html([LONG.take(range(MAX_ROWS + 1))])
    assert "50 of" not in cell_html([LONG.take(range(MAX_ROWS))])
    assert "text(unfold=[&quot;long&quot;])" in cell_html([replace(LONG, only="people")])


def test_clip_paths_of_two_charts_have_different_names() -> None:
    outputs = [curves(n)._repr_html_() for n in (2, 3, 2)]
    names = [re.findall(r'id="(clip[^"]*)"', output) for output in outputs]
    assert len(names[0]) == len(set(names[0])) > 0
    assert set(names[0]).isdisjoint(names[1])
    assert set(re.findall(r"url\(#([^)]*)\)", outputs[0])) == set(names[0])
    assert outputs[0] == outputs[2]


def test_charts_are_drawn_once_and_folded_ones_not() -> None:
    drawing = 'xmlns="http://www.w3.org/2000/svg"'
    assert cell_html([CHART]).count(drawing) == 1
    assert 'fill="white"/>' not in cell_html([CHART]).partition(drawing)[2][:200]  # no background
    assert drawing not in cell_html([Chart("lines", "Title", TABLE, "All grow.", x="value", y="name", folded=True)])


def test_without_altair_a_chart_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    output = cell_html([CHART])
    assert 'xmlns="http://www.w3.org/2000/svg"' not in output
    assert "0.2500" in output
    assert "details" not in output.partition("</style>")[2]


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 700, "height": 900})
    yield page
    page.close()


NOTEBOOK = """<body style="color: {0}; background: {1}; --jp-layout-color0: {1}; font: 14px sans-serif; margin: 0">
<h2>Mine</h2><p>Mine</p><table><tr><th>Mine<td class="label">Mine</table><div class="headline chip">Mine</div>
<div id="cell">{2}</div>"""
CONTRAST = """
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parse = (text) => {
  const n = text.match(/[\\d.]+(e-?\\d+)?/g).map(Number);
  const rgb = n.slice(0, 3).map((v) => (text.startsWith("rgb") ? v / 255 : v));
  return [...rgb, n.length > 3 ? n[3] : 1];
};
const over = ([r, g, b, a], back) => [r, g, b].map((v, i) => a * v + (1 - a) * back[i]);
const background = (element) => {
  const own = parse(getComputedStyle(element).backgroundColor);
  const below = element.parentElement ? background(element.parentElement) : [1, 1, 1];
  return over(own, below);
};
return [...document.querySelectorAll("#cell *")].filter((element) => element.tagName !== "STYLE"
  && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((element) => {
  const back = background(element), style = getComputedStyle(element);
  const text = over(parse(element.tagName === "text" ? style.fill : style.color), back);
  const [high, low] = [luminance(text), luminance(back)].sort((a, b) => b - a);
  return [element.outerHTML.slice(0, 80), (high + 0.05) / (low + 0.05)];
});
"""


@pytest.mark.browser
@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable_in_each_theme(theme: str, page: Page) -> None:
    statuses = [Headline(status, "word", "Text.").content() for status in ("better", "worse", "same", "info")]
    output = cell_html(BLOCKS, (Note("a", "b"),), HEADLINE) + curves(6)._repr_html_()
    chips = f'<div class="judged-result">{"".join(statuses)}</div>'
    page.set_content(NOTEBOOK.format(*THEMES[theme], output + chips))
    contrasts = page.evaluate(f"() => {{ {CONTRAST} }}")
    assert len(contrasts) > 60
    assert [text for text in contrasts if text[1] < 4.5] == []


@pytest.mark.browser
def test_the_notebook_looks_as_before_and_the_output_fits(page: Page) -> None:
    looks = """() => [...document.querySelectorAll("body, body > :not(#cell), body > :not(#cell) *")].map(
      (element) => JSON.stringify(Object.values(getComputedStyle(element)).map((name) =>
        name.includes("-size") || name === "height" ? "" : getComputedStyle(element).getPropertyValue(name))))"""
    page.set_content(NOTEBOOK.format(*THEMES["light"], ""))
    before = page.evaluate(looks)
    wide = Table("wide", tuple(Column(f"column_{i}", [f"value {i}"], TEXT) for i in range(30)))
    page.set_content(NOTEBOOK.format(*THEMES["light"], cell_html((*BLOCKS, wide), (), HEADLINE)))
    after = page.evaluate(looks)
    assert len(before) == len(after) > 8
    assert [a == b for a, b in zip(before[1:], after[1:], strict=True)] == [True] * (len(before) - 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.evaluate("document.querySelector('[data-table=wide]').scrollWidth") > 1000
