"""Measures of the entire collection, accuracy on pairs, and compatibility with an ideal ranking."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.ranking import segment_starts
from judged.scoring.measures.aggregates import (
    count_relevant,
    count_relevant_returned,
    count_returned,
    divide,
    explained_ratio,
)
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, boolean, format_value, integer, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined


SIZE = Parameter("Number of documents in the collection.", None, integer(1), required=True)


def check_size(measure: Measure, n: int, documents: Floats | Ints) -> None:
    """Raise if the collection is smaller than the number of documents of a topic."""
    if (n < documents).any():
        raise MeasureError(f"{measure}: more documents are returned or relevant than n={n}. Fix: use a higher n")


@measure(
    category="set",
    cite="Manning, Raghavan and Schütze 2008, section 8.3",
    use="You want to show why accuracy is not a suitable measure for search.",
    misleads="Almost no document is relevant, so an empty result scores almost 1. The score reflects the size of the"
    " collection.",
    properties=Properties(needs_ranking=False, ignores_unjudged_tail=False, additive=True, better_first=True),
)
class Accuracy(Measure):
    r"""Share of the collection that is classified correctly: relevant and returned, or neither.

    .. math:: \mathrm{Accuracy} = \frac{TP + TN}{N}, \quad
        TN = N - |\text{returned}| - |\text{relevant}| + TP

    N is the number of documents in the collection and is required. The Accuracy of ir_measures is a different score,
    a share of pairs: PairAccuracy.

    Examples
    --------
    A collection of 1000 with two relevant documents. Five documents are returned, none of them relevant:

    >>> Accuracy(n=1000).of_list([0, 0, 0, 0, 0], missing=[1, 1])
    0.993
    """

    cutoff: int | None = param(CUTOFF)
    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of true positives and true negatives by N."""
        true_positives = count_relevant_returned(judged, self.rel, self.cutoff)
        returned, relevant = count_returned(judged, self.cutoff), count_relevant(judged, self.rel)
        check_size(self, self.n, returned + relevant - true_positives)
        # Inclusion and exclusion: relevant documents that were returned are in both counts.
        true_negatives = self.n - returned - relevant + true_positives
        judged.step("TP", true_positives, "relevant_returned", relevant_returned=true_positives)
        how = "N - returned - R + TP"
        judged.step("TN", true_negatives, how, N=self.n, returned=returned, R=relevant, TP=true_positives)
        value = (true_positives + true_negatives) / self.n
        return judged.step(self, value, "(TP + TN) / N", TP=true_positives, TN=true_negatives, N=self.n)


