"""The judged list: what every measure is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import numpy as np

from judged.data.files import FileHash
from judged.errors import InputError, MeasureError
from judged.results.types import ReadOnly, cached_property
from judged.scoring.judging.align import Returned, all_returned
from judged.scoring.judging.ranking import Ranking, TopicPolicy, running_count, running_sum, segment_starts, segment_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from judged.data.documents import Documents
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.working import Part, Working

    Values = TypeVar("Values", Floats, Ints, Bools)


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
    file_hash: FileHash = field(default=FileHash(), repr=False)  # of the files that the run was read from
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


@dataclass(frozen=True, eq=False)
class Judged(JudgedHits):
    """A run as its qrels see it: the judged documents that it returned, with their ranks.

    Its other attributes, and its ways to count and to look up, are those of `JudgedHits`.

    Attributes
    ----------
    working : Working or None
        The sheet on which measures write how their numbers come about, where someone asked for it.

    Examples
    --------
    >>> from judged import judge
    >>> j = judge({"q": {"a": 2, "b": 0, "c": 1}}, {"q": {"x": 3.0, "c": 2.0, "b": 1.0}})
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist()
    ([2, 3], [1.0, 0.0], [3])
    >>> j.sum((j.grade >= 1) / j.rank).tolist()  # a measure of one's own: the sum of 1/rank over relevant documents
    [0.5]
    >>> j.ideal.rank.tolist(), j.ideal.grade.tolist()
    ([1, 2, 3], [2.0, 1.0, 0.0])
    """

    working: Working | None = field(default=None, repr=False)

    def total(
        self, name: object, values: Floats | Bools, how: str = "", *, where: Bools | None = None, **parts: Part
    ) -> Floats:
        """Add up one value a hit over each topic, as `sum` does, and show how: (H,) to (T,).

        Parameters
        ----------
        name
            What the total is called.
        values
            What each hit adds; (H,).
        how
            The formula of one such value, in the names of its parts and of ``rank`` and ``grade``.
        where
            Which hits count; all for None. (H,).
        parts
            What the formula is made of: (H,), or a number for all.
        """
        total = self.sum(values if where is None else values * where)
        if self.working is not None:
            self.working.total(self, str(name), values, total, how, parts, where)
        return total

    def step(self, name: object, values: Values, how: str = "", **parts: Part) -> Values:
        """Show how one number per topic comes about, and give it back: (T,).

        Parameters
        ----------
        name
            What the number is called; a measure gives itself for the last one.
        values
            (T,).
        how
            The formula, in the names of its parts, such as ``"dcg / ideal"``.
        parts
            What the formula is made of: (T,), or a number for all.
        """
        if self.working is not None:
            self.working.step(self, str(name), np.asarray(values, dtype=np.float64), how, parts)
        return values

    def summed(self, name: object, values: Values, column: str) -> Values:
        """Show one number per topic that is the sum of a column, and give it back: (T,)."""
        if self.working is not None:
            self.working.summed(self, str(name), np.asarray(values, dtype=np.float64), column)
        return values

    def column(self, name: str, values: Values, how: str = "", *, where: Bools | None = None, **parts: Part) -> Values:
        """Show one number a hit, and give it back: (H,)."""
        if self.working is not None:
            self.working.column(self, name, values, how, parts, where)
        return values

    def by_rank(self, name: str, values: Values, how: str = "", **parts: Part) -> Values:
        """Show one number for each rank from 1, judged or not, of the only topic, and give it back: (N,)."""
        if self.working is not None:
            self.working.column(self, name, values, how, parts, rank=np.arange(1, len(values) + 1))
        return values

    def rows(self, title: str, columns: Mapping[str, Sequence[object] | np.ndarray], **how: str) -> None:
        """Show a table of its own: recall points, subtopics, pairs; and how columns come from others, by name."""
        if self.working is not None:
            self.working.rows(self, title, columns, how)

    @cached_property
    def ideal(self) -> Judged:
        """The best ranking of the judged documents: grades falling. Negative grades are left out."""
        return self.ideal_by(np.where(self.label_grade >= 0, self.label_grade, -np.inf))

    def ideal_by(self, value: Floats, title: str = "ideal ranking") -> Judged:
        """Rank the judged pairs by one value each, falling; those of minus infinity are left out. (L,)."""
        kept = np.flatnonzero(value > -np.inf)
        order = kept[np.lexsort((-value[kept], self.label_topic[kept]))]
        return self._with_hits(title, order, self.label_topic[order], self.label_grade[order])

    @cached_property
    def condensed(self) -> Judged:
        """The same ranking without the documents that are unjudged or have a negative grade."""
        kept = np.flatnonzero(self.grade >= 0)
        title = f"{self.title} without unjudged documents"
        return self._with_hits(title, self.row[kept], self.topic[kept], self.grade[kept], self.score[kept])

    def _with_hits(self, title: str, row: Ints, topic: Ints, grade: Floats, score: Floats | None = None) -> Judged:
        """Make a list that consists of these hits and nothing else."""
        rank = np.arange(len(row)) - segment_starts(topic, len(self))[topic] + 1
        return replace(
            self,
            returned=np.bincount(topic, minlength=len(self)).astype(np.int64),
            topic=topic,
            rank=rank,
            grade=grade,
            row=row,
            score=-rank.astype(np.float64) if score is None else score,
            tie_first=rank,
            tie_last=rank,
            reordered=True,
            title=title,
            shown=None,
        )

    def only(self, query_id: str) -> Judged:
        """Leave one topic.

        Raises
        ------
        InputError
            If the qrels do not have it.
        """
        query_id = str(query_id)  # a whole number is its decimal text, as in qrels of Python
        if query_id not in self.query_ids:
            some = ", ".join(self.query_ids[:5]) + (", ..." if len(self.query_ids) > 5 else "")
            fix = f"use one of {some}" if query_id not in self.extra else "choose a topic that has judgments"
            raise InputError(f"the qrels have no topic {query_id!r}", fix=fix, path=self.qrels.where)
        return self._recoded(np.array([self.query_ids.index(query_id)]), ())

    def over(self, topics: TopicPolicy) -> Judged:
        """Choose the topics that count.

        ``qrels``: all topics of the qrels, a missing one is an empty ranking. ``both``: those that the
        run has too. ``run``: those of the run; one that has no judgments has nothing relevant.
        """
        if topics == "qrels":
            return self
        if topics == "both":
            return self._recoded(np.flatnonzero(self.present), ())
        if topics == "run":
            return self._recoded(np.flatnonzero(self.present), self.extra)
        from judged.data.expression import among  # only what is no policy needs it

        fix = f'use one of {", ".join(get_args(TopicPolicy))}; to use some topics, where="{among(topics)}"'
        raise InputError(f"no topic policy {topics!r}", fix=fix)

    def _recoded(self, kept: Ints, extra: tuple[str, ...]) -> Judged:
        names = [self.query_ids[code] for code in kept.tolist()] + list(extra)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        new_code = np.full(len(self), -1, dtype=np.int64)
        place = np.empty(len(names), dtype=np.int64)
        place[order] = np.arange(len(names))
        new_code[kept] = place[: len(kept)]
        hits = np.flatnonzero(new_code[self.topic] >= 0)
        labels = np.flatnonzero(new_code[self.label_topic] >= 0)
        new_row = np.full(len(self.label_topic), -1, dtype=np.int64)
        new_row[labels] = np.arange(len(labels))
        added = self.extra_returned[: len(extra)]
        return replace(
            self,
            query_ids=tuple(names[at] for at in order.tolist()),
            returned=np.concatenate((self.returned[kept], added))[order],
            present=np.concatenate((self.present[kept], np.ones(len(extra), dtype=np.bool_)))[order],
            **self.hits_at(hits, topic=new_code[self.topic[hits]], row=new_row[self.row[hits]]),
            **self.labels_at(labels, label_topic=new_code[self.label_topic[labels]]),
            shown=None,
            extra=self.extra[len(extra) :],
            extra_returned=self.extra_returned[len(extra) :],
        )


def placed(judged: Judged, topics: Ints, variant: Ints, hit: Ints, rank: Ints, shown: Returned | None = None) -> Judged:
    """Make variants of these topics, (V,), out of hits put at ranks: variant, hit of this list and rank, (N,) each.

    >>> from judged.scoring.judging import judge_list
    >>> first, both = np.array([0]), np.array([0, 1])  # the first hit alone at rank 2; both, exchanged
    >>> variant, hit, rank = np.repeat([0, 1], [1, 2]), np.append(first, both), np.array([2, 3, 1])
    >>> j = placed(judge_list([3, None, 1]), np.array([0, 0]), variant, hit, rank)
    >>> j.topic.tolist(), j.rank.tolist(), j.grade.tolist(), j.ideal.grade.tolist()
    ([0, 1, 1], [2, 1, 3], [3.0, 1.0, 3.0], [3.0, 1.0, 3.0, 1.0])
    """
    # A hit that stands in no place of a variant was not returned there; one may also stand in several. The lengths of
    # the rankings stay.
    label_starts = segment_starts(judged.label_topic, len(judged))
    label, label_topic = gathered(label_starts, topics)
    first_label = segment_starts(label_topic, len(topics))
    order = np.lexsort((rank, variant))
    variant, hit, rank = variant[order], hit[order], rank[order]
    return replace(
        judged,
        **judged.topics_at(topics),
        topic=variant,
        rank=rank,
        grade=judged.grade[hit],
        row=judged.row[hit] - label_starts[judged.topic[hit]] + first_label[variant],
        score=-rank.astype(np.float64),
        tie_first=rank,
        tie_last=rank,
        **judged.labels_at(label, label_topic=label_topic),
        shown=shown,
    )


def gathered(starts: Ints, topics: Ints) -> tuple[Ints, Ints]:
    """Give the positions of the entries of these segments one after the other, and whose each is."""
    lengths = np.diff(starts)[topics]
    whose = np.repeat(np.arange(len(topics)), lengths)
    within = np.arange(len(whose)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[topics][whose] + within, whose


def shown_again(shown: Returned, count: int, topics: Ints) -> Returned:
    """Give every returned document of copies of these topics; there are `count` to copy from."""
    at, topic = gathered(segment_starts(shown.topic, count), topics)
    return Returned(topic, shown.rank[at], shown.doc.take(at))
