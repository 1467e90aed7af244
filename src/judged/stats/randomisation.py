"""Fisher's randomisation test: if the systems were alike, each topic's difference could as well have the other sign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.options import PairedResult, share
from judged.stats.resampling import SignFlips, least, resampled_sums, whole_numbers

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.stats.options import Options


def randomisation(differences: Floats, rounding: Floats, options: Options) -> list[PairedResult]:
    """Test whether the mean of each row is 0 by flipping signs."""
    # The p-value is the share of sign flips whose sum is at least as far from 0; sums that are the same but for
    # rounding count. Drawn flips: (b + 1) / (B + 1), as the signs that were seen are one more flip. The interval holds
    # every shift of the second system that the same flips would not reject. Flipping the topics F of differences
    # shifted by x gives a sum as high as the one seen just where the mean difference over F is at most x: the limits
    # are quantiles of the means over random subsets of topics (Hartigan 1969). An interval excludes 0 where p is at
    # most alpha, and is infinite where so few topics cannot be significant. `differences`: (P, T) with T > 1, no row
    # all 0. `rounding`: (P,): sums that differ by this much are the same.
    topics = differences.shape[1]
    flips = SignFlips(topics, options.resamples, options.seed)
    numbers, units = whole_numbers(differences)
    table = np.concatenate([np.ones((1, topics)), numbers])  # the sum of the signs themselves says how many flipped
    found: list[PairedResult] = []
    finding = None
    for first, (sums,) in resampled_sums(flips, table):
        skip = 0
        if finding is None:
            finding, skip = _Limits(sums[0], flips, options), 1
        for row, flipped in enumerate(sums[skip:], first + skip - 1):
            total, unit = float(numbers[row].sum()), float(units[row])
            slack = float(rounding[row]) / unit + topics  # each number is half a unit off, at most
            low, high = (0.0 if abs(limit) <= slack else limit * unit for limit in finding.of(flipped, total))
            found.append(
                PairedResult(
                    statistic=float(differences[row].mean()),
                    p=_p(flipped, total, slack, flips, options),
                    interval=options.interval(low, high),
                    resamples=1 << topics if flips.exact else flips.count,
                    exact=flips.exact,
                    seed=None if flips.exact else options.seed,
                )
            )
    return found


@dataclass(frozen=True)
class _Subsets:
    """The topics that each resample flips, or those that it leaves, where there are some."""

    some: Bools | None  # None: in all resamples
    inverse: Floats  # one over how many, for those resamples
    empty: int  # the other resamples

    @staticmethod
    def of(sizes: Floats) -> _Subsets:
        """Sort out the resamples in which a subset is empty."""
        some = sizes > 0
        empty = len(sizes) - int(np.count_nonzero(some))
        return _Subsets(some if empty else None, 1.0 / sizes[some], empty)

    def means(self, twice: Floats, into: Floats) -> int:
        """Put the means over the subsets into the beginning of ``into``, from twice their sums; give how many."""
        found = into[: len(self.inverse)]
        np.multiply(twice if self.some is None else twice[self.some], self.inverse, out=found)
        found *= 0.5
        return len(found)


class _Limits:
    """Finds the least and the greatest shift that is not rejected; its arrays serve all pairs."""

    def __init__(self, signs: Floats, flips: SignFlips, options: Options) -> None:
        self._subsets = [_Subsets.of((flips.n - signs) / 2)]
        if options.alternative == "two-sided" or flips.exact:  # then the topics that are left are a subset, too
            self._subsets.append(_Subsets.of((flips.n + signs) / 2))
        if flips.exact:
            listed = flips.count if options.alternative == "two-sided" else 2 * flips.count
            rank = share(options.alpha, listed) + 1
        else:
            rank = share(options.alpha, flips.count + 1)
        # a flip of nothing gives the sum that was seen, whatever the shift
        self._rank = rank - sum(subset.empty for subset in self._subsets)
        self._alternative = options.alternative
        self._means = np.empty(sum(len(subset.inverse) for subset in self._subsets))
        self._twice = np.empty_like(signs)

    def of(self, flipped: Floats, total: float) -> tuple[float, float]:
        at = 0
        for subset, add in zip(self._subsets, (np.subtract, np.add), strict=False):
            add(total, flipped, out=self._twice)
            at += subset.means(self._twice, self._means[at:])
        low = least(self._means, self._rank) if self._alternative != "less" else -math.inf
        np.negative(self._means, out=self._means)
        high = -least(self._means, self._rank) if self._alternative != "greater" else math.inf
        return low, high


def _p(flipped: Floats, total: float, rounding: float, flips: SignFlips, options: Options) -> float:
    edge = (-total if options.alternative == "less" else total) - rounding
    if options.alternative == "two-sided":
        edge = abs(total) - rounding
        reached = _beyond(flipped, edge) + _beyond(flipped, edge, below=True) if edge > 0 else flips.count
        return reached / flips.count if flips.exact else (reached + 1) / (flips.count + 1)
    reached = _beyond(flipped, edge, below=options.alternative == "less")
    if not flips.exact:
        return (reached + 1) / (flips.count + 1)
    return (reached + _beyond(flipped, edge, below=options.alternative != "less")) / (2 * flips.count)


def _beyond(sums: Floats, edge: float, *, below: bool = False) -> int:
    """Count the sums of at least ``edge``, or of at most ``-edge``."""
    return int(np.count_nonzero(sums <= -edge if below else sums >= edge))
