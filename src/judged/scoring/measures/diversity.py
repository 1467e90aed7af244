"""What the measures of diversity share: novelty, the best that is possible, and ndeval's greedy ideal.

A subtopic counts if some judged document is relevant to it. Every iteration of the qrels is one, ``0`` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from judged.scoring.judging.segments import segment_sum
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.gain import discounts, down_to_last
from judged.scoring.measures.parameters import Parameter, real

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.scoring.judging import Judged, Labels

ALPHA = Parameter("How much of its value a subtopic loses with each document that covers it.", 0.5, real(0, 1))
BETA = Parameter("The patience: the probability of going on from one rank to the next.", 0.5, real(0, 1))
MOST = math.e / (math.e - 1)
"""What a share of the greedy ideal cannot exceed: greedy reaches 1 - 1/e of the true ideal at every rank."""

_MOST_COLUMNS = 8  # of subtopics, side by side
_MOST_ROWS = 20
_EQUAL = 1e-12  # gains that differ by less, relative to the best, are equal
_POSSIBLE = "documents that all cover every subtopic"


class Weigh(NamedTuple):
    """What a gain is worth at its rank, and the formula of that."""

    weigh: Callable[[Floats, Ints], Floats]
    how: str


def _by_log(values: Floats, ranks: Ints) -> Floats:
    """Discount as ndeval writes it: by a product, which rounds differently from a quotient."""
    return values * (math.log(2.0) / discounts(ranks, "ln", 2.0))


def _by_rank(values: Floats, ranks: Ints) -> Floats:
    return values / ranks


BY_LOG, BY_RANK = Weigh(_by_log, "G / log2(rank + 1)"), Weigh(_by_rank, "G / rank")


class Novel(Protocol):
    """A measure that weighs novelty."""

    @property
    def cutoff(self) -> int:
        """How many documents count."""
        ...

    @property
    def rel(self) -> float:
        """The least relevant grade."""
        ...

    @property
    def alpha(self) -> float:
        """How much a subtopic loses with each document that covers it."""
        ...


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
    within = judged.within(cutoff)
    found = relevant_to(labels, rel) & within[labels.of]
    of, aspect = labels.of[found], labels.aspect[found]
    if judged.working is not None:
        _show_subtopics(judged, of, aspect, np.ones(len(of)), within)
    return judged.topic[of], aspect


def show_coverage(judged: Judged, rel: float, aspect: Ints) -> None:
    """Show how many of the documents looked at are relevant to each subtopic of the only topic."""
    labels, names = judged.label_aspects, judged.qrels.aspects.names
    known = np.unique(labels.aspect[relevant_to(labels, rel)])
    count = np.bincount(aspect, minlength=len(names))[known]
    if len(known):
        judged.rows("subtopics", {"subtopic": [names[one] for one in known.tolist()], "documents": count})
    judged.step("n", np.array([len(known)]), "subtopics with a relevant document in the qrels")


def novelty(judged: Judged, rel: float, alpha: float, cutoff: int | None = None) -> tuple[Floats, Bools]:
    """Give each hit its gain: for each of its subtopics (1 - alpha) to the number of earlier hits on it. (H,)."""
    # And mark the hits that are added up: (H,).
    labels = judged.aspects
    relevant = relevant_to(labels, rel)
    of, aspect = labels.of[relevant], labels.aspect[relevant]
    subtopic = judged.topic[of] * len(judged.qrels.aspects.names) + aspect
    order = np.argsort(subtopic, kind="stable")  # hits are in rank order already
    found = subtopic[order]
    before = np.empty(len(order), dtype=np.int64)
    before[order] = np.arange(len(order)) - np.searchsorted(found, found)
    worth = powers(1.0 - alpha, int(before.max(initial=0)) + 1)[before]
    gain = segment_sum(worth, of, len(judged.rank))
    counted = down_to_last(judged, gain, cutoff)
    if judged.working is not None:
        _show_subtopics(judged, of, aspect, worth, counted)
        how = f"{1.0 - alpha:g}^(documents above that cover it), for each subtopic that it covers, added up"
        judged.column("G", gain, how, where=counted)
    return gain, counted


def _show_subtopics(judged: Judged, of: Ints, aspect: Ints, worth: Floats, counted: Bools) -> None:
    """Show what each subtopic of each hit is worth, a column a subtopic, unless these are many."""
    shown = np.unique(aspect)
    for one in shown.tolist() if len(shown) <= _MOST_COLUMNS else ():
        column = np.zeros(len(judged.rank))
        column[of[aspect == one]] = worth[aspect == one]
        judged.column(f"subtopic {judged.qrels.aspects.names[one]}", column, where=counted)


def share_of_possible(measure: Novel, judged: Judged, by: Weigh, *, in_full: bool = True) -> Floats:
    """Divide the novelty of the first k, weighed by rank, by the most that is possible: (T,)."""
    # Without `in_full`, the most is shown as one number.
    gain, counted = novelty(judged, measure.rel, measure.alpha, measure.cutoff)
    found = judged.total("gains", by.weigh(gain, judged.rank), by.how, where=counted, G=gain)
    most = _best_possible(judged, measure, by, in_full=in_full)
    return judged.step(measure, divide(found, most), "gains / possible", gains=found, possible=most)


def _best_possible(judged: Judged, measure: Novel, by: Weigh, *, in_full: bool) -> Floats:
    """Give what documents that all cover every subtopic would gain down to the cutoff: (T,)."""
    count = subtopics(judged, measure.rel)
    distinct, which = np.unique(count, return_inverse=True)
    ranks, most = np.arange(1, measure.cutoff + 1), list[float]()
    for each in distinct.tolist():
        gain = powers(1.0 - measure.alpha, measure.cutoff, float(each))
        weighed = by.weigh(gain, ranks)
        so_far = np.cumsum(weighed)
        most.append(so_far[-1])
        if in_full and judged.working is not None:
            columns = {"rank": ranks, "G": gain, by.how: weighed, "so far": so_far}
            first = {name: column[:_MOST_ROWS] for name, column in columns.items()}
            title = _POSSIBLE + (f", the first {_MOST_ROWS}" if measure.cutoff > _MOST_ROWS else "")
            judged.rows(title, first, G=f"{each} * {1.0 - measure.alpha:g}^(rank - 1)")
    possible = np.array(most)[which]
    return judged.step("possible", possible, f"gains of {_POSSIBLE} down to rank {measure.cutoff}")


def greedy_ideal(judged: Judged, rel: float, alpha: float, depth: int | None = None) -> Judged:
    """Rank the judged documents as ndeval does: at each rank the one with most gain, of equals the greatest id."""
    # Documents that are relevant to nothing gain nothing and are left out. `depth` limits the work; None for all.
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
    return judged.ideal_by(value, title="greedy ideal ranking")


def _greedily(topic: Ints, doc: Ints, subtopic: Ints, fading: float) -> Iterator[Ints]:
    """Choose a document of each topic for one rank after the other, until none is left."""
    # `topic` has an entry a document, `doc` and `subtopic` one a pair of a document and a subtopic that it covers.
    worth = np.ones(int(subtopic.max(initial=-1)) + 1)
    left = np.arange(len(topic))
    while len(left):
        gain = segment_sum(worth[subtopic], doc, len(left))
        begins = np.diff(topic[left], prepend=-1) != 0
        best = np.maximum.reduceat(gain, np.flatnonzero(begins))
        of_topic = np.cumsum(begins) - 1
        # Equal gains can be sums of the same powers in another order, which round differently.
        equal = np.flatnonzero(gain >= best[of_topic] * (1.0 - _EQUAL))
        chosen = equal[np.diff(of_topic[equal], prepend=-1) != 0]
        yield left[chosen]
        stays = np.ones(len(left), dtype=np.bool_)
        stays[chosen] = False
        worth[subtopic[~stays[doc]]] *= fading  # a document covers a subtopic once: no subtopic stands here twice
        place = np.cumsum(stays) - 1
        subtopic, doc = subtopic[stays[doc]], place[doc[stays[doc]]]
        left = left[stays]
