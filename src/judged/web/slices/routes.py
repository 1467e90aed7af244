"""The page of slices, and its twin in JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.charting import specification
from judged.errors import JudgedError, MissingExtraError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS
from judged.web.slices.asked import AskedSlices
from judged.web.slices.attributes import attributes
from judged.web.slices.data import Slices
from judged.web.slices.making import compared, measure_names, scored, slices, with_usual
from judged.web.slices.wrong import wrong_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.web.workspace import Workspace

router = APIRouter()


@router.get("/api/v1/slices", tags=["diagnosis"], summary="Scores and differences by slice", responses=PROBLEMS)
def slices_as_json(workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> Slices:
    """Cut the topics into slices by attributes, and say of each how the runs do.

    Each slice is tested against the other topics, corrected by Holm; one of few topics is shown and never tested.
    With ``against``, runs are compared on each slice by a paired randomisation test.
    """
    return slices(workspace, asked)


@router.get("/slices", include_in_schema=False)
def slices_page(request: Request, workspace: Opened, asked: Annotated[AskedSlices, Query()]) -> HTMLResponse:
    """Show them."""
    values: dict[str, Any] = {"title": "Slices", "asked": asked, "pairs": dict(asked.pairs()), "wrong": None}
    try:
        data = slices(workspace, asked)
        values |= {"data": data, "figures": _figures(workspace, asked)}
    except MissingExtraError:
        raise
    except JudgedError as error:
        wrong = wrong_of(workspace, error, asked.where)
        values |= {"data": None, "figures": [], "wrong": wrong}
    values["attributes"] = attributes(workspace)
    status = HTTPStatus.OK if values["wrong"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "slices.html", status=status, **values)


def _figures(workspace: Workspace, asked: AskedSlices) -> list[tuple[str, str, str, dict[str, Any] | None]]:
    """Draw the numbers by slice, and the differences where runs are compared: name, title, sentence, chart."""
    if not workspace.lists:
        return []
    chosen = with_usual(workspace, asked)
    found, pairs = scored(workspace, chosen), compared(workspace, chosen)
    made: list[tuple[str, str, str, dict[str, Any] | None]] = []
    for at, measure in enumerate(measure_names(chosen)):
        key = ("slices chart", measure, found)
        said = f"One dot a slice and run: its mean {measure}, with the interval; hollow where topics are too few."
        made.append((f"scores-{at}", f"{measure} by slice", said, _drawn(workspace, key, found.chart, measure)))
        if pairs is not None and measure in pairs.measures:
            key = ("slices differences", measure, pairs)
            said = f"One dot a slice: {measure} minus that of {chosen.against}, with the interval; filled: significant."
            chart = _drawn(workspace, key, pairs.chart, measure)
            made.append((f"changes-{at}", f"{measure} against {chosen.against}", said, chart))
    return made


def _drawn(workspace: Workspace, key: tuple[Any, ...], draw: Callable[..., Any], measure: str) -> dict[str, Any] | None:
    """Draw a chart once; None, where what draws it is not installed."""

    def make() -> dict[str, Any] | None:
        try:
            made = specification(draw(measure))
        except MissingExtraError:
            return None
        return {name: part for name, part in made.items() if name != "title"}

    return workspace.remember(key, make)
