"""Formatting and strict parsing of numbers, and formatting of lists of names."""

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
_NUMBER_LIKE = re.compile(r"\s*[+-]?[\d,_]*(\.[\d,_]*)?([eE][+-]?\d+)?\s*", re.ASCII)

_ROUNDING = 1e-12
"""Numbers this close to 0 or 1 are formatted as 0 or 1, because sums of doubles have such errors."""
_SMALLEST_P = 1e-300  # smaller p-values are given as a bound, because doubles underflow soon after
_WIDTH = 100  # default width of sentences


def decimal(value: float, digits: int = 4, sign: str = "") -> str:
    """Format a number with `digits` decimals, or more if it would otherwise look like 0, 1, or -1.

    >>> [decimal(value) for value in (0.42338, 0.99999, 0.00001, 1.0, 0.0, math.nan)]
    ['0.4234', '0.99999', '1.0e-05', '1.0000', '0.0000', '-']
    >>> decimal(-0.9999996, 3), decimal(0.0312, 3, "+"), decimal(1.000001, 2)
    ('-0.9999996', '+0.031', '1.000001')
    """
    if math.isnan(value):
        return "-"
    if abs(value) <= _ROUNDING:
        value = 0.0
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return f"{value:{sign}.1e}"
    distance = abs(abs(value) - 1)
    if _ROUNDING < distance < 0.5 * 10.0**-digits:
        digits = max(digits + 1, math.ceil(-math.log10(distance) - 1e-9))
    return f"{value:{sign}.{digits}f}"


def printed(text: str, kind: str = "") -> str:
    """Format a number for print: minus sign, no sign before 0, en dash for a missing number, thousands separators.

    >>> printed("-0.12 [-0.20, 0.10]"), printed("+0.000"), printed("-"), printed("6980", "int64")
    ('−0.12 [−0.20, 0.10]', '0.000', '–', '6,980')
    """
    text = text.removeprefix("+") if not text.strip("+0.") else text
    if kind == "int64" and text.isdecimal():
        return f"{int(text):,}"
    return "\N{EN DASH}" if text == "-" else _MINUS.sub("\N{MINUS SIGN}", text)


def format_level(level: float) -> str:
    """Format a confidence level with enough digits to distinguish it from 100%.

    >>> format_level(0.95), format_level(1 - 0.05 / 7), format_level(1 - 0.05 / 66)
    ('95%', '99.29%', '99.924%')
    """
    miss_percent = 100 * (1 - level)
    # two significant digits of the miss rate; 1e-9 keeps exact powers of ten from rounding down
    digits = max(0, 1 - math.floor(math.log10(miss_percent) + 1e-9))
    text = f"{100 - miss_percent:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text}%"


def percent(share: float, digits: int = 0) -> str:
    """Format a share in percent, with more digits if it would otherwise look like 0% or 100%.

    >>> [percent(share) for share in (0.42, 0.997, 0.9999996, 0.004, 1.0, 0.0, math.nan)]
    ['42%', '99.7%', '99.99996%', '0.4%', '100%', '0%', '-']
    """
    if math.isnan(share):
        return "-"
    distance = min(abs(share), abs(1 - share))
    if _ROUNDING < distance < 0.5 * 10.0 ** -(digits + 2):
        digits = max(digits + 1, math.ceil(-math.log10(distance) - 1e-9) - 2)
    return f"{share:.{digits}%}"


def p_text(p: float, alpha: float | None) -> str:
    """Format a p-value for a place such as ``p = 0.012``, with enough digits to compare it with alpha.

    >>> [f"p {p_text(p, 0.05)}" for p in (0.25, 0.01234, 0.04976, 0.05003, 0.05, 0.000012, 0.0, float("nan"))]
    ['p = 0.25', 'p = 0.012', 'p = 0.0498', 'p = 0.05003', 'p = 0.05', 'p = 1.2e-05', 'p < 1e-300', 'p undefined']
    """
    if math.isnan(p):
        return "undefined"
    return f"< {_SMALLEST_P:g}" if p < _SMALLEST_P else f"= {format_distinct(p, () if alpha is None else (alpha,))}"


