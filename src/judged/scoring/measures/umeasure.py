"""U-measure: relevant documents lose worth with the text that is read before they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.facts import amounts, used_up
from judged.scoring.measures.gain import GAIN, gained
from judged.scoring.measures.parameters import CUTOFF, Parameter, real, spell
from judged.scoring.measures.registry import measure
from judged.scoring.measures.top_ranks import TopRanks

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.gain import TakesGain

READ = Parameter(
    "The length of text, in the unit of the lengths, at which a document has lost all its worth.",
    None,
    real(1e-6),
    required=True,
    values="number above 0",
)


@measure(
    category="facts about documents",
    cite="Sakai and Dou 2013",
    use="What is read can be put in a row as text: snippets, summaries, answers, documents of different lengths.",
    misleads="L decides it: the paper takes 132000 characters, cwl_eval 1000. Gains are not"
    " scaled, so numbers can be compared only on one scale of grades.",
    aliases={"U-measure": {}},
    properties=Properties(high=None, graded=True, missing_matter=False),
    tools={"cwl_eval": "U-L@1000 (another number: see CwlU)"},
)
class UMeasure(Measure):
    r"""U-measure: each gain, discounted by how much text has been read where its document ends.

    .. math:: \mathrm{U} = \sum_r g_r \max\left(0,\; 1 - \frac{\mathrm{pos}(r)}{L}\right), \qquad
        \mathrm{pos}(r) = \sum_{m \le r} l_m

    The text of the paper's user, the trailtext, is here everything that was returned: ``length`` in the table of
    documents is how much of each is read, in the unit of L. The paper has a factor 1/N before the sum and sets N = 1,
    so nothing is divided, there or here. cwl_eval prints another number under this name: `CwlU`.

    Examples
    --------
    The documents end at 200 and 500 characters, of 1000:

    >>> UMeasure(L=1000).of_list([3, 1], facts={"length": [200, 300]})  # 3 (0.8) + 1 (0.5)
    2.9000000000000004
    """

    cutoff: int | None = param(CUTOFF)
    L: float = param(READ)
    gain: TakesGain = param(GAIN)

    def score(self, judged: Judged) -> Floats:
        """Add up the gains, each discounted by where its document ends."""
        length = amounts(judged, "length", self, zero=True)
        _, end = used_up(judged, length)
        gain, counted = gained(judged, self.gain, self.cutoff)
        decay = np.maximum(0.0, 1.0 - end / self.L)
        if judged.working is not None:
            TopRanks.down_to(judged, counted).column("length", length)
        judged.column("end", end, "length of all ranks down to this one", where=counted)
        judged.column("decay", decay, f"max(0, 1 - end / {spell(self.L)})", where=counted, end=end)
        return judged.total(self, gain * decay, "gain * decay", where=counted, gain=gain, decay=decay)
