"""Two systems as two measures see them, as numbers: what the forms of `disagreement` stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.pairing import ROUNDING

if TYPE_CHECKING:
    from judged.comparison import OrderAgreement
    from judged.diagnosis.disagreement.reasons import Reason
    from judged.evaluation import Scores

SIGNS = ("up", "same", "down")


@dataclass(frozen=True)
class MeanSide:
    """One measure's view of the second system against the first."""

    measure: str
    n: int  # topics with a score for both by both measures
    difference: float  # mean of second minus first
    error: float  # its standard error; NaN for fewer than two topics
    # better, worse: topics on which the second is better, or worse
    better: int
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
    # for each measure, the scores of the first and the second system
    scores: tuple[tuple[float, float], tuple[float, float]]
    lower_is_better: tuple[bool, bool]
    # how far the topic pulls the two mean differences apart, each in units of its standard error: in the direction in
    # which they lie apart. Over all topics, pulls add up to the distance of the two.
    pull: float
    reasons: tuple[Reason, ...] = ()  # what the measures see there, where it was looked into

    @property
    def differences(self) -> tuple[float, float]:
        """Second minus first, by each measure."""
        (a, b), (c, d) = self.scores
        return b - a, d - c

    @property
    def sides(self) -> tuple[int, int]:
        """Which system each measure prefers here: 1 for the second, -1 for the first, 0 for neither."""
        one, two = (self._side(at) for at in (0, 1))
        return one, two

    def _side(self, at: int) -> int:
        gap, largest = self.differences[at], max(map(abs, self.scores[at]))
        if abs(gap) <= ROUNDING * largest:
            return 0
        return 1 if (gap > 0) != self.lower_is_better[at] else -1

    @property
    def opposite(self) -> bool:
        """Whether the measures prefer different systems."""
        return self.sides[0] * self.sides[1] < 0


@dataclass(frozen=True)
class SliceDisagreement:
    """One slice under both measures; `means` is None for a slice without topics."""

    name: str
    n: int
    small: bool
    means: tuple[MeanSide, MeanSide] | None
    opposite: int
    same: int


@dataclass(frozen=True, eq=False)
class TwoSides:
    """Two systems as two measures see them: the part of a disagreement that its forms stand on."""

    scores: Scores  # of all systems, by the two measures
    systems: tuple[str, str]  # the first and the second; differences are second minus first
    means: tuple[MeanSide, MeanSide]  # one a measure
    topics: tuple[TopicDisagreement, ...]  # all topics, those that pull the means apart most first
    shown: int  # how many of them are shown
    slices: tuple[SliceDisagreement, ...] = ()
    orders: OrderAgreement | None = None  # how alike the measures order all systems, where there are three or more
    chosen: bool = False  # whether the two systems were picked as those that the measures pull apart most
    # 1 where the first measure leans more to the second system than the second measure does, -1 otherwise
    direction: int = 1
    with_reasons: bool = True  # whether there were judged lists to look into
    warnings: tuple[str, ...] = ()

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
        signs = [one.sides for one in self.topics]
        ways = (1, 0, -1)
        return tuple(tuple(sum(pair == (row, column) for pair in signs) for column in ways) for row in ways)

    @property
    def causes(self) -> tuple[TopicDisagreement, ...]:
        """The topics that pull the means apart most, as many as are shown."""
        return tuple(one for one in self.topics[: self.shown] if one.pull > 0)

    @property
    def rests_on(self) -> int | None:
        """How many of the topics that pull most must be left out for the means to agree; None if they do agree."""
        if not self.opposite:
            return None
        turned = np.array([[-1.0 if less else 1.0 for less in one.lower_is_better] for one in self.topics])
        gaps = np.array([one.differences for one in self.topics]) * turned
        rest = np.cumsum(gaps[::-1], axis=0)[::-1][1:]  # what is left without the first one, two, ... topics
        agree = np.flatnonzero((np.abs(rest) <= ROUNDING).any(axis=1) | (rest[:, 0] * rest[:, 1] > 0))
        return int(agree[0]) + 1 if len(agree) else len(self.topics)

    @property
    def identical(self) -> bool:
        """Whether the systems have the same scores on every topic, by both measures."""
        return all(one.sides == (0, 0) for one in self.topics)
