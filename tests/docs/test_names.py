"""Every name of judged that README and the pages give is there, under the module that they say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import judged
from judged import Judged

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]


def looked_up(name: str) -> Any:
    """Follow a name with dots, through modules that nobody has imported yet too."""
    value: Any = judged
    for at, part in enumerate(name.split(".")[1:], 2):
        if not hasattr(value, part):
            value = importlib.import_module(".".join(name.split(".")[:at]))
        else:
            value = getattr(value, part)
    return value


def unknown(text: str) -> list[str]:
    """Give the names that are nowhere; what a measure calls ``judged`` is the list that it scores."""
    names = dict.fromkeys(re.findall(r"`(judged(?:\.\w+)+)[`(]", text))
    lost: list[str] = []
    for name in names:
        if name.count(".") == 1 and hasattr(Judged, name.partition(".")[2]):
            continue
        try:
            looked_up(name)
        except ModuleNotFoundError:
            lost.append(name)
    return lost


def test_every_name_that_the_pages_give_is_there() -> None:
    lost = {page.name: names for page in PAGES if (names := unknown(page.read_text(encoding="utf-8")))}
    assert lost == {}


def test_a_name_that_is_not_there_is_found() -> None:
    assert unknown("`judged.evaluate(qrels, run)`, `judged.reliability`, `judged.step(...)`, `judged.stats.nope`") == [
        "judged.reliability", "judged.stats.nope",
    ]  # fmt: skip
