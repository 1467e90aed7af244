"""Bands: numbers as a few named ranges, in an order that people know."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Bands(NamedTuple):
    """Named ranges of a number.

    >>> [LENGTH.of(words) for words in (1, 2, 3, 4, 6, 7)]
    ['1', '2-3', '2-3', '4-6', '4-6', '7+']
    """

    starts: tuple[float, ...]  # where each range but the first begins; rising
    names: tuple[str, ...]  # one more than `starts`

    def of(self, value: float | None) -> str | None:
        """Name the range of a number; None for None."""
        return None if value is None else self.names[bisect_right(self.starts, value)]

    def all_of(self, values: Iterable[float | None]) -> list[str | None]:
        """Name the range of each number."""
        return [self.of(value) for value in values]


LENGTH = Bands((2, 4, 7), ("1", "2-3", "4-6", "7+"))
"""Words of a query."""

RELEVANT = Bands((1, 2, 6, 21), ("none", "1", "2-5", "6-20", "21+"))
"""Relevant documents of a topic."""

FIRST_RELEVANT = Bands((1, 2, 4, 11, 101), ("none", "1", "2-3", "4-10", "11-100", "101+"))
"""Rank of the first relevant document; 0 where none was returned."""

AGE = Bands((0, 2, 8, 31, 366), ("after today", "0-1", "2-7", "8-30", "31-365", "366+"))
"""Age of a document in days; below 0 where it is dated after the day that counts as today."""

_KNOWN = (
    LENGTH.names, RELEVANT.names, (*FIRST_RELEVANT.names[1:], FIRST_RELEVANT.names[0]), AGE.names,
    ("head", "torso", "tail"),
)  # fmt: skip
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:\+|\s*(?:-|to)\s*\d+(?:\.\d+)?)?")


def in_order(name: str, values: Sequence[str]) -> list[str]:
    """Put names of ranges in the order of their numbers, and other values in that of the alphabet.

    >>> in_order("relevant_band", ["2-5", "21+", "6-20", "none"]), in_order("kind", ["news", "law"])
    (['none', '2-5', '6-20', '21+'], ['law', 'news'])
    >>> in_order("first_relevant", ["4-10", "none", "101+"]), in_order("pages", ["10-99", "5-9", "100+"])
    (['4-10', '101+', 'none'], ['5-9', '10-99', '100+'])
    """
    # `name`: the attribute: where `first_relevant` is none, it is none at any rank.
    known = _KNOWN[2:] if name == "first_relevant" else _KNOWN
    for names in known:
        if set(values) <= set(names):
            return sorted(values, key=names.index)
    found = {value: _RANGE.fullmatch(value) for value in values}
    numbers = {value: float(one[1]) for value, one in found.items() if one is not None}
    return sorted(values, key=lambda value: (numbers[value], value)) if len(numbers) == len(found) else sorted(values)
