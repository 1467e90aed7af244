"""docs/offline-online.md has the current results of the two logs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[3]


@needs_shared
def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("offline_online", ROOT / "tools" / "offline_online.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page(SHARED) == module.PAGE.read_text(encoding="utf-8"), "run tools/offline_online.py"
