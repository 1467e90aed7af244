"""Precision, recall, and their combinations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import (
    count_relevant,
    count_relevant_among,
    count_relevant_returned,
    divide,
    explained_ratio,
)
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
    relative_to_ideal=True,
    additive=True,
    better_first=True,
)


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="You want to know the share of the first page that is relevant, if every rank has the same weight.",
    misleads="The measure cannot reach 1 if fewer than k documents are relevant, and ignores the order within the"
    " first k.",
    aliases={"Precision": {}, "prec": {}},
    properties=Properties(depends_on_missing=False, additive=True, better_first=True),
    tools={"trec_eval": "P_10", "ir_measures": "P@10", "ranx": "precision@10"},
)
class P(RelevanceMeasure):
    r"""Precision at k: the share of the first k ranks that have a relevant document.

    .. math:: \mathrm{P}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{k}

    The divisor is k, even if fewer documents were returned: an empty rank counts as not relevant.

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
        """Divide the number of relevant documents among the first k by k."""
        returned = count_relevant_returned(judged, self.rel, self.cutoff)
        return explained_ratio(judged, self, relevant_returned=returned, k=self.cutoff)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="The results are sets without order: a Boolean search, a filter, or a candidate set.",
    misleads="The measure rewards small sets: a set with only one relevant document scores 1.",
    aliases={"set_P": {}},
    properties=replace(_OF_SETS, relative_to_ideal=False, depends_on_missing=False),
    tools={"trec_eval": "set_P", "ir_measures": "SetP"},
)
class SetP(RelevanceMeasure):
    r"""Precision of all returned documents.

    .. math:: \mathrm{SetP} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{returned}\}|}

    An empty result scores 0.

    Examples
    --------
    >>> SetP().of_list([1, 0, None, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents returned by that of all documents returned."""
        relevant_returned = count_relevant_returned(judged, self.rel)
        return explained_ratio(judged, self, relevant_returned=relevant_returned, returned=judged.returned)


@measure(
    category="set at a cutoff",
    cite="Cleverdon, Mills and Keen 1966",
    use="You want to know the share of the relevant documents that a first stage passes to the reranker or reader:"
    " R@100, R@1000.",
    misleads="Only judged documents can be relevant: with a shallow pool, the measured recall of a new system is too"
    " low.",
    aliases={"Recall": {}},
    properties=Properties(relative_to_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "recall_100", "ir_measures": "R@100", "ranx": "recall@100"},
)
class R(RelevanceMeasure):
    r"""Recall at k: the share of the relevant documents in the qrels that are among the first k.

    .. math:: \mathrm{R}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    Eight documents were returned. The four relevant documents are at ranks 2, 4, 5, and 7:

    >>> [R(cutoff=k).of_list([0, 1, 0, 1, 1, 0, 1, 0]) for k in range(1, 9)]
    [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0]
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents among the first k by R."""
        relevant_returned = count_relevant_returned(judged, self.rel, self.cutoff)
        relevant = count_relevant(judged, self.rel)
        return explained_ratio(judged, self, relevant_returned=relevant_returned, R=relevant)


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="You want to know whether a candidate set of any size contains the relevant documents.",
    misleads="The measure rewards returning everything. Report the number of returned documents too.",
    aliases={"set_recall": {}},
    properties=Properties(needs_ranking=False, perfect=1.0, relative_to_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "set_recall", "ir_measures": "SetR"},
)
class SetR(RelevanceMeasure):
    r"""Recall of all returned documents.

    .. math:: \mathrm{SetR} = \frac{|\{\text{relevant and returned}\}|}{|\{\text{relevant}\}|}

    Examples
    --------
    >>> SetR().of_list([1, 0, None, 1], missing=[1, 1])
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents returned by R."""
        relevant_returned, relevant = count_relevant_returned(judged, self.rel), count_relevant(judged, self.rel)
        return explained_ratio(judged, self, relevant_returned=relevant_returned, R=relevant)


BETA = Parameter("The weight of recall relative to precision. The formula uses the square of beta.", 1.0, real(0))


def f_measure(precision: Floats, recall: Floats, beta: float) -> Floats:
    """Return the F measure: the weighted harmonic mean of precision and recall, 0 if both are 0.

    >>> import numpy as np
    >>> round(float(f_measure(np.array([0.9]), np.array([0.1]), 1.0)[0]), 2)
    0.18
    >>> round(float(f_measure(np.array([0.7]), np.array([0.2]), 0.0)[0]), 12)  # F with beta 0 is precision
    0.7
    """
    weight = beta * beta
    return divide((weight + 1.0) * precision * recall, recall + weight * precision)


def _explained_f(measure: F | SetF, judged: Judged, precision: Floats, recall: Floats) -> Floats:
    how = "(1 + beta^2) * precision * recall / (beta^2 * precision + recall)"
    if measure.beta == 1:
        how = "2 * precision * recall / (precision + recall)"
    value = f_measure(precision, recall, measure.beta)
    return judged.step(measure, value, how, precision=precision, recall=recall, beta=measure.beta)


