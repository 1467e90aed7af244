"""Graded average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.scoring.judging.ranking import running_count, running_sum
from judged.scoring.measures.aggregates import all_relevant, divide, log2
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import GAIN, discounts, gained, gaining, ideal_by_gain
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, real, shares, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain
    from judged.scoring.measures.parameters import Takes


Thresholds: TypeAlias = str | tuple[tuple[float, float], ...]


def _grade(given: Any) -> float:
    grade = float(given)
    if not 0 < grade < float("inf"):
        raise ValueError
    return grade


def _thresholds(given: Any) -> Thresholds:
    return given if given == "equal" else shares(given, _grade, "equal, or grades above 0 with", "{1:0.4,2:0.6}")


THRESHOLDS = Parameter(
    "The probability that a user calls relevant what has this grade or more, for each grade; equal gives every step"
    " of one grade the same.",
    "equal",
    _thresholds,
    values="equal, or a table such as {1:0.5,2:0.3,3:0.2}",
)


@measure(
    category="graded",
    cite="Robertson, Kanoulas and Yilmaz 2010",
    use="Graded judgments, where you would use AP if they were binary: users differ in where they draw the line.",
    misleads="Rarely reported, so there is little to compare with; and like AP it says little about the first page.",
    properties=Properties(graded=True, monotone=False, perfect=1.0, against_ideal=True, better_first=True),
    tools={"TREC Session 2011 script": "GAP (equal thresholds)", "MATTERS": "gradedAveragePrecision"},
)
class GAP(RelevanceMeasure):
    r"""Graded average precision: AP for users who draw the line between relevant and not at different grades.

    .. math:: \mathrm{GAP} = \frac{\sum_{r} \frac{1}{r} \sum_{s \le r} G(\min(i_r, i_s))}{\sum_{\text{judged}} G(i)},
        \quad G(i) = \sum_{j \le i} g_j

    i is the grade of the document at a rank, 0 without a judgment; g_j is the probability that a user takes j as
    the lowest relevant grade, so G(i) is the probability that grade i is relevant. Only the ratios of the
    probabilities count: where they are equal, G(i) can be taken as i itself, whatever the highest grade is.
    With one probability of 1 it is AP with that grade as ``rel``.

    Examples
    --------
    Grades 1, 2, 2: (1/1 + (1 + 2)/2 + (1 + 2 + 2)/3) / (1 + 2 + 2).

    >>> round(GAP().of_list([1, 2, 2]), 4)
    0.8333
    >>> round(GAP(g={1: 1.0}).of_list([1, 0, 2], missing=[1]), 4)  # AP: (1/1 + 2/3) / 3
    0.5556
    """

    g: Takes[Literal["equal"] | Mapping[float, float], Thresholds] = param(THRESHOLDS)

    def score(self, judged: Judged) -> Floats:
        """Average the expected precision at each rank, over the expected number of relevant documents."""
        worth, known = self._probability(judged.grade), self._probability(judged.label_grade)
        agreed, found = _agreed(judged, worth), worth > 0
        judged.column("G", worth, self._rule(), where=found)
        judged.column("agreed", agreed, "sum of min(G, own G) down to this rank", where=found)
        precisions = judged.total("precisions", agreed / judged.rank, "agreed / rank", where=found, agreed=agreed)
        relevant = judged.sum_labels(known)
        if judged.working is not None:
            self._show_judged(judged, known)
        judged.step("expected relevant", relevant, "G of all judged documents, added up")
        return judged.step(
            self,
            divide(precisions, relevant),
            "precisions / expected_relevant",
            precisions=precisions,
            expected_relevant=relevant,
        )

    def _rule(self) -> str:
        if isinstance(self.g, str):
            return "grade"
        return "sum of " + ", ".join(f"{spell(share)} if grade >= {spell(grade)}" for grade, share in self.g)

    def _show_judged(self, judged: Judged, known: Floats) -> None:
        """Show how many judged documents have each grade, and what each of them adds."""
        kept = known > 0
        grades, first, count = np.unique(-judged.label_grade[kept], return_index=True, return_counts=True)
        judged.rows("judged documents by grade", {"grade": -grades, "G": known[kept][first], "documents": count})

    def _probability(self, grades: Floats) -> Floats:
        """Give the probability that each grade is relevant, up to a factor."""
        if isinstance(self.g, str):
            return np.maximum(grades, 0.0)
        probability = np.zeros(len(grades))
        for grade, share in self.g:
            probability += share * (grades >= grade)
        return probability

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document may be relevant."""
        return judged.sum_labels(self._probability(judged.label_grade) > 0) > 0


