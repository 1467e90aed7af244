"""Additive measures: each document adds its share by itself, so documents need not be tried together.

A variant may then have a document at many ranks at once, which no run has: its score is the sum of the shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.segments import segment_sum
from judged.scoring.uncertainty.orders import Moved, Orders
from judged.scoring.uncertainty.variant_scores import scores_of, scores_of_orders

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.scoring.uncertainty.groups import TiedList


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
