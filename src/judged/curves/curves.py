"""What `curve` and `precision_recall` return, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.curves import forms
from judged.curves.chart import HEIGHT, WIDTH, chart
from judged.curves.points import CurvePoints
from judged.curves.saving import picture, save, written
from judged.curves.text import COLUMNS, LINES, text_plot
from judged.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from judged._types import Table
    from judged.tables import Table as TextTable


@dataclass(frozen=True, eq=False, repr=False)
class Curves(CurvePoints):
    """One line a run, of R runs and K points.

    Its attributes, and what follows from them, are those of `CurvePoints`.

    Examples
    --------
    >>> from judged import curve
    >>> made = curve({"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "a": 2.0, "b": 1.0}}, "R")
    >>> made.x.tolist(), made.mean.tolist()
    ([[1.0, 2.0, 3.0]], [[0.0, 0.5, 1.0]])
    """

    def to_arrow(self, *, per_topic: bool = False) -> Table:
        """Give every point as a long table: run, cutoff or recall, mean, low, high, topics; or each topic's."""
        return forms.long_table(self, per_topic=per_topic)

    def to_dict(self, *, per_topic: bool = False) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON: full precision, None for NaN."""
        return forms.document(self, per_topic=per_topic)

    def table(self) -> TextTable:
        """Lay out one row a point, one column a run; of many points the round ones: 1, 2, 5, 10, 20 ..."""
        return forms.text_table(self)

    def text(self, *, width: int = COLUMNS, height: int = LINES, ascii_only: bool = False, colour: bool = False) -> str:
        """Draw for a terminal, with axes and a legend.

        Parameters
        ----------
        width, height
            Of the drawing with its axes, in characters; the legend comes below.
        ascii_only
            Draw with letters alone, where the terminal has no braille characters.
        colour
            Give each run a colour too.
        """
        return text_plot(self, width=width, height=height, ascii_only=ascii_only, colour=colour)

    def chart(self, *, width: int = WIDTH, height: int = HEIGHT) -> Any:
        """Draw with altair: lines with their intervals, on a logarithmic scale beyond 50 cutoffs.

        Returns
        -------
        altair.LayerChart

        Raises
        ------
        MissingExtraError
            If altair is not installed.
        """
        return chart(self, width=width, height=height)

    def written(self, form: str) -> str:
        """Give a form that is text: ``plot``, ``table``, ``csv``, ``json``, ``markdown``, ``latex`` or ``html``.

        Raises
        ------
        InputError
            If it is none of these.
        """
        return written(self, form)

    def save(self, path: str | Path, *, form: str | None = None) -> None:
        """Write to a file, whole or not at all; what it becomes is told by the end of its name.

        ``png``, ``svg``, ``pdf``: a picture; ``html``: an interactive chart that needs no network; ``csv``,
        ``parquet``: every point; ``json``: `to_dict`; ``md``, ``tex``: `table`; ``txt``: `text`.

        Parameters
        ----------
        form
            ``plot``, ``table``, ``csv``, ``json``, ``markdown``, ``latex``, ``parquet``, ``png``, ``svg``, ``pdf`` or
            ``html``, where the name does not tell.

        Raises
        ------
        InputError
            If the form is not one of these, or the file cannot be written.
        MissingExtraError
            If a chart is wanted, and altair or vl-convert is not installed.
        """
        save(self, path, form)

    def __repr__(self) -> str:
        return "\n".join([self.text(), "", self.basis(), *(f"warning: {text}" for text in self.warnings)])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Show a picture in a notebook, or the table where altair is not installed."""
        del include, exclude
        try:
            return {"text/plain": repr(self), "image/svg+xml": picture(self, "svg").decode()}
        except MissingExtraError:
            return {"text/plain": repr(self), "text/html": self.table().html(notes=(self.basis(), *self.warnings))}
