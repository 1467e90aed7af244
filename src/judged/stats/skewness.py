"""A second look at tests of a mean, for differences that lie far more to one side than to the other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.inputs import spread
from judged.stats.options import Options
from judged.stats.student import student_cdf, student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged._types import Floats
    from judged.stats.results import Difference

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
    symmetric = test.test in {"randomisation", "t", "ratio"} and not math.isnan(test.p)
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
