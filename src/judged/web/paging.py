"""Long tables a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = TypeVar("Row")

SIZE = 50
"""Rows of a page."""


@dataclass(frozen=True)
class Paging:
    """Which part of a long table is shown.

    >>> paging = Paging.at(3, 120)
    >>> paging.last, paging.first_shown, paging.last_shown, len(paging.of(range(120)))
    (3, 101, 120, 20)
    """

    page: int  # from 1 to `last`
    total: int  # how many rows there are on all pages
    size: int = SIZE  # how many rows a page has

    @classmethod
    def at(cls, page: int, total: int, size: int = SIZE) -> Paging:
        """Turn to a page; behind the last one is the last one."""
        return cls(min(max(page, 1), max(1, -(-total // size))), total, size)

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def first_shown(self) -> int:
        """The first row that is shown, counted from 1; 0 where there is none."""
        return min(self.total, (self.page - 1) * self.size + 1)

    @property
    def last_shown(self) -> int:
        """The last row that is shown."""
        return min(self.total, self.page * self.size)

    def of(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Give the rows of this page."""
        return rows[(self.page - 1) * self.size : self.page * self.size]
