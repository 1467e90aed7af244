"""Measures for several assessors: the score for the judgments of each assessor, averaged over the assessors.

`judged.scoring.judging.by_aspect` does the same for any other measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.judging.split import by_aspect
from judged.scoring.measures.ap import AP
from judged.scoring.measures.base import Properties
from judged.scoring.measures.precision import P, RprecMult
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

_USE = "Several assessors judged the same topic, and each assessor should influence the score, not only the majority."
_MISLEADS = (
    "An assessor without relevant documents counts as 0, and an assessor with few judgments has the same weight as an"
    " assessor with many judgments."
)


def _mean_over_assessors(base: type[Measure], measure: Measure, judged: Judged) -> Floats:
    """Score each assessor with the base measure and the same parameters, and return the means over assessors: (T,)."""
    split = by_aspect(judged, "assessor")
    scores = base(**{**vars(measure), "undefined": 0.0})(split.judged)
    return split.record_mean(judged, measure, base.entry.name, "assessor", scores)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (qrels_jg)",
    use=_USE,
    misleads=_MISLEADS,
    aliases={"map_avgjg": {}},
    properties=Properties(uses_all_labels=True),
    tools={"trec_eval": "map_avgjg"},
)
class APjg(AP):
    r"""Average precision for the judgments of each assessor, averaged over the assessors of the topic.

    .. math:: \mathrm{APjg} = \frac{1}{|A|} \sum_{a \in A} \mathrm{AP}_a

    The iterations of the qrels are the assessors: those with a judgment for the topic. A document that an
    assessor did not judge is unjudged for this assessor.

    Examples
    --------
    >>> APjg().of_list([(1, 0), (0, 1)])  # 1 for the first assessor, 0.5 for the second
    0.75
    """

    def score(self, judged: Judged) -> Floats:
        """Average AP over assessors."""
        return _mean_over_assessors(AP, self, judged)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (qrels_jg)",
    use=_USE,
    misleads=_MISLEADS,
    aliases={"P_avgjg": {}},
    properties=Properties(uses_all_labels=True, additive=True),
    tools={"trec_eval": "P_avgjg_10"},
)
class Pjg(P):
    r"""Precision at k for the judgments of each assessor, averaged over the assessors of the topic.

    .. math:: \mathrm{Pjg}@k = \frac{1}{|A|} \sum_{a \in A} \mathrm{P}_a@k

    Examples
    --------
    >>> Pjg(cutoff=2).of_list([(1, 0), (1, 1)])  # 1 for the first assessor, 0.5 for the second
    0.75
    """

    def score(self, judged: Judged) -> Floats:
        """Average precision over assessors."""
        return _mean_over_assessors(P, self, judged)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (qrels_jg)",
    use=_USE,
    misleads=_MISLEADS,
    aliases={"Rprec_mult_avgjg": {}},
    properties=Properties(uses_all_labels=True, additive=True),
    tools={"trec_eval": "Rprec_mult_avgjg_0.20"},
    cutoff_name="factor",
)
class RprecMultJg(RprecMult):
    r"""Precision at a multiple of R for the judgments of each assessor, averaged over the assessors of the topic.

    .. math:: \mathrm{RprecMultJg}@c = \frac{1}{|A|} \sum_{a \in A} \mathrm{RprecMult}_a@c

    R is the number of relevant documents of each assessor.

    Examples
    --------
    >>> RprecMultJg(factor=1).of_list([(1, 0), (1, 1)])  # R is 2 and 1; the scores are 1 and 0
    0.5
    """

    def score(self, judged: Judged) -> Floats:
        """Average precision at a multiple of R over assessors."""
        return _mean_over_assessors(RprecMult, self, judged)
