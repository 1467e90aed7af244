"""Several counts in one number: what makes adding up sixty columns by user affordable.

A database adds columns by group in rows as wide as there are columns, and with a million groups waits for memory at
each of them. Facts that are 0 or 1 add up to at most the number of rows of a unit; so several of them fit side by side
into the 62 bits of a whole number, and are parted again once they are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_BITS = 62


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
    >>> packing.parted()["b"]
    '(packed_0 >> 10) & 1023'
    """

    flags: tuple[str, ...]
    bits: int

    @property
    def _room(self) -> int:
        return max(1, _BITS // self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the packed columns."""
        return tuple(f"packed_{at}" for at in range(-(-len(self.flags) // self._room)))

    def packed(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Give the SQL of the packed columns, out of the SQL of each flag."""
        made: dict[str, str] = {}
        for at, name in enumerate(self.columns):
            inside = self.flags[at * self._room : (at + 1) * self._room]
            made[name] = " + ".join(
                f"({facts[flag]}) * CAST({1 << (place * self.bits)} AS BIGINT)" for place, flag in enumerate(inside)
            )
        return made

    def parted(self) -> dict[str, str]:
        """Give the SQL of the sum of each flag, out of sums of packed columns."""
        mask = (1 << self.bits) - 1
        return {
            flag: f"({self.columns[at // self._room]} >> {at % self._room * self.bits}) & {mask}"
            for at, flag in enumerate(self.flags)
        }


def packing_of(flags: Sequence[str], most: int) -> Packing:
    """Pack flags whose sums are at most `most`."""
    return Packing(tuple(flags), max(1, int(most).bit_length()))
