"""Several counts in one number: what makes adding up sixty columns by user affordable.

A database adds columns by group in rows as wide as there are columns, and with a million groups waits for memory at
each of them. Facts that are 0 or 1 add up to at most the number of rows of a unit; so several of them fit side by side
into the 53 bits that a double holds exactly, and are parted again once they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judged.online.tables import Relation

_EXACT_BITS = 53


@dataclass(frozen=True)
class Packing:
    """Which flags stand in which column, and at which bit.

    Parameters
    ----------
    flags
        Columns that hold 0 or 1.
    bits
        Enough for the largest sum.

    Examples
    --------
    >>> packing = packing_of(["a", "b", "c"], most=1000)
    >>> packing.bits, packing.columns
    (10, ('packed_0',))
    """

    flags: tuple[str, ...]
    bits: int

    @property
    def _room(self) -> int:
        return max(1, _EXACT_BITS // self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the packed columns."""
        return tuple(f"packed_{at}" for at in range(-(-len(self.flags) // self._room)))

    def packed(self, rows: Relation) -> dict[str, Any]:
        """Give the packed columns of rows of facts."""
        made: dict[str, Any] = {}
        for at, name in enumerate(self.columns):
            inside = self.flags[at * self._room : (at + 1) * self._room]
            terms = [rows[flag] * float(2 ** (place * self.bits)) for place, flag in enumerate(inside)]
            made[name] = sum(terms[1:], terms[0])
        return made

    def parted(self, sums: Relation) -> dict[str, Any]:
        """Give the sum of each flag out of sums of packed columns."""
        made: dict[str, Any] = {}
        for at, flag in enumerate(self.flags):
            packed, place = sums[self.columns[at // self._room]].cast("int64"), at % self._room * self.bits
            made[flag] = (packed & ((2**self.bits - 1) << place)).cast("float64") / float(2**place)
        return made


def packing_of(flags: Sequence[str], most: int) -> Packing:
    """Pack flags whose sums are at most `most`."""
    return Packing(tuple(flags), max(1, int(most).bit_length()))
