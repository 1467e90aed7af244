"""What `report` returns, and the forms in which it can be had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.reporting import saving
from judged.reporting.content import ReportContent
from judged.reporting.document import document
from judged.reporting.html import page
from judged.reporting.markdown import summary, written

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, eq=False, repr=False)
class Report(ReportContent):
    """What `report` returns: sections, and the results that they are made of.

    Its attributes are those of `ReportContent`.
    """

    def text(self, width: int | None = None) -> str:
        """Write the summary and the leaderboard for a terminal."""
        return summary(self, width)

    def html(self) -> str:
        """Write one page that needs no network: text, tables and charts with all that draws them.

        Where altair or vl-convert is not installed the page has every number and no chart, and says so.
        """
        return page(self)

    def markdown(self) -> str:
        """Write as Markdown; charts become their sentences and tables."""
        return written(self)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON; results in full precision, None for NaN."""
        return document(self)

    def save(self, path: str | Path, *, form: str | None = None) -> None:
        """Write to a file, whole or not at all; what it becomes is told by the end of its name.

        Parameters
        ----------
        path
            A name that ends in ``.html``, ``.md`` or ``.json``.
        form
            ``html``, ``markdown`` or ``json``, where the name does not tell.

        Raises
        ------
        InputError
            If the form is none of these, or the file cannot be written.
        """
        saving.save(self, path, form)

    def save_charts(self, folder: str | Path, *, form: str = "svg") -> tuple[Path, ...]:
        """Write every chart to a folder, which is made if there is none.

        Parameters
        ----------
        folder
            Where to.
        form
            ``svg``, ``png``, ``pdf`` or ``html``.

        Returns
        -------
        The files, in the order of the sections.

        Raises
        ------
        InputError
            If the form is none of these, or a file cannot be written.
        MissingExtraError
            If altair or vl-convert is not installed.
        """
        return saving.save_charts(self, folder, form)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.table().html(notes=(*self.sentences, *self.warnings))
