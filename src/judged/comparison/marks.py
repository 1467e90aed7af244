"""Letters for systems, and marks of significance made of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RANGE = 4  # as many in a row are written as a range

BETTER, WORSE, TIMES = "†", "‡", "\N{MULTIPLICATION SIGN}"


def fixed(value: float, digits: int, sign: str = "") -> str:
    """Write a number with so many decimals, or with two digits where these would show nothing of it.

    >>> fixed(0.0213, 3), fixed(-0.00012, 3), fixed(0.0, 3), fixed(math.nan, 3), fixed(0.5, 2, "+")
    ('0.021', '-1.2e-04', '0.000', '-', '+0.50')
    """
    if math.isnan(value):
        return "-"
    kind = "e" if value and abs(value) < 0.5 * 10.0**-digits else "f"
    return f"{value:{sign}.{1 if kind == 'e' else digits}{kind}}"


def letters(count: int) -> tuple[str, ...]:
    """Give each system a letter; numbers, where the alphabet is too short.

    >>> letters(3), letters(30)[-1]
    (('a', 'b', 'c'), '30')
    """
    return tuple(_LETTERS[:count]) if count <= len(_LETTERS) else tuple(str(at + 1) for at in range(count))


def together(names: tuple[str, ...], chosen: Collection[int]) -> str:
    """Write the letters of some systems as one mark; four or more in a row as a range.

    >>> together(letters(8), {1, 2, 5}), together(letters(8), {0, 2, 3, 4, 5, 7})
    ('bcf', 'a,c-f,h')
    >>> together(letters(40), {4, 5, 6})
    '5,6,7'
    """
    stretches: list[list[int]] = []
    for at in sorted(chosen):
        if stretches and stretches[-1][-1] == at - 1:
            stretches[-1].append(at)
        else:
            stretches.append([at])
    ranges = any(len(stretch) >= _RANGE for stretch in stretches)
    parts: list[str] = []
    for stretch in stretches:
        if len(stretch) >= _RANGE:
            parts.append(f"{names[stretch[0]]}-{names[stretch[-1]]}")
        else:
            parts += [names[at] for at in stretch]
    return ("," if ranges or len(names) > len(_LETTERS) else "").join(parts)
