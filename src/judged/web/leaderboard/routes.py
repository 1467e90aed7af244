"""The page and the API of the leaderboard."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.leaderboard.asked import Asked, AskedTable
from judged.web.leaderboard.board import board_of
from judged.web.leaderboard.choices import choices_of
from judged.web.leaderboard.drawn import curve_drawing, dots
from judged.web.leaderboard.exports import FILES, written
from judged.web.leaderboard.table import Leaderboard, leaderboard
from judged.web.problems import PROBLEMS

router = APIRouter()

_WRITTEN: dict[int | str, dict[str, object]] = {
    200: {"content": {kind: {"schema": {"type": "string"}} for _, kind in FILES.values()}}
}


@router.get("/leaderboard", include_in_schema=False)
def leaderboard_page(request: Request, workspace: Opened, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    """Show the leaderboard; what is wrong stands beside its field."""
    board = board_of(workspace, asked)
    return page(
        request,
        "leaderboard.html",
        status=HTTPStatus.BAD_REQUEST if board.problems else HTTPStatus.OK,
        title="Leaderboard",
        data=leaderboard(board),
        asked=asked,
        pairs=board.pairs,
        names=board.names,
        baseline=board.baseline,
        lead=str(board.lead),
        typed=board.typed,
        problems={name: str(board.problems.get(name, "")) for name in Asked.model_fields},
        choices=choices_of(board),
        dots=dots(board),
        curve=curve_drawing(board),
    )


@router.get(
    "/api/v1/leaderboard",
    tags=["leaderboard"],
    summary="Every run by the chosen measures, tested against a baseline",
    responses=PROBLEMS,
)
def leaderboard_data(workspace: Opened, asked: Annotated[Asked, Query()]) -> Leaderboard:
    """Give the leaderboard: numbers with intervals, tests against the baseline, and a curve where one is asked for."""
    board = board_of(workspace, asked)
    board.raise_problems()
    return leaderboard(board)


@router.get(
    "/api/v1/leaderboard/table",
    tags=["leaderboard"],
    summary="The leaderboard as CSV, LaTeX or Markdown",
    response_class=Response,
    responses={**PROBLEMS, **_WRITTEN},
)
def leaderboard_table(workspace: Opened, asked: Annotated[AskedTable, Query()]) -> Response:
    """Give the leaderboard in a form for papers and programs; its rows are ordered by the first measure."""
    board = board_of(workspace, asked)
    board.raise_problems()
    text = written(board, asked.form)
    name, kind = FILES[asked.form]
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode("utf-8"), media_type=f"{kind}; charset=utf-8", headers=headers)
