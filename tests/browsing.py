"""Debian's Chromium for tests that open pages: a skip where it is missing, and a failure where all must run."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def lacking(reason: str) -> None:
    """Skip with a reason; where the whole suite must run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI=true wants this test")
    pytest.skip(reason)


def chromium() -> Iterator[Any]:
    """Start a browser, and close it in the end."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("playwright is not installed")
        return
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        lacking("no chromium is installed")
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield found
        found.close()
