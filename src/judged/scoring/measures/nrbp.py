"""NRBP: novelty and rank-biased precision in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.diversity import ALPHA, BETA, MOST, greedy_ideal, novelty, powers, subtopics
from judged.scoring.measures.parameters import REL, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged

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
