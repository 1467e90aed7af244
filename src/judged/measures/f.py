"""F: one number for precision and recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.measures.arithmetic import divide, relevant_known, relevant_returned
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import JUDGED_ONLY, NEEDED_CUTOFF, REL, UNDEFINED, Parameter, real

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged

BETA = Parameter(
    "Recall counts beta times as much as precision (beta is squared).", 1.0, real(0), values="number from 0"
)


def f_measure(precision: Floats, recall: Floats, beta: float) -> Floats:
    """Weigh precision and recall together, 0 where both are 0.

    >>> import numpy as np
    >>> round(float(f_measure(np.array([0.9]), np.array([0.1]), 1.0)[0]), 2)
    0.18
    >>> round(float(f_measure(np.array([0.7]), np.array([0.2]), 0.0)[0]), 12)  # with beta 0, F is precision
    0.7
    """
    weight = beta * beta
    return divide((weight + 1.0) * precision * recall, recall + weight * precision)


@measure(
    family="set at a cutoff",
    cite="van Rijsbergen 1979",
    use="When the first page should be clean and complete, and one number is wanted.",
    misleads="It hides which of the two is bad; report P@k and R@k with it.",
    aliases={"F1": {"beta": 1}},
    properties=Properties(),
    tools={"ranx": "f1@10"},
)
class F(Measure):
    r"""Weighted harmonic mean of precision and recall at k.

    .. math:: F_\beta@k = \frac{(1+\beta^2)\,\mathrm{P}@k\,\mathrm{R}@k}{\beta^2\,\mathrm{P}@k + \mathrm{R}@k}

    Examples
    --------
    >>> F(cutoff=4).of_list([1, 0, 1, 0], missing=[1, 1])
    0.5
    >>> F(cutoff=4, beta=0).of_list([1, 0, 1, 1], missing=[1]) == 0.75  # beta 0: precision
    True
    """

    cutoff: int = param(NEEDED_CUTOFF)
    beta: float = param(BETA)
    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """F of P@k and R@k."""
        hits = relevant_returned(judged, self.rel, self.cutoff)
        return f_measure(hits / self.cutoff, divide(hits, relevant_known(judged, self.rel)), self.beta)


@measure(
    family="set",
    cite="van Rijsbergen 1979",
    use="For Boolean results and classifiers of documents, where there is a set and no ranking.",
    misleads="trec_eval's set_F takes a weight that is not squared: its set_F.4 is SetF(beta=2).",
    aliases={"set_F": {}},
    properties=Properties(needs_ranking=False, ignores_unjudged_tail=False, perfect=1.0),
    tools={"trec_eval": "set_F", "ir_measures": "SetF (its beta is not squared)"},
)
class SetF(Measure):
    r"""Weighted harmonic mean of the precision and recall of everything that was returned.

    .. math:: F_\beta = \frac{(1+\beta^2)\,\mathrm{SetP}\,\mathrm{SetR}}{\beta^2\,\mathrm{SetP} + \mathrm{SetR}}

    Examples
    --------
    Ten returned, five of the eight relevant among them (P = .5, R = .625):

    >>> ten = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> round(SetF(beta=5).of_list(ten, missing=[1, 1, 1]), 3)
    0.619
    >>> round(SetF(beta=0.5).of_list(ten, missing=[1, 1, 1]), 3)
    0.521
    """

    beta: float = param(BETA)
    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """F of SetP and SetR."""
        hits = relevant_returned(judged, self.rel)
        return f_measure(divide(hits, judged.returned), divide(hits, relevant_known(judged, self.rel)), self.beta)
