"""Cumulated gain, with and without a discount."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.judging.ranking import segment_sum
from judged.scoring.measures.aggregates import divide, explained_ratio
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import FIXED, CutoffUserModel, RankMatrices
from judged.scoring.measures.gain import (
    BASE,
    DISCOUNT,
    GAIN,
    Gain,
    GainMeasure,
    check_base,
    count_gaining,
    discounts,
    gains,
    hit_discounts,
    hit_gains,
    ideal_by_gain,
)
from judged.scoring.measures.parameters import CUTOFF, JUDGED_ONLY, NEEDED_CUTOFF, REL, format_value
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import Discount, GainAttribute


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="You want to know the total gain of the page, without a discount.",
    misleads="The measure ignores the order, and topics with many good documents dominate the mean.",
    properties=Properties(high=None, graded=True, depends_on_missing=False, additive=True, better_first=True),
)
class CG(Measure):
    r"""Cumulated gain: the sum of the gains of the first k documents.

    .. math:: \mathrm{CG}@k = \sum_{r \le k} g_r

    Examples
    --------
    >>> CG().of_list([3, 2, 3, 0, 1, 2])
    11.0
    """

    cutoff: int | None = param(CUTOFF)
    gain: GainAttribute = param(GAIN)
    judged_only: bool = param(JUDGED_ONLY)

    def score(self, judged: Judged) -> Floats:
        """Sum the gains of the first k documents."""
        gain, counted = hit_gains(judged, self.gain, self.cutoff)
        return judged.total(self, gain, "gain", where=counted)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002; Burges et al. 2005 (exp2)",
    use="You want to know the value of a page, in units of gain, for a user who may stop at any rank.",
    misleads="The measure has no common scale for all topics. To compare topics, use nDCG. The discount of ranks 1 and"
    " 2 differs between publications.",
    aliases={"dcg_burges": {"gain": "exp2"}},
    properties=Properties(high=None, graded=True, depends_on_missing=False, additive=True, better_first=True),
    tools={"trec_eval": "dcg", "ranx": "dcg@10, dcg_burges@10"},
)
class DCG(Measure):
    r"""Discounted cumulated gain: the sum of the gains, each divided by a discount of its rank.

    .. math:: \mathrm{DCG}@k = \sum_{r \le k} \frac{g_r}{\log_2(r+1)}

    ``discount=original`` is the discount of Järvelin and Kekäläinen (2002): gains above rank b are not discounted. From
    rank b on, gains are divided by :math:`\log_b r`.

    Examples
    --------
    >>> round(DCG(gain="exp2").of_list([3, 0, 2, 1, 0]), 3)
    8.931
    >>> round(DCG(discount="original").of_list([3, 2, 3, 0, 0, 1, 2, 2, 3, 0]), 2)
    9.61
    """

    cutoff: int | None = param(CUTOFF)
    gain: GainAttribute = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)
    judged_only: bool = param(JUDGED_ONLY)

    def verify(self) -> None:
        """Raise if the discount has no base and one is set."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Sum gain divided by discount over the first k documents."""
        return _discounted_sum(self, judged)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="You want to know the highest possible DCG of each topic, which is the divisor of nDCG.",
    misleads="The measure is a property of the qrels, not of the run.",
    aliases={"ideal_dcg": {}},
    properties=Properties(
        high=None, needs_ranking=False, graded=True, higher_is_better=None, additive=True, better_first=True
    ),
    tools={"trec_eval": "ideal_dcg"},
)
class IdealDCG(Measure):
    r"""Ideal DCG: the DCG of the best possible ranking of the judged documents.

    .. math:: \mathrm{IdealDCG}@k = \mathrm{DCG}@k\ \text{of all judged documents, best first}

    Documents with a gain of 0 or less are omitted.

    Examples
    --------
    >>> round(IdealDCG(gain="exp2").of_list([3, 0, 2], missing=[1]), 3)
    9.393
    """

    cutoff: int | None = param(CUTOFF)
    gain: GainAttribute = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)

    def verify(self) -> None:
        """Raise if the discount has no base and one is set."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Compute the DCG of the ideal ranking."""
        if judged.calculation is not None:
            return _discounted_sum(self, ideal_by_gain(judged, self.gain))
        return judged.cached_by_labels(self, lambda: _discounted_sum(self, ideal_by_gain(judged, self.gain)))


