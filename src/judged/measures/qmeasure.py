"""Q-measure: average precision with gains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.judging.segments import running_sum
from judged.measures.arithmetic import divide
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.gain import GAIN, Gain, gaining, gains, ideal_by_gain
from judged.measures.parameters import CUTOFF, JUDGED_ONLY, UNDEFINED, Parameter, real

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged

BETA = Parameter(
    "How much gains count beside plain hits; with 0 it is AP, and a large one forgives documents far down.",
    1.0,
    real(0),
    values="number from 0",
)


@measure(
    family="graded",
    cite="Sakai 2004; Sakai and Song 2011 for the cutoff",
    use="Graded judgments, and all of the relevant documents are wanted: the standard beside nDCG at NTCIR.",
    misleads="With a cutoff it divides by min(R, k), where AP@k divides by R: Q(beta=0)@k is AP(norm=cutoff)@k."
    " It depends on how the gains are scaled against beta.",
    aliases={"QMeasure": {}, "Q-measure": {}},
    properties=Properties(graded=True, monotone=False, perfect=1.0),
    tools={"NTCIREVAL": "Q-measure, Q@0010"},
)
class Q(Measure):
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
    gain: Gain = param(GAIN)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Average the blended ratio over the relevant documents."""
        worth, ideal = gains(judged.grade, self.gain), ideal_by_gain(judged, self.gain)
        found = worth > 0
        best = np.append(running_sum(gains(ideal.grade, self.gain), ideal.starts), 0.0)
        best = best[ideal.starts[judged.topic] + np.minimum(judged.rank, ideal.returned[judged.topic]) - 1]
        above = judged.count_so_far(found) + self.beta * running_sum(worth, judged.starts)
        total = judged.sum(above / (judged.rank + self.beta * best) * (found & judged.within(self.cutoff)))
        known = gaining(judged, self.gain)
        return divide(total, known if self.cutoff is None else np.minimum(known, self.cutoff))

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document gains something."""
        return gaining(judged, self.gain) > 0
