"""Expected reciprocal rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.aggregates import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import EXPECTED, Reading, UserModel
from judged.scoring.measures.diversity import (
    ALPHA,
    BETA,
    BY_RANK,
    MOST,
    greedy_ideal,
    novelty,
    powers,
    share_of_possible,
    subtopics,
)
from judged.scoring.measures.gain import HIGHEST, check_scale, gained
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, CUTOFF, NEEDED_CUTOFF, REL, Parameter, real, spell
from judged.scoring.measures.rbp import PATIENCE, WANTED, patience
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged


_MOST = 1000.0  # a double ends at 2^1024


def product_above(judged: Judged, values: Floats, within: Bools) -> Floats:
    """Multiply the values of all hits above each hit: (H,), 1 for a topic's first. Only as far as ``within``."""
    product = np.ones(len(values))
    begin, count = judged.starts[:-1], judged.sum(within).astype(np.int64)
    most = math.isqrt(len(values))  # so there are few long topics, and few places in the others
    for topic in np.flatnonzero(count > most).tolist():
        first, last = int(begin[topic]), int(begin[topic] + count[topic]) - 1
        np.multiply.accumulate(values[first:last], out=product[first + 1 : last + 1])
    begin, count = begin[count <= most], count[count <= most]
    for place in range(1, int(count.max(initial=0))):  # the hits of all topics at once
        begin, count = begin[count > place], count[count > place]
        here = begin + place
        product[here] = product[here - 1] * values[here - 1]
    return product


@measure(
    category="user model",
    cite="Chapelle, Metzler, Zhang and Grinspan 2009; gdeval",
    use="Users look for one good answer, graded judgments say how good each is, and what follows a perfect one hardly"
    " matters.",
    misleads="The highest grade changes every number: 4 in gdeval, 3 elsewhere. Rank 1 decides"
    " nearly all of it, so few topics decide a comparison.",
    properties=Properties(graded=True, missing_matter=False, better_first=True),
    tools={"gdeval": "err@20 (here ERR(max=4,undefined=skip)@20)", "ir_measures": "ERR@20 (here ERR(max=4)@20)"},
)
class ERR(RelevanceMeasure):
    r"""Expected reciprocal rank: the mean of 1/rank of the document that satisfies the user.

    .. math:: \mathrm{ERR}@k = \sum_{r \le k} \frac{1}{r}\, R_r \prod_{s < r} (1 - R_s), \qquad
        R = \frac{2^g - 1}{2^{\max}}

    R is the probability that a document of grade g satisfies; a document of the highest grade does so with 1 -
    2^-max, never surely. Documents without a judgment, or with a negative grade, satisfy nobody.

    Examples
    --------
    Grades up to 2, so that grade 2 satisfies 3/4 and grade 1 satisfies 1/4:

    >>> ERR(max=2).of_list([2, 1])  # 3/4 + 1/2 (1/4) (1/4)
    0.78125
    >>> ERR(max=2).of_list([1, 2])  # 1/4 + 1/2 (3/4) (3/4)
    0.53125
    """

    cutoff: int | None = param(CUTOFF)
    max: float = param(HIGHEST)

    def verify(self) -> None:
        """Refuse a scale whose powers of two no number holds.

        Raises
        ------
        MeasureError
            If the highest grade is too high.
        """
        if self.max > _MOST:
            raise MeasureError(f"ERR: 2^{spell(self.max)} is too large. Fix: max is the highest grade, such as 4")

    def score(self, judged: Judged) -> Floats:
        """The chance that each document is the one, divided by its rank."""
        check_scale(judged, self.max, self)
        within = judged.within(self.cutoff)
        gain, counted = gained(judged, "exp2", self.cutoff)
        satisfied = gain / 2.0**self.max
        judged.column("R", satisfied, f"gain / 2^{spell(self.max)}", where=counted, gain=gain)
        seen = product_above(judged, 1.0 - satisfied, within)
        judged.column("seen", seen, "product of (1 - R) above", where=counted)
        expected = satisfied * seen / judged.rank
        return judged.total(self, expected, "R * seen / rank", where=counted, R=satisfied, seen=seen)


