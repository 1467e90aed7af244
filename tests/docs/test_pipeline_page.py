"""docs/pipeline.md says what the pipeline gives; the reranker's trees may differ between processors."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from shared_data import SHARED, agree, needs_shared

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
    assert agree("\n".join(made), "\n".join(page)), "run tools/pipeline.py"
    assert len(page) == 6


def test_texts_agree_up_to_what_processors_round() -> None:
    assert agree("| a | 0.3735 | 1,118 |", "| a | 0.3730 | 1,118 |")
    assert not agree("| a | 0.3735 |", "| a | 0.3630 |")
    assert not agree("| a | 0.3735 |", "| b | 0.3735 |")
    assert agree("15%", "16%")
    assert not agree("15%", "17%")
