"""Start Chromium for tests; if it is missing, skip the test, or fail if all tests must run."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import browser as tools_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

served = tools_browser.served


def skip_or_fail(reason: str) -> None:
    """Skip the test with a reason, or fail if the complete suite must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, but CI=true requires this test")
    pytest.skip(reason)


def chromium() -> Iterator[Any]:
    """Start a browser, and close it at the end."""
    if importlib.util.find_spec("playwright") is None:
        skip_or_fail("playwright is not installed")
    if tools_browser.program() is None:
        skip_or_fail("no chromium is installed")
    with tools_browser.chromium() as browser:
        yield browser
