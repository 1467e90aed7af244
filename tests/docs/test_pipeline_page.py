"""docs/pipeline.md says what the pipeline gives; the reranker's trees may differ between processors."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]


@needs_shared
def test_the_stages_before_the_reranker_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("pipeline_tool", ROOT / "tools" / "pipeline.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    made, page = (
        re.findall(r"^\| (?:bm25|dense|fuse) .*", text, re.MULTILINE)
        for text in (module.page(SHARED), module.PAGE.read_text(encoding="utf-8"))
    )
    assert made == page, "run tools/pipeline.py"
    assert len(page) == 6
