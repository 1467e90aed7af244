"""From the working of one topic to sheets: rankings with their columns, what follows from them, and formulas."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judged.results.decimals import decimal
from judged.scoring.judging.calculation import CalculationColumn, CalculationStep, CalculationTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.scoring.judging.calculation import Calculation, Operand
    from judged.scoring.judging.judged import JudgedHits

Cell: TypeAlias = float | str | None

_SOME = 10  # documents that are shown where nothing was computed for any


@dataclass(frozen=True)
class Line:
    """One number and how it came about: ``nDCG@10 = DCG / ideal = 3.2 / 4 = 0.8``."""

    name: str
    how: str  # the formula in names, or in words; empty for a number that is given
    numbers: str  # the formula with numbers put in; empty where there is none
    value: float
    summed: str = ""  # the column whose values it adds up


@dataclass(frozen=True)
class Sheet:
    """A table, and the lines that follow from it."""

    title: str
    header: tuple[str, ...]  # the columns; a ranking begins with `rank, document, grade`
    rows: tuple[tuple[Cell, ...], ...]  # a cell is a number, a text, or None where the document does not count there
    how: Mapping[str, str]  # the formulas of the columns that come from others
    lines: tuple[Line, ...]


def sheets(working: Calculation, cutoff: int | None = None) -> tuple[Sheet, ...]:
    """Cut the working where it goes on to another list, and lay each part out."""
    # Rankings are shown as far as something was computed, or to the cutoff where there is one. A column that stands in
    # the table already is not repeated; where a list is split by subtopic or assessor, each of these has a sheet.
    made: list[Sheet] = []
    for on, entries in _by_list(working.entries):
        columns = [one for one in entries if isinstance(one, CalculationColumn)]
        steps = [one for one in entries if isinstance(one, CalculationStep)]
        made += [_table(one) for one in entries if isinstance(one, CalculationTable)]
        for topic in range(len(on)):
            own = len(on) > 1
            title = f"{on.title}: {on.query_ids[topic]}" if own else on.title
            lines = tuple(_line(step, topic) for step in steps)
            made.append(_sheet(on, topic, title, columns, lines, cutoff or 0))
    return tuple(_joined(made))


def bare(on: JudgedHits) -> Sheet:
    """Lay out a ranking of one topic of which nothing was written down."""
    rows = tuple((float(rank), doc, grade) for rank, (doc, grade) in _documents(on, 0).items())
    return Sheet(on.title, ("rank", "document", "grade"), rows, {}, ())


def _by_list(
    entries: Sequence[CalculationStep | CalculationColumn | CalculationTable],
) -> Iterator[tuple[JudgedHits, list[CalculationStep | CalculationColumn | CalculationTable]]]:
    """Give runs of entries of the same list; a table of its own stands alone, as do lines behind it."""
    current: list[CalculationStep | CalculationColumn | CalculationTable] = []
    for entry in entries:
        new = current and (entry.judged is not current[-1].judged or _turns(current, entry))
        if new:
            yield current[-1].judged, current
            current = []
        current.append(entry)
    if current:
        yield current[-1].judged, current


def _turns(
    current: Sequence[CalculationStep | CalculationColumn | CalculationTable],
    entry: CalculationStep | CalculationColumn | CalculationTable,
) -> bool:
    """Whether a new sheet begins: behind the lines below a table, with the next column; around a table of its own."""
    # Lines before the first column stand alone above it; on a split list they stand below, with their subtopic.
    if isinstance(entry, CalculationTable) or isinstance(current[-1], CalculationTable):
        return True
    begins = isinstance(current[-1], CalculationStep) and isinstance(entry, CalculationColumn)
    return begins and (len(entry.judged) == 1 or any(isinstance(one, CalculationColumn) for one in current))


def _line(step: CalculationStep, topic: int) -> Line:
    value = float(np.asarray(step.values, dtype=np.float64).flat[topic])
    numbers = put_in(step.how, step.parts, topic) if step.parts else ""
    return Line(step.name, step.how, numbers, value, step.summed)


def _table(rows: CalculationTable) -> Sheet:
    cells = [[_cell(value) for value in column] for column in rows.columns.values()]
    return Sheet(rows.title, tuple(rows.columns), tuple(zip(*cells, strict=True)), dict(rows.how), ())


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, str):
        return value
    return float(np.asarray(value, dtype=np.float64))


def _sheet(
    on: JudgedHits, topic: int, title: str, columns: Sequence[CalculationColumn], lines: tuple[Line, ...], least: int
) -> Sheet:
    if not columns:
        return Sheet("", (), (), {}, lines)
    kept: dict[str, CalculationColumn] = {}
    for column in columns:
        kept.setdefault(column.name, column)
    known = _documents(on, topic)
    cells: dict[str, dict[int, Cell]] = {name: _cells(column, topic) for name, column in kept.items()}
    computed = {rank for one in cells.values() for rank in one}
    shown = max(max(computed, default=_SOME), least)
    ranks = sorted(computed | {rank for rank in known if rank <= shown})
    rows = tuple(
        (float(rank), *known.get(rank, (None, None)), *(cells[name].get(rank) for name in kept)) for rank in ranks
    )
    how = {name: column.how for name, column in kept.items() if column.how and column.how != name}
    return Sheet(title, ("rank", "document", "grade", *kept), rows, how, lines)


def _cells(column: CalculationColumn, topic: int) -> dict[int, Cell]:
    here = np.flatnonzero(column.topic == topic)
    ranks = column.rank[here].tolist()
    return {rank: _cell(value) for rank, value in zip(ranks, np.asarray(column.values)[here].tolist(), strict=True)}


def _documents(on: JudgedHits, topic: int) -> dict[int, tuple[str, float | None]]:
    """Give document and grade by rank: all that were returned where that is known, else the judged ones."""
    known: dict[int, tuple[str, float | None]] = {}
    if not on.reordered or on.stored_docs is not None:
        every = on.returned_docs
        here = np.flatnonzero(every.topic == topic)
        docs = every.doc.take(here).to_pylist()
        known = {rank: (doc, None) for rank, doc in zip(every.rank[here].tolist(), docs, strict=True)}
    part = slice(int(on.starts[topic]), int(on.starts[topic + 1]))
    for rank, doc, grade in zip(on.rank[part].tolist(), on.doc[part], on.grade[part].tolist(), strict=True):
        known[rank] = (doc, grade)
    return dict(sorted(known.items()))


def _joined(made: Sequence[Sheet]) -> Sequence[Sheet]:
    """Put lines without a table below the table before them."""
    joined: list[Sheet] = []
    for sheet in made:
        if joined and not sheet.header:
            joined[-1] = replace(joined[-1], lines=(*joined[-1].lines, *sheet.lines))
        else:
            joined.append(sheet)
    return joined


_NAME = re.compile(r"[^\W\d]\w*")
_DECIMALS, _SMALL, _LARGE = 4, 1e-3, 1e6


def number(value: float) -> str:
    """Write a number for people: whole ones as they are, others with four decimals, small ones with four digits.

    >>> number(3.0), number(0.63092975), number(0.000012345), number(float("nan"))
    ('3', '0.6309', '1.234e-05', 'nan')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    if not math.isfinite(value) or _SMALL <= abs(value) < _LARGE:
        return decimal(value, _DECIMALS) if math.isfinite(value) else str(value)
    return f"{value:.{_DECIMALS}g}"


def readable(text: str) -> str:
    """Write names as words: ``relevant_so_far`` as ``relevant so far``."""
    return text.replace("_", " ")


def put_in(how: str, parts: Mapping[str, Operand], at: int = 0) -> str:
    """Write a formula with the number of each part in its name's place; `at` is the topic of parts that have several.

    >>> put_in("DCG / ideal_DCG", {"DCG": 4.0, "ideal_DCG": 5.5})
    '4 / 5.5000'
    """

    def _number(found: re.Match[str]) -> str:
        if found[0] not in parts:
            return readable(found[0])
        part = parts[found[0]]
        shown = part if isinstance(part, str) else number(float(np.asarray(part).flat[at if np.ndim(part) else 0]))
        return f"({shown})" if shown.startswith("-") else shown

    return _NAME.sub(_number, how)


def names(how: str) -> list[str]:
    """List the names of a formula.

    >>> names("ln(1 + gained) / R")
    ['ln', 'gained', 'R']
    """
    return _NAME.findall(how)
