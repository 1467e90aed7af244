"""What the size of the collection is needed for: fallout and generality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.accuracy import SIZE, check_size
from judged.scoring.measures.arithmetic import all_relevant, divide, relevant_returned, returned_within
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966; Manning, Raghavan and Schütze 2008, section 8.3",
    use="To draw ROC curves, or to say how much of the rest of the collection a filter lets through.",
    misleads="Almost everything is not relevant, so it is tiny for any short list, and it rewards returning nothing.",
    properties=Properties(
        needs_ranking=False,
        ignores_unjudged_tail=False,
        monotone=False,
        perfect=0.0,
        higher_is_better=False,
        additive=True,
    ),
    tools={"torchmetrics": "RetrievalFallOut (n is the number of documents scored)"},
)
class Fallout(Measure):
    r"""Fallout: the share of the documents that are not relevant that was returned.

    .. math:: \mathrm{Fallout}@k = \frac{|\{\text{not relevant documents at rank} \le k\}|}{N - R}

    N, the number of documents in the collection, must be given. Unjudged documents count as not relevant.

    Examples
    --------
    Three of the 1000 - 2 that are not relevant:

    >>> Fallout(n=1000).of_list([1, 0, None, 0], missing=[1]) == 3 / 998
    True
    """

    cutoff: int | None = param(CUTOFF)
    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Not relevant and returned, divided by not relevant."""
        found, known = relevant_returned(judged, self.rel, self.cutoff), all_relevant(judged, self.rel)
        returned = returned_within(judged, self.cutoff)
        wrong = judged.step(
            "not relevant", returned - found, "returned - relevant_found", returned=returned, relevant_found=found
        )
        check_size(self, self.n, known + wrong)
        return judged.step(
            self, divide(wrong, self.n - known), "not_relevant / (N - R)", not_relevant=wrong, N=self.n, R=known
        )


@measure(
    category="set",
    cite="Cleverdon, Mills and Keen 1966",
    use="To see how rare relevant documents are: what precision a random ranking would have.",
    misleads="It is a property of topics and collection, not of the run.",
    properties=Properties(needs_ranking=False, higher_is_better=None, additive=True, better_first=True),
)
class Generality(Measure):
    r"""Generality: the share of the collection that is relevant.

    .. math:: \mathrm{Generality} = R / N

    N, the number of documents in the collection, must be given.

    Examples
    --------
    >>> Generality(n=1000).of_list([1, 0, None, 0], missing=[1])
    0.002
    """

    n: int = param(SIZE)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant, divided by all."""
        known = all_relevant(judged, self.rel)
        check_size(self, self.n, known)
        return judged.step(self, known / self.n, "R / N", R=known, N=self.n)
