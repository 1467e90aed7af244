"""Orders of tied documents: all, a random sample, or one per number of relevant documents, represented by ranks."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.scoring.judging.align import ReturnedDocs
from judged.scoring.judging.judged import place_hits
from judged.scoring.judging.ranking import segment_starts, segment_sum
from judged.scoring.uncertainty.closed_forms import hypergeometric
from judged.scoring.uncertainty.groups import relevant_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.uncertainty.groups import TiedList


_ROWS = 1 << 20  # hits and judged pairs of the variants scored in one call: some hundred megabytes


def score_variants(tied: TiedList, topics: Ints, variant: Ints, member: Ints, rank: Ints) -> Floats:
    """Score variants of topics, (V,), from triples of variant (ascending), member and rank: (N,) each."""
    scores = np.empty(len(topics))
    starts = segment_starts(variant, len(topics))
    labels = np.diff(segment_starts(tied.judged.label_topic, len(tied.judged)))
    cost = np.cumsum(np.diff(starts) + labels[topics] + 1)
    first = 0
    while first < len(topics):
        spent = cost[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(cost, spent + _ROWS, side="right")))
        rows = slice(starts[first], starts[stop])
        scores[first:stop] = _score_block(tied, topics[first:stop], variant[rows] - first, member[rows], rank[rows])
        first = stop
    return scores


def _score_block(tied: TiedList, topics: Ints, variant: Ints, member: Ints, rank: Ints) -> Floats:
    above = np.flatnonzero(rank <= tied.depth)
    variant, member, rank = variant[above], member[above], rank[above]
    stored_docs = None
    if tied.doc is not None:
        order = np.lexsort((rank, variant))
        stored_docs = ReturnedDocs(variant[order], rank[order], tied.doc.take(member[order]))
    hits = np.flatnonzero(tied.hit[member] >= 0)
    variants = place_hits(tied.judged, topics, variant[hits], tied.hit[member[hits]], rank[hits], stored_docs)
    return tied.measure(variants)


def score_sorted(tied: TiedList, value: Floats) -> Floats:
    """Score each open topic with tied documents sorted by descending value, (M,); unjudged documents have value 0."""
    groups, topics = tied.open_groups, tied.open_topics
    lengths = groups.stop - groups.start
    group = np.repeat(np.arange(len(lengths)), lengths)
    offset = np.repeat(np.cumsum(lengths) - lengths, lengths)
    members = groups.start[group] + np.arange(len(group)) - offset
    members = members[np.lexsort((-value[members], group))]
    position = np.arange(len(group)) - offset
    position += np.where(value[members] < 0, groups.size[group] - lengths[group], 0)  # below the unjudged
    rank = tied.rank.copy()
    rank[members] = groups.first[group] + position
    scored = np.flatnonzero(np.isin(tied.topic, topics))
    return score_variants(tied, topics, np.searchsorted(topics, tied.topic[scored]), scored, rank[scored])


def score_orders(tied: TiedList, orders_by_topic: Iterable[TopicOrders]) -> Iterator[tuple[TopicOrders, Floats]]:
    """Yield the scores of all orders of each topic: (N,)."""
    # Orders are collected until a call of the measure is worth it; then the topics collected so far are yielded.
    pending: list[TopicOrders] = []
    blocks: list[tuple[int, Ints]] = []
    scores: list[Floats] = []
    rows = 0
    labels = np.diff(segment_starts(tied.judged.label_topic, len(tied.judged)))
    for orders in orders_by_topic:
        width = int(tied.starts[orders.topic + 1] - tied.starts[orders.topic])
        step = max(1, _ROWS // (width + int(labels[orders.topic]) + 1))
        pending.append(orders)
        for low in range(0, orders.count, step):
            ranks = orders.ranks(tied, low, min(low + step, orders.count))
            blocks.append((orders.topic, ranks))
            rows += len(ranks) * (width + int(labels[orders.topic]) + 1)
            if rows >= _ROWS:
                scores.append(_score_blocks(tied, blocks))
                blocks, rows = [], 0
        if scores:
            if blocks:
                scores.append(_score_blocks(tied, blocks))
            yield from _split_scores(pending, scores)
            pending, scores, blocks, rows = [], [], [], 0
    if blocks:
        scores.append(_score_blocks(tied, blocks))
    yield from _split_scores(pending, scores)


def _score_blocks(tied: TiedList, blocks: list[tuple[int, Ints]]) -> Floats:
    counts = [len(ranks) for _, ranks in blocks]
    topics = np.repeat([topic for topic, _ in blocks], counts)
    widths = np.repeat([ranks.shape[1] for _, ranks in blocks], counts)
    variant = np.repeat(np.arange(len(topics)), widths)
    member = np.concatenate(
        [np.tile(np.arange(tied.starts[topic], tied.starts[topic + 1]), len(ranks)) for topic, ranks in blocks]
    )
    return score_variants(tied, topics, variant, member, np.concatenate([ranks.ravel() for _, ranks in blocks]))


def _split_scores(pending: list[TopicOrders], blocks: list[Floats]) -> Iterator[tuple[TopicOrders, Floats]]:
    scores, begin = np.concatenate(blocks) if blocks else np.zeros(0), 0
    for orders in pending:
        yield orders, scores[begin : begin + orders.count]
        begin += orders.count


Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.int32 | np.int64]]"
NO_RANK = int(np.iinfo(np.int64).max)
"""Rank of a document below the depth."""


class GroupPositions(NamedTuple):
    """Positions of the members of a group in each arrangement of the group."""

    members: Ints  # positions in the tied list
    first: int  # rank of the first document of the group
    positions: Positions  # (A, n): position of each member in the group, from 0; -1 below the depth
    # number of successive orders of the topic with the same arrangement; 0 if order and arrangement have the same index
    stride: int


@dataclass(frozen=True, eq=False)
class TopicOrders:
    """Orders of the documents of one topic; N of them."""

    topic: int
    count: int
    weight: Floats  # (N,): probability of each; they sum to 1
    exact: bool  # whether these are all orders
    groups: tuple[GroupPositions, ...]  # the groups whose order changes

    def ranks(self, tied: TiedList, low: int, high: int) -> Ints:
        """Return the rank of each member of the topic in orders ``low`` to ``high``: (high - low, members)."""
        begin, end = tied.starts[self.topic], tied.starts[self.topic + 1]
        ranks = np.tile(tied.rank[begin:end], (high - low, 1))
        ranks[:, ~tied.fixed[begin:end]] = NO_RANK
        indices = np.arange(low, high)
        for group in self.groups:
            arrangement = indices // group.stride % len(group.positions) if group.stride else indices
            positions = group.positions[arrangement].astype(np.int64)
            ranks[:, group.members - begin] = np.where(positions < 0, NO_RANK, group.first + positions)
        return ranks


def all_orders(tied: TiedList, topic: int, limit: int) -> TopicOrders | None:
    """List the distinct orders of a topic's documents. Return None if there are more than `limit`."""
    groups, count = tied.open_groups, 1
    arranged: list[tuple[Ints, int, Positions]] = []
    weights: list[Floats] = []
    for group in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[group], groups.stop[group])
        members = members[np.argsort(tied.kind[members], kind="stable")]
        kinds = np.unique(tied.kind[members], return_counts=True)[1].tolist()
        size, inside = int(groups.size[group]), int(groups.inside[group])
        arrangements = _arrangements(tuple(kinds), size - len(members), inside, limit // count)
        if arrangements is None:
            return None
        arranged.append((members, int(groups.first[group]), arrangements[0]))
        weights.append(arrangements[1])
        count *= len(arrangements[1])
    weight, stride, group_positions = np.ones(1), count, list[GroupPositions]()
    for (members, first, positions), group_weight in zip(arranged, weights, strict=True):
        stride //= len(positions)
        group_positions.append(GroupPositions(members, first, positions, stride))
        weight = np.multiply.outer(weight, group_weight).ravel()
    return TopicOrders(topic, count, weight, True, tuple(group_positions))


@lru_cache(maxsize=16)
def _arrangements(kinds: tuple[int, ...], unjudged: int, inside: int, limit: int) -> tuple[Positions, Floats] | None:
    """Arrange documents, given the number of each kind, in the first positions of their group."""
    # The remaining documents are below the depth, where their order does not matter. Returns the position of each
    # document, kind by kind, -1 below the depth: (A, n); and the probability of each arrangement if all orders of the
    # documents are equally likely: (A,). None if there are more arrangements than the limit.
    counts = np.array([*kinds, unjudged], dtype=np.int64)
    size, judged, begin = int(counts.sum()), len(kinds), np.cumsum(counts) - counts
    remaining, positions = counts[np.newaxis], np.full((1, size - unjudged), -1, dtype=np.int32)
    weight = np.ones(1)
    if limit < 1:
        return None
    for position in range(inside):
        row, kind = np.nonzero(remaining)
        if len(row) > limit:
            return None
        weight = weight[row] * remaining[row, kind] / (size - position)
        remaining, positions = remaining[row], positions[row]
        judged_rows = np.flatnonzero(kind < judged)
        judged_kinds = kind[judged_rows]
        positions[judged_rows, (begin + counts)[judged_kinds] - remaining[judged_rows, judged_kinds]] = position
        remaining[np.arange(len(kind)), kind] -= 1
    for cached in (positions, weight):
        cached.flags.writeable = False
    return positions, weight


def sample_orders(tied: TiedList, topic: int, count: int, seed: int) -> TopicOrders:
    """Sample random orders of a topic's documents; the sample does not depend on the other topics."""
    rng = np.random.default_rng([seed, zlib.crc32(tied.judged.query_ids[topic].encode())])
    groups, group_positions = tied.open_groups, list[GroupPositions]()
    for group in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[group], groups.stop[group])
        size = int(groups.size[group])
        positions = rng.permuted(np.tile(np.arange(size, dtype=np.int32), (count, 1)), axis=1)[:, : len(members)]
        group_positions.append(GroupPositions(members, int(groups.first[group]), positions, 0))
    return TopicOrders(topic, count, np.full(count, 1.0 / count), False, tuple(group_positions))


