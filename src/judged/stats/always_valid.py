"""Intervals that hold at every look: a test may be watched from day to day and stopped when it is decided.

The mixture of Lindon, Ham, Tingley and Bojinov (arXiv 2210.08589) for linear models, with the two ratios of a test or
their adjusted difference in the place of coefficients: for ratios it holds asymptotically, so that nothing should be
said before a burn-in. Where all users were there from the start a fixed interval is narrower.
"""

from __future__ import annotations

import math


def prior_size(expected: float, alpha: float) -> float:
    """Give the g that makes the interval of level ``1 - alpha`` narrowest at the expected number of units.

    >>> round(prior_size(5000, 0.05))
    609
    """
    # with r = g / (g + n), the squared critical value is about (-ln r - 2 ln alpha) / (1 - r): its least is where
    # -ln r - 2 ln alpha = 1 / r - 1
    low, high = 1e-12, 1.0
    while (r := math.sqrt(low * high)) not in {low, high}:
        low, high = (r, high) if 1.0 / r - 1.0 > -math.log(r) - 2.0 * math.log(alpha) else (low, r)
    return expected * low / (1.0 - low)


def e_value(t: float, n: float, df: float, g: float) -> float:
    """Give the evidence against no difference: of n units, by how many standard errors t it lies from 0.

    Under no difference it is ever above 1 / alpha with a probability of at most alpha, however often one looks.

    >>> round(e_value(3.0, 1000, 998, 30), 3)
    13.264
    """
    r = g / (g + n)
    x = t * t / df
    log = 0.5 * math.log(r) + (df + 1.0) / 2.0 * (math.log1p(x) - math.log1p(r * x))
    return math.exp(min(log, 700.0))


def critical_value(n: float, df: float, g: float, alpha: float) -> float:
    """Give the number of standard errors on each side of the difference; infinite where there are too few units.

    >>> [round(critical_value(1000, 998, g, 0.05), 2) for g in (1, 30, 300)]
    [3.6, 3.14, 3.12]
    """
    r = g / (g + n)
    k = math.exp((math.log(r) + 2.0 * math.log(alpha)) / (df + 1.0))
    return math.sqrt(df * (1.0 - k) / (k - r)) if k > r else math.inf
