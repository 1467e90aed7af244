"""Pair accuracy: how many pairs of a relevant and another document stand in the right order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import divide, returned_within
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


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
