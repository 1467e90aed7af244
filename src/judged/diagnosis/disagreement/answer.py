"""Two systems as two measures see them: preferences, the topics on which they part, and reasons, as an answer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.comparison.answer import AnswerOfScores
from judged.results import Chart, Column, Line, Sentences, Table
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal
from judged.results.table import ANY, CHANGE, COUNT, TEXT, beginning, columns_of, number
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from judged.comparison import OrderAgreement
    from judged.diagnosis.disagreement.reasons import Reason
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores

SIGNS = {1: "up", 0: "same", -1: "down"}


@dataclass(frozen=True)
class MeanSide:
    """One measure's view of the second system against the first."""

    measure: str
    n: int  # topics with a score for both by both measures
    difference: float  # mean of second minus first
    error: float  # its standard error; NaN for fewer than two topics
    better: int  # topics on which the second is better
    worse: int
    lower_is_better: bool = False

    @property
    def side(self) -> int:
        """1 where the measure prefers the second system, -1 the first, 0 neither."""
        if abs(self.difference) <= ROUNDING:
            return 0
        return 1 if (self.difference > 0) != self.lower_is_better else -1

    @property
    def in_errors(self) -> float:
        """The difference in standard errors; NaN where there is none."""
        return self.difference / self.error if self.error > 0 else math.nan


@dataclass(frozen=True)
class TopicDisagreement:
    """One topic under both measures."""

    query_id: str
    query: str
    scores: tuple[tuple[float, float], tuple[float, float]]  # for each measure, of the first and the second system
    sides: tuple[int, int]  # which system each measure prefers here: 1 for the second, -1 for the first, 0 for neither
    # how far the topic pulls the two mean differences apart, each in units of its standard error: in the direction in
    # which they lie apart. Over all topics, pulls add up to the distance of the two.
    pull: float
    reasons: tuple[Reason, ...] = ()  # what the measures see there, where it was looked into

    @property
    def differences(self) -> tuple[float, float]:
        """Second minus first, by each measure."""
        (a, b), (c, d) = self.scores
        return b - a, d - c


@dataclass(frozen=True)
class SliceDisagreement:
    """One slice under both measures."""

    name: str
    n: int
    small: bool
    means: tuple[MeanSide, MeanSide] | None  # None for a slice without topics
    opposite: int
    same: int


