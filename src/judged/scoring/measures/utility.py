"""Utility: what a result is worth to a user who pays for every document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import all_relevant, relevant_known, relevant_returned
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import REL, Parameter, real, whole
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


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
        known = (all_relevant if self.c != 0 or self.d != 0 else relevant_known)(judged, self.rel)
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
