"""The site is built without a warning, every link has a target, and nothing needs a network, not even the search."""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from website.check import find_faults
from website.pages import MODULES, anchor, is_measure, public

from browsing import skip_or_fail

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None:
        skip_or_fail("mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_has_a_target_and_nothing_is_loaded_from_a_host(site: Path) -> None:
    assert find_faults(site) == []


def test_every_public_name_is_on_its_page(site: Path) -> None:
    for module in MODULES:
        text = (site / "reference" / f"{module}.html").read_text(encoding="utf-8")
        for name, value in public(module).items():
            anchored = f"../measures.html#{anchor(value)}" if is_measure(value) else f'id="{module}.{name}"'
            assert anchored in text, (module, name)


def test_faults_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="x"><a href="#x"><a href="#y"><a href="b.html"><a href="https://a.b/">')
    (tmp_path / "c.html").write_text('<script src="//a.b/c.js"></script><i style="background: url(http://a.b/c)">')
    (tmp_path / "d.css").write_text("@import 'http://a.b/d.css'; i { background: url(data:,) }")
    assert sorted(find_faults(tmp_path)) == [
        "a.html: #y: no such target",
        "a.html: b.html: no such target",
        "c.html: loads //a.b/c.js",
        "c.html: loads http://a.b/c",
        "d.css: loads http://a.b/d.css",
    ]


def test_a_page_opened_as_a_file_can_be_searched(site: Path, browser: Any) -> None:
    page = browser.new_page()
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto((site / "compare.html").as_uri())
    page.fill("input[name=query]", "holm correction")
    page.wait_for_selector(".md-search-result__item")
    assert all(address.startswith("file:") for address in addresses)
    page.close()


def test_everyday_queries_find_their_page_among_the_first_three(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    results = page.locator(".md-search-result__list")
    missed = []
    with (Path(__file__).parent / "search_queries.tsv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    for row in rows:
        before = results.inner_text()
        page.fill("input[name=query]", row["query"])
        page.dispatch_event("input[name=query]", "keyup")
        link = f".md-search-result__item:nth-child(-n+3) > a[href*='/{row['page'].replace('.md', '.html')}']"
        for _ in range(50):
            page.wait_for_timeout(100)
            if results.inner_text() != before and page.locator(link).count():
                break
        else:
            missed.append((row["query"], row["page"]))
    page.close()
    assert len(rows) >= 60
    assert missed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_axe(site: Path, browser: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(color_scheme=scheme)
    violations = []
    for name in ("index", "ab-tests", "calibrated-judges", "explain", "reference/judged.stats", "404"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_timeout(300)
        results = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        violations += [(name, row["id"]) for row in results if row["impact"] in {"serious", "critical"}]
    page.close()
    assert violations == []
