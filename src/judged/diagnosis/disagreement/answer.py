"""Result of `disagree`: preferences of two measures, and the topics and reasons behind them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.results import Chart, Column, ReferenceLine, Sentences, Table
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal
from judged.results.table import ANY, CHANGE, COUNT, TEXT, columns_of, number, truncated
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from judged.comparison import OrderAgreement
    from judged.diagnosis.disagreement.reasons import Reason
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores

DIRECTIONS = {1: "up", 0: "same", -1: "down"}


@dataclass(frozen=True)
class MeanSide:
    """Mean difference of the second system from the first by one measure."""

    measure: str
    n: int  # number of topics with a score for both systems by both measures
    difference: float  # mean of second minus first
    error: float  # standard error of `difference`; NaN for fewer than two topics
    better: int  # number of topics on which the second system is better
    worse: int
    lower_is_better: bool = False

    @property
    def side(self) -> int:
        """1 if the measure prefers the second system, -1 if the first, 0 if neither."""
        if abs(self.difference) <= ROUNDING:
            return 0
        return 1 if (self.difference > 0) != self.lower_is_better else -1

    @property
    def in_errors(self) -> float:
        """Difference in standard errors; NaN if the standard error is 0 or unknown."""
        return self.difference / self.error if self.error > 0 else math.nan


@dataclass(frozen=True)
class TopicDisagreement:
    """Scores and preferences of both measures on one topic."""

    query_id: str
    query: str
    scores: tuple[tuple[float, float], tuple[float, float]]  # by measure, then system
    sides: tuple[int, int]  # preference of each measure: 1 for the second system, -1 for the first, 0 for neither
    # Contribution of the topic to the distance of the two mean differences, each in standard errors. The contributions
    # of all topics sum to this distance.
    contribution: float
    reasons: tuple[Reason, ...] = ()  # computed for the topics with the largest contributions only

    @property
    def differences(self) -> tuple[float, float]:
        """Second minus first, by each measure."""
        first, second = (after - before for before, after in self.scores)
        return first, second


@dataclass(frozen=True)
class SliceDisagreement:
    """Means and preferences of both measures on one slice."""

    name: str
    n: int
    small: bool
    means: tuple[MeanSide, MeanSide] | None  # None if the slice has no topics
    opposite: int  # number of topics on which the measures prefer different systems
    same: int  # number of topics on which they prefer the same system


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement(AnswerOfScores):
    """Result of `disagree`: the preference of each measure, and the topics and documents that cause a disagreement.

    Attributes
    ----------
    scores : Scores
        Scores of all systems by the two measures.
    systems : tuple of str
        The first and the second system. Differences are second minus first.
    means : tuple of MeanSide
        One per measure.
    topics : tuple of TopicDisagreement
        Sorted by descending contribution. The first `limit` topics with a positive contribution are the `causes`.
    limit : int
        Maximum number of causes.
    slices : tuple of SliceDisagreement
        One per slice.
    orders : OrderAgreement or None
        Agreement of the orders of all systems, if there are three or more.
    auto_selected : bool
        Whether the systems were selected as those on which the measures disagree most.
    direction : int
        1 if the first measure favors the second system more than the second measure does, else -1.
    with_reasons : bool
        Whether judgments and runs were available, so that reasons could be computed.
    notes : tuple of Note
        Warnings about the scores.
    """

    kind: ClassVar[str] = "disagreement"
    main: ClassVar[str] = "topics"

    scores: Scores
    systems: tuple[str, str]
    means: tuple[MeanSide, MeanSide]
    topics: tuple[TopicDisagreement, ...]
    limit: int
    slices: tuple[SliceDisagreement, ...] = ()
    orders: OrderAgreement | None = None
    auto_selected: bool = False
    direction: int = 1
    with_reasons: bool = True
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Names of the measures and the systems."""
        return f"{' and '.join(self.measures)} on {' and '.join(self.systems)}"

    @property
    def measures(self) -> tuple[str, str]:
        """Names of the measures."""
        return self.means[0].measure, self.means[1].measure

    @property
    def differences(self) -> tuple[float, float]:
        """Second system minus first, by each measure."""
        return self.means[0].difference, self.means[1].difference

    @property
    def opposite(self) -> bool:
        """Whether the means prefer different systems."""
        return self.means[0].side * self.means[1].side < 0

    @property
    def agreement(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of topics: rows by the first measure, columns by the second, each up, same, down."""
        sides = [topic.sides for topic in self.topics]
        return tuple(tuple(sides.count((row, column)) for column in DIRECTIONS) for row in DIRECTIONS)

    @property
    def causes(self) -> tuple[TopicDisagreement, ...]:
        """Topics with the largest contributions, at most `limit`."""
        return tuple(topic for topic in self.topics[: self.limit] if topic.contribution > 0)

    @property
    def n_decisive_topics(self) -> int | None:
        """Number of topics with the largest contributions whose removal makes the means agree.

        None if they already agree.
        """
        if not self.opposite:
            return None
        signs = np.array([-1.0 if mean.lower_is_better else 1.0 for mean in self.means])
        gains = np.array([topic.differences for topic in self.topics]) * signs
        sums = np.cumsum(gains[::-1], axis=0)[::-1][1:]  # row i: sums without the first i + 1 topics
        agree = np.flatnonzero((np.abs(sums) <= ROUNDING).any(axis=1) | (sums[:, 0] * sums[:, 1] > 0))
        return int(agree[0]) + 1 if len(agree) else len(self.topics)

    @property
    def identical(self) -> bool:
        """Whether the systems have the same scores on every topic by both measures."""
        return all(topic.sides == (0, 0) for topic in self.topics)

    def facts(self) -> dict[str, Any]:
        """Return the systems and the summary of the disagreement."""
        facts = {"systems": self.systems, "auto_selected": self.auto_selected, "opposite": self.opposite}
        orders = None if self.orders is None else asdict(self.orders)
        return {**facts, "n_decisive_topics": self.n_decisive_topics, "orders": orders}

    def blocks(self) -> tuple[Block, ...]:
        """Return sentences, tables of topics by preference, slices and causes, reasons, and a chart."""
        topics, (first, second) = self._topics(), self.systems
        scale = f"{second} minus {first}; contribution in standard errors of the means"
        title = f"Topics that contribute most to the disagreement ({scale})"
        causes = replace(topics.take(range(len(self.causes))), name="causes", title=title, only="people")
        reason_blocks = [self._reasons_block(topic) for topic in self.causes] if self.with_reasons else []
        columns = ("measure", "n", "difference", "error", "better", "worse", "lower_is_better", "in_errors")
        reasons = [(topic.query_id, reason) for topic in self.topics for reason in topic.reasons]
        ids = Column("query_id", [query_id for query_id, _ in reasons], TEXT)
        reason_columns = columns_of([reason for _, reason in reasons], "kind", "measure", "system", "documents", "text")
        return (
            Sentences(self.sentences),
            Table("measures", columns_of(self.means, *columns), only="data"),
            self._agreement(),
            *([self._slices()] if self.slices else []),
            *([causes, *reason_blocks] if self.causes else []),
            topics,
            Table("reasons", (ids, *reason_columns), only="data"),
            self._chart(),
        )

    def _agreement(self) -> Table:
        """Return a table with the numbers of topics that are up, same or down by both measures."""
        (measure, other_measure), (first, second) = self.measures, self.systems
        counts = np.vstack([self.agreement, np.sum(self.agreement, axis=0)])
        columns = [Column("topics", [*(f"{measure} {sign}" for sign in DIRECTIONS.values()), "all"], TEXT)]
        for column, sign in enumerate(DIRECTIONS.values()):
            columns.append(Column(sign, counts[:, column].tolist(), COUNT, f"{other_measure} {sign}"))
        columns.append(Column("all", counts.sum(axis=1).tolist(), COUNT))
        title = f"Number of topics on which {second} is better than {first} (up), equal (same), or worse (down)"
        return Table("agreement", tuple(columns), title)

    def _slices(self) -> Table:
        columns = [*columns_of(self.slices, ("name", TEXT, "slice"), ("n", COUNT, "topics"), "small")]
        for i, measure in enumerate(self.measures):
            means = [row.means and row.means[i] for row in self.slices]
            for name in ("difference", "error", "better", "worse"):
                values = [mean and getattr(mean, name) for mean in means]
                only = "" if name == "difference" else "data"
                columns.append(Column(f"{measure} {name}", values, CHANGE if not only else ANY, measure, only=only))
        columns.append(Column("preferred", [self._preferred(row) for row in self.slices], TEXT, only="people"))
        columns += columns_of(self.slices, ("same", COUNT, "same preference"), ("opposite", COUNT))
        return Table("slices", tuple(columns))

    def _preferred(self, part: SliceDisagreement) -> str:
        if part.means is None or part.small:
            return "-" if part.means is None else "too few topics"
        return " / ".join(dict.fromkeys(self._system(mean.side) for mean in part.means))

    def _system(self, side: int) -> str:
        """Return the name of the system on a side."""
        return "neither" if side == 0 else self.systems[side > 0]

    def _topics(self) -> Table:
        queries = any(topic.query for topic in self.causes)
        columns = [*columns_of(self.topics, ("query_id", TEXT), ("query", truncated(40)) if queries else "query")]
        for i, measure in enumerate(self.measures):
            for j, system in enumerate(self.systems):
                values = [topic.scores[i][j] for topic in self.topics]
                columns.append(Column(f"{measure} {system}", values, only="data"))
            differences = [topic.differences[i] for topic in self.topics]
            columns.append(Column(f"{measure} difference", differences, CHANGE, measure))
        texts = [tuple(reason.text for reason in topic.reasons) for topic in self.topics]
        columns += [*columns_of(self.topics, ("contribution", number(3))), Column("reasons", texts, only="data")]
        return Table("topics", tuple(columns), labels=1 + queries, only="data")

    def _reasons_block(self, topic: TopicDisagreement) -> Sentences:
        lines = [f"{reason.text}." for reason in topic.reasons]
        if topic.sides[0] == topic.sides[1]:
            stronger_measure = self.measures[self.direction * topic.sides[0] < 0]
            lines.insert(
                0,
                f"Both measures prefer {self._system(topic.sides[0])}, but the difference in {stronger_measure} is"
                f" larger in units of its standard error.",
            )
        title = f"{topic.query_id}: {topic.query}" if topic.query else topic.query_id
        lines = lines or ["No known reason explains the disagreement on this topic."]
        return Sentences(tuple(lines), f"reasons {topic.query_id}", title)

    def _chart(self) -> Chart:
        """Return a chart of all topics by both differences. In two quadrants, the measures prefer different systems."""
        kinds = {
            "at least one measure prefers neither system": PALETTE[-1],
            "same preference": PALETTE[0],
            "opposite preferences": PALETTE[1],
        }
        first, second = self.systems
        topic_kinds = [list(kinds)[topic.sides[0] * topic.sides[1]] for topic in self.topics]
        labels = [topic.query_id if topic in self.causes else "" for topic in self.topics]
        differences = zip(*(topic.differences for topic in self.topics), strict=True)
        points = (
            *columns_of(self.topics, ("query_id", TEXT, "topic"), ("query", truncated(40))),
            *(
                Column(axis, values, CHANGE, f"{measure}: {second} minus {first}")
                for axis, measure, values in zip("xy", self.measures, differences, strict=True)
            ),
            Column("kind", topic_kinds, TEXT),
            Column("label", labels, only="data"),
        )
        return Chart(
            name="topics",
            title=f"{' and '.join(self.measures)} by topic",
            subtitle="labeled: topics that contribute most to the disagreement",
            table=Table("points", points),
            sentence=f"Difference between {second} and {first} on each topic by both measures.",
            kind="points",
            x="x",
            y="y",
            color="kind",
            colors=kinds,
            label="label",
            lines=(ReferenceLine("x", 0.0, dashed=False), ReferenceLine("y", 0.0, dashed=False)),
            width=420,
            height=360,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Disagreement of the measures over all topics, the topics that cause it, and its frequency."""
        (measure, other_measure), (first, second), n = self.measures, self.systems, len(self.topics)
        texts: list[str] = []
        if self.orders is not None:
            tau = self.orders.tau
            texts.append(
                f"The orders of {tau.n} systems by {measure} and {other_measure} have tau = {decimal(tau.value, 3)} and"
                f" tau_AP = {decimal(self.orders.tau_ap.value, 3)}: {tau.discordant} of"
                f" {tau.concordant + tau.discordant + tau.tied} pairs of systems have opposite orders."
            )
        if self.auto_selected:
            texts.append(
                f"{first} and {second} were selected because {measure} and {other_measure} disagree most on these two"
                " systems, so tests of the difference between the systems are not valid."
            )
        texts.append(
            f"Over {counted(n, 'topic')}, {'; '.join(map(self._mean_sentence, self.means))}. {self._verdict()}"
        )
        by_sign = Counter(topic.sides[0] * topic.sides[1] for topic in self.topics)
        neither = sum(topic.sides == (0, 0) for topic in self.topics)
        texts.append(
            f"The measures prefer the same system on {by_sign[1]} of {counted(n, 'topic')}, and different systems on"
            f" {by_sign[-1]}. Only one measure has a preference on {by_sign[0] - neither} topics, and neither"
            f" measure has a preference on {neither}."
        )
        if self.causes and not self.with_reasons:
            texts.append("The input has only scores. Pass qrels and runs to see the reasons for the disagreement.")
        return tuple(texts)

    def _mean_sentence(self, mean: MeanSide) -> str:
        if mean.side == 0:
            return f"{mean.measure} prefers neither {' nor '.join(self.systems)}"
        errors = "" if math.isnan(mean.in_errors) else f" ({abs(mean.in_errors):.1f} standard errors)"
        size = decimal(abs(mean.difference))
        return f"{mean.measure} prefers {self._system(mean.side)} to {self._system(-mean.side)} by {size}{errors}"

    def _verdict(self) -> str:
        sides = {mean.side for mean in self.means}
        if self.identical:
            return "Both systems have the same scores on every topic, so the measures cannot disagree."
        if not self.opposite:
            view = "neither measure has a preference" if sides == {0} else "one measure has no preference"
            same = "The mean scores of the two measures prefer the same system."
            return f"The mean scores do not prefer different systems: {view}." if 0 in sides else same
        count = self.n_decisive_topics or 0
        # Other sets of topics may be smaller.
        topics = "one topic" if count == 1 else f"at most {count:,} topics"
        removed = "this topic" if count == 1 else "these topics, which have the largest contributions"
        weak = [mean for mean in self.means if math.isnan(mean.error) or abs(mean.difference) < 2 * mean.error]
        chance = (
            f" The difference in {' and in '.join(mean.measure for mean in weak)} is less than twice its standard error"
        )
        return (
            f"The mean scores of the two measures prefer different systems only because of {topics}: without {removed},"
            " the mean scores would not prefer different systems."
            f"{f'{chance}, and may depend on the sample of topics.' if weak else ''}"
        )
