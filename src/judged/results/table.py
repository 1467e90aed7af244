"""Typed tables, from which all forms are written: terminal, Markdown, LaTeX, CSV, JSON, data frames, and pages.

Columns hold values in full precision, and a rule to format each value for people.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from judged.errors import JudgedError
from judged.results.decimals import decimal, listed, p_text, percent
from judged.results.escaping import Cell, TextTable, csv_lines, escape_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.results.blocks import Block
    from judged.results.types import Table as ArrowTable

_DEFAULT_WIDTH, _MIN_WIDTH = 100, 40  # widths of texts below rows
_BAR, _EIGHTHS = 24, " ▏▎▍▌▋▊▉"  # characters of the longest bar, and eighths of a character
Status: TypeAlias = Literal["better", "worse", "same", "unknown", "info"]
"""``better`` and ``worse``: shown by the data; ``same``: no significant difference; ``unknown``: not enough data, or
not tested; ``info``: an estimate that is neither good nor bad."""
Type: TypeAlias = Literal["", "float64", "int64", "string", "bool"]
"""Type of a column in a data frame; empty: inferred from the values."""
IntervalLimits: TypeAlias = tuple[float, float] | None
"""Lower and upper limit of an interval; None without one."""


class Show(NamedTuple):
    """Format of the values of a column for people."""

    write: Callable[[Any], str]
    type: Type = ""
    limit: Callable[[float], str] | None = None  # formats interval limits; None: like the values
    digits: Callable[[int], Show] | None = None  # returns this format with other decimals; None: fixed


def number(digits: int = 4, sign: str = "") -> Show:
    """Return a format with `digits` decimals, and one less for interval limits; with the `sign` ``+`` for changes.

    Examples
    --------
    >>> number(2, "+").write(0.5)
    '+0.50'
    """
    return Show(
        lambda value: decimal(value, digits, sign),
        "float64",
        lambda limit: decimal(limit, max(digits - 1, 1), sign),
        lambda new_digits: number(new_digits, sign),
    )


def significant(digits: int = 6, sign: str = "") -> Show:
    """Return a format with `digits` significant digits, for amounts of any size; with the `sign` ``+`` for changes.

    Examples
    --------
    >>> significant(3).write(1234.5)
    '1.23e+03'
    """
    return Show(lambda value: f"{value:{sign}.{digits}g}", "float64")


def p_value(alpha: float) -> Show:
    """Return a format of p-values with as many digits as are needed to compare them with alpha.

    Parameters
    ----------
    alpha
        Significance level.

    Examples
    --------
    >>> p_value(0.05).write(0.0123)
    '0.012'
    """
    return Show(lambda p: p_text(p, alpha).removeprefix("= "), "float64")


def truncated(limit: int) -> Show:
    """Return a format of texts that truncates them to `limit` characters.

    Examples
    --------
    >>> truncated(5).write("long text")
    'long…'
    """
    return Show(lambda text: text if len(text) <= limit else f"{text[: limit - 1]}…", "string")


def _format_any(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_format_any, value))
    return str(value)


UNCHANGED = Show(lambda text: text, "string")
ANY = Show(_format_any)
TEXT = Show(str, "string")
COUNT = Show(lambda value: f"{value:.0f}", "int64")
SHARE = Show(percent, "float64")
CHANGE = number(sign="+")
NUMBER = number()
P_VALUE = Show(decimal, "float64")
YES_NO = Show(lambda value: "yes" if value else "no", "bool")


def recorded_format(show: Show, values: Sequence[Any], limits: Sequence[IntervalLimits]) -> Show:
    """Return a format with the recorded texts of some values and intervals, which can be pickled."""
    texts = {repr(value): show.write(value) for value in values if not missing(value)}
    bounds = [bound for pair in limits if pair is not None for bound in pair if not math.isnan(bound)]
    bound_texts = {repr(bound): (show.limit or show.write)(bound) for bound in bounds}
    return Show(partial(_look_up, texts), show.type, partial(_look_up, bound_texts))


def _look_up(texts: Mapping[str, str], value: Any) -> str:
    return texts[repr(value)]


_ROW_LISTS = ("ci", "details", "mark", "best", "links", "kinds", "each", "statuses")


class Axis(NamedTuple):
    """Axis on which a page draws the numbers of a column and their intervals, in a cell beside each number."""

    low: float
    high: float
    title: str = "95% CI"  # heading of the drawings
    reference: float | None = None  # number that means "no difference", drawn as a line

    @classmethod
    def over(
        cls,
        values: Sequence[float | None],
        intervals: Sequence[IntervalLimits] = (),
        title: str = "95% CI",
        reference: float | None = None,
    ) -> Self:
        """Return an axis that contains all numbers, intervals, and the reference, with margins of 5%.

        >>> Axis.over([0.2, None], [(0.1, 0.3), None], reference=0)
        Axis(low=-0.015, high=0.315, title='95% CI', reference=0)
        """
        limits = [limit for interval in intervals if interval is not None for limit in interval]
        points = [x for x in (*values, *limits, reference) if x is not None and math.isfinite(x)] or [0.0, 1.0]
        margin = 0.05 * (max(points) - min(points)) or 1.0
        return cls(round(min(points) - margin, 12), round(max(points) + margin, 12), title, reference)


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """Column of a table: values and their format.

    Parameters
    ----------
    name
        Key in JSON, CSV, and data frames.
    values
        One per row, in full precision; None or NaN for missing values.
    show
        Format for people.
    title
        Heading for people. Default: `name`.
    ci
        Interval of each value. In JSON ``<name>_ci``, elsewhere ``<name>_low`` and ``<name>_high``; without ``<name>_``
        for a column named ``value``.
    details
        Text after each value, such as its change.
    mark
        Superscripts, such as stars.
    best
        Which values are highlighted.
    links
        Address that each value links to on a page; empty for none.
    kinds
        CSS class of each value on a page: ``good``, ``bad``, or empty.
    only
        Where the column appears: ``data`` (not for people), ``json`` (values that do not fit a cell), ``people`` (not
        in data), ``terminal`` (drawn in other forms); empty for everywhere.
    below
        Whether a terminal shows the texts below the rows.
    each
        Format of each value, if rows have different units; `show` is then only used for the type.
    axis
        Axis on which a page draws the numbers and intervals, instead of writing the intervals; None: no drawing.
    statuses
        Status of each value (`Status`): the color of its drawing, or of its text as a label. Only for pages.
    """

    name: str
    values: Sequence[Any]
    show: Show = ANY
    title: str | None = None
    ci: Sequence[IntervalLimits] | None = None
    details: Sequence[str] = ()
    mark: Sequence[str] = ()
    best: Sequence[bool] = ()
    links: Sequence[str] = ()
    kinds: Sequence[str] = ()
    only: Literal["", "data", "json", "people", "terminal"] = ""
    below: bool = False
    each: Sequence[Show] = ()
    axis: Axis | None = None
    statuses: Sequence[Status] = ()

    def __post_init__(self) -> None:
        parts = (self.ci or (), *(getattr(self, name) for name in _ROW_LISTS[1:]))
        if any(len(part) not in {0, len(self.values)} for part in parts):
            raise JudgedError(f"column {self.name!r}: all its lists must have one entry per row")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, in which formats are replaced by the texts that they produced."""
        limits = self.ci or [None] * len(self.values)
        each = [
            recorded_format(show, [value], [interval])
            for show, value, interval in zip(self.each, self.values, limits, strict=False)
        ]
        show = Show(str, self.show.type) if each else recorded_format(self.show, self.values, limits)
        return {**vars(self), "show": show, "each": each}

    @property
    def heading(self) -> str:
        """Heading for people."""
        return self.name if self.title is None else self.title

    @property
    def nested(self) -> bool:
        """Whether values consist of several numbers, which only JSON can hold."""
        return self.only == "json" or any(isinstance(value, Mapping) for value in self.values)

    def cells(self) -> list[str]:
        """Format all values for people. If units differ, intervals are padded to the same width to align numbers."""
        shows = self.each or [self.show] * len(self.values)
        details = [self._detail(row, show) for row, show in enumerate(shows)]
        width = max(map(len, details), default=0) if self.each else 0
        padded = [detail.rjust(width) for detail in details]
        return [self._cell(row, show, detail) for row, (show, detail) in enumerate(zip(shows, padded, strict=True))]

    def _detail(self, row: int, show: Show) -> str:
        parts = [_format_interval(self.ci[row], show)] if self.ci else []
        parts += [self.details[row]] if self.details else []
        return " ".join(part for part in parts if part)

    def _cell(self, row: int, show: Show, detail: str) -> str:
        number = "-" if missing(self.values[row]) else show.write(self.values[row])
        mark, best = self.mark[row] if self.mark else "", bool(self.best and self.best[row])
        return Cell(number, detail=detail, mark=mark, best=best) if detail or mark or best else number

    def take(self, rows: Sequence[int]) -> Column:
        """Return the column with these rows, in this order."""
        parts = {
            name: [part[row] for row in rows]
            for name in ("values", *_ROW_LISTS)
            if (part := getattr(self, name)) is not None and len(part)
        }
        return replace(self, **parts)

    def rounded(self, digits: int) -> Column:
        """Return the column with `digits` decimals, unless its format is fixed."""
        show, *each = (format_.digits(digits) if format_.digits else format_ for format_ in (self.show, *self.each))
        return replace(self, show=show, each=each)

    def drawn(self) -> Column:
        """Return the column with an axis for its intervals; it contains 0 if some limits are negative.

        >>> Column("difference", [0.1, None], ci=[(-0.1, 0.3), None]).drawn().axis
        Axis(low=-0.12, high=0.32, title='CI', reference=0.0)
        """
        limits = [limit for interval in self.ci or () if interval is not None for limit in interval]
        if self.axis or not limits or self.only in {"data", "json"}:
            return self
        reference = 0.0 if self.name == "difference" or min(limits) < 0 else None
        return replace(self, axis=Axis.over(self.values, self.ci or (), "CI", reference))

    def data(self) -> Iterator[tuple[str, Sequence[Any], Type]]:
        """Yield names, values, and types of its columns in CSV and data frames; an interval is two columns."""
        yield self.name, [_cell_value(value) for value in self.values], self.show.type
        if self.ci is not None:
            stem = "ci" if self.name == "value" else self.name
            for side, name in enumerate(("low", "high")):
                yield f"{stem}_{name}", [_cell_value(limits and limits[side]) for limits in self.ci], "float64"

    def items(self, row: int) -> Iterator[tuple[str, Any]]:
        """Yield keys and values of one row in JSON."""
        yield self.name, plain(self.values[row])
        if self.ci is not None:
            yield "ci" if self.name == "value" else f"{self.name}_ci", plain(self.ci[row])


