"""nDCG averaged over ranks that each topic sets for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.judging.segments import segment_sum
from judged.measures.arithmetic import divide, relevant_known
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.gain import GAIN, Gain, discounts, gaining, gains, ideal_by_gain
from judged.measures.parameters import JUDGED_ONLY, REL, UNDEFINED

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged


def _discounted(judged: Judged, gain: Gain) -> Floats:
    return gains(judged.grade, gain) / discounts(judged.rank, "log2", 2.0)


@measure(
    family="graded",
    cite="trec_eval (Buckley 2008)",
    use="An nDCG without a cutoff to choose, and with less weight on where the ranking happens to end.",
    misleads="Seldom reported, and not nDCG of anything: each topic has as many points as relevant documents.",
    aliases={"ndcg_rel": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0),
    tools={"trec_eval": "ndcg_rel"},
)
class nDCGrel(Measure):
    r"""nDCG at the rank of each document that gains something, averaged over all such documents.

    .. math:: \mathrm{nDCGrel} = \frac{1}{n} \sum_{d,\ g_d > 0} \frac{\mathrm{DCG}@r_d}{\mathrm{IdealDCG}@r_d}

    n is their number in the qrels. For one that was not returned, the DCG of the whole ranking is divided by that
    of the whole ideal. Where negative gains make the sum negative, the score is 0.

    Examples
    --------
    The ideal is 2, 1: at rank 1 nDCG is 1/2, at rank 2 it is 0.8597.

    >>> round(nDCGrel().of_list([1, 2]), 4)
    0.6799
    >>> round(nDCGrel().of_list([1], missing=[2]), 4)  # (1/2 + 1/2.6309) / 2
    0.44
    """

    gain: Gain = param(GAIN)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the documents that gain something."""
        ideal, found = ideal_by_gain(judged, self.gain), gains(judged.grade, self.gain) > 0
        dcg, best = _discounted(judged, self.gain), _discounted(ideal, self.gain)
        ideal_so_far = ideal.so_far_at(judged.topic, judged.rank, ideal.sum_so_far(best))
        total = judged.sum(found * divide(judged.sum_so_far(dcg), ideal_so_far))
        known = gaining(judged, self.gain)
        total += divide((known - judged.sum(found)) * judged.sum(dcg), ideal.sum(best))
        return divide(np.maximum(total, 0.0), known)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0


@measure(
    family="graded",
    cite="trec_eval (Buckley 2008)",
    use="An nDCG at cutoffs that suit each topic: the sizes of its grades.",
    misleads="Seldom reported. A topic with one grade has one or two points, one with four grades up to five.",
    properties=Properties(graded=True, monotone=False, ignores_unjudged_tail=False),
    tools={"trec_eval": "Rndcg"},
)
class RnDCG(Measure):
    r"""nDCG at the ranks where the ideal gain changes, averaged.

    .. math:: \mathrm{RnDCG} = \frac{1}{|K|} \sum_{k \in K} \frac{\mathrm{DCG}@k}{\mathrm{IdealDCG}@k}

    K holds the ranks of the ideal ranking behind which the gain is lower, its end included; and, where more than
    one document was returned behind that end, the end of the ranking.

    A topic without a document of the grade ``rel`` scores 0, as trec_eval has it; ``rel`` does nothing else.

    Examples
    --------
    The ideal is 2, 1, 1, so K is 1 and 3: (1/2 + 0.8597 * 2.6309/3.1309) / 2. Two documents more, and the end of
    the ranking counts too.

    >>> round(RnDCG().of_list([1, 2], missing=[1]), 4)
    0.6112
    >>> round(RnDCG().of_list([1, 2, 0, 0, 1]), 4)  # + (2.2619 + 0.3869) / 3.1309
    0.6895
    """

    gain: Gain = param(GAIN)
    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the ranks where the ideal gain changes."""
        ideal = ideal_by_gain(judged, self.gain)
        worth, dcg, best = gains(ideal.grade, self.gain), _discounted(judged, self.gain), _discounted(ideal, self.gain)
        same = np.append((ideal.topic[1:] == ideal.topic[:-1]) & (worth[1:] == worth[:-1]), False)  # as the next
        last = np.flatnonzero((worth > 0) & ~same[: len(worth)])
        topic, rank = ideal.topic[last], ideal.rank[last]
        ratio = judged.so_far_at(topic, rank, judged.sum_so_far(dcg)) / ideal.sum_so_far(best)[last]
        beyond = judged.returned > gaining(judged, self.gain) + 1
        total = segment_sum(ratio, topic, len(judged)) + beyond * divide(judged.sum(dcg), ideal.sum(best))
        points = np.bincount(topic, minlength=len(judged)) + beyond
        return divide(total, points) * (relevant_known(judged, self.rel) > 0)
