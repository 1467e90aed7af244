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
    """A table under a title."""

    title: str  # what it shows
    table: Table  # rows of text
    note: str = ""  # what its marks mean, and by which rules it was made
    folded: bool = False  # whether a page shows it only when it is asked for


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture, with what it says in words and in numbers."""

    name: str  # one word of letters and digits, each only once in a report; also the name of its file
    title: str  # what is drawn
    sentence: str  # what someone who cannot see the chart should learn from it
    table: Table  # the numbers that are drawn; of many the ones that matter
    draw: Callable[[], Any] = field(repr=False)  # draws it with altair. It is called only by forms that have pictures.


@dataclass(frozen=True)
class Item:
    """One document of a ranked list."""

    rank: str  # its place, as it is shown
    doc_id: str  # which document
    grade: str = ""  # its judgment as it is shown; empty where there is none
    relevant: bool | None = None  # whether it counts as relevant; None where it is not judged
    change: str = ""  # where it stands in the other list, in a word or two
    text: str = ""  # the beginning of its text, where that is known


@dataclass(frozen=True)
class Ranking:
    """One ranked list: the name of the run, what is said of it, and its first documents."""

    name: str
    sentence: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class SideBySide:
    """Ranked lists of one topic next to each other."""

    title: str  # which topic
    sentences: tuple[str, ...]  # what happened there
    rankings: tuple[Ranking, ...]  # the lists


@dataclass(frozen=True)
class Notes:
    """Short texts under a title."""

    title: str  # what they are
    texts: tuple[str, ...]  # sentences; or commands
    code: bool = False  # whether they are commands, to be copied as they stand
    folded: bool = False  # whether a page shows them only when it is asked for them


Part: TypeAlias = Numbers | Chart | SideBySide | Notes
"""What a section is made of, beside its sentences."""


@dataclass(frozen=True)
class Section:
    """One question of a report and its answer."""

    name: str  # one word, each only once in a report; a page uses it as an anchor
    title: str  # of the section
    sentences: tuple[str, ...]  # the answer in words: what may and may not be concluded
    parts: tuple[Part, ...] = ()  # the evidence


@dataclass(frozen=True, eq=False, repr=False)
class PageContent:
    """What a page is written from."""

    title: str
    facts: tuple[str, ...]  # how much was evaluated, and by which version
    sections: tuple[Section, ...]  # the first one is the summary

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
    """Sections, and the results that they are made of: what pages and documents are written from."""

    results: Mapping[str, Any]  # every result by name: `evaluation`, `comparison` and others; each has a `to_dict`
    scores: Scores  # every score of every topic
    comparison: Comparison | None  # the tests; None for one run
    warnings: tuple[str, ...] = ()  # what should be known before the numbers are used
    command: str = ""  # how to make the report again
    seed: int = 0  # of everything that drew at random

    def table(self) -> Table:
        """Give the leaderboard."""
        board = self.section("leaderboard")
        parts = board.parts if board else ()
        return next(part.table for part in parts if isinstance(part, Numbers))
