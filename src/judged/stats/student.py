"""Student's t distribution for whole degrees of freedom, without importing scipy."""

from __future__ import annotations

import math
from functools import lru_cache

_MANY = 1000  # degrees of freedom from which four terms of the expansion are exact in double precision


def student_cdf(t: float, df: int) -> float:
    """Return P(T <= t) for T with ``df`` degrees of freedom: the finite sums of Abramowitz and Stegun 26.7.3-4.

    >>> round(student_cdf(2.0, 5), 6)
    0.94903
    """
    theta = math.atan2(abs(t), math.sqrt(df))
    cos2 = math.cos(theta) ** 2
    odd = df % 2
    term = math.cos(theta) if odd else 1.0
    total = term if df > 1 or not odd else 0.0
    for step in range(2 + odd, df - 1, 2):
        term *= cos2 * (step - 1) / step
        total += term
    sine_term = math.sin(theta) * total
    central_probability = 2.0 / math.pi * (theta + sine_term) if odd else sine_term
    return 0.5 + math.copysign(central_probability, t) / 2.0


@lru_cache(maxsize=256)
def student_quantile(probability: float, df: int) -> float:
    """Return the quantile of Student's t with ``df`` degrees of freedom, by bisection.

    >>> round(student_quantile(0.975, 9), 6)
    2.262157
    """
    if probability < 0.5:
        return -student_quantile(1.0 - probability, df)
    if df >= _MANY:
        return _expanded_quantile(probability, df)
    low, high = 0.0, 1.0
    while student_cdf(high, df) < probability:
        high *= 2.0
    while (middle := (low + high) / 2.0) not in {low, high}:
        low, high = (middle, high) if student_cdf(middle, df) < probability else (low, middle)
    return high


def _expanded_quantile(probability: float, df: int) -> float:
    """Return the quantile by its expansion around the normal quantile (Abramowitz and Stegun 26.7.5).

    >>> round(student_quantile(0.975, 10**6), 9)
    1.959966357
    """
    from statistics import NormalDist  # slow to import

    z = NormalDist().inv_cdf(probability)
    terms = (
        z * (z**2 + 1) / 4,
        z * (5 * z**4 + 16 * z**2 + 3) / 96,
        z * (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384,
        z * (79 * z**8 + 776 * z**6 + 1482 * z**4 - 1920 * z**2 - 945) / 92160,
    )
    return z + sum(term / df ** (power + 1) for power, term in enumerate(terms))
