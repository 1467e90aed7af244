"""Judgments against users as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.online.offline.clusters import Estimate


@dataclass(frozen=True)
class Relation:
    """How well one measure orders pages by one outcome.

    Parameters
    ----------
    measure, outcome
        Their names.
    slice
        Value of the slice; None: all pages.
    pages, units
        How many pages have both, and of how many users or sessions.
    n
        Of how many topics.
    mean
        The mean outcome.
    probability
        That of two pages with different outcomes the one with the better outcome is the one with the better score,
        ties half: 0.5 by chance; for an outcome of 0 and 1 the area under the ROC curve. NaN without `pairs`.
    pairs
        How many pairs of pages differ in both.
    within, pairs_within
        The same, over pairs of pages of one topic: harder and easier topics do not help here.
    tau
        Kendall's tau_b, above 0 where better scores go with better outcomes.
    slope
        By how much the outcome differs where the measure is 1 higher (least squares).
    """

    measure: str
    outcome: str
    slice: str | None
    pages: int
    units: int
    n: int
    mean: float
    probability: Estimate
    pairs: int
    within: Estimate
    pairs_within: int
    tau: Estimate
    slope: Estimate


@dataclass(frozen=True)
class CalibrationBin:
    """What happened on pages whose score lies in one range.

    Parameters
    ----------
    measure, outcome
        Their names.
    low, high
        The least and the greatest score in it.
    pages, units
        How many pages, and of how many users or sessions.
    score
        The mean score.
    mean
        The mean outcome.
    """

    measure: str
    outcome: str
    low: float
    high: float
    pages: int
    units: int
    score: float
    mean: Estimate


@dataclass(frozen=True)
class TopicRelation:
    """Whether topics with higher mean scores have better mean outcomes.

    Parameters
    ----------
    measure, outcome
        Their names.
    n, pages
        How many topics with enough pages, and their pages.
    rho
        Spearman's rho of the topics' means, above 0 where better scores go with better outcomes.
    """

    measure: str
    outcome: str
    n: int
    pages: int
    rho: Estimate
