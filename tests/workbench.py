"""Run a workbench, and open its pages in a browser.

``serve(workspace)`` starts the application on a free port and returns its URL. ``tab(url)`` opens a page and collects
console messages and requests to other servers; both must be empty at the end.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from browsing import served

with warnings.catch_warnings(), suppress(ImportError):  # old versions warn when they are imported first
    warnings.simplefilter("ignore")
    import fastapi.testclient  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def sample() -> Any:
    """The workspace of the sample: 48 topics, eight runs, texts, attributes."""
    from judged.interface.pages.workspace import open_sample

    return open_sample()


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Any], str]]:
    """Return a function that serves a workspace and returns the URL, such as ``http://127.0.0.1:41234``."""
    from judged.web.app import make_app

    servers: dict[int, str] = {}
    with ExitStack() as running:

        def start(workspace: Any) -> str:
            if id(workspace) not in servers:
                servers[id(workspace)] = running.enter_context(served(make_app(workspace)))
            return servers[id(workspace)]

        yield start


@dataclass
class Tab:
    """Page of the browser, with its errors."""

    page: Any
    faults: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def clean(self) -> None:
        """Assert that there are no console messages and no requests to other servers."""
        assert self.faults == []
        assert self.foreign == []

    def fits(self) -> None:
        """Assert that the page is not wider than the window."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.page.viewport_size["width"]

    def accessible(self) -> None:
        """Assert that axe-core reports no serious or critical violation."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        bad = [
            f"{violation['id']}: {violation['help']}: {[node['html'][:120] for node in violation['nodes'][:3]]}"
            for violation in violations
            if violation["impact"] in {"serious", "critical"}
        ]
        assert bad == []


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Return a function that opens a URL: ``tab(url, width=375, color_scheme="dark")``."""
    contexts: list[Any] = []

    def show(address: str, width: int = 1280, height: int = 900, **options: Any) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_navigation_timeout(120_000)  # the first page of a workspace is computed, beside others
        page = context.new_page()
        tab_page = Tab(page)
        page.on("console", lambda message: tab_page.faults.append(message.text))
        page.on("pageerror", lambda error: tab_page.faults.append(str(error)))
        page.on("dialog", lambda dialog: (tab_page.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        origin = "/".join(address.split("/")[:3])
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((origin, "data:", "blob:")) else tab_page.foreign.append(request.url)
            ),
        )
        page.goto(address)
        return tab_page

    yield show
    for context in contexts:
        context.close()
