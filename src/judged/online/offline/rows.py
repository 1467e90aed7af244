"""Judgments against users as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judged.online.findings import LogFinding
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
    topics
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
    topics: int
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
    rate
        The mean outcome.
    """

    measure: str
    outcome: str
    low: float
    high: float
    pages: int
    units: int
    score: float
    rate: Estimate


@dataclass(frozen=True)
class TopicRelation:
    """Whether topics with higher mean scores have better mean outcomes.

    Parameters
    ----------
    measure, outcome
        Their names.
    topics, pages
        How many topics with enough pages, and their pages.
    rho
        Spearman's rho of the topics' means, above 0 where better scores go with better outcomes.
    """

    measure: str
    outcome: str
    topics: int
    pages: int
    rho: Estimate


@dataclass(frozen=True, eq=False)
class OfflineTable:
    """Judgments against users as numbers: what tables, sentences and charts are made of.

    Parameters
    ----------
    log, qrels
        Their names.
    how
        How topics of pages were found.
    pages
        Pages of the log.
    joined
        Those that were scored: of `pages`, all but those in `left_out`.
    left_out
        Why pages were left out, and how many.
    judged
        The mean share of the first `judged_at` results that is judged, over the pages that were scored.
    judged_at, least_judged
        How deep that is looked at, and how much of it a page must have to be scored.
    hopeless
        Pages whose topic has no document with a grade above 0: no list could score on them.
    measures, outcomes
        Names, in order.
    meanings
        What each outcome is.
    worse
        Outcomes of which less is better.
    by, slices
        The column that was sliced by, and pages of each value.
    unit, level
        Of the intervals.
    least_pages
        Pages that a topic needs to count among topics.
    relations
        By measure, then outcome; all pages first, then slices.
    calibration
        By measure, then outcome, then score.
    topics
        By measure, then outcome.
    findings
        What is wrong with the log.
    """

    log: str
    qrels: str
    how: str
    pages: int
    joined: int
    left_out: tuple[tuple[str, int], ...]
    judged: float
    judged_at: int
    least_judged: float
    hopeless: int
    measures: tuple[str, ...]
    outcomes: tuple[str, ...]
    meanings: tuple[str, ...]
    worse: tuple[str, ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    unit: str
    units: int
    level: float
    least_pages: int
    relations: tuple[Relation, ...] = field(repr=False)
    calibration: tuple[CalibrationBin, ...] = field(repr=False)
    topics: tuple[TopicRelation, ...] = field(repr=False)
    findings: tuple[LogFinding, ...] = field(default=(), repr=False)

    def of(self, measure: str, outcome: str, slice: str | None = None) -> Relation:
        """Give one relation.

        Raises
        ------
        KeyError
            If there is none.
        """
        for one in self.relations:
            if (one.measure, one.outcome, one.slice) == (measure, outcome, slice):
                return one
        raise KeyError(f"{measure} and {outcome} on {slice or 'all pages'}")

    def bins(self, measure: str, outcome: str) -> tuple[CalibrationBin, ...]:
        """Give the calibration of one measure and outcome, by rising score."""
        return tuple(one for one in self.calibration if (one.measure, one.outcome) == (measure, outcome))
