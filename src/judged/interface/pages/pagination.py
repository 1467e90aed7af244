"""Types of form fields, sorting of tables, and pagination."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field, StringConstraints

from judged.errors import InputError
from judged.interface.pages.problems import Parameters
from judged.scoring.evaluation.inputs import measures_of, with_rel
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results import Table
    from judged.results.types import Bools
    from judged.scoring.measures.base import Measure

    Row = TypeVar("Row")

_DIGITS = re.compile(r"(\d+)")
SIZE = 50
"""Number of rows of a page."""


@dataclass(frozen=True)
class Paging:
    """The visible part of a long table.

    >>> paging = Paging.for_page(3, 120)
    >>> paging.last, paging.first_shown, paging.last_shown, len(paging.of(range(120)))
    (3, 101, 120, 20)
    """

    page: int  # from 1 to `last`; 0 if all rows are visible
    total: int  # number of rows on all pages
    size: int = SIZE  # number of rows of a page

    @classmethod
    def for_page(cls, page: int, total: int, size: int = SIZE) -> Paging:
        """Return the paging of a page: at most the last one; page 0 has all rows."""
        if page == 0:
            return cls(0, total, max(total, 1))
        return cls(min(max(page, 1), max(1, -(-total // size))), total, size)

    @property
    def last(self) -> int:
        """Number of the last page."""
        return max(1, -(-self.total // self.size))

    @property
    def first_shown(self) -> int:
        """First visible row, counted from 1; 0 if there are no rows."""
        return min(self.total, max(self.page - 1, 0) * self.size + 1)

    @property
    def last_shown(self) -> int:
        """Last visible row, counted from 1."""
        return min(self.total, max(self.page, 1) * self.size)

    def of(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows of this page."""
        return rows[max(self.page - 1, 0) * self.size : self.last_shown]


def shades_of(values: Sequence[float | None], *, lower_is_better: bool = False) -> list[str]:
    """Return the CSS class of the background of each number: ``shade0`` for the worst, ``shade8`` for the best.

    >>> shades_of([0.2, None, 0.4, 0.3]), shades_of([0.5, 0.5])
    (['shade0', '', 'shade8', 'shade4'], ['', ''])
    """
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    numbers = -numbers if lower_is_better else numbers
    spread = np.nanmax(numbers, initial=-np.inf) - np.nanmin(numbers, initial=np.inf)
    if not 0 < spread < np.inf:
        return [""] * len(numbers)
    shares = (numbers - np.nanmin(numbers)) / spread
    return ["" if np.isnan(share) else f"shade{round(8 * share)}" for share in shares.tolist()]


def shaded(table: Table, names: Sequence[str], *, lower_is_better: bool = False) -> Table:
    """Shade the numbers of columns, on one scale for all of them."""
    shades = shades_of(
        [value for name in names for value in table.column(name).values], lower_is_better=lower_is_better
    )
    for i, name in enumerate(names):
        table = table.changed(name, kinds=shades[i * len(table) :][: len(table)])
    return table


def order_by(values: Sequence[Any], *, descending: bool) -> list[int]:
    """Return the order of rows by texts or numbers; ties stay in input order, missing values are last.

    >>> order_by([0.5, None, 1.0], descending=True), order_by(["q10", "q9"], descending=False)
    ([2, 0, 1], [1, 0])
    """
    if any(isinstance(value, str) for value in values):
        ranks = {text: rank for rank, text in enumerate(sorted(set(values), key=natural_key))}
        values = [ranks[text] for text in values]
    # None becomes NaN, which `argsort` puts last, also after negation.
    keys = np.array(values, dtype=np.float64)
    return np.argsort(-keys if descending else keys, kind="stable").tolist()


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that compares numbers within a text by their value.

    >>> sorted(["q10", "q9", "q", "9"], key=natural_key)
    ['9', 'q', 'q9', 'q10']
    """
    parts = _DIGITS.split(text)
    return tuple((len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part) for i, part in enumerate(parts))


def contains_words(words: str, *texts: Sequence[str]) -> Bools:
    """Return which rows contain every word in any of their texts, ignoring case: (N,).

    >>> contains_words("LAW zoo", ["q1", "q2"], ["the zoo", "a law of the zoo"]).tolist()
    [False, True]
    """
    folded_words = words.casefold().split()
    rows = (" ".join(row).casefold() for row in zip(*texts, strict=True))
    return np.array([all(word in row for word in folded_words) for row in rows], dtype=np.bool_)


def blank_to_none(value: Any) -> Any:
    """Convert an empty form field to None."""
    return None if isinstance(value, str) and not value.strip() else value


PageNumber: TypeAlias = Annotated[
    int,
    Field(ge=0, le=1_000_000, description="Page number of the list, or 0 for all rows."),
    BeforeValidator(lambda page: 1 if page == "" else page),
]
Trimmed: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True)]
"""Text without surrounding whitespace."""


Number: TypeAlias = Annotated[Annotated[float, Field(allow_inf_nan=False)] | None, BeforeValidator(blank_to_none)]
"""Optional number; an empty field is None."""


class ScoredQuery(Parameters):
    """The parameter of every page that scores: the lowest relevant grade."""

    rel: Number = Field(
        None, description="Lowest grade that counts as relevant, for measures whose name does not set this grade."
    )

    def read(self, name: str) -> Measure:
        """Parse a measure, with this lowest relevant grade."""
        return with_rel(parse(name), self.rel, written=name)

    def read_all(self, names: Sequence[str | Measure], limit: int) -> tuple[Measure, ...]:
        """Parse measures, with this lowest relevant grade. Raise an error for more than `limit`."""
        measures = measures_of(names, rel=self.rel)
        if len(measures) > limit:
            problem = f"at most {limit} measures can be tested together, got {len(measures)}"
            raise InputError(problem, fix="remove some measures")
        return measures
