"""How well one quantity of pages orders another: pairs of pages, counted for each page. Sees only numbers.

All statistics are made of pairs, and their errors of how many pairs each page is in: sums by page are all that is
needed, and they are counted without looking at pairs one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that each page is in: (N,) each. Every pair stands here twice, once for each of its pages.

    Parameters
    ----------
    net
        Pairs in the same order by both quantities, minus those in opposite orders: between minus and plus `second`.
    first, second
        Pairs that differ in the first quantity, and in the second.
    both
        Pairs that differ in both: those that are in some order.
    """

    net: Ints
    first: Ints
    second: Ints
    both: Ints

    @property
    def count(self) -> int:
        """How many pairs differ in both quantities, each counted once: of none, nothing is compared."""
        return int(self.both.sum()) // 2


def pairs_of(first: Floats, second: Floats, stratum: Ints | None = None) -> Pairs:
    """Count the pairs of each page.

    Pages are sorted by the first quantity, and cut in two by the second one again and again: at each cut a page is
    compared with those of the other half by running sums. The cost is ``N log N`` for the sorting, and N for each
    doubling of the number of different second quantities.

    Parameters
    ----------
    first, second
        (N,) each, no NaN.
    stratum
        (N,): only pages of one stratum are compared; None: all.

    Returns
    -------
    Pairs

    Examples
    --------
    >>> found = pairs_of(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> found.net.tolist(), found.first.tolist(), found.second.tolist(), found.count
    ([2, 1, 1, 2], [3, 2, 2, 3], [2, 2, 2, 2], 3)
    """
    strata = np.zeros(len(first), dtype=np.int64) if stratum is None else stratum
    rank, code = (np.unique(column, return_inverse=True)[1].ravel() for column in (first, second))
    order = np.lexsort((rank, strata))
    one, other = (_unlike(strata, column) for column in (rank, code))
    cell = np.unique(rank * (code.max(initial=0) + 1) + code, return_inverse=True)[1].ravel()
    net = np.zeros(len(order), dtype=np.int64)
    for bit in reversed(range(int(code.max(initial=0)).bit_length())):
        upper = (code[order] >> bit & 1).astype(np.bool_)
        group = _changes(strata[order], code[order] >> (bit + 1))
        net[order] += _net(upper, group, group | _changes(rank[order]))
        order = order[_parted(upper, group)]
    return Pairs(net, one, other, one + other - _unlike(strata, cell))


def _unlike(stratum: Ints, code: Ints) -> Ints:
    """Count for each page those of its stratum with another code."""
    _, place = np.unique(stratum, return_inverse=True)
    place = place.ravel()
    _, cell = np.unique(place * (code.max(initial=0) + 1) + code, return_inverse=True)
    cell = cell.ravel()
    return np.bincount(place)[place] - np.bincount(cell)[cell]


def _changes(*columns: Ints) -> Bools:
    """Tell the rows where a group begins: where any of the columns differs from the row before."""
    begins = np.ones(len(columns[0]), dtype=np.bool_)
    begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return begins


def _net(upper: Bools, group: Bools, run: Bools) -> Ints:
    """Compare each row with the rows of its group in the other half.

    Parameters
    ----------
    upper
        (N,): in the half with more of the second quantity.
    group, run
        (N,): where groups, and runs of the same first quantity in a group, begin.
    """
    balance = []
    for half in (~upper, upper):
        total = np.concatenate([[0], np.cumsum(half)])
        (low, high), (begin, end) = (_bounds(begins) for begins in (group, run))
        balance.append((total[begin] - total[low]) - (total[high] - total[end]))  # below minus above
    return np.where(upper, balance[0], -balance[1])


def _bounds(begins: Bools) -> tuple[Ints, Ints]:
    """Give where the group of each row begins, and where it ends."""
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(begins))
    sizes = ends - starts
    return np.repeat(starts, sizes), np.repeat(ends, sizes)


def _parted(upper: Bools, group: Bools) -> Ints:
    """Order the rows of each group by half, and else as they stand."""
    return np.argsort(2 * np.cumsum(group) + upper, kind="stable")


def probability(pairs: Pairs) -> float:
    """Give the probability that of two pages the one with more of the second has more of the first.

    Pairs tied in the first count half, pairs tied in the second do not count. For a second quantity of 0 and 1 this is
    the area under the ROC curve (Hanley and McNeil 1982), for any other Harrell's c (1982). NaN where every pair is
    tied in one of them: then nothing was compared.

    Examples
    --------
    Of four pairs three are right, and one is tied:

    >>> probability(pairs_of(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])))
    0.875
    """
    return 0.5 + int(pairs.net.sum()) / int(pairs.second.sum()) / 2 if pairs.count else np.nan


def tau_b(pairs: Pairs) -> float:
    """Give Kendall's tau_b, as `judged.stats.kendall_tau` does; NaN where all pages are tied in one quantity."""
    unlike = float(pairs.first.sum()) * float(pairs.second.sum())
    return float(pairs.net.sum()) / float(np.sqrt(unlike)) if unlike else np.nan
