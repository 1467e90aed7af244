"""Bands: numbers as a few named ranges, in an order that people know; and head, torso and tail of traffic."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import InputError

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

FREQUENCY = ("head", "torso", "tail")
_ROUNDING = 1e-12  # of all traffic: 0.9 of a total is not always the nearest number
_KNOWN = (
    LENGTH.names,
    RELEVANT.names,
    (*FIRST_RELEVANT.names[1:], FIRST_RELEVANT.names[0]),
    AGE.names,
    FREQUENCY,
)
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:\+|\s*(?:-|to)\s*\d+(?:\.\d+)?)?")


def written(value: Any) -> str:
    """Write a value as the name of its slice or group has it.

    >>> written(True), written(2.0), written("law")
    ('true', '2', 'law')
    """
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


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


def frequency_bands(counts: Sequence[float], cuts: tuple[float, float] = (0.5, 0.9)) -> list[str]:
    """Cut topics into head, torso and tail by cumulative traffic.

    >>> frequency_bands([50, 30, 10, 5, 5])  # 50 of 100 are the head, 50 + 30 + 10 hold 90 of 100
    ['head', 'torso', 'torso', 'tail', 'tail']
    >>> frequency_bands([3, 3, 3, 1])  # one alone holds 30 %, two would hold 60 %: equal traffic, equal band
    ['head', 'head', 'head', 'tail']
    """
    # Topics are taken from the most frequent down. The head is the smallest set of them that holds the first share of
    # `cuts`; the torso those that follow until the second is held; the tail all others. Topics of the same traffic are
    # taken together, whatever their ids: a set that ends among them takes them all. In other words: a topic is in the
    # head where those with more traffic than it together hold less than the first share, in the tail where they hold
    # the second or more. `counts`: (N,): how often each was asked; 0 or more. `cuts`: shares between 0 and 1, the first
    # the smaller.
    if len(cuts) != 2 or not 0 < cuts[0] < cuts[1] < 1:
        raise InputError(f"the cuts {cuts} of traffic make no sense", fix="two shares that rise, such as (0.5, 0.9)")
    values = np.asarray(counts, dtype=np.float64)
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if len(wrong):
        raise InputError(f"a topic has the traffic {wrong[0]:g}", fix="give counts of 0 or more")
    if not values.any():
        raise InputError("no topic has any traffic", fix="give how often each query was asked")
    levels, level_of = np.unique(-values, return_inverse=True)
    held = np.bincount(level_of, weights=values, minlength=len(levels))
    more = np.concatenate(([0.0], np.cumsum(held)[:-1]))
    total = math.fsum(values.tolist())
    reached = np.stack([more >= cut * total - _ROUNDING * total for cut in cuts])
    return [FREQUENCY[at] for at in reached.sum(axis=0)[level_of].tolist()]
