"""Variants of judged lists: copies of topics, each with its documents in another order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.dense import Returned
from judged.scoring.judging.segments import segment_starts

if TYPE_CHECKING:
    from judged._types import Ints
    from judged.scoring.judging.judged import Judged


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
