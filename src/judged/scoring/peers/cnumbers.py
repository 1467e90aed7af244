"""Numbers as C's library reads them from text: what can be read from the left counts, the rest is ignored."""

from __future__ import annotations

import re

_SPACE = r"[ \t\n\v\f\r]*"
_WHOLE = re.compile(_SPACE + r"([+-]?[0-9]+)")
_REAL = re.compile(
    _SPACE + r"([+-]?)(?:(?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<word>inf(?:inity)?|nan))",
    re.IGNORECASE,
)
_LONGEST = 2**63


def atol(text: str) -> int:
    """Read a whole number as C's ``atol`` does.

    >>> atol("23.4"), atol(" -1x"), atol("2e1"), atol("many"), atol("")
    (23, -1, 2, 0, 0)
    """
    found = _WHOLE.match(text)
    return max(-_LONGEST, min(int(found[1]), _LONGEST - 1)) if found else 0


def atof(text: str) -> float:
    """Read a number as C's ``atof`` does.

    >>> atof(".5"), atof("1,5"), atof("0x1A"), atof("abc"), atof("-1e-2x")
    (0.5, 1.0, 26.0, 0.0, -0.01)
    """
    found = _REAL.match(text)
    if found is None:
        return 0.0
    digits = found["decimal"] or found["word"]
    try:
        value = float(digits) if digits else float.fromhex(found["hex"])
    except OverflowError:
        value = float("inf")
    return -value if found[1] == "-" else value
