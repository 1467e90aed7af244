"""The page in a browser: it asks for nothing, complains of nothing, draws every chart, and fits every width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def path(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("browser") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file


@pytest.fixture
def opened(browser: Any, path: Path) -> Iterator[Callable[..., tuple[Any, list[str], list[str]]]]:
    contexts: list[Any] = []

    def show(width: int = 1280, **options: Any) -> tuple[Any, list[str], list[str]]:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        faults: list[str] = []
        requests: list[str] = []
        tab.on("console", lambda message: faults.append(message.text))
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("dialog", lambda dialog: (faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        if options.get("java_script_enabled", True):
            tab.wait_for_selector("html[data-charts-rendered]", timeout=60_000)
        return tab, faults, requests

    yield show
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [375, 1280, 1920])
def test_it_is_drawn_whole_and_asks_for_nothing(opened: Any, path: Path, width: int) -> None:
    tab, faults, requests = opened(width)
    assert faults == []
    assert requests == [path.as_uri()]
    charts = tab.locator(".chart")
    assert charts.count() == tab.locator(".chart svg").count() == 7
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    for i in range(charts.count()):
        size = charts.nth(i).locator("svg").bounding_box()
        assert size["height"] > 40
        assert size["x"] >= 0
        assert size["x"] + size["width"] <= width


def test_texts_from_files_do_nothing(opened: Any) -> None:
    tab, faults, _ = opened()
    assert faults == []
    assert tab.locator("img, main script").count() == 0
    assert "<script>alert(1)</script>" in tab.locator("h1").inner_text()


def test_colors_follow_the_theme_and_the_button(opened: Any) -> None:
    tab, _, _ = opened(color_scheme="dark")
    page, text = _colors(tab)
    assert _bright(page) < 60
    assert _bright(text) > 180
    assert tab.locator("#theme").inner_text() == "Light colors"
    tab.click("#theme")
    page, text = _colors(tab)
    assert _bright(page) > 240
    assert _bright(text) < 80
    assert tab.locator("#theme").inner_text() == "Dark colors"
    tab.click("#theme")
    tab.emulate_media(media="print")
    page, text = _colors(tab)
    assert _bright(page) > 240
    assert _bright(text) < 80
    assert not tab.locator("#theme").is_visible()
    assert not tab.locator("nav").is_visible()


def _colors(tab: Any) -> tuple[str, str]:
    page = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    return page, tab.evaluate("getComputedStyle(document.querySelector('.chart svg text')).fill")


def _bright(color: str) -> float:
    return sum(float(part) for part in color.strip("rgb()").split(",")[:3]) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_texts(opened: Any, scheme: str) -> None:
    """Every text on the page, charts included, has at least 4.5 to 1 against what is behind it (WCAG AA)."""
    tab, _, _ = opened(color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    faint = tab.evaluate(
        """() => {
          const light = (text) => {
            const part = text.match(/[\\d.]+/g).slice(0, 3).map((one) => {
              const c = one / 255;
              return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
          };
          const behind = (node) => {
            for (let at = node; at; at = at.parentElement) {
              const found = getComputedStyle(at).backgroundColor;
              if (found !== "rgba(0, 0, 0, 0)" && found !== "transparent") return found;
            }
            return "rgb(255, 255, 255)";
          };
          const bad = new Set();
          const texts = [...document.querySelectorAll("body *")].filter((node) =>
            [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
          for (const node of texts) {
            if (["SCRIPT", "STYLE"].includes(node.tagName) || node.getAttribute("opacity") === "0") continue;
            const style = getComputedStyle(node);
            const ink = node.closest("svg") ? style.fill : style.color;
            if (ink === "none") continue;
            const [a, b] = [light(ink), light(behind(node))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) bad.add(`${node.tagName} ${ink} on ${behind(node)}: ${ratio.toFixed(2)}`);
          }
          return [texts.length, [...bad]];
        }"""
    )
    assert faint[0] > 300
    assert faint[1] == []


def test_without_scripts_the_numbers_are_there(opened: Any, sample_report: Any) -> None:
    tab, faults, _ = opened(java_script_enabled=False)
    assert faults == []
    assert not tab.locator("#theme").is_visible()
    first = sample_report.table("board").grid().rows[0]
    row = tab.locator("#leaderboard > .block > .scroll tbody tr")
    texts = [row.nth(i).inner_text() for i in range(row.count())]
    assert any(first[0] in text for text in texts)
    tab.locator("#chart-topics summary").click()
    assert tab.locator("#chart-topics tbody tr").count() == 24
    assert tab.locator("#chart-topics tbody tr").first.is_visible()


def test_by_keyboard(opened: Any) -> None:
    tab, _, _ = opened()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the report"
    tab.keyboard.press("Enter")
    assert tab.evaluate("location.hash") == "#content"
    tab.focus("#theme")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
