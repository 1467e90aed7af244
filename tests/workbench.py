"""A workbench that runs, and a browser before it.

``serve(workspace)`` starts the application on a free port and gives its address; ``tab(address)`` opens a page and
collects whatever the console says and every request that leaves the server: both must be empty in the end.
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
    """Give a function that serves a workspace and gives the address, such as ``http://127.0.0.1:41234``."""
    from judged.web.app import make_app

    known: dict[int, str] = {}
    with ExitStack() as running:

        def start(workspace: Any) -> str:
            if id(workspace) not in known:
                known[id(workspace)] = running.enter_context(served(make_app(workspace)))
            return known[id(workspace)]

        yield start


@dataclass
class Tab:
    """A page of the browser, and what went wrong in it."""

    page: Any
    faults: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def clean(self) -> None:
        """Hold that the console said nothing and nothing was asked of anyone else."""
        assert self.faults == []
        assert self.foreign == []

    def fits(self) -> None:
        """Hold that the page is no wider than the window."""
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.page.viewport_size["width"]

    def accessible(self) -> None:
        """Hold that axe-core finds nothing serious or critical."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        bad = [
            f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
            for one in found
            if one["impact"] in {"serious", "critical"}
        ]
        assert bad == []


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Give a function that opens an address: ``tab(url, width=375, color_scheme="dark")``."""
    contexts: list[Any] = []

    def show(address: str, width: int = 1280, height: int = 900, **options: Any) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_navigation_timeout(120_000)  # the first page of a workspace is computed, beside others
        page = context.new_page()
        made = Tab(page)
        page.on("console", lambda message: made.faults.append(message.text))
        page.on("pageerror", lambda error: made.faults.append(str(error)))
        page.on("dialog", lambda dialog: (made.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        origin = "/".join(address.split("/")[:3])
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((origin, "data:", "blob:")) else made.foreign.append(request.url)
            ),
        )
        page.goto(address)
        return made

    yield show
    for context in contexts:
        context.close()
