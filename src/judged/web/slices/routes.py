"""The page of slices, and its twin in JSON."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.answer import Chart
from judged.errors import JudgedError, MissingExtraError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import blocks, query
from judged.web.problems import PROBLEMS
from judged.web.slices.answer import AskedSlices, slices
from judged.web.slices.attributes import attributes, conditions, problem_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from judged.web.slices.answer import SlicePage
    from judged.web.workspace import Workspace

router = APIRouter()


@router.get("/api/v1/slices", tags=["diagnosis"], summary="Scores and differences by slice", responses=PROBLEMS)
def slices_as_json(workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> dict[str, Any]:
    """Cut the topics into slices by attributes, and say of each how the runs do.

    Each slice is tested against the other topics, corrected by Holm; one of few topics is shown and never tested.
    With ``baseline``, runs are compared on each slice by a paired randomisation test.
    """
    return slices(workspace, asked).to_dict()


@router.get("/api/v1/conditions", tags=["diagnosis"], summary="Conditions on topics")
def conditions_as_json(workspace: Opened) -> dict[str, Any]:
    """Give what can stand in ``where``: a condition for each slice, and the beginning of one for each number."""
    return {"conditions": conditions(workspace).records()}


@router.get("/slices", include_in_schema=False)
def slices_page(request: Request, workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> HTMLResponse:
    """Show them."""
    known = attributes(workspace)
    links = [f"/slices{query(asked, by=row['name'])}" if row["slices"] else "" for row in known.records()]
    values: dict[str, Any] = {
        "attributes": known.changed("name", links=links),
        "data": None,
        "figures": "",
        "problem": None,
    }
    try:
        data = slices(workspace, asked)
        links = {run: f"/slices{query(asked, run=run)}" for run in data.runs if len(data.runs) > 1}
        values |= {"data": data, "links": links, "figures": _figures(workspace, data)}
    except MissingExtraError:
        raise
    except JudgedError as error:
        values["problem"] = problem_of(workspace, error, asked.where)
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "slices.html", status=status, title="Slices", asked=asked, **values)


def _figures(workspace: Workspace, data: SlicePage) -> Markup:
    """Draw the numbers by slice, and the differences where runs are compared, once."""
    charts: list[Chart] = []
    closely = tuple(name for name in (data.asked.baseline, data.asked.run) if name in workspace.lists)
    for answer, name in ((data.scores, "scores"), (data.compared, "changes")):
        made = answer.charts().values() if answer else ()
        loud = {chart: (*dict.fromkeys((*chart.loud, *closely)),) if chart.loud else () for chart in made}
        charts += [replace(chart, name=f"{name}-{at}", loud=loud[chart]) for at, chart in enumerate(made)]
    return workspace.remember(("slices figures", data.scores, data.compared, closely), lambda: blocks(charts))
