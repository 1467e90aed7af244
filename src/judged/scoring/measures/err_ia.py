"""Intent-aware ERR: how soon a user with one of several intents is satisfied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.diversity import ALPHA, BY_RANK, MOST, greedy_ideal, share_of_possible
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="diversity",
    cite="Chapelle et al. 2009 and 2011; normalised as in ndeval, TREC Web 2009 to 2014",
    use="Each user has one of several intents and stops at a satisfying document: the first ranks count most.",
    misleads="All intents count equally, however rare, and grades do not count: a document is relevant or not.",
    aliases={"ERR_IA": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "ERR-IA@20", "ir_measures": "ERR_IA@20"},
)
class ERRIA(RelevanceMeasure):
    r"""Intent-aware expected reciprocal rank, as a share of what documents that each serve every intent would reach.

    .. math:: \mathrm{ERR\text{-}IA}@k = \frac{\sum_{r \le k} G(r) / r}{\sum_{r \le k} n (1-\alpha)^{r-1} / r}

    with G and n as in alpha-DCG. Alpha is the probability that a relevant document satisfies a user. ndeval
    forgets the division at k = 1, which it never prints.

    Examples
    --------
    >>> round(ERRIA(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / 2) / (2 + 1 / 2)
    0.7
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the novelty of the first k by the rank, and the sum by the most that is possible."""
        return share_of_possible(self, judged, BY_RANK)


@measure(
    category="diversity",
    cite="Chapelle et al. 2009; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="Like ERR-IA, where topics should count equally although their documents allow more or less.",
    misleads="The greedy ranking that stands in for the ideal can be beaten: a score may pass 1.",
    aliases={"nERR_IA": {}},
    properties=Properties(every_label=True, high=MOST, monotone=False),
    tools={"ndeval": "nERR-IA@20", "ir_measures": "nERR_IA@20"},
)
class nERRIA(RelevanceMeasure):
    r"""Normalised intent-aware ERR: the ERR-IA of the ranking, divided by that of a greedy ideal ranking.

    .. math:: \mathrm{nERR\text{-}IA}@k = \frac{\mathrm{ERR\text{-}IA}@k}
        {\mathrm{ERR\text{-}IA}@k\ \text{of the greedy ideal}}

    The ideal is that of alpha-nDCG.

    Examples
    --------
    >>> round(nERRIA(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # ideal: 2 + 0.5 / 2
    0.7778
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the ERR-IA of the ranking by that of the ideal."""
        err = ERRIA(cutoff=self.cutoff, rel=self.rel, alpha=self.alpha, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self.cutoff)
        found, most = (share_of_possible(err, ranked, BY_RANK, in_full=False) for ranked in (judged, ideal))
        return judged.step(self, divide(found, most), "ERRIA / ideal_ERRIA", ERRIA=found, ideal_ERRIA=most)
