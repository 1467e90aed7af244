"""Result of `diff`: documents of two rankings, topics, and the causes of a difference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.results import Answer, Column, Headline, RankedDocument, RankedList, RankedLists, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.results.table import CHANGE, COUNT, NUMBER, TEXT, columns_of, truncated

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.blocks import Note
    from judged.scoring.evaluation.facts import Provenance

Only: TypeAlias = Literal["worse", "better"]
Moved: TypeAlias = Literal["up", "down", "same", "new", "gone"]

_MAX_CAUSES, _MAX_OPPOSITE = 3, 2  # documents in a sentence: with, and against, the sign of the difference
_MAX_CHARACTERS = 160  # shown of the text of a document
_SIGNS = {"up": "↑", "down": "↓", "new": "+", "gone": "x", "same": "="}  # "-" marks unjudged documents


@dataclass(frozen=True)
class DiffRow:
    """Document in two rankings."""

    doc_id: str
    # first_rank, second_rank: from 1, also below the cutoff; None if not returned
    first_rank: int | None
    second_rank: int | None
    grade: float | None  # None: unjudged
    # per measure: contribution to the second score minus contribution to the first; None if the measure is not a sum
    # of contributions of documents
    changes: tuple[float | None, ...] = ()
    text: str = ""  # title or text, if known

    @property
    def places(self) -> int:
        """Number of ranks gained; negative if it fell, and 0 if one ranking lacks it."""
        return self.first_rank - self.second_rank if self.first_rank and self.second_rank else 0

    @property
    def moved(self) -> Moved:
        """Kind of movement from the first ranking to the second."""
        if not self.first_rank or not self.second_rank:
            return "gone" if self.first_rank else "new"
        return "up" if self.places > 0 else "down" if self.places < 0 else "same"

    @property
    def movement(self) -> str:
        """Movement as text: ``up 3``, ``down 2``, ``new``, ``gone``, ``same``."""
        return f"{self.moved} {abs(self.places)}" if self.places else self.moved

    def item(self, side: Literal[0, 1], rel: float, highest: float) -> RankedDocument:
        """Return the document as an entry of the first (0) or second (1) list."""
        contribution = self.changes[0] if self.changes else None
        movements = {"same": "same rank", "up": "", "down": "", "new": "new", "gone": "gone"}
        notes = [movements[self.moved] or (f"from {self.first_rank}" if side else f"to {self.second_rank}")]
        if contribution is not None and abs(contribution) >= 0.00005 and (side or self.moved == "gone"):
            notes.append(decimal(contribution, 4, "+"))
        return RankedDocument(
            rank=str(self.second_rank if side else self.first_rank),
            doc_id=self.doc_id,
            grade="" if self.grade is None else f"{self.grade:g}",
            relevant=None if self.grade is None else self.grade >= rel,
            best=self.grade is not None and self.grade >= max(rel, highest),
            change=", ".join(notes),
            sign=f"{_SIGNS[self.moved]}{abs(self.places) or ''}",
            text="" if self.text == self.doc_id else truncated(_MAX_CHARACTERS).write(self.text),
        )


@dataclass(frozen=True)
class ScorePair:
    """Score of a topic, or mean over all topics, in both rankings."""

    measure: str
    first: float
    second: float
    lower_is_better: bool = False

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def sign(self) -> int:
        """1 if the second is better, -1 if it is worse, 0 if they are equal up to rounding."""
        difference = self.difference
        if math.isnan(difference) or abs(difference) <= 1e-12 * max(abs(self.first), abs(self.second)):
            return 0
        return 1 if (difference > 0) != self.lower_is_better else -1

    def headline(self, first: str, second: str) -> Headline:
        """Return the difference of two named runs on one topic, which is never tested."""
        if math.isnan(self.difference):
            return Headline("unknown", "no score", f"{self.measure} has no score on this topic.")
        word = "equal" if not self.sign else "higher" if self.difference > 0 else "lower"
        sentence = f"{second} has {decimal(self.second)} and {first} {decimal(self.first)}. One topic is not tested."
        label = f"{self.measure}, {second} - {first}"
        return Headline("info", word, sentence, label, self.difference, CHANGE, reference=0.0)


@dataclass(frozen=True)
class MeanPair:
    """Aggregates of a measure over all topics, and the number of topics on which the second run is better."""

    measure: str
    aggregate: str
    first: float
    second: float
    better: int
    worse: int
    same: int


@dataclass(frozen=True)
class TopicDiff:
    """Two rankings of one topic."""

    query_id: str
    query: str
    scores: tuple[ScorePair, ...]  # one per measure
    # documents of both lists up to `cutoff`: those of the second list by rank, then those only in the first list
    rows: tuple[DiffRow, ...]
    below: tuple[float | None, ...]  # per measure: contribution of all other documents to the difference
    returned: tuple[int, int]  # number of documents returned by each run
    cutoff: int
    runs: tuple[str, str]

    @property
    def outcome(self) -> Literal["won", "lost", "same"]:
        """Whether the second run is better by the first measure."""
        sign = self.scores[0].sign
        return "won" if sign > 0 else "lost" if sign < 0 else "same"

    def ranked_rows(self, side: Literal[0, 1]) -> tuple[DiffRow, ...]:
        """Return the documents of one list up to the cutoff, by rank: 0 for the first run, 1 for the second."""
        ranked = [(row.second_rank if side else row.first_rank, row) for row in self.rows]
        in_cutoff = [(rank, row) for rank, row in ranked if rank is not None and rank <= self.cutoff]
        return tuple(row for _, row in sorted(in_cutoff, key=lambda ranked_row: ranked_row[0]))

    @property
    def counts(self) -> dict[Moved, int]:
        """Number of shown documents by kind of movement."""
        kinds: tuple[Moved, ...] = ("up", "down", "same", "new", "gone")
        return {kind: sum(row.moved == kind for row in self.rows) for kind in kinds}

    @property
    def unjudged(self) -> tuple[int, int]:
        """Number of shown documents without a judgment in each list."""
        first, second = (sum(row.grade is None for row in self.ranked_rows(side)) for side in (0, 1))
        return first, second

    def rankings(self, rel: float, highest: float) -> tuple[RankedList, RankedList]:
        """Return both lists with their scores. The first marks only documents that the second does not show."""
        lists = [[row.item(side, rel, highest) for row in self.ranked_rows(side)] for side in (0, 1)]
        second_ids = {item.doc_id for item in lists[1]}
        lists[0] = [replace(item, sign="") if item.doc_id in second_ids else item for item in lists[0]]
        rankings: list[RankedList] = []
        for name, attribute, items in zip(self.runs, ("first", "second"), lists, strict=True):
            label = ", ".join(f"{pair.measure} {decimal(getattr(pair, attribute))}" for pair in self.scores)
            rankings.append(RankedList(name, label if items else f"{label}; no documents returned", tuple(items)))
        return rankings[0], rankings[1]

    @property
    def sentence(self) -> str:
        """Change of the score, and the documents that cause it."""
        pair = self.scores[0]
        if not any(self.returned):
            return "Neither run returned a document."
        if math.isnan(pair.difference):
            score_sentence = f"The topic has no score by {pair.measure}."
        elif not pair.sign:
            score_sentence = f"Both runs have the same {pair.measure}, {decimal(pair.first)}."
        else:
            verb = "gains" if pair.difference > 0 else "loses"
            score_sentence = f"{self.runs[1]} {verb} {decimal(abs(pair.difference))} in {pair.measure}{self._causes()}."
        counts = [f"{self.counts[kind]} {kind}" for kind in ("up", "down", "new", "gone") if self.counts[kind]]
        movements = f"Changes of the shown documents: {', '.join(counts)}."
        sentences = [
            score_sentence,
            movements if counts else "Every document has the same rank in both lists.",
        ]
        first, second = self.unjudged
        if first or second:
            sentences.append(f"Unjudged documents: {first} of {self.runs[0]}, {second} of {self.runs[1]}.")
        return " ".join(sentences)

    def _causes(self) -> str:
        """List the documents with the largest contributions to the difference, with and against its sign."""
        contributions = [(row.changes[0], row) for row in self.rows if row.changes and row.changes[0]]
        contributions.sort(key=lambda pair: -abs(pair[0]))
        difference, parts = self.scores[0].difference, list[str]()
        causes = [pair for pair in contributions if pair[0] * difference > 0][:_MAX_CAUSES]
        for change, row in (*causes, *[pair for pair in contributions if pair[0] * difference < 0][:_MAX_OPPOSITE]):
            first_rank, second_rank = row.first_rank, row.second_rank
            movement = f"rank {first_rank} to {second_rank}"
            if not first_rank or not second_rank:
                movement = f"gone from rank {first_rank}" if first_rank else f"new at rank {second_rank}"
            grade = "unjudged" if row.grade is None else f"grade {row.grade:g}"
            parts.append(f"{row.doc_id} ({grade}), {movement}: {decimal(change, 4, '+')}")
        if self.below and self.below[0]:
            parts.append(f"documents at ranks deeper than {self.cutoff}: {decimal(self.below[0], 4, '+')}")
        return f": {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True, eq=False, repr=False)
class Diff(Answer):
    """Result of `diff`: two rankings of one or more topics.

    Attributes
    ----------
    runs, measures : tuple of str
        Names of both runs, and of the measures. The first measure determines the topics.
    means : tuple of MeanPair
        Aggregates over all topics of the qrels, one per measure.
    topics : tuple of TopicDiff
        The `selected_topics`, or those with the largest differences: first gains of the second run, then losses.
    cutoff : int
        Depth to which both lists are shown.
    selected_topics : bool
        Whether the caller selected the topics.
    only : str or None
        Whether only topics are shown on which the second run is ``worse`` or ``better``.
    rel, highest : float
        Relevance threshold of the first measure, and the highest grade of the qrels.
    provenance : Provenance
        Judgments, runs and policies.
    notes : tuple of Note
        Warnings about the runs.
    """

    kind: ClassVar[str] = "diff"
    main: ClassVar[str] = "documents"

    runs: tuple[str, str]
    measures: tuple[str, ...]
    means: tuple[MeanPair, ...]
    topics: tuple[TopicDiff, ...]
    cutoff: int
    selected_topics: bool
    rel: float
    highest: float
    provenance: Provenance
    only: Only | None = None
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Names of both runs."""
        return f"{self.runs[0]} and {self.runs[1]}, side by side"

    def facts(self) -> dict[str, Any]:
        """Return the runs, the measures, the cutoff, and whether topics were selected."""
        first, second = self.runs
        facts = {"first": first, "second": second, "measures": self.measures, "cutoff": self.cutoff}
        return facts | {"selected_topics": self.selected_topics, "only": self.only}

    def blocks(self) -> tuple[Block, ...]:
        """Return sentences, tables of topics, scores and documents, and both lists of each topic."""
        means = columns_of(self.means, "measure", "aggregate", "first", "second", "better", "worse", "same")
        return (
            Sentences(self.sentences),
            Table("means", means, only="data"),
            self._topics(),
            self._scores(),
            *map(self._lists, self.topics),
            self._documents(),
        )

    def _lists(self, topic: TopicDiff) -> RankedLists:
        rankings = topic.rankings(self.rel, self.highest) if topic.rows else ()
        name = f"topic {topic.query_id}"
        title = f"{name}: {topic.query}" if topic.query else name
        return RankedLists(name, title, (topic.sentence,), rankings, only="people")

    def _topics(self) -> Table:
        queries = any(topic.query for topic in self.topics)
        first_scores = [topic.scores[0] for topic in self.topics]
        first, second = self.runs
        kinds: tuple[Moved, ...] = ("up", "down", "new", "gone")
        movement_counts = ["/".join(str(topic.counts[kind]) for kind in kinds) for topic in self.topics]
        columns = (
            *columns_of(self.topics, ("query_id", TEXT), ("query", truncated(40)) if queries else "query"),
            *columns_of(first_scores, ("first", NUMBER, first), ("second", NUMBER, second), ("difference", CHANGE)),
            *columns_of(self.topics, "outcome", "returned", "unjudged", "sentence"),
            Column("counts", [topic.counts for topic in self.topics], only="json"),
            Column("moves", movement_counts, TEXT, "/".join(kinds), only="people"),
        )
        return Table("topics", columns, labels=1 + queries, only="" if len(self.topics) > 1 else "data")

    def _scores(self) -> Table:
        rows = [(topic, i, pair) for topic in self.topics for i, pair in enumerate(topic.scores)]
        columns = (
            Column("query_id", [topic.query_id for topic, _, _ in rows], TEXT),
            *columns_of([pair for _, _, pair in rows], "measure", "first", "second", "difference"),
            Column("below", [topic.below[i] for topic, i, _ in rows]),
        )
        return Table("scores", columns, only="data")

    def _documents(self) -> Table:
        rows = [row for topic in self.topics for row in topic.rows]
        columns = [Column("query_id", [topic.query_id for topic in self.topics for _ in topic.rows], TEXT)]
        columns += columns_of(rows, ("doc_id", TEXT), ("first_rank", COUNT), ("second_rank", COUNT), "moved", "places")
        columns += columns_of(rows, ("grade", NUMBER))
        for i, measure in enumerate(self.measures):
            columns.append(Column(f"contribution to {measure}", [row.changes[i] for row in rows], CHANGE))
        return Table("documents", (*columns, *columns_of(rows, ("text", TEXT))), labels=2, only="data")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Difference of each measure over all topics, and the selection of topics."""
        first, second = self.runs
        texts = [
            f"{mean.measure}: {second} is better than {first} on {mean.better} of"
            f" {counted(mean.better + mean.worse + mean.same, 'topic')}, worse on {mean.worse}, and equal on"
            f" {mean.same}; {mean.aggregate}: {first} {decimal(mean.first)}, {second} {decimal(mean.second)}"
            f" ({decimal(mean.second - mean.first, 4, '+')})."
            for mean in self.means
        ]
        texts[-1] += " Use 'judged compare' for a significance test."
        won, lost = (sum(topic.outcome == outcome for topic in self.topics) for outcome in ("won", "lost"))
        texts += self._selection(won, lost)
        if not (self.selected_topics or len(self.topics) < 2 or any(topic.query for topic in self.topics)):
            texts.append("Use --queries FILE to show the query texts.")
        return tuple(texts)

    def _selection(self, won: int, lost: int) -> Iterator[str]:
        """Say which topics are shown, and which are not."""
        second, measure = self.runs[1], self.measures[0]
        which = f"on which {second} is {self.only} in {measure}" if self.only else f"with a difference in {measure}"
        counts = {"better": self.means[0].better - won, "worse": self.means[0].worse - lost}
        omitted = {word: n for word, n in counts.items() if n > 0 and self.only in {None, word}}
        if not self.topics:
            yield f"There is no topic {which}." if self.only else f"No topic has a difference in {measure}."
        elif self.selected_topics:
            return
        elif len(self.topics) == 1 and not omitted:
            yield f"The only topic {which} is shown."
        elif self.only:
            yield f"Topics {which} are shown, the largest difference first. These topics are not typical."
        else:
            yield (
                f"The topics with the largest differences in {measure} are shown: {second} is better on {won} of these"
                f" topics and worse on {lost}. These topics are not typical."
            )
        if omitted:
            others = [f"{counted(n, 'other topic')} on which {second} is {word}" for word, n in omitted.items()]
            limit = max(getattr(self.means[0], word) for word in omitted)
            yield f"Not shown: {' and '.join(others)}. Use --limit {limit} to show all."
