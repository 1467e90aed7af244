"""What `tradeoff` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judged.diagnosis.tradeoff import layout
from judged.diagnosis.tradeoff.chart import chart
from judged.diagnosis.tradeoff.rows import TradeoffRow, TradeoffTable
from judged.tables import markdown_list

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["Tradeoff", "TradeoffRow"]


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(TradeoffTable):
    """What `tradeoff` returns: a row for each run, cheapest first, and the Pareto front.

    Its attributes are those of `TradeoffTable`.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> fast, slow = ({topic: docs for topic in qrels} for docs in (["x", "d"], ["d"]))
    >>> scores = evaluate(qrels, {"fast": fast, "slow": slow}, "RR")
    >>> from judged.diagnosis.tradeoff import tradeoff
    >>> print(tradeoff(scores, {"fast": {"ms": 10}, "slow": {"ms": 35}}).table().text())
    run                      RR                      gain        ms  per ms  front
    fast  0.5000 [0.398, 0.602]                         -        10       -    yes
    slow  1.0000 [0.752, 1.000]  +0.5000 [+0.500, +0.500]  35 (+25)   +0.02    yes
    """

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return layout.sentences(self)

    def table(self) -> Table:
        """Lay out one row a run."""
        return layout.table(self)

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal."""
        return layout.text(self, width)

    def markdown(self) -> str:
        """Write as Markdown."""
        return "\n\n".join([self.table().markdown(), markdown_list(self.sentences)])

    def csv(self) -> str:
        """Write one row a run, in full precision."""
        return layout.csv_table(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for what is not known."""
        return layout.document(self)

    def chart(self, cost: str | None = None, *, width: int = 460, height: int = 320) -> Any:
        """Draw the measure with its intervals over one cost, and the front of these two.

        Raises
        ------
        InputError
            If there is no such cost.
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, cost, width, height)

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {one}" for one in self.warnings)])
