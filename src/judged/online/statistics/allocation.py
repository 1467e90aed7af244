"""Changes of the allocation of users to arms, sample ratio mismatch, and always-valid confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats


# Smallest expected number of users of an arm on either side of a split: Cochran's rule for the chi-squared
# distribution.
_MIN_EXPECTED = 5.0


class Allocation(NamedTuple):
    """Periods of constant allocation.

    ``p``: p-value of the hypothesis that the shares of all arms stayed the same; 1 if there are too few users to test
    it. ``starts``: index of the first day of each period; (0,) if no change was detected.
    """

    p: float
    starts: tuple[int, ...]


CONSTANT = Allocation(1.0, (0,))


def allocation_periods(counts: ArrayLike, alpha: float = 0.05) -> Allocation:
    """Split days into periods of constant shares of arms.

    Two tests share `alpha` (Bonferroni): the chi-squared test over all days, and the best split into two periods, which
    has more power for a single change. If either rejects, the days are split there, and both parts are tested in turn.

    Parameters
    ----------
    counts
        (days, arms): new users of each arm by day, in order of time.
    alpha
        Probability of a split if the allocation is constant.

    Examples
    --------
    Seven days with a tenth of the users in the second arm, and seven with half of them:

    >>> allocation_periods([[90, 10]] * 7 + [[50, 50]] * 7).starts
    (0, 7)
    >>> allocation_periods([[50, 50]] * 14)
    Allocation(p=1.0, starts=(0,))
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or (table < 0).any() or not np.isfinite(table).all():
        problem = "`counts` must have one row per day, at least two columns (arms), and no negative number"
        raise InputError(problem, fix="pass the new users of each arm by day")
    p_all_days = math.nan
    starts = {0}
    segments = [(0, len(table))]
    while segments:
        start, end = segments.pop()
        cut, p = _best_split(table[start:end])
        p_all_days = p if math.isnan(p_all_days) else p_all_days
        if p <= alpha and cut:
            starts.add(start + cut)
            segments += [(start, start + cut), (start + cut, end)]
    return Allocation(1.0 if math.isnan(p_all_days) else p_all_days, tuple(sorted(starts)))


def _best_split(table: Floats) -> tuple[int, float]:
    """Return the best day to split at (0: no day), and the combined p-value of both tests."""
    table = table[:, table.sum(axis=0) > 0]
    users, arms = table.sum(), table.shape[1]
    if len(table) < 2 or arms < 2:
        return 0, 1.0
    before = table.cumsum(axis=0)[:-1]
    after = table.sum(axis=0) - before
    shares = table.sum(axis=0) / users
    smallest = shares.min() * np.minimum(before.sum(axis=1), after.sum(axis=1))
    candidates = np.flatnonzero(smallest >= _MIN_EXPECTED)
    if not len(candidates):
        return 0, 1.0
    statistics = _pearson_terms(before[candidates], shares) + _pearson_terms(after[candidates], shares)
    best = int(statistics.argmax())
    p_cut = len(candidates) * _chi_squared_p(float(statistics[best]), arms - 1)
    days = _merge_days(table, shares)
    statistic, df = float(_pearson_terms(days, shares).sum()), (len(days) - 1) * (arms - 1)
    p_days = _chi_squared_p(statistic, df) if df else 1.0
    return int(candidates[best]) + 1, min(1.0, 2.0 * min(p_cut, p_days))


def _pearson_terms(rows: Floats, shares: Floats) -> Floats:
    """Return the contribution of each row to Pearson's statistic."""
    expected = rows.sum(axis=1, keepdims=True) * shares
    return ((rows - expected) ** 2 / expected).sum(axis=1)


def _merge_days(table: Floats, shares: Floats) -> Floats:
    """Merge consecutive days until each row has enough expected users of every arm."""
    min_users = _MIN_EXPECTED / shares.min()
    rows = [np.zeros(table.shape[1])]
    for row in table:
        if rows[-1].sum() >= min_users:
            rows.append(np.zeros(table.shape[1]))
        rows[-1] = rows[-1] + row
    if len(rows) > 1 and rows[-1].sum() < min_users:
        last = rows.pop()
        rows[-1] = rows[-1] + last
    return np.array(rows)


def _chi_squared_p(statistic: float, df: int) -> float:
    from scipy.special import gammaincc

    return float(gammaincc(df / 2.0, statistic / 2.0))


_PRIOR = 100.0  # sum of the Dirichlet parameters: weight of the planned shares, in users


class SampleRatio(NamedTuple):
    """Test for sample ratio mismatch.

    ``statistic``, ``df``: of the chi-squared test. ``p``: p-value for a fixed sample. ``p_always``: always-valid
    p-value, the inverse of a Bayes factor.
    """

    statistic: float
    df: int
    p: float
    p_always: float


