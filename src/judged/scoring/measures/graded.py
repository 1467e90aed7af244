"""Graded variants of average precision, and measures of Buckley (trec_eval) and Sakai."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.scoring.judging.ranking import running_count, running_sum
from judged.scoring.measures.aggregates import count_relevant, divide, explained_ratio, log2
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import GAIN, GainMeasure, count_gaining, discounts, hit_gains, ideal_by_gain
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, format_value, parse_shares, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import GainAttribute
    from judged.scoring.measures.parameters import ConvertedAttribute


Thresholds: TypeAlias = str | tuple[tuple[float, float], ...]


def _parse_grade(value: Any) -> float:
    grade = float(value)
    if not 0 < grade < float("inf"):
        raise ValueError
    return grade


def _parse_thresholds(value: Any) -> Thresholds:
    if value == "equal":
        return value
    return parse_shares(value, _parse_grade, "the word equal, or a table of grades above 0 with", "{1:0.4,2:0.6}")


THRESHOLDS = Parameter(
    "For each grade, the probability that it is the lowest grade that a user considers relevant. `equal`: the same"
    " probability for every grade.",
    "equal",
    _parse_thresholds,
    values="equal, or a table such as {1:0.5,2:0.3,3:0.2}",
)


@measure(
    category="graded",
    cite="Robertson, Kanoulas and Yilmaz 2010",
    use="You have graded judgments, and would use AP if the judgments were binary. Users differ in the lowest grade"
    " that they"
    " accept.",
    misleads="The measure is rarely reported, so there are few scores to compare with. Like AP, it shows little about"
    " the quality of the first page.",
    properties=Properties(graded=True, monotone=False, perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={"TREC Session 2011 script": "GAP (equal thresholds)", "MATTERS": "gradedAveragePrecision"},
)
class GAP(RelevanceMeasure):
    r"""Graded average precision: AP for users who differ in the lowest grade that they consider relevant.

    .. math:: \mathrm{GAP} = \frac{\sum_{r} \frac{1}{r} \sum_{s \le r} G(\min(i_r, i_s))}{\sum_{\text{judged}} G(i)},
        \quad G(i) = \sum_{j \le i} g_j

    i is the grade of the document at a rank, 0 without a judgment. g_j is the probability that a user considers j the
    lowest relevant grade, so G(i) is the probability that grade i is relevant. Only the ratios of the probabilities
    matter: if all probabilities are equal, i can be used instead of G(i), whatever the highest grade. If one grade has
    the probability 1, GAP equals AP with this grade as ``rel``.

    Examples
    --------
    Grades 1, 2, 2: (1/1 + (1 + 2)/2 + (1 + 2 + 2)/3) / (1 + 2 + 2).

    >>> round(GAP().of_list([1, 2, 2]), 4)
    0.8333
    >>> round(GAP(g={1: 1.0}).of_list([1, 0, 2], missing=[1]), 4)  # AP: (1/1 + 2/3) / 3
    0.5556
    """

    g: ConvertedAttribute[Literal["equal"] | Mapping[float, float], Thresholds] = param(THRESHOLDS)

    def score(self, judged: Judged) -> Floats:
        """Divide the sum of the expected precision at each rank by the expected number of relevant documents."""
        probability, label_probability = self._probability(judged.grade), self._probability(judged.label_grade)
        # Equation 8 of Robertson et al. 2010; `agreed` is its inner sum.
        agreed, may_be_relevant = _agreed(judged, probability), probability > 0
        judged.column("G", probability, self._formula(), where=may_be_relevant)
        judged.column(
            "joint_G", agreed, "sum of min(G at each rank, G at this rank) down to this rank", where=may_be_relevant
        )
        precisions = judged.total(
            "precisions", agreed / judged.rank, "joint_G / rank", where=may_be_relevant, joint_G=agreed
        )
        relevant = judged.sum_labels(label_probability)
        if judged.calculation is not None:
            self._explain_labels(judged, label_probability)
        judged.step("expected relevant", relevant, "sum of G over all judged documents")
        return explained_ratio(judged, self, precisions=precisions, expected_relevant=relevant)

    def _formula(self) -> str:
        if isinstance(self.g, str):
            return "grade"
        terms = (f"{format_value(share)} if grade >= {format_value(grade)}" for grade, share in self.g)
        return "sum of " + ", ".join(terms)

    def _explain_labels(self, judged: Judged, label_probability: Floats) -> None:
        """Show the number of judged documents of each grade, and the probability that each is relevant."""
        may_be_relevant = label_probability > 0
        grades, first, count = np.unique(-judged.label_grade[may_be_relevant], return_index=True, return_counts=True)
        columns = {"grade": -grades, "G": label_probability[may_be_relevant][first], "documents": count}
        judged.rows("judged documents by grade", columns)

    def _probability(self, grades: Floats) -> Floats:
        """Return the probability that each grade is relevant, up to a constant factor."""
        if isinstance(self.g, str):
            return np.maximum(grades, 0.0)
        probability = np.zeros(len(grades))
        for grade, share in self.g:
            probability += share * (grades >= grade)
        return probability

    def is_defined(self, judged: Judged) -> Any:
        """Return whether each topic has a judged document that may be relevant: (T,) bool."""
        return judged.sum_labels(self._probability(judged.label_grade) > 0) > 0


def _agreed(judged: Judged, values: Floats) -> Floats:
    """Return the sum of min(own value, other value) over each hit and all hits above it: (H,), 0 for a value of 0."""
    # Hits above with a lower value count with their value, all others with that of the hit. Lower values are found bit
    # by bit of the index of the value: two indices differ first in some bit, and among hits with equal higher bits,
    # those without the bit are lower. So the number of passes is log2 of the number of distinct values, which can be as
    # large as the number of hits.
    positive = np.flatnonzero(values > 0)
    topic, value = judged.topic[positive], values[positive]
    level = np.unique(value, return_inverse=True)[1]
    lower_sum, lower_count = np.zeros(len(positive)), np.zeros(len(positive), dtype=np.int64)
    for bit in range(int(level.max(initial=0)).bit_length()):
        group = topic * (len(positive) + 1) + (level >> (bit + 1))
        order = np.argsort(group, kind="stable")  # by rank within a group
        starts_group = np.diff(group[order], prepend=-1) != 0
        starts = np.append(np.flatnonzero(starts_group), len(positive))
        has_bit = (level[order] >> bit & 1).astype(np.bool_)
        lower_sum[order] += running_sum(value[order] * ~has_bit, starts) * has_bit
        lower_count[order] += running_count(~has_bit, np.cumsum(starts_group) - 1, starts) * has_bit
    agreed = np.zeros(len(values))
    agreed[positive] = lower_sum + value * (judged.count_so_far(values > 0)[positive] - lower_count)
    return agreed


@measure(
    category="ranked, binary",
    cite="trec_eval (Buckley 2008)",
    use="You want a compromise between AP and nDCG: a relevant document is discounted only for the documents above"
    " it that are"
    " not relevant.",
    misleads="Unjudged documents count as not relevant. The measure is rarely reported, so there are few scores to"
    " compare with.",
    properties=Properties(perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={"trec_eval": "binG"},
)
class BinG(RelevanceMeasure):
    r"""Relevant documents, each discounted by the number of documents above it that are not relevant.

    .. math:: \mathrm{BinG} = \frac{1}{R} \sum_{r,\ \text{relevant}} \frac{1}{\log_2(2 + m_r)}

    Above rank r, :math:`m_r` documents are not relevant.

    Examples
    --------
    >>> BinG().of_list([1, 1, 0, None, 1], missing=[1])  # (1 + 1 + 1/2) / 4
    0.625
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the sum of the discounted relevant documents by R."""
        is_relevant = judged.relevant(self.rel)
        relevant_so_far = judged.count_so_far(is_relevant)
        nonrelevant_above = judged.rank - relevant_so_far
        judged.column("m", nonrelevant_above, "rank - relevant", where=is_relevant, relevant=relevant_so_far)
        discount = discounts(nonrelevant_above + 1, "log2", 2.0)
        judged.column("discount", discount, "log2(2 + m)", where=is_relevant, m=nonrelevant_above)
        total = judged.total(
            "discounted relevant", 1.0 / discount, "1 / discount", where=is_relevant, discount=discount
        )
        return explained_ratio(judged, self, discounted_relevant=total, R=count_relevant(judged, self.rel))


@measure(
    category="graded",
    cite="trec_eval (Buckley 2008)",
    use="Use this measure instead of BinG if the judgments are graded.",
    misleads="The score is not relative to an ideal ranking: with gains below 1, it cannot reach 1. The measure is"
    " rarely reported, so there are few scores to compare with.",
    properties=Properties(graded=True, monotone=False),
    tools={"trec_eval": "G"},
)
class G(GainMeasure):
    r"""Gain of each document, discounted by the distance of the cumulative gain from the ideal at the same rank.

    .. math:: \mathrm{G} = \frac{1}{\sum_i g^*_i} \sum_r \frac{g_r}{\log_2(2 + C_r - \mathrm{CG}@r)},
        \quad C_r = \sum_{i \le r} \max(g^*_i, 1)

    :math:`g^*_i` is the gain at rank i of the ideal ranking, 0 below its end.

    Examples
    --------
    The ideal gains are 2, 1. The cumulative gain is 1 less than the ideal at rank 1, and equal to the ideal at rank 2:
    (1/log2(3) + 2/1) / 3.

    >>> round(G().of_list([1, 2]), 4)
    0.877
    >>> G().of_list([2, 0, 0, 1])  # (2 + 1/log2(2 + 2 + 1 + 1 + 1 - 3)) / 3
    0.8333333333333334
    """

    gain: GainAttribute = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Divide the sum of the discounted gains by the sum of the ideal gains."""
        ideal = ideal_by_gain(judged, self.gain)
        ideal_gain, counted = hit_gains(ideal, self.gain)
        ideal_cost = ideal.sum_so_far(np.maximum(ideal_gain, 1.0))
        ideal.column("C", ideal_cost, "sum of max(gain, 1) so far", where=counted)
        ideal_total = ideal.summed("ideal_gain", ideal.sum(ideal_gain), "gain")
        cost = ideal.running_sum_at(judged.topic, judged.rank, ideal_cost)
        cost = _add_ranks_beyond_ideal(cost, np.maximum(judged.rank - ideal.returned[judged.topic], 0))
        gain, counted = hit_gains(judged, self.gain)
        so_far = judged.column("CG", judged.sum_so_far(gain), "sum of gain so far", where=counted)
        judged.column(
            "C", cost, "C of the ideal ranking, plus 1 for each rank below the end of the ideal ranking", where=counted
        )
        discount = log2(2.0 + cost - so_far)
        judged.column("discount", discount, "log2(2 + C - CG)", where=counted, C=cost, CG=so_far)
        total = judged.total("gains", gain / discount, "gain / discount", where=counted, gain=gain, discount=discount)
        return explained_ratio(judged, self, gains=total, ideal_gain=ideal_total)


