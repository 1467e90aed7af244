"""Q-measure: average precision with gains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.scoring.judging.segments import running_sum
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import GAIN, gained, gaining, ideal_by_gain
from judged.scoring.measures.parameters import CUTOFF, Parameter, real, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain

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