def _discounted_sum(measure: DCG | IdealDCG, judged: Judged) -> Floats:
    gain, counted = hit_gains(judged, measure.gain, measure.cutoff)
    discount = hit_discounts(judged, measure.discount, measure.base, counted)
    discounted = gain / discount
    parts = {} if judged.calculation is None else {"gain": gain, "discount": discount}
    del gain, discount  # frees memory that NumPy reuses at once: nDCG of many hits takes half the time
    return judged.total(measure, discounted, "gain / discount", where=counted, **parts)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002; Burges et al. 2005 (exp2)",
    use="You have graded judgments, and want to use the standard measure. The order matters, and every topic has the"
    " same weight.",
    misleads="Tools compute different scores under this name: the gain, the discount, and the cutoff of the ideal"
    " ranking differ between tools. A"
    " topic whose only relevant document has a low grade scores 1 if it is ranked first.",
    aliases={"ndcg_cut": {}, "ndcg_burges": {"gain": "exp2"}},
    properties=Properties(
        graded=True, monotone=False, perfect=1.0, relative_to_ideal=True, additive=True, better_first=True
    ),
    tools={
        "trec_eval": "ndcg, ndcg_cut_10",
        "ir_measures": "nDCG@10",
        "ranx": "ndcg@10, ndcg_burges@10",
        "gdeval": "ndcg@20 (here nDCG(gain=exp2,undefined=skip)@20)",
    },
)
class nDCG(GainMeasure):
    r"""Normalized DCG: the DCG of the ranking, divided by the DCG of the ideal ranking.

    .. math:: \mathrm{nDCG}@k = \frac{\mathrm{DCG}@k}{\mathrm{DCG}@k\ \text{of all judged documents, best first}}

    The ideal contains every judged document of the topic, returned or not, and has the same cutoff.

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
    gain: GainAttribute = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)

    def verify(self) -> None:
        """Raise if the discount has no base and one is set."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Divide the DCG of the ranking by the DCG of the ideal."""
        dcg, ideal = (term.score(judged) for term in _terms(self.cutoff, self.gain, self.discount, self.base))
        return explained_ratio(judged, self, DCG=dcg, IdealDCG=ideal)


