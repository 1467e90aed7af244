"""Discounted gain, or gain alone, as a share of the best that was possible."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.dcg import CG, DCG, IdealDCG
from judged.scoring.measures.gain import BASE, DISCOUNT, GAIN, check_base, gaining, ideal_by_gain
from judged.scoring.measures.parameters import CUTOFF, NEEDED_CUTOFF
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import Discount, Gain, TakesGain


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002; Burges et al. 2005 (exp2)",
    use="The standard for graded judgments and ranked pages: order matters, and every topic counts the same.",
    misleads="One name, many numbers: gain, discount and the cutoff of the ideal differ between tools. A topic with"
    " one weak relevant document scores 1 for returning it.",
    aliases={"ndcg_cut": {}, "ndcg_burges": {"gain": "exp2"}},
    properties=Properties(
        graded=True, monotone=False, perfect=1.0, against_ideal=True, additive=True, better_first=True
    ),
    tools={
        "trec_eval": "ndcg, ndcg_cut_10",
        "ir_measures": "nDCG@10",
        "ranx": "ndcg@10, ndcg_burges@10",
        "gdeval": "ndcg@20 (here nDCG(gain=exp2,undefined=skip)@20)",
    },
)
class nDCG(RelevanceMeasure):
    r"""Normalised DCG: the DCG of the ranking, divided by that of the ideal ranking.

    .. math:: \mathrm{nDCG}@k = \frac{\mathrm{DCG}@k}{\mathrm{DCG}@k\ \text{of all judged documents, best first}}

    The ideal holds every judged document of the topic, returned or not, and is cut at the same k.

    Examples
    --------
    >>> round(nDCG(gain="exp2").of_list([3, 2, 0, 1, 2]), 3)
    0.969
    >>> round(nDCG(gain="exp2").of_list([3, 0, 2, 1, 0]), 3)
    0.951
    >>> round(nDCG(cutoff=2).of_list([0, 7, 2, 4, 6, 1, 4, 3]), 3)
    0.409
    >>> round(nDCG().of_list([0, 4], missing=[4]), 3)
    0.387
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)

    def verify(self) -> None:
        """Refuse a base where the discount has none."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Divide the DCG of the ranking by the DCG of the ideal."""
        dcg, ideal = (part.score(judged) for part in _parts(self.cutoff, self.gain, self.discount, self.base))
        return judged.step(self, divide(dcg, ideal), "DCG / IdealDCG", DCG=dcg, IdealDCG=ideal)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0


@lru_cache(maxsize=64)
def _parts(cutoff: int | None, gain: Gain, discount: Discount, base: float) -> tuple[DCG, IdealDCG]:
    how: dict[str, Any] = {"cutoff": cutoff, "gain": gain, "discount": discount, "base": base}
    return DCG(**how), IdealDCG(**how)


@measure(
    category="graded",
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
    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Divide the CG of the ranking by the CG of the ideal."""
        cg = CG(cutoff=self.cutoff, gain=self.gain, judged_only=False)
        found, most = cg.score(judged), cg.score(ideal_by_gain(judged, self.gain))
        return judged.step(self, divide(found, most), "CG / ideal_CG", CG=found, ideal_CG=most)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0
