"""Report of an evaluation, as text, HTML, Markdown, JSON, and charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judged.errors import InputError, MissingExtraError
from judged.results import Answer, Section, Sentences, Table
from judged.results.blocks import flat, rounded
from judged.results.charts import PICTURES, save_chart
from judged.results.escaping import markdown_text
from judged.results.files import raise_write_error
from judged.results.html import page
from judged.results.notebook import cell_html
from judged.results.spelling import use_one_of
from judged.results.text_formats import markdown, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.comparison import Comparison
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores

CHART_LIBRARIES = {"altair": "altair", "vl_convert": "vl-convert-python"}
"""Modules that draw charts, and the names of their libraries."""


@dataclass(frozen=True, eq=False, repr=False)
class Report(Answer):
    """Report of an evaluation: sections, and the results behind them.

    Attributes
    ----------
    heading : str
        Title.
    summary_lines : tuple of str
        Numbers of runs, topics, and judgments, and the version of judged.
    sections : tuple of Section
        Sections; the first one is the summary.
    results : dict
        All results by name: ``evaluation``, ``comparison`` and others; each has a ``to_dict``.
    scores : Scores
        Scores of all topics.
    comparison : Comparison or None
        Tests; None for one run.
    notes : tuple of Note
    command : str
        Command that reproduces the report.
    seed : int
        Seed of all random numbers.
    """

    kind: ClassVar[str] = "report"

    heading: str
    summary_lines: tuple[str, ...]
    sections: tuple[Section, ...]
    results: Mapping[str, Any]
    scores: Scores
    comparison: Comparison | None
    notes: tuple[Note, ...] = ()
    command: str = ""
    seed: int = 0

    @property
    def title(self) -> str:
        """Title of the report."""
        return self.heading

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        return self.sections[0].sentences

    def blocks(self) -> tuple[Section, ...]:
        """Return the sections."""
        return self.sections

    def section(self, name: str) -> Section | None:
        """Return the section with this name; None if it does not exist."""
        return next((section for section in self.sections if section.name == name), None)

    def facts(self) -> dict[str, Any]:
        """Return title, outline of the sections, and all results in full precision."""
        return {
            "judged": self.scores.versions.get("judged", ""),
            "title": self.title,
            "facts": self.summary_lines,
            "sections": [_outline(section) for section in self.sections],
            "command": self.command,
            "results": {name: self._plain(result) for name, result in self.results.items()},
        }

    def _plain(self, result: Any) -> Any:
        return result.summary(seed=self.seed).to_dict() if result is self.scores else result.to_dict()

    def text(
        self,
        width: int | None = None,
        *,
        unfold: Iterable[str] = (),
        digits: int | None = None,
        color: bool = False,
    ) -> str:
        """Format the summary and the leaderboard for a terminal; other sections and tables if unfolded by name."""
        unfolded = [section for section in self.sections if section.name in set(unfold)]
        leaderboard = [] if "leaderboard" in set(unfold) else [self.table("board")]
        blocks = (Sentences((self.title,), "title"), Sentences(self.sentences), *leaderboard, *unfolded)
        return text(rounded(blocks, digits), width, unfold, color=color)

    def html(self, *, digits: int | None = None) -> str:
        """Render one self-contained page with text, tables, and charts.

        If altair or vl-convert is not installed, the page has all numbers, no charts, and a note.
        """
        return page(self.title, self.summary_lines, rounded(self.sections, digits))

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Render the report as Markdown, with charts as sentences and tables."""
        names = [*unfold, *(block.name for block in flat(self.sections))]
        head = [f"# {markdown_text(self.title)}", markdown_text(" · ".join(self.summary_lines))]
        return "\n\n".join([*head, markdown(rounded(self.sections, digits), names, 2, charts=True)])

    def _repr_html_(self) -> str:
        return cell_html([Sentences(self.sentences), self.table("board")], self.notes, self.headline)

    def save_charts(self, folder: str | Path, *, form: str = "svg") -> tuple[Path, ...]:
        """Write all charts to a folder, which is created if missing, and return the paths of the files.

        Parameters
        ----------
        folder
            Output folder.
        form
            File format: ``svg``, ``png``, ``pdf``, or ``html``.

        Raises
        ------
        InputError
            If the format is unknown, or a file cannot be written.
        MissingExtraError
            If altair or vl-convert is not installed.
        """
        if form not in PICTURES:
            raise InputError(f"unknown chart format {form!r}", fix=use_one_of(PICTURES))
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise_write_error(folder, error)
        files = {name: Path(folder) / f"{name}.{form}" for name in self.charts()}
        for name, file in files.items():
            save_chart(self.chart(name), file, form, self.charts()[name].title)
        return tuple(files.values())


def _outline(section: Section) -> dict[str, Any]:
    blocks = list(flat(section.blocks))
    sentences = [text for block in blocks if isinstance(block, Sentences) for text in block.texts]
    tables = [block.name for block in blocks if isinstance(block, Table) and block.only != "people"]
    return {"name": section.name, "title": section.title, "sentences": sentences, "tables": tables}


def missing_chart_notes() -> tuple[str, ...]:
    """Return the reason why a page has no charts; empty if it has charts."""
    missing = [name for module, name in CHART_LIBRARIES.items() if find_spec(module) is None]
    return tuple(f"the page has no charts: {MissingExtraError(name, 'plots')}" for name in missing[:1])