@measure(
    category="ranked, binary",
    cite="ir_measures (its Accuracy); the area under the ROC curve of the returned documents",
    use="You trained a ranker on pairs of documents, and want to compare its accuracy on held-out topics with its"
    " training accuracy.",
    misleads="Only returned documents count, so a run can raise its score by returning fewer documents. A pair at the"
    " bottom has the same weight as a pair at the top. For the share of all documents in the collection that are"
    " classified correctly, use Accuracy.",
    aliases={"PairwiseAccuracy": {}},
    properties=Properties(
        ignores_unjudged_tail=False, monotone=False, perfect=1.0, depends_on_missing=False, better_first=True
    ),
    tools={"ir_measures": "Accuracy"},
)
class PairAccuracy(RelevanceMeasure):
    r"""Share of the pairs of a relevant and a nonrelevant document that are in the right order.

    .. math:: \mathrm{PairAccuracy}@k = 1 - \frac{\sum_{\text{relevant, rank} \le k} n}{r \, (m - r)}, \quad
        m = \min(k, \text{returned})

    n is the number of nonrelevant documents above the relevant document, r the number of relevant documents among
    the first k. Documents that were not returned are in no pair. Unjudged documents count as not relevant, unless
    ``judged_only=true`` removes them. If all of the first k are relevant, the score is 1. If none is relevant, the
    score is 0; ir_measures excludes topics without a relevant document, and divides by 0 if all are relevant.

    Examples
    --------
    Relevant at ranks 1 and 4 of five. Of the 2 * 3 pairs, two are wrong: rank 4 with ranks 2 and 3.

    >>> round(PairAccuracy().of_list([1, 0, None, 1, 0]), 4)
    0.6667
    >>> PairAccuracy(judged_only=True).of_list([1, 0, None, 1, 0])  # 1, 0, 1, 0: one of four is wrong
    0.75
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)

    @property
    def properties(self) -> Properties:
        """Properties with these parameters. With a cutoff, a relevant document that enters the first k adds pairs."""
        declared = super().properties
        return replace(declared, better_first=declared.better_first and self.cutoff is None)

    def score(self, judged: Judged) -> Floats:
        """Return 1 minus the share of pairs in the wrong order."""
        is_relevant = judged.relevant(self.rel) & judged.within(self.cutoff)
        so_far = judged.count_so_far(is_relevant)
        above = (judged.rank - so_far).astype(np.float64)
        judged.column("nonrelevant above", above, "rank - relevant_so_far", where=is_relevant, relevant_so_far=so_far)
        wrong = judged.total("wrong pairs", above, "nonrelevant above", where=is_relevant)
        relevant, returned = judged.sum(is_relevant), count_returned(judged, self.cutoff)
        judged.step("relevant returned", relevant)
        nonrelevant = judged.step(
            "nonrelevant",
            returned - relevant,
            "returned - relevant_returned",
            returned=returned,
            relevant_returned=relevant,
        )
        value = np.where(relevant > 0, 1.0 - divide(wrong, nonrelevant * relevant), 0.0)
        how = "1 - wrong_pairs / (relevant_returned * nonrelevant)" if relevant.all() else "no relevant document"
        return judged.step(self, value, how, wrong_pairs=wrong, relevant_returned=relevant, nonrelevant=nonrelevant)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966; Manning, Raghavan and Schütze 2008, section 8.3",
    use="You want to plot ROC curves, or to measure the share of the nonrelevant documents that pass a filter.",
    misleads="Almost all documents are not relevant, so the score is very small for a short list, and an empty list"
    " has the best score.",
    properties=Properties(
        needs_ranking=False,
        ignores_unjudged_tail=False,
        monotone=False,
        perfect=0.0,
        higher_is_better=False,
        additive=True,
    ),
    tools={"torchmetrics": "RetrievalFallOut (n is the number of documents scored)"},
)
class Fallout(Measure):
    r"""Fallout: the share of the nonrelevant documents that were returned.

    .. math:: \mathrm{Fallout}@k = \frac{|\{\text{not relevant documents at rank} \le k\}|}{N - R}

    N is the number of documents in the collection and is required. Unjudged documents count as not relevant.

    Examples
    --------
    Three of the 1000 - 2 nonrelevant documents are returned:

    >>> Fallout(n=1000).of_list([1, 0, None, 0], missing=[1]) == 3 / 998
    True
    """

    cutoff: int | None = param(CUTOFF)
    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of nonrelevant documents returned by that of all nonrelevant documents."""
        relevant_returned = count_relevant_returned(judged, self.rel, self.cutoff)
        relevant, returned = count_relevant(judged, self.rel), count_returned(judged, self.cutoff)
        parts = {"returned": returned, "relevant_returned": relevant_returned}
        wrong = judged.step("not relevant", returned - relevant_returned, "returned - relevant_returned", **parts)
        check_size(self, self.n, relevant + wrong)
        value, how = divide(wrong, self.n - relevant), "not_relevant / (N - R)"
        return judged.step(self, value, how, not_relevant=wrong, N=self.n, R=relevant)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="You want to see how rare relevant documents are: the expected precision of a random ranking.",
    misleads="The measure is a property of the topics and the collection, not of the run.",
    properties=Properties(needs_ranking=False, higher_is_better=None, additive=True, better_first=True),
)
class Generality(Measure):
    r"""Generality: the share of the collection that is relevant.

    .. math:: \mathrm{Generality} = R / N

    N is the number of documents in the collection and is required.

    Examples
    --------
    >>> Generality(n=1000).of_list([1, 0, None, 0], missing=[1])
    0.002
    """

    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents by N."""
        relevant = count_relevant(judged, self.rel)
        check_size(self, self.n, relevant)
        return explained_ratio(judged, self, R=relevant, N=self.n)


DEPTH = 1000
"""Depth to which the two rankings are compared, as in the authors' script. Shorter rankings end earlier."""

_BLOCK = 256  # topics per block; each needs a row of length `DEPTH`

_MAX_SHOWN = 20  # depths that an explanation shows one by one

PERSISTENCE = Parameter("The weight of each depth, divided by the weight of the previous depth.", 0.95, real(0, 1))
NORMALIZE = Parameter(
    "Whether to divide by the overlap of the ideal ranking with itself, which is below 1 if that ranking is short.",
    True,
    boolean,
)


