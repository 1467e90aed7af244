"""The charts of the matrix: one to select topics in, and the other run beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.diagnosis.matrix.chart import chart_to_select, with_topics
from judged.errors import MissingExtraError
from judged.web.matrix.making import chosen_runs, made
from judged.web.matrix.selecting import selected

if TYPE_CHECKING:
    from judged.diagnosis.matrix import Matrix
    from judged.web.matrix.asked import AskedMatrix, Box
    from judged.web.workspace import Workspace


def figures(workspace: Workspace, asked: AskedMatrix) -> dict[str, dict[str, Any] | None]:
    """Draw the run, and the one it is compared with, by run; None, where what draws them is not installed."""
    run, against = chosen_runs(workspace, asked)
    found = made(workspace, asked)
    chosen = selected(found, run, asked) if asked.selects else None
    drawn: dict[str, dict[str, Any] | None] = {}
    for name in (run, *([against] if against else [])):
        brush = name == run
        frame = _frame(workspace, found, name, brush=brush)
        box = _box(frame, asked) if brush else None
        drawn[name] = None if frame is None else with_topics(frame, found, name, chosen, box)
    return drawn


def _frame(workspace: Workspace, found: Matrix, run: str, *, brush: bool) -> dict[str, Any] | None:
    """Draw everything but the topics, once."""

    def make() -> dict[str, Any] | None:
        try:
            return chart_to_select(found, run, brush=brush)
        except MissingExtraError:
            return None

    return workspace.remember(("matrix chart", run, brush, found), make)


def _box(frame: Any, asked: AskedMatrix) -> Box | None:
    """Give the rectangle as it is drawn: a side that is left open lies on the edge of the chart."""
    if frame is None or all(one is None for one in (asked.x0, asked.x1, asked.y0, asked.y1)):
        return None
    edges = _edges(frame)
    (x0, x1), (y0, y1) = (
        [min(max(end, edge[0]), edge[1]) for end in pair] for pair, edge in zip(asked.bounds, edges, strict=True)
    )
    return (x0, x1), (y0, y1)


def _edges(frame: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Find where the axes begin and end."""
    for layer in frame["layer"]:
        encoding = layer.get("encoding", {})
        if "size" in encoding:
            return encoding["x"]["scale"]["domain"], encoding["y"]["scale"]["domain"]
    return [0.0, 1.0], [0.0, 1.0]
