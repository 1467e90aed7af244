"""Judged lists with grades for unjudged documents: every returned document becomes a hit and a judged pair."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.qrels import Qrels
from judged.results.types import cached_property
from judged.scoring.judging.align import ReturnedDocs
from judged.scoring.judging.judged import gather_segments, repeat_docs
from judged.scoring.judging.ranking import segment_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import Judged


_COLUMNS = ["query_id", "doc_id", "relevance"]


@dataclass(frozen=True, eq=False)
class CompletedList:
    """A list in which each unjudged returned document is judged provisionally: its judgment is "open"."""

    judged: Judged  # the list, with grade 0 for each open judgment
    open_hits: Ints  # (U,): positions of the open documents among its hits

    @cached_property
    def starts(self) -> Ints:
        """Position of each topic's first open document in `open_hits`, and the number of all; (T + 1,)."""
        return segment_starts(self.judged.topic[self.open_hits], len(self.judged))

    @cached_property
    def counts(self) -> Ints:
        """Number of open documents of each topic; (T,)."""
        return np.diff(self.starts)

    @cached_property
    def label_starts(self) -> Ints:
        """Position of each topic's first judged pair, and the number of pairs; (T + 1,)."""
        return segment_starts(self.judged.label_topic, len(self.judged))

    def with_grades(self, topics: Ints, grades: Floats, label_grades: Floats | None = None) -> Judged:
        """Build one variant of a topic per entry of `topics`, in which the open documents have these grades."""
        # `grades`: (N,): grades of the open documents of these topics, in rank order, one variant after the other.
        # `label_grades`: (N,): grades in the judgments, and so in the ideal ranking and R; None: the same grades.
        judged, label_grades = self.judged, grades if label_grades is None else label_grades
        hits, labels = np.diff(judged.starts)[topics], np.diff(self.label_starts)[topics]
        first_label = np.cumsum(labels) - labels
        rank, row = np.empty(hits.sum(), dtype=np.int64), np.empty(hits.sum(), dtype=np.int64)
        grade, label_grade = np.empty(hits.sum()), np.empty(labels.sum())
        label_row = np.empty(labels.sum(), dtype=np.int64)
        hit_stop = label_stop = grade_stop = 0
        for first, stop in _equal_stretches(topics):  # copying many variants of one topic is faster than gathering
            topic, count = topics[first], stop - first
            topic_hits = slice(judged.starts[topic], judged.starts[topic + 1])
            pairs = slice(self.label_starts[topic], self.label_starts[topic + 1])
            open_hits = self.open_hits[self.starts[topic] : self.starts[topic + 1]]
            cells = slice(grade_stop, grade_stop := grade_stop + count * len(open_hits))
            shape = (count, topic_hits.stop - topic_hits.start)
            part = slice(hit_stop, hit_stop := hit_stop + shape[0] * shape[1])
            rank[part].reshape(shape)[:] = judged.rank[topic_hits]
            row[part].reshape(shape)[:] = judged.row[topic_hits] - pairs.start + first_label[first:stop, np.newaxis]
            matrix = grade[part].reshape(shape)
            matrix[:] = judged.grade[topic_hits]
            matrix[:, open_hits - topic_hits.start] = grades[cells].reshape(count, -1)
            shape = (count, pairs.stop - pairs.start)
            part = slice(label_stop, label_stop := label_stop + shape[0] * shape[1])
            label_row[part].reshape(shape)[:] = judged.label_row[pairs]
            matrix = label_grade[part].reshape(shape)
            matrix[:] = judged.label_grade[pairs]
            matrix[:, judged.row[open_hits] - pairs.start] = label_grades[cells].reshape(count, -1)
        variants = np.arange(len(topics))
        return replace(
            judged,
            **judged.topic_columns(topics),
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
            stored_docs=(None if judged.stored_docs is None else repeat_docs(judged.stored_docs, len(judged), topics)),
        )


def _equal_stretches(topics: Ints) -> Iterator[tuple[int, int]]:
    """Return the start and stop of each stretch of equal values."""
    edges = np.flatnonzero(np.diff(topics, prepend=-1)).tolist()
    return itertools.pairwise([*edges, len(topics)])


