"""SDCG: discounted gain as a share of what k perfect documents would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import FIXED, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.gain import discounts
from judged.scoring.measures.parameters import NEEDED_CUTOFF
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats


@measure(
    category="user model",
    cite="Järvelin and Kekäläinen 2002; cwl_eval; ir_measures",
    use="DCG on a scale that is the same for every topic, whatever is judged: no ideal that depends on the qrels.",
    misleads="A topic with fewer than k documents of the highest grade cannot reach 1, however good the ranking.",
    aliases={"SDCG-k": {}, "NDCGCWLMetric": {}},
    properties=FIXED,
    tools={"ir_measures": "SDCG(max_rel=3)@10", "cwl_eval": "NDCG-k@10"},
)
class SDCG(UserModel):
    r"""Scaled DCG: the DCG of the first k, divided by that of k documents of the highest grade.

    .. math:: C(i) = \frac{\log_2(i+1)}{\log_2(i+2)} \quad (i < k), \qquad
        \mathrm{SDCG}@k = \frac{\sum_{i \le k} g_i / \log_2(i+1)}{\sum_{i \le k} 1 / \log_2(i+1)}

    Examples
    --------
    >>> round(SDCG(max=3, cutoff=2).of_list([3, 0]), 6)  # 1 / (1 + 1/log2(3))
    0.613147
    >>> round(SDCG(max=3, cutoff=2, of="ETU").of_list([3, 3]), 6)  # DCG@2 with gains from 0 to 1
    1.63093
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """The discount of the next rank, divided by that of this one, as far as rank k."""
        ranks = reading.rank.astype(np.int64)
        here, after = (discounts(ranks + step, "log2", 2.0) for step in (0, 1))
        going_on = (here / after * (reading.rank < self.cutoff))[None, :]
        return reading.note("C", going_on, f"log2(rank + 1) / log2(rank + 2), 0 at rank {self.cutoff}")

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)
