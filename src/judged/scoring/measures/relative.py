"""Precision in relation to the best that was possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="set at a cutoff",
    cite="trec_eval; Thakur et al. 2021 (capped recall)",
    use="Topics with fewer and with more than k relevant documents are averaged together: each can reach 1.",
    misleads="Called capped recall in places, but it is precision where more than k documents are relevant.",
    aliases={"relative_P": {}, "R_cap": {}, "RCap": {}},
    properties=Properties(perfect=1.0, against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "relative_P_10", "BEIR": "R_cap@10"},
)
class RelP(RelevanceMeasure):
    r"""Precision at k as a share of the highest possible.

    .. math:: \mathrm{RelP}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{\min(k, R)}

    It is P@k where R is at least k, and R@k where it is less.

    Examples
    --------
    >>> RelP(cutoff=5).of_list([1, 0, 1, 0, 0], missing=[1, 1])  # R = 4
    0.5
    >>> RelP(cutoff=2).of_list([1, 0, 1, 0, 0], missing=[1, 1])
    0.5
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by what k places can hold of R."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        value = divide(found, np.minimum(known, self.cutoff))
        return judged.step(self, value, "relevant_found / min(k, R)", relevant_found=found, k=self.cutoff, R=known)


@measure(
    category="set",
    cite="trec_eval",
    use="For results that have no order and differ in size: a small one can reach 1 too.",
    misleads="One relevant document alone scores 1, and so does everything at once.",
    aliases={"set_relative_P": {}},
    properties=Properties(
        needs_ranking=False,
        ignores_unjudged_tail=False,
        perfect=1.0,
        against_ideal=True,
        additive=True,
        better_first=True,
    ),
    tools={"trec_eval": "set_relative_P"},
)
class SetRelP(RelevanceMeasure):
    r"""Precision of everything returned as a share of the highest possible.

    .. math:: \mathrm{SetRelP} = \frac{|\{\text{relevant and returned}\}|}{\min(|\{\text{returned}\}|, R)}

    Nothing returned scores 0.

    Examples
    --------
    >>> SetRelP().of_list([1, 0, None], missing=[1])  # R = 2
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by what the result can hold of R."""
        found, known, returned = relevant_returned(judged, self.rel), all_relevant(judged, self.rel), judged.returned
        value, how = divide(found, np.minimum(known, returned)), "relevant_found / min(returned, R)"
        return judged.step(self, value, how, relevant_found=found, returned=returned, R=known)
