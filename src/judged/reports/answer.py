"""What `report` returns: sections of answers, and the results that they are made of."""

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
from judged.results.escaping import isolate_directions, markdown_text
from judged.results.files import raise_write_error
from judged.results.html import html, page, sentences
from judged.results.text_formats import markdown, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.comparison import Comparison
    from judged.results.blocks import Note
    from judged.scoring.evaluation import Scores

DRAWN_BY = {"altair": "altair", "vl_convert": "vl-convert-python"}
"""The modules that draw charts, and the libraries that they belong to."""


@dataclass(frozen=True, eq=False, repr=False)
class Report(Answer):
    """What `report` returns: sections, and the results that they are made of.

    Attributes
    ----------
    heading : str
        The title.
    about : tuple of str
        How much was evaluated, and by which version.
    sections : tuple of Section
        The first one is the summary.
    results : dict
        Every result by name: ``evaluation``, ``comparison`` and others; each has a ``to_dict``.
    scores : Scores
        Every score of every topic.
    comparison : Comparison or None
        The tests; None for one run.
    notes : tuple of Note
    command : str
        How to make the report again.
    seed : int
        Of everything that drew at random.
    """

    kind: ClassVar[str] = "report"

    heading: str
    about: tuple[str, ...]
    sections: tuple[Section, ...]
    results: Mapping[str, Any]
    scores: Scores
    comparison: Comparison | None
    notes: tuple[Note, ...] = ()
    command: str = ""
    seed: int = 0

    @property
    def title(self) -> str:
        """Of the report."""
        return self.heading

    @property
    def sentences(self) -> tuple[str, ...]:
        """The summary in plain words."""
        return self.sections[0].sentences

    def blocks(self) -> tuple[Section, ...]:
        """Give the sections."""
        return self.sections

    def section(self, name: str) -> Section | None:
        """Give a section by its name; None where the report has none of this name."""
        return next((section for section in self.sections if section.name == name), None)

    def facts(self) -> dict[str, Any]:
        """Give title, sections in outline, and every result in full precision."""
        return {
            "judged": self.scores.versions.get("judged", ""),
            "title": self.title,
            "facts": self.about,
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
        """Write the summary and the leaderboard for a terminal; other sections and tables by their names."""
        chosen = [section for section in self.sections if section.name in set(unfold)]
        board = [] if "leaderboard" in set(unfold) else [self.table("board")]
        blocks = (Sentences((self.title,), "title"), Sentences(self.sentences), *board, *chosen)
        return text(rounded(blocks, digits), width, unfold, color=color)

    def html(self, *, digits: int | None = None) -> str:
        """Write one page that needs no network: text, tables and charts with all that draws them.

        Where altair or vl-convert is not installed the page has every number and no chart, and says so.
        """
        return page(self.title, self.about, rounded(self.sections, digits))

    def markdown(self, *, unfold: Iterable[str] = (), digits: int | None = None) -> str:
        """Write as Markdown; charts become their sentences and tables."""
        every = [*unfold, *(block.name for block in flat(self.sections))]
        head = [f"# {markdown_text(self.title)}", markdown_text(" · ".join(self.about))]
        return "\n\n".join([*head, markdown(rounded(self.sections, digits), every, 2, charts=True)])

    def _repr_html_(self) -> str:
        return isolate_directions(
            "\n".join([sentences(self.sentences), html([self.table("board")]), sentences(self.warnings)])
        )

    def save_charts(self, folder: str | Path, *, form: str = "svg") -> tuple[Path, ...]:
        """Write every chart to a folder, which is made if there is none, and give the files.

        Parameters
        ----------
        folder
            Where to.
        form
            ``svg``, ``png``, ``pdf`` or ``html``.

        Raises
        ------
        InputError
            If the form is none of these, or a file cannot be written.
        MissingExtraError
            If altair or vl-convert is not installed.
        """
        if form not in PICTURES:
            raise InputError(f"no form {form!r} of a chart is known", fix=f"use one of {', '.join(PICTURES)}")
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise_write_error(folder, error)
        files = {name: Path(folder) / f"{name}.{form}" for name in self.charts()}
        for name, file in files.items():
            save_chart(self.chart(name), file, form, self.charts()[name].title)
        return tuple(files.values())


def _outline(section: Section) -> dict[str, Any]:
    """Name what a section holds, and say its sentences."""
    blocks = list(flat(section.blocks))
    said = [text for block in blocks if isinstance(block, Sentences) for text in block.texts]
    tables = [block.name for block in blocks if isinstance(block, Table) and block.only != "people"]
    return {"name": section.name, "title": section.title, "sentences": said, "tables": tables}


def undrawn() -> tuple[str, ...]:
    """Say why a page has no charts, for whoever writes it; nothing where it has them."""
    lacking = [name for module, name in DRAWN_BY.items() if find_spec(module) is None]
    return tuple(f"the charts are left out of the page: {MissingExtraError(name, 'plots')}" for name in lacking[:1])