def sample_ratio(counts: Sequence[int], shares: Sequence[float] | None = None) -> SampleRatio:
    """Test numbers of users against their planned shares; None: equal shares.

    The always-valid test is that of Lindon and Malek (NeurIPS 2022): a multinomial with the planned shares against one
    with Dirichlet-distributed shares around them.

    Raises
    ------
    InputError
        If there are fewer than two arms with a share, a share is negative, or an arm with share 0 has users.

    Examples
    --------
    >>> round(sample_ratio([5000, 5200]).p, 5), round(sample_ratio([10000, 10300, 9700]).p, 8)
    (0.04767, 0.00012341)
    """
    from scipy.special import gammaincc

    weights = [1.0] * len(counts) if shares is None else [float(share) for share in shares]
    positive = sum(share > 0 for share in weights)
    if len(weights) != len(counts) or positive < 2 or min(weights) < 0 or sum(weights) == math.inf:
        problem = (
            f"`shares` must have a finite number of at least 0 for each of {len(counts)} arms, and at least two numbers"
            " above 0"
        )
        raise InputError(f"{problem}, got {weights}", fix="use 0.5 and 0.5, for example")
    if any(count and not share for count, share in zip(counts, weights, strict=True)):
        raise InputError("an arm with share 0 has users", fix="exclude the arm, or pass its planned share")
    arms = [(count, share / sum(weights)) for count, share in zip(counts, weights, strict=True) if share > 0]
    users, df = sum(counts), len(arms) - 1
    if not users:
        return SampleRatio(0.0, df, 1.0, 1.0)
    statistic = sum((count - users * share) ** 2 / (users * share) for count, share in arms)  # Pearson
    log_bayes_factor = math.lgamma(_PRIOR) - math.lgamma(_PRIOR + users)
    # Marginal likelihood of the Dirichlet-multinomial divided by that of the multinomial.
    for count, share in arms:
        log_bayes_factor += math.lgamma(_PRIOR * share + count) - math.lgamma(_PRIOR * share) - count * math.log(share)
    p, p_always = float(gammaincc(df / 2.0, statistic / 2.0)), math.exp(min(0.0, -log_bayes_factor))
    return SampleRatio(statistic, df, p, p_always)


def prior_size(expected: float, alpha: float) -> float:
    """Compute the prior precision g for the narrowest interval of level ``1 - alpha`` at the expected number of units.

    >>> round(prior_size(5000, 0.05))
    609
    """
    # With r = g / (g + n), the squared critical value is about (-ln r - 2 ln alpha) / (1 - r). It is smallest where
    # -ln r - 2 ln alpha = 1 / r - 1. The left side minus the right side increases with r, so bisection finds r.
    low, high = 1e-12, 1.0
    while (r := math.sqrt(low * high)) not in {low, high}:
        low, high = (r, high) if 1.0 / r - 1.0 > -math.log(r) - 2.0 * math.log(alpha) else (low, r)
    return expected * low / (1.0 - low)


def e_value(t: float, n: float, df: float, g: float) -> float:
    """Compute the e-value of a difference of t standard errors over n units (Lindon et al., arXiv:2210.08589).

    Under no difference, the probability that it ever exceeds 1 / alpha is at most alpha, at any number of looks.

    >>> round(e_value(3.0, 1000, 998, 30), 3)
    13.264
    """
    # Bayes factor of the t-statistic with nu = df degrees of freedom, for a normal prior of precision g on the
    # standardized difference: E = sqrt(r) ((1 + t**2 / nu) / (1 + r t**2 / nu))**((nu + 1) / 2), r = g / (g + n).
    r = g / (g + n)
    x = t * t / df
    log_e = 0.5 * math.log(r) + (df + 1.0) / 2.0 * (math.log1p(x) - math.log1p(r * x))
    return math.exp(min(log_e, 700.0))


def critical_value(n: float, df: float, g: float, alpha: float) -> float:
    """Compute half the width of the always-valid interval in standard errors; infinite for too few units.

    >>> [round(critical_value(1000, 998, g, 0.05), 2) for g in (1, 30, 300)]
    [3.6, 3.14, 3.12]
    """
    # Solution of E(t) = 1 / alpha for t: t**2 = nu (1 - k) / (k - r) with k = (r alpha**2)**(1 / (nu + 1)).
    r = g / (g + n)
    k = math.exp((math.log(r) + 2.0 * math.log(alpha)) / (df + 1.0))
    return math.sqrt(df * (1.0 - k) / (k - r)) if k > r else math.inf
