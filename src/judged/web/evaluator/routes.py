"""The routes of the evaluator: a page, its data, and what can be had beside it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.evaluator.asked import Asked, ExportAsked, MeasureAsked, Pasted
from judged.web.evaluator.files import exported
from judged.web.evaluator.paste import read_pasted
from judged.web.evaluator.scores import evaluation
from judged.web.evaluator.working import explained
from judged.web.problems import PROBLEMS

router = APIRouter()
_API = "/api/v1/evaluator"
_FILE = {200: {"description": "The file.", "content": {"text/plain": {}, "application/json": {}, "text/markdown": {}}}}


@router.get("/evaluator", include_in_schema=False)
def evaluator_page(request: Request, opened: Opened, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    """Show the evaluator."""
    answer = evaluation(opened, asked)
    return page(request, "evaluator.html", title="Evaluator", answer=answer, data=answer.to_dict(), asked=asked)


@router.get(_API, tags=["evaluator"], summary="Score a typed list by every measure", responses=PROBLEMS)
def evaluator(opened: Opened, asked: Annotated[Asked, Query()]) -> JSONResponse:
    """Score a list, and a second one beside it, by every measure that a list is enough for."""
    return JSONResponse(evaluation(opened, asked).to_dict())  # plain values already, and this must be fast


@router.get(f"{_API}/measure", tags=["evaluator"], summary="Explain one measure of a list", responses=PROBLEMS)
def evaluator_measure(opened: Opened, asked: Annotated[MeasureAsked, Query()]) -> dict[str, Any]:
    """Show how one score comes about step by step, and what each document brings to it."""
    return explained(opened, asked).to_dict()


@router.get(
    f"{_API}/export",
    tags=["evaluator"],
    summary="Write a list to a file",
    responses=PROBLEMS | _FILE,
    response_class=Response,
)
def evaluator_export(opened: Opened, asked: Annotated[ExportAsked, Query()]) -> Response:
    """Give the list as TREC qrels or run, or with its scores as JSON or Markdown."""
    return exported(opened, asked)


@router.post(f"{_API}/paste", tags=["evaluator"], summary="Read a list from a text", responses=PROBLEMS)
def evaluator_paste(pasted: Pasted) -> dict[str, Any]:
    """Read grades, documents with grades, TREC lines or JSON, and say what it was taken for."""
    read = read_pasted(pasted.text)
    items = [{"doc": item.doc, "grade": item.grade} for item in read.items]
    return {"list": items, "read_as": read.read_as, "cut": read.cut}
