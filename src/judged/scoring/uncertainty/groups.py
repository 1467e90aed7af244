"""A judged list with its tie groups: what must be known to put tied documents in another order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.errors import InputError
from judged.results.types import cached_property
from judged.scoring.judging.align import all_tied
from judged.scoring.judging.ranking import running_count, segment_starts
from judged.scoring.judging.unjudged import cut
from judged.scoring.measures.cwl import UserModel

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints, Strings
    from judged.scoring.judging import Judged
    from judged.scoring.judging.align import Returned
    from judged.scoring.measures.base import Measure, Properties

ENDLESS = int(np.iinfo(np.int64).max)


class Groups(NamedTuple):
    """Documents of one score each, those of size 1 too, in the order of topic and rank: (G,) each."""

    # topic, first, size: the topic, the rank of the first document, and how many documents there are
    topic: Ints
    first: Ints
    size: Ints
    inside: Ints  # how many of its places count: those that are not below the depth
    start: Ints  # where its members stand in the list
    stop: Ints  # where its members stand in the list
    open: Bools  # whether another order of its documents could change the score

    def some(self, kept: Ints) -> Groups:
        """Leave these groups."""
        topic, first, size, inside, start, stop, is_open = self
        return Groups(topic[kept], first[kept], size[kept], inside[kept], start[kept], stop[kept], is_open[kept])


@dataclass(frozen=True, eq=False)
class TiedList:
    """What may be put in another order, and how a measure sees it.

    The members are the hits, or all returned documents where the measure asks for facts of them. M of them.
    """

    judged: Judged  # where the members stand. Its hits are not cut; its lengths are.
    measure: Measure  # what scores it
    properties: Properties  # what is true of the measure on this list
    depth: int  # the last rank that counts
    # topic, rank, first, last: (M,): each member's topic, rank, and first and last rank of its tie group; ordered by
    # topic and rank
    topic: Ints
    rank: Ints
    first: Ints
    last: Ints
    alike: Ints  # (M,): members of one topic with the same number can take each other's place, and the score stays
    hit: Ints  # (M,): the hit that the member is, -1 for an unjudged document
    doc: Strings | None  # the members' document ids, where they are all returned documents
    possible: Bools  # (T,): the topics of which this list speaks

    @cached_property
    def starts(self) -> Ints:
        """Where each topic's members begin: (T + 1,)."""
        return segment_starts(self.topic, len(self.judged))

    @cached_property
    def groups(self) -> Groups:
        """The groups of these members."""
        start = np.flatnonzero((np.diff(self.topic, prepend=-1) != 0) | (np.diff(self.first, prepend=-1) != 0))
        stop = np.append(start[1:], len(self.topic))[: len(start)]
        topic, first, last = self.topic[start], self.first[start], self.last[start]
        size = last - first + 1
        inside = np.minimum(last, self.depth) - first + 1
        other = np.zeros(len(self.alike), dtype=np.int64)
        other[1:] = self.alike[1:] != self.alike[:-1]
        other[start] = 0
        differ = (_totals(other, start) > 0) | (stop - start < size)
        crossing_only = not self.properties.needs_ranking and getattr(self.measure, "cutoff", None) is None
        wanted = (inside < size) if crossing_only else size > 1
        return Groups(topic, first, size, inside, start, stop, differ & wanted & self.possible[topic])

    @cached_property
    def open_groups(self) -> Groups:
        """Those groups alone whose order could change the score."""
        return self.groups.some(np.flatnonzero(self.groups.open))

    @cached_property
    def open_topics(self) -> Ints:
        """The topics with such a group."""
        return np.unique(self.open_groups.topic)

    @cached_property
    def fixed(self) -> Bools:
        """Mark the members that stand in no open group: (M,)."""
        groups = self.open_groups
        moves = np.zeros(len(self.topic) + 1, dtype=np.int64)
        np.add.at(moves, groups.start, 1)
        np.add.at(moves, groups.stop, -1)
        return np.cumsum(moves)[:-1] == 0


def _totals(values: Ints, start: Ints) -> Ints:
    return np.add.reduceat(values, start) if len(start) else values[:0]


