"""Whether the arms of a test have the users that they should have: a test of another mix is broken, not lucky."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from judged.errors import InputError

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
