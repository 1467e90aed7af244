"""Open the pages of the workbench with the sample, and report what a reader would stumble over.

python tools/check_pages.py [--width 375 ...] [--scheme light ...] [--to FOLDER]

Reports violations of axe-core, clipped cells, pages wider than the window, tables that scroll on a wide screen, console
messages, and headlines that are not visible without scrolling. Prints the lowest headline of each window size. ``--to``
saves a screenshot of each page. Exit code 1 if there is a problem.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from browser import chromium, served

from judged.interface.pages.workspace import open_sample
from judged.labels.pages.tasks import trial_store
from judged.web.app import make_app

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace

HEADLINES = (
    "/",
    "/leaderboard",
    "/compare?first=tfidf&second=bm25",
    "/topics",
    "/topic?topic=t02&first=tfidf&second=bm25",
    "/slices?by=query_class",
    "/matrix?run=bm25&by=query_class",
    "/change?first=bm25&second=tfidf",
    "/traces",
    "/traces/failures",
    "/rag",
    "/users",
    "/users/test",
    "/clicks",
    "/history",
)
"""Pages that answer a question, with a headline."""
ADDRESSES = (
    *HEADLINES,
    "/leaderboard?details=difference&curve=nDCG",
    "/leaderboard?measures=AP,RR,P@5,Bpref&rel=2",
    "/leaderboard?where=query_class+%3D%3D+'how-to'",
    "/compare?first=bm25&second=bm25_title&by=query_class&outcome=losses",
    "/compare?first=tfidf&second=bm25&measure=R@100",
    "/topics?runs=bm25&runs=tfidf",
    "/topics?q=file",
    "/topic?topic=t12&first=bm25_title&second=rrf&measure=AP",
    "/slices?by=length&run=*",
    "/slices?by=query_class&run=bm25&baseline=tfidf",
    "/matrix?run=bm25&baseline=tfidf",
    "/evaluator?list=3,0,2,1,0&cutoff=5",
    "/evaluator?list=3,0,2,1,0&cutoff=5&other=3:d1,2:d3,1:d4,0:d2,0:d5",
    "/traces?by=query_class",
    "/traces/gaps",
    "/traces/topic?topic=t34&doc=gzip.compress",
    "/rag/scores",
    "/rag/topic",
    "/experiment",
    "/experiment/try?topic=t09&setting=stemmer&value=english",
    "/clicks/ranks",
    "/history/change",
    "/clicks/people",
    "/users/watch",
    "/judging",
    "/learn",
    "/learn/nDCG",
    "/learn/lessons/gain-and-discount",
    "/choose",
    "/open",
    "/api",
    "/search?q=ndcg",
    "/learn/lessons",
    "/judging/disagreements",
    "/labels/quality",
    "/labels/calibration",
)
WIDTHS = (375, 768, 1280, 1440, 1920)
MAX_TOP = {1440: (900, 400), 390: (844, 500)}
"""Window height, and largest position of the lower edge of chip and number, by window width."""
_CLIPPED = """() => [...document.querySelectorAll("main :is(th, td, .figure, .chip, .range, dd)")].filter((cell) => {
    const inside = [...cell.querySelectorAll("*:not(svg *)")];
    const parts = [cell, ...inside].filter((part) => !part.closest("bdi.name, .visually-hidden"));
    return /\\d/.test(cell.textContent) && cell.offsetParent !== null && parts.some((part) =>
        part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0 && getComputedStyle(part).display !== "inline"
        && getComputedStyle(part).overflowX !== "auto" && getComputedStyle(part).overflowX !== "scroll");
}).slice(0, 5).map((cell) => cell.textContent.trim().slice(0, 60))"""
PHONE = 640
"""Window width in pixels below which pages have the layout of phones."""
WIDE = 1440
"""Window width in pixels from which tables should not scroll."""
SCROLLING = frozenset({"/leaderboard?details=difference&curve=nDCG"})
"""Pages with a table that scrolls in any window: all intervals of many measures."""
_SCROLLED = """() => [...document.querySelectorAll("main .scroll")].filter((part) =>
    part.offsetParent !== null && !part.closest("details:not([open])") && part.scrollWidth > part.clientWidth + 1
).map((part) => part.ariaLabel)"""
_BOTTOM = """() => Math.max(...[".headline .chip", ".headline .figure"].map((place) =>
    document.querySelector(place)?.getBoundingClientRect().bottom ?? Infinity))"""


def page_problems(page: Any) -> Iterator[str]:
    """Yield problems of the open page: its width, clipped cells, and violations of axe-core."""
    from axe_playwright_python.sync_playwright import Axe

    width = page.evaluate("document.documentElement.scrollWidth")
    if width > page.viewport_size["width"]:
        yield f"{width} pixels wide"
    if page.viewport_size["width"] >= WIDE and not page.url.endswith(tuple(SCROLLING)):
        yield from (f"table scrolls: {name}" for name in page.evaluate(_SCROLLED))
    for cell in page.evaluate(_CLIPPED):
        yield f"clipped: {cell}"
    for violation in Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]:
        if violation["impact"] in {"serious", "critical"}:
            yield f"{violation['id']}: {violation['nodes'][0]['html'][:120]}"


def sample_with_labels(folder: Path) -> Workspace:
    """Open the sample with labels of two people and a model; each has other grades than the qrels at some documents."""
    workspace = open_sample()
    store = trial_store(workspace, folder / "labels.sqlite")
    table = workspace.qrels.table
    names: zip[tuple[str, str]] = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    grades: dict[tuple[str, str], float] = dict(zip(names, table["relevance"].to_pylist(), strict=True))
    pairs = [(task.query_id, task.doc_id) for task in store.tasks("ann")]
    for every, (judge, kind) in enumerate((("ann", "human"), ("ben", "human"), ("model", "model")), 5):
        given = [1.0 if i % every == 0 else grades.get(pair, 0.0) for i, pair in enumerate(pairs)]
        rows = [
            {"judge": judge, "kind": kind, "query_id": topic, "doc_id": doc_id, "grade": grade}
            for (topic, doc_id), grade in zip(pairs, given, strict=True)
        ]
        store.add_many(rows)
    return replace(workspace, labels=store)


def open_in_windows(
    page: Any, address: str, widths: Iterable[int], schemes: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Show a page in windows of several widths, from narrow to wide, and in several color schemes."""
    previous = 0
    for width in sorted(widths):
        page.set_viewport_size({"width": width, "height": 900})
        if previous > PHONE:
            page.wait_for_timeout(400)  # charts are drawn again
        else:  # scripts fold the settings of a page that is opened on a phone
            open_page(page, address)
        previous = width
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            yield width, scheme


