"""Hooks of MkDocs: the pages that are made, and formulas.

The reference of the Python API is made from ``__all__`` of each public module, so that it cannot lack a name. Changelog
and handbook for contributors stand at the root of the repository and are taken from there.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown.extensions.toc import slugify
from mkdocs.structure.files import File

from judged.measures import Measure
from judged.measures.pages import page as page_of
from judged.measures.registry import REGISTRY
from judged.web.learning.markup import formula

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("judged", "judged.measures", "judged.stats", "judged.data", "judged.slicing", "judged.online")
FROM_ROOT = {name.lower(): name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
CATALOGUES = ("measures.md", "choosing.md")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the parts of the navigation that follow from what there is."""
    folders = {
        "reference/": [f"reference/{module}.md" for module in MODULES],
        "decisions/": [f"decisions/{path.name}" for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))],
    }
    for section in config.nav or ():
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                for title, target in entry.items():
                    entry[title] = folders.get(target, target)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made or stand elsewhere."""
    for module in MODULES:
        files.append(File.generated(config, f"reference/{module}.md", content=reference(module)))
    for name, source in FROM_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, written in FROM_ROOT.items():
            text = text.replace(f"]({written})", f"]({other})")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(content: str, *, page: Page, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw without a script; list no more than the names of a catalogue."""
    if page.file.src_uri in CATALOGUES:
        for title in page.toc.items:
            for entry in title.children:
                entry.children = []
    return _FORMULA.sub(lambda found: formula(html.unescape(found[2]).strip(), block=found[1] == "div"), content)


def reference(module: str) -> str:
    """Write the page of a module: its functions and classes; its measures as links into the catalogue."""
    home = importlib.import_module(module)
    public = {name: getattr(home, name) for name in sorted(home.__all__, key=str.lower) if not name.startswith("__")}
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors and warnings": [], "Values": []}
    measures: list[str] = []
    for name, value in public.items():
        if name in REGISTRY and inspect.isclass(value) and issubclass(value, Measure):
            measures.append(f"[{name}](../measures.md#{anchor(name)})")
        else:
            kinds[_kind(value)].append(f"::: {module}.{name}")
    parts = [f"# {module}", inspect.getdoc(home) or ""]
    if measures:
        parts += ["## Measures", "Each is a class with its own parameters: " + ", ".join(measures) + "."]
    for title, directives in kinds.items():
        parts += [f"## {title}", *directives] if directives else []
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    """Give the anchor of a measure in the catalogue."""
    return slugify(page_of(name).partition("\n")[0].lstrip("# "), "-")


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "Errors and warnings" if issubclass(value, Exception) else "Classes"
    return "Functions" if callable(value) else "Values"