def sorted_orders(tied: TiedList, topic: int, values: Floats) -> TopicOrders:
    """Sort a topic's documents by each row of values, descending: (N, its members); unjudged documents have 0."""
    groups, group_positions, begin = tied.open_groups, list[GroupPositions](), tied.starts[topic]
    for group in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[group], groups.stop[group])
        size = int(groups.size[group])
        positions = np.stack([sorted_positions(value, size) for value in values[:, members - begin]])
        group_positions.append(GroupPositions(members, int(groups.first[group]), positions, 0))
    return TopicOrders(topic, len(values), np.full(len(values), 1.0 / len(values)), False, tuple(group_positions))


def sorted_positions(values: Floats, size: int) -> Ints:
    """Return positions by descending value; unjudged documents have value 0 and follow judged ones with this value.

    >>> sorted_positions(np.array([-1.0, 2.0, 0.0]), size=5).tolist()
    [4, 0, 1]
    """
    order = np.argsort(-values, kind="stable")
    positions = np.empty(len(values), dtype=np.int64)
    positions[order] = np.arange(len(values))
    return np.where(values < 0, positions + size - len(values), positions)


SET_MEASURES = frozenset({"Success", "SetAP", "Accuracy", "Fallout"})
"""Names of measures that depend only on the number of relevant documents above the cutoff.

P, R and F do, too, but are computed as fast as additive measures.
"""


