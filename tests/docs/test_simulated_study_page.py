"""docs/simulated-study.md is what the tool makes, from design to report."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("simulated_study", ROOT / "tools" / "simulated_study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page() == module.PAGE.read_text(encoding="utf-8"), "run tools/simulated_study.py"