def bars(values: Sequence[float]) -> Column:
    """Return a column for terminals with a bar of characters for each number; the longest is that of the maximum.

    Parameters
    ----------
    values
        Numbers; NaN has no bar.

    Examples
    --------
    >>> [bar.rstrip() for bar in bars([1.0, 0.4, 0.0, math.nan]).cells()]
    ['████████████████████████', '█████████▋', '', '']
    """
    maximum = max((value for value in values if not math.isnan(value)), default=0.0)
    eighths = [round(8 * _BAR * value / maximum) if maximum > 0 and not math.isnan(value) else 0 for value in values]
    texts = [("█" * (count // 8) + _EIGHTHS[count % 8]).rstrip().ljust(_BAR) for count in eighths]
    return Column("bars", texts, UNCHANGED, "", only="terminal")


def columns_of(
    rows: Sequence[Any], *fields: str | tuple[str, Show] | tuple[str, Show, str], intervals: bool = False
) -> tuple[Column, ...]:
    """Build columns from attributes, or keys, of rows: name, format, and title; a name only for a data column.

    The column ``value`` has the attribute ``ci`` of the rows as its interval.

    Parameters
    ----------
    rows
        Objects or mappings with the same attributes.
    fields
        Attribute name; or name and format; or name, format, and title. With a name only, the column is for data.
    intervals
        Whether a column ``NAME`` has the attribute ``NAME_ci`` of the rows, if there is one, as its interval.

    Returns
    -------
    tuple of Column

    Examples
    --------
    >>> [(column.name, column.values, column.heading, column.only) for column in columns_of([1j], ("imag", ANY, "i"))]
    [('imag', [1.0], 'i', '')]
    """
    columns: list[Column] = []
    for field in fields:
        name, show = (field, ANY) if isinstance(field, str) else field[:2]
        title = field[2] if not isinstance(field, str) and len(field) == 3 else None
        values = [row[name] if isinstance(row, Mapping) else getattr(row, name) for row in rows]
        limits = "ci" if name == "value" else f"{name}_ci" if intervals else ""
        ci = [getattr(row, limits) for row in rows] if limits and all(hasattr(row, limits) for row in rows) else None
        columns.append(Column(name, values, show, title, ci, only="data" if isinstance(field, str) else ""))
    return tuple(columns)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Table: columns of equal length with a title and a note.

    Parameters
    ----------
    name
        Key in JSON and name in a file; one word.
    columns
        Values and their formats.
    title
        Title for people.
    note
        Meaning of marks and rules of the computation, without a full stop.
    labels
        Number of visible columns that name the row; they are left-aligned.
    folded
        Whether it is hidden unless requested by name.
    only
        ``data`` or ``people`` if it is omitted for the other; empty for both.
    one_piece
        Whether a terminal omits intervals that would split the table into several blocks.
    kinds
        CSS class of each row on a page: ``chosen``, ``small``, or empty.
    groups
        Heading of each row, or empty; rows with the same heading must be adjacent.
    terminal_rows
        Number of rows that a terminal shows; 0 for all.

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
    terminal_rows: int = 0

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __bool__(self) -> bool:
        return True  # so that an empty table is not omitted

    @property
    def shown(self) -> tuple[Column, ...]:
        """Columns for people."""
        return tuple(column for column in self.columns if column.only in {"", "people"})

    @property
    def data(self) -> tuple[Column, ...]:
        """Columns of CSV, JSON, and data frames."""
        return tuple(column for column in self.columns if column.only not in {"people", "terminal"})

    def column(self, name: str) -> Column:
        """Return the column with this name."""
        return next(column for column in self.columns if column.name == name)

    def take(self, rows: Sequence[int]) -> Table:
        """Return the table with these rows, in this order."""
        kinds, groups = ([part[row] for row in rows] if part else () for part in (self.kinds, self.groups))
        columns = tuple(column.take(rows) for column in self.columns)
        return replace(self, columns=columns, kinds=kinds, groups=groups)

    def changed(self, name: str, **changes: Any) -> Table:
        """Return the table with changes to one column, such as ``links`` for a page or another ``show``."""
        columns = (replace(column, **changes) if column.name == name else column for column in self.columns)
        return replace(self, columns=tuple(columns))

    def showing(self, *names: str) -> Table:
        """Return the table with these columns, in this order, as its only columns for people."""
        hidden = (replace(column, only="data") for column in self.columns if column.name not in names)
        return replace(self, columns=(*(replace(self.column(name), only="") for name in names), *hidden))

    def rounded(self, digits: int | None) -> Table:
        """Return the table with `digits` decimals for people, unless a column's format is fixed; None: unchanged."""
        if digits is None:
            return self
        return replace(self, columns=tuple(column.rounded(digits) for column in self.columns))

    def grid(self) -> TextTable:
        """Format all values for people."""
        columns = [column.cells() for column in self.shown]
        header = tuple(column.heading for column in self.shown)
        rows = tuple(zip(*columns, strict=True))
        if self.groups:
            grouped = zip(self.groups, ("", *self.groups), rows, strict=False)
            parts = [
                ([_heading(group, len(header))] if group not in {"", previous} else [])
                + [_indent_row(row) if group else row]
                for group, previous, row in grouped
            ]
            rows = tuple(row for part in parts for row in part)
        return TextTable(header, rows, labels=min(self.labels, len(header)))

    def text(self, width: int | None = None, *, color: bool = False) -> str:
        """Render for a terminal."""
        if 0 < self.terminal_rows < len(self):
            text = replace(self.take(range(self.terminal_rows)), terminal_rows=0).text(width, color=color)
            rest, all_rows = len(self) - self.terminal_rows, f"all {len(self):,} rows: --format csv, or -o FILE.csv"
            return f"{text}\n\n{rest:,} more rows; {all_rows}"
        if any(column.only == "terminal" for column in self.columns):
            columns = (
                replace(column, only="people" if column.only == "terminal" else column.only) for column in self.columns
            )
            return replace(self, columns=tuple(columns)).text(width, color=color)
        if any(column.below for column in self.shown):
            return self._with_texts_below(width, color=color)
        text, omission = self.grid().text(width=width, color=color), ""
        with_intervals = [column for column in self.shown if column.ci is not None] if self.one_piece else []
        for count in range(1, len(with_intervals) + 1):
            if "\n\n" not in text:
                break
            narrowed = tuple(
                replace(column, ci=None) if column in with_intervals[:count] else column for column in self.shown
            )
            text = replace(self, columns=narrowed).grid().text(width=width, color=color)
            which = (
                ""
                if count == len(with_intervals)
                else f" of {listed([column.heading for column in with_intervals[:count]])}"
            )
            omission = (
                f"\n\nThe table is too wide to show the intervals{which}. All formats except text show these intervals."
            )
        return text + omission

    def _with_texts_below(self, width: int | None, *, color: bool) -> str:
        """Render for a terminal, with some columns as texts below each row."""
        text_columns = [(column, column.cells()) for column in self.shown if column.below]
        columns = tuple(column for column in self.shown if not column.below)
        labels = self.labels - sum(column.below for column in self.shown[: self.labels])
        head, *lines = replace(self, columns=columns, labels=labels).text(width, color=color).split("\n")
        options: Any = {"subsequent_indent": "  ", "max_lines": 2, "placeholder": " ..."}
        groups = self.groups or [""] * len(self)
        line = -1
        for row, (group, previous) in enumerate(zip(groups, ("", *groups), strict=False)):
            line += 1 + (group not in {"", previous})  # a group starts with its name
            texts = [f"{column.heading}: {cells[row]}" for column, cells in text_columns if column.values[row]]
            parts = [
                textwrap.wrap(escape_controls(text), max((width or _DEFAULT_WIDTH) - 4, _MIN_WIDTH), **options)
                for text in texts
            ]
            lines[line] = "\n    ".join([lines[line], *(text for part in parts for text in part)])
        return "\n".join([head, *lines])

    def markdown(self) -> str:
        """Render as a Markdown table."""
        return self.grid().markdown()

    def latex(self) -> str:
        """Render as a LaTeX tabular (package booktabs)."""
        return self.grid().latex()

    def csv(self, delimiter: str = ",") -> str:
        """Render as CSV in full precision; missing values are empty."""
        columns = self._cell_value()
        rows = zip(*([_csv_cell(value) for value in values] for _, values, _ in columns), strict=True)
        return csv_lines([[name for name, _, _ in columns], *rows], delimiter)

    def with_intervals_apart(self) -> Table:
        """Return the table with the intervals for people in columns of their own, so that a cell has one value."""
        columns: list[Column] = []
        for column in self.columns:
            columns.append(replace(column, ci=None, axis=None) if column.ci and column.only != "data" else column)
            if column.ci and column.only in {"", "people"}:
                shows = column.each or [column.show] * len(column.values)
                texts = [_format_interval(limits, show) for limits, show in zip(column.ci, shows, strict=True)]
                title = column.axis.title if column.axis else "CI"
                columns.append(Column(f"{column.name}_interval", texts, TEXT, title, only="people"))
        return replace(self, columns=tuple(columns))

    def with_drawn_intervals(self) -> Table:
        """Return the table for a page, which draws intervals beside their numbers.

        A column whose rows have different units has no axis. Beside a drawn column, it has no intervals.
        """
        columns = [column if column.each else column.drawn() for column in self.columns]
        if any(column.axis for column in columns):
            columns = [replace(column, ci=None) if column.each and not column.axis else column for column in columns]
        return replace(self, columns=tuple(columns))

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per row, as in JSON."""
        return [dict(item for column in self.data for item in column.items(row)) for row in range(len(self))]

    def to_arrow(self) -> ArrowTable:
        """Convert to an Arrow table; an interval is two columns."""
        import pyarrow as pa

        arrays = {name: pa.array(values, type=kind or None) for name, values, kind in self._cell_value()}
        return pa.table(arrays)

    def _cell_value(self) -> list[tuple[str, Sequence[Any], Any]]:
        """Return names, values, and types of the columns for cells; nested columns are only in JSON."""
        return [part for column in self.data if not column.nested for part in column.data()]


def _heading(group: str, width: int) -> tuple[str, ...]:
    return (Cell(group, best=True), *[""] * (width - 1))


def _indent_row(row: Sequence[str]) -> tuple[str, ...]:
    """Indent the first cell of a row, which is only visible in a terminal."""
    first = row[0] if isinstance(row[0], Cell) else Cell(row[0])
    return (Cell(f"  {first.number}", detail=first.detail, mark=first.mark, best=first.best), *row[1:])


def _csv_cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _format_interval(limits: IntervalLimits, show: Show) -> str:
    if limits is None or any(map(math.isnan, limits)):
        return ""
    low, high = map(show.limit or show.write, limits)
    return f"[{low}, {high}]"


def missing(value: Any) -> bool:
    """Return whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: Any) -> Any:
    """Convert a value to plain Python for JSON: None for numbers that are not finite, a text for other types.

    Parameters
    ----------
    value
        Any value, with its elements.

    Examples
    --------
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


def _cell_value(value: Any) -> Any:
    """Convert a value for one cell: a list becomes one text; infinity stays."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    flat = plain(value)
    return "; ".join(map(str, flat)) if isinstance(flat, list) else flat


def select_visible(blocks: Iterable[Block], unfold: Iterable[str]) -> list[Block]:
    """Select the blocks for people that are not folded, or are in `unfold`."""
    names = set(unfold)
    return [
        block
        for block in blocks
        if (not block.folded or block.name in names) and not (isinstance(block, Table) and block.only == "data")
    ]


def best_first_order(values: Sequence[float], *, lower_is_better: bool) -> list[int]:
    """Return the indices of values from best to worst; NaN last, equal values in their order."""
    side = 1 if lower_is_better else -1
    return sorted(range(len(values)), key=lambda i: (math.isnan(values[i]), side * values[i]))
