"""Measures of several assessors: each assessor's judgments by themselves, and the mean over the assessors.

`judged.scoring.judging.by_aspect` does so for any other measure.
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

_USE = "Several assessors judged the same topic, and their disagreement should count instead of being outvoted."
_MISLEADS = (
    "An assessor who found nothing relevant counts as 0, and one who judged few documents counts as much as one who"
    " judged many."
)


def _mean_over_assessors(base: type[Measure], one: Measure, judged: Judged) -> Floats:
    """Score a topic by another measure with the same parameters for each of its assessors, and average: (T,)."""
    split = by_aspect(judged, "assessor")
    scores = base(**{**vars(one), "undefined": 0.0})(split.judged)
    return split.show_mean(judged, one, base.entry.name, "assessor", scores)


@measure(
    category="preferences and assessors",
    cite="trec_eval 9 (qrels_jg)",
    use=_USE,
    misleads=_MISLEADS,
    aliases={"map_avgjg": {}},
    properties=Properties(every_label=True),
    tools={"trec_eval": "map_avgjg"},
)
class APjg(AP):
    r"""Average precision by each assessor's judgments separately, averaged over the topic's assessors.

    .. math:: \mathrm{APjg} = \frac{1}{|A|} \sum_{a \in A} \mathrm{AP}_a

    The iterations of the qrels are the assessors: those who judged some document of the topic. A document that one of
    them did not judge is unjudged for them.

    Examples
    --------
    >>> APjg().of_list([(1, 0), (0, 1)])  # 1 to the first, 0.5 to the second
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
    properties=Properties(every_label=True, additive=True),
    tools={"trec_eval": "P_avgjg_10"},
)
class Pjg(P):
    r"""Precision at k by each assessor's judgments separately, averaged over the topic's assessors.

    .. math:: \mathrm{Pjg}@k = \frac{1}{|A|} \sum_{a \in A} \mathrm{P}_a@k

    Examples
    --------
    >>> Pjg(cutoff=2).of_list([(1, 0), (1, 1)])  # 1 to the first, 0.5 to the second
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
    properties=Properties(every_label=True, additive=True),
    tools={"trec_eval": "Rprec_mult_avgjg_0.20"},
    at="factor",
)
class RprecMultJg(RprecMult):
    r"""Precision at a multiple of R by each assessor's judgments separately, averaged over the topic's assessors.

    .. math:: \mathrm{RprecMultJg}@c = \frac{1}{|A|} \sum_{a \in A} \mathrm{RprecMult}_a@c

    Each assessor has an R of their own.

    Examples
    --------
    >>> RprecMultJg(factor=1).of_list([(1, 0), (1, 1)])  # R is 2 and 1: 1 to the first, 0 to the second
    0.5
    """

    def score(self, judged: Judged) -> Floats:
        """Average over assessors."""
        return _mean_over_assessors(RprecMult, self, judged)
