"""Convert the recorded calculation of one topic to sheets: rankings with computed columns, and lines with formulas."""

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

_DEFAULT_DOCUMENTS = 10  # documents to show if the measure computed a value for none of them


@dataclass(frozen=True)
class SheetLine:
    """One number and its formula: ``nDCG@10 = DCG / ideal = 3.2 / 4 = 0.8``."""

    name: str
    formula: str  # with names, or a description; empty for an input value
    numbers: str  # the formula with numbers substituted for names; empty without a formula
    value: float  # NaN if it is undefined
    summed: str = ""  # the column whose sum this is


@dataclass(frozen=True)
class Sheet:
    """A table and the calculation lines that use it."""

    title: str
    header: tuple[str, ...]  # the columns; a ranking begins with `rank, document, grade`
    # a cell is a number, a text, or None if the column does not apply to the document
    rows: tuple[tuple[Cell, ...], ...]
    formulas: Mapping[str, str]  # of the columns computed from other columns
    lines: tuple[SheetLine, ...]  # calculation below the table


def build_sheets(working: Calculation, cutoff: int | None = None) -> tuple[Sheet, ...]:
    """Build one sheet for each list that the calculation used."""
    # A ranking ends at the deepest rank with a computed value, or at the cutoff if that is deeper. A list that is split
    # by subtopic or assessor gets one sheet for each of them.
    result: list[Sheet] = []
    for hits, entries in _group_by_list(working.entries):
        columns = [entry for entry in entries if isinstance(entry, CalculationColumn)]
        steps = [entry for entry in entries if isinstance(entry, CalculationStep)]
        result += [_table(entry) for entry in entries if isinstance(entry, CalculationTable)]
        for topic_index in range(len(hits)):
            is_split = len(hits) > 1
            title = f"{hits.title}: {hits.query_ids[topic_index]}" if is_split else hits.title
            lines = tuple(_line(step, topic_index) for step in steps)
            result.append(_sheet(hits, topic_index, title, columns, lines, cutoff or 0))
    return tuple(_attach_lines(result))


def ranking_sheet(hits: JudgedHits) -> Sheet:
    """Build the sheet of a ranking for which the measure recorded no calculation."""
    rows = tuple((float(rank), doc, grade) for rank, (doc, grade) in _documents(hits, 0).items())
    return Sheet(hits.title, ("rank", "document", "grade"), rows, {}, ())


def _group_by_list(
    entries: Sequence[CalculationStep | CalculationColumn | CalculationTable],
) -> Iterator[tuple[JudgedHits, list[CalculationStep | CalculationColumn | CalculationTable]]]:
    current: list[CalculationStep | CalculationColumn | CalculationTable] = []
    for entry in entries:
        if current and (entry.judged is not current[-1].judged or _starts_sheet(current, entry)):
            yield current[-1].judged, current
            current = []
        current.append(entry)
    if current:
        yield current[-1].judged, current


def _starts_sheet(
    current: Sequence[CalculationStep | CalculationColumn | CalculationTable],
    entry: CalculationStep | CalculationColumn | CalculationTable,
) -> bool:
    # A `CalculationTable` is a sheet by itself. Otherwise a column that follows lines starts the next sheet. Exception:
    # in a split list, lines before the first column belong below the table of their subtopic.
    if isinstance(entry, CalculationTable) or isinstance(current[-1], CalculationTable):
        return True
    is_column_after_step = isinstance(current[-1], CalculationStep) and isinstance(entry, CalculationColumn)
    return is_column_after_step and (
        len(entry.judged) == 1 or any(isinstance(previous, CalculationColumn) for previous in current)
    )


def _line(step: CalculationStep, topic_index: int) -> SheetLine:
    value = float(np.asarray(step.values, dtype=np.float64).flat[topic_index])
    numbers = substitute(step.how, step.parts, topic_index) if step.parts else ""
    return SheetLine(step.name, step.how, numbers, value, step.summed)


def _table(table: CalculationTable) -> Sheet:
    cells = [[_cell(value) for value in column] for column in table.columns.values()]
    return Sheet(table.title, tuple(table.columns), tuple(zip(*cells, strict=True)), dict(table.how), ())


def _cell(value: object) -> Cell:
    if value is None or isinstance(value, str):
        return value
    return float(np.asarray(value, dtype=np.float64))


