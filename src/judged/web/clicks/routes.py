"""The pages of clicks, and their twins in JSON."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from judged import clicks
from judged.errors import InputError, JudgedError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS
from judged.web.slices.attributes import problem_of

if TYPE_CHECKING:
    from judged.answer import Answer
    from judged.online.log import InteractionLog
    from judged.web.workspace import Workspace

router = APIRouter()
_TITLES = {
    "/clicks": "Which model of clicks fits",
    "/clicks/ranks": "How often ranks are looked at",
    "/clicks/people": "Clicks against people's judgments",
}


@router.get("/api/v1/clicks", tags=["clicks"], summary="Which model of clicks fits", responses=PROBLEMS)
def models_as_json(workspace: Opened) -> dict[str, Any]:
    """Compare models by what they say of users whom they never saw."""
    return _answer(workspace, "/clicks").to_dict()


@router.get("/api/v1/clicks/ranks", tags=["clicks"], summary="How often ranks are looked at", responses=PROBLEMS)
def ranks_as_json(workspace: Opened) -> dict[str, Any]:
    """Find position bias from documents that stood at several ranks, without a model."""
    return _answer(workspace, "/clicks/ranks").to_dict()


@router.get("/api/v1/clicks/people", tags=["clicks"], summary="Clicks against judgments", responses=PROBLEMS)
def people_as_json(workspace: Opened) -> dict[str, Any]:
    """Set judgments made of clicks against those that are open."""
    return _answer(workspace, "/clicks/people").to_dict()


@router.get("/clicks", include_in_schema=False)
@router.get("/clicks/ranks", include_in_schema=False)
@router.get("/clicks/people", include_in_schema=False)
def clicks_page(request: Request, workspace: Opened) -> HTMLResponse:
    """Show what can be learnt from the clicks of a log."""
    names = [Path(path).name for path in workspace.log]
    values: dict[str, Any] = {"problem": None, "answer": None, "titles": _TITLES, "names": names}
    values |= {"section": "Clicks", "option": "--log LOG"}
    if workspace.log:
        try:
            values["answer"] = _answer(workspace, request.url.path)
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "of_log.html", status=status, title=_TITLES[request.url.path], **values)


def _answer(workspace: Workspace, path: str) -> Answer:
    """Make an answer of the log once; it is read for each, as a database serves one thread."""
    if not workspace.log:
        raise InputError("no log is open", fix="open one: judged serve QRELS RUN --log LOG")

    def new() -> Answer:
        from judged.online import read_log

        log = read_log(workspace.log)
        if path == "/clicks":
            return clicks.compare_models(log)
        return clicks.propensities(log) if path == "/clicks/ranks" else _against_people(workspace, log)

    return workspace.remember((path,), new)


def _against_people(workspace: Workspace, log: InteractionLog) -> Answer:
    runs = [workspace.judged(name).run for name in workspace.run_names]
    return clicks.against_people(clicks.judge_clicks(log), workspace.qrels, runs)
