"""Reciprocal rank: how far down the first relevant document stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.measures.arithmetic import divide
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import CUTOFF, JUDGED_ONLY, REL, UNDEFINED

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged


@measure(
    family="ranked, binary",
    cite="Voorhees 1999 (TREC-8 question answering)",
    use="One answer is wanted, and the user stops at it: navigation, known items, questions.",
    misleads="It sees only the first relevant document, so it hides coverage; a step from rank 1 to 2 costs as much"
    " as from 2 to infinity.",
    aliases={"MRR": {}, "recip_rank": {}},
    properties=Properties(perfect=1.0),
    tools={"trec_eval": "recip_rank", "ir_measures": "RR", "ranx": "mrr", "MS MARCO": "RR@10"},
)
class RR(Measure):
    r"""Reciprocal rank: 1 divided by the rank of the first relevant document, 0 where there is none.

    .. math:: \mathrm{RR}@k = 1 / \min\{r \le k : \text{document at rank } r \text{ is relevant}\}

    Its mean over topics is known as MRR.

    Examples
    --------
    Three topics whose first relevant document stands at 2, 1 and 5:

    >>> ranks = [RR().of_list([0, 1]), RR().of_list([1]), RR().of_list([0, 0, 0, 0, 1])]
    >>> round(sum(ranks) / 3, 4)
    0.5667
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """One divided by the first relevant rank."""
        first = judged.first_rank(judged.relevant(self.rel) & judged.within(self.cutoff))
        return divide(first > 0, first)
