"""Tie groups of a judged list, for scoring other orders of tied documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.results.types import cached_property
from judged.scoring.judging.align import rank_all_with_ties
from judged.scoring.judging.ranking import running_count, segment_starts
from judged.scoring.judging.unjudged import truncate
from judged.scoring.measures.cwl import UserModel

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints, Strings
    from judged.scoring.judging import Judged
    from judged.scoring.judging.align import ReturnedDocs
    from judged.scoring.measures.base import Measure, Properties

NO_LIMIT = int(np.iinfo(np.int64).max)


class TieGroups(NamedTuple):
    """Groups of documents with equal scores, including groups of size 1, ordered by topic and rank: (G,) each."""

    # topic, first, size: topic, rank of the first document, and number of documents
    topic: Ints
    first: Ints
    size: Ints
    inside: Ints  # number of its ranks that count, because they are not below the depth
    # start, stop: slice of its members in the list
    start: Ints
    stop: Ints
    open: Bools  # whether another order of its documents could change the score

    def select(self, rows: Ints) -> TieGroups:
        """Select groups by index."""
        topic, first, size, inside, start, stop, is_open = self
        return TieGroups(topic[rows], first[rows], size[rows], inside[rows], start[rows], stop[rows], is_open[rows])


@dataclass(frozen=True, eq=False)
class TiedList:
    """Members of a ranking that can be in another order, and the measure that scores it.

    The members are the hits, or all returned documents if the measure reads their attributes. M of them.
    """

    judged: Judged  # the hits of the members. They are not truncated; the lengths of the rankings are.
    measure: Measure
    properties: Properties  # properties of the measure on this list
    depth: int  # the last rank that counts
    # topic, rank, first, last: (M,): topic and rank of each member, first and last rank of its tie group; ordered by
    # topic and rank
    topic: Ints
    rank: Ints
    first: Ints
    last: Ints
    kind: Ints  # (M,): swapping two members of a topic with the same kind does not change the score
    hit: Ints  # (M,): index of the member among the hits, -1 for an unjudged document
    doc: Strings | None  # document ids of the members, if they are all returned documents
    possible: Bools  # (T,): the topics whose score can change and that this list covers

    @cached_property
    def starts(self) -> Ints:
        """Position of each topic's first member, and the number of members: (T + 1,)."""
        return segment_starts(self.topic, len(self.judged))

    @cached_property
    def groups(self) -> TieGroups:
        """Tie groups of the members."""
        start = np.flatnonzero((np.diff(self.topic, prepend=-1) != 0) | (np.diff(self.first, prepend=-1) != 0))
        stop = np.append(start[1:], len(self.topic))[: len(start)]
        topic, first, last = self.topic[start], self.first[start], self.last[start]
        size = last - first + 1
        inside = np.minimum(last, self.depth) - first + 1
        changes_kind = np.zeros(len(self.kind), dtype=np.int64)
        changes_kind[1:] = self.kind[1:] != self.kind[:-1]
        changes_kind[start] = 0
        is_mixed = (_totals(changes_kind, start) > 0) | (stop - start < size)
        # A measure of sets changes only if the depth falls within the group.
        is_set_measure = not self.properties.needs_ranking and getattr(self.measure, "cutoff", None) is None
        matters = (inside < size) if is_set_measure else size > 1
        return TieGroups(topic, first, size, inside, start, stop, is_mixed & matters & self.possible[topic])

    @cached_property
    def open_groups(self) -> TieGroups:
        """Groups whose order could change the score."""
        return self.groups.select(np.flatnonzero(self.groups.open))

    @cached_property
    def open_topics(self) -> Ints:
        """Topics with an open group."""
        return np.unique(self.open_groups.topic)

    @cached_property
    def fixed(self) -> Bools:
        """Whether each member is outside of all open groups: (M,)."""
        groups = self.open_groups
        moves = np.zeros(len(self.topic) + 1, dtype=np.int64)
        np.add.at(moves, groups.start, 1)
        np.add.at(moves, groups.stop, -1)
        return np.cumsum(moves)[:-1] == 0


def _totals(values: Ints, start: Ints) -> Ints:
    return np.add.reduceat(values, start) if len(start) else values[:0]


