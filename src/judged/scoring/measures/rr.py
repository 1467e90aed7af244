"""Reciprocal rank: how far down the first relevant document stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import (
    all_relevant,
    divide,
    log,
    relevant_returned,
    summed_precision,
)
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, one_of, real, whole
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged.results.types import Floats
    from judged.scoring.judging import Judged


WHICH = Parameter("Which of the relevant documents that were returned counts.", "first", one_of("first", "last"))


@measure(
    category="ranked, binary",
    cite="Voorhees 1999 (TREC-8 question answering)",
    use="The user wants one answer, and stops there: navigation, known items, questions.",
    misleads="It sees only the first relevant document, so it hides coverage; a step from rank 1 to 2 costs as much"
    " as from 2 to infinity.",
    aliases={"MRR": {}, "recip_rank": {}},
    properties=Properties(perfect=1.0, missing_matter=False, better_first=True),
    tools={"trec_eval": "recip_rank", "ir_measures": "RR", "ranx": "mrr", "MS MARCO": "RR@10"},
)
class RR(RelevanceMeasure):
    r"""Reciprocal rank: 1 divided by the rank of the first relevant document, 0 where there is none.

    .. math:: \mathrm{RR}@k = 1 / \min\{r \le k : \text{document at rank } r \text{ is relevant}\}

    Its mean over topics is known as MRR. ``which=last`` takes the last relevant document that was returned, the
    maximum in place of the minimum: how far a reader must go who wants all that there is in the list. What was
    not returned does not count, so finding one more document far down lowers it.

    Examples
    --------
    Three topics whose first relevant document stands at 2, 1 and 5:

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
        """The last relevant document comes the later, the more there are, and the more come above the cutoff."""
        first, known = self.which == "first", super().properties
        known = replace(known, better_first=known.better_first and (first or self.cutoff is None))
        return replace(known, monotone=first, perfect=1.0 if first else None)

    def score(self, judged: Judged) -> Floats:
        """One divided by the first or last relevant rank."""
        relevant, within = judged.relevant(self.rel), judged.within(self.cutoff)
        found = relevant & within
        if self.which == "last":
            found &= judged.count_so_far(found) == judged.sum(found)[judged.topic]
        rank = judged.first_rank(found)
        if judged.working is not None:
            read = (judged.rank <= rank[judged.topic]) | (rank == 0)[judged.topic]
            judged.column("relevant", relevant, where=within & read)
        if rank.all():
            judged.step("rank", rank.astype(np.float64), f"rank of the {self.which} relevant document")
            return judged.step(self, divide(rank > 0, rank), "1 / rank", rank=rank)
        how = "no relevant document " + (f"in the first {self.cutoff}" if self.cutoff else "returned")
        return judged.step(self, divide(rank > 0, rank), how)


@measure(
    category="ranked, binary",
    cite="Robertson 2012 (On smoothing average precision)",
    use="AP whose mean is not dominated by easy topics: a scale without ends, on which every"
    " improvement counts equally.",
    misleads="It is not a share: an empty result scores -ln(1 + R), less the more documents are relevant, and 0 is AP"
    " of one half.",
    properties=Properties(low=None, high=None, better_first=True),
    tools={"trec_eval": "yaap"},
)
class Yaap(RelevanceMeasure):
    r"""Average precision on a scale of log odds.

    .. math:: \mathrm{Yaap} = \ln \frac{1 + s}{1 + R - s}, \quad s = \sum_{r,\ \text{relevant}} \mathrm{P}@r

    s is AP times R, the number of relevant documents. A topic without any scores 0.

    Examples
    --------
    >>> round(Yaap().of_list([1, 0, 0, 1]), 4)  # s = 1 + 2/4, R = 2: ln(2.5 / 1.5)
    0.5108
    >>> round(Yaap().of_list([0], missing=[1]), 4)  # ln(1 / 2)
    -0.6931
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Logarithm of what was gained over what was lost, one document added to both."""
        gained, known = summed_precision(judged, self.rel), all_relevant(judged, self.rel)
        value = log((1.0 + gained) / (1.0 + known - gained))
        how = "ln((1 + sum_of_precision) / (1 + R - sum_of_precision))"
        return judged.step(self, value, how, sum_of_precision=gained, R=known)


def _worth(of: str, default: float) -> Parameter:
    return Parameter(f"What a document is worth that is {of}.", default, real())


A = _worth("relevant and returned", 1.0)
B = _worth("returned and not relevant, or not judged", -1.0)
C = _worth("relevant and not returned", 0.0)
D = _worth("neither", 0.0)
N = Parameter("Number of documents in the collection; only d needs it.", 0, whole(0))


@measure(
    category="set",
    cite="Lewis 1995 (TREC-4 filtering); trec_eval",
    use="Filtering: the user sees everything that is returned, and every document costs or gains something.",
    misleads="It has no scale: topics with many relevant documents, and long results, dominate the mean.",
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
        """Add up what the four kinds of documents are worth."""
        found, returned = relevant_returned(judged, self.rel), judged.returned
        counts = self.c != 0 or self.d != 0
        known = all_relevant(judged, self.rel) if counts else judged.num_relevant(self.rel)
        weights = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        kinds = {
            "TP": judged.step("TP", found, "relevant_found", relevant_found=found),
            "FP": judged.step("FP", returned - found, "returned - TP", returned=returned, TP=found),
            "FN": known - found,
            "TN": self.n + found - returned - known,
        }
        if self.c != 0:
            judged.step("FN", kinds["FN"], "R - TP", R=known, TP=found)
        if self.d != 0:
            judged.step("TN", kinds["TN"], "N - returned - R + TP", N=self.n, returned=returned, R=known, TP=found)
        terms = [f"{weight} * {kind}" for weight, kind in zip(weights, kinds, strict=True) if weights[weight] != 0]
        value = self.a * found + self.b * kinds["FP"] + self.c * kinds["FN"] + self.d * kinds["TN"]
        return judged.step(self, value, " + ".join(terms) or "a * TP", **weights, **kinds)
