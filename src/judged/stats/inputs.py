"""Checks of scores and options, and rounding rules that tests and effect sizes share."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats

ROUNDING = 1e-12  # times the larger number: scores are sums of fractions, so equal scores may differ in the last bits

MAX_RESAMPLES = 1_000_000
"""More resamples take hours and do not change any printed digit."""


def paired_differences(first: ArrayLike, second: ArrayLike) -> tuple[Floats, int]:
    """Subtract the first scores from the second, over the topics with both scores.

    >>> paired_differences([0.1, 0.5, float("nan")], [0.1, 0.75, 1.0])
    (array([0.  , 0.25]), 1)
    """
    # `first`, `second`: (T,), NaN for missing scores. Returns the n differences, exactly 0 for scores that are equal
    # within rounding, and the number of topics that are left out, T - n.
    a, b = _numbers(first), _numbers(second)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(
            f"paired scores must have the same length, got shapes {a.shape} and {b.shape}",
            fix="pass one score per topic for each system",
        )
    in_both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[in_both], b[in_both]
    differences = b - a
    differences[np.abs(differences) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return differences, int(len(in_both) - len(a))


def score_matrix(values: ArrayLike, *, least: int = 2) -> Floats:
    """Check scores of systems by topic, (S, T), with at least `least` systems."""
    scores = _numbers(values)
    if scores.ndim != 2:
        raise InputError(
            f"scores must have 2 dimensions, got shape {scores.shape}",
            fix="pass one row per system, one column per topic",
        )
    if len(scores) < least:
        raise InputError(f"at least {least} systems are required, got {len(scores)}", fix="add a system")
    return scores


def complete_topics(values: Floats) -> tuple[Floats, int]:
    """Return the scores of the topics that every system has a score for, and the number of the other topics."""
    complete = values[:, np.flatnonzero(~np.isnan(values).any(axis=0))]
    return complete, values.shape[1] - complete.shape[1]


def spread(differences: Floats) -> float:
    """Return the standard deviation (n - 1): exactly 0 for values equal within rounding, NaN for fewer than two.

    >>> spread(np.array([0.1, 0.2, 0.3])).__round__(6), spread(np.array([0.1, 0.3 - 0.2])), spread(np.array([0.1]))
    (0.1, 0.0, nan)
    """
    if len(differences) < 2:
        return math.nan
    if np.ptp(differences) <= ROUNDING * np.abs(differences).max():
        return 0.0
    return float(differences.std(ddof=1))


def check_share(name: str, value: float, low: float = 0.0, high: float = 1.0) -> None:
    """Raise InputError unless a value is strictly between two bounds."""
    if not low < value < high:
        raise InputError(
            f"the {name} must be between {low:g} and {high:g}, got {value}", fix="use a value between them"
        )


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise InputError unless a value is an integer of at least `least`.

    >>> check_count("limit", "x")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: limit must be an integer of at least 1, got 'x'. Fix: use 10, for example.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        problem = f"{name} must be an integer of at least {least}, got {value!r:.60}"
        raise InputError(problem, fix="use 10, for example")


def check_resampling(resamples: int, seed: int) -> None:
    """Raise InputError unless the number of resamples and the seed are in range."""
    if resamples < 100:
        raise InputError(f"at least 100 resamples are required, got {resamples}", fix="use 10000, for example")
    if resamples > MAX_RESAMPLES:
        raise InputError(f"at most {MAX_RESAMPLES:,} resamples are allowed, got {resamples:,}", fix="use 100000")
    if seed < 0:
        raise InputError(f"the seed must not be negative, got {seed}", fix="use 0, for example")


def topics_text(n: int) -> str:
    """Format a number of topics.

    >>> topics_text(1), topics_text(43)
    ('1 topic', '43 topics')
    """
    return f"{n} topic{'' if n == 1 else 's'}"


def _numbers(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InputError("scores must be finite, got an infinite score", fix="use NaN for missing scores")
    return numbers
