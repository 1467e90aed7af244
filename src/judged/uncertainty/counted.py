"""Measures for which only the number of relevant documents above a cut counts: one variant for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.uncertainty.closed_forms import hypergeometric
from judged.uncertainty.groups import relevant_members
from judged.uncertainty.orders import Moved, Orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Bools, Ints
    from judged.uncertainty.groups import TiedList

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
