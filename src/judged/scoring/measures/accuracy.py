"""Accuracy, with the warning that it deserves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.judging.ranking import segment_starts
from judged.scoring.measures.aggregates import all_relevant, divide, relevant_returned, returned_within
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, real, spell, whole, yes_no
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined


SIZE = Parameter("Number of documents in the collection.", None, whole(1), required=True)


def check_size(one: Measure, n: int, seen: Floats | Ints) -> None:
    """Refuse a collection that is smaller than what a topic shows of it."""
    if (n < seen).any():
        raise MeasureError(f"{one}: more documents are returned or relevant than n. Fix: n is the collection's size")


@measure(
    category="set",
    cite="Manning, Raghavan and Schütze 2008, section 8.3",
    use="Only to show why it is not used in search.",
    misleads="Almost every document is not relevant, so returning nothing scores near 1: the number says how large"
    " the collection is.",
    properties=Properties(needs_ranking=False, ignores_unjudged_tail=False, additive=True, better_first=True),
)
class Accuracy(Measure):
    r"""Share of the collection that is treated correctly: relevant and returned, or neither.

    .. math:: \mathrm{Accuracy} = \frac{TP + TN}{N}, \quad
        TN = N - |\text{returned}| - |\text{relevant}| + TP

    N, the number of documents in the collection, must be given. What ir_measures calls Accuracy is another number,
    a share of pairs: PairAccuracy.

    Examples
    --------
    A collection of 1000 with two relevant documents. Five documents returned, none of them relevant:

    >>> Accuracy(n=1000).of_list([0, 0, 0, 0, 0], missing=[1, 1])
    0.993
    """

    cutoff: int | None = param(CUTOFF)
    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide true positives and true negatives by N."""
        true_positives = relevant_returned(judged, self.rel, self.cutoff)
        returned, known = returned_within(judged, self.cutoff), all_relevant(judged, self.rel)
        check_size(self, self.n, returned + known - true_positives)
        true_negatives = self.n - returned - known + true_positives
        judged.step("TP", true_positives, "relevant_found", relevant_found=true_positives)
        how = "N - returned - R + TP"
        judged.step("TN", true_negatives, how, N=self.n, returned=returned, R=known, TP=true_positives)
        value = (true_positives + true_negatives) / self.n
        return judged.step(self, value, "(TP + TN) / N", TP=true_positives, TN=true_negatives, N=self.n)


