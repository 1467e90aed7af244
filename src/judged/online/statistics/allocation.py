"""Whether the allocation of users to arms stayed the same over time, and the periods in which it did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Floats


_FEWEST_EXPECTED = 5.0  # users of each arm on both sides of a cut: Cochran's rule for the chi-squared distribution


class Allocation(NamedTuple):
    """Periods of constant allocation.

    ``p``: of the hypothesis that the shares of all arms stayed the same; 1 where there are too few users to test it.
    ``starts``: index of the first day of each period; (0,) where no change was detected.
    """

    p: float
    starts: tuple[int, ...]


CONSTANT = Allocation(1.0, (0,))


def allocation_periods(counts: ArrayLike, alpha: float = 0.05) -> Allocation:
    """Split days into periods within which the shares of arms do not change.

    Two tests share `alpha` (Bonferroni): the chi-squared test of all days, and that of every cut into two periods,
    which detects a change at one time with more power. Where either rejects, the days are split at the best cut, and
    both parts are tested in turn.

    Parameters
    ----------
    counts
        (days, arms): new users of each arm by day, in order of time.
    alpha
        Probability of a split where the allocation stayed the same.

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
        raise InputError("counts must have one row per day and one column per arm", fix="give counts of 0 or more")
    first = math.nan
    starts = {0}
    waiting = [(0, len(table))]
    while waiting:
        start, end = waiting.pop()
        cut, p = _best_cut(table[start:end])
        first = p if math.isnan(first) else first
        if p <= alpha and cut:
            starts.add(start + cut)
            waiting += [(start, start + cut), (start + cut, end)]
    return Allocation(1.0 if math.isnan(first) else first, tuple(sorted(starts)))


def _best_cut(table: Floats) -> tuple[int, float]:
    """Return the best day to split at, 0 if there is none, and the p-value of both tests together."""
    table = table[:, table.sum(axis=0) > 0]
    users, arms = table.sum(), table.shape[1]
    if len(table) < 2 or arms < 2:
        return 0, 1.0
    before = table.cumsum(axis=0)[:-1]
    after = table.sum(axis=0) - before
    shares = table.sum(axis=0) / users
    smallest = shares.min() * np.minimum(before.sum(axis=1), after.sum(axis=1))
    usable = np.flatnonzero(smallest >= _FEWEST_EXPECTED)
    if not len(usable):
        return 0, 1.0
    statistics = _chi_squared(before[usable], shares) + _chi_squared(after[usable], shares)
    best = int(statistics.argmax())
    p_cut = len(usable) * _p(float(statistics[best]), arms - 1)
    days = _merged(table, shares)
    p_days = _p(float(_chi_squared(days, shares).sum()), (len(days) - 1) * (arms - 1)) if len(days) > 1 else 1.0
    return int(usable[best]) + 1, min(1.0, 2.0 * min(p_cut, p_days))


def _chi_squared(rows: Floats, shares: Floats) -> Floats:
    """Return the terms of Pearson's statistic for each row."""
    expected = rows.sum(axis=1, keepdims=True) * shares
    return ((rows - expected) ** 2 / expected).sum(axis=1)


def _merged(table: Floats, shares: Floats) -> Floats:
    """Merge consecutive days until each row has enough expected users of every arm."""
    needed = _FEWEST_EXPECTED / shares.min()
    rows = [np.zeros(table.shape[1])]
    for row in table:
        if rows[-1].sum() >= needed:
            rows.append(np.zeros(table.shape[1]))
        rows[-1] = rows[-1] + row
    if len(rows) > 1 and rows[-1].sum() < needed:
        last = rows.pop()
        rows[-1] = rows[-1] + last
    return np.array(rows)


def _p(statistic: float, df: int) -> float:
    from scipy.special import gammaincc

    return float(gammaincc(df / 2.0, statistic / 2.0))


_PRIOR = 100.0  # how many users' worth the declared shares are believed beforehand


class SampleRatio(NamedTuple):
    """How well numbers of users agree with the declared shares.

    ``statistic``: of the chi-squared test, with one degree of freedom less than there are arms of a share above 0.
    ``p``: of one look. ``p_always``: however often one looks: it is the inverse of a Bayes factor.
    """

    statistic: float
    df: int
    p: float
    p_always: float


def sample_ratio(counts: Sequence[int], shares: Sequence[float] | None = None) -> SampleRatio:
    """Compare numbers of users with the shares that they should be; equal ones for None.

    The test of every look is that of Lindon and Malek (NeurIPS 2022): a multinomial against the same with Dirichlet
    shares around the declared ones.

    Raises
    ------
    InputError
        If there are fewer than two arms, a share is negative, or there are users in an arm of no share.

    Examples
    --------
    >>> round(sample_ratio([5000, 5200]).p, 5), round(sample_ratio([10000, 10300, 9700]).p, 8)
    (0.04767, 0.00012341)
    """
    from scipy.special import gammaincc

    given = [1.0] * len(counts) if shares is None else [float(share) for share in shares]
    if len(given) != len(counts) or sum(share > 0 for share in given) < 2 or min(given) < 0 or sum(given) == math.inf:
        raise InputError("shares of arms do not fit their number", fix="give one above 0 for each of two arms or more")
    if any(count and not share for count, share in zip(counts, given, strict=True)):
        raise InputError(
            "there are users in an arm of which there should be none", fix="leave the arm out, or say its share"
        )
    arms = [(count, share / sum(given)) for count, share in zip(counts, given, strict=True) if share > 0]
    users, df = sum(counts), len(arms) - 1
    if not users:
        return SampleRatio(0.0, df, 1.0, 1.0)
    statistic = sum((count - users * share) ** 2 / (users * share) for count, share in arms)
    log_factor = math.lgamma(_PRIOR) - math.lgamma(_PRIOR + users)
    for count, share in arms:
        log_factor += math.lgamma(_PRIOR * share + count) - math.lgamma(_PRIOR * share) - count * math.log(share)
    return SampleRatio(statistic, df, float(gammaincc(df / 2.0, statistic / 2.0)), math.exp(min(0.0, -log_factor)))


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
