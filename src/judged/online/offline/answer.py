"""Whether judgments predict what users did: the result, and what is read off it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.online.layout import UNITS, percent
from judged.online.offline.joined import SHARE, JudgedPages, estimates
from judged.results import TEXT, YES_NO, Chart, Column, Sentences, Table, columns_of
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.offline.concordance import Estimate
    from judged.results import Block


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


_CHANCE = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OfflineOnline(JudgedPages):
    """Whether judgments predict what users do: relations by measure, outcome and slice, and calibration.

    Its main table, ``relations``, has one row a measure, outcome and slice.

    Attributes
    ----------
    log, qrels, how, pages, joined, left_out, by, slices, unit, units, level
        As of `JudgedPages`.
    judged : float
        The mean share of the first `judged_at` results that is judged, over the pages that were scored.
    judged_at, least_judged : int, float
        How deep that is looked at, and how much of it a page must have to be scored.
    hopeless : int
        Pages whose topic has no document with a grade above 0: no list could score on them.
    measures, outcomes : tuple of str
        Names, in order.
    meanings : tuple of str
        What each outcome is.
    worse : tuple of str
        Outcomes of which less is better.
    least_pages : int
        Pages that a topic needs to count among topics.
    relations : tuple of Relation
        By measure, then outcome; all pages first, then slices.
    calibration : tuple of CalibrationBin
        By measure, then outcome, then score.
    topics : tuple of TopicRelation
        By measure, then outcome.
    """

    kind: ClassVar[str] = "offline-online"
    answers: ClassVar[str] = "Whether {qrels} predicts what users did: {log}"
    main: ClassVar[str] = "relations"

    judged: float
    judged_at: int
    least_judged: float
    hopeless: int
    measures: tuple[str, ...]
    outcomes: tuple[str, ...]
    meanings: tuple[str, ...]
    worse: tuple[str, ...]
    least_pages: int
    relations: tuple[Relation, ...]
    calibration: tuple[CalibrationBin, ...]
    topics: tuple[TopicRelation, ...]

    def of(self, measure: str, outcome: str, slice: str | None = None) -> Relation:
        """Give one relation.

        Raises
        ------
        KeyError
            If there is none.
        """
        for relation in self.relations:
            if (relation.measure, relation.outcome, relation.slice) == (measure, outcome, slice):
                return relation
        raise KeyError(f"{measure} and {outcome} on {slice or 'all pages'}")

    def bins(self, measure: str, outcome: str) -> tuple[CalibrationBin, ...]:
        """Give the calibration of one measure and outcome, by rising score."""
        return tuple(one for one in self.calibration if (one.measure, one.outcome) == (measure, outcome))

    def blocks(self) -> tuple[Block, ...]:
        """Give relations, the calibration of the first measure with its chart, means of topics, and what that says."""
        calibration = self._calibration(self.calibration)
        first = self._calibration([one for one in self.calibration if one.measure == self.measures[0]])
        ends = zip(first.column("low").values, first.column("high").values, strict=True)
        ranges = [f"{low:.3f} to {high:.3f}" for low, high in ends]
        shown = Table(
            "calibration_shown",
            (
                Column("range", ranges, TEXT, self.measures[0]),
                *first.showing("pages", "units", "score", "mean").shown,
            ),
            only="people",
            groups=list(first.column("outcome").values),
        )
        return (
            self._relations(),
            *([self._chart(first), shown] if len(first) else []),
            Table(calibration.name, calibration.columns, only="data"),
            self._topics(),
            Sentences(self.sentences),
        )

    def facts(self) -> dict[str, Any]:
        """Give which pages were scored and why others were not, the outcomes, and what was chosen."""
        names = ("judged", "judged_at", "least_judged", "hopeless", "least_pages", "measures")
        outcomes = zip(self.outcomes, self.meanings, strict=True)
        return {
            **super().facts(),
            **{name: getattr(self, name) for name in names},
            "outcomes": [
                {"name": name, "meaning": meaning, "less_is_better": name in self.worse} for name, meaning in outcomes
            ],
        }

    def _relations(self) -> Table:
        """Lay out one row a measure, outcome and slice."""
        rows = self.relations
        return Table(
            "relations",
            (
                *columns_of(rows, ("measure", TEXT), ("outcome", TEXT)),
                *self.slice_columns(rows),
                *columns_of(rows, ("pages", UNITS), ("units", UNITS, f"{self.unit}s"), "n", ("mean", SHARE)),
                estimates([one.probability for one in rows], "probability", "better page, better outcome"),
                estimates([one.within for one in rows], "within", "within topics"),
                estimates([one.tau for one in rows], "tau", "tau_b", signed=True),
                estimates([one.slope for one in rows], "slope", signed=True),
                *columns_of(rows, "pairs", "pairs_within"),
            ),
            labels=3 if self.by else 2,
        )

    def _calibration(self, rows: Sequence[CalibrationBin]) -> Table:
        """Lay out one row a measure, outcome and range of scores."""
        return Table(
            "calibration",
            (
                *columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("low", SHARE), ("high", SHARE)),
                *columns_of(rows, ("pages", UNITS), ("units", UNITS, f"{self.unit}s"), ("score", SHARE, "mean score")),
                estimates([one.mean for one in rows], "mean", "mean outcome"),
            ),
            labels=2,
        )

    def _chart(self, calibration: Table) -> Chart:
        every = f"{percent(self.level)} intervals over {self.unit}s"
        drawn = Column("drawn", [True] * len(calibration), YES_NO, only="json")
        return Chart(
            "calibration",
            f"What users did, by {self.measures[0]}",
            Table("calibration_drawn", (*calibration.columns, drawn), only="people"),
            f"The mean outcome of pages in ranges of {self.measures[0]}, with {every}.",
            kind="points",
            x="score",
            x_title=f"{self.measures[0]}, mean of the range",
            y="mean",
            facet="outcome" if len(self.outcomes) > 1 else "",
            path="drawn",
            steps="linear",
            reach={"x": (0.0,), "y": (0.0,)},
            subtitle=every,
            height=280,
        )

    def _topics(self) -> Table:
        """Lay out one row a measure and outcome, over means of topics."""
        rows = self.topics
        columns = columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("n", UNITS, "topics"), ("pages", UNITS))
        rho = estimates([one.rho for one in rows], "rho", "Spearman's rho of means", signed=True)
        return Table("topics", (*columns, rho), labels=2, only="" if rows else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        hopeless = (
            f"On {self.hopeless} of the pages that were scored the topic has no document with a grade above 0: no list"
            " could score there."
        )
        return (
            f"{self.counted} Of their first {self.judged_at} results {self.judged:.1%} are judged.",
            *(_told(one, self.unit) for one in self.relations if one.slice is None),
            *([hopeless] if self.hopeless else []),
            f"{_BY_CHANCE} {self.intervals}: others may tell something else. {_EACH}",
            *([_DASH] if any(np.isnan(one.within.value) for one in self.relations) else []),
            *([_TOPICS] if self.topics else []),
            _THESE_PAGES,
        )


_BY_CHANCE = (
    "By chance of two pages with different outcomes the better one has the better outcome half of the time; ties of the"
    " score count half. Within topics, pages of one topic alone are compared: that harder topics have both worse scores"
    " and worse outcomes does not help there."
)
_EACH = "Each stands for itself: of many some exclude chance by luck."
_DASH = "A dash stands where nothing was compared: no two pages differ both in score and in outcome."
_TOPICS = "Spearman's rho alone has an interval over topics, as if they were drawn from many."
_THESE_PAGES = (
    "What is clicked also depends on where it stands and what else is shown: this tells whether a measure predicts what"
    " users did on these pages, not what they would do on others."
)


def _told(one: Relation, unit: str) -> str:
    name = f"{one.measure} and {one.outcome}"
    if np.isnan(one.probability.value):
        return f"{name}: nothing to compare, as no two of {one.pages} pages differ both in score and in outcome."
    shown = f"{name}: of two pages the better one has the better outcome with probability {one.probability}"
    if not one.probability.known:
        return f"{shown}; there is no interval."
    if lacking := insufficiency(one.units, "verdict"):
        return f"{shown}. {lacking.sentence(unit)}"
    if not one.probability.excludes(_CHANCE):
        return f"{shown}: that it predicts anything is not shown."
    way = "predicts it" if one.probability.value > _CHANCE else "points the wrong way"
    if np.isnan(one.within.value):
        return f"{shown}: it {way}; within topics no two pages differ both in score and in outcome."
    inside = "within topics too" if one.within.excludes(_CHANCE) else "within topics that is not shown"
    if one.within.excludes(_CHANCE) and (one.within.value > _CHANCE) != (one.probability.value > _CHANCE):
        inside = "but the other way round within topics"
    return f"{shown}: it {way}; {inside} ({one.within})."
