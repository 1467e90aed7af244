"""What a report says, apart from how it looks: sections of sentences, tables, charts and lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.comparison import Comparison
    from judged.evaluation import Scores
    from judged.tables import Table


@dataclass(frozen=True)
class Numbers:
    """A table under a title.

    Parameters
    ----------
    title
        What it shows.
    table
        Rows of text.
    note
        What its marks mean, and by which rules it was made.
    folded
        Whether a page shows it only when it is asked for.
    """

    title: str
    table: Table
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture, with what it says in words and in numbers.

    Parameters
    ----------
    name
        One word of letters and digits, each only once in a report; also the name of its file.
    title
        What is drawn.
    sentence
        What someone who cannot see the chart should learn from it.
    table
        The numbers that are drawn; of many the ones that matter.
    draw
        Draws it with altair. It is called only by forms that have pictures.
    """

    name: str
    title: str
    sentence: str
    table: Table
    draw: Callable[[], Any] = field(repr=False)


@dataclass(frozen=True)
class Item:
    """One document of a ranked list.

    Parameters
    ----------
    rank
        Its place, as it is shown.
    doc_id
        Which document.
    grade
        Its judgment as it is shown; empty where there is none.
    relevant
        Whether it counts as relevant; None where it is not judged.
    change
        Where it stands in the other list, in a word or two.
    text
        The beginning of its text, where that is known.
    """

    rank: str
    doc_id: str
    grade: str = ""
    relevant: bool | None = None
    change: str = ""
    text: str = ""


@dataclass(frozen=True)
class Ranking:
    """One ranked list: the name of the run, what is said of it, and its first documents."""

    name: str
    sentence: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class SideBySide:
    """Ranked lists of one topic next to each other.

    Parameters
    ----------
    title
        Which topic.
    sentences
        What happened there.
    rankings
        The lists.
    """

    title: str
    sentences: tuple[str, ...]
    rankings: tuple[Ranking, ...]


@dataclass(frozen=True)
class Notes:
    """Short texts under a title.

    Parameters
    ----------
    title
        What they are.
    texts
        Sentences; or commands.
    code
        Whether they are commands, to be copied as they stand.
    folded
        Whether a page shows them only when it is asked for them.
    """

    title: str
    texts: tuple[str, ...]
    code: bool = False
    folded: bool = False


Part: TypeAlias = Numbers | Chart | SideBySide | Notes
"""What a section is made of, beside its sentences."""


@dataclass(frozen=True)
class Section:
    """One question of a report and its answer.

    Parameters
    ----------
    name
        One word, each only once in a report; a page uses it as an anchor.
    title
        Of the section.
    sentences
        The answer in words: what may and may not be concluded.
    parts
        The evidence.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class PageContent:
    """What a page is written from.

    Attributes
    ----------
    title : str
    facts : tuple of str
        How much was evaluated, and by which version.
    sections : tuple of Section
        The first one is the summary.
    """

    title: str
    facts: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The summary in plain words."""
        return self.sections[0].sentences

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in the order of the sections."""
        return tuple(part for section in self.sections for part in section.parts if isinstance(part, Chart))

    def section(self, name: str) -> Section | None:
        """Give a section by its name; None where the report has none of this name."""
        return next((section for section in self.sections if section.name == name), None)


@dataclass(frozen=True, eq=False, repr=False)
class ReportContent(PageContent):
    """Sections, and the results that they are made of: what pages and documents are written from.

    Attributes
    ----------
    results : dict
        Every result by name: ``evaluation``, ``comparison`` and others; each has a ``to_dict``.
    scores : Scores
        Every score of every topic.
    comparison : Comparison or None
        The tests; None for one run.
    warnings : tuple of str
        What should be known before the numbers are used.
    command : str
        How to make the report again.
    seed : int
        Of everything that drew at random.
    """

    results: Mapping[str, Any]
    scores: Scores
    comparison: Comparison | None
    warnings: tuple[str, ...] = ()
    command: str = ""
    seed: int = 0

    def table(self) -> Table:
        """Give the leaderboard."""
        board = self.section("leaderboard")
        parts = board.parts if board else ()
        return next(part.table for part in parts if isinstance(part, Numbers))
