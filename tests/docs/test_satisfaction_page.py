"""docs/satisfaction.md says what the shared study gives, and the study has the correlation that is known."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]


@needs_shared
def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("satisfaction", ROOT / "tools" / "satisfaction.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page(SHARED) == module.PAGE.read_text(encoding="utf-8"), "run tools/satisfaction.py"
    assert "Pearson's r is 0.286" in module.PAGE.read_text(encoding="utf-8")
