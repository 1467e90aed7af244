"""The pages of A/B tests and of the watch, and their twins in JSON."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from judged.errors import InputError, JudgedError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS
from judged.web.slices.attributes import problem_of

if TYPE_CHECKING:
    from judged.online.abtest.abtest import ABTest
    from judged.watch import Watch
    from judged.web.workspace import Workspace

router = APIRouter()
_TITLES = {"/users": "A/B test", "/users/watch": "Watch over production"}


@router.get("/api/v1/users", tags=["users"], summary="What an A/B test says", responses=PROBLEMS)
def test_as_json(workspace: Opened) -> dict[str, Any]:
    """Say of the arms of the open log whether the test is sound, what differs, and what follows."""
    return ab_test(workspace).to_dict()


@router.get("/api/v1/users/watch", tags=["users"], summary="What is off in production", responses=PROBLEMS)
def watch_as_json(workspace: Opened) -> dict[str, Any]:
    """Hold the series of the open watch against their baseline."""
    return watched(workspace).to_dict()


@router.get("/users", include_in_schema=False)
@router.get("/users/watch", include_in_schema=False)
def users_page(request: Request, workspace: Opened) -> HTMLResponse:
    """Show what users of two arms did, or what is off in production."""
    path = request.url.path
    files, make = (
        (workspace.log, ab_test) if path == "/users" else ((workspace.watch,) * bool(workspace.watch), watched)
    )
    values: dict[str, Any] = {"problem": None, "answer": None, "titles": _TITLES}
    if files:
        try:
            values["answer"] = make(workspace)
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    option = "--log LOG" if path == "/users" else "--watch CONFIG"
    names = [Path(name).name for name in files]
    values |= {"section": "Users", "names": names, "option": option}
    return page(request, "of_log.html", status=status, title=_TITLES[path], **values)


def ab_test(workspace: Workspace) -> ABTest:
    """Read the test of the open log, once."""
    if not workspace.log:
        raise InputError("no log is open", fix="open one: judged serve QRELS RUN --log LOG")

    def new() -> ABTest:
        from judged.online import abtest, read_log

        return abtest(read_log(workspace.log))

    return workspace.remember(("/users",), new)


def watched(workspace: Workspace) -> Watch:
    """Look at the open watch as its state remembers it; nothing is written."""
    if not workspace.watch:
        raise InputError("no watch is open", fix="open one: judged serve QRELS RUN --watch CONFIG")

    def new() -> Watch:
        from judged.watch import watch

        return watch(workspace.watch, keep=False)

    return workspace.remember(("/users/watch",), new)
