"""What README says of the catalog is true of it."""

from __future__ import annotations

import re
from pathlib import Path

from judged.scoring.measures.registry import REGISTRY

ROOT = Path(__file__).resolve().parents[2]


def test_the_number_of_measures() -> None:
    claimed = re.findall(r"(\d+) measures", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert claimed == [str(len(REGISTRY))]
