"""Recall: how much of what is relevant was returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="How much a first stage passes on to the reranker or the reader: R@100, R@1000.",
    misleads="Only judged documents can be relevant here: with a shallow pool, recall of a new system is too low.",
    aliases={"Recall": {}},
    properties=Properties(against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "recall_100", "ir_measures": "R@100", "ranx": "recall@100"},
)
class R(RelevanceMeasure):
    r"""Recall at k: the share of the known relevant documents that are among the first k.

    .. math:: \mathrm{R}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    Eight results, relevant at 2, 4, 5 and 7 of four ("cat in a box"):

    >>> [R(cutoff=k).of_list([0, 1, 0, 1, 1, 0, 1, 0]) for k in range(1, 9)]
    [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0]
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by all relevant."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        return judged.step(self, divide(found, known), "relevant_found / R", relevant_found=found, R=known)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="Whether a candidate set, of whatever size, holds what is relevant.",
    misleads="It rewards returning everything: report the number returned beside it.",
    aliases={"set_recall": {}},
    properties=Properties(needs_ranking=False, perfect=1.0, against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "set_recall", "ir_measures": "SetR"},
)
class SetR(RelevanceMeasure):
    r"""Recall of everything that was returned.

    .. math:: \mathrm{SetR} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    >>> SetR().of_list([1, 0, None, 1], missing=[1, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by all relevant."""
        found, known = relevant_returned(judged, self.rel), all_relevant(judged, self.rel)
        return judged.step(self, divide(found, known), "relevant_found / R", relevant_found=found, R=known)
