"""Student's t, and a second look at tests of a mean where differences lie far more to one side than to the other."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.options import Options, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged._types import Floats
    from judged.stats.results import Difference

_MANY = 1000  # degrees of freedom, from which four terms of the expansion leave no error in a double


def student_cdf(t: float, df: int) -> float:
    """Give P(T <= t) for T with ``df`` degrees of freedom: the finite sums of Abramowitz and Stegun 26.7.3-4.

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
    inside = math.sin(theta) * total
    within = 2.0 / math.pi * (theta + inside) if odd else inside
    return 0.5 + math.copysign(within, t) / 2.0


@lru_cache(maxsize=256)
def student_quantile(probability: float, df: int) -> float:
    """Give the t below which a T with ``df`` degrees of freedom falls with this probability, by bisection.

    >>> round(student_quantile(0.975, 9), 6)
    2.262157
    """
    if probability < 0.5:
        return -student_quantile(1.0 - probability, df)
    if df >= _MANY:
        return _expanded(probability, df)
    low, high = 0.0, 1.0
    while student_cdf(high, df) < probability:
        high *= 2.0
    while (middle := (low + high) / 2.0) not in {low, high}:
        low, high = (middle, high) if student_cdf(middle, df) < probability else (low, middle)
    return high


def _expanded(probability: float, df: int) -> float:
    """Give the quantile by its expansion around the normal one (Abramowitz and Stegun 26.7.5).

    >>> round(student_quantile(0.975, 10**6), 9)
    1.959966357
    """
    from statistics import NormalDist  # its fractions take a while to import

    z = NormalDist().inv_cdf(probability)
    terms = (
        z * (z**2 + 1) / 4,
        z * (5 * z**4 + 16 * z**2 + 3) / 96,
        z * (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384,
        z * (79 * z**8 + 776 * z**6 + 1482 * z**4 - 1920 * z**2 - 945) / 92160,
    )
    return z + sum(term / df ** (power + 1) for power, term in enumerate(terms))


SECOND = "; on slices with Hall's test too, which sees skewness, the larger p and the wider interval"
"""What captions say of it, behind the name of the test."""


def allowing_for_skew(gaps: Iterable[Floats], tests: Sequence[Difference]) -> tuple[Difference, ...]:
    """Take the larger p-value of each test and of Hall's, and the wider of their limits."""
    # Tests that flip signs, and Student's t, take differences to spread alike to both sides: of a dozen topics with
    # many small losses and a few large gains they reject a mean of 0 twice as often as they say. Hall's transformation
    # of t takes the skewness out of it (Hall 1992). What none of the topics shows, no test sees. `gaps`: P rows of
    # (T,): the differences that were tested, NaN where a topic has none.
    return tuple(_larger(test, row[~np.isnan(row)]) for test, row in zip(tests, gaps, strict=True))


def _larger(test: Difference, gaps: Floats) -> Difference:
    symmetric = test.method in {"randomisation", "t", "ratio"} and not math.isnan(test.p)
    if not symmetric or len(gaps) < 3 or not spread(gaps):
        return test
    p, low, high = _hall(gaps, Options(test.alternative, test.level))
    interval = None if test.interval is None else (min(test.interval[0], low), max(test.interval[1], high))
    return replace(test, p=max(test.p, p), interval=interval)


def _hall(gaps: Floats, options: Options) -> tuple[float, float, float]:
    """Give the p-value, and the limits, of Hall's monotone cubic of Student's t."""
    n, mean, deviation = len(gaps), float(gaps.mean()), gaps - gaps.mean()
    error = float(gaps.std(ddof=1)) / math.sqrt(n)
    apart = deviation / np.abs(deviation).max()  # of tiny differences the cubes would vanish
    skewness = float((apart**3).mean() / (apart**2).mean() ** 1.5) * math.sqrt(n * (n - 1)) / (n - 2)
    lean = skewness / math.sqrt(n)

    def symmetric(t: float) -> float:
        return t + lean / 3 * t**2 + lean**2 / 27 * t**3 + lean / 6

    def back(quantile: float) -> float:
        return 3 / lean * (math.cbrt(1 + lean * (quantile - lean / 6)) - 1) if abs(lean) > 1e-9 else quantile

    seen = symmetric(mean / error)
    lower, upper = student_cdf(seen, n - 1), student_cdf(-seen, n - 1)
    quantile = student_quantile((1 + options.two_sided_level) / 2, n - 1)
    limits = options.interval(mean - back(quantile) * error, mean - back(-quantile) * error)
    return options.p_of(lower, upper), *limits
