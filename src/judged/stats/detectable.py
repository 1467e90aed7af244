"""What a test can see: the true difference that it would have found, and the least p that it can reach."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.bounded import LARGEST_BET
from judged.stats.inputs import spread
from judged.stats.resampling import ResampledTopics
from judged.stats.results import share
from judged.stats.sample_size import minimum_detectable
from judged.stats.student import student_cdf

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.stats.results import Alternative

_DRAWS = 1000
_FLIPPED = 12  # topics up to which all signs are flipped in each draw; for more, t rejects nearly the same draws
_FORMULA = 1000  # topics from which on means are normal, whatever the differences are


def detectable(
    differences: Floats,
    alpha: float,
    power: float = 0.8,
    *,
    flips: bool = False,
    critical: float = math.nan,
    seed: int = 0,
) -> float:
    """Give the true mean difference that a test of such topics finds with this probability, whichever way it points.

    >>> round(detectable(np.linspace(-0.1, 0.2, 43), 0.05), 2)
    0.04
    """
    # As many topics are drawn from the differences, less their mean; if the true difference were D, each would be
    # higher by D. A draw whose interval reaches down to -x is one in which the test finds every D above x: so D is a
    # quantile of that, or of the same for differences the other way, if that is larger. `flips`: whether it is the
    # randomisation test. For more than 12 topics Student's t stands in for it, as for the bootstraps: on the same draws
    # they agree. Returns NaN where the differences do not vary, or are of so few topics that none could be found. Over
    # more than 1000 topics by the formula for normal differences.
    n, deviation = len(differences), spread(differences)
    if not deviation > 0:
        return math.nan
    if n > _FORMULA and math.isnan(critical):
        return minimum_detectable(deviation, n, alpha, power)
    apart = (differences - differences.mean()) * math.sqrt(n / (n - 1))  # a sample varies less than what it is from
    if flips and n <= _FLIPPED:
        low, high = _by_flips(apart, alpha, seed)
    else:
        times = _times(n, seed)
        means = times @ apart / n
        variances = np.maximum(times @ apart**2 / n - means**2, 0.0)
        half = _quantile(n, alpha) * np.sqrt(variances / (n - 1)) if math.isnan(critical) else critical
        low, high = means - half, means + half
    found = max(np.quantile(-low, power, method="higher"), np.quantile(high, power, method="higher"))
    return float(found) if math.isfinite(found) else math.nan


def _by_flips(apart: Floats, alpha: float, seed: int) -> tuple[Floats, Floats]:
    """Give the limits of the randomisation test's interval in each draw of topics: quantiles of means over subsets."""
    n = len(apart)
    drawn = apart[np.random.default_rng(seed).integers(n, size=(_DRAWS // 4, n))]
    subsets = (np.arange(1, 1 << n)[:, None] >> np.arange(n)) & 1
    means = drawn @ (subsets / subsets.sum(axis=1, keepdims=True)).T
    rank = share(alpha, 1 << (n - 1))  # of flips of all signs; one of them flips nothing, and is not listed
    if rank < 1:
        return np.full(len(drawn), -np.inf), np.full(len(drawn), np.inf)
    means.partition((rank - 1, means.shape[1] - rank), axis=1)
    return means[:, rank - 1], means[:, -rank]


@lru_cache(maxsize=4)
def _times(n: int, seed: int) -> Floats:
    """Give how often each topic is drawn in each draw: many pairs share it."""
    return np.concatenate(list(ResampledTopics(n, _DRAWS, seed).blocks()))


@lru_cache(maxsize=256)
def _quantile(n: int, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - alpha / 2))


_SIGN_FLIPS = ("randomisation", "ratio")
_COUNTED = ("sign", "wilcoxon")
_BOOTSTRAPS = ("bootstrap", "bca", "studentised")
_ROUNDING = 1e-12

LEAST_DIFFERING = {"t": 6, **dict.fromkeys(_BOOTSTRAPS, 40)}
"""Topics with a difference from which a test is believed, by simulation (docs/calibration.md)."""

LEAST_EFFECTIVE: dict[str, int] = dict.fromkeys(("bca", "studentised"), 12)
"""Effective number of topics with a difference from which a test is believed; see `effective_differing`."""


def effective_differing(differences: Floats) -> Floats:
    """Return Kish's effective number of topics with a difference, by squared differences: (..., T) to (...).

    Equal differences count fully, topics that tie or nearly tie do not count, and normal differences count a third.
    NaN where no topic has a difference.

    >>> effective_differing(np.array([[0.1, -0.1, 0.0], [0.5, 0.001, -0.001]])).round(3).tolist()
    [2.0, 1.0]
    """
    largest = np.abs(differences).max(axis=-1, keepdims=True)
    squares = (differences / np.where(largest > 0, largest, np.nan)) ** 2
    return squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1)


def believed(test: str, n: int, differing: int) -> bool:
    """Tell whether a test holds its error rate over n topics of which so many differ.

    >>> believed("bca", 5000, 2), believed("bca", 48, 43), believed("t", 5, 5), believed("t", 5000, 4)
    (False, True, True, False)
    """
    # Resampled topics know nothing of values that few topics have: below 40 topics with a difference, the bootstraps
    # reject true nulls up to ten times as often as they say. Where most differences are near-ties, BCa and the
    # studentised bootstrap do so with 200 topics, too: `effective_differing` counts topics by what they contribute.
    # Student's t fails only where most topics tie and a few have the same difference.
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
    # the same difference. A bet of the bounded test multiplies the wealth by 1.95 at most. Returns 1
    # for fewer than two topics, of which there is no test; 0 for tests that know no bound, such as `bayes`.
    moved = n if differing is None else differing
    if n < 2 or moved < 1:
        return 1.0
    sides = 2 if alternative == "two-sided" else 1
    if test in _COUNTED:
        return sides * 2.0**-moved
    if test in _SIGN_FLIPS or not believed(test, n, moved):
        listed = n < 60 and 1 << n <= resamples
        return max(sides * 2.0**-moved, 0.0 if listed else 1 / (resamples + 1))
    if test == "bounded":
        return min(1.0, sides * (1 + LARGEST_BET) ** -n)
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
