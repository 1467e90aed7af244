"""What the measures of diversity share: novelty, the best that is possible, and ndeval's greedy ideal.

A subtopic counts if some judged document is relevant to it. Every iteration of the qrels is one, ``0`` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.judging.segments import segment_sum
from judged.measures.gain import discounts
from judged.measures.parameters import Parameter, real

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.judging import Judged, Labels

ALPHA = Parameter(
    "How much a subtopic loses of its worth with each document that covers it.", 0.5, real(0, 1), values="0 to 1"
)
BETA = Parameter(
    "The patience: the probability of going on from one rank to the next.", 0.5, real(0, 1), values="0 to 1"
)
MOST = math.e / (math.e - 1)
"""What a share of the greedy ideal cannot exceed: greedy reaches 1 - 1/e of the true ideal at every rank."""

Weigh: TypeAlias = "Callable[[Floats, Ints], Floats]"


def by_log(values: Floats, ranks: Ints) -> Floats:
    """Discount by log2(rank + 1), as ndeval writes it: a product, which rounds differently from a quotient."""
    return values * (math.log(2.0) / discounts(ranks, "ln", 2.0))


def by_rank(values: Floats, ranks: Ints) -> Floats:
    """Divide by the rank."""
    return values / ranks


def powers(base: float, count: int, first: float = 1.0) -> Floats:
    """Tabulate first, first * base, first * base * base, ..., one product after the other.

    >>> powers(0.5, 4).tolist()
    [1.0, 0.5, 0.25, 0.125]
    """
    factors = np.full(count, base)
    factors[:1] = first
    return np.multiply.accumulate(factors)


def relevant_to(labels: Labels, rel: float) -> Bools:
    """Mark the labels of at least this grade; a negative grade is never relevant."""
    return (labels.grade >= rel) & (labels.grade >= 0)


def distinct_subtopics(judged: Judged, topic: Ints, aspect: Ints) -> Ints:
    """Count the distinct subtopics of each topic: (T,)."""
    aspects = len(judged.qrels.aspects.names)
    return np.bincount(np.unique(topic * aspects + aspect) // aspects, minlength=len(judged)).astype(np.int64)


def subtopics(judged: Judged, rel: float) -> Ints:
    """Count the subtopics to which some judged document is relevant: (T,)."""
    labels = judged.label_aspects
    counted = relevant_to(labels, rel)
    return distinct_subtopics(judged, judged.label_topic[labels.of[counted]], labels.aspect[counted])


def covered(judged: Judged, rel: float, cutoff: int) -> tuple[Ints, Ints]:
    """Give topic and subtopic of each label for which one of the first k documents is relevant."""
    labels = judged.aspects
    found = relevant_to(labels, rel) & judged.within(cutoff)[labels.of]
    return judged.topic[labels.of[found]], labels.aspect[found]


def novelty(judged: Judged, rel: float, alpha: float) -> Floats:
    """Give each hit its gain: for each of its subtopics (1 - alpha) to the number of earlier hits on it. (H,)."""
    labels = judged.aspects
    counted = relevant_to(labels, rel)
    of, aspect = labels.of[counted], labels.aspect[counted]
    subtopic = judged.topic[of] * len(judged.qrels.aspects.names) + aspect
    order = np.argsort(subtopic, kind="stable")  # hits are in rank order already
    found = subtopic[order]
    before = np.empty(len(order), dtype=np.int64)
    before[order] = np.arange(len(order)) - np.searchsorted(found, found)
    return segment_sum(powers(1.0 - alpha, int(before.max(initial=0)) + 1)[before], of, len(judged.rank))


def best_possible(count: Ints, alpha: float, cutoff: int, weigh: Weigh) -> Floats:
    """Give what documents that all cover every subtopic would gain down to a rank, for topics of so many subtopics."""
    distinct, which = np.unique(count, return_inverse=True)
    ranks = np.arange(1, cutoff + 1)
    most = [np.cumsum(weigh(powers(1.0 - alpha, cutoff, float(each)), ranks))[-1] for each in distinct.tolist()]
    return np.array(most)[which]


def greedy_ideal(judged: Judged, rel: float, alpha: float, depth: int | None = None) -> Judged:
    """Rank the judged documents as ndeval does: at each rank the one with most gain, of equals the greatest id.

    Documents that are relevant to nothing gain nothing and are left out. `depth` limits the work; None for all.
    """
    labels = judged.label_aspects
    counted = np.flatnonzero(relevant_to(labels, rel))
    index = judged.qrels.index
    of, aspect = labels.of[counted], labels.aspect[counted]
    order = np.lexsort((aspect, -index.doc_place[index.doc[judged.label_row[of]]], judged.label_topic[of]))
    of, aspect = of[order], aspect[order]
    first = np.flatnonzero(np.diff(of, prepend=-1))  # documents by topic, the greatest id first
    pair, doc = of[first], np.repeat(np.arange(len(first)), np.diff(np.append(first, len(of))))
    topic = judged.label_topic[pair]
    subtopic = judged.label_topic[of] * len(judged.qrels.aspects.names) + aspect
    value = np.full(len(judged.label_topic), -np.inf)
    for rank, chosen in enumerate(_greedily(topic, doc, np.unique(subtopic, return_inverse=True)[1], 1.0 - alpha)):
        if rank == depth:
            break
        value[pair[chosen]] = -rank
    return judged.ideal_by(value)


def _greedily(topic: Ints, doc: Ints, subtopic: Ints, fading: float) -> Iterator[Ints]:
    """Choose a document of each topic for one rank after the other, until none is left.

    `topic` has an entry a document, `doc` and `subtopic` one a pair of a document and a subtopic that it covers.
    """
    worth = np.ones(int(subtopic.max(initial=-1)) + 1)
    left = np.arange(len(topic))
    while len(left):
        gain = segment_sum(worth[subtopic], doc, len(left))
        begins = np.diff(topic[left], prepend=-1) != 0
        best = np.maximum.reduceat(gain, np.flatnonzero(begins))
        of_topic = np.cumsum(begins) - 1
        equal = np.flatnonzero(gain == best[of_topic])
        chosen = equal[np.diff(of_topic[equal], prepend=-1) != 0]
        yield left[chosen]
        stays = np.ones(len(left), dtype=np.bool_)
        stays[chosen] = False
        worth[subtopic[~stays[doc]]] *= fading  # a document covers a subtopic once: no subtopic stands here twice
        place = np.cumsum(stays) - 1
        subtopic, doc = subtopic[stays[doc]], place[doc[stays[doc]]]
        left = left[stays]
