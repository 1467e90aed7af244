"""What `needs` returns, and the forms in which it can be had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.diagnosis.needs import layout
from judged.diagnosis.needs.chart import chart
from judged.diagnosis.needs.rows import NeedsSummary, NeedsTable
from judged.evaluation.provenance import provenance
from judged.stats.pairing import plain

if TYPE_CHECKING:
    from judged.tables import Table

__all__ = ["Needs", "NeedsSummary"]


@dataclass(frozen=True, eq=False, repr=False)
class Needs(NeedsTable):
    """Systems by need, where several queries word the same one. Its attributes are those of `NeedsTable`."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say how good, how bad at worst and how consistent each run is, and which differ over needs."""
        return layout.sentences(self)

    def table(self, measure: str | None = None) -> Table:
        """Lay out a row a run by one measure; the first, if none is named."""
        return layout.summary_table(self, measure)

    def needs_table(self, run: str | None = None, measure: str | None = None, worst: int | None = None) -> Table:
        """Lay out a row a need, those with the widest range of scores first; ``worst`` of them, or all."""
        return layout.needs_table(self, run, measure, worst)

    def long_table(self) -> Table:
        """Lay out every run, measure and need in full precision: for CSV."""
        return layout.long_table(self)

    def chart(self, run: str | None = None, measure: str | None = None, *, width: int = 420) -> Any:
        """Draw the needs of one run, each from its worst to its best wording; the first run and measure for None.

        Raises
        ------
        InputError
            If there is no such run or measure.
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, run, measure, width)

    def text(self, *, width: int | None = None, worst: int = 10) -> str:
        """Write for a terminal."""
        return layout.text(self, width=width, worst=worst)

    def markdown(self, *, worst: int = 10) -> str:
        """Write as Markdown."""
        return layout.markdown(self, worst=worst)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            **provenance(self.scores).to_dict(),
            "needs": len(self.needs),
            "depth": self.depth,
            "p": self.p,
            "results": [plain(one) for one in self.summaries],
            "by_need": [self._need(at) for at in range(len(self.needs))],
            "comparison": [
                {"measure": one["measure"], "pairs": one["pairs"]}
                for one in ([] if self.comparison is None else self.comparison.to_dict()["measures"])
            ],
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }

    def _need(self, at: int) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        for r, run in enumerate(self.scores.run_names):
            for m, measure in enumerate(self.scores.measure_names):
                cells = {name: float(getattr(self, name)[r, m, at]) for name in ("mean", "worst", "best", "deviation")}
                cells |= {"overlap": float(self.overlap[r, at]), "rbo": float(self.rbo[r, at])}
                numbers = {name: None if math.isnan(cell) else cell for name, cell in cells.items()}
                rows.append({"run": run, "measure": measure, "variants": int(self.variants[r, m, at]), **numbers})
        return {"need": self.needs[at], "query_ids": list(self.query_ids[at]), "results": rows}

    def __repr__(self) -> str:
        return "\n".join([self.text(), *(f"warning: {text}" for text in self.warnings)])
