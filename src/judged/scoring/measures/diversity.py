"""Measures of diversity: novelty gains, the best possible sum, and the greedy ideal ranking of ndeval.

A subtopic counts if some judged document is relevant to it. Every iteration of the qrels is a subtopic, also ``0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from judged.scoring.judging.ranking import segment_sum
from judged.scoring.judging.split import by_aspect
from judged.scoring.measures.aggregates import divide, explained_ratio
from judged.scoring.measures.ap import AP
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import discounts, shown_hits
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, NEEDED_CUTOFF, REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import AspectLabels, Judged


ALPHA = Parameter(
    "The share of its value that a subtopic loses with each document that covers this subtopic.", 0.5, real(0, 1)
)
BETA = Parameter("The patience: the probability of reading on from one rank to the next.", 0.5, real(0, 1))
MOST = math.e / (math.e - 1)
"""Upper bound of a score relative to the greedy ideal, which reaches at least 1 - 1/e of the true ideal."""

_MAX_SUBTOPIC_COLUMNS = 8  # in an explanation
_MAX_ROWS = 20  # in an explanation
_EQUAL = 1e-12  # gains with a smaller difference, relative to the best, are equal
_POSSIBLE = "documents that all cover every subtopic"


class RankWeighting(NamedTuple):
    """Weighting of a gain by its rank, and its formula."""

    weigh: Callable[[Floats, Ints], Floats]
    how: str


def _by_log(values: Floats, ranks: Ints) -> Floats:
    # ndeval computes a product, which rounds differently from a quotient.
    return values * (math.log(2.0) / discounts(ranks, "ln", 2.0))


def _by_rank(values: Floats, ranks: Ints) -> Floats:
    return values / ranks


BY_LOG, BY_RANK = RankWeighting(_by_log, "G / log2(rank + 1)"), RankWeighting(_by_rank, "G / rank")


class NoveltyMeasure(Protocol):
    """A measure of novelty gains with a cutoff."""

    """A measure that weighs novelty."""

    @property
    def cutoff(self) -> int:
        """Number of documents that count."""
        ...

    @property
    def rel(self) -> float:
        """Lowest relevant grade."""
        ...

    @property
    def alpha(self) -> float:
        """Share of its value that a subtopic loses with each document that covers it."""
        ...


def powers(base: float, count: int, first: float = 1.0) -> Floats:
    """Return the geometric sequence first, first * base, ..., multiplied sequentially.

    >>> powers(0.5, 4).tolist()
    [1.0, 0.5, 0.25, 0.125]
    """
    factors = np.full(count, base)
    factors[:1] = first
    return np.multiply.accumulate(factors)


def is_relevant(labels: AspectLabels, rel: float) -> Bools:
    """Return whether each label is relevant. A negative grade never is."""
    return (labels.grade >= rel) & (labels.grade >= 0)


def distinct_subtopics(judged: Judged, topic: Ints, aspect: Ints) -> Ints:
    """Count the distinct subtopics of each topic: (T,)."""
    # One integer per pair of topic and subtopic, so that NumPy can count distinct pairs.
    aspects = len(judged.qrels.aspects.names)
    return np.bincount(np.unique(topic * aspects + aspect) // aspects, minlength=len(judged)).astype(np.int64)


def subtopic_counts(judged: Judged, rel: float) -> Ints:
    """Count the subtopics to which some judged document is relevant: (T,)."""
    labels = judged.label_aspects
    counted = is_relevant(labels, rel)
    return distinct_subtopics(judged, judged.label_topic[labels.owner[counted]], labels.aspect[counted])


def covered_labels(judged: Judged, rel: float, cutoff: int) -> tuple[Ints, Ints]:
    """Return topic and subtopic of each label for which one of the first k documents is relevant."""
    labels = judged.aspects
    within = judged.within(cutoff)
    counted = is_relevant(labels, rel) & within[labels.owner]
    hit, aspect = labels.owner[counted], labels.aspect[counted]
    if judged.calculation is not None:
        _explain_subtopics(judged, hit, aspect, np.ones(len(hit)), within)
    return judged.topic[hit], aspect


def explain_coverage(judged: Judged, rel: float, aspect: Ints) -> None:
    """Show how many of the first k documents are relevant to each subtopic of the only topic."""
    labels, names = judged.label_aspects, judged.qrels.aspects.names
    subtopics = np.unique(labels.aspect[is_relevant(labels, rel)])
    count = np.bincount(aspect, minlength=len(names))[subtopics]
    if len(subtopics):
        columns = {"subtopic": [names[subtopic] for subtopic in subtopics.tolist()], "documents": count}
        judged.rows("subtopics", columns)
    judged.step("n", np.array([len(subtopics)]), "subtopics with a relevant document in the qrels")


def novelty(judged: Judged, rel: float, alpha: float, cutoff: int | None = None) -> tuple[Floats, Bools]:
    """Return the novelty gain of each hit, and the mask of the hits to sum: (H,) each.

    The gain is the sum, over the subtopics of the hit, of (1 - alpha)^(number of earlier hits that cover the subtopic).
    """
    labels = judged.aspects
    is_covering = is_relevant(labels, rel)
    hit, aspect = labels.owner[is_covering], labels.aspect[is_covering]
    subtopic = judged.topic[hit] * len(judged.qrels.aspects.names) + aspect
    order = np.argsort(subtopic, kind="stable")  # hits are in rank order already
    ordered = subtopic[order]
    earlier = np.empty(len(order), dtype=np.int64)
    # The position within the run of equal subtopics is the number of earlier hits that cover the subtopic.
    earlier[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    label_gain = powers(1.0 - alpha, int(earlier.max(initial=0)) + 1)[earlier]
    gain = segment_sum(label_gain, hit, len(judged.rank))
    counted = shown_hits(judged, gain, cutoff)
    if judged.calculation is not None:
        _explain_subtopics(judged, hit, aspect, label_gain, counted)
        how = f"sum over its subtopics of {1.0 - alpha:g}^(documents above that cover the subtopic)"
        judged.column("G", gain, how, where=counted)
    return gain, counted


def _explain_subtopics(judged: Judged, hit: Ints, aspect: Ints, label_gain: Floats, counted: Bools) -> None:
    """Show the gain of each hit for each subtopic, one column per subtopic, unless there are too many."""
    subtopics = np.unique(aspect)
    for subtopic in subtopics.tolist() if len(subtopics) <= _MAX_SUBTOPIC_COLUMNS else ():
        column = np.zeros(len(judged.rank))
        column[hit[aspect == subtopic]] = label_gain[aspect == subtopic]
        judged.column(f"subtopic {judged.qrels.aspects.names[subtopic]}", column, where=counted)


def normalized_novelty(
    measure: NoveltyMeasure, judged: Judged, weighting: RankWeighting, *, in_full: bool = True
) -> Floats:
    """Divide the weighted novelty of the first k by the best possible sum: (T,).

    Without `in_full`, an explanation shows the best possible sum as one number.
    """
    gain, counted = novelty(judged, measure.rel, measure.alpha, measure.cutoff)
    total = judged.total("gains", weighting.weigh(gain, judged.rank), weighting.how, where=counted, G=gain)
    possible = _best_possible(judged, measure, weighting, in_full=in_full)
    return explained_ratio(judged, measure, gains=total, possible=possible)


def _best_possible(judged: Judged, measure: NoveltyMeasure, weighting: RankWeighting, *, in_full: bool) -> Floats:
    """Return the sum that documents which all cover every subtopic would reach at the cutoff: (T,)."""
    count = subtopic_counts(judged, measure.rel)
    distinct_counts, inverse = np.unique(count, return_inverse=True)
    ranks, sums = np.arange(1, measure.cutoff + 1), list[float]()
    for distinct_count in distinct_counts.tolist():
        gain = powers(1.0 - measure.alpha, measure.cutoff, float(distinct_count))
        weighted = weighting.weigh(gain, ranks)
        so_far = np.cumsum(weighted)
        sums.append(so_far[-1])
        if in_full and judged.calculation is not None:
            columns = {"rank": ranks, "G": gain, weighting.how: weighted, "so far": so_far}
            top = {name: column[:_MAX_ROWS] for name, column in columns.items()}
            title = _POSSIBLE + (f", the first {_MAX_ROWS}" if measure.cutoff > _MAX_ROWS else "")
            judged.rows(title, top, G=f"{distinct_count} * {1.0 - measure.alpha:g}^(rank - 1)")
    possible = np.array(sums)[inverse]
    return judged.step(
        "possible", possible, f"gains down to rank {measure.cutoff} if all documents cover every subtopic"
    )


def greedy_ideal(judged: Judged, rel: float, alpha: float, depth: int | None = None) -> Judged:
    """Rank the judged documents greedily as ndeval does: the highest gain next, of equal gains the greatest id.

    Documents that are relevant to no subtopic are omitted. `depth` limits the work; None ranks all documents.
    """
    labels = judged.label_aspects
    counted = np.flatnonzero(is_relevant(labels, rel))
    index = judged.qrels.index
    label, aspect = labels.owner[counted], labels.aspect[counted]
    order = np.lexsort((aspect, -index.doc_position[index.doc[judged.label_row[label]]], judged.label_topic[label]))
    label, aspect = label[order], aspect[order]
    first = np.flatnonzero(np.diff(label, prepend=-1))  # documents by topic, the greatest id first
    doc_label, doc = label[first], np.repeat(np.arange(len(first)), np.diff(np.append(first, len(label))))
    topic = judged.label_topic[doc_label]
    subtopic = np.unique(judged.label_topic[label] * len(judged.qrels.aspects.names) + aspect, return_inverse=True)[1]
    value = np.full(len(judged.label_topic), -np.inf)
    for rank, docs in enumerate(_select_greedily(topic, doc, subtopic, 1.0 - alpha)):
        if rank == depth:
            break
        value[doc_label[docs]] = -rank
    return judged.ideal_by(value, title="greedy ideal ranking")


def _select_greedily(topic: Ints, doc: Ints, subtopic: Ints, decay: float) -> Iterator[Ints]:
    """Yield the selected document of each topic, rank by rank, until no document remains.

    `topic` has one value per document, `doc` and `subtopic` have one per pair of a document and its subtopic.
    """
    weight = np.ones(int(subtopic.max(initial=-1)) + 1)
    remaining = np.arange(len(topic))
    while len(remaining):
        gain = segment_sum(weight[subtopic], doc, len(remaining))
        starts_topic = np.diff(topic[remaining], prepend=-1) != 0
        best = np.maximum.reduceat(gain, np.flatnonzero(starts_topic))
        topic_index = np.cumsum(starts_topic) - 1
        # Equal gains can be sums of the same powers in another order, which round differently.
        tied = np.flatnonzero(gain >= best[topic_index] * (1.0 - _EQUAL))
        selected = tied[np.diff(topic_index[tied], prepend=-1) != 0]
        yield remaining[selected]
        remains = np.ones(len(remaining), dtype=np.bool_)
        remains[selected] = False
        # In-place multiplication is safe: a document covers a subtopic once, so no index occurs twice.
        weight[subtopic[~remains[doc]]] *= decay
        new_index = np.cumsum(remains) - 1
        subtopic, doc = subtopic[remains[doc]], new_index[doc[remains[doc]]]
        remaining = remaining[remains]


@measure(
    category="diversity",
    cite="Clarke et al. 2008; normalized as in ndeval, TREC Web 2009 to 2014",
    use="A query has several meanings, and the page should cover all of them early without repetition.",
    misleads="The divisor is the score of documents that each cover every subtopic, and such documents rarely exist."
    " To compare topics, use alpha-nDCG.",
    aliases={"alpha_DCG": {}},
    properties=Properties(uses_all_labels=True),
    tools={"ndeval": "alpha-DCG@20", "ir_measures": "alpha_DCG@20"},
)
class AlphaDCG(RelevanceMeasure):
    r"""Novelty-biased DCG at k, divided by the score of documents that each cover every subtopic.

    .. math:: \alpha\mathrm{DCG}@k = \frac{\sum_{r \le k} G(r) / \log_2(r+1)}
        {\sum_{r \le k} n (1-\alpha)^{r-1} / \log_2(r+1)}, \quad G(r) = \sum_{\text{subtopics } s \text{ of } r}
        (1-\alpha)^{c_s(r-1)}

    c_s(r-1) is the number of documents above rank r that are relevant to s. n is the number of subtopics to which
    some judged document is relevant. Each iteration of the qrels is a subtopic, also ``0``. ndeval omits the division
    at k = 1, a cutoff that it never prints.

    ndeval orders a run by its rank column (``ties="rank"``), and with ``-traditional`` by score and then descending
    id (``ties="docid"``). pyndeval and ir_measures break ties by ascending id (``ties="docid-rising"``). ndeval
    averages over the topics in both files (``topics="both"``), and with ``-c`` over those of the qrels.

    Examples
    --------
    Two subtopics. The first document covers the first one, the second document covers both:

    >>> round(AlphaDCG(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / log2(3)) / (2 + 1 / log2(3))
    0.7398
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Sum the discounted novelty gains of the first k, and normalize by the best possible sum."""
        return normalized_novelty(self, judged, BY_LOG)


@measure(
    category="diversity",
    cite="Clarke et al. 2008; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="A query has several meanings, and you want to use the standard measure. Every topic has the same weight.",
    misleads="The ideal ranking is approximated by a greedy algorithm. A better ranking than this"
    " approximation may exist, so a score can exceed 1. A document that was judged for only one subtopic counts as not"
    " relevant to the other subtopics.",
    aliases={"alpha_nDCG": {}},
    properties=Properties(uses_all_labels=True, high=MOST, monotone=False),
    tools={"ndeval": "alpha-nDCG@20", "ir_measures": "alpha_nDCG@20"},
)
class AlphanDCG(RelevanceMeasure):
    r"""Novelty-biased nDCG: the alpha-DCG of the ranking, divided by the alpha-DCG of a greedy ideal ranking.

    .. math:: \alpha\mathrm{nDCG}@k = \frac{\alpha\mathrm{DCG}@k}{\alpha\mathrm{DCG}@k\ \text{of the greedy ideal}}

    At each rank, the ideal ranking selects the judged document with the highest gain. Of equal gains it selects the
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
        actual, best = (normalized_novelty(dcg, ranked, BY_LOG, in_full=False) for ranked in (judged, ideal))
        return explained_ratio(judged, self, AlphaDCG=actual, ideal_AlphaDCG=best)


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="Many documents are relevant to each of several intents, and users need all of them.",
    misleads="Every intent has the same weight, whether it has one relevant document or a hundred. Repetition is not"
    " penalized.",
    aliases={"AP_IA": {}, "MAP_IA": {}},
    properties=Properties(uses_all_labels=True),
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
        return split.record_mean(judged, self, "AP", "subtopic", ap.score(split.judged), counted)


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="You want to know the share of a page that serves an intent, averaged over the intents.",
    misleads="One document that serves every intent is as good as one document for each intent, and repetition is not"
    " penalized.",
    aliases={"P_IA": {}},
    properties=Properties(uses_all_labels=True, additive=True),
    tools={"ndeval": "P-IA@20", "ir_measures": "P_IA@20"},
)
class PIA(RelevanceMeasure):
    r"""Intent-aware precision at k: precision for each subtopic separately, averaged over the subtopics.

    .. math:: \mathrm{P\text{-}IA}@k = \frac{1}{n k} \sum_s |\{\text{documents relevant to } s
        \text{ at rank} \le k\}|

    Only the n subtopics to which some judged document is relevant count. The divisor is k, even if fewer documents
    were returned.

    Examples
    --------
    >>> PIA(cutoff=2).of_list([(1, 0), (1, 1)])  # 1 for the first, 0.5 for the second
    0.75
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of labels covered by the first k by k and the number of subtopics."""
        topic, aspect = covered_labels(judged, self.rel, self.cutoff)
        covered, count = np.bincount(topic, minlength=len(judged)), subtopic_counts(judged, self.rel)
        if judged.calculation is not None:
            explain_coverage(judged, self.rel, aspect)
        judged.step("relevant", covered.astype(np.float64), "sum of the relevant documents of each subtopic")
        share = divide(covered, self.cutoff * count)
        return judged.step(self, share, "relevant / (k * n)", relevant=covered, k=self.cutoff, n=count)


