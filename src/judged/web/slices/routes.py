"""The page of slices, and its twin in JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query

from judged.results import Chart
from judged.web.answer_pages import answer_page
from judged.web.desk import Opened
from judged.web.filters import blocks, query
from judged.web.slices.answer import AskedSlices, SlicePage, slices
from judged.web.slices.attributes import attributes, conditions

if TYPE_CHECKING:
    from markupsafe import Markup

    from judged.web.workspace import Workspace

router = APIRouter(tags=["diagnosis"])


def _shown(workspace: Workspace, asked: AskedSlices, answer: SlicePage | None) -> dict[str, Any]:
    """Lead from attributes to their slices, and from one of several runs to its own page; draw the numbers."""
    known = attributes(workspace)
    ways = [f"/slices{query(asked, by=row['name'])}" if row["slices"] else "" for row in known.records()]
    values: dict[str, Any] = {"attribute_table": known.changed("name", links=ways), "figures": ""}
    if answer is not None:
        links = {run: f"/slices{query(asked, run=run)}" for run in answer.runs if len(answer.runs) > 1}
        values |= {"links": links, "figures": _figures(workspace, answer), "tables": list(answer.shown())}
    return values


def _figures(workspace: Workspace, answer: SlicePage) -> Markup:
    """Draw the numbers by slice, and the differences where runs are compared, once."""
    charts: list[Chart] = []
    closely = tuple(name for name in (answer.asked.baseline, answer.asked.run) if name in workspace.lists)
    for part, name in ((answer.scores, "scores"), (answer.compared, "changes")):
        made = part.charts().values() if part else ()
        loud = {chart: (*dict.fromkeys((*chart.loud, *closely)),) if chart.loud else () for chart in made}
        charts += [replace(chart, name=f"{name}-{at}", loud=loud[chart]) for at, chart in enumerate(made)]
    return workspace.remember(("slices figures", answer.scores, answer.compared, closely), lambda: blocks(charts))


@answer_page(router, "slices.html", "/slices", "Slices", "Scores and differences by slice", _shown)
def scores_by_slice(workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> SlicePage:
    """Cut the topics into slices by attributes, and say of each how the runs do.

    Each slice is tested against the other topics, corrected by Holm; one of few topics is shown and never tested.
    With ``baseline``, runs are compared on each slice by a paired randomisation test.
    """
    return slices(workspace, asked)


@router.get("/api/v1/conditions", summary="Conditions on topics")
def conditions_as_json(workspace: Opened) -> dict[str, Any]:
    """Give what can stand in ``where``: a condition for each slice, and the beginning of one for each number."""
    return {"conditions": conditions(workspace).records()}
