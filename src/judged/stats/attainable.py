"""What a test can say at the data at hand: whether it holds its error rate there, and the least p-value it can give."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.stats.student import student_cdf

if TYPE_CHECKING:
    from judged.stats.results import Alternative

_SIGN_FLIPS = ("randomisation", "ratio")
_COUNTED = ("sign", "wilcoxon")
_BOOTSTRAPS = ("bootstrap", "bca", "studentised")
_ROUNDING = 1e-12

LEAST_DIFFERING = {"t": 6, **dict.fromkeys(_BOOTSTRAPS, 40)}
"""Topics with a difference from which a test is believed, by simulation (docs/calibration.md)."""


def believed(test: str, n: int, differing: int) -> bool:
    """Tell whether a test holds its error rate over n topics of which so many differ.

    >>> believed("bca", 5000, 2), believed("bca", 48, 43), believed("t", 5, 5), believed("t", 5000, 4)
    (False, True, True, False)
    """
    # Resampled topics know nothing of values that few topics have: below 40 topics with a difference, the bootstraps
    # reject true nulls up to ten times as often as they say. Student's t fails only where most topics tie and a few
    # have the same difference.
    return differing >= LEAST_DIFFERING.get(test, 0) or (test == "t" and differing == n)


def least_p(
    n: int,
    test: str = "randomisation",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> float:
    """Give a p-value that a paired test cannot go below, however large the differences are.

    >>> least_p(5), least_p(5, alternative="less"), least_p(5, "t"), least_p(48, resamples=999)
    (0.0625, 0.03125, 0.0, 0.001)
    >>> least_p(48, differing=3), least_p(5, "bootstrap"), round(least_p(48, "t", differing=6), 4)
    (0.25, 0.0625, 0.0127)
    """
    # Tests that flip signs, or count and rank them, have 2^m arrangements of m topics that differ, of which one is the
    # most extreme to a side; those that draw resamples count what was seen as one more. A t is largest where all m have
    # the same difference. Returns 1 for fewer than two topics, of which there is no test; 0 for tests that know no
    # bound, such as `bayes`.
    moved = n if differing is None else differing
    if n < 2 or moved < 1:
        return 1.0
    sides = 2 if alternative == "two-sided" else 1
    if test in _COUNTED:
        return sides * 2.0**-moved
    if test in _SIGN_FLIPS or not believed(test, n, moved):
        listed = n < 60 and 1 << n <= resamples
        return max(sides * 2.0**-moved, 0.0 if listed else 1 / (resamples + 1))
    if test == "t" and moved < n:
        return sides * student_cdf(-math.sqrt(moved * (n - 1) / (n - moved)), n - 1)
    return 1 / (resamples + 1) if test in _BOOTSTRAPS else 0.0


def out_of_reach(
    alpha: float,
    n: int,
    test: str = "randomisation",
    alternative: Alternative = "two-sided",
    resamples: int = 100_000,
    *,
    differing: int | None = None,
) -> bool:
    """Tell whether no difference could be significant: the least p-value is above alpha.

    >>> out_of_reach(0.05, 5), out_of_reach(0.05, 6), out_of_reach(0.05 / 2, 6), out_of_reach(0.05, 5, "t")
    (True, False, True, False)
    """
    # For one of many comparisons give the alpha that is left after the correction, such as alpha / family.
    return least_p(n, test, alternative, resamples, differing=differing) > alpha * (1 + _ROUNDING)
