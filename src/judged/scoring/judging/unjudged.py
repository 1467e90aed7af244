"""Judged lists whose unjudged documents are given grades: every returned document becomes a hit and a judged pair."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.results.types import cached_property
from judged.scoring.judging.align import Returned
from judged.scoring.judging.judged import gathered, shown_again
from judged.scoring.judging.ranking import segment_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import Judged


_COLUMNS = ["query_id", "doc_id", "relevance"]


@dataclass(frozen=True, eq=False)
class Open:
    """A list of which every returned document is judged, and which of these judgments are open."""

    full: Judged  # the list, with grade 0 for what is open
    hits: Ints  # (U,): the positions of the open documents among its hits

    @cached_property
    def starts(self) -> Ints:
        """Where the open documents of each topic begin; (T + 1,)."""
        return segment_starts(self.full.topic[self.hits], len(self.full))

    @cached_property
    def counts(self) -> Ints:
        """How many documents of each topic are open; (T,)."""
        return np.diff(self.starts)

    @cached_property
    def label_starts(self) -> Ints:
        """Where the judged pairs of each topic begin; (T + 1,)."""
        return segment_starts(self.full.label_topic, len(self.full))

    def graded(self, topics: Ints, grades: Floats, known: Floats | None = None) -> Judged:
        """Make variants of topics, one for each entry, whose open documents have these grades."""
        # `grades`: (N,): the grades of the open documents of these topics, in rank order, one variant after the other.
        # `known`: (N,): what the judgments, and so the ideal and R, take for these grades; the same for None.
        full, known = self.full, grades if known is None else known
        hits, labels = np.diff(full.starts)[topics], np.diff(self.label_starts)[topics]
        first_label = np.cumsum(labels) - labels
        rank, row = np.empty(hits.sum(), dtype=np.int64), np.empty(hits.sum(), dtype=np.int64)
        grade, label_grade = np.empty(hits.sum()), np.empty(labels.sum())
        label_row = np.empty(labels.sum(), dtype=np.int64)
        hit_at = label_at = open_at = 0
        for first, behind in _alike(topics):  # many variants of one topic are copied much faster than gathered
            one, count = topics[first], behind - first
            own = slice(full.starts[one], full.starts[one + 1])
            pairs = slice(self.label_starts[one], self.label_starts[one + 1])
            opened_hits = self.hits[self.starts[one] : self.starts[one + 1]]
            cells = slice(open_at, open_at := open_at + count * len(opened_hits))
            shape = (count, own.stop - own.start)
            part = slice(hit_at, hit_at := hit_at + shape[0] * shape[1])
            rank[part].reshape(shape)[:] = full.rank[own]
            row[part].reshape(shape)[:] = full.row[own] - pairs.start + first_label[first:behind, np.newaxis]
            dense = grade[part].reshape(shape)
            dense[:] = full.grade[own]
            dense[:, opened_hits - own.start] = grades[cells].reshape(count, -1)
            shape = (count, pairs.stop - pairs.start)
            part = slice(label_at, label_at := label_at + shape[0] * shape[1])
            label_row[part].reshape(shape)[:] = full.label_row[pairs]
            dense = label_grade[part].reshape(shape)
            dense[:] = full.label_grade[pairs]
            dense[:, full.row[opened_hits] - pairs.start] = known[cells].reshape(count, -1)
        variants = np.arange(len(topics))
        return replace(
            full,
            **full.topics_at(topics),
            topic=np.repeat(variants, hits),
            rank=rank,
            grade=grade,
            row=row,
            score=np.broadcast_to(np.nan, len(rank)),
            tie_first=rank,
            tie_last=rank,
            label_topic=np.repeat(variants, labels),
            label_grade=label_grade,
            label_row=label_row,
            shown=None if full.shown is None else shown_again(full.shown, len(full), topics),
        )


def _alike(topics: Ints) -> Iterator[tuple[int, int]]:
    """Give where each stretch of one topic begins and ends."""
    edges = np.flatnonzero(np.diff(topics, prepend=-1)).tolist()
    return itertools.pairwise([*edges, len(topics)])


def opened(judged: Judged) -> Open:
    """Give every unjudged returned document the grade 0, as a hit and as a judged pair.

    >>> from judged.scoring.judging import judge_list
    >>> found = opened(judge_list([2, None], missing=[1]))
    >>> found.hits.tolist(), found.full.grade.tolist(), found.full.label_grade.tolist()
    ([1], [2.0, 0.0], [2.0, 1.0, 0.0])
    >>> many = found.graded(np.array([0, 0]), np.array([1.0, 3.0]))
    >>> many.ideal.grade.tolist()
    [2.0, 1.0, 1.0, 3.0, 2.0, 1.0]
    """
    # Where every returned document is at hand (`judged.shown`), the qrels hold these pairs too. Where not, the new
    # pairs have no names: this serves the measures that look at grades alone. Nothing of scores and ties is known.
    topic, rank = unjudged(judged)
    known, new = len(judged.label_topic), np.arange(len(topic))
    label_topic = np.concatenate((judged.label_topic, topic))
    label_order = np.argsort(label_topic, kind="stable")
    place = np.empty_like(label_order)
    place[label_order] = np.arange(len(label_order))
    hit_topic, hit_rank = np.concatenate((judged.topic, topic)), np.concatenate((judged.rank, rank))
    order = np.lexsort((hit_rank, hit_topic))
    nothing = np.zeros(len(topic))
    full = replace(
        judged,
        topic=hit_topic[order],
        rank=hit_rank[order],
        grade=np.concatenate((judged.grade, nothing))[order],
        row=place[np.concatenate((judged.row, known + new))[order]],
        score=np.full(len(order), np.nan),
        tie_first=hit_rank[order],
        tie_last=hit_rank[order],
        label_topic=label_topic[label_order],
        label_grade=np.concatenate((judged.label_grade, nothing))[label_order],
        label_row=np.concatenate((judged.label_row, len(judged.qrels.index.topic) + new))[label_order],
    )
    hits = np.flatnonzero(order >= len(judged.topic))
    return Open(full if judged.shown is None else _named(full, hits), hits)


def unjudged(judged: Judged) -> tuple[Ints, Ints]:
    """Give the topic and rank of every returned document that has no judgment: (U,) each.

    >>> from judged.scoring.judging import judge_list
    >>> [found.tolist() for found in unjudged(judge_list([None, 1, -1, None]))]
    [[0, 0], [1, 4]]
    """
    begins = np.concatenate(([0], np.cumsum(judged.returned)))
    is_open = np.ones(begins[-1], dtype=np.bool_)
    is_open[begins[judged.topic] + judged.rank - 1] = False
    at = np.flatnonzero(is_open)
    topic = np.repeat(np.arange(len(judged)), judged.returned)[at]
    return topic, at - begins[topic] + 1


def _named(full: Judged, hits: Ints) -> Judged:
    """Put the open documents into the qrels, for measures that look at the names of the judged pairs."""
    every, index = full.everything, full.qrels.index
    place = segment_starts(every.topic, len(full))[full.topic[hits]] + full.rank[hits] - 1
    new_topics = [full.query_ids[code] for code in full.topic[hits].tolist()]
    new = pa.table([pa.array(new_topics, pa.string()), every.doc.take(place), np.zeros(len(hits))], names=_COLUMNS)
    old = full.qrels.table.select(_COLUMNS)
    whole = full.qrels
    qrels = Qrels(pa.concat_tables([old, new.cast(old.schema)]), whole.name, whole.where, origin=whole.origin)
    names = [*index.row_names, *new["doc_id"].to_pylist()]
    codes = np.array([qrels.index.codes.get(name, -1) for name in full.query_ids], dtype=np.int64)
    docs = pa.array([names[row] for row in full.label_row.tolist()], pa.string())
    return replace(full, qrels=qrels, label_row=qrels.index.rows_of(codes[full.label_topic], docs))


def withdrawn(judged: Judged, gone: Bools) -> Judged:
    """Take judgments away: these documents become unjudged, and the topics stay.

    >>> from judged.scoring.judging import judge_list
    >>> found = withdrawn(judge_list([2, 0, 1], missing=[3]), np.array([True, False, False, False]))
    >>> found.rank.tolist(), found.grade.tolist(), found.ideal.grade.tolist()
    ([2, 3], [0.0, 1.0], [3.0, 1.0, 0.0])
    """
    # `gone`: (P,): marks pairs of `judged.qrels.index`. The qrels themselves stay as they are, for looking up names.
    return keeping(judged, ~gone[judged.label_row])


def keeping(judged: Judged, kept: Bools) -> Judged:
    """Keep some labels of the list, and the hits that have them."""
    # `kept`: one a label of the list.
    labels = np.flatnonzero(kept)
    new_row = np.full(len(judged.label_row), -1, dtype=np.int64)
    new_row[labels] = np.arange(len(labels))
    row = new_row[judged.row]
    hits = np.flatnonzero(row >= 0)
    return replace(judged, **judged.hits_at(hits, row=row[hits]), **judged.labels_at(labels))


def copies(judged: Judged, topics: Ints) -> Judged:
    """Make a list whose topics are copies of these topics, one for each entry, in this order: (V,).

    >>> from judged.scoring.judging import judge_list
    >>> j = copies(judge_list([3, None, 1]), np.array([0, 0]))
    >>> j.query_ids, j.topic.tolist(), j.rank.tolist()
    (('list', 'list'), [0, 0, 1, 1], [1, 3, 1, 3])
    """
    # A measure scores V variants of a topic at once, as it scores V topics.
    label_starts = segment_starts(judged.label_topic, len(judged))
    hit, topic = gathered(judged.starts, topics)
    label, label_topic = gathered(label_starts, topics)
    first_label = np.concatenate(([0], np.cumsum(np.diff(label_starts)[topics])))[:-1]
    row = judged.row[hit] - label_starts[judged.topic[hit]] + first_label[topic]
    return replace(
        judged,
        **judged.topics_at(topics),
        **judged.hits_at(hit, topic=topic, row=row),
        **judged.labels_at(label, label_topic=label_topic),
        shown=None if judged.shown is None else shown_again(judged.shown, len(judged), topics),
    )


def reranked(judged: Judged, rank: Ints) -> Judged:
    """Give each hit another rank: (H,). Those beyond the depth of the ranking are left out.

    >>> from judged.scoring.judging import judge_list
    >>> j = reranked(judge_list([3, None, 1]), np.array([2, 1]))
    >>> j.rank.tolist(), j.grade.tolist()
    ([1, 2], [1.0, 3.0])
    """
    kept = np.flatnonzero(rank <= (judged.ranking.depth or np.iinfo(np.int64).max))
    order = kept[np.lexsort((rank[kept], judged.topic[kept]))]
    return replace(judged, **judged.hits_at(order, rank=rank[order]))


def cut(judged: Judged, depth: int) -> Judged:
    """Leave the first documents of each topic, as if the run ended there.

    >>> from judged.scoring.judging import judge_list
    >>> j = cut(judge_list([3, None, 1]), 2)
    >>> j.rank.tolist(), j.returned.tolist()
    ([1], [2])
    """
    ranking = replace(judged.ranking, depth=min(depth, judged.ranking.depth or depth))
    returned = np.minimum(judged.returned, depth)
    extra = np.minimum(judged.extra_returned, depth)
    shown = judged.shown
    if shown is not None:
        above = np.flatnonzero(shown.rank <= depth)
        shown = Returned(shown.topic[above], shown.rank[above], shown.doc.take(above))
    shorter = replace(judged, ranking=ranking, returned=returned, extra_returned=extra, shown=shown)
    return reranked(shorter, judged.rank)
