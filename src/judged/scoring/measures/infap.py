"""Inferred average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.arithmetic import all_relevant, divide
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import REL, UNDEFINED
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined

_LEAST = 0.00001  # trec_eval's smoothing: neither share can be 0/0


@measure(
    category="incomplete judgments",
    cite="Yilmaz and Aslam 2006",
    use="Only a random sample of the pool was judged: it estimates the AP that full judgments would give.",
    misleads="Documents in the pool that were not judged must be in the qrels with a negative grade; without such rows"
    " it is close to AP, and no estimate.",
    properties=Properties(judged_better_first=True, against_ideal=True),
    tools={"trec_eval": "infAP", "ir_measures": "infAP"},
)
class InfAP(Measure):
    r"""Inferred AP: the precision expected at each relevant document, averaged over all that are relevant.

    .. math:: \mathrm{InfAP} = \frac{1}{R} \sum_{k,\ \text{relevant}} \left( \frac{1}{k} + \frac{k-1}{k}
        \cdot \frac{p}{k-1} \cdot \frac{r + \epsilon}{r + n + 2\epsilon} \right)

    k is the rank of the relevant document; above it stand r relevant documents, n judged not relevant, and p from
    the pool: these and those with a negative grade. What has no judgment was not in the pool and counts as not
    relevant. :math:`\epsilon` is 0.00001, as in trec_eval.

    Examples
    --------
    One document above was judged not relevant: 1/3 + 2/3 * 1/2 * 0, but for epsilon. In the pool without being
    judged, it would be relevant in one of two cases: 1/2 + 1/2 * 1/1 * 1/2.

    >>> round(InfAP().of_list([0, None, 1]), 4)
    0.3333
    >>> InfAP().of_list([-1, 1])
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Add up the expected precision at the relevant documents, and divide by R."""
        relevant = judged.relevant(self.rel)
        found = judged.count_so_far(relevant) - relevant
        not_relevant = judged.count_so_far((judged.grade >= 0) & ~relevant)
        pooled = found + not_relevant + judged.count_so_far(judged.grade < 0)
        above = judged.rank - 1
        likely = (found + _LEAST) / (found + not_relevant + 2 * _LEAST)
        expected = 1.0 / judged.rank + above / judged.rank * divide(pooled, above) * likely
        judged.column("r", found, "relevant above", where=relevant)
        judged.column("n", not_relevant, "judged not relevant above", where=relevant)
        judged.column("p", pooled, "r, n and what else above is from the pool", where=relevant)
        how = f"1 / rank + (rank - 1) / rank * (p / (rank - 1)) * (r + {_LEAST:.5f}) / (r + n + {2 * _LEAST:.5f})"
        judged.column("expected precision", expected, how, where=relevant, r=found, n=not_relevant, p=pooled)
        total = judged.total("sum of expected precision", expected, "expected precision", where=relevant)
        known = all_relevant(judged, self.rel)
        how = "sum_of_expected_precision / R"
        return judged.step(self, divide(total, known), how, sum_of_expected_precision=total, R=known)
