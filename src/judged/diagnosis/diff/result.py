"""What `diff` returns: topics, each with its documents in both rankings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.stats.pairing import plain
from judged.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.judging import Ranking

Moved: TypeAlias = Literal["up", "down", "same", "new", "gone"]


@dataclass(frozen=True)
class DiffRow:
    """One document in two rankings.

    Attributes
    ----------
    doc_id : str
    first_rank, second_rank : int or None
        From 1, also where it is below the depth that is shown; None: not returned.
    grade : float or None
        None: unjudged.
    changes : tuple of float or None
        One a measure: what it adds to the second score, less what it adds to the first. None where documents do not
        add to the measure by themselves.
    text : str
        Its title or text, where it is known.
    """

    doc_id: str
    first_rank: int | None
    second_rank: int | None
    grade: float | None
    changes: tuple[float | None, ...] = ()
    text: str = ""

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
class TopicDiff:
    """One topic in two rankings.

    Attributes
    ----------
    query_id, query : str
    scores : tuple of ScorePair
        One a measure.
    rows : tuple of DiffRow
        The documents of both lists down to `depth`: those of the second list by rank, then those that only the
        first one shows, by rank.
    below : tuple of float or None
        One a measure: what documents that are not among the rows add to the difference.
    returned : (int, int)
        How many documents each run returned.
    depth : int
    runs : (str, str)
    """

    query_id: str
    query: str
    scores: tuple[ScorePair, ...]
    rows: tuple[DiffRow, ...]
    below: tuple[float | None, ...]
    returned: tuple[int, int]
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

    @property
    def sentence(self) -> str:
        """Say what changed, and what made the difference."""
        from judged.diagnosis.diff.sentences import topic_sentence

        return topic_sentence(self)

    def with_texts(self, texts: Mapping[str, str]) -> TopicDiff:
        """Give the same with the texts of documents."""
        return replace(self, rows=tuple(replace(row, text=texts.get(row.doc_id, "")) for row in self.rows))

    def table(self) -> Table:
        """Lay out a row a document."""
        from judged.diagnosis.diff.layout import documents_table

        return documents_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        measures = tuple(one.measure for one in self.scores)
        return {
            "query_id": self.query_id,
            "query": self.query,
            "outcome": self.outcome,
            "scores": {
                one.measure: _numbers(first=one.first, second=one.second, difference=one.difference)
                for one in self.scores
            },
            "returned": list(self.returned),
            "unjudged": list(self.unjudged),
            "counts": dict(self.counts),
            "below": dict(zip(measures, self.below, strict=True)),
            "sentence": self.sentence,
            "documents": [row.to_dict(measures) for row in self.rows],
        }


@dataclass(frozen=True, repr=False)
class Diff:
    """Two rankings side by side.

    Attributes
    ----------
    runs : (str, str)
        The names of the first and the second run.
    measures : tuple of str
        The first one decides which topics are shown.
    means : tuple of MeanPair
        One a measure, over all topics of the qrels.
    topics : tuple of TopicDiff
        Those that were named; or those with the largest differences, first for the second run, then against it.
    depth : int
    named : bool
        Whether the topics were named.
    grades : (float, float)
        The lowest and the highest grade of the qrels.
    ranking : Ranking
        The policy that made the ranks.
    warnings : tuple of str
    """

    runs: tuple[str, str]
    measures: tuple[str, ...]
    means: tuple[MeanPair, ...]
    topics: tuple[TopicDiff, ...]
    depth: int
    named: bool
    grades: tuple[float, float]
    ranking: Ranking
    warnings: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say how the runs differ over all topics, and what is shown of it."""
        from judged.diagnosis.diff.sentences import sentences

        return sentences(self)

    def table(self) -> Table:
        """Lay out a row a topic: both scores by the first measure, and what moved."""
        from judged.diagnosis.diff.layout import topics_table

        return topics_table(self)

    def documents(self) -> Table:
        """Lay out a row a topic and document, in full precision: for CSV."""
        from judged.diagnosis.diff.layout import long_table

        return long_table(self)

    def text(self, *, width: int | None = None, colour: bool = False, ascii_only: bool = False) -> str:
        """Write for a terminal: both lists in two columns."""
        from judged.diagnosis.diff.layout import text

        return text(self, width=width, colour=colour, ascii_only=ascii_only)

    def markdown(self) -> str:
        """Write as Markdown: a table a topic."""
        from judged.diagnosis.diff.layout import markdown

        return markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            "runs": list(self.runs),
            "measures": list(self.measures),
            "means": [plain(one) for one in self.means],
            "depth": self.depth,
            "named": self.named,
            "ranking": plain(self.ranking),
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
            "topics": [one.to_dict() for one in self.topics],
        }

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])


def _numbers(**values: float) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
