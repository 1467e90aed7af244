"""A measure with a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures import Measure, Parameter, measure, param

if TYPE_CHECKING:
    from judged import Judged
    from judged.results.types import Floats


@measure(
    category="ranked, binary",
    cite="defined for this example",
    use="For a page that shows two results.",
    misleads="Ranks below 2 have no effect.",
)
class FirstTwo(Measure):
    """Share of relevant documents among the first two."""

    rel: float = param(Parameter("The lowest grade that counts as relevant.", default=1.0, accept=float))

    def score(self, judged: Judged) -> Floats:
        """Return the score of each topic."""
        return judged.sum(judged.relevant(self.rel) & (judged.rank <= 2)) / 2
