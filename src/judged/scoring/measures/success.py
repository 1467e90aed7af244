"""Success: whether the user finds anything at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import relevant_returned
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="set at a cutoff",
    cite="Soboroff 2006; trec_eval",
    use="One good document is enough: known items, question answering, a RAG context that must hold the evidence.",
    misleads="It does not see whether there is one relevant document or ten, or at which of the k ranks.",
    aliases={"HitRate": {}, "hit_rate": {}, "Hit": {}},
    properties=Properties(perfect=1.0, missing_matter=False, better_first=True),
    tools={"trec_eval": "success_5", "ir_measures": "Success@5", "ranx": "hit_rate@5"},
)
class Success(RelevanceMeasure):
    r"""Success at k: 1 if a relevant document is among the first k, otherwise 0.

    .. math:: \mathrm{Success}@k = [\,\exists\ \text{relevant document at rank} \le k\,]

    Examples
    --------
    >>> Success(cutoff=1).of_list([0, 1]), Success(cutoff=5).of_list([0, 1])
    (0.0, 1.0)
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Whether anything relevant is in the first k."""
        found = relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, (found > 0).astype(np.float64), "min(relevant_found, 1)", relevant_found=found)
