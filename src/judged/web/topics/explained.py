"""How a score comes about, laid out for a page; and what other tools report in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.answer import ANY, TEXT, Table, columns_of
from judged.errors import JudgedError
from judged.explanation import compare_tools, explain
from judged.explanation.formula import number, readable
from judged.notes import Note
from judged.web.topics.one import check_apart, scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.explanation import Line, Sheet
    from judged.explanation.sheets import Cell
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace

_ROWS = 100
_LABELS = 2  # rank and document


def explained(judged: Judged, measure: Measure) -> dict[str, Any]:
    """Lay out how a score comes about; or say why there is none."""
    made: dict[str, Any] = {"run": judged.run.name, "measure": str(measure), "score": None, "sheets": [], "problem": ""}
    try:
        check_apart(measure)
        explanation = explain(judged, None, measure)
    except JudgedError as error:
        return {**made, "problem": str(error)}
    return {**made, "score": explanation.score, "sheets": [_shown(sheet) for sheet in explanation.sheets]}


def tools(workspace: Workspace, query_id: str, runs: Sequence[str], measure: Measure) -> tuple[Table, list[Note]]:
    """Ask what other tools report."""
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for run in runs:
        try:
            check_apart(measure)
            _, (alone,) = workspace.one_topic(query_id, [run])
            compared = compare_tools(scale_of(workspace, query_id), alone, query_id, measure)
        except JudgedError as error:
            notes.append(Note("other-tools", str(error), run))
            continue
        names = ("tool", "called", "measure", "printed", "why")
        rows += [{"run": run, **dict(zip(names, row, strict=True))} for row in compared.table().rows[1:]]
    columns = columns_of(
        rows,
        *("run", "measure"),
        ("tool", TEXT, "Tool"),
        ("called", TEXT, "Its name"),
        ("printed", ANY, "It prints"),
        ("why", TEXT, "Which rule makes the difference"),
    )
    return Table("tools", columns, "What other tools report"), notes


def _shown(sheet: Sheet) -> dict[str, Any]:
    """Write a sheet; documents that are unjudged and count nowhere are left out, and rows behind the first hundred."""
    counting = [row for row in sheet.rows if len(row) <= _LABELS or any(cell is not None for cell in row[_LABELS:])]
    empty, behind = len(sheet.rows) - len(counting), max(len(counting) - _ROWS, 0)
    said = [f"{empty:,} without a judgment that count nowhere"] if empty else []
    said += [f"{behind:,} behind the first {_ROWS}"] if behind else []
    return {
        "title": sheet.title,
        "columns": tuple(map(readable, sheet.header)),
        "rows": tuple(tuple(map(_cell, row, sheet.header)) for row in counting[:_ROWS]),
        "left_out": f"Left out: {' and '.join(said)}." if said else "",
        "lines": (
            *(f"{readable(name)} = {readable(how)}" for name, how in sheet.how.items()),
            *map(_said, sheet.lines),
        ),
    }


def _cell(cell: Cell, name: str) -> str:
    if cell is None:
        return "unjudged" if name == "grade" else ""
    return cell if isinstance(cell, str) else number(cell)


def _said(line: Line) -> str:
    """Write one line of the calculation: name, formula, numbers, value; nothing twice."""
    parts = [line.name, readable(line.how), line.numbers, number(line.value)]
    return " = ".join(part for at, part in enumerate(parts) if part and (not at or part != parts[at - 1]))
