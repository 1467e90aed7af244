"""How a score comes about, and what other tools report in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.answer import ANY, TEXT, Table, columns_of
from judged.errors import JudgedError
from judged.explanation import compare_tools, explain
from judged.notes import Note
from judged.web.topics.one import check_apart, scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.explanation import Explanation
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace


def explained(judged: Judged, measure: Measure) -> tuple[Explanation | None, str]:
    """Explain how a score comes about; or say why there is none."""
    try:
        check_apart(measure)
        return explain(judged, None, measure), ""
    except JudgedError as error:
        return None, str(error)


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
        rows += [{**row, "run": run} for row in compared.table().records()[1:] if row["called"]]
    columns = columns_of(
        rows,
        *("run", "measure"),
        ("tool", TEXT, "Tool"),
        ("called", TEXT, "Its name"),
        ("printed", ANY, "It prints"),
        ("why", TEXT, "Which rule makes the difference"),
    )
    return Table("tools", columns, "What other tools report"), notes
