"""Orders of tied documents: all of them, a sample, or one for each number of relevant ones; laid out as ranks."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from judged.scoring.uncertainty.closed_forms import hypergeometric
from judged.scoring.uncertainty.groups import relevant_members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged._types import Bools, Floats, Ints
    from judged.scoring.uncertainty.groups import TiedList

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
