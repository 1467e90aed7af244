"""Metrics of a log, and the forms in which they can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judged.online.estimates import Method, OnlineEstimate, ScoresTable

__all__ = ["Method", "OnlineEstimate", "OnlineScores"]


@dataclass(frozen=True, repr=False)
class OnlineScores(ScoresTable):
    """Metrics of one log: what `online_metrics` returns. Its attributes are those of `ScoresTable`."""

    def text(self, *, width: int | None = None, colour: bool = False) -> str:
        """Write for a terminal: what the log is, metrics by family, CTR by rank, and why numbers are missing.

        Parameters
        ----------
        width
            Of the terminal; a table that is wider is written in several blocks. None: as wide as it is.
        colour
            Whether headings are set in bold by escape codes.
        """
        from judged.online.showing.text import text

        return text(self, width=width, colour=colour)

    def markdown(self) -> str:
        """Write as Markdown, with what is wrong with the log."""
        from judged.online.showing.text import markdown

        return markdown(self)

    def csv(self) -> str:
        """Write one estimate a row in full precision, CTR by rank behind them; what does not exist is left empty."""
        from judged.online.showing.text import csv

        return csv(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: None for NaN.

        The keys are those of `judged.online.showing.document.KEYS`, the same for every command.
        """
        from judged.online.showing.document import document

        return document(self)

    def chart(self, *, width: int = 460) -> Any:
        """Draw every metric with its interval, one panel a unit, and CTR by rank beside metrics of clicks.

        Raises
        ------
        InputError
            If there is no number to draw.
        MissingExtraError
            If altair is not installed.
        """
        from judged.online.showing.charts import chart

        return chart(self, width=width)

    def __str__(self) -> str:
        return self.text()
