"""What another policy would have got, from what a logged one got: weights by propensities, and what they assume.

A page has K ranks. The weight of a rank is how often the other policy would show there what was shown, over how often
the logged one does (its propensity); of a rank that a page does not have it is 1 and the reward 0. Every function gives
one value a page, whose mean estimates the other policy's rewards a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats, Ints


def independent(weights: Floats, rewards: Floats) -> Floats:
    """Weigh each rank for itself: unbiased where a result's reward hangs on its own rank alone (Li et al., 2018).

    >>> independent(np.array([[2.0, 0.0]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    return (weights * rewards).sum(axis=1)


def cascade(weights: Floats, rewards: Floats) -> Floats:
    """Weigh each rank by all down to it: unbiased where rewards hang on nothing below (McInerney et al., KDD 2020).

    >>> cascade(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (np.cumprod(weights, axis=1) * rewards).sum(axis=1)


def whole_list(weights: Floats, rewards: Floats) -> Floats:
    """Weigh the list as one action: unbiased whatever rewards hang on, with the largest weights."""
    return np.prod(weights, axis=1) * rewards.sum(axis=1)


def pseudo_inverse(weights: Floats, rewards: Floats) -> Floats:
    """Weigh the page's sum of rewards: unbiased where it is a sum over ranks, though not known of which.

    The closed form for a logged policy that fills ranks independently (Swaminathan et al., NeurIPS 2017).

    >>> pseudo_inverse(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (1.0 + (weights - 1.0).sum(axis=1)) * rewards.sum(axis=1)


ESTIMATORS = {
    "independent": independent,
    "cascade": cascade,
    "pseudo-inverse": pseudo_inverse,
    "whole list": whole_list,
}
"""By what they assume, from the most to the least."""


def effective(weights: Floats) -> float:
    """Say how many pages of equal weight tell as much (Kish).

    >>> effective(np.array([1.0, 1.0, 0.0, 2.0]))
    2.6666666666666665
    """
    squares = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def self_normalised(weights: Floats, rewards: Floats) -> tuple[float, Floats]:
    """Divide each rank's rewards by its mean weight: less variance, a bias that vanishes with more pages.

    Returns
    -------
    value, influence
        The sum over ranks, and (N,) by how much each page moves it, times N.
    """
    means = weights.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(means > 0, (weights * rewards).mean(axis=0) / means, 0.0)
        moved = np.where(means > 0, weights * (rewards - ratios) / means, 0.0)
    return float(ratios.sum()), moved.sum(axis=1)


def mean_and_error(values: Floats, unit: Ints) -> tuple[float, float]:
    """Give the mean of pages, and its standard error over units: what one unit does is not independent.

    >>> mean, error = mean_and_error(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1]))
    >>> round(mean, 4), round(error, 4)
    (0.6667, 0.2222)
    """
    mean, units = float(values.mean()), int(unit.max()) + 1
    if units < 2:
        return mean, float("nan")
    off = np.bincount(unit, values - mean, units)
    return mean, float(np.sqrt((off * off).sum() * units / (units - 1.0)) / len(values))


class Rates:
    """Rewards by cell, such as document and rank, drawn towards the mean of the rank: a simple model of rewards."""

    def __init__(self, cells: Ints, ranks: Ints, rewards: Floats, number: int, depth: int, prior: float = 10.0) -> None:
        """Add up: (R,) cells below `number`, ranks below `depth`, rewards."""
        of_rank = np.bincount(ranks, minlength=depth)
        self.ranks = np.bincount(ranks, rewards, depth) / np.maximum(of_rank, 1)
        self._sums, self._counts = np.bincount(cells, rewards, number), np.bincount(cells, minlength=number)
        self._prior = prior

    def of(self, cells: Ints, ranks: Ints) -> Floats:
        """Give the rewards that cells let expect; -1 is one that was never seen."""
        known = cells >= 0
        at = np.where(known, cells, 0)
        sums, counts = np.where(known, self._sums[at], 0.0), np.where(known, self._counts[at], 0)
        return (sums + self._prior * self.ranks[ranks]) / (counts + self._prior)
