"""Two rankings side by side as numbers: documents, topics, and all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.evaluation.provenance import Provenance
    from judged.judging import Ranking

Moved: TypeAlias = Literal["up", "down", "same", "new", "gone"]


@dataclass(frozen=True)
class DiffRow:
    """One document in two rankings."""

    doc_id: str
    # first_rank, second_rank: from 1, also where it is below the depth that is shown; None: not returned
    first_rank: int | None
    second_rank: int | None
    grade: float | None  # None: unjudged
    # one a measure: what it adds to the second score, less what it adds to the first. None where documents do not add
    # to the measure by themselves.
    changes: tuple[float | None, ...] = ()
    text: str = ""  # its title or text, where it is known

    @property
    def places(self) -> int:
        """How many ranks it rose; below 0 where it fell, and 0 where one ranking lacks it."""
        if self.first_rank is None or self.second_rank is None:
            return 0
        return self.first_rank - self.second_rank

    @property
    def moved(self) -> Moved:
        """What happened to it from the first ranking to the second."""
        if self.first_rank is None:
            return "new"
        if self.second_rank is None:
            return "gone"
        return "up" if self.places > 0 else "down" if self.places < 0 else "same"

    @property
    def movement(self) -> str:
        """The same in words: ``up 3``, ``down 2``, ``new``, ``gone``, ``same``."""
        return f"{self.moved} {abs(self.places)}" if self.places else self.moved

    @property
    def shown_grade(self) -> str:
        """The grade as it is written: ``-`` for an unjudged document."""
        return "-" if self.grade is None else f"{self.grade:g}"

    def to_dict(self, measures: tuple[str, ...]) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        made: dict[str, Any] = {
            "doc_id": self.doc_id,
            "first_rank": self.first_rank,
            "second_rank": self.second_rank,
            "grade": self.grade,
            "moved": self.moved,
            "places": self.places,
            "changes": dict(zip(measures, self.changes, strict=True)),
        }
        return made | ({"text": self.text} if self.text else {})


@dataclass(frozen=True)
class ScorePair:
    """The score of one topic, or of all, in both rankings."""

    measure: str
    first: float
    second: float
    lower_is_better: bool = False

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def side(self) -> int:
        """1 where the second is better, -1 where it is worse, 0 where they are the same but for rounding."""
        gap = self.difference
        if math.isnan(gap) or abs(gap) <= 1e-12 * max(abs(self.first), abs(self.second)):
            return 0
        return 1 if (gap > 0) != self.lower_is_better else -1


@dataclass(frozen=True)
class MeanPair:
    """A measure over all topics: both aggregates, and on how many topics the second run is better."""

    measure: str
    aggregate: str
    first: float
    second: float
    better: int
    worse: int
    same: int


@dataclass(frozen=True)
class TopicRows:
    """One topic in two rankings, as numbers: what sentences and tables are made of."""

    query_id: str
    query: str
    scores: tuple[ScorePair, ...]  # one a measure
    # the documents of both lists down to `depth`: those of the second list by rank, then those that only the first one
    # shows, by rank
    rows: tuple[DiffRow, ...]
    below: tuple[float | None, ...]  # one a measure: what documents that are not among the rows add to the difference
    returned: tuple[int, int]  # how many documents each run returned
    depth: int
    runs: tuple[str, str]

    @property
    def outcome(self) -> Literal["won", "lost", "same"]:
        """Whether the second run is better by the first measure."""
        side = self.scores[0].side
        return "won" if side > 0 else "lost" if side < 0 else "same"

    def side(self, which: Literal[0, 1]) -> tuple[DiffRow, ...]:
        """Give the documents of one list by rank, down to the depth: 0 for the first run, 1 for the second."""
        ranked = [(row.second_rank if which else row.first_rank, row) for row in self.rows]
        shown = [(rank, row) for rank, row in ranked if rank is not None and rank <= self.depth]
        return tuple(row for _, row in sorted(shown, key=lambda pair: pair[0]))

    @property
    def counts(self) -> dict[Moved, int]:
        """How many of the documents that are shown moved in each way."""
        ways: tuple[Moved, ...] = ("up", "down", "same", "new", "gone")
        return {way: sum(row.moved == way for row in self.rows) for way in ways}

    @property
    def unjudged(self) -> tuple[int, int]:
        """How many documents of each list that are shown have no judgment."""
        first, second = (sum(row.grade is None for row in self.side(which)) for which in (0, 1))
        return first, second

    def with_texts(self, texts: Mapping[str, str]) -> Self:
        """Give the same with the texts of documents."""
        return replace(self, rows=tuple(replace(row, text=texts.get(row.doc_id, "")) for row in self.rows))


@dataclass(frozen=True, repr=False)
class DiffTable:
    """Two rankings side by side, as numbers: what sentences and tables are made of."""

    runs: tuple[str, str]  # the names of the first and the second run
    measures: tuple[str, ...]  # the first one decides which topics are shown
    means: tuple[MeanPair, ...]  # one a measure, over all topics of the qrels
    # those that were named; or those with the largest differences, first for the second run, then against it
    topics: tuple[TopicRows, ...]
    depth: int
    named: bool  # whether the topics were named
    grades: tuple[float, float]  # the lowest and the highest grade of the qrels
    ranking: Ranking  # the policy that made the ranks
    provenance: Provenance  # what the numbers rest on
    warnings: tuple[str, ...] = ()
