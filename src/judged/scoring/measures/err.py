"""Expected reciprocal rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.aggregates import divide, explained_ratio
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import EXPECTED, CutoffUserModel, RankMatrices, UserModel
from judged.scoring.measures.diversity import (
    ALPHA,
    BETA,
    BY_RANK,
    MOST,
    greedy_ideal,
    normalized_novelty,
    novelty,
    powers,
    subtopic_counts,
)
from judged.scoring.measures.gain import HIGHEST, check_scale, hit_gains
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, CUTOFF, NEEDED_CUTOFF, REL, Parameter, format_value, real
from judged.scoring.measures.rbp import CONTINUATION_FORMULA, GOAL, continuation_probability
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged


_MAX_GRADE = 1000.0  # 2^1024 is too large for a double


def product_above(judged: Judged, values: Floats, within: Bools) -> Floats:
    """Return the product of the values of all hits above each hit: (H,), 1 for the first. Only hits in ``within``."""
    product = np.ones(len(values))
    start, count = judged.starts[:-1], judged.sum(within).astype(np.int64)
    # At most sqrt(H) topics are longer than this, and the others have at most sqrt(H) ranks: both loops are short.
    long_length = math.isqrt(len(values))
    for topic in np.flatnonzero(count > long_length).tolist():
        first, last = int(start[topic]), int(start[topic] + count[topic]) - 1
        np.multiply.accumulate(values[first:last], out=product[first + 1 : last + 1])
    start, count = start[count <= long_length], count[count <= long_length]
    for offset in range(1, int(count.max(initial=0))):  # the hits of all shorter topics at this offset
        start, count = start[count > offset], count[count > offset]
        hits = start + offset
        product[hits] = product[hits - 1] * values[hits - 1]
    return product


@measure(
    category="user model",
    cite="Chapelle, Metzler, Zhang and Grinspan 2009; gdeval",
    use="Users need one good answer, and grades state how good each document is. Documents ranked below a document"
    " of the highest grade matter little.",
    misleads="The highest grade of the scale changes every score. The highest grade is 4 in gdeval and often 3"
    " elsewhere. The document at rank 1 determines most of the score, so few topics decide a comparison.",
    properties=Properties(graded=True, depends_on_missing=False, better_first=True),
    tools={"gdeval": "err@20 (here ERR(max=4,undefined=skip)@20)", "ir_measures": "ERR@20 (here ERR(max=4)@20)"},
)
class ERR(RelevanceMeasure):
    r"""Expected reciprocal rank: the mean of 1/rank of the document that satisfies the user.

    .. math:: \mathrm{ERR}@k = \sum_{r \le k} \frac{1}{r}\, R_r \prod_{s < r} (1 - R_s), \qquad
        R = \frac{2^g - 1}{2^{\max}}

    R is the probability that a document of grade g satisfies the user. For the highest grade, R is 1 - 2^-max, which
    is less than 1. A document without a judgment, or with a negative grade, has R = 0.

    Examples
    --------
    Grades up to 2: grade 2 satisfies with probability 3/4, grade 1 with 1/4.

    >>> ERR(max=2).of_list([2, 1])  # 3/4 + 1/2 (1/4) (1/4)
    0.78125
    >>> ERR(max=2).of_list([1, 2])  # 1/4 + 1/2 (3/4) (3/4)
    0.53125
    """

    cutoff: int | None = param(CUTOFF)
    max: float = param(HIGHEST)

    def verify(self) -> None:
        """Raise if 2^max is too large.

        Raises
        ------
        MeasureError
            If the highest grade is too high.
        """
        if self.max > _MAX_GRADE:
            raise MeasureError(
                f"ERR: 2^{format_value(self.max)} is too large. Fix: set max to the highest grade, such as 4"
            )

    def score(self, judged: Judged) -> Floats:
        """Sum the probability that the user stops at each document, divided by its rank."""
        check_scale(judged, self.max, self)
        within = judged.within(self.cutoff)
        gain, counted = hit_gains(judged, "exp2", self.cutoff)
        satisfied = gain / 2.0**self.max
        judged.column("R", satisfied, f"gain / 2^{format_value(self.max)}", where=counted, gain=gain)
        # Cascade model: the user reaches a rank if no document above it was satisfying.
        reached = product_above(judged, 1.0 - satisfied, within)
        judged.column("reached", reached, "product of (1 - R) over the ranks above", where=counted)
        expected = satisfied * reached / judged.rank
        return judged.total(self, expected, "R * reached / rank", where=counted, R=satisfied, reached=reached)


@measure(
    category="diversity",
    cite="Chapelle et al. 2009 and 2011; normalized as in ndeval, TREC Web 2009 to 2014",
    use="Each user has one of several intents and stops at a satisfying document. The first ranks count most.",
    misleads="All intents have the same weight, even rare intents, and relevance is binary.",
    aliases={"ERR_IA": {}},
    properties=Properties(uses_all_labels=True),
    tools={"ndeval": "ERR-IA@20", "ir_measures": "ERR_IA@20"},
)
class ERRIA(RelevanceMeasure):
    r"""Intent-aware expected reciprocal rank, divided by the score of documents that each serve every intent.

    .. math:: \mathrm{ERR\text{-}IA}@k = \frac{\sum_{r \le k} G(r) / r}{\sum_{r \le k} n (1-\alpha)^{r-1} / r}

    with G and n as in alpha-DCG. Alpha is the probability that a relevant document satisfies the user. ndeval omits
    the division at k = 1, a cutoff that it never prints.

    Examples
    --------
    >>> round(ERRIA(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / 2) / (2 + 1 / 2)
    0.7
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Sum the novelty gains divided by the rank, and normalize by the best possible sum."""
        return normalized_novelty(self, judged, BY_RANK)


@measure(
    category="diversity",
    cite="Chapelle et al. 2009; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="Use this measure instead of ERR-IA if every topic should have the same weight, although topics differ in the"
    " highest possible score.",
    misleads="The ideal ranking is approximated by a greedy algorithm. A better ranking than this"
    " approximation may exist, so a score can exceed 1.",
    aliases={"nERR_IA": {}},
    properties=Properties(uses_all_labels=True, high=MOST, monotone=False),
    tools={"ndeval": "nERR-IA@20", "ir_measures": "nERR_IA@20"},
)
class nERRIA(RelevanceMeasure):
    r"""Normalized intent-aware ERR: the ERR-IA of the ranking, divided by the ERR-IA of a greedy ideal.

    .. math:: \mathrm{nERR\text{-}IA}@k = \frac{\mathrm{ERR\text{-}IA}@k}
        {\mathrm{ERR\text{-}IA}@k\ \text{of the greedy ideal}}

    The ideal ranking is the same as for alpha-nDCG.

    Examples
    --------
    >>> round(nERRIA(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # ideal: 2 + 0.5 / 2
    0.7778
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the ERR-IA of the ranking by that of the ideal."""
        err_ia = ERRIA(cutoff=self.cutoff, rel=self.rel, alpha=self.alpha, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self.cutoff)
        actual, best = (normalized_novelty(err_ia, ranked, BY_RANK, in_full=False) for ranked in (judged, ideal))
        return explained_ratio(judged, self, ERRIA=actual, ideal_ERRIA=best)


_CITE = "Azzopardi, Mackenzie and Moffat 2021; cwl_eval"
_MISLEADS = "NERR is not ERR: the grade itself, not 2^grade, determines satisfaction. The score is the gain per"
PERSISTENCE = Parameter("The probability that an unsatisfied user reads on.", 0.9, real(0, 1))


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and at rank k at the latest.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ8": {}, "NERReq8CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR8(max_rel=3)@10", "cwl_eval": "NERR-EQ8@k=10"},
)
class NERR8(CutoffUserModel):
    r"""NERR, equation 8 of Azzopardi et al. (2021): the user reads until a satisfying document, or until rank k.

    .. math:: C(i) = 1 - g_i \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    The second of three documents satisfies half of the users: the weights are proportional to 1, 1, 1/2.

    >>> NERR8(max=2, cutoff=3).of_list([0, 1, 0])  # 0.5 / 2.5
    0.2
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C = 1 - gain, and 0 at rank k."""
        continuation = (1.0 - matrices.gain) * (matrices.rank < self.cutoff)
        return matrices.note("C", continuation, f"1 - gain, 0 at rank {self.cutoff}", gain=matrices.gain)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and at rank k at the latest. Users whom the document at rank"
    " r does not satisfy read on with probability r / (r+1).",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ9": {}, "NERReq9CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR9(max_rel=3)@10", "cwl_eval": "NERR-EQ9@k=10"},
)
class NERR9(CutoffUserModel):
    r"""NERR, equation 9 of Azzopardi et al. (2021): equation 8 with the discount of ERR, which is 1/i at rank i.

    .. math:: C(i) = \frac{i}{i + 1} (1 - g_i) \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    The weights are proportional to 1, 1/2, 1/6:

    >>> round(NERR9(max=2, cutoff=3).of_list([0, 1, 0]), 6)  # 0.25 / (10/6)
    0.15
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C = i / (i + 1) (1 - gain), and 0 at rank k."""
        discount = matrices.rank / (matrices.rank + 1.0)
        continuation = discount * (1.0 - matrices.gain) * (matrices.rank < self.cutoff)
        how = f"rank / (rank + 1) * (1 - gain), 0 at rank {self.cutoff}"
        return matrices.note("C", continuation, how, gain=matrices.gain)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise read on with persistence p, as in RBP.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ10": {}, "NERReq10CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR10(p=0.9,max_rel=3)", "cwl_eval": "NERR-EQ10@phi=0.9"},
)
class NERR10(UserModel):
    r"""NERR, equation 10 of Azzopardi et al. (2021): RBP, but the user also stops after a satisfying document.

    .. math:: C(i) = p\,(1 - g_i)

    Examples
    --------
    The weights are proportional to 1, 1/2, 1/8:

    >>> round(NERR10(max=2, p=0.5, depth=3).of_list([0, 1, 0]), 6)  # 0.25 / 1.625
    0.153846
    """

    p: float = param(PERSISTENCE)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C = p (1 - gain)."""
        return matrices.note(
            "C", self.p * (1.0 - matrices.gain), f"{format_value(self.p)} * (1 - gain)", gain=matrices.gain
        )


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise read on as in INSQ.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ11": {}, "NERReq11CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR11(T=1.0,max_rel=3)", "cwl_eval": "NERR-EQ11@T=1"},
)
class NERR11(UserModel):
    r"""NERR, equation 11 of Azzopardi et al. (2021): INSQ, but the user also stops after a satisfying document.

    .. math:: C(i) = \left(\frac{i + 2T - 1}{i + 2T}\right)^2 (1 - g_i)

    Examples
    --------
    T = 1. The weights are proportional to 1, 4/9, 1/8:

    >>> round(NERR11(max=2, depth=3).of_list([0, 1, 0]), 6)  # (2/9) / (113/72)
    0.141593
    """

    T: float = param(GOAL)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C = ((i + 2T - 1) / (i + 2T))^2 (1 - gain)."""
        x = matrices.rank + 2.0 * self.T
        matrices.note("x", x, f"rank + 2 * {format_value(self.T)}")
        continuation = continuation_probability(x) * (1.0 - matrices.gain)
        return matrices.note("C", continuation, f"{CONTINUATION_FORMULA} * (1 - gain)", x=x, gain=matrices.gain)


_NO_DIFFERENCE = 2.0**-54  # adding less than this to a sum of 1 or more does not change it


@measure(
    category="diversity",
    cite="Clarke, Kolla and Vechtomova 2009; as in ndeval",
    use="A query has several intents, and users read on from each rank with probability beta. No cutoff is needed.",
    misleads="With beta = 0.5, the first three documents determine most of the score.",
    properties=Properties(uses_all_labels=True),
    tools={"ndeval": "NRBP"},
)
class NRBP(RelevanceMeasure):
    r"""Novelty- and rank-biased precision: RBP with gains that decrease with repetition.

    .. math:: \mathrm{NRBP} = \frac{1 - (1-\alpha)\beta}{n} \sum_r \beta^{r-1} G(r)

    with G and n as in alpha-DCG.

    Examples
    --------
    >>> NRBP().of_list([(1, 0), (1, 1)])  # 0.75 / 2 * (1 + 1.5 / 2)
    0.65625
    """

    rel: float = param(REL)
    alpha: float = param(ALPHA)
    beta: float = param(BETA)

    def verify(self) -> None:
        """Raise if alpha is 0 and beta is 1: the factor 1 - (1 - alpha) beta, and so every score, would be 0.

        Raises
        ------
        MeasureError
            If alpha is 0 and beta is 1.
        """
        if self.alpha == 0 and self.beta == 1:
            raise MeasureError(f"{self.entry.name}: alpha=0 and beta=1 make every score 0. Fix: change alpha or beta")

    def score(self, judged: Judged) -> Floats:
        """Sum the novelty gains, weighted by beta^(rank - 1), and normalize."""
        gain, counted = novelty(judged, self.rel, self.alpha)
        decay = powers(self.beta, int(judged.rank.max(initial=1)))[judged.rank - 1]
        judged.column("weight", decay, f"{format_value(self.beta)}^(rank - 1)", where=counted)
        total = judged.total("gains", gain * decay, "G * weight", where=counted, G=gain, weight=decay)
        # An infinite ranking of documents that cover every subtopic would sum to n / (1 - (1 - alpha) beta).
        scale = np.full(len(judged), 1.0 - (1.0 - self.alpha) * self.beta)
        count = subtopic_counts(judged, self.rel).astype(np.float64)
        judged.step("n", count, "subtopics with a relevant document in the qrels")
        return judged.step(
            self,
            total * divide(scale, count),
            "gains * (1 - (1 - alpha) * beta) / n",
            gains=total,
            alpha=self.alpha,
            beta=self.beta,
            n=count,
        )


@measure(
    category="diversity",
    cite="Clarke, Kolla and Vechtomova 2009; the ideal as in ndeval",
    use="Use this measure instead of NRBP if every topic should have the same weight, although topics differ in the"
    " highest possible score.",
    misleads="The ideal ranking is approximated by a greedy algorithm. A better ranking than this"
    " approximation may exist, so a score can exceed 1.",
    properties=Properties(uses_all_labels=True, high=MOST, monotone=False),
    tools={"ndeval": "nNRBP"},
)
class nNRBP(NRBP):
    r"""Normalized NRBP: the NRBP of the ranking, divided by the NRBP of a greedy ideal ranking.

    .. math:: \mathrm{nNRBP} = \frac{\mathrm{NRBP}}{\mathrm{NRBP}\ \text{of the greedy ideal}}

    The ideal ranking is the same as for alpha-nDCG. A topic without relevant documents scores 0. ndeval prints nan
    for it, and then also for the mean.

    Examples
    --------
    >>> round(nNRBP().of_list([(1, 0), (1, 1)]), 4)  # ideal: 2 + 0.5 / 2
    0.7778
    """

    def score(self, judged: Judged) -> Floats:
        """Divide the NRBP of the ranking by that of the ideal."""
        nrbp = NRBP(rel=self.rel, alpha=self.alpha, beta=self.beta, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self._ideal_depth(judged))
        return explained_ratio(judged, self, NRBP=nrbp.score(judged), ideal_NRBP=nrbp.score(ideal))

    def _ideal_depth(self, judged: Judged) -> int | None:
        """Return the rank from which the score of the ideal, at least 1 at rank 1, cannot grow in double precision."""
        decay = powers(self.beta, 1000) * float(subtopic_counts(judged, self.rel).max(initial=1))
        return int((decay >= _NO_DIFFERENCE).sum()) if decay[-1] < _NO_DIFFERENCE else None
