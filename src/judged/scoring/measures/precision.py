"""Precision: how much of what was returned is relevant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import all_relevant, divide, relevant_among, relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL, Parameter, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged

_OF_SETS = Properties(
    needs_ranking=False,
    ignores_unjudged_tail=False,
    perfect=1.0,
    against_ideal=True,
    additive=True,
    better_first=True,
)


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="The share of useful results on the first page, when every place on it counts the same.",
    misleads="It cannot reach 1 where fewer than k documents are relevant, and does not see order within the k.",
    aliases={"Precision": {}, "prec": {}},
    properties=Properties(missing_matter=False, additive=True, better_first=True),
    tools={"trec_eval": "P_10", "ir_measures": "P@10", "ranx": "precision@10"},
)
class P(RelevanceMeasure):
    r"""Precision at k: the share of the first k places that hold a relevant document.

    .. math:: \mathrm{P}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{k}

    The divisor is k even where fewer documents were returned: an empty place is not a relevant document.

    Examples
    --------
    >>> P(cutoff=5).of_list([1, 0, 1, 0, 1])
    0.6
    >>> P(cutoff=10).of_list([1, 0, 1])  # three documents returned: still divided by 10
    0.2
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by k."""
        found = relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, found / self.cutoff, "relevant_found / k", relevant_found=found, k=self.cutoff)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="For results that have no order: a Boolean search, a filter, a candidate set.",
    misleads="It rewards returning little: one relevant document alone scores 1.",
    aliases={"set_P": {}},
    properties=replace(_OF_SETS, against_ideal=False, missing_matter=False),
    tools={"trec_eval": "set_P", "ir_measures": "SetP"},
)
class SetP(RelevanceMeasure):
    r"""Precision of everything that was returned.

    .. math:: \mathrm{SetP} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{returned}\}|}

    Nothing returned scores 0.

    Examples
    --------
    >>> SetP().of_list([1, 0, None, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by returned."""
        found, returned = relevant_returned(judged, self.rel), judged.returned
        how = "relevant_found / returned"
        return judged.step(self, divide(found, returned), how, relevant_found=found, returned=returned)


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="How much a first stage passes on to the reranker or the reader: R@100, R@1000.",
    misleads="Only judged documents can be relevant here: with a shallow pool, recall of a new system is too low.",
    aliases={"Recall": {}},
    properties=Properties(against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "recall_100", "ir_measures": "R@100", "ranx": "recall@100"},
)
class R(RelevanceMeasure):
    r"""Recall at k: the share of the known relevant documents that are among the first k.

    .. math:: \mathrm{R}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    Eight results, relevant at 2, 4, 5 and 7 of four ("cat in a box"):

    >>> [R(cutoff=k).of_list([0, 1, 0, 1, 1, 0, 1, 0]) for k in range(1, 9)]
    [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0]
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by all relevant."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        return judged.step(self, divide(found, known), "relevant_found / R", relevant_found=found, R=known)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="Whether a candidate set, of whatever size, holds what is relevant.",
    misleads="It rewards returning everything: report the number returned beside it.",
    aliases={"set_recall": {}},
    properties=Properties(needs_ranking=False, perfect=1.0, against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "set_recall", "ir_measures": "SetR"},
)
class SetR(RelevanceMeasure):
    r"""Recall of everything that was returned.

    .. math:: \mathrm{SetR} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    >>> SetR().of_list([1, 0, None, 1], missing=[1, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by all relevant."""
        found, known = relevant_returned(judged, self.rel), all_relevant(judged, self.rel)
        return judged.step(self, divide(found, known), "relevant_found / R", relevant_found=found, R=known)


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
    properties=_OF_SETS,
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


@measure(
    category="set at a cutoff",
    cite="Soboroff 2006; trec_eval",
    use="One good document is enough: known items, question answering, a RAG context that must hold the evidence.",
    misleads="It does not see whether there is one relevant document or ten, or at which of the k ranks.",
    aliases={"HitRate": {}, "hit_rate": {}, "Hit": {}},
    properties=Properties(perfect=1.0, missing_matter=False, better_first=True),
    tools={"trec_eval": "success_5", "ir_measures": "Success@5", "ranx": "hit_rate@5"},
)
class Success(RelevanceMeasure):
    r"""Success at k: 1 if a relevant document is among the first k, otherwise 0.

    .. math:: \mathrm{Success}@k = [\,\exists\ \text{relevant document at rank} \le k\,]

    Examples
    --------
    >>> Success(cutoff=1).of_list([0, 1]), Success(cutoff=5).of_list([0, 1])
    (0.0, 1.0)
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Whether anything relevant is in the first k."""
        found = relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, (found > 0).astype(np.float64), "min(relevant_found, 1)", relevant_found=found)


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


@measure(
    category="set at a cutoff",
    cite="trec_eval; Thakur et al. 2021 (capped recall)",
    use="Topics with fewer and with more than k relevant documents are averaged together: each can reach 1.",
    misleads="Called capped recall in places, but it is precision where more than k documents are relevant.",
    aliases={"relative_P": {}, "R_cap": {}, "RCap": {}},
    properties=Properties(perfect=1.0, against_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "relative_P_10", "BEIR": "R_cap@10"},
)
class RelP(RelevanceMeasure):
    r"""Precision at k as a share of the highest possible.

    .. math:: \mathrm{RelP}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{\min(k, R)}

    It is P@k where R is at least k, and R@k where it is less.

    Examples
    --------
    >>> RelP(cutoff=5).of_list([1, 0, 1, 0, 0], missing=[1, 1])  # R = 4
    0.5
    >>> RelP(cutoff=2).of_list([1, 0, 1, 0, 0], missing=[1, 1])
    0.5
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant in the first k, divided by what k places can hold of R."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        value = divide(found, np.minimum(known, self.cutoff))
        return judged.step(self, value, "relevant_found / min(k, R)", relevant_found=found, k=self.cutoff, R=known)


@measure(
    category="set",
    cite="trec_eval",
    use="For results that have no order and differ in size: a small one can reach 1 too.",
    misleads="One relevant document alone scores 1, and so does everything at once.",
    aliases={"set_relative_P": {}},
    properties=_OF_SETS,
    tools={"trec_eval": "set_relative_P"},
)
class SetRelP(RelevanceMeasure):
    r"""Precision of everything returned as a share of the highest possible.

    .. math:: \mathrm{SetRelP} = \frac{|\{\text{relevant and returned}\}|}{\min(|\{\text{returned}\}|, R)}

    Nothing returned scores 0.

    Examples
    --------
    >>> SetRelP().of_list([1, 0, None], missing=[1])  # R = 2
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned, divided by what the result can hold of R."""
        found, known, returned = relevant_returned(judged, self.rel), all_relevant(judged, self.rel), judged.returned
        value, how = divide(found, np.minimum(known, returned)), "relevant_found / min(returned, R)"
        return judged.step(self, value, how, relevant_found=found, returned=returned, R=known)
