"""Cumulated gain, with and without a discount."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import FIXED, Reading, UserModel
from judged.scoring.measures.gain import (
    BASE,
    DISCOUNT,
    GAIN,
    Gain,
    check_base,
    discounted_by,
    discounts,
    gained,
    gaining,
    gains,
    ideal_by_gain,
)
from judged.scoring.measures.parameters import CUTOFF, JUDGED_ONLY, NEEDED_CUTOFF, REL, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import Discount, TakesGain


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="The plain value of what is on the page, before any discount.",
    misleads="It does not see order, and topics with many good documents drown the others in the mean.",
    properties=Properties(high=None, graded=True, missing_matter=False, additive=True, better_first=True),
)
class CG(Measure):
    r"""Cumulated gain: the gains of the first k documents, added up.

    .. math:: \mathrm{CG}@k = \sum_{r \le k} g_r

    Examples
    --------
    >>> CG().of_list([3, 2, 3, 0, 1, 2])
    11.0
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    judged_only: bool = param(JUDGED_ONLY)

    def score(self, judged: Judged) -> Floats:
        """Add up the gains of the first k."""
        gain, counted = gained(judged, self.gain, self.cutoff)
        return judged.total(self, gain, "gain", where=counted)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002; Burges et al. 2005 (exp2)",
    use="The value of a page, in units of gain, to a user who may stop at any rank.",
    misleads="It has no scale common to all topics: compare topics with nDCG. The discount of ranks 1 and 2 differs"
    " between texts.",
    aliases={"dcg_burges": {"gain": "exp2"}},
    properties=Properties(high=None, graded=True, missing_matter=False, additive=True, better_first=True),
    tools={"trec_eval": "dcg", "ranx": "dcg@10, dcg_burges@10"},
)
class DCG(Measure):
    r"""Discounted cumulated gain: each gain divided by a discount of its rank, added up.

    .. math:: \mathrm{DCG}@k = \sum_{r \le k} \frac{g_r}{\log_2(r+1)}

    ``discount=original`` is that of the first paper: gains before rank b are not discounted, from there on
    they are divided by :math:`\log_b r`.

    Examples
    --------
    >>> round(DCG(gain="exp2").of_list([3, 0, 2, 1, 0]), 3)
    8.931
    >>> round(DCG(discount="original").of_list([3, 2, 3, 0, 0, 1, 2, 2, 3, 0]), 2)
    9.61
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)
    judged_only: bool = param(JUDGED_ONLY)

    def verify(self) -> None:
        """Refuse a base where the discount has none."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Add up gain divided by discount over the first k."""
        return _add_up(self, judged)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="The divisor of nDCG: it shows how much there was to gain in each topic.",
    misleads="It is a property of the qrels, not of the run.",
    aliases={"ideal_dcg": {}},
    properties=Properties(
        high=None, needs_ranking=False, graded=True, higher_is_better=None, additive=True, better_first=True
    ),
    tools={"trec_eval": "ideal_dcg"},
)
class IdealDCG(Measure):
    r"""Discounted cumulated gain of the best possible ranking of the judged documents.

    .. math:: \mathrm{IdealDCG}@k = \mathrm{DCG}@k\ \text{of all judged documents, best first}

    Documents with a gain of 0 or less are left out.

    Examples
    --------
    >>> round(IdealDCG(gain="exp2").of_list([3, 0, 2], missing=[1]), 3)
    9.393
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)

    def verify(self) -> None:
        """Refuse a base where the discount has none."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """DCG of the ideal ranking."""
        if judged.working is not None:
            return _add_up(self, ideal_by_gain(judged, self.gain))
        return judged.of_labels(self, lambda: _add_up(self, ideal_by_gain(judged, self.gain)))


def _add_up(measure: DCG | IdealDCG, judged: Judged) -> Floats:
    gain, counted = gained(judged, measure.gain, measure.cutoff)
    discount = discounted_by(judged, measure.discount, measure.base, counted)
    worth = gain / discount
    parts = {} if judged.working is None else {"gain": gain, "discount": discount}
    del gain, discount  # their memory is used again at once: nDCG of many hits takes half the time
    return judged.total(measure, worth, "gain / discount", where=counted, **parts)


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
        known = (judged.num_relevant(self.rel) > 0).astype(np.float64)
        how = "ratios / ranks"
        if not known.all():
            judged.step("known", known, f"1 if some document has a grade of {spell(self.rel)} or more, else 0")
            how = "known * ratios / ranks"
        return judged.step(self, divide(total, points) * known, how, known=known, ratios=total, ranks=points)


@measure(
    category="user model",
    cite="Järvelin and Kekäläinen 2002; cwl_eval; ir_measures",
    use="DCG on a scale that is the same for every topic, whatever is judged: no ideal that depends on the qrels.",
    misleads="A topic with fewer than k documents of the highest grade cannot reach 1, however good the ranking.",
    aliases={"SDCG-k": {}, "NDCGCWLMetric": {}},
    properties=FIXED,
    tools={"ir_measures": "SDCG(max_rel=3)@10", "cwl_eval": "NDCG-k@10"},
)
class SDCG(UserModel):
    r"""Scaled DCG: the DCG of the first k, divided by that of k documents of the highest grade.

    .. math:: C(i) = \frac{\log_2(i+1)}{\log_2(i+2)} \quad (i < k), \qquad
        \mathrm{SDCG}@k = \frac{\sum_{i \le k} g_i / \log_2(i+1)}{\sum_{i \le k} 1 / \log_2(i+1)}

    Examples
    --------
    >>> round(SDCG(max=3, cutoff=2).of_list([3, 0]), 6)  # 1 / (1 + 1/log2(3))
    0.613147
    >>> round(SDCG(max=3, cutoff=2, of="ETU").of_list([3, 3]), 6)  # DCG@2 with gains from 0 to 1
    1.63093
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """The discount of the next rank, divided by that of this one, as far as rank k."""
        ranks = reading.rank.astype(np.int64)
        here, after = (discounts(ranks + step, "log2", 2.0) for step in (0, 1))
        going_on = (here / after * (reading.rank < self.cutoff))[None, :]
        return reading.note("C", going_on, f"log2(rank + 1) / log2(rank + 2), 0 at rank {self.cutoff}")

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)