@measure(
    category="ranked, binary",
    cite="ir_measures (its Accuracy); the area under the ROC curve of what was returned",
    use="For a ranker that is trained on pairs: whether its accuracy on held-out topics matches that in training.",
    misleads="It looks at the returned documents only, so returning less can raise it, and a pair at the bottom counts"
    " as much as one at the top. It is not a share of the collection: that is Accuracy.",
    aliases={"PairwiseAccuracy": {}},
    properties=Properties(
        ignores_unjudged_tail=False, monotone=False, perfect=1.0, missing_matter=False, better_first=True
    ),
    tools={"ir_measures": "Accuracy"},
)
class PairAccuracy(RelevanceMeasure):
    r"""Share of the pairs of a relevant and a not relevant document that the ranking has in the right order.

    .. math:: \mathrm{PairAccuracy}@k = 1 - \frac{\sum_{\text{relevant, rank} \le k} n}{r \, (m - r)}, \quad
        m = \min(k, \text{returned})

    n counts the documents above the relevant one that are not relevant, r the relevant ones among the first k.
    Documents that were not returned are in no pair; unjudged ones count as not relevant (``judged_only=true``
    passes over them). Where everything among the first k is relevant no pair is wrong: 1. Where nothing is, 0;
    ir_measures leaves such a topic out, and divides by 0 in the case before.

    Examples
    --------
    Relevant at 1 and 4 of five: of the 2 x 3 pairs, the two of rank 4 with ranks 2 and 3 are wrong.

    >>> round(PairAccuracy().of_list([1, 0, None, 1, 0]), 4)
    0.6667
    >>> PairAccuracy(judged_only=True).of_list([1, 0, None, 1, 0])  # 1, 0, 1, 0: one of four is wrong
    0.75
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)

    @property
    def properties(self) -> Properties:
        """A relevant document that comes above the cutoff makes new pairs."""
        known = super().properties
        return replace(known, better_first=known.better_first and self.cutoff is None)

    def score(self, judged: Judged) -> Floats:
        """One minus the share of pairs in the wrong order."""
        found = judged.relevant(self.rel) & judged.within(self.cutoff)
        so_far = judged.count_so_far(found)
        above = (judged.rank - so_far).astype(np.float64)
        judged.column("others above", above, "rank - relevant_so_far", where=found, relevant_so_far=so_far)
        wrong = judged.total("wrong pairs", above, "others above", where=found)
        relevant, returned = judged.sum(found), returned_within(judged, self.cutoff)
        judged.step("relevant found", relevant)
        others = judged.step(
            "others", returned - relevant, "returned - relevant_found", returned=returned, relevant_found=relevant
        )
        value = np.where(relevant > 0, 1.0 - divide(wrong, others * relevant), 0.0)
        how = "1 - wrong_pairs / (relevant_found * others)" if relevant.all() else "no relevant document"
        return judged.step(self, value, how, wrong_pairs=wrong, relevant_found=relevant, others=others)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966; Manning, Raghavan and Schütze 2008, section 8.3",
    use="To draw ROC curves, or to say how much of the rest of the collection a filter lets through.",
    misleads="Almost everything is not relevant, so it is tiny for any short list, and it rewards returning nothing.",
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
    r"""Fallout: the share of the documents that are not relevant that was returned.

    .. math:: \mathrm{Fallout}@k = \frac{|\{\text{not relevant documents at rank} \le k\}|}{N - R}

    N, the number of documents in the collection, must be given. Unjudged documents count as not relevant.

    Examples
    --------
    Three of the 1000 - 2 that are not relevant:

    >>> Fallout(n=1000).of_list([1, 0, None, 0], missing=[1]) == 3 / 998
    True
    """

    cutoff: int | None = param(CUTOFF)
    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Not relevant and returned, divided by not relevant."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        returned = returned_within(judged, self.cutoff)
        wrong = judged.step(
            "not relevant", returned - found, "returned - relevant_found", returned=returned, relevant_found=found
        )
        check_size(self, self.n, known + wrong)
        return judged.step(
            self, divide(wrong, self.n - known), "not_relevant / (N - R)", not_relevant=wrong, N=self.n, R=known
        )


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="To see how rare relevant documents are: what precision a random ranking would have.",
    misleads="It is a property of topics and collection, not of the run.",
    properties=Properties(needs_ranking=False, higher_is_better=None, additive=True, better_first=True),
)
class Generality(Measure):
    r"""Generality: the share of the collection that is relevant.

    .. math:: \mathrm{Generality} = R / N

    N, the number of documents in the collection, must be given.

    Examples
    --------
    >>> Generality(n=1000).of_list([1, 0, None, 0], missing=[1])
    0.002
    """

    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant, divided by all."""
        known = all_relevant(judged, self.rel)
        check_size(self, self.n, known)
        return judged.step(self, known / self.n, "R / N", R=known, N=self.n)


DEPTH = 1000
"""How deep the two rankings are compared, as in the authors' script; shorter ones just end."""

_BLOCK = 256  # topics at a time: each needs a row as long as the depth

_SHOWN = 20  # depths of a working: below, the sum is given

PERSISTENCE = Parameter("The weight of each depth as a share of that of the depth above.", 0.95, real(0, 1))
NORMALIZE = Parameter(
    "Divide by what the ideal ranking itself reaches, which is less than 1 where it is short.", True, yes_no
)


