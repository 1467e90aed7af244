"""R-precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.measures.arithmetic import divide, relevant_known
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import JUDGED_ONLY, REL, UNDEFINED

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged


@measure(
    family="ranked, binary",
    cite="Buckley and Voorhees 2005 (TREC book, ch. 3)",
    use="A cutoff that suits each topic, where topics differ much in how many documents are relevant.",
    misleads="The cutoff differs from topic to topic, so it is not what a user with one page sees.",
    aliases={"r-precision": {}, "R-Prec": {}},
    properties=Properties(perfect=1.0),
    tools={"trec_eval": "Rprec", "ir_measures": "Rprec", "ranx": "r-precision"},
)
class Rprec(Measure):
    r"""Precision at R, where R is the number of relevant documents of the topic.

    .. math:: \mathrm{Rprec} = \mathrm{P}@R = \mathrm{R}@R

    Examples
    --------
    >>> Rprec().of_list([1, 0, 1, 1], missing=[1])  # R = 4: three of the first four
    0.75
    """

    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first R, divided by R."""
        known = relevant_known(judged, self.rel)
        found = judged.relevant(self.rel) & (judged.rank <= known[judged.topic])
        return divide(judged.sum(found), known)
