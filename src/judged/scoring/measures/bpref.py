"""bpref: a measure for judgments that are known to be incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, divide, for_each_hit
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import REL, UNDEFINED
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined


@measure(
    category="incomplete judgments",
    cite="Buckley and Voorhees 2004, as corrected in trec_eval 8",
    use="The pool is shallow or old, and unjudged documents must not count as not relevant.",
    misleads="It sees only judged documents, so a run full of unjudged ones can score well; look at Judged@k.",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "bpref", "ir_measures": "Bpref", "ranx": "bpref"},
)
class Bpref(Measure):
    r"""Binary preference: how rarely a document judged not relevant is ranked above a relevant one.

    .. math:: \mathrm{Bpref} = \frac{1}{R} \sum_{\text{relevant, returned}}
        \left(1 - \frac{\min(n, R)}{\min(N, R)}\right)

    n is the number of documents judged not relevant above the relevant one, N their number in the qrels.
    Documents without a judgment, or with a negative grade, are skipped.

    Examples
    --------
    >>> Bpref().of_list([1, 0, None, 1], missing=[0])  # second relevant: n=1, R=2, N=2
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the preferences that hold over the relevant documents, and divide by R."""
        relevant, known = judged.relevant(self.rel), all_relevant(judged, self.rel)
        not_relevant = (judged.grade >= 0) & ~relevant
        all_not_relevant = judged.sum_labels(judged.label_grade >= 0) - known
        judged.step("N", all_not_relevant, "documents judged not relevant in the qrels")
        most, others = for_each_hit(judged, known), for_each_hit(judged, all_not_relevant)
        above = judged.count_so_far(not_relevant)
        judged.column("n", above, "judged not relevant above", where=relevant)
        preference = 1.0 - divide(np.minimum(above, most), np.minimum(others, most))
        judged.column("preference", preference, "1 - min(n, R) / min(N, R)", where=relevant, n=above, R=most, N=others)
        total = judged.total("sum of preference", preference, "preference", where=relevant)
        return judged.step(self, divide(total, known), "sum_of_preference / R", sum_of_preference=total, R=known)


@measure(
    category="incomplete judgments",
    cite="trec_eval; Robertson 2006 for the mean",
    use="Like GMAP, where the judgments are incomplete.",
    misleads="One topic that scores 0 pulls the mean down like a score of 0.00001, the floor that trec_eval set.",
    aliases={"gm_bpref": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, judged_better_first=True),
    tools={"trec_eval": "gm_bpref"},
)
class GMBpref(Measure):
    r"""Binary preference, with the geometric mean over the topics.

    .. math:: \mathrm{GMBpref} = \exp\left(\frac{1}{T} \sum_t \ln \max(\mathrm{Bpref}_t, 0.00001)\right)

    The score of a topic is its Bpref.

    Examples
    --------
    >>> GMBpref().of_list([1, 0, None, 1], missing=[0])
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Bpref of each topic."""
        bpref = Bpref(rel=self.rel, undefined=0.0).score(judged)
        return judged.step(self, bpref, "Bpref", Bpref=bpref)
