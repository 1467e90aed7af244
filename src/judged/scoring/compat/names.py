"""Names of measures as callers give them: one, or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from judged.errors import MeasureError


def names_of(given: object, what: str, example: str) -> list[str]:
    """Take one name or several, and nothing else."""
    names: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    for name in names:
        if not isinstance(name, str):
            raise MeasureError(f"{name!r} is not the name of a {what}. Fix: give names as text, such as {example}")
    return names