@measure(
    category="set at a cutoff",
    cite="van Rijsbergen 1979",
    use="The first page should be precise and complete, and you need a single score.",
    misleads="The score does not show whether precision or recall is low. Report P@k and R@k too.",
    aliases={"F1": {"beta": 1}},
    properties=Properties(relative_to_ideal=True, additive=True, better_first=True),
    tools={"ranx": "f1@10"},
)
class F(RelevanceMeasure):
    r"""Weighted harmonic mean of precision and recall at k.

    .. math:: F_\beta@k = \frac{(1+\beta^2)\,\mathrm{P}@k\,\mathrm{R}@k}{\beta^2\,\mathrm{P}@k + \mathrm{R}@k}

    Examples
    --------
    >>> F(cutoff=4).of_list([1, 0, 1, 0], missing=[1, 1])
    0.5
    >>> F(cutoff=4, beta=0).of_list([1, 0, 1, 1], missing=[1]) == 0.75  # with beta 0 it is precision
    True
    """

    cutoff: int = param(NEEDED_CUTOFF)
    beta: float = param(BETA)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Combine P@k and R@k."""
        relevant_returned = count_relevant_returned(judged, self.rel, self.cutoff)
        relevant = count_relevant(judged, self.rel)
        precision = explained_ratio(judged, "precision", relevant_returned=relevant_returned, k=self.cutoff)
        recall = explained_ratio(judged, "recall", relevant_returned=relevant_returned, R=relevant)
        return _explained_f(self, judged, precision, recall)


@measure(
    category="set",
    cite="van Rijsbergen 1979",
    use="A Boolean search or a document classifier returns a set, not a ranking.",
    misleads="The weight in trec_eval's set_F is not squared: set_F.4 of trec_eval is SetF(beta=2).",
    aliases={"set_F": {}},
    properties=_OF_SETS,
    tools={"trec_eval": "set_F", "ir_measures": "SetF (beta is not squared)"},
)
class SetF(RelevanceMeasure):
    r"""Weighted harmonic mean of the precision and recall of all returned documents.

    .. math:: F_\beta = \frac{(1+\beta^2)\,\mathrm{SetP}\,\mathrm{SetR}}{\beta^2\,\mathrm{SetP} + \mathrm{SetR}}

    Examples
    --------
    Ten documents returned, with five of the eight relevant documents (P = .5, R = .625):

    >>> ten = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> round(SetF(beta=5).of_list(ten, missing=[1, 1, 1]), 3)
    0.619
    >>> round(SetF(beta=0.5).of_list(ten, missing=[1, 1, 1]), 3)
    0.521
    """

    beta: float = param(BETA)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Combine SetP and SetR."""
        relevant_returned, relevant = count_relevant_returned(judged, self.rel), count_relevant(judged, self.rel)
        precision = explained_ratio(judged, "precision", relevant_returned=relevant_returned, returned=judged.returned)
        recall = explained_ratio(judged, "recall", relevant_returned=relevant_returned, R=relevant)
        return _explained_f(self, judged, precision, recall)


