"""Orders of tied documents: all of them, a sample, or one for each number of relevant ones; laid out as ranks."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.scoring.judging.align import Returned
from judged.scoring.judging.judged import placed
from judged.scoring.judging.ranking import segment_starts, segment_sum
from judged.scoring.uncertainty.closed_forms import hypergeometric
from judged.scoring.uncertainty.groups import relevant_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.uncertainty.groups import TiedList


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


Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int32 | np.int64]]"
NOWHERE = int(np.iinfo(np.int64).max)
"""The rank of a document that stands below the depth."""


class Moved(NamedTuple):
    """The places of a group's members in each arrangement of the group."""

    members: Ints  # positions in the tied list
    first: int  # the rank of the group's first place
    places: Places  # (A, n): the place of each, from 0; -1 somewhere below the depth
    # how many orders of the topic follow each other with the same arrangement; 0 where order and arrangement have the
    # same number
    stride: int


@dataclass(frozen=True, eq=False)
class Orders:
    """Some orders of one topic's documents; N of them."""

    topic: int
    count: int
    weight: Floats  # (N,): how likely each is; they add up to 1
    exact: bool  # whether these are all
    moved: tuple[Moved, ...]  # the groups that change

    def ranks(self, tied: TiedList, low: int, high: int) -> Ints:
        """Give the rank of each of the topic's members in some of the orders: (high - low, members)."""
        begin, end = tied.starts[self.topic], tied.starts[self.topic + 1]
        ranks = np.tile(tied.rank[begin:end], (high - low, 1))
        ranks[:, ~tied.fixed[begin:end]] = NOWHERE
        numbers = np.arange(low, high)
        for group in self.moved:
            which = numbers // group.stride % len(group.places) if group.stride else numbers
            places = group.places[which].astype(np.int64)
            ranks[:, group.members - begin] = np.where(places < 0, NOWHERE, group.first + places)
        return ranks


def all_orders(tied: TiedList, topic: int, limit: int) -> Orders | None:
    """List the distinct orders of a topic's documents, or give None where there are more than so many."""
    groups, count = tied.open_groups, 1
    moved: list[tuple[Ints, int, Places]] = []
    weights: list[Floats] = []
    for at in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[at], groups.stop[at])
        members = members[np.argsort(tied.alike[members], kind="stable")]
        kinds = np.unique(tied.alike[members], return_counts=True)[1].tolist()
        size, inside = int(groups.size[at]), int(groups.inside[at])
        found = _arrangements(tuple(kinds), size - len(members), inside, limit // count)
        if found is None:
            return None
        moved.append((members, int(groups.first[at]), found[0]))
        weights.append(found[1])
        count *= len(found[1])
    weight, stride, kept = np.ones(1), count, list[Moved]()
    for (members, first, places), one in zip(moved, weights, strict=True):
        stride //= len(places)
        kept.append(Moved(members, first, places, stride))
        weight = np.multiply.outer(weight, one).ravel()
    return Orders(topic, count, weight, True, tuple(kept))


@lru_cache(maxsize=16)
def _arrangements(kinds: tuple[int, ...], unjudged: int, inside: int, limit: int) -> tuple[Places, Floats] | None:
    """Arrange documents of some kinds, so many of each, in the first places of their group."""
    # The rest of them stand below, in no order. Gives the place of each, kind by kind, -1 below: (A, n); and how likely
    # each arrangement is where every order of the documents is as likely as every other: (A,). None for more
    # arrangements than the limit.
    counts = np.array([*kinds, unjudged], dtype=np.int64)
    size, judged, begin = int(counts.sum()), len(kinds), np.cumsum(counts) - counts
    left, places = counts[np.newaxis], np.full((1, size - unjudged), -1, dtype=np.int32)
    weight = np.ones(1)
    if limit < 1:
        return None
    for place in range(inside):
        row, kind = np.nonzero(left)
        if len(row) > limit:
            return None
        weight = weight[row] * left[row, kind] / (size - place)
        left, places = left[row], places[row]
        taken = np.flatnonzero(kind < judged)
        places[taken, (begin + counts)[kind[taken]] - left[taken, kind[taken]]] = place
        left[np.arange(len(kind)), kind] -= 1
    for made in (places, weight):
        made.flags.writeable = False
    return places, weight


def sampled_orders(tied: TiedList, topic: int, count: int, seed: int) -> Orders:
    """Draw orders of a topic's documents; a topic's draw does not depend on the other topics."""
    chance = np.random.default_rng([seed, zlib.crc32(tied.judged.query_ids[topic].encode())])
    groups, moved = tied.open_groups, list[Moved]()
    for at in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[at], groups.stop[at])
        size = int(groups.size[at])
        places = chance.permuted(np.tile(np.arange(size, dtype=np.int32), (count, 1)), axis=1)[:, : len(members)]
        moved.append(Moved(members, int(groups.first[at]), places, 0))
    return Orders(topic, count, np.full(count, 1.0 / count), False, tuple(moved))


