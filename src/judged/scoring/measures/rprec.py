"""R-precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_among
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


FACTOR = Parameter(
    "How many times R documents are looked at.", None, real(0), required=True, values="number from 0, such as 0.5"
)


@measure(
    category="ranked, binary",
    cite="Buckley and Voorhees 2005 (TREC book, ch. 3)",
    use="A cutoff that suits each topic, where topics differ much in how many documents are relevant.",
    misleads="The cutoff differs from topic to topic, so it is not what a user with one page sees.",
    aliases={"r-precision": {}, "R-Prec": {}},
    properties=Properties(perfect=1.0, additive=True, better_first=True),
    tools={"trec_eval": "Rprec", "ir_measures": "Rprec", "ranx": "r-precision"},
)
class Rprec(RelevanceMeasure):
    r"""Precision at R, where R is the number of relevant documents of the topic.

    .. math:: \mathrm{Rprec} = \mathrm{P}@R = \mathrm{R}@R

    Examples
    --------
    >>> Rprec().of_list([1, 0, 1, 1], missing=[1])  # R = 4: three of the first four
    0.75
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first R, divided by R."""
        known = all_relevant(judged, self.rel)
        found = relevant_among(judged, self.rel, judged.rank <= known[judged.topic])
        return judged.step(self, divide(found, known), "relevant_found / R", relevant_found=found, R=known)


@measure(
    category="ranked, binary",
    cite="trec_eval",
    use="To see whether a system leans to precision (good at small factors) or to recall (good at large ones).",
    misleads="The places round up to a whole number by a rule of their own: trec_eval's, see below.",
    aliases={"Rprec_mult": {}},
    properties=Properties(additive=True, better_first=True),
    tools={"trec_eval": "Rprec_mult_0.20"},
    at="factor",
)
class RprecMult(RelevanceMeasure):
    r"""Precision at a multiple of R, where R is the number of relevant documents of the topic.

    .. math:: \mathrm{RprecMult}@c = \mathrm{P}@k, \quad k = \lfloor cR + 0.9 \rfloor

    The divisor is k even where fewer documents were returned. With c = 1 it is R-precision. cR + 0.9 is computed in
    doubles, as in trec_eval: 0.7 times 3 plus 0.9 is 2.9999999999999996, so k is 2, where exact arithmetic gives 3.

    Examples
    --------
    >>> RprecMult(factor=0.5).of_list([1, 0, 1, 1], missing=[1])  # R = 4: the first two
    0.5
    >>> RprecMult(factor=2).of_list([1, 0, 1, 1], missing=[1])  # the first eight
    0.375
    """

    factor: float = param(FACTOR)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by k."""
        known = all_relevant(judged, self.rel)
        how, places = "the whole part of factor * R + 0.9", np.floor(self.factor * known + 0.9)
        judged.step("k", places, how, factor=self.factor, R=known)
        found = relevant_among(judged, self.rel, judged.rank <= places[judged.topic])
        return judged.step(self, divide(found, places), "relevant_found / k", relevant_found=found, k=places)
