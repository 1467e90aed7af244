"""Test data of Hole@k."""

from __future__ import annotations

ORACLE = {
    "Hole": ("Hole@5", [1, None, -1, None], [1], 2 / 5, "by hand; BEIR divides by 5 too"),
}
