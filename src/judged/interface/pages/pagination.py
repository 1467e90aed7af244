"""What fields of a form hold, in which order a table stands, and long tables a page at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, StringConstraints

from judged.interface.pages.problems import Parameters
from judged.scoring.evaluation.inputs import with_rel
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools
    from judged.scoring.measures.base import Measure

    Row = TypeVar("Row")

_DIGITS = re.compile(r"(\d+)")
SIZE = 50
"""Rows of a page."""


@dataclass(frozen=True)
class Paging:
    """Which part of a long table is shown.

    >>> paging = Paging.at(3, 120)
    >>> paging.last, paging.first_shown, paging.last_shown, len(paging.of(range(120)))
    (3, 101, 120, 20)
    """

    page: int  # from 1 to `last`; 0 where all rows are shown
    total: int  # how many rows there are on all pages
    size: int = SIZE  # how many rows a page has

    @classmethod
    def at(cls, page: int, total: int, size: int = SIZE) -> Paging:
        """Turn to a page; behind the last one is the last one, and page 0 is all of them."""
        if page == 0:
            return cls(0, total, max(total, 1))
        return cls(min(max(page, 1), max(1, -(-total // size))), total, size)

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def first_shown(self) -> int:
        """The first row that is shown, counted from 1; 0 where there is none."""
        return min(self.total, max(self.page - 1, 0) * self.size + 1)

    @property
    def last_shown(self) -> int:
        """The last row that is shown."""
        return min(self.total, max(self.page, 1) * self.size)

    def of(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Give the rows of this page."""
        return rows[max(self.page - 1, 0) * self.size : self.last_shown]


def order_by(values: Sequence[Any], *, falling: bool) -> list[int]:
    """Order rows by texts or numbers, equal ones as they come, those without one last.

    >>> order_by([0.5, None, 1.0], falling=True), order_by(["q10", "q9"], falling=False)
    ([2, 0, 1], [1, 0])
    """
    if any(isinstance(value, str) for value in values):
        place = {text: at for at, text in enumerate(sorted(set(values), key=natural))}
        values = [place[text] for text in values]
    keys = np.array(values, dtype=np.float64)
    return np.argsort(-keys if falling else keys, kind="stable").tolist()


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Give a key that sorts numbers within a text by their size.

    >>> sorted(["q10", "q9", "q", "9"], key=natural)
    ['9', 'q', 'q9', 'q10']
    """
    parts = _DIGITS.split(text)
    return tuple((len(part.lstrip("0")), part.lstrip("0")) if at % 2 else (0, part) for at, part in enumerate(parts))


def holding(words: str, *texts: Sequence[str]) -> Bools:
    """Mark the rows whose texts together hold every word, in upper case or lower: (N,).

    >>> holding("LAW zoo", ["q1", "q2"], ["the zoo", "a law of the zoo"]).tolist()
    [False, True]
    """
    wanted = words.casefold().split()
    rows = (" ".join(row).casefold() for row in zip(*texts, strict=True))
    return np.array([all(word in row for word in wanted) for row in rows], dtype=np.bool_)


def blank(value: Any) -> Any:
    """Take an empty field of a form for one that was left out."""
    return None if isinstance(value, str) and not value.strip() else value


LONGEST = 8192
"""Characters of the name of a run."""
Trimmed: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True)]
"""A text, without blanks around it."""


class Scored(Parameters):
    """Which documents are relevant to measures: a part of what every page is asked that scores."""

    rel: Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, BeforeValidator(blank)] = Field(
        None, description="The lowest relevant grade, wherever a measure has a level and its name says none."
    )

    def read(self, name: str) -> Measure:
        """Give the measure of a name, with this level."""
        return with_rel(parse(name), self.rel, written=name)
