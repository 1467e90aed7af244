"""F: one number for precision and recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged

BETA = Parameter("Recall counts beta times as much as precision (beta is squared).", 1.0, real(0))


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


def _of_both(measure: F | SetF, judged: Judged, precision: Floats, recall: Floats) -> Floats:
    """Weigh precision and recall together, and show how."""
    how = "(1 + beta^2) * precision * recall / (beta^2 * precision + recall)"
    if measure.beta == 1:
        how = "2 * precision * recall / (precision + recall)"
    value = f_measure(precision, recall, measure.beta)
    return judged.step(measure, value, how, precision=precision, recall=recall, beta=measure.beta)


@measure(
    category="set at a cutoff",
    cite="van Rijsbergen 1979",
    use="When the first page should be clean and complete, and you want one number.",
    misleads="It hides which of the two is bad; report P@k and R@k with it.",
    aliases={"F1": {"beta": 1}},
    properties=Properties(against_ideal=True, additive=True, better_first=True),
    tools={"ranx": "f1@10"},
)
class F(RelevanceMeasure):
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

    def score(self, judged: Judged) -> Floats:
        """F of P@k and R@k."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        precision = judged.step(
            "precision", found / self.cutoff, "relevant_found / k", relevant_found=found, k=self.cutoff
        )
        recall = judged.step("recall", divide(found, known), "relevant_found / R", relevant_found=found, R=known)
        return _of_both(self, judged, precision, recall)


@measure(
    category="set",
    cite="van Rijsbergen 1979",
    use="For Boolean results and classifiers of documents, where there is a set and no ranking.",
    misleads="trec_eval's set_F takes a weight that is not squared: its set_F.4 is SetF(beta=2).",
    aliases={"set_F": {}},
    properties=Properties(
        needs_ranking=False,
        ignores_unjudged_tail=False,
        perfect=1.0,
        against_ideal=True,
        additive=True,
        better_first=True,
    ),
    tools={"trec_eval": "set_F", "ir_measures": "SetF (its beta is not squared)"},
)
class SetF(RelevanceMeasure):
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

    def score(self, judged: Judged) -> Floats:
        """F of SetP and SetR."""
        found, known = relevant_returned(judged, self.rel), all_relevant(judged, self.rel)
        how, returned = "relevant_found / returned", judged.returned
        precision = judged.step("precision", divide(found, returned), how, relevant_found=found, returned=returned)
        recall = judged.step("recall", divide(found, known), "relevant_found / R", relevant_found=found, R=known)
        return _of_both(self, judged, precision, recall)