@measure(
    category="set at a cutoff",
    cite="Soboroff 2006; trec_eval",
    use="One relevant document is enough: known-item search, question answering, or a RAG context that must contain"
    " the evidence.",
    misleads="The score is the same for one relevant document or ten, at any of the first k ranks.",
    aliases={"HitRate": {}, "hit_rate": {}, "Hit": {}},
    properties=Properties(perfect=1.0, depends_on_missing=False, better_first=True),
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
        """Return 1 for each topic with a relevant document among the first k, else 0."""
        returned = count_relevant_returned(judged, self.rel, self.cutoff)
        value = (returned > 0).astype(np.float64)
        return judged.step(self, value, "min(relevant_returned, 1)", relevant_returned=returned)


FACTOR = Parameter(
    "The cutoff divided by R, the number of relevant documents.",
    None,
    real(0),
    required=True,
    values="number of at least 0, such as 0.5",
)


@measure(
    category="ranked, binary",
    cite="Buckley and Voorhees 2005 (TREC book, ch. 3)",
    use="Topics differ much in the number of relevant documents, so each topic needs a different cutoff.",
    misleads="The cutoff differs between topics, so the score does not describe a page that users see.",
    aliases={"r-precision": {}, "R-Prec": {}},
    properties=Properties(perfect=1.0, additive=True, better_first=True),
    tools={"trec_eval": "Rprec", "ir_measures": "Rprec", "ranx": "r-precision"},
)
class Rprec(RelevanceMeasure):
    r"""Precision at R, where R is the number of relevant documents of the topic.

    .. math:: \mathrm{Rprec} = \mathrm{P}@R = \mathrm{R}@R

    Examples
    --------
    >>> Rprec().of_list([1, 0, 1, 1], missing=[1])  # R = 4: three of the first four documents
    0.75
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents among the first R by R."""
        relevant = count_relevant(judged, self.rel)
        top_relevant = count_relevant_among(judged, self.rel, judged.rank <= relevant[judged.topic])
        return explained_ratio(judged, self, relevant_returned=top_relevant, R=relevant)


@measure(
    category="ranked, binary",
    cite="trec_eval",
    use="You want to see whether a system favors precision (high scores at small multiples of R) or recall (high"
    " scores at large multiples of R).",
    misleads="The cutoff is rounded to an integer by trec_eval's rule, which is unusual; see the definition.",
    aliases={"Rprec_mult": {}},
    properties=Properties(additive=True, better_first=True),
    tools={"trec_eval": "Rprec_mult_0.20"},
    cutoff_name="factor",
)
class RprecMult(RelevanceMeasure):
    r"""Precision at a multiple of R, where R is the number of relevant documents of the topic.

    .. math:: \mathrm{RprecMult}@c = \mathrm{P}@k, \quad k = \lfloor cR + 0.9 \rfloor

    The divisor is k, even if fewer documents were returned. With c = 1, the measure is R-precision. cR + 0.9 is
    computed with floating-point numbers, as in trec_eval: 0.7 times 3 plus 0.9 gives 2.9999999999999996, so k is 2. In
    exact arithmetic, k is 3.

    Examples
    --------
    >>> RprecMult(factor=0.5).of_list([1, 0, 1, 1], missing=[1])  # R = 4: the first two documents
    0.5
    >>> RprecMult(factor=2).of_list([1, 0, 1, 1], missing=[1])  # the first eight documents
    0.375
    """

    factor: float = param(FACTOR)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents among the first k by k."""
        relevant = count_relevant(judged, self.rel)
        # The rounding in double arithmetic is part of the definition: trec_eval computes the same.
        how, cutoff = "the integer part of factor * R + 0.9", np.floor(self.factor * relevant + 0.9)
        judged.step("k", cutoff, how, factor=self.factor, R=relevant)
        top_relevant = count_relevant_among(judged, self.rel, judged.rank <= cutoff[judged.topic])
        return explained_ratio(judged, self, relevant_returned=top_relevant, k=cutoff)


@measure(
    category="set at a cutoff",
    cite="trec_eval; Thakur et al. 2021 (capped recall)",
    use="Some topics have fewer than k relevant documents and some have more, and every topic should be able to"
    " reach 1.",
    misleads="Some papers call this measure capped recall, but it equals P@k if at least k documents are relevant.",
    aliases={"relative_P": {}, "R_cap": {}, "RCap": {}},
    properties=Properties(perfect=1.0, relative_to_ideal=True, additive=True, better_first=True),
    tools={"trec_eval": "relative_P_10", "BEIR": "R_cap@10"},
)
class RelP(RelevanceMeasure):
    r"""Precision at k, divided by the highest possible precision at k.

    .. math:: \mathrm{RelP}@k = \frac{|\{\text{relevant documents at rank} \le k\}|}{\min(k, R)}

    It is P@k if R is at least k, otherwise R@k.

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
        """Divide the number of relevant documents among the first k by the smaller of k and R."""
        relevant_returned = count_relevant_returned(judged, self.rel, self.cutoff)
        relevant = count_relevant(judged, self.rel)
        value, how = divide(relevant_returned, np.minimum(relevant, self.cutoff)), "relevant_returned / min(k, R)"
        return judged.step(self, value, how, relevant_returned=relevant_returned, k=self.cutoff, R=relevant)


@measure(
    category="set",
    cite="trec_eval",
    use="The results are sets without order and of different sizes, and a small set should also be able to score 1.",
    misleads="A set with only one relevant document scores 1, and the set of all documents in the collection also"
    " scores 1.",
    aliases={"set_relative_P": {}},
    properties=_OF_SETS,
    tools={"trec_eval": "set_relative_P"},
)
class SetRelP(RelevanceMeasure):
    r"""Precision of all returned documents, divided by the highest possible precision.

    .. math:: \mathrm{SetRelP} = \frac{|\{\text{relevant and returned}\}|}{\min(|\{\text{returned}\}|, R)}

    An empty result scores 0.

    Examples
    --------
    >>> SetRelP().of_list([1, 0, None], missing=[1])  # R = 2
    0.5
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of relevant documents returned by the smaller of R and the size of the result."""
        relevant_returned, relevant = count_relevant_returned(judged, self.rel), count_relevant(judged, self.rel)
        value = divide(relevant_returned, np.minimum(relevant, judged.returned))
        parts = {"relevant_returned": relevant_returned, "returned": judged.returned, "R": relevant}
        return judged.step(self, value, "relevant_returned / min(returned, R)", **parts)
