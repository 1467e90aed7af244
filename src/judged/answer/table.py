"""A typed table: the one declaration of what terminal, Markdown, LaTeX, CSV, JSON, data frames and pages show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from judged.answer.column import Column
from judged.answer.words import listed
from judged.errors import MissingExtraError
from judged.tables import Table as Grid
from judged.tables import csv_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Table as ArrowTable


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, with what a reader must know of them.

    Parameters
    ----------
    name
        Its key in JSON and its name in a file; one word.
    columns
        Each with its values and how they are written.
    title
        What stands above it.
    note
        What its marks mean and by which rules it was made, without a full stop.
    labels
        So many columns that people see name the row, and stand left.
    folded
        Whether it is shown only to those who ask for it.
    only
        ``data`` for what people see in another table, ``people`` for what data have in another one.
    one_piece
        Whether intervals are left out where they would break it into several pieces.

    Examples
    --------
    >>> from judged.answer.column import Column, number
    >>> table = Table("runs", (Column("run", ["a"]), Column("value", [0.51234], number(3), "AP", ci=[(0.4, 0.6)])))
    >>> print(table.text())
    run               AP
    a    0.512 [0.40, 0.60]
    >>> print(table.csv())
    run,value,ci_low,ci_high
    a,0.51234,0.4,0.6
    >>> table.records()
    [{'run': 'a', 'value': 0.51234, 'ci': [0.4, 0.6]}]
    """

    name: str
    columns: tuple[Column, ...]
    title: str = ""
    note: str = ""
    labels: int = 1
    folded: bool = False
    only: Literal["", "data", "people"] = ""
    one_piece: bool = False

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __bool__(self) -> bool:
        return True  # an empty table is a table

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that people see."""
        return tuple(column for column in self.columns if column.only != "data")

    @property
    def data(self) -> tuple[Column, ...]:
        """The columns of CSV, JSON and data frames."""
        return tuple(column for column in self.columns if column.only != "people")

    def column(self, name: str) -> Column:
        """Give a column by its name."""
        return next(column for column in self.columns if column.name == name)

    def take(self, rows: Sequence[int]) -> Table:
        """Give some rows, in this order."""
        return replace(self, columns=tuple(column.take(rows) for column in self.columns))

    def grid(self) -> Grid:
        """Write all values for people."""
        columns = [column.cells() for column in self.shown]
        return Grid(
            tuple(column.heading for column in self.shown), tuple(zip(*columns, strict=True)), labels=self.labels
        )

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """Draw for a terminal."""
        drawn, said = self.grid().text(width=width, colour=colour), ""
        wide = [column for column in self.shown if column.ci is not None] if self.one_piece else []
        for count in range(1, len(wide) + 1):
            if "\n\n" not in drawn:
                break
            bare = tuple(replace(column, ci=None) if column in wide[:count] else column for column in self.shown)
            drawn = replace(self, columns=bare).grid().text(width=width, colour=colour)
            of = "" if count == len(wide) else f" of {listed([column.heading for column in wide[:count]])}"
            said = f"\n\nThere is no room for the intervals{of}: the other forms have them."
        return drawn + said

    def markdown(self) -> str:
        """Write as a Markdown table."""
        return self.grid().markdown()

    def latex(self) -> str:
        """Write as a LaTeX tabular (package booktabs)."""
        return self.grid().latex()

    def html(self) -> str:
        """Write as an HTML table that needs no style sheet."""
        return self.grid().html()

    def csv(self) -> str:
        """Write all values in full precision; nothing where something is not known."""
        columns = self._flat()
        rows = zip(*([_csv_cell(value) for value in values] for _, values, _ in columns), strict=True)
        return csv_lines([[name for name, _, _ in columns], *rows])

    def records(self) -> list[dict[str, Any]]:
        """Give one dict a row, as JSON has it."""
        return [dict(item for column in self.data for item in column.items(row)) for row in range(len(self))]

    def to_arrow(self) -> ArrowTable:
        """Give an Arrow table of all values; an interval is two columns."""
        import pyarrow as pa

        arrays = {name: pa.array(values, type=kind or None) for name, values, kind in self._flat()}
        return pa.table(arrays)

    def to_pandas(self) -> Any:
        """Give a data frame of pandas.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Give a data frame of Polars.

        Raises
        ------
        MissingExtraError
            If Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        return pl.from_arrow(self.to_arrow())

    def _flat(self) -> list[tuple[str, Sequence[Any], Any]]:
        """Give names, values and types of the columns that fit into cells: what is nested stands in JSON alone."""
        return [part for column in self.data if not column.nested for part in column.data()]


def _csv_cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value if isinstance(value, str) else repr(value)
