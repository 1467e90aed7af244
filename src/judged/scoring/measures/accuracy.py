"""Accuracy, with the warning that it deserves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.errors import MeasureError
from judged.scoring.measures.arithmetic import all_relevant, relevant_returned, returned_within
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, whole
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.scoring.judging import Judged

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
