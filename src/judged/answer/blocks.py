"""What an answer is made of, beside typed tables: sentences, charts, ranked lists, commands, and sections of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from judged.answer.table import Table


@dataclass(frozen=True)
class Sentences:
    """Texts under a title; what stands in backticks is code."""

    texts: tuple[str, ...]
    name: str = "sentences"
    title: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Code:
    """Commands or files, to be copied as they stand."""

    texts: tuple[str, ...]
    name: str = "commands"
    title: str = ""
    folded: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """A picture of a table, with what it says in words.

    Parameters
    ----------
    name
        One word of letters and digits; also the name of its file.
    title
        What is drawn.
    table
        The numbers that are drawn; of many the ones that matter.
    sentence
        What someone who cannot see the chart should learn from it.
    draw
        Draws it with altair. It is called only by forms that have pictures.
    folded
        Whether it is drawn only for those who ask for it.
    """

    name: str
    title: str
    table: Table
    sentence: str
    draw: Callable[[], Any] = field(repr=False)
    folded: bool = False


@dataclass(frozen=True)
class Item:
    """One document of a ranked list."""

    rank: str
    doc_id: str
    grade: str = ""  # empty where there is no judgment
    relevant: bool | None = None  # None where it is not judged
    change: str = ""  # where it stands in the other list, in a word or two
    text: str = ""  # the beginning of its text, where that is known


@dataclass(frozen=True)
class Ranking:
    """One ranked list: the name of the run, what is said of it, and its first documents."""

    name: str
    sentence: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Lists:
    """Ranked lists of one topic next to each other."""

    name: str
    title: str
    sentences: tuple[str, ...]
    rankings: tuple[Ranking, ...]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """One question and its answer, of several that stand together."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


Block: TypeAlias = Table | Chart | Lists | Sentences | Code | Section


def flat(blocks: Iterable[Block]) -> Iterator[Block]:
    """Give all blocks, those of sections in their place."""
    for block in blocks:
        if isinstance(block, Section):
            yield from flat(block.blocks)
        else:
            yield block


def asked(blocks: Iterable[Block], unfold: Iterable[str]) -> list[Block]:
    """Leave out what is folded and not asked for, and the tables that only data have."""
    names = set(unfold)
    return [
        block
        for block in blocks
        if (not block.folded or block.name in names) and not (isinstance(block, Table) and block.only == "data")
    ]
