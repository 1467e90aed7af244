"""Normalised cumulated gain: recall for grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.measures.arithmetic import divide
from judged.measures.base import Properties, RelevanceMeasure, param
from judged.measures.dcg import CG
from judged.measures.gain import GAIN, Gain, gaining, ideal_by_gain
from judged.measures.parameters import NEEDED_CUTOFF
from judged.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged


@measure(
    family="graded",
    cite="Järvelin and Kekäläinen 2002 (nCG); TREC Deep Learning 2019 and later (NCG@100)",
    use="The first stage of a pipeline with graded judgments: how much of the possible gain reaches the reranker.",
    misleads="The order within the first k does not matter. With k below the number of relevant documents it is no"
    " recall: the ideal is cut at k too.",
    properties=Properties(
        graded=True, monotone=False, perfect=1.0, against_ideal=True, additive=True, better_first=True
    ),
    tools={"TREC Deep Learning overview": "NCG@100"},
)
class NCG(RelevanceMeasure):
    r"""Normalised cumulated gain: the gain of the first k documents, divided by the most that k could gain.

    .. math:: \mathrm{NCG}@k = \frac{\mathrm{CG}@k}{\mathrm{CG}@k\ \text{of all judged documents, best first}}

    Examples
    --------
    Gain 2 + 1 of the possible 3 + 2:

    >>> NCG(cutoff=2).of_list([2, 1], missing=[3])
    0.6
    """

    cutoff: int = param(NEEDED_CUTOFF)
    gain: Gain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Divide the CG of the ranking by the CG of the ideal."""
        cg = CG(cutoff=self.cutoff, gain=self.gain, judged_only=False)
        found, most = cg.score(judged), cg.score(ideal_by_gain(judged, self.gain))
        return judged.step(self, divide(found, most), "CG / ideal_CG", CG=found, ideal_CG=most)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0