def format_distinct(value: float, limits: Iterable[float], style: str = "g", digits: int = 2) -> str:
    """Format a number with `digits` digits, or with as many as are needed to see on which side of the limits it is.

    >>> format_distinct(0.0498, [0.05]), format_distinct(0.0498, [0.01]), format_distinct(0.97496, [0.975], "f", 3)
    ('0.0498', '0.05', '0.97496')
    """
    sides = [(limit, _side(value, limit)) for limit in limits]
    texts = (f"{value:.{count}{style}}" for count in range(digits, 18))
    distinct = (text for text in texts if all(_side(float(text), limit) == side for limit, side in sides))
    return next(distinct, f"{value:.{digits}g}")


def _side(value: float, limit: float) -> int:
    return 0 if math.isclose(value, limit, rel_tol=1e-9) else 1 if value > limit else -1


def listed(names: Sequence[str], last: str = "and") -> str:
    """Join names with commas and a final "and".

    Parameters
    ----------
    names
        Texts to join.
    last
        Word before the last one.

    Returns
    -------
    str

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun.

    Parameters
    ----------
    count
        Number.
    noun, plural
        Noun of one; that of several, if it is not `noun` with an s.

    Returns
    -------
    str

    Examples
    --------
    >>> counted(1, "topic"), counted(2, "topic"), counted(9260, "query", "queries")
    ('1 topic', '2 topics', '9,260 queries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def wrapped(text: str, width: int | None = None) -> str:
    """Wrap a text into lines.

    Parameters
    ----------
    text
        Text without line breaks.
    width
        Characters of a line; None: the width of the terminal.

    Returns
    -------
    str

    Examples
    --------
    >>> wrapped("one two three", width=8).splitlines()
    ['one two', 'three']
    """
    return textwrap.fill(text, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False)


def read_number(value: Any) -> float:
    """Parse a number: digits with a decimal point and an exponent, ``inf``, or a Python number.

    >>> read_number("1e-05"), read_number(" 7 "), read_number(2)
    (1e-05, 7.0, 2.0)
    """
    text = value.strip(" \t\v\f\r\n") if isinstance(value, str) else ""  # other blanks do not separate fields
    if text and _INFINITE.fullmatch(text):
        return float(text)
    if isinstance(value, (str, bytes, bool)) and not _NUMBER.fullmatch(text):
        raise ValueError("is not a number" + (": use a decimal point, not a comma" if _COMMA.fullmatch(text) else ""))
    try:
        number = float(text or value)
    except OverflowError:
        raise ValueError("is too large: the maximum is about 1.8e308") from None
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    if number != number:  # noqa: PLR0124 - NaN
        raise ValueError("is not a number")
    if text and abs(number) == float("inf"):
        raise ValueError("is too large: the maximum is about 1.8e308")
    if text and number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise ValueError("is too close to 0: the number would be rounded to 0")
    return number


def read_grade(value: Any) -> float:
    """Parse a grade: a number as in `read_number`, true (1) or false (0), or L0 to L9 as in NTCIR.

    >>> read_grade("2"), read_grade("True"), read_grade(False), read_grade("L3")
    (2.0, 1.0, 0.0, 3.0)
    """
    word = str(value).strip().lower()
    if len(word) == 2 and word[0] == "l" and word[1].isdecimal():
        return float(word[1])
    boolean = {"true": 1.0, "false": 0.0}.get(word)
    return read_number(value) if boolean is None else boolean


def is_number(text: str) -> bool:
    """Return whether `read_number` accepts a text."""
    try:
        read_number(text)
    except ValueError:
        return False
    return True


def resembles_number(text: str) -> bool:
    """Return whether a text is a number in another notation, or too large for a double.

    >>> [resembles_number(text) for text in ("1,5", "1_000", "1e999", "1.2.3", "2024-05-31", "fast")]
    [True, True, True, False, False, False]
    """
    return bool(_NUMBER_LIKE.fullmatch(text)) and any(map(str.isdigit, text))
