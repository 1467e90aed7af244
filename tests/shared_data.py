"""Folder of the real test data, if it exists: ``shared/data`` next to the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared test data is not next to this checkout")

_NUMBER = re.compile(r"\d[\d,]*\.?\d*")


def agree(text: str, page: str, tolerance: float = 0.01) -> bool:
    """Return whether two texts have equal words, and numbers that differ by at most this share, or by one last digit.

    Processors round exponentials and sums differently, so a random sample or the order of nearly equal scores can
    differ.
    """
    numbers, others = _NUMBER.findall(text), _NUMBER.findall(page)
    if _NUMBER.sub("#", text) != _NUMBER.sub("#", page) or len(numbers) != len(others):
        return False
    for number, other in zip(numbers, others, strict=True):
        first, second = (float(text.replace(",", "")) for text in (number, other))
        digits = len(other.partition(".")[2])
        if abs(first - second) > max(tolerance * max(first, second), 1.01 * 10.0**-digits):
            return False
    return True
