"""What `against_qrels` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from judged.online.offline import layout
from judged.online.offline.chart import chart
from judged.online.offline.rows import OfflineTable

if TYPE_CHECKING:
    from judged.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class OfflineOnline(OfflineTable):
    """Whether judgments predict what users do: relations by measure, outcome and slice, and calibration.

    Its attributes are those of `OfflineTable`.
    """

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What may be concluded, and what not."""
        return layout.sentences(self)

    def table(self) -> Table:
        """Lay out one row a measure, outcome and slice."""
        return layout.relation_table(self)

    def calibration_table(self, measure: str | None = None, outcome: str | None = None) -> Table:
        """Lay out the outcome by ranges of the score; of the first measure and outcome where nothing is said."""
        return layout.calibration_table(self, *self._pair(measure, outcome))

    def topic_table(self) -> Table:
        """Lay out one row a measure and outcome, over means of topics."""
        return layout.topic_table(self)

    def text(self, *, width: int | None = None) -> str:
        """Write for a terminal."""
        return layout.text(self, width)

    def markdown(self) -> str:
        """Write as Markdown."""
        parts = [one.markdown() for one in layout.tables(self)]
        return "\n\n".join([*parts, "\n".join(f"- {one}" for one in self.sentences)])

    def csv(self) -> str:
        """Write one row a measure, outcome and slice, in full precision."""
        return layout.csv_table(self).csv()

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for what is not known."""
        return layout.document(self)

    def chart(
        self, measure: str | None = None, outcome: str | None = None, *, width: int = 420, height: int = 280
    ) -> Any:
        """Draw the outcome over the score, with intervals: the calibration.

        Raises
        ------
        KeyError
            If there is no such measure or outcome.
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, *self._pair(measure, outcome), width, height)

    def _pair(self, measure: str | None, outcome: str | None) -> tuple[str, str]:
        pair = measure or self.measures[0], outcome or self.outcomes[0]
        if not self.bins(*pair):
            raise KeyError(" and ".join(pair))
        return pair

    def __repr__(self) -> str:
        return self.text()
