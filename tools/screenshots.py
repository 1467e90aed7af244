"""Write the screenshots of the workbench for the documentation, check them, or write others for a review.

python tools/screenshots.py
python tools/screenshots.py --check
python tools/screenshots.py --to FOLDER --width 375 --width 1280 --width 2560 --scheme light --scheme dark
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import chromium, served

from judged.interface.pages.workspace import open_sample
from judged.web.app import make_app

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
CLASSIC = "list=3,0,2,1,0&cutoff=5&gain=exp2"
IN_DOCS = {
    "evaluator-two": f"/evaluator?{CLASSIC}&other=3:d1,2:d3,1:d4,0:d2,0:d5",
    "leaderboard": "/leaderboard",
    "compare": "/compare?first=tfidf&second=bm25",
    "topic": "/topic?topic=t02&first=tfidf&second=bm25",
    "matrix": "/matrix?run=bm25&by=query_class",
    "experiment-try": "/experiment/try?topic=t09&setting=stemmer&value=english",
    "measure": "/learn/nDCG",
}
PAGES = IN_DOCS | {
    "home": "/",
    "evaluator": f"/evaluator?{CLASSIC}",
    "topics": "/topics",
    "slices": "/slices?by=query_class",
    "learn": "/learn",
    "choose": "/choose",
    "open": "/open",
    "api": "/api",
}
# Largest difference between tiles of 16 x 16 pixels, of 255. Another version of a font or browser changes the edges of
# letters; another sentence, column, or chart changes whole tiles.
TOLERANCE = 20
_LARGEST_DIFFERENCE = """async sources => {
    const pixels = async source => {
        const image = await createImageBitmap(await (await fetch(source)).blob());
        const [width, height] = [Math.ceil(image.width / 16), Math.ceil(image.height / 16)];
        const context = new OffscreenCanvas(width, height).getContext("2d");
        context.imageSmoothingQuality = "high";
        context.drawImage(image, 0, 0, width, height);
        return context.getImageData(0, 0, width, height).data;
    };
    const [first, second] = await Promise.all(sources.map(pixels));
    return first.length === second.length ? Math.max(...first.map((value, i) => Math.abs(value - second[i]))) : 255;
}"""


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


def outdated_pictures(browser: Any, folder: Path = IMAGES) -> list[str]:
    """Return the outdated pictures in ``folder``, each with its largest difference between tiles."""
    outdated = []
    page = browser.new_page()
    with tempfile.TemporaryDirectory() as new_pictures, served(make_app(open_sample())) as address:
        for name, path in IN_DOCS.items():
            new, old = Path(new_pictures) / f"{name}.png", folder / f"{name}.png"
            take_screenshot(browser, address + path, new, 1280, "light", is_full_page=False)
            sources = [f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}" for file in (old, new)]
            difference = page.evaluate(_LARGEST_DIFFERENCE, sources)
            if difference > TOLERANCE:
                outdated.append(f"{old.name}: {difference:.0f} of 255, at most {TOLERANCE}")
    page.close()
    return outdated


def main() -> int:
    """Write screenshots, or check the screenshots of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--to", type=Path)
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--scheme", choices=["light", "dark"], action="append")
    parser.add_argument("--page", choices=list(PAGES), action="append")
    options = parser.parse_args()
    if options.check:
        with chromium() as browser:
            outdated = outdated_pictures(browser)
        print("\n".join(outdated), end="\n" if outdated else "")
        return 1 if outdated else 0
    folder = options.to or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    has_variants = bool(options.width or options.scheme)
    with served(make_app(open_sample())) as address, chromium() as browser:
        for name in options.page or (PAGES if options.to else IN_DOCS):
            for width in options.width or [1280]:
                for scheme in options.scheme or ["light"]:
                    path = folder / (f"{name}-{width}-{scheme}.png" if has_variants else f"{name}.png")
                    for message in take_screenshot(
                        browser, address + PAGES[name], path, width, scheme, is_full_page=has_variants
                    ):
                        print(message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
