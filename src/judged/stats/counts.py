"""Counts of groups: their exact intervals, and which groups have more of something than chance would give them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.correction import adjust

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints


def share_limits(counts: Ints, sizes: Ints, level: float) -> tuple[Floats, Floats]:
    """Give the interval of each share ``counts / sizes`` by Clopper and Pearson (Biometrika 1934).

    >>> [end.round(4).tolist() for end in share_limits(np.array([0, 3]), np.array([10, 3]), 0.95)]
    [[0.0, 0.2924], [0.3085, 1.0]]
    """
    from scipy.special import betaincinv

    missed, rest = (1.0 - level) / 2.0, sizes - counts
    low = np.where(counts > 0, betaincinv(np.maximum(counts, 1), rest + 1, missed), 0.0)
    high = np.where(rest > 0, betaincinv(counts + 1, np.maximum(rest, 1), 1.0 - missed), 1.0)
    return low, high


def rate_limits(counts: Floats, expected: Floats, level: float) -> tuple[Floats, Floats]:
    """Give the interval of each rate ``counts / expected`` of a Poisson count (Garwood, Biometrika 1936).

    >>> [end.round(3).tolist() for end in rate_limits(np.array([0.0, 10.0]), np.array([1.0, 1.0]), 0.95)]
    [[0.0, 4.795], [3.689, 18.39]]
    """
    # Whole numbers are not asked for: counts divided by how much more they vary than a Poisson count are none.
    from scipy.special import gammaincinv

    missed = (1.0 - level) / 2.0
    low = gammaincinv(np.maximum(counts, 1e-9), missed)  # exactly 0 for no count
    return low / expected, gammaincinv(counts + 1.0, 1.0 - missed) / expected


def chances_of_more(counts: Ints, sizes: Ints, all_counts: int, all_sizes: int) -> tuple[Floats, Floats]:
    """Give the chance that a group has so many or more, had all that there are been dealt to the groups at random.

    Fisher's exact test, one-sided, of each group against all others. The lady who names three of four cups rightly:

    >>> [chances.round(4).tolist() for chances in chances_of_more(np.array([3]), np.array([4]), 4, 8)]
    [[0.2429], [0.0143]]
    """
    # `sizes`: of the groups, `counts`: how many of their members have it; `all_counts`, `all_sizes`: of all groups. The
    # second array is the least chance that a group of this size can have.
    from scipy.special import gammaln

    def chosen(n: Floats | int, k: Floats) -> Floats:
        """Give the logarithm of the number of ways to choose k of n."""
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    chance, least = np.ones(len(sizes)), np.ones(len(sizes))
    order = np.argsort(sizes, kind="stable")
    starts = np.unique(sizes[order], return_index=True)[1]
    for members in np.split(order, starts[1:]):
        if not len(members):
            continue
        size = int(sizes[members[0]])
        had = np.arange(min(size, all_counts) + 1.0)  # a number that is too small has no chance
        chances = np.exp(chosen(all_counts, had) + chosen(all_sizes - all_counts, size - had)
                         - chosen(all_sizes, np.array(float(size))))  # fmt: skip
        tails = np.minimum(np.cumsum(chances[::-1])[::-1], 1.0)
        chance[members] = tails[counts[members]]
        least[members] = tails[-1]
    return chance, least


def told(p_values: Floats, least: Floats, fdr: float) -> tuple[Bools, Floats]:
    """Choose groups with at most this share of false ones on average, and adjust p-values for how many could be.

    A group that is so small that its p-value cannot be small is not counted among the tests (Gilbert, Applied
    Statistics 2005, after Tarone); among the others it is Benjamini and Hochberg's rule.

    >>> told(np.array([0.01, 0.5, 0.5]), np.array([0.001, 0.4, 0.4]), 0.05)
    (array([ True, False, False]), array([0.01,  nan,  nan]))
    """
    ordered = np.sort(least)
    tests = next(m for m in itertools.count(1) if np.searchsorted(ordered, fdr / m, "right") <= m)
    testable = least <= fdr / tests
    adjusted = np.full(len(p_values), np.nan)
    if testable.any():
        adjusted[testable] = adjust(p_values[testable], "bh")
    return adjusted <= fdr, adjusted