@lru_cache(maxsize=64)
def _terms(cutoff: int | None, gain: Gain, discount: Discount, base: float) -> tuple[DCG, IdealDCG]:
    parameters: dict[str, Any] = {"cutoff": cutoff, "gain": gain, "discount": discount, "base": base}
    return DCG(**parameters), IdealDCG(**parameters)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002 (nCG); TREC Deep Learning 2019 and later (NCG@100)",
    use="You have graded judgments, and want to know the share of the highest possible gain that the first stage"
    " passes to the reranker.",
    misleads="The measure ignores the order within the first k. If k is below the number of relevant documents, the"
    " score is not recall: the ideal ranking is cut at k too.",
    properties=Properties(
        graded=True, monotone=False, perfect=1.0, relative_to_ideal=True, additive=True, better_first=True
    ),
    tools={"TREC Deep Learning overview": "NCG@100"},
)
class NCG(GainMeasure):
    r"""Normalized cumulated gain: the gain of the first k documents, divided by the highest possible gain of k.

    .. math:: \mathrm{NCG}@k = \frac{\mathrm{CG}@k}{\mathrm{CG}@k\ \text{of all judged documents, best first}}

    Examples
    --------
    Gain 2 + 1 of the possible 3 + 2:

    >>> NCG(cutoff=2).of_list([2, 1], missing=[3])
    0.6
    """

    cutoff: int = param(NEEDED_CUTOFF)
    gain: GainAttribute = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Divide the CG of the ranking by the CG of the ideal."""
        cg = CG(cutoff=self.cutoff, gain=self.gain, judged_only=False)
        return explained_ratio(judged, self, CG=cg.score(judged), ideal_CG=cg.score(ideal_by_gain(judged, self.gain)))


def _dcg_so_far(judged: Judged, gain: Gain) -> tuple[Floats, Floats]:
    """Return the DCG at the rank of each hit, and that of the entire ranking: (H,) and (T,)."""
    hit_gain, counted = hit_gains(judged, gain)
    discount = hit_discounts(judged, "log2", 2.0, counted)
    discounted = hit_gain / discount
    so_far = judged.column("DCG", judged.sum_so_far(discounted), "sum of gain / discount so far", where=counted)
    return so_far, judged.sum(discounted)


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="A measure like nDCG without a cutoff, but with less influence of the length of the ranking.",
    misleads="The measure is rarely reported, and it is not nDCG at a cutoff: it averages nDCG over the ranks of the"
    " relevant documents.",
    aliases={"ndcg_rel": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0),
    tools={"trec_eval": "ndcg_rel"},
)
class nDCGrel(GainMeasure):
    r"""nDCG at the rank of each document with a positive gain, averaged over these documents.

    .. math:: \mathrm{nDCGrel} = \frac{1}{n} \sum_{d,\ g_d > 0} \frac{\mathrm{DCG}@r_d}{\mathrm{IdealDCG}@r_d}

    n is the number of documents in the qrels with a positive gain. For a document that was not returned, the DCG of
    the entire ranking is divided by the DCG of the entire ideal ranking. If negative gains make the sum negative, the
    score is 0.

    Examples
    --------
    The ideal is 2, 1. nDCG is 1/2 at rank 1 and 0.8597 at rank 2:

    >>> round(nDCGrel().of_list([1, 2]), 4)
    0.6799
    >>> round(nDCGrel().of_list([1], missing=[2]), 4)  # (1/2 + 1/2.6309) / 2
    0.44
    """

    gain: GainAttribute = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the documents with a positive gain."""
        ideal, is_gaining = ideal_by_gain(judged, self.gain), gains(judged.grade, self.gain) > 0
        ideal_so_far, ideal_total = _dcg_so_far(ideal, self.gain)
        dcg, total = _dcg_so_far(judged, self.gain)
        ideal_dcg = ideal.running_sum_at(judged.topic, judged.rank, ideal_so_far)
        ndcg = divide(dcg, ideal_dcg)
        at_returned = judged.total(
            "nDCG of returned documents", ndcg, "DCG / ideal_DCG", where=is_gaining, DCG=dcg, ideal_DCG=ideal_dcg
        )
        count = judged.step("n", count_gaining(judged, self.gain), "judged documents with a positive gain")
        missed = count - judged.sum(is_gaining)
        at_missed = divide(missed * total, ideal_total)
        judged.step(
            "nDCG of missed documents",
            at_missed,
            "missed_documents * DCG / ideal_DCG",
            missed_documents=missed,
            DCG=total,
            ideal_DCG=ideal_total,
        )
        return judged.step(
            self,
            divide(np.maximum(at_returned + at_missed, 0.0), count),
            "max(nDCG_of_returned_documents + nDCG_of_missed_documents, 0) / n",
            nDCG_of_returned_documents=at_returned,
            nDCG_of_missed_documents=at_missed,
            n=count,
        )


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="Mean nDCG at cutoffs that depend on the topic: the ranks where the grades in the ideal ranking decrease.",
    misleads="The measure is rarely reported. The number of cutoffs varies: one or two for a topic with one grade, up"
    " to five for a topic with four grades.",
    properties=Properties(graded=True, monotone=False, ignores_unjudged_tail=False, additive=True, better_first=True),
    tools={"trec_eval": "Rndcg"},
)
class RnDCG(RelevanceMeasure):
    r"""nDCG at the ranks where the ideal gain decreases, averaged over these ranks.

    .. math:: \mathrm{RnDCG} = \frac{1}{|K|} \sum_{k \in K} \frac{\mathrm{DCG}@k}{\mathrm{IdealDCG}@k}

    K contains each rank of the ideal ranking after which the gain decreases, and the last rank of the ideal ranking. If
    the ranking has at least two documents more than the ideal ranking, K also contains the last rank of the ranking.

    A topic without a document of the grade ``rel`` scores 0, as in trec_eval. ``rel`` has no other effect.

    Examples
    --------
    The ideal gains are 2, 1, 1, so K contains ranks 1 and 3: (1/2 + 0.8597 * 2.6309/3.1309) / 2. The second ranking has
    two documents more than the ideal ranking, so K also contains rank 5.

    >>> round(RnDCG().of_list([1, 2], missing=[1]), 4)
    0.6112
    >>> round(RnDCG().of_list([1, 2, 0, 0, 1]), 4)  # + (2.2619 + 0.3869) / 3.1309
    0.6895
    """

    gain: GainAttribute = param(GAIN)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Average nDCG over the ranks where the ideal gain decreases."""
        ideal = ideal_by_gain(judged, self.gain)
        ideal_gain, (ideal_so_far, ideal_total) = gains(ideal.grade, self.gain), _dcg_so_far(ideal, self.gain)
        dcg, total = _dcg_so_far(judged, self.gain)
        same_as_next = np.append((ideal.topic[1:] == ideal.topic[:-1]) & (ideal_gain[1:] == ideal_gain[:-1]), False)
        last = np.flatnonzero((ideal_gain > 0) & ~same_as_next[: len(ideal_gain)])  # the last hit of each gain
        topic, rank = ideal.topic[last], ideal.rank[last]
        dcg_at_rank, ideal_at_rank = judged.running_sum_at(topic, rank, dcg), ideal_so_far[last]
        ndcg = dcg_at_rank / ideal_at_rank
        counts_end = judged.returned > count_gaining(judged, self.gain) + 1
        ndcg_at_end = divide(total, ideal_total)
        ndcg_sum = segment_sum(ndcg, topic, len(judged)) + counts_end * ndcg_at_end
        ranks = np.bincount(topic, minlength=len(judged)) + counts_end
        end = ", and the end of the ranking" if counts_end.any() else ""
        if judged.calculation is not None:
            inner = {"rank": rank, "DCG": dcg_at_rank, "ideal_DCG": ideal_at_rank, "nDCG": ndcg}
            ends = {"rank": judged.returned, "DCG": total, "ideal_DCG": ideal_total, "nDCG": ndcg_at_end}
            columns = {name: np.append(inner[name], ends[name][counts_end]) for name in inner}
            if len(columns["rank"]):
                judged.rows(f"ranks where the ideal gain decreases{end}", columns, nDCG="DCG / ideal_DCG")
        judged.step("ratios", ndcg_sum, f"sum of nDCG at the ranks where the ideal gain decreases{end}")
        has_relevant = (judged.num_relevant(self.rel) > 0).astype(np.float64)
        how = "ratios / ranks"
        if not has_relevant.all():
            level = format_value(self.rel)
            judged.step("has_relevant", has_relevant, f"1 if some document has a grade of {level} or more, else 0")
            how = "has_relevant * ratios / ranks"
        score = divide(ndcg_sum, ranks) * has_relevant
        return judged.step(self, score, how, has_relevant=has_relevant, ratios=ndcg_sum, ranks=ranks)


@measure(
    category="user model",
    cite="Järvelin and Kekäläinen 2002; cwl_eval; ir_measures",
    use="Use this measure instead of DCG if you need the same scale for every topic. The divisor does not depend on the"
    " qrels.",
    misleads="A topic with fewer than k documents of the highest grade cannot reach 1, even with the best ranking.",
    aliases={"SDCG-k": {}, "NDCGCWLMetric": {}},
    properties=FIXED,
    tools={"ir_measures": "SDCG(max_rel=3)@10", "cwl_eval": "NDCG-k@10"},
)
class SDCG(CutoffUserModel):
    r"""Scaled DCG: the DCG of the first k, divided by the DCG of k documents of the highest grade.

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

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: the discount of the rank divided by that of the next rank, and 0 at rank k."""
        ranks = matrices.rank.astype(np.int64)
        # The weights W are proportional to 1 / log2(i + 1), so C is the ratio of two consecutive ones.
        discount, next_discount = (discounts(ranks + step, "log2", 2.0) for step in (0, 1))
        continuation = (discount / next_discount * (matrices.rank < self.cutoff))[None, :]
        return matrices.note("C", continuation, f"log2(rank + 1) / log2(rank + 2), 0 at rank {self.cutoff}")
