"""bpref: a measure for judgments that are known to be incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.measures.arithmetic import divide, relevant_known
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import REL, UNDEFINED

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged


@measure(
    family="incomplete judgments",
    cite="Buckley and Voorhees 2004, as corrected in trec_eval 8",
    use="The pool is shallow or old, and unjudged documents must not count as not relevant.",
    misleads="It sees only judged documents, so a run full of unjudged ones can score well; look at Judged@k.",
    properties=Properties(perfect=1.0),
    tools={"trec_eval": "bpref", "ir_measures": "Bpref", "ranx": "bpref"},
)
class Bpref(Measure):
    r"""Binary preference: how seldom a document judged not relevant stands above a relevant one.

    .. math:: \mathrm{Bpref} = \frac{1}{R} \sum_{\text{relevant, returned}}
        \left(1 - \frac{\min(n, R)}{\min(N, R)}\right)

    n is the number of documents judged not relevant above the relevant one, N their number in the qrels.
    Documents without a judgment, or with a negative grade, are passed over.

    Examples
    --------
    >>> Bpref().of_list([1, 0, None, 1], missing=[0])  # second relevant: n=1, R=2, N=2
    0.75
    """

    rel: float = param(REL)
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the preferences that hold over the relevant documents, and divide by R."""
        relevant, known = judged.relevant(self.rel), relevant_known(judged, self.rel)
        not_relevant = (judged.grade >= 0) & ~relevant
        all_not_relevant = judged.sum_labels(judged.label_grade >= 0) - known
        above = np.minimum(judged.count_so_far(not_relevant), known[judged.topic])
        most = np.minimum(all_not_relevant, known)[judged.topic]
        return divide(judged.sum(relevant * (1.0 - divide(above, most))), known)


@measure(
    family="incomplete judgments",
    cite="trec_eval; Robertson 2006 for the mean",
    use="As GMAP, where the judgments are incomplete.",
    misleads="One topic that scores 0 pulls the mean down like a score of 0.00001, the floor that trec_eval set.",
    aliases={"gm_bpref": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0),
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
    undefined: float = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Bpref of each topic."""
        return Bpref(rel=self.rel, undefined=0.0).score(judged)
