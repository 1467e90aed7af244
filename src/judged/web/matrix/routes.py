"""The page of the matrix, and its twin in JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from judged.errors import JudgedError, MissingExtraError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.matrix.asked import PARTS, AskedMatrix
from judged.web.matrix.data import MatrixData
from judged.web.matrix.figures import figures
from judged.web.matrix.making import matrix
from judged.web.matrix.selecting import SIZE
from judged.web.paging import Paging
from judged.web.problems import PROBLEMS
from judged.web.slices.attributes import attributes, wrong_of

router = APIRouter()


@router.get("/api/v1/matrix", tags=["diagnosis"], summary="Topics and slices by two measures", responses=PROBLEMS)
def matrix_as_json(workspace: Opened, asked: Annotated[AskedMatrix, Query()]) -> MatrixData:
    """Set topics and slices of a run against two measures: one of the candidates, one of the final ranking.

    ``x0``, ``x1``, ``y0``, ``y1`` and ``quadrant`` select topics; these come a page at a time.
    """
    return matrix(workspace, asked)


@router.get("/matrix", include_in_schema=False)
def matrix_page(request: Request, workspace: Opened, asked: Annotated[AskedMatrix, Query()]) -> HTMLResponse:
    """Show them."""
    values: dict[str, Any] = {"title": "Matrix", "asked": asked, "pairs": dict(asked.pairs()), "wrong": None}
    values |= {"attributes": attributes(workspace).records(), "parts": PARTS, "data": None, "charts": {}}
    if workspace.lists:
        try:
            data = matrix(workspace, asked)
            paging = Paging.at(data.selection.page, data.selection.count, SIZE)
            values |= {"data": data, "charts": figures(workspace, asked), "paging": paging}
        except MissingExtraError:
            raise
        except JudgedError as error:
            values["wrong"] = wrong_of(workspace, error, asked.where)
    status = HTTPStatus.OK if values["wrong"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "matrix.html", status=status, **values)
