"""Reciprocal rank: how far down the first relevant document stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, one_of
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged._types import Floats
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
