"""Asking the measure: variants of many topics at once, in blocks that memory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.dense import Returned
from judged.scoring.judging.segments import segment_starts
from judged.scoring.judging.variants import placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged._types import Floats, Ints
    from judged.scoring.uncertainty.groups import TiedList
    from judged.scoring.uncertainty.orders import Orders

_ROWS = 1 << 20  # hits and judged pairs of one block: some hundred megabytes


def scores_of(tied: TiedList, topics: Ints, variant: Ints, member: Ints, rank: Ints) -> Floats:
    """Score variants of topics, (V,), in which members stand at ranks: (N,) each, variants rising. Gives (V,)."""
    scores = np.empty(len(topics))
    begins = segment_starts(variant, len(topics))
    labels = np.diff(segment_starts(tied.judged.label_topic, len(tied.judged)))
    cost = np.cumsum(np.diff(begins) + labels[topics] + 1)
    first = 0
    while first < len(topics):
        spent = cost[first - 1] if first else 0
        behind = max(first + 1, int(np.searchsorted(cost, spent + _ROWS, side="right")))
        rows = slice(begins[first], begins[behind])
        scores[first:behind] = _scores(tied, topics[first:behind], variant[rows] - first, member[rows], rank[rows])
        first = behind
    return scores


def _scores(tied: TiedList, topics: Ints, variant: Ints, member: Ints, rank: Ints) -> Floats:
    above = np.flatnonzero(rank <= tied.depth)
    variant, member, rank = variant[above], member[above], rank[above]
    shown = None
    if tied.doc is not None:
        order = np.lexsort((rank, variant))
        shown = Returned(variant[order], rank[order], tied.doc.take(member[order]))
    hits = np.flatnonzero(tied.hit[member] >= 0)
    made = placed(tied.judged, topics, variant[hits], tied.hit[member[hits]], rank[hits], shown)
    return tied.measure(made)


def scores_in_order(tied: TiedList, value: Floats) -> Floats:
    """Score each open topic with the tied documents ordered by a value, (M,), falling; an unjudged one has 0."""
    groups, topics = tied.open_groups, tied.open_topics
    lengths = groups.stop - groups.start
    group = np.repeat(np.arange(len(lengths)), lengths)
    offset = np.repeat(np.cumsum(lengths) - lengths, lengths)
    members = groups.start[group] + np.arange(len(group)) - offset
    members = members[np.lexsort((-value[members], group))]
    place = np.arange(len(group)) - offset
    place += np.where(value[members] < 0, groups.size[group] - lengths[group], 0)
    rank = tied.rank.copy()
    rank[members] = groups.first[group] + place
    used = np.flatnonzero(np.isin(tied.topic, topics))
    return scores_of(tied, topics, np.searchsorted(topics, tied.topic[used]), used, rank[used])


def scores_of_orders(tied: TiedList, orders: Iterable[Orders]) -> Iterator[tuple[Orders, Floats]]:
    """Score every order of every topic: (N,) for each."""
    waiting: list[Orders] = []
    blocks: list[tuple[int, Ints]] = []
    done: list[Floats] = []
    rows = 0
    labels = np.diff(segment_starts(tied.judged.label_topic, len(tied.judged)))
    for one in orders:
        width = int(tied.starts[one.topic + 1] - tied.starts[one.topic])
        step = max(1, _ROWS // (width + int(labels[one.topic]) + 1))
        waiting.append(one)
        for low in range(0, one.count, step):
            ranks = one.ranks(tied, low, min(low + step, one.count))
            blocks.append((one.topic, ranks))
            rows += len(ranks) * (width + int(labels[one.topic]) + 1)
            if rows >= _ROWS:
                done.append(_scores_of_blocks(tied, blocks))
                blocks, rows = [], 0
        if done:  # few topics wait at a time
            if blocks:
                done.append(_scores_of_blocks(tied, blocks))
            yield from _handed_out(waiting, done)
            waiting, done, blocks, rows = [], [], [], 0
    if blocks:
        done.append(_scores_of_blocks(tied, blocks))
    yield from _handed_out(waiting, done)


def _scores_of_blocks(tied: TiedList, blocks: list[tuple[int, Ints]]) -> Floats:
    counts = [len(ranks) for _, ranks in blocks]
    topics = np.repeat([topic for topic, _ in blocks], counts)
    widths = np.repeat([ranks.shape[1] for _, ranks in blocks], counts)
    variant = np.repeat(np.arange(len(topics)), widths)
    member = np.concatenate(
        [np.tile(np.arange(tied.starts[topic], tied.starts[topic + 1]), len(ranks)) for topic, ranks in blocks]
    )
    return scores_of(tied, topics, variant, member, np.concatenate([ranks.ravel() for _, ranks in blocks]))


def _handed_out(orders: list[Orders], scores: list[Floats]) -> Iterator[tuple[Orders, Floats]]:
    together, begin = np.concatenate(scores) if scores else np.zeros(0), 0
    for one in orders:
        yield one, together[begin : begin + one.count]
        begin += one.count