def check_depth(judged: Judged) -> None:
    """Raise InputError if the depth of the list falls within tied documents."""
    depth = judged.ranking.depth
    if depth is None or judged.reordered:
        return
    crosses = judged.tie_last > depth
    if not crosses.any() and (judged.returned == depth).any():  # the only judged document may be below the depth
        docs, first, last = rank_all_with_ties(judged.run, judged.query_ids, replace(judged.ranking, depth=None))
        crosses = (first <= depth) & (last > depth)
        topic = docs.topic
    else:
        topic = judged.topic
    if crosses.any():
        query = judged.query_ids[int(topic[np.flatnonzero(crosses)[0]])]
        raise InputError(
            f"the depth must not separate tied documents, but depth {depth} does (topic {query})",
            fix=f"call `judge` without a depth, and use depth={depth} here",
            path=judged.run.where,
        )


def _last_rank(measure: Measure, depth: int | None) -> int:
    """Return the deepest rank that affects `measure`: the smaller of `depth` and its cutoff."""
    limit = depth or NO_LIMIT
    if not is_from_catalog(measure) or getattr(measure, "judged_only", False):
        return limit
    if isinstance(measure, UserModel):  # its cutoff may be a budget, so that the last rank depends on the order
        return min(limit, measure.columns())
    return min(limit, getattr(measure, "cutoff", None) or NO_LIMIT)


def is_from_catalog(measure: Measure) -> bool:
    """Return whether this is a measure of the catalog, not a custom subclass."""
    return type(measure) is measure.entry.cls and type(measure).__module__.startswith("judged.scoring.measures.")


def tied_lists(judged: Judged, measure: Measure, depth: int | None) -> tuple[Floats, list[TiedList]]:
    """Return the score of each topic as ranked, (T,), and lists that cover the topics whose score can change."""
    judged = replace(judged, calculation=None)
    check_depth(judged)
    if depth is not None and not judged.ranked:
        problem = f"depth={depth} requires scores, but this run has none"
        raise InputError(problem, fix="leave out depth", path=judged.run.where)
    depth = depth if judged.ranking.depth is None else min(judged.ranking.depth, depth or NO_LIMIT)
    # A copy without cached properties shows below whether the measure reads the returned documents.
    truncated = replace(judged) if depth is None else truncate(judged, depth)
    base = measure(truncated)
    if not judged.ranked or judged.ranking.ties == "rank":
        return base, []
    possible = ~np.isnan(base)
    if is_from_catalog(measure) and hasattr(measure, "undefined"):
        possible &= np.asarray(measure.is_defined(truncated), dtype=np.bool_)
    if "returned_docs" in vars(truncated):
        return base, [_list_of_all_documents(judged, measure, depth, possible)]
    # With several labels per document, a document may be unjudged for one assessor only.
    if not getattr(measure, "judged_only", False) or measure.properties.uses_all_labels:
        return base, [_list_of_hits(judged, measure, depth, possible)]
    last_rank = depth or NO_LIMIT
    crosses = np.zeros(len(judged), dtype=np.bool_)
    crosses[judged.topic[(judged.tie_first <= last_rank) & (judged.tie_last > last_rank)]] = True
    condensed = _condense_with_ties(truncated)
    lists = [_list_of_hits(condensed, measure.replace(judged_only=False), None, possible & ~crosses)]
    if crosses.any():  # the order of ties decides how many judged documents are above the depth
        lists.append(_list_of_hits(judged, measure, depth, possible & crosses))
    return base, lists


def _condense_with_ties(judged: Judged) -> Judged:
    """Remove unjudged documents, but preserve which of the others are tied."""
    hits = np.flatnonzero(judged.grade >= 0)
    condensed = judged.condensed
    begins = (np.diff(condensed.topic, prepend=-1) != 0) | (np.diff(judged.tie_first[hits], prepend=-1) != 0)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(hits))[: len(first)] - 1
    group = np.cumsum(begins) - 1
    return replace(condensed, tie_first=condensed.rank[first[group]], tie_last=condensed.rank[last[group]])


def _properties(judged: Judged, measure: Measure, depth: int | None, last_rank: int) -> Properties:
    """Return the properties of the measure; if the depth falls within ties, those with the depth as cutoff."""
    crosses = depth == last_rank and ((judged.tie_first <= last_rank) & (judged.tie_last > last_rank)).any()
    effective = measure
    if crosses and hasattr(measure, "cutoff") and measure.entry.cutoff_name == "cutoff":
        effective = measure.replace(cutoff=depth)
    # With rel=0 a document of grade 0 is better than an unjudged one; otherwise, `better_first` is as with rel=1.
    if getattr(measure, "rel", None) == 0:
        return replace(effective.properties, better_first=effective.replace(rel=1.0).properties.better_first)
    return effective.properties


