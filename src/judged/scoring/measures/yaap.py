"""Yet another average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import all_relevant, log, summed_precision
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="ranked, binary",
    cite="Robertson 2012 (On smoothing average precision)",
    use="AP whose mean is not dominated by easy topics: a scale without ends, on which every"
    " improvement counts equally.",
    misleads="It is not a share: an empty result scores -ln(1 + R), less the more documents are relevant, and 0 is AP"
    " of one half.",
    properties=Properties(low=None, high=None, better_first=True),
    tools={"trec_eval": "yaap"},
)
class Yaap(RelevanceMeasure):
    r"""Average precision on a scale of log odds.

    .. math:: \mathrm{Yaap} = \ln \frac{1 + s}{1 + R - s}, \quad s = \sum_{r,\ \text{relevant}} \mathrm{P}@r

    s is AP times R, the number of relevant documents. A topic without any scores 0.

    Examples
    --------
    >>> round(Yaap().of_list([1, 0, 0, 1]), 4)  # s = 1 + 2/4, R = 2: ln(2.5 / 1.5)
    0.5108
    >>> round(Yaap().of_list([0], missing=[1]), 4)  # ln(1 / 2)
    -0.6931
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Logarithm of what was gained over what was lost, one document added to both."""
        gained, known = summed_precision(judged, self.rel), all_relevant(judged, self.rel)
        value, how = (
            log((1.0 + gained) / (1.0 + known - gained)),
            "ln((1 + sum_of_precision) / (1 + R - sum_of_precision))",
        )
        return judged.step(self, value, how, sum_of_precision=gained, R=known)
