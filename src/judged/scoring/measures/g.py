"""G: gain discounted by what was missed so far, instead of by the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, divide, log2
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import GAIN, discounts, gained, gaining, ideal_by_gain
from judged.scoring.measures.parameters import REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain


@measure(
    category="ranked, binary",
    cite="trec_eval (Buckley 2008)",
    use="Between AP and nDCG: a relevant document is not punished for being ranked below other relevant ones.",
    misleads="Unjudged documents count as not relevant. Rarely reported, so there is little to compare with.",
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "binG"},
)
class BinG(RelevanceMeasure):
    r"""Relevant documents, each discounted by the documents above it that are not relevant.

    .. math:: \mathrm{BinG} = \frac{1}{R} \sum_{r,\ \text{relevant}} \frac{1}{\log_2(2 + m_r)}

    :math:`m_r` is the number of documents above rank r that are not relevant.

    Examples
    --------
    >>> BinG().of_list([1, 1, 0, None, 1], missing=[1])  # (1 + 1 + 1/2) / 4
    0.625
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Add up the discounted relevant documents, and divide by R."""
        relevant = judged.relevant(self.rel)
        so_far = judged.count_so_far(relevant)
        wasted = judged.rank - so_far
        judged.column("m", wasted, "rank - relevant", where=relevant, relevant=so_far)
        discount = discounts(wasted + 1, "log2", 2.0)
        judged.column("discount", discount, "log2(2 + m)", where=relevant, m=wasted)
        worth = judged.total("worth", 1.0 / discount, "1 / discount", where=relevant, discount=discount)
        known = all_relevant(judged, self.rel)
        return judged.step(self, divide(worth, known), "worth / R", worth=worth, R=known)


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="Like BinG, for graded judgments.",
    misleads="It is not a share of an ideal: gains below 1 cannot reach 1. Rarely reported, so there is little to"
    " compare with.",
    properties=Properties(graded=True, monotone=False),
    tools={"trec_eval": "G"},
)
class G(RelevanceMeasure):
    r"""Gain, each discounted by how far the ranking lies behind the ideal one at this rank.

    .. math:: \mathrm{G} = \frac{1}{\sum_i g^*_i} \sum_r \frac{g_r}{\log_2(2 + C_r - \mathrm{CG}@r)},
        \quad C_r = \sum_{i \le r} \max(g^*_i, 1)

    :math:`g^*_i` is the gain at rank i of the ideal ranking, 0 beyond its end.

    Examples
    --------
    The ideal is 2, 1. At rank 1 the ranking is 1 behind, at rank 2 it has caught up: (1/log2(3) + 2/1) / 3.

    >>> round(G().of_list([1, 2]), 4)
    0.877
    >>> G().of_list([2, 0, 0, 1])  # (2 + 1/log2(2 + 2 + 1 + 1 + 1 - 3)) / 3
    0.8333333333333334
    """

    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Add up the discounted gains, and divide by the sum of the ideal ones."""
        ideal = ideal_by_gain(judged, self.gain)
        best, shown = gained(ideal, self.gain)
        ideal_cost = ideal.sum_so_far(np.maximum(best, 1.0))
        ideal.column("C", ideal_cost, "sum of max(gain, 1) so far", where=shown)
        most = ideal.summed("ideal_gain", ideal.sum(best), "gain")
        cost = ideal.so_far_at(judged.topic, judged.rank, ideal_cost)
        cost = _plus_ones(cost, np.maximum(judged.rank - ideal.returned[judged.topic], 0))
        worth, shown = gained(judged, self.gain)
        so_far = judged.column("CG", judged.sum_so_far(worth), "sum of gain so far", where=shown)
        judged.column("C", cost, "that of the ideal ranking, and 1 for each rank behind its end", where=shown)
        discount = log2(2.0 + cost - so_far)
        judged.column("discount", discount, "log2(2 + C - CG)", where=shown, C=cost, CG=so_far)
        total = judged.total("gains", worth / discount, "gain / discount", where=shown, gain=worth, discount=discount)
        return judged.step(self, divide(total, most), "gains / ideal_gain", gains=total, ideal_gain=most)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0


def _plus_ones(values: Floats, times: Ints) -> Floats:
    """Add 1 to each value so many times, one addition after the other: to a fraction, the last bit shows it."""
    order = np.argsort(-times, kind="stable")
    total, falling = values[order], -times[order]
    for step in range(1, int(times.max(initial=0)) + 1):
        total[: np.searchsorted(falling, -step, side="right")] += 1.0
    values[order] = total
    return values
