"""A typed table: the one declaration of what terminal, Markdown, LaTeX, CSV, JSON, data frames and pages show.

Its columns hold values in full precision, and know how each is written for people.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from judged.errors import JudgedError
from judged.results.decimals import decimal, listed, p_text, percent
from judged.results.escaping import Cell, TextTable, csv_lines, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.results.blocks import Block
    from judged.results.types import Table as ArrowTable

_WIDTH, _LEAST = 100, 40  # of texts below rows, where no width is given, and at least
_BAR, _EIGHTHS = 24, " ▏▎▍▌▋▊▉"  # characters of the longest bar, and the parts of one
Type: TypeAlias = Literal["", "float64", "int64", "string", "bool"]
"""Of a column in a data frame; empty: as its values are."""
Limits: TypeAlias = tuple[float, float] | None
"""Low and high end of an interval; None where there is none."""


class Show(NamedTuple):
    """How the values of a column are written for people."""

    write: Callable[[Any], str]
    type: Type = ""
    limit: Callable[[float], str] | None = None  # writes the ends of an interval; None: as the values
    digits: Callable[[int], Show] | None = None  # the same with so many decimals; None: it has its own rule


def number(digits: int = 4, sign: str = "") -> Show:
    """Write so many decimals, and the ends of intervals with one less; with the sign ``+``, changes."""
    return Show(
        lambda value: decimal(value, digits, sign),
        "float64",
        lambda end: decimal(end, max(digits - 1, 1), sign),
        lambda asked: number(asked, sign),
    )


def significant(digits: int = 6, sign: str = "") -> Show:
    """Write so many significant digits, for amounts of any size."""
    return Show(lambda value: f"{value:{sign}.{digits}g}", "float64")


def p_value(alpha: float) -> Show:
    """Write p-values, with as many digits as tell them from alpha."""
    return Show(lambda p: p_text(p, alpha).removeprefix("= "), "float64")


def beginning(most: int) -> Show:
    """Write texts up to so many characters."""
    return Show(lambda text: text if len(text) <= most else f"{text[: most - 1]}…", "string")


def _anything(value: Any) -> str:
    """Write a value by its type."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_anything, value))
    return str(value)


AS_IT_IS = Show(lambda text: text, "string")
ANY = Show(_anything)
TEXT = Show(str, "string")
COUNT = Show(lambda value: f"{value:.0f}", "int64")
SHARE = Show(percent, "float64")
CHANGE = number(sign="+")
NUMBER = number()
P_VALUE = Show(decimal, "float64")
YES_NO = Show(lambda value: "yes" if value else "no", "bool")


def _kept(show: Show, values: Sequence[Any], limits: Sequence[Limits]) -> Show:
    """Keep what some values and intervals were written as, without the function that wrote them."""
    texts = {repr(value): show.write(value) for value in values if not missing(value)}
    ends = [end for two in limits if two is not None for end in two if not math.isnan(end)]
    written = {repr(end): (show.limit or show.write)(end) for end in ends}
    return Show(partial(_look_up, texts), show.type, partial(_look_up, written))


