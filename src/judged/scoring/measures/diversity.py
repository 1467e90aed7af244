"""What the measures of diversity share: novelty, the best that is possible, and ndeval's greedy ideal.

A subtopic counts if some judged document is relevant to it. Every iteration of the qrels is one, ``0`` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from judged.scoring.judging.ranking import segment_sum
from judged.scoring.judging.split import by_aspect
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.ap import AP
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import discounts, down_to_last
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, NEEDED_CUTOFF, REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
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


@measure(
    category="diversity",
    cite="Clarke et al. 2008; normalised as in ndeval, TREC Web 2009 to 2014",
    use="One query has several meanings, and the page should serve all of them early and repeat none.",
    misleads="It is relative to documents that each cover every subtopic, which rarely exist:"
    " compare topics with alpha-nDCG.",
    aliases={"alpha_DCG": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "alpha-DCG@20", "ir_measures": "alpha_DCG@20"},
)
class AlphaDCG(RelevanceMeasure):
    r"""Novelty-biased DCG at k, as a share of what documents that each cover every subtopic would reach.

    .. math:: \alpha\mathrm{DCG}@k = \frac{\sum_{r \le k} G(r) / \log_2(r+1)}
        {\sum_{r \le k} n (1-\alpha)^{r-1} / \log_2(r+1)}, \quad G(r) = \sum_{\text{subtopics } s \text{ of } r}
        (1-\alpha)^{c_s(r-1)}

    c_s(r-1) counts the documents before rank r that are relevant to s, and n the subtopics to which some judged
    document is relevant. Each iteration of the qrels is a subtopic, ``0`` like any other. ndeval forgets the
    division at k = 1, which it never prints.

    ndeval orders a run by its rank column (``ties="rank"``), with ``-traditional`` by score and then falling
    id (``ties="docid"``); pyndeval and ir_measures break ties by ascending id (``ties="docid-rising"``). ndeval
    averages over the topics that both files have (``topics="both"``), with ``-c`` over those of the qrels.

    Examples
    --------
    Two subtopics. The first document covers the first of them, the second document both:

    >>> round(AlphaDCG(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / log2(3)) / (2 + 1 / log2(3))
    0.7398
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Discount the novelty of the first k, and divide by the most that is possible."""
        return share_of_possible(self, judged, BY_LOG)


@measure(
    category="diversity",
    cite="Clarke et al. 2008; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="The standard for pages that should serve several meanings of a query: every topic counts the same.",
    misleads="The best ranking is hard to find, and the greedy one that stands in for it can be beaten: a score may"
    " pass 1. Documents that were judged for one subtopic alone count as not relevant to the others.",
    aliases={"alpha_nDCG": {}},
    properties=Properties(every_label=True, high=MOST, monotone=False),
    tools={"ndeval": "alpha-nDCG@20", "ir_measures": "alpha_nDCG@20"},
)
class AlphanDCG(RelevanceMeasure):
    r"""Novelty-biased nDCG: the alpha-DCG of the ranking, divided by that of a greedy ideal ranking.

    .. math:: \alpha\mathrm{nDCG}@k = \frac{\alpha\mathrm{DCG}@k}{\alpha\mathrm{DCG}@k\ \text{of the greedy ideal}}

    The ideal takes, rank by rank, the judged document with the greatest gain there; of equals the one with the
    greatest id, as ndeval does.

    Examples
    --------
    >>> round(AlphanDCG(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # ideal: (2 + 0.5 / log2(3))
    0.8406
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the alpha-DCG of the ranking by that of the ideal."""
        dcg = AlphaDCG(cutoff=self.cutoff, rel=self.rel, alpha=self.alpha, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self.cutoff)
        found, most = (share_of_possible(dcg, ranked, BY_LOG, in_full=False) for ranked in (judged, ideal))
        return judged.step(self, divide(found, most), "AlphaDCG / ideal_AlphaDCG", AlphaDCG=found, ideal_AlphaDCG=most)


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="Many documents are relevant to each of several intents, and all of them are wanted.",
    misleads="Every intent counts the same, one with a single relevant document like one with a hundred. It does not"
    " punish repetition.",
    aliases={"AP_IA": {}, "MAP_IA": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "MAP-IA", "ir_measures": "AP_IA"},
)
class APIA(RelevanceMeasure):
    r"""Intent-aware average precision: AP for each subtopic separately, averaged over the subtopics.

    .. math:: \mathrm{AP\text{-}IA} = \frac{1}{n} \sum_s \mathrm{AP}_s

    Only the n subtopics to which some judged document is relevant count.

    Examples
    --------
    >>> APIA().of_list([(1, 0), (1, 1)])  # AP is 1 for the first, 0.5 for the second
    0.75
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Average the AP of the subtopics that have relevant documents."""
        split = by_aspect(judged, "subtopic")
        ap = AP(cutoff=None, rel=self.rel, norm="relevant", judged_only=False, undefined=0.0)
        counted = split.judged.num_relevant(self.rel) > 0
        return split.show_mean(judged, self, "AP", "subtopic", ap.score(split.judged), counted)


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="The share of a page that serves an intent, averaged over the intents.",
    misleads="One document that serves every intent is as good as one for each, and repetition is not punished.",
    aliases={"P_IA": {}},
    properties=Properties(every_label=True, additive=True),
    tools={"ndeval": "P-IA@20", "ir_measures": "P_IA@20"},
)
class PIA(RelevanceMeasure):
    r"""Intent-aware precision at k: precision for each subtopic separately, averaged over the subtopics.

    .. math:: \mathrm{P\text{-}IA}@k = \frac{1}{n k} \sum_s |\{\text{documents relevant to } s
        \text{ at rank} \le k\}|

    Only the n subtopics to which some judged document is relevant count. The divisor is k even where fewer documents
    were returned.

    Examples
    --------
    >>> PIA(cutoff=2).of_list([(1, 0), (1, 1)])  # 1 for the first, 0.5 for the second
    0.75
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Labels covered by the first k, divided by k and by the number of subtopics."""
        topic, aspect = covered(judged, self.rel, self.cutoff)
        found, count = np.bincount(topic, minlength=len(judged)), subtopics(judged, self.rel)
        if judged.working is not None:
            show_coverage(judged, self.rel, aspect)
        judged.step("relevant", found.astype(np.float64), "documents of each subtopic, added up")
        share = divide(found, self.cutoff * count)
        return judged.step(self, share, "relevant / (k * n)", relevant=found, k=self.cutoff, n=count)


@measure(
    category="diversity",
    cite="Zhai, Cohen and Lafferty 2003 (S-recall); as in ndeval",
    use="Whether the page touches every meaning of the query at all.",
    misleads="It sees neither the order within the k nor whether a subtopic is served well.",
    aliases={"strec": {}, "subtopic_recall": {}, "S_recall": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "strec@20", "ir_measures": "StRecall@20"},
)
class StRecall(RelevanceMeasure):
    r"""Subtopic recall: the share of the subtopics that some document among the first k is relevant to.

    .. math:: \mathrm{StRecall}@k = \frac{|\{\text{subtopics covered at rank} \le k\}|}{n}

    n counts the subtopics to which some judged document is relevant.

    Examples
    --------
    >>> StRecall(cutoff=1).of_list([(1, 0), (1, 1)])
    0.5
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Subtopics covered by the first k, divided by all."""
        topic, aspect = covered(judged, self.rel, self.cutoff)
        found, count = distinct_subtopics(judged, topic, aspect), subtopics(judged, self.rel)
        if judged.working is not None:
            show_coverage(judged, self.rel, aspect)
        judged.step("covered", found.astype(np.float64), "subtopics with a document")
        return judged.step(self, divide(found, count), "covered / n", covered=found, n=count)
