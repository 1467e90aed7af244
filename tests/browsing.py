"""Chromium for tests that open pages: a skip where it is missing, and a failure where all must run."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import browser as installed

if TYPE_CHECKING:
    from collections.abc import Iterator

served = installed.served


def lacking(reason: str) -> None:
    """Skip with a reason; where the whole suite must run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI=true wants this test")
    pytest.skip(reason)


def chromium() -> Iterator[Any]:
    """Start a browser, and close it in the end."""
    if importlib.util.find_spec("playwright") is None:
        lacking("playwright is not installed")
    if installed.program() is None:
        lacking("no chromium is installed")
    with installed.chromium() as found:
        yield found