def _look_up(texts: Mapping[str, str], value: Any) -> str:
    """Give a value as it was written, by how Python writes it."""
    return texts[repr(value)]


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One column: what it holds, and how people see it.

    Parameters
    ----------
    name
        The key in JSON, CSV and data frames.
    values
        One a row, in full precision; None or NaN where something is not known.
    show
        How values are written for people.
    title
        The heading for people; None for the name.
    ci
        The interval of each value. In JSON it is ``<name>_ci``, elsewhere ``<name>_low`` and ``<name>_high``; that of a
        column named ``value`` is ``ci``, ``ci_low``, ``ci_high``.
    beside
        What is said behind each value, such as how much it changed.
    mark
        Raised signs, such as stars.
    best
        Which values are set off.
    links
        Where a page leads from each value; empty for nowhere.
    kinds
        What kind of value each is, as a page sets off its mark: ``good``, ``bad``; empty for a usual one.
    only
        ``data`` for what people do not see, ``json`` for what no cell has room for, ``people`` for what data have in
        other columns, ``terminal`` for what other forms draw.
    below
        Whether it is a text that a terminal has room for only below its row.
    each
        How each value is written, where rows are of different units; in place of `show`, which says the type.
    """

    name: str
    values: Sequence[Any]
    show: Show = ANY
    title: str | None = None
    ci: Sequence[Limits] | None = None
    beside: Sequence[str] = ()
    mark: Sequence[str] = ()
    best: Sequence[bool] = ()
    links: Sequence[str] = ()
    kinds: Sequence[str] = ()
    only: Literal["", "data", "json", "people", "terminal"] = ""
    below: bool = False
    each: Sequence[Show] = ()

    def __post_init__(self) -> None:
        parts = (self.ci or (), self.beside, self.mark, self.best, self.links, self.kinds, self.each)
        if any(len(part) not in {0, len(self.values)} for part in parts):
            raise JudgedError(f"column {self.name!r}: its parts are of different length")

    def __getstate__(self) -> dict[str, Any]:
        """Give what goes to another process: functions stay behind, and what they wrote goes."""
        limits = self.ci or [None] * len(self.values)
        each = [_kept(show, [value], [ends]) for show, value, ends in zip(self.each, self.values, limits, strict=False)]
        show = Show(str, self.show.type) if each else _kept(self.show, self.values, limits)
        return {**vars(self), "show": show, "each": each}

    @property
    def heading(self) -> str:
        """What stands above it for people."""
        return self.name if self.title is None else self.title

    @property
    def nested(self) -> bool:
        """Whether its values are of several numbers each, which JSON alone has room for."""
        return self.only == "json" or any(isinstance(value, Mapping) for value in self.values)

    def cells(self) -> list[str]:
        """Write every value for people; where units differ, all intervals as wide as one another: numbers align."""
        shows = self.each or [self.show] * len(self.values)
        rests = [self._rest(row, show) for row, show in enumerate(shows)]
        width = max(map(len, rests), default=0) if self.each else 0
        return [
            self._cell(row, show, rest.rjust(width)) for row, (show, rest) in enumerate(zip(shows, rests, strict=True))
        ]

    def _rest(self, row: int, show: Show) -> str:
        parts = [_interval(self.ci[row], show)] if self.ci else []
        parts += [self.beside[row]] if self.beside else []
        return " ".join(part for part in parts if part)

    def _cell(self, row: int, show: Show, rest: str) -> str:
        number = "-" if missing(self.values[row]) else show.write(self.values[row])
        mark, best = self.mark[row] if self.mark else "", bool(self.best and self.best[row])
        return Cell(number, rest=rest, mark=mark, best=best) if rest or mark or best else number

    def take(self, rows: Sequence[int]) -> Column:
        """Give some rows, in this order."""
        chosen = {
            name: [part[row] for row in rows]
            for name in ("values", "ci", "beside", "mark", "best", "links", "kinds", "each")
            if (part := getattr(self, name)) is not None and len(part)
        }
        return replace(self, **chosen)

    def rounded(self, digits: int) -> Column:
        """Write values with so many decimals, where they have no rule of their own."""
        show, *each = (shown.digits(digits) if shown.digits else shown for shown in (self.show, *self.each))
        return replace(self, show=show, each=each)

    def data(self) -> Iterator[tuple[str, Sequence[Any], Type]]:
        """Give names, values and types of what it is in CSV and data frames: an interval is two columns."""
        yield self.name, [_flat(value) for value in self.values], self.show.type
        if self.ci is not None:
            stem = "ci" if self.name == "value" else self.name
            for end, name in enumerate(("low", "high")):
                yield f"{stem}_{name}", [_flat(limits and limits[end]) for limits in self.ci], "float64"

    def items(self, row: int) -> Iterator[tuple[str, Any]]:
        """Give keys and values of one row as JSON has them."""
        yield self.name, plain(self.values[row])
        if self.ci is not None:
            yield "ci" if self.name == "value" else f"{self.name}_ci", plain(self.ci[row])


def bars(values: Sequence[float]) -> Column:
    """Draw a bar of characters for each number, the longest for the largest: a column that terminals alone show.

    >>> [bar.rstrip() for bar in bars([1.0, 0.4, 0.0, math.nan]).cells()]
    ['████████████████████████', '█████████▋', '', '']
    """
    top = max((value for value in values if not math.isnan(value)), default=0.0)
    eighths = [round(8 * _BAR * value / top) if top > 0 and not math.isnan(value) else 0 for value in values]
    drawn = [("█" * (count // 8) + _EIGHTHS[count % 8]).rstrip().ljust(_BAR) for count in eighths]
    return Column("bars", drawn, AS_IT_IS, "", only="terminal")


def columns_of(rows: Sequence[Any], *named: str | tuple[str, Show] | tuple[str, Show, str]) -> tuple[Column, ...]:
    """Make columns of attributes, or keys, of rows: of a name, how it is shown, and a title; of a name for data alone.

    A ``value`` has the interval that stands beside it as ``ci``.

    >>> [(column.name, column.values, column.heading, column.only) for column in columns_of([1j], ("imag", ANY, "i"))]
    [('imag', [1.0], 'i', '')]
    """
    made: list[Column] = []
    for given in named:
        name, show = (given, ANY) if isinstance(given, str) else given[:2]
        title = given[2] if not isinstance(given, str) and len(given) == 3 else None
        values = [row[name] if isinstance(row, Mapping) else getattr(row, name) for row in rows]
        ci = [row.ci for row in rows] if name == "value" and all(hasattr(row, "ci") for row in rows) else None
        made.append(Column(name, values, show, title, ci, only="data" if isinstance(given, str) else ""))
    return tuple(made)


@dataclass(frozen=True, eq=False, repr=False)
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
    kinds
        What kind of row each is, as a page sets it off: ``chosen``, ``small``; empty for a usual one.
    groups
        The heading that each row stands under, empty for none; rows of one heading follow one another.

    Examples
    --------
    >>> from judged.results import number
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
    kinds: Sequence[str] = ()
    groups: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __bool__(self) -> bool:
        return True  # an empty table is a table

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that people see."""
        return tuple(column for column in self.columns if column.only in {"", "people"})

    @property
    def data(self) -> tuple[Column, ...]:
        """The columns of CSV, JSON and data frames."""
        return tuple(column for column in self.columns if column.only not in {"people", "terminal"})

    def column(self, name: str) -> Column:
        """Give a column by its name."""
        return next(column for column in self.columns if column.name == name)

    def take(self, rows: Sequence[int]) -> Table:
        """Give some rows, in this order."""
        kinds, groups = ([part[row] for row in rows] if part else () for part in (self.kinds, self.groups))
        columns = tuple(column.take(rows) for column in self.columns)
        return replace(self, columns=columns, kinds=kinds, groups=groups)

    def changed(self, name: str, **changes: Any) -> Table:
        """Give the table with one column written in another way: with ``links`` for a page, another ``show``."""
        columns = (replace(column, **changes) if column.name == name else column for column in self.columns)
        return replace(self, columns=tuple(columns))

    def showing(self, *names: str) -> Table:
        """Give the table with these columns, in this order, as all that people see of it."""
        rest = (replace(column, only="data") for column in self.columns if column.name not in names)
        return replace(self, columns=(*(replace(self.column(name), only="") for name in names), *rest))

    def rounded(self, digits: int | None) -> Table:
        """Give the table with so many decimals for people, where a column has no rule of its own; None: as it is."""
        if digits is None:
            return self
        return replace(self, columns=tuple(column.rounded(digits) for column in self.columns))

    def grid(self) -> TextTable:
        """Write all values for people."""
        columns = [column.cells() for column in self.shown]
        header = tuple(column.heading for column in self.shown)
        rows = tuple(zip(*columns, strict=True))
        if self.groups:
            headed = zip(self.groups, ("", *self.groups), rows, strict=False)
            parts = [
                ([_heading(group, len(header))] if group not in {"", last} else []) + [_indented(row) if group else row]
                for group, last, row in headed
            ]
            rows = tuple(row for part in parts for row in part)
        return TextTable(header, rows, labels=min(self.labels, len(header)))

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """Draw for a terminal."""
        if any(column.only == "terminal" for column in self.columns):
            columns = (
                replace(column, only="people" if column.only == "terminal" else column.only) for column in self.columns
            )
            return replace(self, columns=tuple(columns)).text(width, colour=colour)
        if any(column.below for column in self.shown):
            return self._with_texts_below(width, colour=colour)
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

    def _with_texts_below(self, width: int | None, *, colour: bool) -> str:
        """Draw for a terminal, with texts in lines of their own below each row."""
        under = [(column, column.cells()) for column in self.shown if column.below]
        rest = tuple(column for column in self.shown if not column.below)
        labels = self.labels - sum(column.below for column in self.shown[: self.labels])
        head, *lines = replace(self, columns=rest, labels=labels).text(width, colour=colour).split("\n")
        how: Any = {"subsequent_indent": "  ", "max_lines": 2, "placeholder": " ..."}
        for row in range(len(self)):
            texts = [f"{column.heading}: {cells[row]}" for column, cells in under if column.values[row]]
            parts = [textwrap.wrap(visible(text), max((width or _WIDTH) - 4, _LEAST), **how) for text in texts]
            lines[row] = "\n    ".join([lines[row], *(line for part in parts for line in part)])
        return "\n".join([head, *lines])

    def markdown(self) -> str:
        """Write as a Markdown table."""
        return self.grid().markdown()

    def latex(self) -> str:
        """Write as a LaTeX tabular (package booktabs)."""
        return self.grid().latex()

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

    def _flat(self) -> list[tuple[str, Sequence[Any], Any]]:
        """Give names, values and types of the columns that fit into cells: what is nested stands in JSON alone."""
        return [part for column in self.data if not column.nested for part in column.data()]


