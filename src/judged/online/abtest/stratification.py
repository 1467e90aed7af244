"""Differences stratified by period of first exposure, for tests whose allocation changed over time.

Where a ramp-up gives an arm more of the later users, arms differ in when their users came, and so in what changes with
time. Within a period of constant allocation they do not. A stratified difference is the mean of the differences within
periods, each weighted by the harmonic mean of both arms' denominators (Mantel and Haenszel), so that a period in which
an arm has few users counts little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from judged.online.abtest.differences import ArmDifference, Looks, arm_difference
from judged.stats.adjusted_difference import AdjustedDifference

if TYPE_CHECKING:
    from judged.online.abtest.assignment import Assignment

MIN_USERS = 30
"""A period counts if both arms have as many users: with fewer, errors of ratios are not reliable."""


def stratified(
    whole: Sequence[ArmDifference], by_period: Sequence[ArmDifference], users: Assignment, looks: Looks
) -> Iterator[ArmDifference]:
    """Replace each difference by the stratified one; NaN where no period has enough users in both arms.

    Parameters
    ----------
    whole
        Differences over all users.
    by_period
        The same within periods of constant allocation, named by `part`.
    users, looks
        As for `judged.online.abtest.differences.arm_differences`.
    """
    for row in whole:
        identity = (row.metric, row.role, row.arm, row.part)
        both = row.baseline, row.other
        periods = [
            one
            for one in by_period
            if (one.metric, one.arm) == (row.metric, row.arm)
            and min(one.baseline.units, one.other.units) >= MIN_USERS
            and one.adjusted.error > 0
        ]
        if not periods:
            nothing = AdjustedDifference(math.nan, math.nan, 0.0, 0.0)
            yield arm_difference(identity, both, nothing, users, looks, row.earlier, row.effective_users)
            continue
        made, shares = _mean(periods)
        effective = 1.0 / sum(share**2 / one.effective_users for share, one in zip(shares, periods, strict=True))
        earlier = [one.earlier for one in periods if not math.isnan(one.earlier)]
        p = min(1.0, len(earlier) * min(earlier)) if earlier else math.nan
        yield arm_difference(identity, both, made, users, looks, p, effective)


def _mean(periods: Sequence[ArmDifference]) -> tuple[AdjustedDifference, list[float]]:
    """Return the weighted mean of differences, and each period's share of its variance."""
    sizes = [1.0 / (1.0 / one.baseline.denominator + 1.0 / one.other.denominator) for one in periods]
    weights = [size / sum(sizes) for size in sizes]
    parts = [one.adjusted for one in periods]

    def mean(values: Iterator[float]) -> float:
        return sum(w * value for w, value in zip(weights, values, strict=True))

    def total(values: Iterator[float]) -> float:
        return sum(w * w * value for w, value in zip(weights, values, strict=True))

    squares = [w * w * part.error**2 for w, part in zip(weights, parts, strict=True)]
    plain = total(part.error**2 / (1.0 - part.reduction) for part in parts)
    made = AdjustedDifference(
        value=mean(part.value for part in parts),
        error=math.sqrt(sum(squares)),
        theta=mean(part.theta for part in parts),
        reduction=1.0 - sum(squares) / plain,
        base=mean(part.base for part in parts),
        base_error=math.sqrt(total(part.base_error**2 for part in parts)),
        base_covariance=total(part.base_covariance for part in parts),
    )
    return made, [square / sum(squares) for square in squares]
