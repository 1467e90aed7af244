"""Another policy's rewards, from pages of a logged policy whose propensities are known.

A page has K ranks. The weight of a rank is the probability that the other policy shows the logged document there, over
the probability that the logged policy did (its propensity). A propensity is *marginal* if it is the probability of the
document at its rank over all pages, and *conditional* if it is the probability given the documents at higher ranks. The
product of conditional propensities is the probability of the list. The product of marginal ones is not, unless each
rank is filled independently: of uniform permutations of 4 documents on 3 ranks, every list has the probability 1/24,
and every document 1/4 at every rank.

A rank that a page lacks has the weight 1 and the reward 0. Every function returns one value a page, whose mean
estimates the other policy's rewards a page; the other policy shows nothing that the logged one never shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats, Ints


class Estimator(NamedTuple):
    """What an estimator needs and assumes.

    ``conventions``: the declared propensities under which it is right; empty: it needs no propensities.
    ``list_probability``: it needs the other policy's probability of a list, not only that of each rank.
    """

    conventions: tuple[str, ...]
    list_probability: bool
    assumes: str
    blind: str


_MARGINAL = ("marginal", "independent")
_CONDITIONAL = ("conditional", "independent")
ESTIMATORS = {
    "item-position": Estimator(
        _MARGINAL, False, "a result's clicks depend on its document and rank alone", "the other results of the page"
    ),
    "self-normalized": Estimator(
        _MARGINAL, False, "the same; biased if pages are few", "the other results of the page"
    ),
    "clipped": Estimator(_MARGINAL, False, "the same; too low by at most what is cut", "results that are seldom shown"),
    "direct": Estimator((), False, "the same, and users see documents at random", "what else differs between pages"),
    "doubly robust": Estimator(
        _MARGINAL, False, "what item-position assumes, or what direct assumes", "the other results of the page"
    ),
    "pseudo-inverse": Estimator(
        ("independent",), False, "a page's clicks are a sum over its ranks", "how results affect one another"
    ),
    "cascade": Estimator(_CONDITIONAL, True, "clicks depend on nothing at lower ranks", "lower ranks"),
    "whole list": Estimator(_CONDITIONAL, True, "nothing", "nothing, and few logged lists are those of the run"),
}
"""By what they assume, from the most to the least."""


def item_position(weights: Floats, rewards: Floats) -> Floats:
    """Weight each rank by itself (Li, Abbasi-Yadkori, Kveton et al., KDD 2018). Marginal propensities.

    >>> item_position(np.array([[2.0, 0.0]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    return (weights * rewards).sum(axis=1)


def cascade(weights: Floats, rewards: Floats) -> Floats:
    """Weight each rank by the product of weights down to it (McInerney et al., KDD 2020). Conditional propensities.

    >>> cascade(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (np.cumprod(weights, axis=1) * rewards).sum(axis=1)


def whole_list(weights: Floats, rewards: Floats) -> Floats:
    """Weight the list as one action: right whatever rewards depend on. Conditional propensities.

    >>> whole_list(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    return np.prod(weights, axis=1) * rewards.sum(axis=1)


def pseudo_inverse(weights: Floats, rewards: Floats) -> Floats:
    """Weight the page's sum of rewards, if it is not known which rank earned them. Independent ranks.

    The closed form for a logged policy that fills ranks independently (Swaminathan et al., NeurIPS 2017). For other
    policies the matrix of pairs of documents and ranks is needed, which propensities of results do not determine.

    >>> pseudo_inverse(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (1.0 + (weights - 1.0).sum(axis=1)) * rewards.sum(axis=1)


def effective(weights: Floats) -> float:
    """Return the number of equal weights that are as informative (Kish); 0 if all weights are 0.

    >>> effective(np.array([1.0, 1.0, 0.0, 2.0]))
    2.6666666666666665
    """
    squares = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def equally_skewed(residuals: Floats) -> float:
    """Return the number of users, each clicking once or not at all, whose sum would be as skewed.

    The skewness of a sum is estimated by ``sum(r**3) / sum(r**2)**1.5``: of n equal rare events it is ``n**-0.5``.
    Infinite if residuals are symmetric, 0 if all are 0.

    >>> equally_skewed(np.array([2.0, 2.0, 0.0, 2.0]))
    3.0
    >>> round(equally_skewed(np.array([1.0] * 20 + [10.0])), 2)
    1.66
    """
    squares, cubes = float((residuals**2).sum()), float((residuals**3).sum())
    if not squares > 0:
        return 0.0
    return squares**3 / cubes**2 if abs(cubes) > 1e-12 * squares**1.5 else np.inf


def self_normalized(weights: Floats, rewards: Floats, expected: Floats) -> tuple[float, Floats]:
    """Divide each rank's rewards by its mean weight: less variance, a bias that vanishes with more pages.

    Parameters
    ----------
    weights, rewards
        (N, K), with marginal propensities.
    expected
        (K,) the mean that weights should have: 1 minus the probability of what was never shown.

    Returns
    -------
    value, influence
        The sum over ranks, and (N,) the influence of each page on it, times N.
    """
    means = weights.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(means > 0, (weights * rewards).mean(axis=0) / means, 0.0)
        influence = np.where(means > 0, expected * weights * (rewards - ratios) / means, 0.0)
    return float((expected * ratios).sum()), influence.sum(axis=1)


def mean_and_error(values: Floats, unit: Ints) -> tuple[float, float]:
    """Return the mean of pages, and its standard error over units.

    >>> mean, error = mean_and_error(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1]))
    >>> round(mean, 4), round(error, 4)
    (0.6667, 0.2222)
    """
    mean, units = float(values.mean()), int(unit.max()) + 1
    if units < 2:
        return mean, float("nan")
    residuals = np.bincount(unit, values - mean, units)
    return mean, float(np.sqrt((residuals * residuals).sum() * units / (units - 1.0)) / len(values))


class Rates:
    """Mean rewards by cell, such as document and rank, shrunk towards the mean of the rank.

    Parameters
    ----------
    cells, ranks, rewards
        (R,) codes of cells below `number` and of ranks below `depth`, and rewards.
    prior
        Number of observations that the mean of the rank counts for.
    """

    def __init__(self, cells: Ints, ranks: Ints, rewards: Floats, number: int, depth: int, prior: float = 10.0) -> None:
        of_rank = np.bincount(ranks, minlength=depth)
        self.ranks = np.bincount(ranks, rewards, depth) / np.maximum(of_rank, 1)
        # The last cell is empty: that of -1.
        self._sums, self._counts = np.bincount(cells, rewards, number + 1), np.bincount(cells, minlength=number + 1)
        self._prior = prior

    def of(self, cells: Ints, ranks: Ints) -> Floats:
        """Return the expected reward of each cell; a cell of -1, or one without rewards, has the mean of its rank."""
        sums, total = self._sums[cells] + self._prior * self.ranks[ranks], self._counts[cells] + self._prior
        return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def direct_residuals(cells: Ints, rewards: Floats, units: Ints, weights: Floats, center: Floats) -> Floats:
    """Return by how much each row moves a sum of fitted mean rewards by cell: the delta method, for rows of clusters.

    Rows of a cell are off its mean less than off its true rate, the more so the fewer users they come from; of one
    user they do not vary at all. Residuals are therefore multiplied by k / (k - 1) for k users of the cell, and those
    of a cell with one user are taken from `center`.

    Parameters
    ----------
    cells, rewards, units
        (R,) codes, rewards, and codes of users.
    weights
        (R,) how often the other policy shows the cell, for each time that it was logged.
    center
        (R,) the mean reward of what resembles the cell, such as its rank.

    Returns
    -------
    Floats
        (R,) residuals times weights.
    """
    number, users = int(cells.max()) + 1, int(units.max()) + 1
    pairs = np.unique(cells * users + units)
    k = np.bincount(pairs // users, minlength=number).astype(np.float64)[cells]
    means = (np.bincount(cells, rewards, number) / np.maximum(np.bincount(cells, minlength=number), 1))[cells]
    several = k > 1
    residuals = np.where(several, (rewards - means) * k / np.maximum(k - 1.0, 1.0), rewards - center)
    return weights * residuals