def orders_by_relevant_count(tied: TiedList) -> Iterator[TopicOrders]:
    """Yield one order per number of relevant documents above the cutoff, for topics with the cutoff in a group."""
    relevant = relevant_members(tied, getattr(tied.measure, "rel", 1.0))
    for topic in tied.open_topics.tolist():
        orders = _topic_orders_by_count(tied, topic, relevant)
        if orders is not None:
            yield orders


def _topic_orders_by_count(tied: TiedList, topic: int, relevant: Bools) -> TopicOrders | None:
    groups, group_positions, probabilities = tied.open_groups, list[GroupPositions](), None
    for group in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[group], groups.stop[group])
        positions = (tied.rank[members] - groups.first[group])[np.newaxis]
        if groups.inside[group] < groups.size[group]:
            size, inside = int(groups.size[group]), int(groups.inside[group])
            least, probabilities = hypergeometric(size, int(relevant[members].sum()), inside)
            counts = least + np.arange(len(probabilities))
            positions = np.stack([_positions_by_count(relevant[members], size, count) for count in counts.tolist()])
        group_positions.append(GroupPositions(members, int(groups.first[group]), positions, 1))
    if probabilities is None:
        return None
    return TopicOrders(topic, len(probabilities), probabilities, True, tuple(group_positions))


def _positions_by_count(relevant: Bools, size: int, above: int) -> Ints:
    """Place `above` relevant documents first, then the nonrelevant ones, and the other relevant ones last."""
    positions = np.empty(len(relevant), dtype=np.int64)
    count = int(relevant.sum())
    positions[relevant] = np.append(np.arange(above), np.arange(size - (count - above), size))
    positions[~relevant] = above + np.arange(len(relevant) - count)
    return positions


