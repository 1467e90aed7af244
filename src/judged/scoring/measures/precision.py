"""Precision: how much of what was returned is relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import divide, relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="The share of useful results on the first page, when every place on it counts the same.",
    misleads="It cannot reach 1 where fewer than k documents are relevant, and does not see order within the k.",
    aliases={"Precision": {}, "prec": {}},
    properties=Properties(missing_matter=False, additive=True, better_first=True),
    tools={"trec_eval": "P_10", "ir_measures": "P@10", "ranx": "precision@10"},
)
class P(RelevanceMeasure):
    r"""Precision at k: the share of the first k places that hold a relevant document.

    .. math:: \mathrm{P}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{k}

    The divisor is k even where fewer documents were returned: an empty place is not a relevant document.

    Examples
    --------
    >>> P(cutoff=5).of_list([1, 0, 1, 0, 1])
    0.6
    >>> P(cutoff=10).of_list([1, 0, 1])  # three documents returned: still divided by 10
    0.2
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by k."""
        found = relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, found / self.cutoff, "relevant_found / k", relevant_found=found, k=self.cutoff)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="For results that have no order: a Boolean search, a filter, a candidate set.",
    misleads="It rewards returning little: one relevant document alone scores 1.",
    aliases={"set_P": {}},
    properties=Properties(
        needs_ranking=False,
        ignores_unjudged_tail=False,
        perfect=1.0,
        missing_matter=False,
        additive=True,
        better_first=True,
    ),
    tools={"trec_eval": "set_P", "ir_measures": "SetP"},
)
class SetP(RelevanceMeasure):
    r"""Precision of everything that was returned.

    .. math:: \mathrm{SetP} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{returned}\}|}

    Nothing returned scores 0.

    Examples
    --------
    >>> SetP().of_list([1, 0, None, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by returned."""
        found, returned = relevant_returned(judged, self.rel), judged.returned
        how = "relevant_found / returned"
        return judged.step(self, divide(found, returned), how, relevant_found=found, returned=returned)