def open_page(page: Any, address: str) -> None:
    """Open a page, and wait until its charts are drawn."""
    page.goto(address)
    page.wait_for_load_state("networkidle")
    if page.locator(".chart[data-chart]").count():
        page.wait_for_selector("html[data-charts-rendered]", timeout=60_000)


def main() -> None:
    """Check all pages, and print the problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--scheme", choices=("light", "dark"), action="append")
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    problems, widths, schemes = list[str](), options.width or WIDTHS, options.scheme or ("light", "dark")
    with (
        TemporaryDirectory() as folder,
        served(make_app(sample_with_labels(Path(folder)))) as server,
        chromium() as browser,
    ):
        context = browser.new_context()
        context.set_default_timeout(120_000)
        page, messages = context.new_page(), list[str]()
        page.on("console", lambda message: messages.append(f"console: {message.text}"))
        for number, address in enumerate(ADDRESSES, 1):
            for width, scheme in open_in_windows(page, server + address, widths, schemes):
                found = [*page_problems(page), *messages]
                messages.clear()
                problems += [f"{address} at {width}, {scheme}: {problem}" for problem in found]
                if options.to:
                    options.to.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=options.to / f"{number:02}-{width}-{scheme}.png", full_page=True)
        context.close()
        for width, (height, max_top) in MAX_TOP.items():
            bottoms = headline_bottoms(browser, server, width, height)
            lowest = max(bottoms, key=bottoms.__getitem__)
            print(f"{width} x {height}: chips and numbers of {len(bottoms)} pages end at most at pixel", end=" ")
            print(f"{bottoms[lowest]:.0f}, {lowest}")
            problems += [
                f"{address} at {width}: the headline ends at {bottom} pixels, expected at most {max_top}"
                for address, bottom in bottoms.items()
                if not bottom <= max_top
            ]
    print("\n".join(problems) or f"{len(ADDRESSES)} pages without problems")
    sys.exit(bool(problems))


def headline_bottoms(browser: Any, server: str, width: int, height: int) -> dict[str, float]:
    """Return the lower edge of chip and number in pixels, by address; infinity if one is missing."""
    context = browser.new_context(viewport={"width": width, "height": height})
    page, bottoms = context.new_page(), dict[str, float]()
    for address in HEADLINES:
        open_page(page, server + address)
        bottom = page.evaluate(_BOTTOM)
        bottoms[address] = float("inf") if bottom is None else bottom
    context.close()
    return bottoms


if __name__ == "__main__":
    main()
