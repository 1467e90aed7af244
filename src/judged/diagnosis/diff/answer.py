"""Two rankings side by side as an answer: documents, topics, and what made the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.results import Answer, Column, Item, Lists, Ranking, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.results.table import CHANGE, COUNT, NUMBER, TEXT, beginning, columns_of

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance

Moved: TypeAlias = Literal["up", "down", "same", "new", "gone"]

_FOR, _AGAINST = 3, 2  # documents that are named
_TEXT = 160  # characters of a document
_SIGNS = {"up": "↑", "down": "↓", "new": "+", "gone": "x", "same": "="}  # "-" is for what is not judged


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
        return self.first_rank - self.second_rank if self.first_rank and self.second_rank else 0

    @property
    def moved(self) -> Moved:
        """What happened to it from the first ranking to the second."""
        if not self.first_rank or not self.second_rank:
            return "gone" if self.first_rank else "new"
        return "up" if self.places > 0 else "down" if self.places < 0 else "same"

    @property
    def movement(self) -> str:
        """The same in words: ``up 3``, ``down 2``, ``new``, ``gone``, ``same``."""
        return f"{self.moved} {abs(self.places)}" if self.places else self.moved

    def item(self, which: Literal[0, 1], rel: float, highest: float) -> Item:
        """Give the document as one of the first or second list."""
        worth = self.changes[0] if self.changes else None
        places = {"same": "same rank", "up": "", "down": "", "new": "new", "gone": "gone"}
        said = [places[self.moved] or (f"from {self.first_rank}" if which else f"to {self.second_rank}")]
        if worth is not None and abs(worth) >= 0.00005 and (which or self.moved == "gone"):
            said.append(decimal(worth, 4, "+"))
        return Item(
            rank=str(self.second_rank if which else self.first_rank),
            doc_id=self.doc_id,
            grade="" if self.grade is None else f"{self.grade:g}",
            relevant=None if self.grade is None else self.grade >= rel,
            best=self.grade is not None and self.grade >= max(rel, highest),
            change=", ".join(said),
            sign=f"{_SIGNS[self.moved]}{abs(self.places) or ''}",
            text="" if self.text == self.doc_id else beginning(_TEXT).write(self.text),
        )


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
    """One topic in two rankings."""

    query_id: str
    query: str
    scores: tuple[ScorePair, ...]  # one a measure
    # the documents of both lists down to `cutoff`: those of the second list by rank, then those that only the first one
    # shows, by rank
    rows: tuple[DiffRow, ...]
    below: tuple[float | None, ...]  # one a measure: what documents that are not among the rows add to the difference
    returned: tuple[int, int]  # how many documents each run returned
    cutoff: int
    runs: tuple[str, str]

    @property
    def outcome(self) -> Literal["won", "lost", "same"]:
        """Whether the second run is better by the first measure."""
        side = self.scores[0].side
        return "won" if side > 0 else "lost" if side < 0 else "same"

    def side(self, which: Literal[0, 1]) -> tuple[DiffRow, ...]:
        """Give the documents of one list by rank, down to the cutoff: 0 for the first run, 1 for the second."""
        ranked = [(row.second_rank if which else row.first_rank, row) for row in self.rows]
        shown = [(rank, row) for rank, row in ranked if rank is not None and rank <= self.cutoff]
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

    def rankings(self, rel: float, highest: float) -> tuple[Ranking, Ranking]:
        """Give both lists with their scores; on the left is marked only what the right list does not show."""
        lists = [[row.item(which, rel, highest) for row in self.side(which)] for which in (0, 1)]
        shown = {item.doc_id for item in lists[1]}
        lists[0] = [replace(item, sign="") if item.doc_id in shown else item for item in lists[0]]
        rankings: list[Ranking] = []
        for name, which, items in zip(self.runs, ("first", "second"), lists, strict=True):
            said = ", ".join(f"{pair.measure} {decimal(getattr(pair, which))}" for pair in self.scores)
            rankings.append(Ranking(name, said if items else f"{said}; nothing was returned", tuple(items)))
        return rankings[0], rankings[1]

    @property
    def sentence(self) -> str:
        """What changed on the topic, and which documents made the difference."""
        pair = self.scores[0]
        if not any(self.returned):
            return "Neither run returned a document."
        if math.isnan(pair.difference):
            head = f"The topic has no score by {pair.measure}."
        elif not pair.side:
            head = f"Both have the same {pair.measure}, {decimal(pair.first)}."
        else:
            verb = "gains" if pair.difference > 0 else "loses"
            head = f"{self.runs[1]} {verb} {decimal(abs(pair.difference))} in {pair.measure}{self._why()}."
        moved = [f"{self.counts[way]} {way}" for way in ("up", "down", "new", "gone") if self.counts[way]]
        moves = f"Documents shown: {', '.join(moved)}."
        said = [head, moves if moved else "Every document shown stands at the same rank in both."]
        first, second = self.unjudged
        if first or second:
            said.append(f"Unjudged: {first} of {self.runs[0]}, {second} of {self.runs[1]}.")
        return " ".join(said)

    def _why(self) -> str:
        """Name the documents that add most to the difference, and those that take most from it."""
        known = [(row.changes[0], row) for row in self.rows if row.changes and row.changes[0]]
        known.sort(key=lambda pair: -abs(pair[0]))
        sign, parts = self.scores[0].difference, list[str]()
        along = [pair for pair in known if pair[0] * sign > 0][:_FOR]
        for change, row in (*along, *[pair for pair in known if pair[0] * sign < 0][:_AGAINST]):
            before, after = row.first_rank, row.second_rank
            moved = f"rank {before} to {after}"
            if not before or not after:
                moved = f"gone from rank {before}" if before else f"new at rank {after}"
            grade = "unjudged" if row.grade is None else f"grade {row.grade:g}"
            parts.append(f"{row.doc_id} ({grade}), {moved}: {decimal(change, 4, '+')}")
        if self.below and self.below[0]:
            parts.append(f"documents below rank {self.cutoff}, {decimal(self.below[0], 4, '+')}")
        return f": {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True, eq=False, repr=False)
class Diff(Answer):
    """What `diff` returns: two rankings side by side, topic by topic.

    Attributes
    ----------
    runs, measures : tuple of str
        The first run and the second; the first measure decides which topics are shown.
    means : tuple of MeanPair
        One a measure, over all topics of the qrels.
    topics : tuple of TopicDiff
        Those that were `named`; or those with the largest differences, first for the second run, then against it.
    cutoff : int
    rel, highest : float
        From which grade on a document is relevant to the first measure, and the highest grade of the qrels.
    provenance : Provenance
    notes : tuple of Note
    """

    kind: ClassVar[str] = "diff"
    main: ClassVar[str] = "documents"

    runs: tuple[str, str]
    measures: tuple[str, ...]
    means: tuple[MeanPair, ...]
    topics: tuple[TopicDiff, ...]
    cutoff: int
    named: bool
    rel: float
    highest: float
    provenance: Provenance
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Which runs stand side by side."""
        return f"{self.runs[0]} and {self.runs[1]}, side by side"

    def facts(self) -> dict[str, Any]:
        """Give the runs, the measures and what is shown."""
        first, second = self.runs
        return {"first": first, "second": second, "measures": self.measures, "cutoff": self.cutoff, "named": self.named}

    def blocks(self) -> tuple[Block, ...]:
        """Give what may be concluded, a table of topics, and both lists of each."""
        means = columns_of(self.means, "measure", "aggregate", "first", "second", "better", "worse", "same")
        return (
            Sentences(self.sentences),
            Table("means", means, only="data"),
            self._topics(),
            self._scores(),
            *map(self._lists, self.topics),
            self._documents(),
        )

    def _lists(self, topic: TopicDiff) -> Lists:
        rankings = topic.rankings(self.rel, self.highest) if topic.rows else ()
        name = f"topic {topic.query_id}"
        title = f"{name}: {topic.query}" if topic.query else name
        return Lists(name, title, (topic.sentence,), rankings, only="people")

    def _topics(self) -> Table:
        """Lay out a row per topic: both scores by the first measure, and what moved."""
        queries = any(topic.query for topic in self.topics)
        leads = [topic.scores[0] for topic in self.topics]
        first, second = self.runs
        ways: tuple[Moved, ...] = ("up", "down", "new", "gone")
        moves = ["/".join(str(topic.counts[way]) for way in ways) for topic in self.topics]
        columns = (
            *columns_of(self.topics, ("query_id", TEXT), ("query", beginning(40)) if queries else "query"),
            *columns_of(leads, ("first", NUMBER, first), ("second", NUMBER, second), ("difference", CHANGE)),
            *columns_of(self.topics, "outcome", "returned", "unjudged", "sentence"),
            Column("counts", [topic.counts for topic in self.topics], only="json"),
            Column("moves", moves, TEXT, "/".join(ways), only="people"),
        )
        return Table("topics", columns, labels=1 + queries, only="" if len(self.topics) > 1 else "data")

    def _scores(self) -> Table:
        """Lay out a row per topic and measure."""
        rows = [(topic, at, pair) for topic in self.topics for at, pair in enumerate(topic.scores)]
        columns = (
            Column("query_id", [topic.query_id for topic, _, _ in rows], TEXT),
            *columns_of([pair for _, _, pair in rows], "measure", "first", "second", "difference"),
            Column("below", [topic.below[at] for topic, at, _ in rows]),
        )
        return Table("scores", columns, only="data")

    def _documents(self) -> Table:
        """Lay out a row per topic and document."""
        rows = [row for topic in self.topics for row in topic.rows]
        columns = [Column("query_id", [topic.query_id for topic in self.topics for _ in topic.rows], TEXT)]
        columns += columns_of(rows, ("doc_id", TEXT), ("first_rank", COUNT), ("second_rank", COUNT), "moved", "places")
        columns += columns_of(rows, ("grade", NUMBER))
        for at, measure in enumerate(self.measures):
            columns.append(Column(f"adds to {measure}", [row.changes[at] for row in rows], CHANGE))
        return Table("documents", (*columns, *columns_of(rows, ("text", TEXT))), labels=2, only="data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """How the runs differ over all topics, and what is shown of it."""
        first, second = self.runs
        said = [
            f"{mean.measure}: {second} is better than {first} on {mean.better} of"
            f" {counted(mean.better + mean.worse + mean.same, 'topic')}, worse on {mean.worse}, the same on"
            f" {mean.same}; {mean.aggregate} {decimal(mean.first)} to {decimal(mean.second)}"
            f" ({decimal(mean.second - mean.first, 4, '+')})."
            for mean in self.means
        ]
        said[-1] += " 'judged compare' tells whether that could be luck."
        won, lost = (sum(topic.outcome == side for topic in self.topics) for side in ("won", "lost"))
        if not self.topics:
            said.append(f"No topic differs by {self.measures[0]}: there is nothing to show.")
        elif not self.named and len(self.topics) == 1:
            said.append(f"Shown is the only topic that differs by {self.measures[0]}.")
        elif not self.named:
            said.append(
                f"Shown are the topics that differ most by {self.measures[0]}: {won} for {second}, {lost} against it."
                " They are the extremes, not the typical case."
            )
        return tuple(said)
