"""Why a ratio changed: what is asked changed (the mix), or how it fares did (within)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged._types import ReadOnly
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from judged._types import Floats


@dataclass(frozen=True, eq=False)
class Decomposition(ReadOnly):
    """The change of a ratio over S strata in two parts, which add up to it.

    Parameters
    ----------
    mix
        By the strata's shares of the denominator.
    within
        By their ratios.
    by_stratum
        (S,): how much each stratum's ratio contributes to `within`.
    mix_weights, within_weights
        (2, 2, S): before and after; of the numerator and the denominator: how much one more of each in a stratum moves
        the part. Summed over what a unit has, they give its influence; squares of these make the error.
    """

    mix: float
    within: float
    by_stratum: Floats
    mix_weights: Floats
    within_weights: Floats


def decomposition(numerators: Floats, denominators: Floats) -> Decomposition:
    """Part the change of a ratio (Kitagawa, Journal of the American Statistical Association 1955).

    Shares and ratios of both periods have the same weight, so that the order of the periods does not matter. A stratum
    without a denominator in one period is taken to have had the same ratio there.

    Parameters
    ----------
    numerators, denominators
        (2, S): sums of the strata, before and after.

    Examples
    --------
    Of two queries one is always clicked, the other never; the first is asked half as often as before:

    >>> made = decomposition(np.array([[60.0, 0.0], [30.0, 0.0]]), np.array([[60.0, 40.0], [30.0, 70.0]]))
    >>> round(made.mix, 3), round(made.within, 3)
    (-0.3, 0.0)
    """
    totals = denominators.sum(axis=1, keepdims=True)
    shares = denominators / totals
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = numerators / denominators
        inverse = np.where(denominators > 0, 1.0 / denominators, 0.0)
    ratios = np.where(np.isnan(ratios), ratios[::-1], ratios)
    ratios = np.where(np.isnan(ratios), 0.0, ratios)
    signs = np.array([[-1.0], [1.0]])
    share, ratio = shares.mean(axis=0), ratios.mean(axis=0)
    moved, changed = shares[1] - shares[0], ratios[1] - ratios[0]

    def weights(by_share: Floats, by_ratio: Floats) -> Floats:
        """Give the weights of a part that moves by these with each share, and each ratio."""
        of_shares = (by_share - (by_share * shares).sum(axis=1, keepdims=True)) / totals
        return np.stack([by_ratio * inverse, of_shares - by_ratio * ratios * inverse], axis=1)

    return Decomposition(
        mix=float(moved @ ratio),
        within=float(share @ changed),
        by_stratum=share * changed,
        mix_weights=weights(signs * ratio, np.broadcast_to(moved / 2.0, shares.shape)),
        within_weights=weights(np.broadcast_to(changed / 2.0, shares.shape), signs * share),
    )


def part_interval(value: float, squares: float, units: float, effective: float, level: float) -> tuple[float, float]:
    """Give the interval of a part by the squares of the influences of its units, with Student's t.

    >>> [round(end, 3) for end in part_interval(0.1, 0.0016, 100, 50, 0.95)]
    [0.019, 0.181]
    """
    # `effective`: how many equal units tell as much as these. NaN for fewer than two.
    if not min(units, effective) >= 2 or math.isnan(value):
        return math.nan, math.nan
    half = student_quantile(0.5 + level / 2.0, max(int(effective) - 1, 1)) * math.sqrt(squares * units / (units - 1.0))
    return value - half, value + half
