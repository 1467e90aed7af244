"""Cumulated gain, with and without a discount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.gain import BASE, DISCOUNT, GAIN, check_base, discounted_by, gained, ideal_by_gain
from judged.scoring.measures.parameters import CUTOFF, JUDGED_ONLY
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import Discount, TakesGain


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="The plain value of what is on the page, before any discount.",
    misleads="It does not see order, and topics with many good documents drown the others in the mean.",
    properties=Properties(high=None, graded=True, missing_matter=False, additive=True, better_first=True),
)
class CG(Measure):
    r"""Cumulated gain: the gains of the first k documents, added up.

    .. math:: \mathrm{CG}@k = \sum_{r \le k} g_r

    Examples
    --------
    >>> CG().of_list([3, 2, 3, 0, 1, 2])
    11.0
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    judged_only: bool = param(JUDGED_ONLY)

    def score(self, judged: Judged) -> Floats:
        """Add up the gains of the first k."""
        gain, counted = gained(judged, self.gain, self.cutoff)
        return judged.total(self, gain, "gain", where=counted)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002; Burges et al. 2005 (exp2)",
    use="The value of a page, in units of gain, to a user who may stop at any rank.",
    misleads="It has no scale common to all topics: compare topics with nDCG. The discount of ranks 1 and 2 differs"
    " between texts.",
    aliases={"dcg_burges": {"gain": "exp2"}},
    properties=Properties(high=None, graded=True, missing_matter=False, additive=True, better_first=True),
    tools={"trec_eval": "dcg", "ranx": "dcg@10, dcg_burges@10"},
)
class DCG(Measure):
    r"""Discounted cumulated gain: each gain divided by a discount of its rank, added up.

    .. math:: \mathrm{DCG}@k = \sum_{r \le k} \frac{g_r}{\log_2(r+1)}

    ``discount=original`` is that of the first paper: gains before rank b are not discounted, from there on
    they are divided by :math:`\log_b r`.

    Examples
    --------
    >>> round(DCG(gain="exp2").of_list([3, 0, 2, 1, 0]), 3)
    8.931
    >>> round(DCG(discount="original").of_list([3, 2, 3, 0, 0, 1, 2, 2, 3, 0]), 2)
    9.61
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)
    judged_only: bool = param(JUDGED_ONLY)

    def verify(self) -> None:
        """Refuse a base where the discount has none."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """Add up gain divided by discount over the first k."""
        return _add_up(self, judged)


@measure(
    category="graded",
    cite="Järvelin and Kekäläinen 2002",
    use="The divisor of nDCG: it shows how much there was to gain in each topic.",
    misleads="It is a property of the qrels, not of the run.",
    aliases={"ideal_dcg": {}},
    properties=Properties(
        high=None, needs_ranking=False, graded=True, higher_is_better=None, additive=True, better_first=True
    ),
    tools={"trec_eval": "ideal_dcg"},
)
class IdealDCG(Measure):
    r"""Discounted cumulated gain of the best possible ranking of the judged documents.

    .. math:: \mathrm{IdealDCG}@k = \mathrm{DCG}@k\ \text{of all judged documents, best first}

    Documents with a gain of 0 or less are left out.

    Examples
    --------
    >>> round(IdealDCG(gain="exp2").of_list([3, 0, 2], missing=[1]), 3)
    9.393
    """

    cutoff: int | None = param(CUTOFF)
    gain: TakesGain = param(GAIN)
    discount: Discount = param(DISCOUNT)
    base: float = param(BASE)

    def verify(self) -> None:
        """Refuse a base where the discount has none."""
        check_base(self.discount, self.base)

    def score(self, judged: Judged) -> Floats:
        """DCG of the ideal ranking."""
        if judged.working is not None:
            return _add_up(self, ideal_by_gain(judged, self.gain))
        return judged.of_labels(self, lambda: _add_up(self, ideal_by_gain(judged, self.gain)))


def _add_up(measure: DCG | IdealDCG, judged: Judged) -> Floats:
    gain, counted = gained(judged, measure.gain, measure.cutoff)
    discount = discounted_by(judged, measure.discount, measure.base, counted)
    worth = gain / discount
    parts = {} if judged.working is None else {"gain": gain, "discount": discount}
    del gain, discount  # their memory is used again at once: nDCG of many hits takes half the time
    return judged.total(measure, worth, "gain / discount", where=counted, **parts)