@dataclass(frozen=True, eq=False, repr=False)
class Disagreement(AnswerOfScores):
    """What `disagreement` returns: which system each measure prefers, what that rests on, and what they see.

    Attributes
    ----------
    scores : Scores
        Of all systems, by the two measures.
    systems : tuple of str
        The first and the second; differences are second minus first.
    means : tuple of MeanSide
        One a measure.
    topics : tuple of TopicDisagreement
        Those that pull the means apart most first; as many as `shown` say are looked into.
    slices : tuple of SliceDisagreement
    orders : OrderAgreement or None
        How alike the measures order all systems, where there are three or more.
    chosen : bool
        Whether the two systems were picked as those that the measures pull apart most.
    direction : int
        1 where the first measure leans more to the second system than the second measure does, -1 otherwise.
    with_reasons : bool
        Whether there were judged lists to look into.
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
    chosen: bool = False
    direction: int = 1
    with_reasons: bool = True
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """The measures and the systems."""
        return f"{' and '.join(self.measures)} on {' and '.join(self.systems)}"

    @property
    def measures(self) -> tuple[str, str]:
        """The names of the measures."""
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
        """Topics by both measures: rows the first measure, columns the second; each up, same, down."""
        sides = [topic.sides for topic in self.topics]
        return tuple(tuple(sides.count((row, column)) for column in SIGNS) for row in SIGNS)

    @property
    def causes(self) -> tuple[TopicDisagreement, ...]:
        """The topics that pull the means apart most, as many as are shown."""
        return tuple(topic for topic in self.topics[: self.limit] if topic.pull > 0)

    @property
    def rests_on(self) -> int | None:
        """How many of the topics that pull most must be left out for the means to agree; None if they do agree."""
        if not self.opposite:
            return None
        ways = np.array([-1.0 if mean.lower_is_better else 1.0 for mean in self.means])
        gaps = np.array([topic.differences for topic in self.topics]) * ways
        rest = np.cumsum(gaps[::-1], axis=0)[::-1][1:]  # what is left without the first one, two, ... topics
        agree = np.flatnonzero((np.abs(rest) <= ROUNDING).any(axis=1) | (rest[:, 0] * rest[:, 1] > 0))
        return int(agree[0]) + 1 if len(agree) else len(self.topics)

    @property
    def identical(self) -> bool:
        """Whether the systems have the same scores on every topic, by both measures."""
        return all(topic.sides == (0, 0) for topic in self.topics)

    def facts(self) -> dict[str, Any]:
        """Give the systems, and what the disagreement of the means rests on."""
        known = {name: getattr(self, name) for name in ("systems", "chosen", "opposite", "rests_on")}
        return {**known, "orders": None if self.orders is None else asdict(self.orders)}

    def blocks(self) -> tuple[Block, ...]:
        """Give what may be concluded, topics by their signs, slices, and the topics that cause it with reasons."""
        topics, (first, second) = self._topics(), self.systems
        pull = f"Topics that pull the means apart most ({second} minus {first}; pull in standard errors of the means)"
        causes = replace(topics.take(range(len(self.causes))), name="causes", title=pull, only="people")
        whys = [self._why(topic) for topic in self.causes] if self.with_reasons else []
        columns = ("measure", "n", "difference", "error", "better", "worse", "lower_is_better", "in_errors")
        reasons = [(topic.query_id, reason) for topic in self.topics for reason in topic.reasons]
        ids = Column("query_id", [query_id for query_id, _ in reasons], TEXT)
        known = columns_of([reason for _, reason in reasons], "kind", "measure", "system", "documents", "text")
        return (
            Sentences(self.sentences),
            Table("measures", columns_of(self.means, *columns), only="data"),
            self._agreement(),
            *([self._slices()] if self.slices else []),
            *([causes, *whys] if self.causes else []),
            topics,
            Table("reasons", (ids, *known), only="data"),
            self._chart(),
        )

    def _agreement(self) -> Table:
        """Count the topics that are up, same or down by both measures."""
        (measure, other_measure), (first, second) = self.measures, self.systems
        counts = np.vstack([self.agreement, np.sum(self.agreement, axis=0)])
        columns = [Column("topics", [*(f"{measure} {sign}" for sign in SIGNS.values()), "all"], TEXT)]
        for at, sign in enumerate(SIGNS.values()):
            columns.append(Column(sign, counts[:, at].tolist(), COUNT, f"{other_measure} {sign}"))
        columns.append(Column("all", counts.sum(axis=1).tolist(), COUNT))
        title = f"Topics on which {second} is better than {first} (up), the same, or worse (down)"
        return Table("agreement", tuple(columns), title)

    def _slices(self) -> Table:
        """Lay out a row per slice: differences by both measures, and on how many topics they part."""
        columns = [*columns_of(self.slices, ("name", TEXT, "slice"), ("n", COUNT, "topics"), "small")]
        for at, measure in enumerate(self.measures):
            means = [part.means and part.means[at] for part in self.slices]
            for name in ("difference", "error", "better", "worse"):
                values = [mean and getattr(mean, name) for mean in means]
                only = "" if name == "difference" else "data"
                columns.append(Column(f"{measure} {name}", values, CHANGE if not only else ANY, measure, only=only))
        columns.append(Column("preferred", [self._preferred(part) for part in self.slices], TEXT, only="people"))
        columns += columns_of(self.slices, ("same", COUNT, "same side"), ("opposite", COUNT))
        return Table("slices", tuple(columns))

    def _preferred(self, part: SliceDisagreement) -> str:
        if part.means is None or part.small:
            return "-" if part.means is None else "too few topics"
        return " / ".join(dict.fromkeys(self._system(mean.side) for mean in part.means))

    def _system(self, side: int) -> str:
        """Name the system on a side."""
        return "neither" if side == 0 else self.systems[side > 0]

    def _topics(self) -> Table:
        """Lay out a row per topic: scores and differences by both measures, the pull, and reasons."""
        queries = any(topic.query for topic in self.causes)
        columns = [*columns_of(self.topics, ("query_id", TEXT), ("query", beginning(40)) if queries else "query")]
        for at, measure in enumerate(self.measures):
            for place, system in enumerate(self.systems):
                values = [topic.scores[at][place] for topic in self.topics]
                columns.append(Column(f"{measure} {system}", values, only="data"))
            gaps = [topic.differences[at] for topic in self.topics]
            columns.append(Column(f"{measure} difference", gaps, CHANGE, measure))
        texts = [tuple(reason.text for reason in topic.reasons) for topic in self.topics]
        columns += [*columns_of(self.topics, ("pull", number(3))), Column("reasons", texts, only="data")]
        return Table("topics", tuple(columns), labels=1 + queries, only="data")

    def _why(self, topic: TopicDisagreement) -> Sentences:
        lines = [f"{reason.text}." for reason in topic.reasons]
        if topic.sides[0] == topic.sides[1]:
            more = self.measures[self.direction * topic.sides[0] < 0]
            lines.insert(0, f"Both prefer {self._system(topic.sides[0])}, {more} by more standard errors.")
        title = f"{topic.query_id}: {topic.query}" if topic.query else topic.query_id
        lines = lines or ["None of the kinds of reasons that are looked for applies."]
        return Sentences(tuple(lines), f"why {topic.query_id}", title)

    def _chart(self) -> Chart:
        """Draw every topic: in two of the four quarters the measures prefer different systems."""
        kinds = {"one sees no difference": PALETTE[-1], "the same side": PALETTE[0], "opposite sides": PALETTE[1]}
        first, second = self.systems
        known = [list(kinds)[topic.sides[0] * topic.sides[1]] for topic in self.topics]
        labels = [topic.query_id if topic in self.causes else "" for topic in self.topics]
        gaps = zip(*(topic.differences for topic in self.topics), strict=True)
        points = (
            *columns_of(self.topics, ("query_id", TEXT, "topic"), ("query", beginning(40))),
            *(
                Column(axis, values, CHANGE, f"{measure}: {second} minus {first}")
                for axis, measure, values in zip("xy", self.measures, gaps, strict=True)
            ),
            Column("kind", known, TEXT),
            Column("label", labels, only="data"),
        )
        return Chart(
            name="topics",
            title=f"{' and '.join(self.measures)}, topic by topic",
            subtitle=f"named: the topics that pull the means of {first} and {second} apart most",
            table=Table("points", points),
            sentence=f"How much better {second} is than {first} on each topic, by both measures.",
            kind="points",
            x="x",
            y="y",
            colour="kind",
            colours=kinds,
            label="label",
            lines=(Line("x", 0.0, dashed=False), Line("y", 0.0, dashed=False)),
            width=420,
            height=360,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the measures disagree on, what it rests on, and how often topics do."""
        (measure, other_measure), (first, second), n = self.measures, self.systems, len(self.topics)
        said: list[str] = []
        if self.orders is not None:
            tau = self.orders.tau
            said.append(
                f"{measure} and {other_measure} order {tau.n} systems with tau {decimal(tau.value, 3)} and tau_AP"
                f" {decimal(self.orders.tau_ap.value, 3)}: {tau.discordant} of"
                f" {tau.concordant + tau.discordant + tau.tied} pairs change places."
            )
        if self.chosen:
            said.append(
                f"{first} and {second} are the two systems that {measure} and {other_measure} pull apart most; they"
                " were picked for that, so that no test of their difference holds."
            )
        said.append(f"Over {counted(n, 'topic')} {'; '.join(map(self._mean, self.means))}. {self._verdict()}")
        both = Counter(topic.sides[0] * topic.sides[1] for topic in self.topics)
        neither = sum(topic.sides == (0, 0) for topic in self.topics)
        said.append(
            f"Of {counted(n, 'topic')} the measures prefer the same system on {both[1]}, different ones on {both[-1]};"
            f" on {both[0] - neither} only one of them sees a difference, on {neither} neither does."
        )
        if self.causes and not self.with_reasons:
            said.append("These are scores alone: give qrels and runs to see what the measures see on a topic.")
        return tuple(said)

    def _mean(self, mean: MeanSide) -> str:
        if mean.side == 0:
            return f"{mean.measure} prefers neither {' nor '.join(self.systems)}"
        errors = "" if math.isnan(mean.in_errors) else f" ({abs(mean.in_errors):.1f} standard errors)"
        size = decimal(abs(mean.difference))
        return f"{mean.measure} prefers {self._system(mean.side)} to {self._system(-mean.side)} by {size}{errors}"

    def _verdict(self) -> str:
        sides = {mean.side for mean in self.means}
        if self.identical:
            return "They have the same scores on every topic: there is nothing to disagree on."
        if not self.opposite:
            sees = "neither sees a difference" if sides == {0} else "one sees no difference"
            return f"The means do not disagree: {sees}." if 0 in sides else "The means agree on the better system."
        count = self.rests_on or 0
        fewer, which = ("", "it") if count == 1 else (" or fewer", "those that pull most")  # fewer may do as well
        weak = [mean for mean in self.means if math.isnan(mean.error) or abs(mean.difference) < 2 * mean.error]
        luck = f" The difference in {' and in '.join(mean.measure for mean in weak)} is not twice its standard error"
        return (
            f"The means disagree. It rests on {counted(count, 'topic')}{fewer}: without {which} the means no longer"
            f" disagree.{f'{luck}: it may be luck in the choice of topics.' if weak else ''}"
        )
