"""One look: sizes and colors have names, in one file; names of people's things are whole wherever they are cut."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

import judged
from browsing import served
from judged.results import CHANGE, TEXT, Chart, Column, Table
from judged.results.charts import shorten_label
from judged.results.html import name_html, prose, specifications, stylesheet
from web.look_page import example, with_look

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(judged.__file__).parent
TOKENS = PACKAGE / "results" / "charts" / "tokens.css"
NOTEBOOK = PACKAGE / "results" / "notebook.css"  # has the sizes and colors of the notebook: results/test_notebook.py
STYLES = sorted({*PACKAGE.rglob("*.css")} - {TOKENS, NOTEBOOK})
TEMPLATES = sorted(PACKAGE.rglob("*.html"))
RAW_COLOR = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|\b(?:rgba?|hsla?|oklch|light-dark|color-mix)\(|\b(?:white|black|red|gray|gray)\b"
)
SPACE = re.compile(r"(?:margin|padding|gap|row-gap|column-gap)(?:-\w+)*")
LENGTH = re.compile(r"(?<![\w-])-?\d*\.?\d+(?:rem|px|pt|mm)\b")
HAIR = {"1px", "-1px", "2px"}  # lines that lie over one another


def declarations(style: Path) -> list[tuple[str, str]]:
    """Give the properties and values of a style, without what they are selected by, and without comments."""
    text = re.sub(r"/\*.*?\*/", "", style.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"@page \{[^}]*\}", "", text)  # the margins of paper
    pairs = re.findall(r"(?:(?<=[{;])|^)\s*([\w-]+):\s*([^;{}]+)(?=[;}])", text)
    assert pairs
    return [(name, value.strip()) for name, value in pairs]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_only_tokens_have_sizes_and_colors(style: Path) -> None:
    for name, value in declarations(style):
        bare = re.sub(r"var\([\w-]+\)", "", value)
        assert not RAW_COLOR.search(bare), f"{name}: {value}"
        if name in {"font-size", "font", "font-family"}:
            assert re.fullmatch(r"inherit|(?:/[\d.]+)?\s*", bare.strip()), f"{name}: {value}"
        if SPACE.fullmatch(name):
            assert {*LENGTH.findall(bare)} <= HAIR, f"{name}: {value}"
        if name == "border-radius":
            assert not LENGTH.search(bare), f"{name}: {value}"


def test_every_token_is_there_and_used() -> None:
    defined = {*re.findall(r"(--[\w-]+):", TOKENS.read_text(encoding="utf-8"))}
    css = "\n".join(style.read_text(encoding="utf-8") for style in STYLES)
    tokens = {*re.findall(r"(--[\w-]+):", css)}
    assert {*re.findall(r"var\((--[\w-]+)", css)} <= defined | tokens
    assert {name for name in defined if f"var({name})" not in css} == set()
    assert not tokens & (defined - {"--name"})


@pytest.mark.parametrize("page", TEMPLATES, ids=lambda page: page.name)
def test_pages_have_no_style_of_their_own(page: Path) -> None:
    assert not re.search(r'\sstyle="', page.read_text(encoding="utf-8"))


def test_workbench_and_files_share_the_look() -> None:
    assert stylesheet().startswith("/*")
    assert "--text-s:" in stylesheet()
    assert "bdi.name" in stylesheet()


@pytest.mark.parametrize(
    "name", ["bm25", "x" * 80 + "_2024-05-31", "<b>" * 20, "\N{HEBREW LETTER ALEF}" * 40, "a -0.5 b"]
)
def test_a_name_is_whole_whatever_is_shown_of_it(name: str) -> None:
    written = name_html(name)
    assert re.fullmatch("<bdi.*</bdi>", written)
    assert unescape(re.sub("<[^>]*>", "", written)) == name
    titles = re.findall(r'title="([^"]*)"', written)
    assert [unescape(title) for title in titles] == ([name] if len(name) > 33 else [])


def test_a_minus_is_one_in_numbers_alone() -> None:
    assert prose("-0.25 [-.5, -1.0]") == "~0.25 [~.5, ~1.0]".replace("~", "\N{MINUS SIGN}")
    assert prose("run-1, t-2.5, `x == -0.5`, -3, --5.0") == "run-1, t-2.5, <code>x == -0.5</code>, -3, --5.0"


@pytest.mark.parametrize("name", ["a" * 80, "short", "with a space " * 9])
def test_charts_cut_long_names_alone(name: str) -> None:
    table = Table("runs", (Column("run", [name], TEXT), Column("value", [-0.25], CHANGE)))
    spec = str(specifications([Chart("dots", "", table, "", y="run")])["dots"])
    assert shorten_label() in spec
    assert name in spec
    assert "\N{MINUS SIGN}0.2500" in spec


@pytest.fixture(scope="module")
def address(sample: Any) -> Iterator[str]:
    """A workbench with the page of all components."""
    with served(with_look(sample)) as server_address:
        yield server_address


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_every_component_fits_and_is_accessible(address: str, tab: Any, width: int, scheme: str) -> None:
    view = tab(f"{address}/look", width=width, color_scheme=scheme)
    view.page.wait_for_selector("html[data-charts-rendered]")
    expect(view.page.locator(".chart svg")).to_have_count(len(example().charts()))
    view.fits()
    view.accessible()
    view.clean()


@pytest.mark.browser
@pytest.mark.parametrize("path", ["/leaderboard", "/compare", "/look"])
def test_paper_has_all_columns(address: str, tab: Any, path: str) -> None:
    page = tab(address + path, width=680).page  # what A4 has between its margins
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