def _list_of_hits(judged: Judged, measure: Measure, depth: int | None, possible: Bools) -> TiedList:
    last_rank = _last_rank(measure, depth)
    properties = _properties(judged, measure, depth, last_rank)
    hit = np.flatnonzero(judged.tie_first <= last_rank)
    kind = _kinds_by_labels(judged) if properties.uses_all_labels else _kinds_by_grade(judged, measure, properties)
    return TiedList(
        judged=_truncate_lengths(judged, last_rank),
        measure=measure,
        properties=properties,
        depth=last_rank,
        topic=judged.topic[hit],
        rank=judged.rank[hit],
        first=judged.tie_first[hit],
        last=judged.tie_last[hit],
        kind=kind[hit],
        hit=hit,
        doc=None,
        possible=possible,
    )


def _truncate_lengths(judged: Judged, last_rank: int) -> Judged:
    # The hits are not removed: another order may move them above the last rank.
    lengths = np.minimum(judged.returned, last_rank)
    ranking = replace(judged.ranking, depth=None if last_rank == NO_LIMIT else last_rank)
    return replace(judged, returned=lengths, ranking=ranking, stored_docs=None)


def _kinds_by_grade(judged: Judged, measure: Measure, properties: Properties) -> Ints:
    """Number the grades of hits; for a binary measure of the catalog, all relevant documents have one kind."""
    grade = judged.grade
    if is_from_catalog(measure) and not properties.graded:
        grade = np.where(judged.relevant(getattr(measure, "rel", 1.0)), np.inf, grade)
    return np.unique(grade, return_inverse=True)[1].astype(np.int64)


def _kinds_by_labels(judged: Judged) -> Ints:
    """Number the distinct sets of labels of hits."""
    labels = judged.aspects
    starts = segment_starts(labels.owner, len(judged.rank)).tolist()
    aspect, grade = labels.aspect.tolist(), labels.grade.tolist()
    kinds: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
    return np.array(
        [kinds.setdefault((tuple(aspect[a:b]), tuple(grade[a:b])), len(kinds)) for a, b in pairwise(starts)],
        dtype=np.int64,
    )


def _list_of_all_documents(judged: Judged, measure: Measure, depth: int | None, possible: Bools) -> TiedList:
    """Build a list in which every returned document is a member of its own kind."""
    last_rank = _last_rank(measure, depth)
    docs, first, last = _docs_with_ties(judged)
    rows = np.flatnonzero(first <= last_rank)
    starts = segment_starts(docs.topic, len(judged))
    hit = np.full(len(docs.rank), -1, dtype=np.int64)
    hit[starts[judged.topic] + judged.rank - 1] = np.arange(len(judged.rank))
    return TiedList(
        judged=_truncate_lengths(judged, last_rank),
        measure=measure,
        properties=_properties(judged, measure, depth, last_rank),
        depth=last_rank,
        topic=docs.topic[rows],
        rank=docs.rank[rows],
        first=first[rows],
        last=last[rows],
        kind=np.arange(len(rows)),
        hit=hit[rows],
        doc=docs.doc.take(rows),
        possible=possible,
    )


def _docs_with_ties(judged: Judged) -> tuple[ReturnedDocs, Ints, Ints]:
    """Return all returned documents, and the first and last rank of the documents with the same score."""
    if judged.stored_docs is None:
        return rank_all_with_ties(judged.run, judged.query_ids, judged.ranking)
    docs, first, last = judged.stored_docs, judged.stored_docs.rank.copy(), judged.stored_docs.rank.copy()
    size = judged.tie_last - judged.tie_first + 1  # for stored documents, only the ties of judged ones are known
    begin = segment_starts(docs.topic, len(judged))[judged.topic] + judged.tie_first - 1
    position = np.repeat(begin - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
    first[position], last[position] = np.repeat(judged.tie_first, size), np.repeat(judged.tie_last, size)
    return docs, first, last


def relevant_members(tied: TiedList, rel: float) -> Bools:
    """Return which members are relevant: (M,)."""
    return tied.judged.relevant(rel)[tied.hit]


def relevant_groups(tied: TiedList, rel: float) -> tuple[TieGroups, Ints, Ints]:
    """Return the groups with relevant documents, the number of these, and of relevant documents above the group."""
    groups, relevant = tied.groups, relevant_members(tied, rel)
    count = _totals(relevant.astype(np.int64), groups.start)
    above = (running_count(relevant, tied.topic, tied.starts) - relevant)[groups.start] if len(count) else count
    rows = np.flatnonzero(count)
    return groups.select(rows), count[rows], above[rows]