def _add_ranks_beyond_ideal(values: Floats, counts: Ints) -> Floats:
    # Adds 1 repeatedly instead of the count once: for a fraction, the last bits can differ.
    order = np.argsort(-counts, kind="stable")
    total, falling = values[order], -counts[order]
    for step in range(1, int(counts.max(initial=0)) + 1):
        total[: np.searchsorted(falling, -step, side="right")] += 1.0
    values[order] = total
    return values


BETA = Parameter(
    "The weight of the cumulative gain in the ratio, relative to the number of relevant documents. With beta=0, the"
    " measure is AP. A large beta penalizes deep ranks less.",
    1.0,
    real(0),
)


@measure(
    category="graded",
    cite="Sakai 2004; Sakai and Song 2011 for the cutoff",
    use="You have graded judgments, and users need all relevant documents. Q and nDCG are the standard measures at"
    " NTCIR.",
    misleads="With a cutoff, Q@k divides by min(R, k), while AP@k divides by R: Q(beta=0)@k is AP(norm=cutoff)@k."
    " The score depends on the scale of the gains: multiplying all gains by 2 has the same effect as multiplying"
    " beta by 2.",
    aliases={"QMeasure": {}, "Q-measure": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0, relative_to_ideal=True),
    tools={"NTCIREVAL": "Q-measure, Q@0010"},
)
class Q(GainMeasure):
    r"""Q-measure: (hits + cumulative gain) / (rank + ideal cumulative gain), averaged over the relevant documents.

    .. math:: \mathrm{Q}@k = \frac{1}{\min(R, k)} \sum_{r \le k,\ \text{relevant}}
        \frac{C(r) + \beta\, \mathrm{CG}@r}{r + \beta\, \mathrm{CG}@r\ \text{of the ideal}}

    C(r) is the number of relevant documents down to rank r. A document is relevant if its gain is positive. R is
    the number of relevant documents in the qrels.

    Examples
    --------
    An example of NTCIREVAL, which prints 0.0967: (1+3)/(2+6) at rank 2 and (2+5)/(4+11) at rank 4, divided by 10.

    >>> round(Q().of_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1]), 4)
    0.0967
    >>> Q(cutoff=2).of_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1])
    0.25
    """

    cutoff: int | None = param(CUTOFF)
    beta: float = param(BETA)
    gain: GainAttribute = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Average the blended ratio over the relevant documents."""
        ideal = ideal_by_gain(judged, self.gain)
        ideal_so_far = np.append(_gain_so_far(ideal, *hit_gains(ideal, self.gain, self.cutoff)), 0.0)
        # Below the end of the ideal ranking, its last sum applies.
        position = ideal.starts[judged.topic] + np.minimum(judged.rank, ideal.returned[judged.topic]) - 1
        gain, counted = hit_gains(judged, self.gain, self.cutoff)
        is_relevant, gain_so_far = gain > 0, _gain_so_far(judged, gain, counted)
        total = self._sum_ratios(judged, is_relevant, gain_so_far, ideal_so_far[position], is_relevant & counted)
        relevant = judged.step("R", count_gaining(judged, self.gain), "judged documents with a positive gain")
        if self.cutoff is None:
            return explained_ratio(judged, self, ratios=total, R=relevant)
        mean = divide(total, np.minimum(relevant, self.cutoff))
        return judged.step(self, mean, "ratios / min(R, k)", ratios=total, R=relevant, k=self.cutoff)

    def _sum_ratios(
        self, judged: Judged, is_relevant: Bools, gain: Floats, ideal_gain: Floats, counted: Bools
    ) -> Floats:
        """Sum the blended ratio at each relevant document: (T,)."""
        relevant = judged.count_so_far(is_relevant)
        # The blended ratio of Sakai 2004: with beta = 0 it is precision, and it approaches CG / ideal CG as beta grows.
        ratio = (relevant + self.beta * gain) / (judged.rank + self.beta * ideal_gain)
        times = "" if self.beta == 1 else f"{format_value(self.beta)} * "
        judged.column(
            "ratio",
            ratio,
            f"(relevant + {times}CG) / (rank + {times}ideal_CG)",
            where=counted,
            relevant=relevant,
            CG=gain,
            ideal_CG=ideal_gain,
        )
        return judged.total("ratios", ratio, "ratio", where=counted)


def _gain_so_far(judged: Judged, gain: Floats, counted: Bools) -> Floats:
    return judged.column("CG", running_sum(gain, judged.starts), "sum of gain so far", where=counted)
