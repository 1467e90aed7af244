"""Letters for systems, and marks of significance made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RANGE = 4  # as many in a row are written as a range

BETTER, WORSE, TIMES = "†", "‡", "\N{MULTIPLICATION SIGN}"


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