@measure(
    category="graded",
    cite="Clarke, Vtyurina and Smucker 2021 (normalised); Clarke, Smucker and Vtyurina 2020",
    use="For preferences or many fine grades, where only the order of the documents is known"
    " and no gain can be assigned.",
    misleads="It compares with the ideal that is nearest to the ranking itself, so two runs are"
    " compared with two different ideals. Only the order of the grades counts: how far"
    " apart they are does not.",
    properties=Properties(graded=True, monotone=False, better_first=True),
    tools={"compatibility.py": "compatibility", "ir_measures": "Compat (not so deep; see the definition)"},
)
class Compat(Measure):
    r"""Compatibility: the rank-biased overlap of the ranking with the ideal ranking nearest to it.

    .. math:: \mathrm{Compat} = \frac{\mathrm{RBO}(\text{ranking}, \text{ideal})}
        {\mathrm{RBO}(\text{ideal}, \text{ideal})}, \quad
        \mathrm{RBO}(A, B) = \frac{\sum_{d=1}^{1000} p^{d-1}\,|A_{1..d} \cap B_{1..d}| / d}{\sum_{d=1}^{1000} p^{d-1}}

    The ideal ranking holds the documents with a positive grade, by descending grade. Documents of one grade are in the
    order in which the ranking has them, and those that were not returned come last among them. ``normalize=false``
    leaves the divisor out, as the papers of 2020 do.

    The authors' script orders tied scores by ascending document id (the policy ``ties="docid-rising"``) and leaves
    out topics without a positive grade (``undefined=skip``) and those that the run does not have. ir_measures
    ends the sums where the longer list ends instead of at 1000, and orders documents of one grade by score with 0
    for those not returned, so that its number changes when a constant is added to all scores.

    Examples
    --------
    One of the two relevant documents is returned, at rank 1: one document is shared at every depth, of two that
    the ideal shares with itself from depth 2 on. The sum of 0.5^(d-1) / d over all d is 2 ln 2 = 1.3863.

    >>> round(Compat(p=0.5).of_list([1], missing=[1]), 4)  # 1.3863 / (1 + 2 x 0.3863)
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
        """Overlap with the ideal, divided by the overlap of the ideal with itself."""
        rank = np.full(len(judged.label_grade), DEPTH + 1, dtype=np.int64)  # not returned: below everything
        rank[judged.row] = judged.rank
        best = np.flatnonzero(judged.label_grade > 0)
        best = best[np.lexsort((rank[best], -judged.label_grade[best], judged.label_topic[best]))]
        topic = judged.label_topic[best]
        place = np.arange(len(best)) - segment_starts(topic, len(judged))[topic] + 1
        since = np.maximum(place, rank[best])
        ideal = _ideal(judged, best, place, rank[best], since)
        overlap = self._overlap(judged, "RBO", topic, since)
        if not self.normalize:
            return judged.step(self, overlap, "RBO", RBO=overlap)
        own = self._overlap(ideal, "ideal RBO", topic, place)
        return judged.step(self, divide(overlap, own), "RBO / ideal_RBO", RBO=overlap, ideal_RBO=own)

    def _overlap(self, on: Judged, name: str, topic: Ints, since: Ints) -> Floats:
        """Give the rank-biased overlap of each topic, where `since` is the depth from which a document is shared."""
        topic, since, count = topic[since <= DEPTH], since[since <= DEPTH], len(on)
        weights = np.cumprod(np.concatenate(([1.0], np.full(DEPTH - 1, self.p))), dtype=np.float64)
        total = np.empty(count)
        for first in range(0, count, _BLOCK):
            size = min(_BLOCK, count - first)
            one = slice(*np.searchsorted(topic, (first, first + size)))
            new = np.bincount((topic[one] - first) * DEPTH + since[one] - 1, minlength=size * DEPTH)
            shared = np.cumsum(new.reshape(size, DEPTH), axis=1)
            added = weights * shared / np.arange(1, DEPTH + 1)
            total[first : first + size] = np.cumsum(added, axis=1)[:, -1]
            if on.working is not None:
                self._write(on, weights, shared[0].astype(np.float64), added[0])
        all_weights = np.cumsum(weights)[-1]
        on.step("sum", total, f"the same to depth {DEPTH}")
        on.step("weights", np.full(count, all_weights), f"all weights to depth {DEPTH}")
        return on.step(name, total / all_weights, "sum / weights", sum=total, weights=all_weights)

    def _write(self, on: Judged, weights: Floats, shared: Floats, added: Floats) -> None:
        """Show what the overlap at each depth adds, down to where nothing new is shared."""
        shown = min(int(np.argmax(shared == shared[-1])) + 1, _SHOWN)
        on.by_rank("weight", weights[:shown], f"{spell(self.p)}^(rank - 1)")
        on.by_rank("shared", shared[:shown], "in both rankings down to this rank")
        how = "weight * shared / rank"
        on.by_rank(how, added[:shown], how, weight=weights[:shown], shared=shared[:shown])
        on.summed(f"sum to depth {shown}", added[:shown].sum(keepdims=True), how)


def _ideal(judged: Judged, best: Ints, place: Ints, rank: Ints, since: Ints) -> Judged:
    """Make the ideal ranking, and show from which depth on each document is shared; only where there is a working."""
    if judged.working is None:
        return judged
    value = np.full(len(judged.label_grade), -np.inf)
    value[best] = -place
    ideal = judged.ideal_by(value, title="nearest ideal ranking")
    how, returned = "max(rank, rank_in_the_run)", rank <= DEPTH
    ideal.column("shared from depth", since, how, where=returned, rank_in_the_run=rank)
    return ideal
