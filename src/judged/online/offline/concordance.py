"""How well one quantity of pages orders another, where pages carry weights. Sees only numbers.

All statistics are made of pairs of pages. They are counted by cells (pages with the same two values), so that the cost
grows with pages times different outcomes, not with pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats, Ints

_HELD = 1 << 22  # numbers held at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pages by cell: what pairs are counted from, for any weights of their units.

    Parameters
    ----------
    unit
        (N,): the unit of each page.
    cell
        (N,): rising with stratum, then with the first quantity; one entry a page.
    column
        (N,): the second quantity, as codes from 0.
    stratum
        (C,): the stratum of each cell; rising. Only pages of one stratum are compared.
    columns
        How many codes of the second quantity there are.
    """

    unit: Ints
    cell: Ints
    column: Ints
    stratum: Ints
    columns: int

    @classmethod
    def of(cls, first: Floats, second: Floats, unit: Ints, stratum: Ints | None = None) -> Pairs:
        """Sort pages into cells: (N,) each; without strata all pages are compared."""
        strata = np.zeros(len(first), dtype=np.int64) if stratum is None else stratum
        _, rows = np.unique(first, return_inverse=True)
        values, column = np.unique(second, return_inverse=True)
        size = int(rows.max(initial=0)) + 1
        keys, cell = np.unique(strata * size + rows.ravel(), return_inverse=True)
        return cls(unit, cell.ravel(), column.ravel(), keys // size, max(len(values), 1))

    def counted(self, weights: Floats) -> Floats:
        """Count pairs for each row of weights of units: (b, U) to (b, 4).

        Columns: concordant, discordant, of different second quantity, of different first quantity. A page that counts
        twice is no pair with itself: both its quantities are tied.
        """
        size = len(self.stratum) * self.columns
        step = max(1, _HELD // max(size, len(self.cell), 1))
        parts = [self._counted(weights[start : start + step]) for start in range(0, len(weights), step)]
        return np.concatenate(parts) if parts else np.zeros((0, 4))

    def _counted(self, weights: Floats) -> Floats:
        cells, size = len(self.stratum), len(self.stratum) * self.columns
        place = self.cell * self.columns + self.column
        table = np.stack([np.bincount(place, row[self.unit], minlength=size) for row in weights])
        table = table.reshape(len(weights), cells, self.columns)
        begins = np.searchsorted(self.stratum, self.stratum)  # the first cell of each cell's stratum
        lower = np.zeros((len(weights), cells + 1, self.columns))
        np.cumsum(table, axis=1, out=lower[:, 1:])
        lower = lower[:, :-1] - lower[:, begins]
        worse = np.zeros_like(lower)
        worse[:, :, 1:] = np.cumsum(lower, axis=2)[:, :, :-1]
        concordant = (table * worse).sum(axis=(1, 2))
        discordant = (table * (lower.sum(axis=2, keepdims=True) - worse - lower)).sum(axis=(1, 2))
        starts = np.flatnonzero(np.diff(self.stratum, prepend=-1))
        by_column = np.add.reduceat(table, starts, axis=1) if cells else table
        every = (by_column.sum(axis=2) ** 2).sum(axis=1)
        unlike_second = (every - (by_column**2).sum(axis=(1, 2))) / 2
        unlike_first = (every - (table.sum(axis=2) ** 2).sum(axis=1)) / 2
        return np.stack([concordant, discordant, unlike_second, unlike_first], axis=1)


def probability(pairs: Floats) -> Floats:
    """Give the probability that of two pages the one with more of the second has more of the first: (b, 4) to (b,).

    Pairs tied in the first count half, pairs tied in the second do not count. For a second quantity of 0 and 1 this is
    the area under the ROC curve (Hanley and McNeil 1982), for any other Harrell's c (1982).

    Examples
    --------
    >>> unit = np.arange(4)
    >>> found = Pairs.of(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]), unit)
    >>> probability(found.counted(np.ones((1, 4)))).tolist()  # of four pairs three are right, and one is tied
    [0.875]
    """
    right, wrong, unlike, _ = pairs.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return 0.5 + (right - wrong) / unlike / 2


def tau_b(pairs: Floats) -> Floats:
    """Give Kendall's tau_b of pages with weights: (b, 4) to (b,); with weights of 1 it is `judged.kendall_tau`."""
    right, wrong, unlike_second, unlike_first = pairs.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return (right - wrong) / np.sqrt(unlike_second * unlike_first)
