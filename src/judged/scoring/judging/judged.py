"""Judged lists: the input of every measure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

import numpy as np

from judged.data.files import FileHash
from judged.errors import InputError, MeasureError
from judged.results.types import ReadOnly, cached_property
from judged.scoring.judging.align import ReturnedDocs, rank_all
from judged.scoring.judging.ranking import (
    RankingRules,
    TopicPolicy,
    running_count,
    running_sum,
    segment_starts,
    segment_sum,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from judged.data.documents import Documents
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.calculation import Calculation, Operand

    Values = TypeVar("Values", Floats, Ints, Bools)


_HIT_COLUMNS = ("topic", "rank", "grade", "row", "score", "tie_first", "tie_last")
_LABEL_COLUMNS = ("label_topic", "label_grade", "label_row")
# Arrays per cache. The limit matters for curves: a curve has a hundred cutoffs, each with its own ideal.
_MAX_CACHED = 64


class AspectLabels(NamedTuple):
    """Individual labels, where a document may have several."""

    owner: Ints  # (A,): position of the hit, or of the judged pair, that has the label; ascending
    aspect: Ints  # (A,): the subtopic or assessor: a position in `qrels.aspects.names`; ascending within one owner
    grade: Floats  # (A,)


@dataclass(frozen=True, eq=False)
class JudgedHits(ReadOnly):
    """Ranks and grades of the judged documents that a run returned.

    All columns are NumPy arrays. With T topics, H hits and L judged pairs.
    """

    query_ids: tuple[str, ...]  # T: the topics, in byte order. A topic code below is a position in this tuple.
    # (T,): how many documents the run returned for each topic, judged or not (cut at the ranking's depth)
    returned: Ints
    present: Bools  # (T,): whether the run contains the topic
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
    ranked: bool  # False for a run without scores: its ranks are arbitrary
    ranking: RankingRules  # the policy by which the ranks were computed
    # extra, extra_returned: topics of the run that the qrels lack, and (E,) how many documents each returned
    extra: tuple[str, ...]
    extra_returned: Ints = field(repr=False)
    qrels: Qrels = field(repr=False)
    run: Run = field(repr=False)
    file_hash: FileHash = field(default=FileHash(), repr=False)  # hash of the files from which the run was read
    # topics in which no document has a higher score than the one with the id of the topic
    n_self_top: int = field(default=0, repr=False)
    ids_matched: bool = field(default=False, repr=False)  # whether ids were matched with those of the qrels
    # attributes of documents, for the measures that need them
    documents: Documents | None = field(default=None, repr=False)
    # whether this is another ranking than the run's: an ideal one, or one without unjudged documents
    reordered: bool = field(default=False, repr=False)
    title: str = field(default="ranking", repr=False)  # title of the ranking in explanations
    # all returned documents, if they cannot be read from the run or were read already
    stored_docs: ReturnedDocs | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.query_ids)

    def hit_columns(self, hits: Ints, **replacements: Any) -> dict[str, Any]:
        """Select hits by position from all columns of hits; a replacement is used unchanged."""
        return {name: replacements.get(name, getattr(self, name)[hits]) for name in _HIT_COLUMNS}

    def label_columns(self, labels: Ints, **replacements: Any) -> dict[str, Any]:
        """Select judged pairs by position from all columns of pairs; a replacement is used unchanged."""
        return {name: replacements.get(name, getattr(self, name)[labels]) for name in _LABEL_COLUMNS}

    def topic_columns(self, topics: Ints) -> dict[str, Any]:
        """Select topics by code from all columns of topics."""
        names = tuple(self.query_ids[topic] for topic in topics.tolist())
        return {"query_ids": names, "returned": self.returned[topics], "present": self.present[topics]}

    @cached_property
    def starts(self) -> Ints:
        """Position of each topic's first hit, and the number of hits at the end: (T + 1,)."""
        return segment_starts(self.topic, len(self))

    @cached_property
    def doc(self) -> list[str]:
        """Document ids of the hits."""
        names = self.qrels.index.row_names
        return [names[row] for row in self.label_row[self.row].tolist()]

    def sum(self, values: Floats | Bools) -> Floats:
        """Sum one value per hit over each topic, in rank order: (H,) to (T,)."""
        return segment_sum(values, self.topic, len(self))

    def sum_labels(self, values: Floats | Bools) -> Floats:
        """Sum one value per judged pair over each topic: (L,) to (T,)."""
        return segment_sum(values, self.label_topic, len(self))

    def count_so_far(self, mask: Bools) -> Ints:
        """Count the marked hits of the topic up to and including each hit: (H,) to (H,)."""
        return running_count(mask, self.topic, self.starts)

    def sum_so_far(self, values: Floats | Bools) -> Floats:
        """Sum one value per hit over the topic, up to and including each hit: (H,) to (H,)."""
        return running_sum(values, self.starts)

    def running_sum_at(self, topic: Ints, rank: Ints, running: Floats) -> Floats:
        """Look up a running sum over hits at any ranks, also of unjudged documents: (N,), (N,) and (H,) to (N,)."""
        # The key `topic * width + rank` is ascending over all hits, so one binary search serves all topics.
        width = max(self.rank.max(initial=0), rank.max(initial=0)) + 1
        last = np.searchsorted(self.topic * width + self.rank, topic * width + rank, side="right") - 1
        return np.where(last >= self.starts[topic], np.append(running, 0.0)[last], 0.0)

    def first_rank(self, mask: Bools) -> Ints:
        """Return the rank of each topic's first marked hit, 0 if no hit is marked: (H,) to (T,)."""
        ranks = np.zeros(len(self), dtype=np.int64)
        ranks[self.topic[mask][::-1]] = self.rank[mask][::-1]  # in reverse: the first rank is written last
        return ranks

    def relevant(self, rel: float) -> Bools:
        """Mark the hits with at least grade `rel`; a negative grade is never relevant. (H,)."""
        return _cached(self._cache, ("relevant", rel), lambda: (self.grade >= rel) & (self.grade >= 0))

    def relevant_labels(self, rel: float) -> Bools:
        """Mark the judged pairs with at least grade `rel`; a negative grade is never relevant. (L,)."""
        return self.cached_by_labels(("labels", rel), lambda: (self.label_grade >= rel) & (self.label_grade >= 0))

    def num_relevant(self, rel: float) -> Floats:
        """Count the relevant documents of each topic in the qrels. (T,)."""
        return self.cached_by_labels(("count", rel), lambda: self.sum_labels(self.relevant_labels(rel)))

    def cached_by_labels(self, key: Hashable, compute: Callable[[], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Compute an array that depends on the judged pairs only, or return it from the cache.

        If the list has all pairs of the qrels, the cache is that of the qrels: all runs share the array.
        """
        index = self.qrels.index
        has_all_pairs = self.label_grade is index.grade and self.label_row is index.row
        return _cached(index.cache if has_all_pairs else self._cache, key, compute)

    @cached_property
    def _cache(self) -> dict[Hashable, np.ndarray[Any, Any]]:
        return {}

    def within(self, cutoff: int | None) -> Bools:
        """Mark the hits with rank `cutoff` or better; all for None. (H,)."""
        return np.ones(len(self.rank), dtype=np.bool_) if cutoff is None else self.rank <= cutoff

    @cached_property
    def aspects(self) -> AspectLabels:
        """Individual labels of the hits: one per subtopic or assessor."""
        return AspectLabels(*self.qrels.aspects.of(self.label_row[self.row]))

    @cached_property
    def label_aspects(self) -> AspectLabels:
        """Individual labels of the judged pairs: one per subtopic or assessor."""
        return AspectLabels(*self.qrels.aspects.of(self.label_row))

    @cached_property
    def returned_docs(self) -> ReturnedDocs:
        """Ranked list of every returned document of these topics, judged or not. Reads the run again.

        Raises
        ------
        MeasureError
            If this is not the ranking of the run.
        """
        if self.stored_docs is not None:
            return self.stored_docs
        if self.reordered:
            raise MeasureError("an ideal or condensed ranking has no unjudged documents. Fix: omit judged_only")
        return rank_all(self.run, self.query_ids, self.ranking)

    def fact(self, name: str, measure: object) -> Any:
        """Look up an attribute of every returned document, in the order of `returned_docs`: (D,) Arrow array.

        Raises
        ------
        MeasureError
            If the list has no attributes of documents.
        InputError
            If a returned document lacks this attribute.
        """
        if self.documents is None:
            raise MeasureError(
                f"{measure} requires the {name} of every returned document."
                f" Fix: pass documents= (on the command line --documents), a table with doc_id and {name}"
            )
        return self.documents.column(name, self.returned_docs.doc)


def _cached(
    cache: dict[Hashable, np.ndarray[Any, Any]], key: Hashable, compute: Callable[[], np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    if (cached := cache.get(key)) is not None:
        return cached
    array = compute()
    array.flags.writeable = False  # every later caller gets the same array
    if len(cache) < _MAX_CACHED:
        cache[key] = array
    return array


@dataclass(frozen=True, eq=False)
class Judged(JudgedHits):
    """A run joined with its qrels: the judged documents that the run returned, with ranks and grades.

    The other attributes and methods are those of `JudgedHits`.

    Attributes
    ----------
    calculation : Calculation or None
        Record of the intermediate results of measures, for explanations; None (the default) records nothing.

    Examples
    --------
    >>> from judged import judge
    >>> j = judge({"q": {"a": 2, "b": 0, "c": 1}}, {"q": {"x": 3.0, "c": 2.0, "b": 1.0}})
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist()
    ([2, 3], [1.0, 0.0], [3])
    >>> j.sum((j.grade >= 1) / j.rank).tolist()  # a custom measure: sum of 1/rank over relevant documents
    [0.5]
    >>> j.ideal.rank.tolist(), j.ideal.grade.tolist()
    ([1, 2, 3], [2.0, 1.0, 0.0])
    """

    calculation: Calculation | None = field(default=None, repr=False)

    def total(
        self, name: object, values: Floats | Bools, how: str = "", *, where: Bools | None = None, **parts: Operand
    ) -> Floats:
        """Sum one value per hit over each topic, as `sum` does, and record the calculation: (H,) to (T,).

        Parameters
        ----------
        name
            Name of the total.
        values
            Summand of each hit; (H,).
        how
            Formula of one summand, in the names of its operands and of ``rank`` and ``grade``.
        where
            Mask of the hits to sum; all for None. (H,).
        parts
            Operands of the formula by name: (H,), or one number for all hits.
        """
        total = self.sum(values if where is None else values * where)
        if self.calculation is not None:
            self.calculation.total(self, str(name), values, total, how, parts, where)
        return total

    def step(self, name: object, values: Values, how: str = "", **parts: Operand) -> Values:
        """Record the calculation of one number per topic, and return `values`: (T,).

        Parameters
        ----------
        name
            Name of the number; a measure passes itself for its score.
        values
            One number per topic: (T,).
        how
            Formula in the names of its operands, such as ``"dcg / ideal"``.
        parts
            Operands of the formula by name: (T,), or one number for all topics.
        """
        if self.calculation is not None:
            self.calculation.step(self, str(name), np.asarray(values, dtype=np.float64), how, parts)
        return values

    def summed(self, name: object, values: Values, column: str, how: str = "") -> Values:
        """Record one number per topic that is the sum of a recorded column, and return `values`: (T,).

        `how` replaces the default description of the sum.
        """
        if self.calculation is not None:
            self.calculation.summed(self, str(name), np.asarray(values, dtype=np.float64), column, how)
        return values

    def column(
        self, name: str, values: Values, how: str = "", *, where: Bools | None = None, **parts: Operand
    ) -> Values:
        """Record one number per hit, and return `values`: (H,)."""
        if self.calculation is not None:
            self.calculation.column(self, name, values, how, parts, where)
        return values

    def by_rank(self, name: str, values: Values, how: str = "", **parts: Operand) -> Values:
        """Record one number for each rank from 1, judged or not, of the only topic, and return `values`: (N,)."""
        if self.calculation is not None:
            self.calculation.column(self, name, values, how, parts, rank=np.arange(1, len(values) + 1))
        return values

    def rows(self, title: str, columns: Mapping[str, Sequence[object] | np.ndarray], **how: str) -> None:
        """Record a table, such as recall points, subtopics or pairs; `how` has the formulas of columns, by name."""
        if self.calculation is not None:
            self.calculation.rows(self, title, columns, how)

    @cached_property
    def ideal(self) -> Judged:
        """Best possible ranking: judged documents by descending grade, without negative grades."""
        return self.ideal_by(np.where(self.label_grade >= 0, self.label_grade, -np.inf))

    def ideal_by(self, value: Floats, title: str = "ideal ranking") -> Judged:
        """Rank the judged pairs by descending value, without those of minus infinity. (L,)."""
        labels = np.flatnonzero(value > -np.inf)
        order = labels[np.lexsort((-value[labels], self.label_topic[labels]))]
        return self._with_hits(title, order, self.label_topic[order], self.label_grade[order])

    @cached_property
    def condensed(self) -> Judged:
        """The same ranking without documents that are unjudged or have a negative grade."""
        hits = np.flatnonzero(self.grade >= 0)
        title = f"{self.title} without unjudged documents"
        return self._with_hits(title, self.row[hits], self.topic[hits], self.grade[hits], self.score[hits])

    def _with_hits(self, title: str, row: Ints, topic: Ints, grade: Floats, score: Floats | None = None) -> Judged:
        """Return a list that returned only these hits, in this order."""
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
            stored_docs=None,
        )

    def only(self, query_id: str) -> Judged:
        """Select one topic.

        Raises
        ------
        InputError
            If the qrels do not have the topic.
        """
        query_id = str(query_id)  # an integer stands for its decimal text, as in qrels from dicts
        if query_id not in self.query_ids:
            examples = ", ".join(self.query_ids[:5]) + (", ..." if len(self.query_ids) > 5 else "")
            fix = f"use one of {examples}" if query_id not in self.extra else "use a topic with judgments"
            raise InputError(f"the qrels have no topic {query_id!r}", fix=fix, path=self.qrels.where)
        return self._select_topics(np.array([self.query_ids.index(query_id)]), ())

    def over(self, topics: TopicPolicy) -> Judged:
        """Select topics by policy.

        ``qrels``: all topics of the qrels; one that the run lacks has an empty ranking. ``both``: the topics of both.
        ``run``: all topics of the run; one without judgments has no relevant document.
        """
        if topics == "qrels":
            return self
        if topics == "both":
            return self._select_topics(np.flatnonzero(self.present), ())
        if topics == "run":
            return self._select_topics(np.flatnonzero(self.present), self.extra)
        from judged.data.expression import select_query_ids  # needed for the error message only

        fix = f'use one of {", ".join(get_args(TopicPolicy))}; to select topics, use where="{select_query_ids(topics)}"'
        raise InputError(f"unknown value of `topics`: {topics!r}", fix=fix)

    def _select_topics(self, codes: Ints, extra: tuple[str, ...]) -> Judged:
        # Query ids stay in byte order, so the added topics may change the codes of the others.
        names = [self.query_ids[code] for code in codes.tolist()] + list(extra)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        new_code = np.full(len(self), -1, dtype=np.int64)
        position = np.empty(len(names), dtype=np.int64)
        position[order] = np.arange(len(names))
        new_code[codes] = position[: len(codes)]
        hits = np.flatnonzero(new_code[self.topic] >= 0)
        labels = np.flatnonzero(new_code[self.label_topic] >= 0)
        new_row = np.full(len(self.label_topic), -1, dtype=np.int64)
        new_row[labels] = np.arange(len(labels))
        extra_returned = self.extra_returned[: len(extra)]
        return replace(
            self,
            query_ids=tuple(names[i] for i in order.tolist()),
            returned=np.concatenate((self.returned[codes], extra_returned))[order],
            present=np.concatenate((self.present[codes], np.ones(len(extra), dtype=np.bool_)))[order],
            **self.hit_columns(hits, topic=new_code[self.topic[hits]], row=new_row[self.row[hits]]),
            **self.label_columns(labels, label_topic=new_code[self.label_topic[labels]]),
            stored_docs=None,
            extra=self.extra[len(extra) :],
            extra_returned=self.extra_returned[len(extra) :],
        )


def place_hits(
    judged: Judged, topics: Ints, variant: Ints, hit: Ints, rank: Ints, stored_docs: ReturnedDocs | None = None
) -> Judged:
    """Build one variant of a ranking per entry of `topics`, (V,), from triples of variant, hit and new rank: (N,) each.

    >>> from judged.scoring.judging import judge_list
    >>> first, both = np.array([0]), np.array([0, 1])  # only the first hit, at rank 2; both hits, swapped
    >>> variant, hit, rank = np.repeat([0, 1], [1, 2]), np.append(first, both), np.array([2, 3, 1])
    >>> j = place_hits(judge_list([3, None, 1]), np.array([0, 0]), variant, hit, rank)
    >>> j.topic.tolist(), j.rank.tolist(), j.grade.tolist(), j.ideal.grade.tolist()
    ([0, 1, 1], [2, 1, 3], [3.0, 1.0, 3.0], [3.0, 1.0, 3.0, 1.0])
    """
    # A hit without a triple in a variant counts as not returned there; a hit may also have several ranks. The lengths
    # of the rankings do not change.
    label_starts = segment_starts(judged.label_topic, len(judged))
    label, label_topic = gather_segments(label_starts, topics)
    first_label = segment_starts(label_topic, len(topics))
    order = np.lexsort((rank, variant))
    variant, hit, rank = variant[order], hit[order], rank[order]
    return replace(
        judged,
        **judged.topic_columns(topics),
        topic=variant,
        rank=rank,
        grade=judged.grade[hit],
        row=judged.row[hit] - label_starts[judged.topic[hit]] + first_label[variant],
        score=-rank.astype(np.float64),
        tie_first=rank,
        tie_last=rank,
        **judged.label_columns(label, label_topic=label_topic),
        stored_docs=stored_docs,
    )


def gather_segments(starts: Ints, segments: Ints) -> tuple[Ints, Ints]:
    """Return the positions of all entries of these segments, in order, and the index of each entry's segment."""
    lengths = np.diff(starts)[segments]
    segment = np.repeat(np.arange(len(segments)), lengths)
    offset = np.arange(len(segment)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[segments][segment] + offset, segment


def repeat_docs(docs: ReturnedDocs, topic_count: int, topics: Ints) -> ReturnedDocs:
    """Copy the returned documents of each entry of `topics`, in order; `docs` has `topic_count` topics."""
    position, topic = gather_segments(segment_starts(docs.topic, topic_count), topics)
    return ReturnedDocs(topic, docs.rank[position], docs.doc.take(position))
