"""What tests and effects of paired scores have in common: which topics count, and when numbers are the same."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats

ROUNDING = 1e-12  # of the larger number: scores are sums of fractions, and what is equal may differ in the last bits

MOST_RESAMPLES = 1_000_000
"""More would take hours, and change no digit that is printed."""


def paired_differences(first: ArrayLike, second: ArrayLike) -> tuple[Floats, int]:
    """Subtract the first from the second, over the topics that have a score for both.

    >>> paired_differences([0.1, 0.5, float("nan")], [0.1, 0.75, 1.0])
    (array([0.  , 0.25]), 1)
    """
    # `first`, `second`: (T,): scores by topic; NaN where the topic has none. Returns differences: exactly 0 where the
    # two scores are equal but for rounding. Returns left_out: T - n.
    a, b = _numbers(first), _numbers(second)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(
            f"scores of shapes {a.shape} and {b.shape} cannot be paired", fix="give one score per topic for each"
        )
    counted = ~(np.isnan(a) | np.isnan(b))
    a, b = a[counted], b[counted]
    differences = b - a
    differences[np.abs(differences) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return differences, int(len(counted) - len(a))


def score_matrix(values: ArrayLike, *, least: int = 2) -> Floats:
    """Check scores of systems by topic: (S, T), with at least so many systems."""
    scores = _numbers(values)
    if scores.ndim != 2:
        raise InputError(
            f"scores of shape {scores.shape} are not a table", fix="give one row per system, one column per topic"
        )
    if len(scores) < least:
        raise InputError(f"{len(scores)} systems are too few", fix=f"give at least {least}")
    return scores


def complete_topics(values: Floats) -> tuple[Floats, int]:
    """Keep the topics that have a score for every system; say how many do not."""
    kept = values[:, np.flatnonzero(~np.isnan(values).any(axis=0))]
    return kept, values.shape[1] - kept.shape[1]


def spread(differences: Floats) -> float:
    """Give the standard deviation (n - 1): exactly 0 where all are the same but for rounding, NaN for fewer than two.

    >>> spread(np.array([0.1, 0.2, 0.3])).__round__(6), spread(np.array([0.1, 0.3 - 0.2])), spread(np.array([0.1]))
    (0.1, 0.0, nan)
    """
    if len(differences) < 2:
        return math.nan
    if np.ptp(differences) <= ROUNDING * np.abs(differences).max():
        return 0.0
    return float(differences.std(ddof=1))


def check_share(name: str, value: float, low: float = 0.0, high: float = 1.0) -> None:
    """Refuse what is not strictly between two bounds."""
    if not low < value < high:
        raise InputError(f"the {name} {value} is not between {low:g} and {high:g}", fix=f"give a {name} between them")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise InputError for what is not a whole number of at least `least`.

    >>> check_count("limit", "x")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: limit must be a whole number of at least 1, got 'x'. Fix: give one, such as 10.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        problem = f"{name} must be a whole number of at least {least}, got {value!r:.60}"
        raise InputError(problem, fix="give one, such as 10")


def check_resampling(resamples: int, seed: int) -> None:
    """Raise InputError for a number of resamples or a seed that makes no sense."""
    if resamples < 100:
        raise InputError(f"{resamples} resamples are too few", fix="at least 100")
    if resamples > MOST_RESAMPLES:
        raise InputError(f"{resamples:,} resamples would never end", fix=f"at most {MOST_RESAMPLES:,}")
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")


def topics_text(n: int) -> str:
    """Write a number of topics.

    >>> topics_text(1), topics_text(43)
    ('1 topic', '43 topics')
    """
    return f"{n} topic{'' if n == 1 else 's'}"


def _numbers(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InputError("a score is infinite", fix="give finite scores, NaN where a topic has none")
    return numbers
