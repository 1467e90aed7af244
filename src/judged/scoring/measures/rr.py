"""Reciprocal rank, and two rarer measures of trec_eval."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import count_relevant, count_relevant_returned, divide, log, summed_precision
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, choice, integer, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged.results.types import Floats
    from judged.scoring.judging import Judged


WHICH = Parameter(
    "Which of the returned relevant documents counts: the first or the last.", "first", choice("first", "last")
)


@measure(
    category="ranked, binary",
    cite="Voorhees 1999 (TREC-8 question answering)",
    use="Users want one answer and stop at this answer: navigational queries, known-item search, question answering.",
    misleads="Only the first relevant document counts; all other relevant documents have no effect. RR decreases"
    " from 1 to 0.5 if this document moves from rank 1 to rank 2. RR also decreases by 0.5, from 0.5 to 0, if the"
    " only returned relevant document is removed from rank 2.",
    aliases={"MRR": {}, "recip_rank": {}},
    properties=Properties(perfect=1.0, depends_on_missing=False, better_first=True),
    tools={"trec_eval": "recip_rank", "ir_measures": "RR", "ranx": "mrr", "MS MARCO": "RR@10"},
)
class RR(RelevanceMeasure):
    r"""Reciprocal rank: 1 divided by the rank of the first relevant document, 0 if there is none.

    .. math:: \mathrm{RR}@k = 1 / \min\{r \le k : \text{document at rank } r \text{ is relevant}\}

    The mean of RR over topics is called MRR. With ``which=last``, RR is 1 divided by the rank of the last relevant
    document that was returned: the score shows how far down users must read to see every relevant document in the list.
    Documents that were not returned do not count, so with ``which=last``, returning an additional relevant document at
    a deep rank lowers the score.

    Examples
    --------
    Three topics with the first relevant document at ranks 2, 1, and 5:

    >>> ranks = [RR().of_list([0, 1]), RR().of_list([1]), RR().of_list([0, 0, 0, 0, 1])]
    >>> round(sum(ranks) / 3, 4)
    0.5667
    >>> RR(which="last").of_list([0, 1, 1, 0, 1])
    0.2
    """

    cutoff: int | None = param(CUTOFF)
    which: Literal["first", "last"] = param(WHICH)
    rel: float = param(REL)

    @property
    def properties(self) -> Properties:
        """Properties with these parameters. With ``which=last``, more relevant documents can lower the score."""
        is_first, declared = self.which == "first", super().properties
        declared = replace(declared, better_first=declared.better_first and (is_first or self.cutoff is None))
        return replace(declared, monotone=is_first, perfect=1.0 if is_first else None)

    def score(self, judged: Judged) -> Floats:
        """Divide 1 by the rank of the first or last relevant document."""
        is_relevant, within = judged.relevant(self.rel), judged.within(self.cutoff)
        candidates = is_relevant & within
        if self.which == "last":
            candidates &= judged.count_so_far(candidates) == judged.sum(candidates)[judged.topic]
        rank = judged.first_rank(candidates)
        if judged.calculation is not None:
            is_read = (judged.rank <= rank[judged.topic]) | (rank == 0)[judged.topic]
            judged.column("relevant", is_relevant, where=within & is_read)
        if rank.all():
            judged.step("rank", rank.astype(np.float64), f"rank of the {self.which} relevant document")
            return judged.step(self, divide(rank > 0, rank), "1 / rank", rank=rank)
        how = "no relevant document " + (f"in the first {self.cutoff}" if self.cutoff else "returned")
        return judged.step(self, divide(rank > 0, rank), how)


@measure(
    category="ranked, binary",
    cite="Robertson 2012 (On smoothing average precision)",
    use="Use this measure instead of AP if easy topics should not dominate the mean. This measure converts AP to the"
    " unbounded scale of log odds.",
    misleads="The score is not a share. An empty ranking scores -ln(1 + R), which decreases with the number R of"
    " relevant documents. A score of 0 corresponds to an AP of one half.",
    properties=Properties(low=None, high=None, better_first=True),
    tools={"trec_eval": "yaap"},
)
class Yaap(RelevanceMeasure):
    r"""Average precision on the scale of log odds.

    .. math:: \mathrm{Yaap} = \ln \frac{1 + s}{1 + R - s}, \quad s = \sum_{r,\ \text{relevant}} \mathrm{P}@r

    s is AP times R, the number of relevant documents. A topic without relevant documents scores 0.

    Examples
    --------
    >>> round(Yaap().of_list([1, 0, 0, 1]), 4)  # s = 1 + 2/4, R = 2: ln(2.5 / 1.5)
    0.5108
    >>> round(Yaap().of_list([0], missing=[1]), 4)  # ln(1 / 2)
    -0.6931
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Compute the log odds of the sum of precision, with 1 added to numerator and denominator."""
        total, relevant = summed_precision(judged, self.rel), count_relevant(judged, self.rel)
        # Robertson 2012 adds 1 to both terms, so that the odds are finite for s = 0 and s = R.
        value = log((1.0 + total) / (1.0 + relevant - total))
        how = "ln((1 + sum_of_precision) / (1 + R - sum_of_precision))"
        return judged.step(self, value, how, sum_of_precision=total, R=relevant)


def _utility_parameter(description: str, default: float) -> Parameter:
    return Parameter(f"The utility of a document that is {description}.", default, real())


A = _utility_parameter("relevant and returned", 1.0)
B = _utility_parameter("returned and either not relevant or not judged", -1.0)
C = _utility_parameter("relevant and not returned", 0.0)
D = _utility_parameter("neither relevant nor returned", 0.0)
N = Parameter("Number of documents in the collection. Needed only if d is not 0.", 0, integer(0))


@measure(
    category="set",
    cite="Lewis 1995 (TREC-4 filtering); trec_eval",
    use="The system is a filter: the user sees everything that is returned, and every document has a benefit or a"
    " cost.",
    misleads="The measure has no common scale: topics with many relevant documents, or with many returned documents,"
    " dominate the mean.",
    properties=Properties(low=None, high=None, needs_ranking=False, ignores_unjudged_tail=False, additive=True),
    tools={"trec_eval": "utility"},
)
class Utility(Measure):
    r"""Linear utility of everything that was returned.

    .. math:: \mathrm{Utility} = a\,TP + b\,FP + c\,FN + d\,TN, \quad TN = N - |\text{returned}| - R + TP

    Examples
    --------
    >>> Utility().of_list([1, 0, None, 1, 1])  # three relevant, two not
    1.0
    >>> Utility(a=2, b=-1, c=-0.5).of_list([1, 0], missing=[1])
    0.5
    """

    a: float = param(A)
    b: float = param(B)
    c: float = param(C)
    d: float = param(D)
    n: int = param(N)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Sum the utility of relevant and other documents, returned or not."""
        true_positives, returned = count_relevant_returned(judged, self.rel), judged.returned
        uses_missing = self.c != 0 or self.d != 0
        relevant = count_relevant(judged, self.rel) if uses_missing else judged.num_relevant(self.rel)
        weights = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        counts = {
            "TP": judged.step("TP", true_positives, "relevant_returned", relevant_returned=true_positives),
            "FP": judged.step("FP", returned - true_positives, "returned - TP", returned=returned, TP=true_positives),
            "FN": relevant - true_positives,
            "TN": self.n + true_positives - returned - relevant,
        }
        if self.c != 0:
            judged.step("FN", counts["FN"], "R - TP", R=relevant, TP=true_positives)
        if self.d != 0:
            parts = {"N": self.n, "returned": returned, "R": relevant, "TP": true_positives}
            judged.step("TN", counts["TN"], "N - returned - R + TP", **parts)
        terms = [f"{weight} * {count}" for weight, count in zip(weights, counts, strict=True) if weights[weight] != 0]
        value = self.a * true_positives + self.b * counts["FP"] + self.c * counts["FN"] + self.d * counts["TN"]
        return judged.step(self, value, " + ".join(terms) or "a * TP", **weights, **counts)
