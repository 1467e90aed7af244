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
    within_topics, pairs_within_topics
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
    within_topics: IntervalEstimate
    pairs_within_topics: int
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
    log, qrels, topic_source, pages, pages_used, excluded_pages, by, slices, unit, units, level
        As in `JudgedPages`.
    judged : float
        Mean share of judged results among the first `judged_depth`, over the scored pages.
    judged_depth, min_judged : int, float
        Depth of that share, and its minimum for a scored page.
    pages_without_relevant : int
        Pages of topics without a document with a grade above 0, on which each list scores 0.
    measures, outcomes : tuple of str
        Names.
    descriptions : tuple of str
        Descriptions of outcomes.
    lower_is_better : tuple of str
        Outcomes for which lower is better.
    min_pages : int
        Minimum number of pages of a topic in `topics`.
    relations : tuple of OutcomeRelation
        By measure, then outcome; all pages first, then slices.
    calibration : tuple of CalibrationBin
        By measure, then outcome, then score.
    topics : tuple of TopicRelation
        By measure, then outcome.
    """

    kind: ClassVar[str] = "offline-online"
    title_format: ClassVar[str] = "Prediction of user behavior by {qrels}: {log}"
    main: ClassVar[str] = "relations"

    judged: float
    judged_depth: int
    min_judged: float
    pages_without_relevant: int
    measures: tuple[str, ...]
    outcomes: tuple[str, ...]
    descriptions: tuple[str, ...]
    lower_is_better: tuple[str, ...]
    min_pages: int
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
        text_table = Table("calibration_text", columns, only="people", groups=outcomes)
        return (
            self._relation_table(),
            *([self._calibration_chart(first_measure), text_table] if len(first_measure) else []),
            Table(calibration.name, calibration.columns, only="data"),
            self._topic_table(),
            Sentences(self.sentences),
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts of the result, with outcomes and options."""
        names = ("judged", "judged_depth", "min_judged", "pages_without_relevant", "min_pages", "measures")
        outcomes = zip(self.outcomes, self.descriptions, strict=True)
        return {
            **super().facts(),
            **{name: getattr(self, name) for name in names},
            "outcomes": [
                {"name": name, "description": description, "lower_is_better": name in self.lower_is_better}
                for name, description in outcomes
            ],
        }

    def _relation_table(self) -> Table:
        rows = self.relations
        columns = (
            *columns_of(rows, ("measure", TEXT), ("outcome", TEXT)),
            *self.slice_columns(rows),
            *columns_of(rows, ("pages", UNITS), ("units", UNITS, f"{self.unit}s"), "n", ("mean", SHARE)),
            estimate_column([row.probability for row in rows], "probability", "concordance"),
            estimate_column([row.within_topics for row in rows], "within_topics", "within topics"),
            estimate_column([row.tau for row in rows], "tau", "tau_b", signed=True),
            estimate_column([row.slope for row in rows], "slope", signed=True),
            *columns_of(rows, "pairs", "pairs_within_topics"),
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
        interval_text = f"{percent(self.level)} CIs over {self.unit}s"
        in_chart_column = Column("in_chart", [True] * len(calibration), YES_NO, only="json")
        return Chart(
            "calibration", f"Outcomes by {self.measures[0]}",
            Table("calibration_chart", (*calibration.columns, in_chart_column), only="people"),
            f"Mean outcome of pages by {self.measures[0]}, with {interval_text}.",
            kind="points", x="score", x_title=f"mean {self.measures[0]} of the bin", y="mean",
            facet="outcome" if len(self.outcomes) > 1 else "", path="in_chart", steps="linear",
            includes={"x": (0.0,), "y": (0.0,)}, subtitle=interval_text, height=280,
        )  # fmt: skip

    def _topic_table(self) -> Table:
        rows = self.topics
        columns = columns_of(rows, ("measure", TEXT), ("outcome", TEXT), ("n", UNITS, "topics"), ("pages", UNITS))
        rho = estimate_column([row.rho for row in rows], "rho", "Spearman's rho of topic means", signed=True)
        return Table("topics", (*columns, rho), labels=2, only="" if rows else "data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Conclusions and limits."""
        pages_without_relevant = (
            f"The topics of {self.pages_without_relevant} scored pages have no document with a grade above 0, so every"
            " list on"
            " these pages scores 0."
        )
        return (
            f"{self.counted} Of the top {self.judged_depth} results of these pages, {self.judged:.1%} are judged.",
            *(_describe_relation(relation, self.unit) for relation in self.relations if relation.slice is None),
            *([pages_without_relevant] if self.pages_without_relevant else []),
            f"{_DEFINITIONS} {self.intervals}. {_MULTIPLICITY}",
            *([_NO_COMPARISON] if any(np.isnan(relation.within_topics.value) for relation in self.relations) else []),
            *([_TOPIC_INTERVALS] if self.topics else []),
            _LIMITS,
        )


_DEFINITIONS = (
    "Concordance is the probability that, of two pages with different outcomes, the page with the better outcome has"
    " the"
    " better score. Tied scores count half, and random scores have a concordance of 0.5. Concordance within topics"
    " compares only pages of the same topic, so differences in difficulty between topics have no effect."
)
_MULTIPLICITY = "CIs are not corrected for the number of measures and outcomes, so some may exclude 0.5 by chance."
_NO_COMPARISON = "A dash means that a value cannot be computed, because no two pages differ in both score and outcome."
_TOPIC_INTERVALS = (
    "Only the CI of Spearman's rho takes the sample of topics into account, so only this CI"
    " generalizes to other topics."
)
_LIMITS = (
    "Clicks also depend on ranks and on the other results of the page. The result shows whether a measure predicts user"
    " behavior on these pages, not on pages that users did not see."
)


def _describe_relation(relation: OutcomeRelation, unit: str) -> str:
    name = f"{relation.measure} and {relation.outcome}"
    if np.isnan(relation.probability.value):
        return f"{name}: no two of {relation.pages} pages differ in both score and outcome."
    start = f"{name}: concordance {relation.probability}, n = {relation.pages} pages of {relation.units} {unit}s"
    if not relation.probability.has_interval:
        return f"{start}. There is no CI."
    if shortage := insufficiency(relation.units, "verdict"):
        return f"{start}. {shortage.sentence(unit)}"
    if not relation.probability.excludes(_CHANCE):
        return f"{start}: not significantly different from chance."
    direction = "significantly above chance" if relation.probability.value > _CHANCE else "significantly below chance"
    if np.isnan(relation.within_topics.value):
        return f"{start}: {direction}. Within topics, no two pages differ in both score and outcome."
    within_topics = "also significant" if relation.within_topics.excludes(_CHANCE) else "not significant"
    if relation.within_topics.excludes(_CHANCE) and (relation.within_topics.value > _CHANCE) != (
        relation.probability.value > _CHANCE
    ):
        within_topics = "significant in the opposite direction"
    return f"{start}: {direction}. Within topics, the concordance is {within_topics} ({relation.within_topics})."