def _agreed(judged: Judged, worth: Floats) -> Floats:
    """Add up the lesser of the two worths over each hit and all above it: (H,), 0 for a hit worth nothing."""
    # Those above that are worth less count as themselves, all others as the hit. Two worths, numbered, differ in some
    # highest bit: for each bit, among hits whose higher bits are equal, those without it are worth less than those with
    # it. Grades may be as many as hits, so nothing here takes a step for each.
    some = np.flatnonzero(worth > 0)
    topic, value = judged.topic[some], worth[some]
    level = np.unique(value, return_inverse=True)[1]
    lesser, less = np.zeros(len(some)), np.zeros(len(some), dtype=np.int64)
    for bit in range(int(level.max(initial=0)).bit_length()):
        alike = topic * (len(some) + 1) + (level >> (bit + 1))
        order = np.argsort(alike, kind="stable")  # and by rank
        begins = np.diff(alike[order], prepend=-1) != 0
        starts = np.append(np.flatnonzero(begins), len(some))
        greater = (level[order] >> bit & 1).astype(np.bool_)
        lesser[order] += running_sum(value[order] * ~greater, starts) * greater
        less[order] += running_count(~greater, np.cumsum(begins) - 1, starts) * greater
    agreed = np.zeros(len(worth))
    agreed[some] = lesser + value * (judged.count_so_far(worth > 0)[some] - less)
    return agreed


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


BETA = Parameter(
    "How much gains count beside plain hits; with 0 it is AP, and a large one forgives documents far down.",
    1.0,
    real(0),
)


@measure(
    category="graded",
    cite="Sakai 2004; Sakai and Song 2011 for the cutoff",
    use="Graded judgments, and all of the relevant documents are wanted: with nDCG, the standard at NTCIR.",
    misleads="With a cutoff it divides by min(R, k), where AP@k divides by R: Q(beta=0)@k is AP(norm=cutoff)@k."
    " It depends on how the gains are scaled against beta.",
    aliases={"QMeasure": {}, "Q-measure": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0, against_ideal=True),
    tools={"NTCIREVAL": "Q-measure, Q@0010"},
)
class Q(RelevanceMeasure):
    r"""Q-measure: the blended ratio of hits and gains at each relevant document, averaged.

    .. math:: \mathrm{Q}@k = \frac{1}{\min(R, k)} \sum_{r \le k,\ \text{relevant}}
        \frac{C(r) + \beta\, \mathrm{CG}@r}{r + \beta\, \mathrm{CG}@r\ \text{of the ideal}}

    C(r) counts the relevant documents down to rank r. Relevant is what gains something, and R is their number in
    the qrels.

    Examples
    --------
    The example of NTCIREVAL, which prints 0.0967: (1+3)/(2+6) at rank 2 and (2+5)/(4+11) at rank 4, over 10.

    >>> round(Q().of_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1]), 4)
    0.0967
    >>> Q(cutoff=2).of_list([0, 3, None, 2], missing=[3, 3, 2, 2, 1, 1, 1, 1])
    0.25
    """

    cutoff: int | None = param(CUTOFF)
    beta: float = param(BETA)
    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Average the blended ratio over the relevant documents."""
        ideal = ideal_by_gain(judged, self.gain)
        best = np.append(_gain_so_far(ideal, *gained(ideal, self.gain, self.cutoff)), 0.0)
        best = best[ideal.starts[judged.topic] + np.minimum(judged.rank, ideal.returned[judged.topic]) - 1]
        worth, counted = gained(judged, self.gain, self.cutoff)
        found = worth > 0
        total = self._ratios(judged, found, _gain_so_far(judged, worth, counted), best, found & counted)
        known = judged.step("R", gaining(judged, self.gain), "judged documents that gain something")
        if self.cutoff is None:
            return judged.step(self, divide(total, known), "ratios / R", ratios=total, R=known)
        averaged = divide(total, np.minimum(known, self.cutoff))
        return judged.step(self, averaged, "ratios / min(R, k)", ratios=total, R=known, k=self.cutoff)

    def _ratios(self, judged: Judged, found: Bools, gain: Floats, best: Floats, counted: Bools) -> Floats:
        """Add up the blended ratio at each relevant document: (T,)."""
        relevant = judged.count_so_far(found)
        ratio = (relevant + self.beta * gain) / (judged.rank + self.beta * best)
        times = "" if self.beta == 1 else f"{spell(self.beta)} * "
        judged.column(
            "ratio",
            ratio,
            f"(relevant + {times}CG) / (rank + {times}ideal_CG)",
            where=counted,
            relevant=relevant,
            CG=gain,
            ideal_CG=best,
        )
        return judged.total("ratios", ratio, "ratio", where=counted)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0


def _gain_so_far(judged: Judged, worth: Floats, shown: Bools) -> Floats:
    return judged.column("CG", running_sum(worth, judged.starts), "sum of gain so far", where=shown)
