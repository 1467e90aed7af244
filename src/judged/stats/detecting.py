"""The true difference that a test would have found: by drawing topics from those at hand."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.options import share
from judged.stats.pairing import spread
from judged.stats.resampling import ResampledTopics
from judged.stats.sample_size import minimum_detectable

if TYPE_CHECKING:
    from judged._types import Floats

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
