"""How large a difference is: effect sizes, wins and losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.stats.inputs import ROUNDING, paired_differences, score_matrix, spread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Bools, Floats


@dataclass(frozen=True)
class Effects:
    """The difference of two systems over the same topics, in several units."""

    difference: float  # mean of second minus first, in the measure's own unit. NaN without a topic.
    # Cohen's d for paired data: the mean of the differences over their standard deviation (n - 1). NaN if that is 0, or
    # for one topic.
    dz: float
    # the mean difference after each topic's scores were divided by their standard deviation over the reference systems
    # (Webber, Moffat and Zobel 2008), so that no topic weighs more because scores vary more on it. NaN without
    # reference systems.
    standardised: float
    standardised_topics: int  # the topics that it rests on: those where the reference systems do not all score the same
    # Cliff's delta within pairs: the share of topics that the second system wins, minus the share that it loses. From
    # -1 to 1; ties count as neither.
    cliffs_delta: float
    # Cliff's delta of the two sets of scores as if they were not paired: the probability that the second system on one
    # topic scores higher than the first on another or the same, minus that it scores lower
    cliffs_delta_between: float
    # n, left_out: topics with a score for both, and without
    n: int
    left_out: int


def effect_sizes(first: ArrayLike, second: ArrayLike, *, reference: ArrayLike | None = None) -> Effects:
    """Give the size of the difference between two systems in several units.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    reference
        (S, T): scores of the systems by which topics are standardised, such as all systems of the collection. The two
        that are compared may be among them; with these two alone, every difference would be the same.

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> found = effect_sizes([0.2, 0.4, 0.5, 0.1], [0.3, 0.6, 0.5, 0.3])
    >>> round(found.difference, 3), round(found.dz, 3), found.cliffs_delta
    (0.125, 1.306, 0.75)
    """
    differences, left_out = paired_differences(first, second)
    size = len(differences)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    counted = ~(np.isnan(a) | np.isnan(b))
    mean = float(differences.mean()) if size else math.nan
    deviation = spread(differences)
    standardised = np.empty(0) if reference is None else _standardised(differences, reference, counted)
    return Effects(
        difference=mean,
        dz=mean / deviation if deviation > 0 else math.nan,
        standardised=float(standardised.mean()) if len(standardised) else math.nan,
        standardised_topics=len(standardised),
        cliffs_delta=float(np.sign(differences).mean()) if size else math.nan,
        cliffs_delta_between=_dominance(a[counted], b[counted]),
        n=size,
        left_out=left_out,
    )


def standardise(values: ArrayLike, *, reference: ArrayLike | None = None) -> Floats:
    """Standardise scores topic by topic: minus the mean, over the standard deviation (S - 1) of reference systems.

    Parameters
    ----------
    values
        (S, T): scores by system and topic; NaN where there is none.
    reference
        (R, T): the systems that give mean and deviation; the values themselves if left out.

    Returns
    -------
    (S, T) float64
        z-scores (Webber, Moffat and Zobel 2008). NaN for a score that is NaN, and for topics on which fewer than two
        reference systems have a score, or all score the same.

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> standardise([[1.0, 0.5], [2.0, 0.5], [6.0, 0.5]]).round(3).tolist()
    [[-0.756, nan], [-0.378, nan], [1.134, nan]]
    """
    scores = score_matrix(values, least=1)
    mean, deviation = _by_topic(scores if reference is None else reference, scores.shape[1])
    return (scores - mean) / deviation


def _by_topic(reference: ArrayLike, topics: int) -> tuple[Floats, Floats]:
    """Give mean and standard deviation of each topic over the reference systems; NaN where scores do not vary."""
    scores = score_matrix(reference)
    if scores.shape[1] != topics:
        raise InputError(f"the reference has {scores.shape[1]} topics, the scores {topics}", fix="give the same topics")
    counted = ~np.isnan(scores)
    size = counted.sum(axis=0)
    filled = np.where(counted, scores, 0.0)
    mean = filled.sum(axis=0) / np.maximum(size, 1)
    squares = (np.where(counted, scores - mean, 0.0) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(size - 1, 1))
    varied = (size > 1) & (deviation > ROUNDING * np.abs(filled).max(axis=0))
    return np.where(varied, mean, np.nan), np.where(varied, deviation, np.nan)


def _standardised(differences: Floats, reference: ArrayLike, counted: Bools) -> Floats:
    _, deviation = _by_topic(reference, len(counted))
    units = differences / deviation[counted]
    return units[~np.isnan(units)]


def _dominance(a: Floats, b: Floats) -> float:
    """Give P(b > a) - P(b < a) over all pairs, equal but for rounding counting as ties; by sorting."""
    if not len(a):
        return math.nan
    ordered, slack = np.sort(a), ROUNDING * np.abs(b)
    below = np.searchsorted(ordered, b - slack, side="left")
    above = len(a) - np.searchsorted(ordered, b + slack, side="right")
    return float((below - above).sum() / (len(a) * len(b)))


@dataclass(frozen=True)
class Wins:
    """On how many topics the second system is higher, about the same, or lower."""

    wins: int  # of the second system
    ties: int  # of the second system
    losses: int  # of the second system
    min_difference: float = 0.0  # the least difference that is a win or a loss; a smaller one is a tie
    left_out: int = 0  # topics without a score for both


def wins(first: ArrayLike, second: ArrayLike, min_difference: float = 0.0) -> Wins:
    """Count the topics that the second system wins, ties and loses.

    Parameters
    ----------
    first, second
        (T,): scores by topic; NaN where the topic has none.
    min_difference
        The least difference that counts, in the measure's unit; one of exactly this size counts.

    Raises
    ------
    InputError
        If the shapes do not fit, or the minimum is negative.

    Examples
    --------
    >>> found = wins([0.2, 0.4, 0.5, 0.3], [0.3, 0.6, 0.5, 0.1], min_difference=0.15)
    >>> found.wins, found.ties, found.losses
    (1, 2, 1)
    """
    if not min_difference >= 0:
        raise InputError(f"the minimum difference {min_difference} is below 0", fix="give 0 or more")
    differences, left_out = paired_differences(first, second)
    counts = (differences != 0) & (np.abs(differences) >= min_difference * (1 - ROUNDING) - ROUNDING)
    won, lost = int((counts & (differences > 0)).sum()), int((counts & (differences < 0)).sum())
    return Wins(won, len(differences) - won - lost, lost, float(min_difference), left_out)