def additive_means(tied: TiedList) -> Floats:
    """Return the mean score of each open topic over all orders: one value per topic of ``open_topics``."""
    # On average, each document of a group of n adds 1/n of what it would add at all positions of the group. So one
    # variant has a document of one kind, with c documents in the group, at every position of its group, and the score
    # is multiplied by c/n. Groups with the same share c/n are combined in one variant.
    groups, topics = tied.open_groups, tied.open_topics
    group, member, count = _kinds(tied)
    divisor = np.gcd(count, groups.size[group])
    numerator, denominator = count // divisor, groups.size[group] // divisor
    ordinal = _ordinals(np.stack([group, numerator, denominator]))
    keys = np.stack([groups.topic[group], numerator, denominator, ordinal], axis=1)
    variants, variant_of_kind = np.unique(keys, axis=0, return_inverse=True)
    variant_of_kind = variant_of_kind.ravel()
    # For each open topic: its fixed documents, and an empty list; then the variants.
    variant_topics = np.concatenate([topics, topics, variants[:, 0]])
    fixed = np.flatnonzero(tied.fixed & np.isin(tied.topic, topics))
    lengths = groups.inside[group]
    kind = np.repeat(np.arange(len(group)), lengths)
    position = np.arange(len(kind)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    variant = np.concatenate([np.searchsorted(topics, tied.topic[fixed]), 2 * len(topics) + variant_of_kind[kind]])
    members = np.concatenate([fixed, member[kind]])
    ranks = np.concatenate([tied.rank[fixed], groups.first[group[kind]] + position])
    order = np.argsort(variant, kind="stable")
    scores = score_variants(tied, variant_topics, variant[order], members[order], ranks[order])
    base, empty, variant_scores = np.split(scores, [len(topics), 2 * len(topics)])
    topic = np.searchsorted(topics, variants[:, 0])
    shares = (variant_scores - empty[topic]) * variants[:, 1] / variants[:, 2]
    return base + segment_sum(shares, topic, len(topics))


def _kinds(tied: TiedList) -> tuple[Ints, Ints, Ints]:
    """List the kinds of documents of each open group: the group, a member of the kind, and the number of members."""
    groups = tied.open_groups
    lengths = groups.stop - groups.start
    group = np.repeat(np.arange(len(lengths)), lengths)
    members = np.repeat(groups.start - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(group))
    keys = group * (int(tied.kind.max(initial=0)) + 1) + tied.kind[members]
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    return group[first], members[first], count


def _ordinals(keys: Ints) -> Ints:
    """Number equal columns from 0."""
    order = np.lexsort(keys)
    begins = np.append(True, (np.diff(keys[:, order], axis=1) != 0).any(axis=0))[: len(order)]
    start = np.flatnonzero(begins)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - start[np.cumsum(begins) - 1]
    return numbers


def additive_gains(tied: TiedList) -> Floats:
    """Return what each member of an open topic adds at the first rank minus what it adds at the last rank: (M,)."""
    # If a document adds the product of its gain and the weight of its rank, sorting by this difference is optimal.
    keys = tied.topic * (int(tied.kind.max(initial=0)) + 1) + tied.kind
    members = np.flatnonzero(np.isin(tied.topic, tied.open_topics))
    _, first, kind = np.unique(keys[members], return_index=True, return_inverse=True)
    examples = members[first]  # one member per kind
    topics = np.repeat(tied.topic[examples], 2)
    end = tied.last[np.maximum(tied.starts[tied.topic[examples] + 1] - 1, 0)]
    ranks = np.stack([np.ones(len(examples), dtype=np.int64), end], axis=1).ravel()
    scores = score_variants(tied, topics, np.arange(len(topics)), np.repeat(examples, 2), ranks)
    gains = np.zeros(len(tied.topic))
    gains[members] = (scores[::2] - scores[1::2])[kind]
    return gains


def rotation_mean(tied: TiedList, topic: int, base: float) -> float:
    """Return the mean score of a topic over all orders, from the cyclic rotations of each group."""
    # For additive measures that read all returned documents: every rank must have a document.
    groups, total = tied.open_groups, base
    topic_groups = np.flatnonzero(groups.topic == topic).tolist()
    members_of = {group: np.arange(groups.start[group], groups.stop[group]) for group in topic_groups}
    for group in topic_groups:
        size = int(groups.size[group])
        rotations = (np.arange(size) + np.arange(size)[:, np.newaxis]) % size
        group_positions = [
            GroupPositions(members, int(groups.first[other]), (tied.rank[members] - groups.first[other])[np.newaxis], 1)
            for other, members in members_of.items()
            if other != group
        ]
        group_positions.append(GroupPositions(members_of[group], int(groups.first[group]), rotations, 0))
        orders = TopicOrders(topic, size, np.full(size, 1.0 / size), True, tuple(group_positions))
        for _, scores in score_orders(tied, [orders]):
            total += float(scores.mean()) - base
    return total
