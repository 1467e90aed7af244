"""The page of a change, and its twin in JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.errors import InputError, JudgedError
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.pagination import LONGEST
from judged.web.problems import PROBLEMS, Parameters
from judged.web.slices.attributes import problem_of
from judged.web.users.routes import ab_test, watched

if TYPE_CHECKING:
    from judged.changes import Change
    from judged.web.workspace import Workspace

router = APIRouter()


class AskedChange(Parameters):
    """The two runs of a change."""

    first: str = Field("", max_length=LONGEST, description="The baseline; without it one called so, or the best.")
    second: str = Field("", max_length=LONGEST, description="The candidate; the best of the others without it.")


@router.get("/api/v1/change", tags=["change"], summary="What is known of a change", responses=PROBLEMS)
def change_as_json(workspace: Opened, asked: Annotated[AskedChange, Query()]) -> dict[str, Any]:
    """Put what is open of a baseline and a candidate on one sheet: scores, slices, A/B test, watch."""
    return _change(workspace, asked).to_dict()


@router.get("/change", include_in_schema=False)
def change_page(request: Request, workspace: Opened, asked: Annotated[AskedChange, Query()]) -> HTMLResponse:
    """Show the sheet of a change."""
    values: dict[str, Any] = {"problem": None, "answer": None, "asked": asked}
    if len(workspace.run_names) > 1:
        try:
            values["answer"] = _change(workspace, asked)
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "change.html", status=status, title="The review of a change", **values)


def _change(workspace: Workspace, asked: AskedChange) -> Change:
    from judged.changes import review

    names = workspace.run_names
    if len(names) < 2:
        raise InputError("a change needs two runs", fix="open a baseline and a candidate: judged serve QRELS RUN RUN")
    first, second = workspace.usual_pair(baseline=asked.first, run=asked.second)
    for name in (first, second):
        workspace.judged(name)
    if first == second:
        raise InputError(f"{first} is compared with itself", fix="take two runs")

    def new() -> Change:
        more: dict[str, Any] = {"watch": watched(workspace)} if workspace.watch else {}
        if workspace.log:
            test = ab_test(workspace)
            arms = test.assignment.arms
            more |= {"test": test} if second in arms[1:] and first not in arms[1:] else {}
        runs = [workspace.judged(name).run for name in (first, second)]
        known = {"queries": workspace.topics, "attributes": workspace.attributes}
        return review(workspace.qrels, *runs, **known, **more)

    return workspace.remember(("/change", first, second), new)