def _heading(group: str, width: int) -> tuple[str, ...]:
    return (Cell(group, best=True), *[""] * (width - 1))


def _indented(row: Sequence[str]) -> tuple[str, ...]:
    """Set the first cell of a row in, which other forms than a terminal's do not show."""
    first = row[0] if isinstance(row[0], Cell) else Cell(row[0])
    return (Cell(f"  {first.number}", rest=first.rest, mark=first.mark, best=first.best), *row[1:])


def _csv_cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _interval(limits: Limits, show: Show) -> str:
    if limits is None or any(map(math.isnan, limits)):
        return ""
    low, high = map(show.limit or show.write, limits)
    return f"[{low}, {high}]"


def missing(value: Any) -> bool:
    """Whether a value is not known."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> Any:
    """Give a value of plain Python for JSON: a number that is not finite becomes None, anything else a text.

    >>> import numpy as np
    >>> plain((1.5, math.nan, "t", np.arange(2), {"a": np.float64(2)}))
    [1.5, None, 't', [0, 1], {'a': 2.0}]
    """
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())  # an array or a scalar of NumPy
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(part) for part in value]
    return str(value)


def _flat(value: Any) -> Any:
    """Give what can stand in one cell: a list becomes one text; infinity stays."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    flat = plain(value)
    return "; ".join(map(str, flat)) if isinstance(flat, list) else flat


def asked(blocks: Iterable[Block], unfold: Iterable[str]) -> list[Block]:
    """Leave out what is folded and not asked for, and the tables that only data have."""
    names = set(unfold)
    return [
        block
        for block in blocks
        if (not block.folded or block.name in names) and not (isinstance(block, Table) and block.only == "data")
    ]


def order_of(values: Sequence[float], *, lower_is_better: bool) -> list[int]:
    """Give places from the best number to the worst, those without one last, equal ones as they are given."""
    side = 1 if lower_is_better else -1
    return sorted(range(len(values)), key=lambda at: (math.isnan(values[at]), side * values[at]))