def sorted_orders(tied: TiedList, topic: int, values: Floats) -> Orders:
    """Order a topic's documents by each of some values in turn, falling: (N, its members); an unjudged one has 0."""
    groups, moved, begin = tied.open_groups, list[Moved](), tied.starts[topic]
    for at in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[at], groups.stop[at])
        size = int(groups.size[at])
        places = np.stack([sorted_places(value, size) for value in values[:, members - begin]])
        moved.append(Moved(members, int(groups.first[at]), places, 0))
    return Orders(topic, len(values), np.full(len(values), 1.0 / len(values)), False, tuple(moved))


def sorted_places(values: Floats, size: int) -> Ints:
    """Give each judged document of a group its place where values fall; the unjudged have 0 and stand below equals.

    >>> sorted_places(np.array([-1.0, 2.0, 0.0]), size=5).tolist()
    [4, 0, 1]
    """
    order = np.argsort(-values, kind="stable")
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.arange(len(values))
    return np.where(values < 0, places + size - len(values), places)


COUNTED = frozenset({"Success", "SetAP", "Accuracy", "Fallout"})
"""Their names. P, R and F are such measures too, and are as quickly done as additive ones."""


def counted_orders(tied: TiedList) -> Iterator[Orders]:
    """Give orders of each topic where the cut is within a group: one for each number of relevant documents above it."""
    relevant = relevant_members(tied, getattr(tied.measure, "rel", 1.0))
    for topic in tied.open_topics.tolist():
        one = _orders(tied, topic, relevant)
        if one is not None:
            yield one


def _orders(tied: TiedList, topic: int, relevant: Bools) -> Orders | None:
    groups, moved, chances = tied.open_groups, list[Moved](), None
    for at in np.flatnonzero(groups.topic == topic).tolist():
        members = np.arange(groups.start[at], groups.stop[at])
        places = (tied.rank[members] - groups.first[at])[np.newaxis]
        if groups.inside[at] < groups.size[at]:
            size, inside = int(groups.size[at]), int(groups.inside[at])
            least, chances = hypergeometric(size, int(relevant[members].sum()), inside)
            above = least + np.arange(len(chances))
            places = np.stack([_split(relevant[members], size, number) for number in above.tolist()])
        moved.append(Moved(members, int(groups.first[at]), places, 1))
    return None if chances is None else Orders(topic, len(chances), chances, True, tuple(moved))


def _split(relevant: Bools, size: int, above: int) -> Ints:
    """Place so many of a group's relevant documents first, then the others, and the other relevant ones last."""
    places = np.empty(len(relevant), dtype=np.int64)
    count = int(relevant.sum())
    places[relevant] = np.append(np.arange(above), np.arange(size - (count - above), size))
    places[~relevant] = above + np.arange(len(relevant) - count)
    return places


