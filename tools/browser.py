"""Run a workbench and a browser for tests, screenshots, and timings."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def program() -> str | None:
    """Find Chromium on this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start headless Chromium, and close it at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=list(OPTIONS))
        yield browser
        browser.close()


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a free port, and yield its URL, such as ``http://127.0.0.1:41234``."""
    from uvicorn import Config, Server

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = Server(Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=5)
