"""How a score comes about, laid out for a page; and what other tools report in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.errors import JudgedError
from judged.explanation import compare_tools, explain
from judged.explanation.formula import number, readable
from judged.measures import parse
from judged.web.topics.one import check_apart, judged_topic, scale_of
from judged.web.topics.one import number as score_or_none

if TYPE_CHECKING:
    from judged.explanation import Line, Sheet, ToolComparison
    from judged.explanation.sheets import Cell
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.topics.asked import AskedExplanation
    from judged.web.workspace import Workspace

_ROWS = 100
_LABELS = 2  # rank and document


@dataclass(frozen=True)
class ShownSheet:
    """One table of an explanation with the lines below it, as text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: str  # which rows are not here
    lines: tuple[str, ...]  # formulas with names, then with numbers


@dataclass(frozen=True)
class Explained:
    """How one score of a run comes about."""

    run: str
    measure: str
    score: float | None
    sheets: tuple[ShownSheet, ...]
    problem: str = ""  # why there is no score


@dataclass(frozen=True)
class FullExplanation:
    """How one score comes about: every number in full precision, and as text."""

    explanation: dict[str, Any]
    text: str


@dataclass(frozen=True)
class ToolLine:
    """What one tool reports."""

    # tool, called, measure: the tool, its name for the measure, and our name for its number
    tool: str
    called: str
    measure: str
    printed: str  # in as many digits as the tool prints
    why: str  # which of its rules makes the difference


@dataclass(frozen=True)
class Tools:
    """What other tools report for one run, or why they cannot be asked."""

    run: str
    lines: tuple[ToolLine, ...]
    problem: str = ""


def explained(one: Judged, measure: Measure) -> Explained:
    """Lay out how a score comes about."""
    try:
        check_apart(measure)
        found = explain(one, None, measure)
    except JudgedError as error:
        return Explained(one.run.name, str(measure), None, (), str(error))
    return Explained(one.run.name, str(measure), score_or_none(found.score), tuple(map(_shown, found.sheets)))


def full_explanation(workspace: Workspace, asked: AskedExplanation) -> FullExplanation:
    """Explain one score."""
    measure = parse(asked.measure)
    check_apart(measure)
    found = explain(judged_topic(workspace, asked.id, asked.run), asked.id, measure)
    return FullExplanation(found.to_dict(), found.text())


def tools(workspace: Workspace, query_id: str, run: str, measure: Measure) -> Tools:
    """Ask what other tools report."""
    try:
        check_apart(measure)
        _, (one,) = workspace.one_topic(query_id, [run])
        found = compare_tools(scale_of(workspace, query_id), one, query_id, measure)
    except JudgedError as error:
        return Tools(run, (), str(error))
    return Tools(run, _tool_lines(found))


def _tool_lines(found: ToolComparison) -> tuple[ToolLine, ...]:
    return tuple(ToolLine(*row) for row in found.table().rows[1:])


def _shown(sheet: Sheet) -> ShownSheet:
    """Write a sheet; documents that are unjudged and count nowhere are left out, and rows behind the first hundred."""
    counting = [row for row in sheet.rows if len(row) <= _LABELS or any(cell is not None for cell in row[_LABELS:])]
    empty, behind = len(sheet.rows) - len(counting), max(len(counting) - _ROWS, 0)
    said = [f"{empty:,} without a judgment that count nowhere"] if empty else []
    said += [f"{behind:,} behind the first {_ROWS}"] if behind else []
    return ShownSheet(
        sheet.title,
        tuple(map(readable, sheet.header)),
        tuple(tuple(map(_cell, row, sheet.header)) for row in counting[:_ROWS]),
        f"Left out: {' and '.join(said)}." if said else "",
        (*(f"{readable(name)} = {readable(how)}" for name, how in sheet.how.items()), *map(_line, sheet.lines)),
    )


def _cell(cell: Cell, name: str) -> str:
    if cell is None:
        return "unjudged" if name == "grade" else ""
    return cell if isinstance(cell, str) else number(cell)


def _line(line: Line) -> str:
    """Write one line of the calculation: name, formula, numbers, value; nothing twice."""
    parts = [line.name, readable(line.how), line.numbers, number(line.value)]
    return " = ".join(part for at, part in enumerate(parts) if part and (not at or part != parts[at - 1]))
