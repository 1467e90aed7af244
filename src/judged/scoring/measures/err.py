"""Expected reciprocal rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import MeasureError
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.gain import gained
from judged.scoring.measures.parameters import CUTOFF, spell
from judged.scoring.measures.registry import measure
from judged.scoring.measures.scale import HIGHEST, check_scale

if TYPE_CHECKING:
    from judged._types import Bools, Floats
    from judged.scoring.judging import Judged

_MOST = 1000.0  # a double ends at 2^1024


def product_above(judged: Judged, values: Floats, within: Bools) -> Floats:
    """Multiply the values of all hits above each hit: (H,), 1 for a topic's first. Only as far as ``within``."""
    product = np.ones(len(values))
    begin, count = judged.starts[:-1], judged.sum(within).astype(np.int64)
    most = math.isqrt(len(values))  # so there are few long topics, and few places in the others
    for topic in np.flatnonzero(count > most).tolist():
        first, last = int(begin[topic]), int(begin[topic] + count[topic]) - 1
        np.multiply.accumulate(values[first:last], out=product[first + 1 : last + 1])
    begin, count = begin[count <= most], count[count <= most]
    for place in range(1, int(count.max(initial=0))):  # the hits of all topics at once
        begin, count = begin[count > place], count[count > place]
        here = begin + place
        product[here] = product[here - 1] * values[here - 1]
    return product


@measure(
    category="user model",
    cite="Chapelle, Metzler, Zhang and Grinspan 2009; gdeval",
    use="Users look for one good answer, graded judgments say how good each is, and what follows a perfect one hardly"
    " matters.",
    misleads="The highest grade changes every number: 4 in gdeval, 3 elsewhere. Rank 1 decides"
    " nearly all of it, so few topics decide a comparison.",
    properties=Properties(graded=True, missing_matter=False, better_first=True),
    tools={"gdeval": "err@20 (here ERR(max=4,undefined=skip)@20)", "ir_measures": "ERR@20 (here ERR(max=4)@20)"},
)
class ERR(RelevanceMeasure):
    r"""Expected reciprocal rank: the mean of 1/rank of the document that satisfies the user.

    .. math:: \mathrm{ERR}@k = \sum_{r \le k} \frac{1}{r}\, R_r \prod_{s < r} (1 - R_s), \qquad
        R = \frac{2^g - 1}{2^{\max}}

    R is the probability that a document of grade g satisfies; a document of the highest grade does so with 1 -
    2^-max, never surely. Documents without a judgment, or with a negative grade, satisfy nobody.

    Examples
    --------
    Grades up to 2, so that grade 2 satisfies 3/4 and grade 1 satisfies 1/4:

    >>> ERR(max=2).of_list([2, 1])  # 3/4 + 1/2 (1/4) (1/4)
    0.78125
    >>> ERR(max=2).of_list([1, 2])  # 1/4 + 1/2 (3/4) (3/4)
    0.53125
    """

    cutoff: int | None = param(CUTOFF)
    max: float = param(HIGHEST)

    def verify(self) -> None:
        """Refuse a scale whose powers of two no number holds.

        Raises
        ------
        MeasureError
            If the highest grade is too high.
        """
        if self.max > _MOST:
            raise MeasureError(f"ERR: 2^{spell(self.max)} is too large. Fix: max is the highest grade, such as 4")

    def score(self, judged: Judged) -> Floats:
        """The chance that each document is the one, divided by its rank."""
        check_scale(judged, self.max, self)
        within = judged.within(self.cutoff)
        gain, counted = gained(judged, "exp2", self.cutoff)
        satisfied = gain / 2.0**self.max
        judged.column("R", satisfied, f"gain / 2^{spell(self.max)}", where=counted, gain=gain)
        seen = product_above(judged, 1.0 - satisfied, within)
        judged.column("seen", seen, "product of (1 - R) above", where=counted)
        expected = satisfied * seen / judged.rank
        return judged.total(self, expected, "R * seen / rank", where=counted, R=satisfied, seen=seen)