def additive_means(tied: TiedList) -> Floats:
    """Give the mean score of each open topic over all orders: one value per topic of ``open_topics``."""
    # On average each document of a group of n has 1/n of what it would add at all of its places together. So one
    # variant has a kind of document, of which the group has c, at every place of its group, and its score counts c/n
    # times. Groups with the same share c/n fit into one variant.
    groups, topics = tied.open_groups, tied.open_topics
    group, member, count = _kinds(tied)
    divisor = np.gcd(count, groups.size[group])
    above, below = count // divisor, groups.size[group] // divisor
    ordinal = _ordinals(np.stack([group, above, below]))
    keys = np.stack([groups.topic[group], above, below, ordinal], axis=1)
    variants, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.ravel()
    asked = np.concatenate([topics, topics, variants[:, 0]])
    fixed = np.flatnonzero(tied.fixed & np.isin(tied.topic, topics))
    lengths = groups.inside[group]
    whose = np.repeat(np.arange(len(group)), lengths)
    place = np.arange(len(whose)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    variant = np.concatenate([np.searchsorted(topics, tied.topic[fixed]), 2 * len(topics) + which[whose]])
    members = np.concatenate([fixed, member[whose]])
    ranks = np.concatenate([tied.rank[fixed], groups.first[group[whose]] + place])
    order = np.argsort(variant, kind="stable")
    scores = scores_of(tied, asked, variant[order], members[order], ranks[order])
    base, empty, each = np.split(scores, [len(topics), 2 * len(topics)])
    topic = np.searchsorted(topics, variants[:, 0])
    return base + segment_sum((each - empty[topic]) * variants[:, 1] / variants[:, 2], topic, len(topics))


def _kinds(tied: TiedList) -> tuple[Ints, Ints, Ints]:
    """List the kinds of documents of each open group: the group, a member of the kind, and how many there are."""
    groups = tied.open_groups
    lengths = groups.stop - groups.start
    group = np.repeat(np.arange(len(lengths)), lengths)
    members = np.repeat(groups.start - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(group))
    keys = group * (int(tied.alike.max(initial=0)) + 1) + tied.alike[members]
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    return group[first], members[first], count


def _ordinals(keys: Ints) -> Ints:
    """Number the columns that are equal, each from 0."""
    order = np.lexsort(keys)
    begins = np.append(True, (np.diff(keys[:, order], axis=1) != 0).any(axis=0))[: len(order)]
    start = np.flatnonzero(begins)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - start[np.cumsum(begins) - 1]
    return numbers


def additive_worth(tied: TiedList) -> Floats:
    """Give what each member of an open topic gains by standing at the top in place of the end: (M,)."""
    # Where shares are what a document is worth, times what its rank is worth, the best order is that of this gain.
    keys = tied.topic * (int(tied.alike.max(initial=0)) + 1) + tied.alike
    members = np.flatnonzero(np.isin(tied.topic, tied.open_topics))
    _, first, kind = np.unique(keys[members], return_index=True, return_inverse=True)
    chosen = members[first]
    topics = np.repeat(tied.topic[chosen], 2)
    end = tied.last[np.maximum(tied.starts[tied.topic[chosen] + 1] - 1, 0)]
    ranks = np.stack([np.ones(len(chosen), dtype=np.int64), end], axis=1).ravel()
    scores = scores_of(tied, topics, np.arange(len(topics)), np.repeat(chosen, 2), ranks)
    worth = np.zeros(len(tied.topic))
    worth[members] = (scores[::2] - scores[1::2])[kind]
    return worth


def rotation_means(tied: TiedList, topic: int, base: float) -> float:
    """Give the mean score of a topic over all orders from the rotations of each group: its places in turn."""
    # For lists of all documents, in which every place must be filled.
    groups, total = tied.open_groups, base
    mine = np.flatnonzero(groups.topic == topic).tolist()
    stay = {at: np.arange(groups.start[at], groups.stop[at]) for at in mine}
    for at in mine:
        size = int(groups.size[at])
        turned = (np.arange(size) + np.arange(size)[:, np.newaxis]) % size
        moved = [
            Moved(members, int(groups.first[other]), (tied.rank[members] - groups.first[other])[np.newaxis], 1)
            for other, members in stay.items()
            if other != at
        ]
        moved.append(Moved(stay[at], int(groups.first[at]), turned, 0))
        orders = Orders(topic, size, np.full(size, 1.0 / size), True, tuple(moved))
        for _, scores in scores_of_orders(tied, [orders]):
            total += float(scores.mean()) - base
    return total
