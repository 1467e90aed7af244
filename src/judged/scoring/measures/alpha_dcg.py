"""alpha-DCG: discounted gain, where a subtopic that was covered before is worth less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.diversity import ALPHA, BY_LOG, MOST, greedy_ideal, share_of_possible
from judged.scoring.measures.parameters import BOUNDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="diversity",
    cite="Clarke et al. 2008; normalised as in ndeval, TREC Web 2009 to 2014",
    use="One query has several meanings, and the page should serve all of them early and repeat none.",
    misleads="It is relative to documents that each cover every subtopic, which rarely exist:"
    " compare topics with alpha-nDCG.",
    aliases={"alpha_DCG": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "alpha-DCG@20", "ir_measures": "alpha_DCG@20"},
)
class AlphaDCG(RelevanceMeasure):
    r"""Novelty-biased DCG at k, as a share of what documents that each cover every subtopic would reach.

    .. math:: \alpha\mathrm{DCG}@k = \frac{\sum_{r \le k} G(r) / \log_2(r+1)}
        {\sum_{r \le k} n (1-\alpha)^{r-1} / \log_2(r+1)}, \quad G(r) = \sum_{\text{subtopics } s \text{ of } r}
        (1-\alpha)^{c_s(r-1)}

    c_s(r-1) counts the documents before rank r that are relevant to s, and n the subtopics to which some judged
    document is relevant. Each iteration of the qrels is a subtopic, ``0`` like any other. ndeval forgets the
    division at k = 1, which it never prints.

    ndeval orders a run by its rank column (``ties="rank"``), with ``-traditional`` by score and then falling
    id (``ties="docid"``); pyndeval and ir_measures break ties by ascending id (``ties="docid-rising"``). ndeval
    averages over the topics that both files have (``topics="both"``), with ``-c`` over those of the qrels.

    Examples
    --------
    Two subtopics. The first document covers the first of them, the second document both:

    >>> round(AlphaDCG(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # (1 + 1.5 / log2(3)) / (2 + 1 / log2(3))
    0.7398
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Discount the novelty of the first k, and divide by the most that is possible."""
        return share_of_possible(self, judged, BY_LOG)


@measure(
    category="diversity",
    cite="Clarke et al. 2008; the ideal as in ndeval, TREC Web 2009 to 2014",
    use="The standard for pages that should serve several meanings of a query: every topic counts the same.",
    misleads="The best ranking is hard to find, and the greedy one that stands in for it can be beaten: a score may"
    " pass 1. Documents that were judged for one subtopic alone count as not relevant to the others.",
    aliases={"alpha_nDCG": {}},
    properties=Properties(every_label=True, high=MOST, monotone=False),
    tools={"ndeval": "alpha-nDCG@20", "ir_measures": "alpha_nDCG@20"},
)
class AlphanDCG(RelevanceMeasure):
    r"""Novelty-biased nDCG: the alpha-DCG of the ranking, divided by that of a greedy ideal ranking.

    .. math:: \alpha\mathrm{nDCG}@k = \frac{\alpha\mathrm{DCG}@k}{\alpha\mathrm{DCG}@k\ \text{of the greedy ideal}}

    The ideal takes, rank by rank, the judged document with the greatest gain there; of equals the one with the
    greatest id, as ndeval does.

    Examples
    --------
    >>> round(AlphanDCG(cutoff=2).of_list([(1, 0), (1, 1)]), 4)  # ideal: (2 + 0.5 / log2(3))
    0.8406
    """

    cutoff: int = param(BOUNDED_CUTOFF)
    rel: float = param(REL)
    alpha: float = param(ALPHA)

    def score(self, judged: Judged) -> Floats:
        """Divide the alpha-DCG of the ranking by that of the ideal."""
        dcg = AlphaDCG(cutoff=self.cutoff, rel=self.rel, alpha=self.alpha, judged_only=False, undefined=0.0)
        ideal = greedy_ideal(judged, self.rel, self.alpha, self.cutoff)
        found, most = (share_of_possible(dcg, ranked, BY_LOG, in_full=False) for ranked in (judged, ideal))
        return judged.step(self, divide(found, most), "AlphaDCG / ideal_AlphaDCG", AlphaDCG=found, ideal_AlphaDCG=most)
