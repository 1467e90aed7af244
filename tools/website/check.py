"""Check that each link and anchor of a built site has a target, and that no page loads files from other hosts.

`make site` calls it with the folder of the site. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"src", "srcset", "poster", "data"}
_CSS = re.compile(r"""(?:@import\s+|url\()\s*["']?([^"')\s]+)""")


@dataclass
class Page(HTMLParser):
    """Links, loaded addresses, and anchors of a page."""

    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and anchors of an element."""
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")
            elif name == "href":
                (self.links if tag == "a" else self.loaded).add(value or "")
            elif name in _LOADED:
                self.loaded.add(value or "")
            elif name == "style":
                self.loaded.update(_CSS.findall(value or ""))


def find_faults(site: Path) -> list[str]:
    """Return one line per missing link target and per address that a page loads from another host."""
    pages = {path.resolve(): _read(path) for path in site.rglob("*.html")}
    faults = [
        f"{path.relative_to(site)}: loads {address}"
        for path in site.rglob("*.css")
        for address in _CSS.findall(path.read_text(encoding="utf-8"))
        if _is_on_host(address)
    ]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        faults += [f"{name}: loads {address}" for address in sorted(page.loaded) if _is_on_host(address)]
        for address in sorted(page.links | page.loaded):
            if (
                _is_on_host(address)
                or urlsplit(address).scheme
                or (path.name == "404.html" and address.startswith("/"))
            ):
                continue
            if not _has_target(address, path, pages):
                faults.append(f"{name}: {address}: no such target")
    return faults


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _is_on_host(address: str) -> bool:
    return urlsplit(address).scheme not in {"", "data"} or address.startswith("//")


def _has_target(address: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if target in pages and parts.fragment:
        return unquote(parts.fragment) in pages[target].anchors
    return target.is_file()


def main() -> int:
    """Print the faults of a site."""
    site = Path(sys.argv[1])
    faults = find_faults(site)
    print("\n".join([*faults, f"{site}: {len(list(site.rglob('*.html')))} pages, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