def complete_judgments(judged: Judged) -> CompletedList:
    """Judge every unjudged returned document with grade 0, so that it is a hit and a judged pair.

    >>> from judged.scoring.judging import judge_list
    >>> completed = complete_judgments(judge_list([2, None], missing=[1]))
    >>> completed.open_hits.tolist(), completed.judged.grade.tolist(), completed.judged.label_grade.tolist()
    ([1], [2.0, 0.0], [2.0, 1.0, 0.0])
    >>> variants = completed.with_grades(np.array([0, 0]), np.array([1.0, 3.0]))
    >>> variants.ideal.grade.tolist()
    [2.0, 1.0, 1.0, 3.0, 2.0, 1.0]
    """
    # With `judged.stored_docs`, the new pairs are also added to the qrels. Without, they have no document ids, which is
    # enough for measures that use grades only. Scores and ties are unknown (NaN) in either case.
    topic, rank = find_unjudged(judged)
    pairs, new = len(judged.label_topic), np.arange(len(topic))
    label_topic = np.concatenate((judged.label_topic, topic))
    label_order = np.argsort(label_topic, kind="stable")
    position = np.empty_like(label_order)
    position[label_order] = np.arange(len(label_order))
    hit_topic, hit_rank = np.concatenate((judged.topic, topic)), np.concatenate((judged.rank, rank))
    order = np.lexsort((hit_rank, hit_topic))
    zeros = np.zeros(len(topic))
    completed = replace(
        judged,
        topic=hit_topic[order],
        rank=hit_rank[order],
        grade=np.concatenate((judged.grade, zeros))[order],
        row=position[np.concatenate((judged.row, pairs + new))[order]],
        score=np.full(len(order), np.nan),
        tie_first=hit_rank[order],
        tie_last=hit_rank[order],
        label_topic=label_topic[label_order],
        label_grade=np.concatenate((judged.label_grade, zeros))[label_order],
        label_row=np.concatenate((judged.label_row, len(judged.qrels.index.topic) + new))[label_order],
    )
    hits = np.flatnonzero(order >= len(judged.topic))
    return CompletedList(completed if judged.stored_docs is None else _add_to_qrels(completed, hits), hits)


def find_unjudged(judged: Judged) -> tuple[Ints, Ints]:
    """Return the topic and rank of every returned document that has no judgment: (U,) each.

    >>> from judged.scoring.judging import judge_list
    >>> [column.tolist() for column in find_unjudged(judge_list([None, 1, -1, None]))]
    [[0, 0], [1, 4]]
    """
    begins = np.concatenate(([0], np.cumsum(judged.returned)))
    is_unjudged = np.ones(begins[-1], dtype=np.bool_)
    is_unjudged[begins[judged.topic] + judged.rank - 1] = False
    position = np.flatnonzero(is_unjudged)
    topic = np.repeat(np.arange(len(judged)), judged.returned)[position]
    return topic, position - begins[topic] + 1


def _add_to_qrels(judged: Judged, hits: Ints) -> Judged:
    """Add the judgments of hits to the qrels, for measures that look up documents by id."""
    docs, index, qrels = judged.returned_docs, judged.qrels.index, judged.qrels
    position = segment_starts(docs.topic, len(judged))[judged.topic[hits]] + judged.rank[hits] - 1
    topics = [judged.query_ids[code] for code in judged.topic[hits].tolist()]
    new = pa.table([pa.array(topics, pa.string()), docs.doc.take(position), np.zeros(len(hits))], names=_COLUMNS)
    old = qrels.table.select(_COLUMNS)
    qrels = Qrels(pa.concat_tables([old, new.cast(old.schema)]), qrels.name, qrels.where, origin=qrels.origin)
    names = [*index.row_names, *new["doc_id"].to_pylist()]
    codes = np.array([qrels.index.codes.get(query_id, -1) for query_id in judged.query_ids], dtype=np.int64)
    label_docs = pa.array([names[row] for row in judged.label_row.tolist()], pa.string())
    return replace(judged, qrels=qrels, label_row=qrels.index.rows_of(codes[judged.label_topic], label_docs))


