"""Result of `against_qrels`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.online.layout import UNITS, percent
from judged.online.offline.page_topics import SHARE, JudgedPages, estimate_column
from judged.results import TEXT, YES_NO, Chart, Column, Sentences, Table, columns_of
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.offline.concordance import IntervalEstimate
    from judged.results import Block


@dataclass(frozen=True)
class OutcomeRelation:
    """Concordance of one measure and one outcome over pages.

    Parameters
    ----------
    measure, outcome
        Names.
    slice
        Value of the slice; None: all pages.
    pages, units
        Numbers of pages with both, and of users or sessions.
    n
        Number of topics.
    mean
        Mean outcome.
    probability
        Probability that of two pages with different outcomes, the page with the better outcome has the better score;
        ties of scores count half. 0.5 by chance. For a binary outcome, the area under the ROC curve. NaN without
        `pairs`.
    pairs
        Number of pairs of pages that differ in both.
    within, pairs_within
        The same over pairs of pages of the same topic, so that differences between topics do not count.
    tau
        Kendall's tau_b; positive if better scores have better outcomes.
    slope
        Difference of the outcome per 1 of the measure (least squares).
    """

    measure: str
    outcome: str
    slice: str | None
    pages: int
    units: int
    n: int
    mean: float
    probability: IntervalEstimate
    pairs: int
    within: IntervalEstimate
    pairs_within: int
    tau: IntervalEstimate
    slope: IntervalEstimate


@dataclass(frozen=True)
class CalibrationBin:
    """Mean outcome of pages in a range of scores.

    Parameters
    ----------
    measure, outcome
        Names.
    low, high
        Smallest and largest score.
    pages, units
        Numbers of pages, and of users or sessions.
    score
        Mean score.
    mean
        Mean outcome.
    """

    measure: str
    outcome: str
    low: float
    high: float
    pages: int
    units: int
    score: float
    mean: IntervalEstimate


@dataclass(frozen=True)
class TopicRelation:
    """Rank correlation of mean scores and mean outcomes over topics.

    Parameters
    ----------
    measure, outcome
        Names.
    n, pages
        Number of topics with enough pages, and of their pages.
    rho
        Spearman's rho; positive if better scores have better outcomes.
    """

    measure: str
    outcome: str
    n: int
    pages: int
    rho: IntervalEstimate


_CHANCE = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OfflineOnline(JudgedPages):
    """Prediction of user behavior by judgments: concordance by measure, outcome, and slice, and calibration.

    The main table ``relations`` has one row per measure, outcome, and slice.

    Attributes
    ----------
    log, qrels, how, pages, joined, left_out, by, slices, unit, units, level
        As in `JudgedPages`.
    judged : float
        Mean share of judged results among the first `judged_at`, over the scored pages.
    judged_at, least_judged : int, float
        Depth of that share, and its minimum for a scored page.
    hopeless : int
        Pages of topics without a document with a grade above 0, on which each list scores 0.
    measures, outcomes : tuple of str
        Names.
    meanings : tuple of str
        Descriptions of outcomes.
    worse : tuple of str
        Outcomes for which lower is better.
    least_pages : int
        Minimum number of pages of a topic in `topics`.
    relations : tuple of OutcomeRelation
        By measure, then outcome; all pages first, then slices.
    calibration : tuple of CalibrationBin
        By measure, then outcome, then score.
    topics : tuple of TopicRelation
        By measure, then outcome.
    """

    kind: ClassVar[str] = "offline-online"
    title_format: ClassVar[str] = "Whether {qrels} predicts what users did: {log}"
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
    relations: tuple[OutcomeRelation, ...]
    calibration: tuple[CalibrationBin, ...]
    topics: tuple[TopicRelation, ...]

    def of(self, measure: str, outcome: str, slice: str | None = None) -> OutcomeRelation:
        """Return the relation of a measure, outcome, and slice.

        Raises
        ------
        KeyError
            If there is no such relation.
        """
        for relation in self.relations:
            if (relation.measure, relation.outcome, relation.slice) == (measure, outcome, slice):
                return relation
        raise KeyError(f"{measure} and {outcome} on {slice or 'all pages'}")

    def bins(self, measure: str, outcome: str) -> tuple[CalibrationBin, ...]:
        """Return the calibration of a measure and outcome, by increasing score."""
        return tuple(bin_ for bin_ in self.calibration if (bin_.measure, bin_.outcome) == (measure, outcome))

    def blocks(self) -> tuple[Block, ...]:
        """Return relations, calibration of the first measure with its chart, topics, and conclusions."""
        calibration = self._calibration_table(self.calibration)
        first_measure = self._calibration_table([row for row in self.calibration if row.measure == self.measures[0]])
        limits = zip(first_measure.column("low").values, first_measure.column("high").values, strict=True)
        ranges = [f"{low:.3f} to {high:.3f}" for low, high in limits]
        values = first_measure.showing("pages", "units", "score", "mean").shown
        columns = (Column("range", ranges, TEXT, self.measures[0]), *values)
        outcomes = list(first_measure.column("outcome").values)
        text_table = Table("calibration_shown", columns, only="people", groups=outcomes)
        return (
            self._relation_table(),
            *([self._calibration_chart(first_measure), text_table] if len(first_measure) else []),
            Table(calibration.name, calibration.columns, only="data"),
            self._topic_table(),
            Sentences(self.sentences),
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts of the result, with outcomes and options."""
        names = ("judged", "judged_at", "least_judged", "hopeless", "least_pages", "measures")
        outcomes = zip(self.outcomes, self.meanings, strict=True)
        return {
            **super().facts(),
            **{name: getattr(self, name) for name in names},
            "outcomes": [
                {"name": name, "meaning": meaning, "less_is_better": name in self.worse} for name, meaning in outcomes
            ],
        }

    def _relation_table(self) -> Table:
        rows = self.relations
        columns = (
            *columns_of(rows, ("measure", TEXT), ("outcome", TEXT)),
            *self.slice_columns(rows),
            *columns_of(rows, ("pages", UNITS), ("units", UNITS, f"{self.unit}s"), "n", ("mean", SHARE)),
            estimate_column([row.probability for row in rows], "probability", "better page, better outcome"),
            estimate_column([row.within for row in rows], "within", "within topics"),
            estimate_column([row.tau for row in rows], "tau", "tau_b", signed=True),
            estimate_column([row.slope for row in rows], "slope", signed=True),
            *columns_of(rows, "pairs", "pairs_within"),
        )
        return Table("relations", columns, labels=3 if self.by else 2)

    def _calibration_table(self, rows: Sequence[CalibrationBin]) -> Table:
        columns = (
            *columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("low", SHARE), ("high", SHARE)),
            *columns_of(rows, ("pages", UNITS), ("units", UNITS, f"{self.unit}s"), ("score", SHARE, "mean score")),
            estimate_column([row.mean for row in rows], "mean", "mean outcome"),
        )
        return Table("calibration", columns, labels=2)

    def _calibration_chart(self, calibration: Table) -> Chart:
        interval_text = f"{percent(self.level)} intervals over {self.unit}s"
        drawn_column = Column("drawn", [True] * len(calibration), YES_NO, only="json")
        return Chart(
            "calibration", f"What users did, by {self.measures[0]}",
            Table("calibration_drawn", (*calibration.columns, drawn_column), only="people"),
            f"The mean outcome of pages in ranges of {self.measures[0]}, with {interval_text}.",
            kind="points", x="score", x_title=f"{self.measures[0]}, mean of the range", y="mean",
            facet="outcome" if len(self.outcomes) > 1 else "", path="drawn", steps="linear",
            includes={"x": (0.0,), "y": (0.0,)}, subtitle=interval_text, height=280,
        )  # fmt: skip

    def _topic_table(self) -> Table:
        rows = self.topics
        columns = columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("n", UNITS, "topics"), ("pages", UNITS))
        rho = estimate_column([row.rho for row in rows], "rho", "Spearman's rho of means", signed=True)
        return Table("topics", (*columns, rho), labels=2, only="" if rows else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and limits."""
        hopeless = (
            f"On {self.hopeless} of the pages that were scored the topic has no document with a grade above 0: no list"
            " could score there."
        )
        return (
            f"{self.counted} Of their first {self.judged_at} results {self.judged:.1%} are judged.",
            *(_describe_relation(relation, self.unit) for relation in self.relations if relation.slice is None),
            *([hopeless] if self.hopeless else []),
            f"{_DEFINITIONS} {self.intervals}: others may tell something else. {_MULTIPLICITY}",
            *([_NO_COMPARISON] if any(np.isnan(relation.within.value) for relation in self.relations) else []),
            *([_TOPIC_INTERVALS] if self.topics else []),
            _LIMITS,
        )


_DEFINITIONS = (
    "By chance of two pages with different outcomes the better one has the better outcome half of the time; ties of the"
    " score count half. Within topics, pages of one topic alone are compared: that harder topics have both worse scores"
    " and worse outcomes does not help there."
)
_MULTIPLICITY = "Each stands for itself: of many some exclude chance by luck."
_NO_COMPARISON = "A dash stands where nothing was compared: no two pages differ both in score and in outcome."
_TOPIC_INTERVALS = "Spearman's rho alone has an interval over topics, as if they were drawn from many."
_LIMITS = (
    "What is clicked also depends on where it stands and what else is shown: this tells whether a measure predicts what"
    " users did on these pages, not what they would do on others."
)


def _describe_relation(relation: OutcomeRelation, unit: str) -> str:
    name = f"{relation.measure} and {relation.outcome}"
    if np.isnan(relation.probability.value):
        return f"{name}: nothing to compare, as no two of {relation.pages} pages differ both in score and in outcome."
    start = f"{name}: of two pages the better one has the better outcome with probability {relation.probability}"
    if not relation.probability.has_interval:
        return f"{start}; there is no interval."
    if shortage := insufficiency(relation.units, "verdict"):
        return f"{start}. {shortage.sentence(unit)}"
    if not relation.probability.excludes(_CHANCE):
        return f"{start}: that it predicts anything is not shown."
    direction = "predicts it" if relation.probability.value > _CHANCE else "points the wrong way"
    if np.isnan(relation.within.value):
        return f"{start}: it {direction}; within topics no two pages differ both in score and in outcome."
    within_topics = "within topics too" if relation.within.excludes(_CHANCE) else "within topics that is not shown"
    if relation.within.excludes(_CHANCE) and (relation.within.value > _CHANCE) != (
        relation.probability.value > _CHANCE
    ):
        within_topics = "but the other way round within topics"
    return f"{start}: it {direction}; {within_topics} ({relation.within})."
