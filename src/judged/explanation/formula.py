"""Formulas as text: with names, and with numbers put in."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.judging.working import Part

from judged.decimals import decimal

_NAME = re.compile(r"[^\W\d]\w*")
_DECIMALS, _SMALL, _LARGE = 4, 1e-3, 1e6


def number(value: float) -> str:
    """Write a number for people: whole ones as they are, others with four decimals, small ones with four digits.

    >>> number(3.0), number(0.63092975), number(0.000012345), number(float("nan"))
    ('3', '0.6309', '1.234e-05', 'nan')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    if not math.isfinite(value) or _SMALL <= abs(value) < _LARGE:
        return decimal(value, _DECIMALS) if math.isfinite(value) else str(value)
    return f"{value:.{_DECIMALS}g}"


def readable(text: str) -> str:
    """Write names as words: ``relevant_so_far`` as ``relevant so far``."""
    return text.replace("_", " ")


def put_in(how: str, parts: Mapping[str, Part], at: int = 0) -> str:
    """Write a formula with the number of each part in its name's place; `at` is the topic of parts that have several.

    >>> put_in("DCG / ideal_DCG", {"DCG": 4.0, "ideal_DCG": 5.5})
    '4 / 5.5000'
    """

    def _number(found: re.Match[str]) -> str:
        if found[0] not in parts:
            return readable(found[0])
        part = parts[found[0]]
        shown = part if isinstance(part, str) else number(float(np.asarray(part).flat[at if np.ndim(part) else 0]))
        return f"({shown})" if shown.startswith("-") else shown

    return _NAME.sub(_number, how)


def names(how: str) -> list[str]:
    """List the names of a formula.

    >>> names("ln(1 + gained) / R")
    ['ln', 'gained', 'R']
    """
    return _NAME.findall(how)
