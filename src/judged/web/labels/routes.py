"""The pages about labels, and their twins in JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.answer import Table
from judged.errors import InputError, JudgedError
from judged.labels.calibration import Calibration, calibrate
from judged.labels.trust import LabelQuality, quality
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS, Parameters
from judged.web.slices.attributes import problem_of
from judged.web.workspace import RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.data.run import Run
    from judged.labels.labels import Labels
    from judged.web.workspace import Workspace

router = APIRouter()


class AskedLabels(Parameters):
    """By which measure systems are scored under each judge."""

    measure: str = Field("nDCG@10", max_length=200, description="A mean over topics.")


@router.get("/api/v1/labels/quality", tags=["labels"], summary="How far labels can be trusted", responses=PROBLEMS)
def quality_as_json(workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> dict[str, Any]:
    """Say how far judges agree, with the others and with themselves, and what it does to systems."""
    return _quality(workspace, asked).to_dict()


@router.get("/api/v1/labels/calibration", tags=["labels"], summary="Models against people", responses=PROBLEMS)
def calibration_as_json(workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> dict[str, Any]:
    """Set models as judges against people, and say what their labels are worth."""
    return _calibration(workspace, asked).to_dict()


@router.get("/labels/quality", include_in_schema=False)
def quality_page(request: Request, workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> HTMLResponse:
    """Show how far labels can be trusted."""
    return _page(request, workspace, asked, _quality)


@router.get("/labels/calibration", include_in_schema=False)
def calibration_page(request: Request, workspace: Opened, asked: Annotated[AskedLabels, Query()]) -> HTMLResponse:
    """Show models as judges against people."""
    return _page(request, workspace, asked, _calibration)


def _quality(workspace: Workspace, asked: AskedLabels) -> LabelQuality:
    labels, runs = _given(workspace)
    key = "label quality", len(labels), asked.measure
    return workspace.remember(key, lambda: quality(workspace.labels, runs, asked.measure))


def _calibration(workspace: Workspace, asked: AskedLabels) -> Calibration:
    labels, runs = _given(workspace)
    key = "calibration", len(labels), asked.measure
    return workspace.remember(key, lambda: calibrate(labels, None, runs, asked.measure, resamples=RESAMPLES // 10))


def _given(workspace: Workspace) -> tuple[Labels, list[Run]]:
    """Give the labels of the store, and the runs that are open if they are of the same topics."""
    if workspace.labels is None:
        raise InputError("no store of labels is open", fix="name one: judged serve --labels STORE")
    labels = workspace.labels.labels()
    shared = set(labels.table["query_id"].unique().to_pylist()) & set(workspace.query_ids)
    return labels, [one.run for one in workspace.lists.values()] if shared else []


def _page(
    request: Request,
    workspace: Workspace,
    asked: AskedLabels,
    make: Callable[[Workspace, AskedLabels], LabelQuality | Calibration],
) -> HTMLResponse:
    values: dict[str, Any] = {"problem": None, "blocks": (), "title": "What labels are worth"}
    if workspace.labels is not None:
        try:
            answer = make(workspace, asked)
            shown = [block for block in answer.blocks() if not (isinstance(block, Table) and block.only == "data")]
            values |= {"answer": answer, "blocks": shown, "title": answer.title}
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "labels.html", status=status, asked=asked, **values)
