"""How close a reproduced experiment comes to the original (Breuer et al. 2020). Sees only scores by topic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Floats

_ROUNDING = 1e-12  # of the largest score: differences below it are none


def rmse(original: Floats, again: Floats) -> float:
    """Give the root mean square error of the topic scores: (T,) and (T,); topics with a NaN are left out.

    >>> round(rmse(np.array([0.2, 0.4, 0.6]), np.array([0.2, 0.4, 0.3])), 4)
    0.1732
    """
    one, other = _paired(original, again)
    return math.sqrt(float(((one - other) ** 2).mean())) if len(one) else math.nan


def effect_ratio(baseline: Floats, advanced: Floats, baseline_again: Floats, advanced_again: Floats) -> float:
    """Give the mean improvement that was found again, divided by the original one.

    >>> effect_ratio(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    0.5
    """
    # 1: the same effect; between 0 and 1: a smaller one; below 0: the opposite one. NaN where there was none to find.
    # `baseline`, `advanced`: (T,): the original scores; topics with a NaN are left out. `baseline_again`,
    # `advanced_again`: (U,): the reproduced ones, over the same topics or (a replication) others.
    was, now = (_improvement(*_paired(*pair)) for pair in ((baseline, advanced), (baseline_again, advanced_again)))
    return now / was if was else math.nan


def delta_relative_improvement(
    baseline: Floats, advanced: Floats, baseline_again: Floats, advanced_again: Floats
) -> float:
    """Give the original relative improvement minus the reproduced one: 0 if the same, above 0 if less came back.

    >>> delta_relative_improvement(np.array([0.25]), np.array([0.75]), np.array([0.25]), np.array([0.5]))
    1.0
    """
    # NaN where a baseline has the mean 0.
    found: list[float] = []
    for base, other in ((baseline, advanced), (baseline_again, advanced_again)):
        one, two = _paired(base, other)
        mean = float(one.mean()) if len(one) else 0.0
        found.append(_improvement(one, two) / mean if mean else math.nan)
    return found[0] - found[1]


def t_test_p(original: Floats, again: Floats, *, same_topics: bool = True) -> float:
    """Give the p-value of Student's t-test, two-sided: a small one says that the scores are not those of the original.

    >>> round(t_test_p(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.2, 0.5, 0.5])), 4)
    0.0917
    """
    # `original`, `again`: (T,) float64, (U,). Returns 1 where all differences are 0; 0 where all are the same but not
    # 0, so that there is no variance to test against; NaN below two topics.
    from scipy.special import stdtr

    if same_topics:
        one, other = _paired(original, again)
        difference = one - other
        count, spread = len(difference), _squares(difference)
        mean, error, df = difference.mean() if count else math.nan, math.nan, count - 1
        error = math.sqrt(spread / df / count) if df > 0 else math.nan
    else:
        one, other = (np.asarray(side, dtype=np.float64) for side in (original, again))
        one, other = one[~np.isnan(one)], other[~np.isnan(other)]
        df = len(one) + len(other) - 2
        if min(len(one), len(other)) < 2:
            return math.nan
        mean = one.mean() - other.mean()
        error = math.sqrt((_squares(one) + _squares(other)) / df * (1 / len(one) + 1 / len(other)))
    if math.isnan(error):
        return math.nan
    scale = _ROUNDING * max(float(np.abs(one).max()), float(np.abs(other).max()))
    if error <= scale:
        return 1.0 if abs(mean) <= scale else 0.0
    return float(2 * stdtr(df, -abs(float(mean)) / error))


def _paired(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise InputError(f"scores of shapes {one.shape} and {other.shape}", fix="give one score per topic in both")
    known = ~(np.isnan(one) | np.isnan(other))
    return one[known], other[known]


def _improvement(baseline: Floats, advanced: Floats) -> float:
    """Give the mean difference; what is only rounding is 0."""
    if not len(baseline):
        return math.nan
    mean = float((advanced - baseline).mean())
    return mean if abs(mean) > _ROUNDING * float(np.abs([baseline, advanced]).max()) else 0.0


def _squares(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum()) if len(values) else math.nan
