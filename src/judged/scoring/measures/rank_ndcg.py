"""nDCG averaged over ranks that each topic sets for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.judging.segments import segment_sum
from judged.scoring.measures.arithmetic import divide, relevant_known
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import GAIN, Gain, discounted_by, gained, gaining, gains, ideal_by_gain
from judged.scoring.measures.parameters import REL, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain


def _dcg_so_far(judged: Judged, gain: Gain) -> tuple[Floats, Floats]:
    """Give the DCG at the rank of each hit, and that of the whole ranking: (H,) and (T,)."""
    worth, shown = gained(judged, gain)
    discount = discounted_by(judged, "log2", 2.0, shown)
    added = worth / discount
    so_far = judged.column("DCG", judged.sum_so_far(added), "sum of gain / discount so far", where=shown)
    return so_far, judged.sum(added)


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="An nDCG without a cutoff to choose, and with less weight on where the ranking happens to end.",
    misleads="Rarely reported, and not nDCG of anything: each topic has as many points as relevant documents.",
    aliases={"ndcg_rel": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0),
    tools={"trec_eval": "ndcg_rel"},
)
class nDCGrel(RelevanceMeasure):
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

    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the documents that gain something."""
        ideal, found = ideal_by_gain(judged, self.gain), gains(judged.grade, self.gain) > 0
        best, most = _dcg_so_far(ideal, self.gain)
        dcg, whole = _dcg_so_far(judged, self.gain)
        ideal_dcg = ideal.so_far_at(judged.topic, judged.rank, best)
        ratio = divide(dcg, ideal_dcg)
        at_found = judged.total("at returned", ratio, "DCG / ideal_DCG", where=found, DCG=dcg, ideal_DCG=ideal_dcg)
        known = judged.step("n", gaining(judged, self.gain), "judged documents that gain something")
        missed = known - judged.sum(found)
        at_missed = divide(missed * whole, most)
        judged.step("at missed", at_missed, "missed * DCG / ideal_DCG", missed=missed, DCG=whole, ideal_DCG=most)
        return judged.step(
            self,
            divide(np.maximum(at_found + at_missed, 0.0), known),
            "max(at_returned + at_missed, 0) / n",
            at_returned=at_found,
            at_missed=at_missed,
            n=known,
        )

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="An nDCG at cutoffs that suit each topic: the sizes of its grades.",
    misleads="Rarely reported. A topic with one grade has one or two points, one with four grades up to five.",
    properties=Properties(graded=True, monotone=False, ignores_unjudged_tail=False, additive=True, better_first=True),
    tools={"trec_eval": "Rndcg"},
)
class RnDCG(RelevanceMeasure):
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

    gain: TakesGain = param(GAIN)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the ranks where the ideal gain changes."""
        ideal = ideal_by_gain(judged, self.gain)
        worth, (best, most) = gains(ideal.grade, self.gain), _dcg_so_far(ideal, self.gain)
        dcg, whole = _dcg_so_far(judged, self.gain)
        same = np.append((ideal.topic[1:] == ideal.topic[:-1]) & (worth[1:] == worth[:-1]), False)  # as the next
        last = np.flatnonzero((worth > 0) & ~same[: len(worth)])
        topic, rank = ideal.topic[last], ideal.rank[last]
        dcg_there, best_there = judged.so_far_at(topic, rank, dcg), best[last]
        ratio = dcg_there / best_there
        beyond = judged.returned > gaining(judged, self.gain) + 1
        at_end = divide(whole, most)
        total = segment_sum(ratio, topic, len(judged)) + beyond * at_end
        points = np.bincount(topic, minlength=len(judged)) + beyond
        if judged.working is not None:
            there = {"rank": rank, "DCG": dcg_there, "ideal_DCG": best_there, "nDCG": ratio}
            at_ends = {"rank": judged.returned, "DCG": whole, "ideal_DCG": most, "nDCG": at_end}
            end = ", and the end of the ranking" if beyond.any() else ""
            columns = {name: np.append(there[name], at_ends[name][beyond]) for name in there}
            if len(columns["rank"]):
                judged.rows(f"ranks where the ideal gain falls{end}", columns, nDCG="DCG / ideal_DCG")
        judged.step("ratios", total, "nDCG at these ranks, added up")
        known = (relevant_known(judged, self.rel) > 0).astype(np.float64)
        how = "ratios / ranks"
        if not known.all():
            judged.step("known", known, f"1 if some document has a grade of {spell(self.rel)} or more, else 0")
            how = "known * ratios / ranks"
        return judged.step(self, divide(total, points) * known, how, known=known, ratios=total, ranks=points)