def refuse_cut(judged: Judged) -> None:
    """Refuse a list that lacks documents which are tied with some that it has."""
    depth = judged.ranking.depth
    if depth is None or judged.reordered:
        return
    within = judged.tie_last > depth
    if not within.any() and (judged.returned == depth).any():  # what is cut off may be the only judged document
        whole, first, last = all_tied(judged.run, judged.query_ids, replace(judged.ranking, depth=None))
        within = (first <= depth) & (last > depth)
        topic = whole.topic
    else:
        topic = judged.topic
    if within.any():
        query = judged.query_ids[int(topic[np.flatnonzero(within)[0]])]
        raise InputError(
            f"the list was cut at depth {depth}, within documents that are tied (topic {query})",
            fix=f"judge without a depth, and give depth={depth} here",
            path=judged.run.where,
        )


def _reach(measure: Measure, depth: int | None) -> int:
    """Give the last rank that counts: the depth, or that where one of our measures ceases to look, if that is less."""
    limit = depth or ENDLESS
    if not is_ours(measure) or getattr(measure, "judged_only", False):
        return limit
    if isinstance(measure, UserModel):  # its cutoff may be a budget, which other orders spend elsewhere
        return min(limit, measure.columns())
    return min(limit, getattr(measure, "cutoff", None) or ENDLESS)


def is_ours(measure: Measure) -> bool:
    """Tell whether this is a measure of the catalogue, and not what someone made out of one."""
    return type(measure) is measure.entry.cls and type(measure).__module__.startswith("judged.scoring.measures.")


def tied_lists(judged: Judged, measure: Measure, depth: int | None) -> tuple[Floats, list[TiedList]]:
    """Give each topic's score as the list stands, (T,), and what may be put in another order."""
    judged = replace(judged, working=None)
    refuse_cut(judged)
    if depth is not None and not judged.ranked:
        raise InputError(
            "a run without scores has no first documents", fix="leave out the depth", path=judged.run.where
        )
    depth = depth if judged.ranking.depth is None else min(judged.ranking.depth, depth or ENDLESS)
    whole = replace(judged) if depth is None else cut(judged, depth)  # new, so that it shows what it is asked for
    base = measure(whole)
    if not judged.ranked or judged.ranking.ties == "rank":
        return base, []
    possible = ~np.isnan(base)
    if is_ours(measure) and hasattr(measure, "undefined"):
        possible &= np.asarray(measure.is_defined(whole), dtype=np.bool_)
    if "everything" in vars(whole):
        return base, [_of_all_documents(judged, measure, depth, possible)]
    if not getattr(measure, "judged_only", False):
        return base, [_of_hits(judged, measure, depth, possible)]
    if measure.properties.uses_all_labels:  # what is unjudged may be another document for each assessor
        return base, [_of_hits(judged, measure, depth, possible)]
    at = depth or ENDLESS
    hard = np.zeros(len(judged), dtype=np.bool_)
    hard[judged.topic[(judged.tie_first <= at) & (judged.tie_last > at)]] = True
    lists = [_of_hits(_condensed(whole), measure.replace(judged_only=False), None, possible & ~hard)]
    if hard.any():  # how many judged documents are above the depth is open, and with it their ranks
        lists.append(_of_hits(judged, measure, depth, possible & hard))
    return base, lists


def _condensed(judged: Judged) -> Judged:
    """Leave out unjudged documents, and keep in mind which of the others are tied."""
    kept = np.flatnonzero(judged.grade >= 0)
    made = judged.condensed
    begins = (np.diff(made.topic, prepend=-1) != 0) | (np.diff(judged.tie_first[kept], prepend=-1) != 0)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(kept))[: len(first)] - 1
    group = np.cumsum(begins) - 1
    return replace(made, tie_first=made.rank[first[group]], tie_last=made.rank[last[group]])


def _properties(judged: Judged, measure: Measure, depth: int | None, reach: int) -> Properties:
    """Give what is true of the measure where the list may be cut at a rank: what is true of it at this cutoff."""
    # With rel=0 a document of grade 0 is better than an unjudged one; that apart, the better come first there too.
    crossing = depth == reach and ((judged.tie_first <= reach) & (judged.tie_last > reach)).any()
    seen = measure
    if crossing and hasattr(measure, "cutoff") and measure.entry.cutoff_name == "cutoff":
        seen = measure.replace(cutoff=depth)
    if getattr(measure, "rel", None) == 0:
        return replace(seen.properties, better_first=seen.replace(rel=1.0).properties.better_first)
    return seen.properties