def remove_judgments(judged: Judged, removed: Bools) -> Judged:
    """Remove judgments: their documents become unjudged, and the topics stay.

    >>> from judged.scoring.judging import judge_list
    >>> j = remove_judgments(judge_list([2, 0, 1], missing=[3]), np.array([True, False, False, False]))
    >>> j.rank.tolist(), j.grade.tolist(), j.ideal.grade.tolist()
    ([2, 3], [0.0, 1.0], [3.0, 1.0, 0.0])
    """
    # `removed`: (P,): mask of the pairs of `judged.qrels.index`. The qrels do not change, so that ids can be looked up.
    return select_labels(judged, ~removed[judged.label_row])


def select_labels(judged: Judged, selected: Bools) -> Judged:
    """Select judged pairs by a mask of (L,), and the hits that have them."""
    labels = np.flatnonzero(selected)
    new_row = np.full(len(judged.label_row), -1, dtype=np.int64)
    new_row[labels] = np.arange(len(labels))
    row = new_row[judged.row]
    hits = np.flatnonzero(row >= 0)
    return replace(judged, **judged.hit_columns(hits, row=row[hits]), **judged.label_columns(labels))


def repeat_topics(judged: Judged, topics: Ints) -> Judged:
    """Return a list whose topics are copies of these topics, in this order: (V,).

    >>> from judged.scoring.judging import judge_list
    >>> j = repeat_topics(judge_list([3, None, 1]), np.array([0, 0]))
    >>> j.query_ids, j.topic.tolist(), j.rank.tolist()
    (('list', 'list'), [0, 0, 1, 1], [1, 3, 1, 3])
    """
    # A measure scores V variants of a topic at once, as it scores V topics.
    label_starts = segment_starts(judged.label_topic, len(judged))
    hit, topic = gather_segments(judged.starts, topics)
    label, label_topic = gather_segments(label_starts, topics)
    first_label = np.concatenate(([0], np.cumsum(np.diff(label_starts)[topics])))[:-1]
    row = judged.row[hit] - label_starts[judged.topic[hit]] + first_label[topic]
    return replace(
        judged,
        **judged.topic_columns(topics),
        **judged.hit_columns(hit, topic=topic, row=row),
        **judged.label_columns(label, label_topic=label_topic),
        stored_docs=None if judged.stored_docs is None else repeat_docs(judged.stored_docs, len(judged), topics),
    )


def replace_ranks(judged: Judged, rank: Ints) -> Judged:
    """Assign another rank to each hit: (H,). Hits below the depth of the ranking are removed.

    >>> from judged.scoring.judging import judge_list
    >>> j = replace_ranks(judge_list([3, None, 1]), np.array([2, 1]))
    >>> j.rank.tolist(), j.grade.tolist()
    ([1, 2], [1.0, 3.0])
    """
    hits = np.flatnonzero(rank <= (judged.ranking.depth or np.iinfo(np.int64).max))
    order = hits[np.lexsort((rank[hits], judged.topic[hits]))]
    return replace(judged, **judged.hit_columns(order, rank=rank[order]))


def truncate(judged: Judged, depth: int) -> Judged:
    """Truncate the ranking of each topic to its first documents.

    >>> from judged.scoring.judging import judge_list
    >>> j = truncate(judge_list([3, None, 1]), 2)
    >>> j.rank.tolist(), j.returned.tolist()
    ([1], [2])
    """
    ranking = replace(judged.ranking, depth=min(depth, judged.ranking.depth or depth))
    returned = np.minimum(judged.returned, depth)
    extra = np.minimum(judged.extra_returned, depth)
    docs = judged.stored_docs
    if docs is not None:
        rows = np.flatnonzero(docs.rank <= depth)
        docs = ReturnedDocs(docs.topic[rows], docs.rank[rows], docs.doc.take(rows))
    truncated = replace(judged, ranking=ranking, returned=returned, extra_returned=extra, stored_docs=docs)
    return replace_ranks(truncated, judged.rank)
