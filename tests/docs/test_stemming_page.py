"""docs/stemming.md says what the engines give; docs/experiment-reference.md names every engine and setting."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from judged.pipelines.experiments.engines import ENGINES
from judged.pipelines.experiments.pipelines import OPERATORS, settings_of
from shared_data import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("stemming_tool", ROOT / "tools" / "stemming.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@needs_shared
def test_engines_asked_directly_give_the_page_s_numbers() -> None:
    stemming = tool()
    page = stemming.PAGE.read_text(encoding="utf-8")
    lines = [
        re.findall(r"^\| (?:sqlite|tantivy|bm25s|dense) .*", text, re.MULTILINE)
        for text in (stemming.rows(SHARED / "cranfield")[1], page)
    ]
    assert lines[0] == lines[1], "run tools/stemming.py"
    assert len(lines[0]) == len(stemming.EARLIER)
    for line in lines[0]:
        _, _, _, *numbers, _ = (cell.strip() for cell in line.split("|"))
        earlier, same = numbers[:2], numbers[2:4]
        assert earlier == same, "the same text gives the earlier numbers"


def test_every_engine_and_setting_is_named() -> None:
    page = (ROOT / "docs" / "experiment-reference.md").read_text(encoding="utf-8")
    for engine in (*ENGINES, *OPERATORS):
        assert f"| `{engine}` |" in page
        for setting in settings_of(engine):
            assert re.search(rf"`{setting}`", page), (engine, setting)
