"""Numbers as text: read without a guess, and written so that none seems to be what it is not."""

from __future__ import annotations

import math
import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_MEANT = re.compile(r"\s*[+-]?[\d,_]*(\.[\d,_]*)?([eE][+-]?\d+)?\s*", re.ASCII)

_NOISE = 1e-12
"""Nearer to 0 or 1 than this is 0 or 1: sums of doubles are that far off."""


def decimal(value: float, digits: int = 4, sign: str = "") -> str:
    """Write a number with so many decimals, and with more where it would seem to be a 0, 1 or -1 that it is not.

    >>> [decimal(value) for value in (0.42338, 0.99999, 0.00001, 1.0, 0.0, math.nan)]
    ['0.4234', '0.99999', '1.0e-05', '1.0000', '0.0000', '-']
    >>> decimal(-0.9999996, 3), decimal(0.0312, 3, "+"), decimal(1.000001, 2)
    ('-0.9999996', '+0.031', '1.000001')
    """
    if math.isnan(value):
        return "-"
    if abs(value) <= _NOISE:
        value = 0.0
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return f"{value:{sign}.1e}"
    off = abs(abs(value) - 1)
    if _NOISE < off < 0.5 * 10.0**-digits:
        digits = max(digits + 1, math.ceil(-math.log10(off) - 1e-9))
    return f"{value:{sign}.{digits}f}"


def percent(share: float, digits: int = 0) -> str:
    """Write a share in per cent, with more digits where it would seem to be all or nothing and is not.

    >>> [percent(share) for share in (0.42, 0.997, 0.9999996, 0.004, 1.0, 0.0, math.nan)]
    ['42%', '99.7%', '99.99996%', '0.4%', '100%', '0%', '-']
    """
    if math.isnan(share):
        return "-"
    near = min(abs(share), abs(1 - share))
    if _NOISE < near < 0.5 * 10.0 ** -(digits + 2):
        digits = max(digits + 1, math.ceil(-math.log10(near) - 1e-9) - 2)
    return f"{share:.{digits}%}"


def read_number(given: Any) -> float:
    """Read a number: digits with a point and an exponent, ``inf``, or a number of Python.

    >>> read_number("1e-05"), read_number(" 7 "), read_number(2)
    (1e-05, 7.0, 2.0)
    """
    text = given.strip(" \t\v\f\r\n") if isinstance(given, str) else ""  # no other blank parts fields
    if text and _INFINITE.fullmatch(text):
        return float(text)
    if isinstance(given, (str, bytes, bool)) and not _NUMBER.fullmatch(text):
        raise ValueError("is not a number" + (": write a point, not a comma" if _COMMA.fullmatch(text) else ""))
    try:
        number = float(text or given)
    except OverflowError:
        raise ValueError("is too large for a number") from None
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    if number != number:  # noqa: PLR0124 - NaN
        raise ValueError("is not a number")
    if text and abs(number) == float("inf"):
        raise ValueError("is too large for a number")
    if text and number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError("is too small for a number: it would become 0")
    return number


def is_number(text: str) -> bool:
    """Whether `read_number` reads it."""
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def meant_as_number(text: str) -> bool:
    """Whether a text is a number in another notation, or one that no double holds.

    >>> [meant_as_number(text) for text in ("1,5", "1_000", "1e999", "1.2.3", "2024-05-31", "fast")]
    [True, True, True, False, False, False]
    """
    return bool(_MEANT.fullmatch(text)) and any(map(str.isdigit, text))