def _of_hits(judged: Judged, measure: Measure, depth: int | None, possible: Bools) -> TiedList:
    reach = _reach(measure, depth)
    properties = _properties(judged, measure, depth, reach)
    hit = np.flatnonzero(judged.tie_first <= reach)
    alike = _labels_alike(judged) if properties.uses_all_labels else _grades_alike(judged, measure, properties)
    return TiedList(
        judged=_cut_to(judged, reach),
        measure=measure,
        properties=properties,
        depth=reach,
        topic=judged.topic[hit],
        rank=judged.rank[hit],
        first=judged.tie_first[hit],
        last=judged.tie_last[hit],
        alike=alike[hit],
        hit=hit,
        doc=None,
        possible=possible,
    )


def _cut_to(judged: Judged, reach: int) -> Judged:
    lengths = np.minimum(judged.returned, reach)
    ranking = replace(judged.ranking, depth=None if reach == ENDLESS else reach)
    return replace(judged, returned=lengths, ranking=ranking, shown=None)


def _grades_alike(judged: Judged, measure: Measure, properties: Properties) -> Ints:
    """Number the grades of hits; to a binary measure of ours all relevant documents are alike."""
    grade = judged.grade
    if is_ours(measure) and not properties.graded:
        grade = np.where(judged.relevant(getattr(measure, "rel", 1.0)), np.inf, grade)
    return np.unique(grade, return_inverse=True)[1].astype(np.int64)


def _labels_alike(judged: Judged) -> Ints:
    """Number the hits by all of their labels."""
    labels = judged.aspects
    starts = segment_starts(labels.of, len(judged.rank)).tolist()
    aspect, grade = labels.aspect.tolist(), labels.grade.tolist()
    known: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
    each = [known.setdefault((tuple(aspect[a:b]), tuple(grade[a:b])), len(known)) for a, b in pairwise(starts)]
    return np.array(each, dtype=np.int64)


def _of_all_documents(judged: Judged, measure: Measure, depth: int | None, possible: Bools) -> TiedList:
    """Make every returned document a member, unlike any other."""
    reach = _reach(measure, depth)
    every, first, last = _all_tied(judged)
    kept = np.flatnonzero(first <= reach)
    starts = segment_starts(every.topic, len(judged))
    hit = np.full(len(every.rank), -1, dtype=np.int64)
    hit[starts[judged.topic] + judged.rank - 1] = np.arange(len(judged.rank))
    return TiedList(
        judged=_cut_to(judged, reach),
        measure=measure,
        properties=_properties(judged, measure, depth, reach),
        depth=reach,
        topic=every.topic[kept],
        rank=every.rank[kept],
        first=first[kept],
        last=last[kept],
        alike=np.arange(len(kept)),
        hit=hit[kept],
        doc=every.doc.take(kept),
        possible=possible,
    )


def _all_tied(judged: Judged) -> tuple[Returned, Ints, Ints]:
    """Give every returned document, and the first and last rank of those with its score."""
    if judged.shown is None:
        return all_tied(judged.run, judged.query_ids, judged.ranking)
    every, first, last = judged.shown, judged.shown.rank.copy(), judged.shown.rank.copy()
    size = judged.tie_last - judged.tie_first + 1  # of such a list only the ties of judged documents are known
    begin = segment_starts(every.topic, len(judged))[judged.topic] + judged.tie_first - 1
    at = np.repeat(begin - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))
    first[at], last[at] = np.repeat(judged.tie_first, size), np.repeat(judged.tie_last, size)
    return every, first, last


def relevant_members(tied: TiedList, rel: float) -> Bools:
    """Mark the members that are relevant: (M,)."""
    return tied.judged.relevant(rel)[tied.hit]


def relevant_groups(tied: TiedList, rel: float) -> tuple[Groups, Ints, Ints]:
    """Give the groups with something relevant, how much each has, and how much stands above it in its topic."""
    groups, relevant = tied.groups, relevant_members(tied, rel)
    count = _totals(relevant.astype(np.int64), groups.start)
    above = (running_count(relevant, tied.topic, tied.starts) - relevant)[groups.start] if len(count) else count
    kept = np.flatnonzero(count)
    return groups.some(kept), count[kept], above[kept]
