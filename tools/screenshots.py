"""Take screenshots of the workbench for the documentation, or into another folder.

python tools/screenshots.py --to FOLDER --width 375 --width 1280 --width 2560 --scheme light --scheme dark
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import chromium, served

from judged.interface.pages.workspace import open_sample
from judged.web.app import make_app

DOCS = Path(__file__).resolve().parents[1] / "docs" / "images"
CLASSIC = "list=3,0,2,1,0&cutoff=5&gain=exp2"
PAGES = {
    "home": "/",
    "evaluator": f"/evaluator?{CLASSIC}",
    "evaluator-two": f"/evaluator?{CLASSIC}&other=3:d1,2:d3,1:d4,0:d2,0:d5",
    "leaderboard": "/leaderboard",
    "compare": "/compare?first=tfidf&second=bm25",
    "topics": "/topics",
    "topic": "/topic?topic=t02&first=tfidf&second=bm25",
    "matrix": "/matrix?run=bm25&by=query_class",
    "slices": "/slices?by=query_class",
    "experiment-try": "/experiment/try?topic=t09&setting=stemmer&value=english",
    "learn": "/learn",
    "measure": "/learn/nDCG",
    "choose": "/choose",
    "open": "/open",
    "api": "/api",
}


def take_screenshot(
    browser: Any, address: str, path: Path, width: int, scheme: str, *, is_full_page: bool
) -> list[str]:
    """Save a screenshot; return the console messages."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    messages: list[str] = []
    record_message: Callable[[Any], None] = lambda message: messages.append(f"{path.name}: {message.text}")  # noqa: E731
    page.on("console", record_message)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    if page.locator(".chart[data-chart]").count():
        page.wait_for_selector("html[data-charts-rendered]", timeout=60_000)
    page.screenshot(path=path, full_page=is_full_page)
    context.close()
    return messages


def main() -> None:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=DOCS)
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--scheme", choices=["light", "dark"], action="append")
    parser.add_argument("--page", choices=list(PAGES), action="append")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    many = len(given.width or []) + len(given.scheme or []) > 0
    with served(make_app(open_sample())) as address, chromium() as browser:
        for name in given.page or PAGES:
            for width in given.width or [1280]:
                for scheme in given.scheme or ["light"]:
                    path = given.to / (f"{name}-{width}-{scheme}.png" if many else f"{name}.png")
                    for text in take_screenshot(browser, address + PAGES[name], path, width, scheme, is_full_page=many):
                        print(text)


if __name__ == "__main__":
    main()
