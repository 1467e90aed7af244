"""Average precision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_returned, summed_precision
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, one_of
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from typing import Literal

    from judged._types import Floats
    from judged.scoring.judging import Judged

NORM = Parameter(
    "What the sum is divided by: all relevant documents, the smaller of those and k, or only the relevant documents"
    " returned.",
    "relevant",
    one_of("relevant", "cutoff", "returned"),
)


@measure(
    category="ranked, binary",
    cite="Harman 1993; Buckley and Voorhees 2000",
    use="Many documents are relevant and all of them are wanted: one stable number for the whole ranking.",
    misleads="It says little about the first page, and unjudged documents count as not relevant.",
    aliases={"MAP": {}, "map_cut": {}},
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "map, map_cut_100", "ir_measures": "AP", "ranx": "map"},
)
class AP(RelevanceMeasure):
    r"""Average precision: the precision at each relevant document, averaged over all that are relevant.

    .. math:: \mathrm{AP}@k = \frac{1}{R} \sum_{r \le k,\ \text{relevant}} \mathrm{P}@r

    A relevant document that was not returned adds 0. R counts all relevant documents of the qrels, also
    under a cutoff (``norm=relevant``, as trec_eval). ``norm=cutoff`` divides by min(R, k);
    ``norm=returned`` by the relevant documents found, which some libraries do and which hides what was
    missed. The mean over topics is known as MAP.

    Examples
    --------
    Four relevant documents, three of them returned, at ranks 1, 3 and 5:

    >>> round(AP().of_list([1, 0, 1, 0, 1], missing=[1]), 3)
    0.567
    >>> round(AP(norm="returned").of_list([1, 0, 1, 0, 1], missing=[1]), 3)
    0.756
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)
    norm: Literal["relevant", "cutoff", "returned"] = param(NORM)

    @property
    def properties(self) -> Properties:
        """Over the documents that were found, the average can fall when another is; few places cannot hold all."""
        full = self.cutoff is None or self.norm != "relevant"
        known = super().properties
        all_known = self.norm != "returned"
        better_first = known.better_first and (all_known or self.cutoff is None)  # one more found may lower the mean
        known = replace(known, better_first=better_first, perfect=known.perfect if full else None)
        return replace(known, monotone=all_known, against_ideal=all_known)

    def score(self, judged: Judged) -> Floats:
        """Precision at each relevant rank, summed and divided."""
        total = summed_precision(judged, self.rel, self.cutoff)
        if self.norm == "returned":
            found = judged.sum(judged.relevant(self.rel) & judged.within(self.cutoff))
            how = "sum_of_precision / relevant_found"
            return judged.step(self, divide(total, found), how, sum_of_precision=total, relevant_found=found)
        known = all_relevant(judged, self.rel)
        if self.norm == "cutoff" and self.cutoff:
            value, how = divide(total, np.minimum(known, self.cutoff)), "sum_of_precision / min(R, k)"
            return judged.step(self, value, how, sum_of_precision=total, R=known, k=self.cutoff)
        return judged.step(self, divide(total, known), "sum_of_precision / R", sum_of_precision=total, R=known)


@measure(
    category="ranked, binary",
    cite="Robertson 2006",
    use="The hard topics matter most: doubling a poor score counts as much as doubling a good one.",
    misleads="One topic that scores 0 pulls the mean down like a score of 0.00001, the floor that trec_eval set.",
    aliases={"gm_map": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "gm_map"},
)
class GMAP(RelevanceMeasure):
    r"""Average precision, with the geometric mean over the topics.

    .. math:: \mathrm{GMAP} = \exp\left(\frac{1}{T} \sum_t \ln \max(\mathrm{AP}_t, 0.00001)\right)

    The score of a topic is its AP.

    Examples
    --------
    >>> GMAP().of_list([0, 1])
    0.5
    >>> from judged import evaluate
    >>> runs = {"1": {"a": 2.0}, "2": {"b": 2.0, "a": 1.0}}  # AP 1 and 0.5
    >>> round(evaluate({"1": {"a": 1}, "2": {"a": 1}}, runs, "GMAP").value("GMAP"), 4)
    0.7071
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """AP of each topic."""
        ap = AP(rel=self.rel, cutoff=None, norm="relevant", judged_only=False, undefined=0.0).score(judged)
        return judged.step(self, ap, "AP", AP=ap)


@measure(
    category="set",
    cite="trec_eval",
    use="For results that have no order, where AP would be used for a ranking.",
    misleads="It falls with the square of what is missing; SetF punishes a one-sided result less.",
    aliases={"set_map": {}},
    properties=Properties(
        needs_ranking=False, ignores_unjudged_tail=False, perfect=1.0, against_ideal=True, better_first=True
    ),
    tools={"trec_eval": "set_map"},
)
class SetAP(RelevanceMeasure):
    r"""Average precision of a set: its precision times its recall.

    .. math:: \mathrm{SetAP} = \mathrm{SetP} \cdot \mathrm{SetR}
        = \frac{|\{\text{relevant and returned}\}|^2}{|\{\text{returned}\}| \cdot R}

    Every relevant document returned has the precision of the whole set, every other one 0.

    Examples
    --------
    >>> SetAP().of_list([1, 0, None, 1], missing=[1, 1])  # 2/4 times 2/4
    0.25
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Square of the relevant returned, divided by returned times relevant."""
        found, known, returned = relevant_returned(judged, self.rel), all_relevant(judged, self.rel), judged.returned
        value, how = divide(found * found, returned * known), "relevant_found^2 / (returned * R)"
        return judged.step(self, value, how, relevant_found=found, returned=returned, R=known)