def _sheet(
    hits: JudgedHits,
    topic_index: int,
    title: str,
    columns: Sequence[CalculationColumn],
    lines: tuple[SheetLine, ...],
    cutoff: int,
) -> Sheet:
    if not columns:
        return Sheet("", (), (), {}, lines)
    by_name: dict[str, CalculationColumn] = {}
    for column in columns:
        by_name.setdefault(column.name, column)
    documents = _documents(hits, topic_index)
    cells: dict[str, dict[int, Cell]] = {name: _cells(column, topic_index) for name, column in by_name.items()}
    computed = {rank for values in cells.values() for rank in values}
    deepest = max(max(computed, default=_DEFAULT_DOCUMENTS), cutoff)
    ranks = sorted(computed | {rank for rank in documents if rank <= deepest})
    rows = tuple(
        (float(rank), *documents.get(rank, (None, None)), *(cells[name].get(rank) for name in by_name))
        for rank in ranks
    )
    formulas = {name: column.how for name, column in by_name.items() if column.how and column.how != name}
    return Sheet(title, ("rank", "document", "grade", *by_name), rows, formulas, lines)


def _cells(column: CalculationColumn, topic_index: int) -> dict[int, Cell]:
    of_topic = np.flatnonzero(column.topic == topic_index)
    ranks = column.rank[of_topic].tolist()
    return {rank: _cell(value) for rank, value in zip(ranks, np.asarray(column.values)[of_topic].tolist(), strict=True)}


def _documents(hits: JudgedHits, topic_index: int) -> dict[int, tuple[str, float | None]]:
    """Return document and grade by rank: all returned documents if the list has them, else the judged ones."""
    documents: dict[int, tuple[str, float | None]] = {}
    if not hits.reordered or hits.stored_docs is not None:
        ranking = hits.returned_docs
        of_topic = np.flatnonzero(ranking.topic == topic_index)
        docs = ranking.doc.take(of_topic).to_pylist()
        documents = {rank: (doc, None) for rank, doc in zip(ranking.rank[of_topic].tolist(), docs, strict=True)}
    bounds = slice(int(hits.starts[topic_index]), int(hits.starts[topic_index + 1]))
    for rank, doc, grade in zip(hits.rank[bounds].tolist(), hits.doc[bounds], hits.grade[bounds].tolist(), strict=True):
        documents[rank] = (doc, grade)
    return dict(sorted(documents.items()))


def _attach_lines(parts: Sequence[Sheet]) -> Sequence[Sheet]:
    joined: list[Sheet] = []
    for sheet in parts:
        if joined and not sheet.header:
            joined[-1] = replace(joined[-1], lines=(*joined[-1].lines, *sheet.lines))
        else:
            joined.append(sheet)
    return joined


_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_DECIMALS, _SMALL, _LARGE = 4, 1e-3, 1e6


def format_number(value: float) -> str:
    """Format a number for display: integers unchanged, others with four decimals, small ones with four digits.

    >>> format_number(3.0), format_number(0.63092975), format_number(0.000012345), format_number(float("nan"))
    ('3', '0.6309', '1.234e-05', 'nan')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    if not math.isfinite(value) or _SMALL <= abs(value) < _LARGE:
        return decimal(value, _DECIMALS) if math.isfinite(value) else str(value)
    return f"{value:.{_DECIMALS}g}"


def replace_underscores(text: str) -> str:
    """Return an identifier as words: ``relevant_so_far`` as ``relevant so far``."""
    return text.replace("_", " ")


def substitute(formula: str, parts: Mapping[str, Operand], topic_index: int = 0) -> str:
    """Replace each name in a formula by its number; `topic_index` selects the value of an array.

    >>> substitute("DCG / ideal_DCG", {"DCG": 4.0, "ideal_DCG": 5.5})
    '4 / 5.5000'
    """

    def format_part(match: re.Match[str]) -> str:
        if match[0] not in parts:
            return replace_underscores(match[0])
        part = parts[match[0]]
        position = topic_index if np.ndim(part) else 0
        text = part if isinstance(part, str) else format_number(float(np.asarray(part).flat[position]))
        return f"({text})" if text.startswith("-") else text

    return _IDENTIFIER.sub(format_part, formula)


def formula_names(formula: str) -> list[str]:
    """Return the identifiers in a formula.

    >>> formula_names("ln(1 + gained) / R")
    ['ln', 'gained', 'R']
    """
    return _IDENTIFIER.findall(formula)
