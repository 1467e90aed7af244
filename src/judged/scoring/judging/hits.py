"""Hits: the judged documents of a ranking as columns, and what can be counted and looked up in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import MeasureError
from judged.results.files import cached_property
from judged.results.types import ReadOnly
from judged.scoring.judging.align import Returned, all_returned
from judged.scoring.judging.ranking import Ranking
from judged.scoring.judging.segments import running_count, running_sum, segment_starts, segment_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from judged.data.documents import Documents
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Bools, Floats, Ints


_OF_HITS = ("topic", "rank", "grade", "row", "score", "tie_first", "tie_last")
_OF_LABELS = ("label_topic", "label_grade", "label_row")
_MOST_KEPT = 64  # arrays: a curve has a hundred cutoffs, each with an ideal of its own


class Labels(NamedTuple):
    """Labels one by one, where a document may have several."""

    of: Ints  # (A,): the position of the hit, or of the judged pair, that the label belongs to; rising
    aspect: Ints  # (A,): the subtopic or assessor: a position in `qrels.aspects.names`; rising within one hit or pair
    grade: Floats  # (A,)


@dataclass(frozen=True, eq=False)
class JudgedHits(ReadOnly):
    """The judged documents that a run returned, with their ranks: what a measure counts, and its working stands on.

    All columns are NumPy arrays. With T topics, H hits and L judged pairs.
    """

    query_ids: tuple[str, ...]  # T: the topics, in byte order. A topic code below is a position here.
    # (T,): how many documents the run returned for each topic, judged or not (cut at the ranking's depth)
    returned: Ints
    present: Bools  # (T,): whether the run has the topic at all
    # topic, rank, grade: (H,): the hits, ordered by topic and rank: topic code, 1-based rank, grade. A document with a
    # negative grade is a hit too; documents without a judgment are not.
    topic: Ints
    rank: Ints
    grade: Floats
    row: Ints = field(repr=False)  # (H,): each hit's position among the judged pairs
    # score, tie_first, tie_last: (H,): each hit's score, and the first and last rank of the documents that share this
    # score
    score: Floats = field(repr=False)
    tie_first: Ints = field(repr=False)
    tie_last: Ints = field(repr=False)
    # label_topic, label_grade: (L,): the judged pairs of these topics, whether returned or not, ordered by topic
    label_topic: Ints = field(repr=False)
    label_grade: Floats = field(repr=False)
    label_row: Ints = field(repr=False)  # (L,): each pair's position in `qrels.index`
    ranked: bool  # False for a run without scores: ranks then mean nothing
    ranking: Ranking  # the policy that made the ranks
    # extra, extra_returned: topics of the run that the qrels do not have, and (E,) how many documents each returned
    extra: tuple[str, ...]
    extra_returned: Ints = field(repr=False)
    qrels: Qrels = field(repr=False)  # where all this comes from
    run: Run = field(repr=False)  # where all this comes from
    run_sha256: str | None = field(default=None, repr=False)
    # topics in which no document has a higher score than the one with the id of the topic
    self_first: int = field(default=0, repr=False)
    # facts about documents, for the measures that need them
    documents: Documents | None = field(default=None, repr=False)
    # whether this is another ranking than the run's own: an ideal one, or one without unjudged documents
    reordered: bool = field(default=False, repr=False)
    title: str = field(default="ranking", repr=False)  # what ranking this is, in words
    shown: Returned | None = field(default=None, repr=False)  # every returned document, where that is known already

    def __len__(self) -> int:
        return len(self.query_ids)

    def hits_at(self, hits: Ints, **changed: Any) -> dict[str, Any]:
        """Give the columns of the hits at these places, but for those that are given."""
        return {name: changed.get(name, getattr(self, name)[hits]) for name in _OF_HITS}

    def labels_at(self, labels: Ints, **changed: Any) -> dict[str, Any]:
        """Give the columns of the judged pairs at these places, but for those that are given."""
        return {name: changed.get(name, getattr(self, name)[labels]) for name in _OF_LABELS}

    def topics_at(self, topics: Ints) -> dict[str, Any]:
        """Give the columns of the topics at these places."""
        names = tuple(self.query_ids[at] for at in topics.tolist())
        return {"query_ids": names, "returned": self.returned[topics], "present": self.present[topics]}

    @cached_property
    def starts(self) -> Ints:
        """Where each topic's hits begin; (T + 1,)."""
        return segment_starts(self.topic, len(self))

    @cached_property
    def doc(self) -> list[str]:
        """The hits' document ids."""
        names = self.qrels.index.row_names
        return [names[row] for row in self.label_row[self.row].tolist()]

    def sum(self, values: Floats | Bools) -> Floats:
        """Add up one value a hit over each topic, in rank order: (H,) to (T,)."""
        return segment_sum(values, self.topic, len(self))

    def sum_labels(self, values: Floats | Bools) -> Floats:
        """Add up one value a judged pair over each topic: (L,) to (T,)."""
        return segment_sum(values, self.label_topic, len(self))

    def count_so_far(self, mask: Bools) -> Ints:
        """Count the marked hits of the topic down to and including each hit: (H,) to (H,)."""
        return running_count(mask, self.topic, self.starts)

    def sum_so_far(self, values: Floats | Bools) -> Floats:
        """Add up one value a hit over the topic down to and including each hit: (H,) to (H,)."""
        return running_sum(values, self.starts)

    def so_far_at(self, topic: Ints, rank: Ints, running: Floats) -> Floats:
        """Look up what a running sum has come to at ranks, hits or not: (N,), (N,) and (H,) to (N,)."""
        width = max(self.rank.max(initial=0), rank.max(initial=0)) + 1
        last = np.searchsorted(self.topic * width + self.rank, topic * width + rank, side="right") - 1
        return np.where(last >= self.starts[topic], np.append(running, 0.0)[last], 0.0)

    def first_rank(self, mask: Bools) -> Ints:
        """Give the rank of each topic's first marked hit, 0 where there is none: (H,) to (T,)."""
        ranks = np.zeros(len(self), dtype=np.int64)
        ranks[self.topic[mask][::-1]] = self.rank[mask][::-1]
        return ranks

    def relevant(self, rel: float) -> Bools:
        """Mark the hits of at least this grade; a negative grade is never relevant. (H,)."""
        return _once(self._made, ("relevant", rel), lambda: (self.grade >= rel) & (self.grade >= 0))

    def relevant_labels(self, rel: float) -> Bools:
        """Mark the judged pairs of at least this grade. (L,)."""
        return self.of_labels(("labels", rel), lambda: (self.label_grade >= rel) & (self.label_grade >= 0))

    def num_relevant(self, rel: float) -> Floats:
        """Count the relevant documents that the qrels know. (T,)."""
        return self.of_labels(("count", rel), lambda: self.sum_labels(self.relevant_labels(rel)))

    def of_labels(self, key: Hashable, make: Callable[[], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Keep what follows from the judged pairs alone: with the qrels, for every run, if these are all pairs."""
        index = self.qrels.index
        whole = self.label_grade is index.grade and self.label_row is index.row
        return _once(index.kept if whole else self._made, key, make)

    @cached_property
    def _made(self) -> dict[Hashable, np.ndarray[Any, Any]]:
        return {}

    def within(self, cutoff: int | None) -> Bools:
        """Mark the hits down to a rank; all for None. (H,)."""
        return np.ones(len(self.rank), dtype=np.bool_) if cutoff is None else self.rank <= cutoff

    @cached_property
    def aspects(self) -> Labels:
        """Each hit's labels one by one: subtopics, assessors."""
        return Labels(*self.qrels.aspects.of(self.label_row[self.row]))

    @cached_property
    def label_aspects(self) -> Labels:
        """Each judged pair's labels one by one."""
        return Labels(*self.qrels.aspects.of(self.label_row))

    @cached_property
    def everything(self) -> Returned:
        """Every returned document of these topics with its rank, judged or not. The run is read once more.

        Raises
        ------
        MeasureError
            If this is not the run's own ranking.
        """
        if self.shown is not None:
            return self.shown
        if self.reordered:
            raise MeasureError("an ideal or condensed ranking has no unjudged documents. Fix: leave out judged_only")
        return all_returned(self.run, self.query_ids, self.ranking)

    def fact(self, name: str, measure: object) -> Any:
        """Look up a fact about every returned document, in the order of `everything`: (D,) Arrow array.

        Raises
        ------
        MeasureError
            If there are no facts about documents.
        InputError
            If a returned document lacks this fact.
        """
        if self.documents is None:
            raise MeasureError(
                f"{measure} needs the {name} of every returned document."
                f" Fix: give documents= (on the command line --documents), a table with doc_id and {name}"
            )
        return self.documents.column(name, self.everything.doc)


def _once(
    kept: dict[Hashable, np.ndarray[Any, Any]], key: Hashable, make: Callable[[], np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """Keep what nearly every measure asks for, so that a hundred measures make it once."""
    if (known := kept.get(key)) is not None:
        return known
    made = make()
    made.flags.writeable = False
    if len(kept) < _MOST_KEPT:
        kept[key] = made
    return made