@measure(
    category="diversity",
    cite="Chapelle et al. 2009 and 2011; normalised as in ndeval, TREC Web 2009 to 2014",
    use="Each user has one of several intents and stops at a satisfying document: the first ranks count most.",
    misleads="All intents count equally, however rare, and grades do not count: a document is relevant or not.",
    aliases={"ERR_IA": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "ERR-IA@20", "ir_measures": "ERR_IA@20"},
)
class ERRIA(RelevanceMeasure):
    r"""Intent-aware expected reciprocal rank, as a share of what documents that each serve every intent would reach.

    .. math:: \mathrm{ERR\text{-}IA}@k = \frac{\sum_{r \le k} G(r) / r}{\sum_{r \le k} n (1-\alpha)^{r-1} / r}

    with G and n as in alpha-DCG. Alpha is the probability that a relevant document satisfies a user. ndeval
    forgets the division at k = 1, which it never prints.

    Examples
    --------
    >>> round(ERRIA(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / 2) / (2 + 1 / 2)
    0.7
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the novelty of the first k by the rank, and the sum by the most that is possible."""
        return share_of_possible(self, judged, BY_RANK)


@measure(
    category="diversity",
    cite="Chapelle et al. 2009; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="Like ERR-IA, where topics should count equally although their documents allow more or less.",
    misleads="The greedy ranking that stands in for the ideal can be beaten: a score may pass 1.",
    aliases={"nERR_IA": {}},
    properties=Properties(every_label=True, high=MOST, monotone=False),
    tools={"ndeval": "nERR-IA@20", "ir_measures": "nERR_IA@20"},
)
class nERRIA(RelevanceMeasure):
    r"""Normalised intent-aware ERR: the ERR-IA of the ranking, divided by that of a greedy ideal ranking.

    .. math:: \mathrm{nERR\text{-}IA}@k = \frac{\mathrm{ERR\text{-}IA}@k}
        {\mathrm{ERR\text{-}IA}@k\ \text{of the greedy ideal}}

    The ideal is that of alpha-nDCG.

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
        err = ERRIA(cutoff=self.cutoff, rel=self.rel, alpha=self.alpha, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self.cutoff)
        found, most = (share_of_possible(err, ranked, BY_RANK, in_full=False) for ranked in (judged, ideal))
        return judged.step(self, divide(found, most), "ERRIA / ideal_ERRIA", ERRIA=found, ideal_ERRIA=most)


_CITE = "Azzopardi, Mackenzie and Moffat 2021; cwl_eval"
_MISLEADS = "It is not ERR: the grade itself, not 2^grade, is the chance to be satisfied, and gain is taken for each"
PERSISTENCE = Parameter("The probability that a user who is not satisfied reads on.", 0.9, real(0, 1))


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and at rank k.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ8": {}, "NERReq8CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR8(max_rel=3)@10", "cwl_eval": "NERR-EQ8@k=10"},
)
class NERR8(UserModel):
    r"""NERR of equation 8: the user reads on as far as rank k until a document satisfies.

    .. math:: C(i) = 1 - g_i \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    The second of three satisfies half of the users: weights as 1 to 1 to 1/2.

    >>> NERR8(max=2, cutoff=3).of_list([0, 1, 0])  # 0.5 / 2.5
    0.2
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and not at rank k."""
        going_on = (1.0 - reading.gain) * (reading.rank < self.cutoff)
        return reading.note("C", going_on, f"1 - gain, 0 at rank {self.cutoff}", gain=reading.gain)

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, at rank k, and ever more likely on the way.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ9": {}, "NERReq9CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR9(max_rel=3)@10", "cwl_eval": "NERR-EQ9@k=10"},
)
class NERR9(UserModel):
    r"""NERR of equation 9: as equation 8, with the discount of ERR, which is 1/i at rank i.

    .. math:: C(i) = \frac{i}{i + 1} (1 - g_i) \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    Weights as 1 to 1/2 to 1/6:

    >>> round(NERR9(max=2, cutoff=3).of_list([0, 1, 0]), 6)  # 0.25 / (10/6)
    0.15
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, not tired, and not at rank k."""
        discount = reading.rank / (reading.rank + 1.0)
        going_on = discount * (1.0 - reading.gain) * (reading.rank < self.cutoff)
        how = f"rank / (rank + 1) * (1 - gain), 0 at rank {self.cutoff}"
        return reading.note("C", going_on, how, gain=reading.gain)

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise go on with persistence p, as in RBP.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ10": {}, "NERReq10CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR10(p=0.9,max_rel=3)", "cwl_eval": "NERR-EQ10@phi=0.9"},
)
class NERR10(UserModel):
    r"""NERR of equation 10: the user of RBP, who also stops when a document satisfies.

    .. math:: C(i) = p\,(1 - g_i)

    Examples
    --------
    Weights as 1 to 1/2 to 1/8:

    >>> round(NERR10(max=2, p=0.5, depth=3).of_list([0, 1, 0]), 6)  # 0.25 / 1.625
    0.153846
    """

    p: float = param(PERSISTENCE)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and persistent."""
        return reading.note("C", self.p * (1.0 - reading.gain), f"{spell(self.p)} * (1 - gain)", gain=reading.gain)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise go on with the patience of INSQ.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ11": {}, "NERReq11CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR11(T=1.0,max_rel=3)", "cwl_eval": "NERR-EQ11@T=1"},
)
class NERR11(UserModel):
    r"""NERR of equation 11: the user of INSQ, who also stops when a document satisfies.

    .. math:: C(i) = \left(\frac{i + 2T - 1}{i + 2T}\right)^2 (1 - g_i)

    Examples
    --------
    T = 1, weights as 1 to 4/9 to 1/8:

    >>> round(NERR11(max=2, depth=3).of_list([0, 1, 0]), 6)  # (2/9) / (113/72)
    0.141593
    """

    T: float = param(WANTED)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and patient."""
        x = reading.rank + 2.0 * self.T
        reading.note("x", x, f"rank + 2 * {spell(self.T)}")
        going_on = patience(x) * (1.0 - reading.gain)
        return reading.note("C", going_on, f"{PATIENCE} * (1 - gain)", x=x, gain=reading.gain)


_NO_DIFFERENCE = 2.0**-54  # what adds less than this to a sum of 1 or more leaves it as it is


@measure(
    category="diversity",
    cite="Clarke, Kolla and Vechtomova 2009; as in ndeval",
    use="Several intents, and a user who goes from each rank to the next with the probability beta: no cutoff.",
    misleads="With beta = 0.5 the first three documents are nearly all of it.",
    properties=Properties(every_label=True),
    tools={"ndeval": "NRBP"},
)
class NRBP(RelevanceMeasure):
    r"""Novelty- and rank-biased precision.

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
        """Refuse a user who never tires of repetition and never stops: every score would be 0.

        Raises
        ------
        MeasureError
            If alpha is 0 and beta is 1.
        """
        if self.alpha == 0 and self.beta == 1:
            raise MeasureError(f"{self.entry.name}: alpha=0 and beta=1 make every score 0. Fix: change one of them")

    def score(self, judged: Judged) -> Floats:
        """Add up the novelty, each rank worth beta times the one before."""
        gain, counted = novelty(judged, self.rel, self.alpha)
        decay = powers(self.beta, int(judged.rank.max(initial=1)))[judged.rank - 1]
        judged.column("weight", decay, f"{spell(self.beta)}^(rank - 1)", where=counted)
        total = judged.total("gains", gain * decay, "G * weight", where=counted, G=gain, weight=decay)
        scale = np.full(len(judged), 1.0 - (1.0 - self.alpha) * self.beta)
        count = subtopics(judged, self.rel).astype(np.float64)
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
    use="Like NRBP, where topics should count equally although their documents allow more or less.",
    misleads="The greedy ranking that stands in for the ideal can be beaten: a score may pass 1.",
    properties=Properties(every_label=True, high=MOST, monotone=False),
    tools={"ndeval": "nNRBP"},
)
class nNRBP(NRBP):
    r"""Normalised NRBP: the NRBP of the ranking, divided by that of a greedy ideal ranking.

    .. math:: \mathrm{nNRBP} = \frac{\mathrm{NRBP}}{\mathrm{NRBP}\ \text{of the greedy ideal}}

    The ideal is that of alpha-nDCG. A topic without relevant documents scores 0; ndeval prints nan for it, and
    for the mean then too.

    Examples
    --------
    >>> round(nNRBP().of_list([(1, 0), (1, 1)]), 4)  # ideal: 2 + 0.5 / 2
    0.7778
    """

    def score(self, judged: Judged) -> Floats:
        """Divide the NRBP of the ranking by that of the ideal."""
        nrbp = NRBP(rel=self.rel, alpha=self.alpha, beta=self.beta, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self._depth(judged))
        found, most = nrbp.score(judged), nrbp.score(ideal)
        return judged.step(self, divide(found, most), "NRBP / ideal_NRBP", NRBP=found, ideal_NRBP=most)

    def _depth(self, judged: Judged) -> int | None:
        """Find the rank from which on the ideal, whose first rank gains at least 1, cannot grow in double precision."""
        decay = powers(self.beta, 1000) * float(subtopics(judged, self.rel).max(initial=1))
        return int((decay >= _NO_DIFFERENCE).sum()) if decay[-1] < _NO_DIFFERENCE else None
