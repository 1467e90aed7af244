"""Average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.measures.arithmetic import divide, relevant_known, relevant_returned
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import CUTOFF, JUDGED_ONLY, REL, UNDEFINED, Parameter, one_of

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged

NORM = Parameter(
    "What the sum is divided by: all relevant documents, the smaller of those and k, or only the relevant documents"
    " returned.",
    "relevant",
    one_of("relevant", "cutoff", "returned"),
    values="relevant, cutoff, returned",
)


@measure(
    family="ranked, binary",
    cite="Harman 1993; Buckley and Voorhees 2000",
    use="Many documents are relevant and all of them are wanted: one stable number for the whole ranking.",
    misleads="It says little about the first page, and unjudged documents count as not relevant.",
    aliases={"MAP": {}, "map_cut": {}},
    properties=Properties(perfect=1.0),
    tools={"trec_eval": "map, map_cut_100", "ir_measures": "AP", "ranx": "map"},
)
class AP(Measure):
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
    norm: str = param(NORM)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Precision at each relevant rank, summed and divided."""
        found = judged.relevant(self.rel)
        precision = judged.count_so_far(found) / judged.rank
        total = judged.sum(precision * (found & judged.within(self.cutoff)))
        return divide(total, self._divisor(judged))

    def _divisor(self, judged: Judged) -> Floats:
        if self.norm == "returned":
            return relevant_returned(judged, self.rel, self.cutoff)
        known = relevant_known(judged, self.rel)
        return np.minimum(known, self.cutoff) if self.norm == "cutoff" and self.cutoff else known
