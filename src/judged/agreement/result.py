"""What `agree` returns: agreement of each two judges, and what their disagreement does to systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.agreement import layout
from judged.agreement.two_judges import without_nan

if TYPE_CHECKING:
    from judged.agreement.two_judges import PairAgreement, SystemEffect
    from judged.stats.agreement import Agreement
    from judged.tables import Table


@dataclass(frozen=True, eq=False)
class JudgeAgreement:
    """What `agree` found.

    Attributes
    ----------
    judges : tuple of str
    levels : tuple of (float or None)
        From which grade on each judge's grades were made 1, if they were.
    pairs : tuple of PairAgreement
        Each two judges, in the order given.
    alpha : Agreement
        Krippendorff's alpha of all judges together.
    fleiss : Agreement
        Fleiss' kappa of all judges, over what all of them judged.
    systems : tuple of SystemEffect
        Pair by pair, measure by measure; none without runs, or for two judges without a common topic.
    notes : tuple of str
        What to know before the numbers are read.
    """

    judges: tuple[str, ...]
    levels: tuple[float | None, ...]
    pairs: tuple[PairAgreement, ...]
    alpha: Agreement
    fleiss: Agreement
    systems: tuple[SystemEffect, ...]
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Lay out one row for each two judges."""
        return layout.pairs_table(self.pairs)

    def overall_table(self) -> Table:
        """Lay out the coefficients of all judges together."""
        return layout.overall_table((self.alpha, self.fleiss))

    def confusion_table(self, pair: int = 0) -> Table:
        """Lay out how often each grade of the first judge (rows) met each of the second (columns)."""
        return layout.confusion_table(self.pairs[pair])

    def topic_table(self, pair: int = 0) -> Table:
        """Lay out one row a topic, the least agreement first."""
        return layout.topic_table(self.pairs[pair])

    def systems_table(self) -> Table:
        """Lay out one row for each two judges and measure: how alike they rank the systems."""
        return layout.systems_table(self.systems)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {
            "judges": list(self.judges),
            "levels": list(self.levels),
            "alpha": without_nan(self.alpha.to_dict()),
            "fleiss": without_nan(self.fleiss.to_dict()),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "systems": [effect.to_dict() for effect in self.systems],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        parts = [self.table().text()]
        if len(self.judges) > 2:
            parts.append(self.overall_table().text())
        if self.systems:
            parts.append(self.systems_table().text())
        return "\n\n".join([*parts, *self.notes])
