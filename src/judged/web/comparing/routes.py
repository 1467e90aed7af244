"""Two runs compared: the page, and its twin in the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.web.answers import page
from judged.web.comparing.asked import MEASURE, MEASURES, Asked
from judged.web.comparing.charts import figures
from judged.web.comparing.choosing import compared
from judged.web.desk import Opened
from judged.web.filters import blocks
from judged.web.problems import PROBLEMS
from judged.web.typed import RefusedError

if TYPE_CHECKING:
    from judged.web.comparing.answer import ComparePage

router = APIRouter()


@router.get("/compare", include_in_schema=False)
def comparison_page(request: Request, workspace: Opened, asked: Annotated[Asked, Query()]) -> Response:
    """Show two runs side by side."""
    values: dict[str, Any] = {"answer": None, "wrong": None, "asked": asked}
    if len(workspace.run_names) > 1:
        try:
            answer = compared(workspace, asked)
        except RefusedError as error:
            values["wrong"] = error
        else:
            shown = {"answer": answer, "facts": answer.facts(), "asked": answer.asked}
            values |= shown | {"figures": blocks(figures(answer), ["drawn"]), "keys": _keys(answer)}
    status = HTTPStatus.BAD_REQUEST if values["wrong"] else HTTPStatus.OK
    values["usual"] = {"measure": MEASURE, "measures": MEASURES}
    return page(request, "compare.html", status=status, title="Compare", **values)


def _keys(answer: ComparePage) -> dict[str, str]:
    """Name the orders of the topics, by column."""
    return {column.name: column.name for column in answer.listed[0].shown} | {"query_id": "topic"}


@router.get("/api/v1/compare", tags=["runs"], summary="Two runs compared", responses=PROBLEMS)
def comparison(workspace: Opened, asked: Annotated[Asked, Query()]) -> dict[str, Any]:
    """Compare two runs: the verdict, every measure, what rests on single topics, and the topics, a page at a time."""
    return compared(workspace, asked).to_dict()