@measure(
    category="diversity",
    cite="Zhai, Cohen and Lafferty 2003 (S-recall); as in ndeval",
    use="You want to know whether the page covers every meaning of the query, regardless of how early or how often.",
    misleads="The measure ignores the order within the first k and how many documents cover a subtopic.",
    aliases={"strec": {}, "subtopic_recall": {}, "S_recall": {}},
    properties=Properties(uses_all_labels=True),
    tools={"ndeval": "strec@20", "ir_measures": "StRecall@20"},
)
class StRecall(RelevanceMeasure):
    r"""Subtopic recall: the share of the subtopics to which a document among the first k is relevant.

    .. math:: \mathrm{StRecall}@k = \frac{|\{\text{subtopics covered at rank} \le k\}|}{n}

    n is the number of subtopics to which some judged document is relevant.

    Examples
    --------
    >>> StRecall(cutoff=1).of_list([(1, 0), (1, 1)])
    0.5
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of subtopics covered by the first k by that of all subtopics."""
        topic, aspect = covered_labels(judged, self.rel, self.cutoff)
        covered, count = distinct_subtopics(judged, topic, aspect), subtopic_counts(judged, self.rel)
        if judged.calculation is not None:
            explain_coverage(judged, self.rel, aspect)
        judged.step("covered", covered.astype(np.float64), "subtopics with a document")
        return explained_ratio(judged, self, covered=covered, n=count)