@measure(
    category="graded",
    cite="Clarke, Vtyurina and Smucker 2021 (normalized); Clarke, Smucker and Vtyurina 2020",
    use="Assessors stated preferences or used many fine grades, so only the order of the documents is known and no"
    " gain can be assigned.",
    misleads="The ideal ranking orders documents of equal grade as the run does, so two runs are compared with"
    " different ideal rankings. Only the order of the grades counts, not their differences.",
    properties=Properties(graded=True, monotone=False, better_first=True),
    tools={"compatibility.py": "compatibility", "ir_measures": "Compat (smaller depth; see the definition)"},
)
class Compat(Measure):
    r"""Compatibility: the rank-biased overlap of the ranking with the ideal ranking nearest to it.

    .. math:: \mathrm{Compat} = \frac{\mathrm{RBO}(\text{ranking}, \text{ideal})}
        {\mathrm{RBO}(\text{ideal}, \text{ideal})}, \quad
        \mathrm{RBO}(A, B) = \frac{\sum_{d=1}^{1000} p^{d-1}\,|A_{1..d} \cap B_{1..d}| / d}{\sum_{d=1}^{1000} p^{d-1}}

    The ideal ranking contains the documents with a positive grade, in descending order of grade. Documents of equal
    grade are in the order of the ranking, followed by the documents that were not returned. ``normalize=false`` omits
    the divisor, as in the papers of 2020.

    The authors' script orders tied scores by ascending document id (the policy ``ties="docid-rising"``). It excludes
    topics without a positive grade (``undefined=skip``) and topics that are not in the run. ir_measures sums to the
    end of the longer list instead of 1000. It orders documents of equal grade by score, with 0 for those not returned,
    so its score changes if a constant is added to all scores.

    Examples
    --------
    One of the two relevant documents is returned, at rank 1. At every depth, one document is shared, and from depth 2
    on, the ideal shares two with itself. The sum of 0.5^(d-1) / d over all d is 2 ln 2 = 1.3863.

    >>> round(Compat(p=0.5).of_list([1], missing=[1]), 4)  # 1.3863 / (1 + 2 * 0.3863)
    0.7821
    >>> Compat().of_list([3, 2, 2, 1])
    1.0
    >>> Compat().of_list([30, 20, 20, 10])  # only the order counts
    1.0
    """

    p: float = param(PERSISTENCE)
    normalize: bool = param(NORMALIZE)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Divide the overlap with the ideal ranking by the overlap of the ideal ranking with itself."""
        rank = np.full(len(judged.label_grade), DEPTH + 1, dtype=np.int64)  # not returned: below all others
        rank[judged.row] = judged.rank
        labels = np.flatnonzero(judged.label_grade > 0)
        labels = labels[np.lexsort((rank[labels], -judged.label_grade[labels], judged.label_topic[labels]))]
        topic = judged.label_topic[labels]
        ideal_rank = np.arange(len(labels)) - segment_starts(topic, len(judged))[topic] + 1
        # A document is shared from the depth at which both rankings contain it.
        shared_from = np.maximum(ideal_rank, rank[labels])
        ideal = _explained_ideal(judged, labels, ideal_rank, rank[labels], shared_from)
        overlap = self._overlap(judged, "RBO", topic, shared_from)
        if not self.normalize:
            return judged.step(self, overlap, "RBO", RBO=overlap)
        ideal_overlap = self._overlap(ideal, "ideal RBO", topic, ideal_rank)
        return explained_ratio(judged, self, RBO=overlap, ideal_RBO=ideal_overlap)

    def _overlap(self, judged: Judged, name: str, topic: Ints, shared_from: Ints) -> Floats:
        """Return the rank-biased overlap of each topic. Each document is shared from the depth `shared_from` on."""
        within, count = shared_from <= DEPTH, len(judged)
        topic, shared_from = topic[within], shared_from[within]
        weights = np.cumprod(np.concatenate(([1.0], np.full(DEPTH - 1, self.p))), dtype=np.float64)
        total = np.empty(count)
        for start in range(0, count, _BLOCK):
            size = min(_BLOCK, count - start)
            block = slice(*np.searchsorted(topic, (start, start + size)))
            cells = (topic[block] - start) * DEPTH + shared_from[block] - 1
            # Documents that both rankings contain from this depth on; the cumulative sum is the size of the overlap.
            newly_shared = np.bincount(cells, minlength=size * DEPTH)
            shared = np.cumsum(newly_shared.reshape(size, DEPTH), axis=1)
            terms = weights * shared / np.arange(1, DEPTH + 1)
            total[start : start + size] = np.cumsum(terms, axis=1)[:, -1]
            if judged.calculation is not None:
                self._explain(judged, weights, shared[0].astype(np.float64), terms[0])
        all_weights = np.cumsum(weights)[-1]
        judged.step("sum", total, f"the same sum to depth {DEPTH}")
        judged.step("weights", np.full(count, all_weights), f"sum of all weights to depth {DEPTH}")
        return judged.step(name, total / all_weights, "sum / weights", sum=total, weights=all_weights)

    def _explain(self, judged: Judged, weights: Floats, shared: Floats, terms: Floats) -> None:
        """Show the term of each depth, down to the last depth at which a document is newly shared."""
        depth = min(int(np.argmax(shared == shared[-1])) + 1, _MAX_SHOWN)
        judged.by_rank("weight", weights[:depth], f"{format_value(self.p)}^(rank - 1)")
        judged.by_rank("shared", shared[:depth], "documents in both rankings down to this rank")
        how = "weight * shared / rank"
        judged.by_rank(how, terms[:depth], how, weight=weights[:depth], shared=shared[:depth])
        judged.summed(f"sum to depth {depth}", terms[:depth].sum(keepdims=True), how)


def _explained_ideal(judged: Judged, labels: Ints, ideal_rank: Ints, rank: Ints, shared_from: Ints) -> Judged:
    """Return the ideal ranking with the depth from which each document is shared, if an explanation is requested."""
    if judged.calculation is None:
        return judged
    value = np.full(len(judged.label_grade), -np.inf)
    value[labels] = -ideal_rank
    ideal = judged.ideal_by(value, title="nearest ideal ranking")
    how, returned = "max(rank, rank_in_the_run)", rank <= DEPTH
    ideal.column("shared from depth", shared_from, how, where=returned, rank_in_the_run=rank)
    return ideal
