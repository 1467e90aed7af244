"""Numbers as text: read without a guess, and written so that none seems to be what it is not; and lists of names."""

from __future__ import annotations

import math
import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_MINUS = re.compile(r"(?<![\w.])-(?=\.?\d)")
_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_MEANT = re.compile(r"\s*[+-]?[\d,_]*(\.[\d,_]*)?([eE][+-]?\d+)?\s*", re.ASCII)

_NOISE = 1e-12
"""Nearer to 0 or 1 than this is 0 or 1: sums of doubles are that far off."""
_LEAST_P = 1e-300  # below this a p-value is not a number to be quoted: floats end soon after
_WIDTH = 100  # of sentences, where no width is given


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


def printed(text: str, kind: str = "") -> str:
    """Write a number as it is printed: a true minus, no sign before 0, a dash where there is none, thousands apart.

    >>> printed("-0.12 [-0.20, 0.10]"), printed("+0.000"), printed("-"), printed("6980", "int64")
    ('\u22120.12 [\u22120.20, 0.10]', '0.000', '\u2013', '6,980')
    """
    text = text.removeprefix("+") if not text.strip("+0.") else text
    if kind == "int64" and text.isdecimal():
        return f"{int(text):,}"
    return "\N{EN DASH}" if text == "-" else _MINUS.sub("\N{MINUS SIGN}", text)


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


def p_text(p: float, alpha: float | None) -> str:
    """Write a p-value for people, for a place such as ``p = 0.012``; one too small for a float is bounded.

    >>> [f"p {p_text(p, 0.05)}" for p in (0.25, 0.01234, 0.04976, 0.05003, 0.05, 0.000012, 0.0, float("nan"))]
    ['p = 0.25', 'p = 0.012', 'p = 0.0498', 'p = 0.05003', 'p = 0.05', 'p = 1.2e-05', 'p < 1e-300', 'p undefined']
    """
    if math.isnan(p):
        return "undefined"
    return f"< {_LEAST_P:g}" if p < _LEAST_P else f"= {beside(p, () if alpha is None else (alpha,))}"


def beside(value: float, limits: Iterable[float], style: str = "g", digits: int = 2) -> str:
    """Write a number with so many digits, or as many as it takes to see on which side of the limits it is.

    >>> beside(0.0498, [0.05]), beside(0.0498, [0.01]), beside(0.97496, [0.025, 0.975], "f", 3)
    ('0.0498', '0.05', '0.97496')
    """
    sides = [(limit, _side(value, limit)) for limit in limits]
    texts = (f"{value:.{count}{style}}" for count in range(digits, 18))
    fine = (text for text in texts if all(_side(float(text), limit) == side for limit, side in sides))
    return next(fine, f"{value:.{digits}g}")


def _side(value: float, limit: float) -> int:
    return 0 if math.isclose(value, limit, rel_tol=1e-9) else 1 if value > limit else -1


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Write names one behind the other.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f" {last} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def counted(count: int, thing: str, things: str = "") -> str:
    """Write how many things there are.

    >>> counted(1, "topic"), counted(2, "topic"), counted(9260, "query", "queries")
    ('1 topic', '2 topics', '9,260 queries')
    """
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def wrapped(text: str, width: int | None = None) -> str:
    """Break a text into lines."""
    return textwrap.fill(text, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)


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


def read_grade(given: Any) -> float:
    """Read a grade: a number as `read_number` reads it, or true (1) or false (0).

    >>> read_grade("2"), read_grade("True"), read_grade(False)
    (2.0, 1.0, 0.0)
    """
    truth = {"true": 1.0, "false": 0.0}.get(str(given).strip().lower())
    return read_number(given) if truth is None else truth


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
