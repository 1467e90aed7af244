"""Judging pages and their JSON API."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from judged.data.write import write_qrels, write_trec
from judged.errors import InputError
from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.answers import page
from judged.interface.pages.filters import query_string
from judged.interface.pages.guard import JUDGE_COOKIE, NAME_COOKIE, judge_of
from judged.interface.pages.pagination import PageNumber, Paging
from judged.interface.pages.problems import PROBLEMS, Parameters, Text, text_field
from judged.interface.pages.workspace import JUDGE, CurrentWorkspace, LockedFolder, Workspace, workspace_holder
from judged.labels.calibration import Calibration, calibrate
from judged.labels.consensus import qrels_of
from judged.labels.disagreements import disagreements
from judged.labels.labels import ADJUDICATOR, Labels
from judged.labels.pages.tasks import NewLabel, NewLabels, next_tasks, save_labels, scale_data, trial_store, undo_label
from judged.labels.trust import LabelQuality, quality
from judged.scoring.default_measures import DEFAULT_MEASURE

if TYPE_CHECKING:
    from judged.data.run import Run
    from judged.labels.store import LabelStore


router = APIRouter(tags=["judging"])
_BATCH = 20  # tasks per page
_PAIRS = 20  # per page of disagreements
_SEE_OTHER = 303


class JudgingParams(Parameters):
    """Query parameters of the judging page."""

    token: str | None = Field(None, alias="as", max_length=200, description="Token of a judge.")
    task: int | None = Field(None, ge=0, le=2**53, description="Id of the task to show first.")
    switch: bool = Field(default=False, description="Whether to ask for the name of the judge again.")


class TaskParams(Parameters):
    """Query parameters for tasks."""

    judge: Text = text_field("Name of the judge. Default: the judge who is logged in.", limit=200)
    limit: int = Field(_BATCH, ge=1, le=200, description="Maximum number of tasks to return.")


class DisagreementParams(Parameters):
    """Query parameters of the page of disagreements."""

    page: PageNumber = 1


class JudgeForm(BaseModel):
    """The name of a judge."""

    judge: Text = Field(min_length=1, max_length=200, pattern=r"\S", description="Name of the judge.")


class AnswerForm(JudgeForm):
    """The form of a task."""

    task: int = Field(ge=0, le=2**53)
    answer: str = Field(max_length=40)
    note: Text = Field("", max_length=10_000)


class GradeForm(BaseModel):
    """A grade of a pair, with or without a task."""

    topic: Text = Field(min_length=1, max_length=8192, description="Id of the topic.")
    doc_id: Text = Field(min_length=1, max_length=8192, description="Id of the document.")
    grade: float = Field(allow_inf_nan=False, description="Grade on the scale of the store.")
    note: Text = text_field("Note that the judge wrote.", limit=10_000)


class TopicGradeForm(GradeForm, JudgeForm):
    """The form for a grade on the page of a topic."""

    back: str = Field("", max_length=20_000)


@router.get("/judging", include_in_schema=False)
def judging_page(request: Request, workspace: CurrentWorkspace, params: Annotated[JudgingParams, Query()]) -> Response:
    """Show the next task, log in a judge with a token, or ask for a name."""
    store = workspace.labels
    if params.token is not None:
        if store is None or store.judge_with_token(params.token) is None:
            raise InputError("the token is not valid", fix="ask the sender of the link for a new link")
        response = RedirectResponse("/judging", _SEE_OTHER)
        # A token identifies the judge, so a name from before must not win.
        response.delete_cookie(NAME_COOKIE)
        # Not "strict": a link in an e-mail is a cross-site request, and the redirect must have the cookie.
        response.set_cookie(JUDGE_COOKIE, params.token, httponly=True, samesite="lax", path="/", max_age=90 * 86_400)
        return response
    judge = judge_of(request, store) if store else ""
    values: dict[str, Any] = {"title": "Judging", "judge": judge, "has_token": JUDGE in request.scope, "batch": None}
    if store is not None and judge and not params.switch:
        batch = next_tasks(store, judge, _BATCH, params.task)
        batch["scale"] = values["scale"] = scale_data(store)
        values |= {"batch": batch, "task": next(iter(batch["tasks"]), None), "is_adjudicator": _is_adjudicator(request)}
    return page(request, "judging.html", **values)


@router.post("/judging", include_in_schema=False)
def answer_by_form(request: Request, workspace: CurrentWorkspace, form: Annotated[AnswerForm, Form()]) -> Response:
    """Store an answer, and show the next task."""
    store, judge = _store(workspace), _check_judge(request, form.judge)
    if form.answer == "undo":
        undone = undo_label(store, judge)
        return RedirectResponse(f"/judging?task={undone['task']['task']}" if undone else "/judging", _SEE_OTHER)
    grades = {str(grade.grade): grade.grade for grade in store.scale} | {"skip": None, "later": None}
    if form.answer not in grades:
        raise InputError(f"unknown answer {form.answer!r}", fix=f"use {', '.join(grades)}, or undo")
    valid = form.answer != "later"
    label = NewLabel(task=form.task, grade=grades[form.answer], note=form.note, valid=valid, seconds=None)
    save_labels(store, judge, [label])
    return RedirectResponse("/judging", _SEE_OTHER)


@router.post("/judging/trial", include_in_schema=False)
def try_judging(request: Request, workspace: CurrentWorkspace) -> Response:
    """Create a temporary label store, if none is open."""
    if workspace.labels is None:
        holder = workspace_holder(request)
        holder.trial = holder.trial or LockedFolder()
        holder.workspace = replace(holder.workspace, labels=trial_store(workspace, holder.trial.path / "labels.db"))
    return RedirectResponse("/judging", _SEE_OTHER)


@router.post("/judging/name", include_in_schema=False)
def choose_name(request: Request, form: Annotated[JudgeForm, Form()]) -> Response:
    """Log in under a name; a judge with a token keeps their own name."""
    name = _check_judge(request, form.judge.strip())
    response = RedirectResponse("/judging", _SEE_OTHER)
    response.set_cookie(NAME_COOKIE, quote(name), httponly=True, samesite="strict", path="/", max_age=90 * 86_400)
    if JUDGE not in request.scope:
        response.delete_cookie(JUDGE_COOKIE)
    return response


@router.get("/judging/disagreements", include_in_schema=False)
def disagreements_page(
    request: Request, workspace: CurrentWorkspace, params: Annotated[DisagreementParams, Query()]
) -> HTMLResponse:
    """Show disagreements, with a form for the adjudicator."""
    values: dict[str, Any] = {"title": "Disagreements", "query": params, "label": "Labels", "tabs": _TABS}
    if workspace.labels is None:
        return page(request, "disagreements.html", answer=None, closed=_CLOSED, **values)
    store = _store_of_adjudicator(request, workspace)
    result = disagreements(store)
    records = result.table("pairs").records()
    paging = Paging.for_page(params.page, len(records), _PAIRS)
    rows = [
        row | {"topic": store.topic(row["query_id"]), "document": store.document(row["doc_id"])}
        for row in paging.of(records)
    ]
    values |= {"rows": rows, "paging": paging, "scale": scale_data(store)}
    return page(request, "disagreements.html", answer=result, **values)


@router.post("/judging/disagreements", include_in_schema=False)
def settle_by_form(request: Request, workspace: CurrentWorkspace, form: Annotated[GradeForm, Form()]) -> Response:
    """Store the final grade of a pair, and show the other disagreements."""
    settle_by_program(request, workspace, form)
    return RedirectResponse("/judging/disagreements", _SEE_OTHER)


@router.get("/judging/qrels.txt", include_in_schema=False)
def download_qrels(request: Request, workspace: CurrentWorkspace) -> Response:
    """Send qrels of the most frequent grades, as `judged labels qrels` writes them; CSV if TREC cannot store an id."""
    qrels, file = qrels_of(_store_of_adjudicator(request, workspace)), StringIO()
    try:
        write_trec(qrels.table, "qrels", file, "qrels.txt")
    except InputError:
        with TemporaryDirectory() as folder:
            path = Path(folder, "qrels.csv")
            write_qrels(qrels, path)
            headers = {"Content-Disposition": "attachment; filename=qrels.csv"}
            return Response(path.read_bytes(), media_type="text/csv; charset=utf-8", headers=headers)
    return Response(file.getvalue(), media_type="text/plain; charset=utf-8")


@router.post("/judging/label", include_in_schema=False)
def label_in_place(request: Request, workspace: CurrentWorkspace, form: Annotated[TopicGradeForm, Form()]) -> Response:
    """Store a grade from the page of a topic."""
    if JUDGE in request.scope:
        raise InputError("judges with a token can judge tasks only", fix="go to /judging")
    _store(workspace).add(form.judge.strip(), form.topic, form.doc_id, form.grade, note=form.note)
    query = query_string({"topic": form.topic, "saved": "true"}) if not form.back else f"?{form.back}&saved=true"
    response = RedirectResponse(f"/topic{query}#graded", _SEE_OTHER)
    response.set_cookie(NAME_COOKIE, quote(form.judge.strip()), httponly=True, samesite="strict", path="/")
    return response


@router.get("/api/v1/judging", summary="Next tasks of a judge", responses=PROBLEMS)
def tasks_as_json(
    request: Request, workspace: CurrentWorkspace, params: Annotated[TaskParams, Query()]
) -> dict[str, Any]:
    """Return tasks in the order of the judge, with texts, the scale, and the number of completed tasks.

    Titles and texts are lists of parts; parts with an odd index, from 0, are words of the query.
    """
    if workspace.labels is None:
        return {"judge": params.judge, "store": "", "done": 0, "assigned": 0, "tasks": [], "scale": []}
    judge = _check_judge(request, params.judge or judge_of(request, workspace.labels))
    return next_tasks(workspace.labels, judge, params.limit) | {"scale": scale_data(workspace.labels)}


@router.post("/api/v1/judging", summary="Save labels", responses=PROBLEMS)
def answer_by_program(request: Request, workspace: CurrentWorkspace, body: NewLabels) -> dict[str, Any]:
    """Store labels; a label that is sent twice counts once, because the last label of a task counts."""
    return {"saved": save_labels(_store(workspace), _check_judge(request, body.judge), body.labels)}


@router.post("/api/v1/judging/undo", summary="Undo the last label", responses=PROBLEMS)
def undo_by_program(request: Request, workspace: CurrentWorkspace, body: JudgeForm) -> dict[str, Any]:
    """Reopen the last task of a judge, and return it with grade and note; null if the judge has no labels."""
    return {"undone": undo_label(_store(workspace), _check_judge(request, body.judge))}


@router.get("/api/v1/judging/disagreements", summary="Disagreements between judges", responses=PROBLEMS)
def disagreements_as_json(request: Request, workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return pairs of topic and document with different grades, the largest difference first, and all labels."""
    return disagreements(_store_of_adjudicator(request, workspace) if workspace.labels else None).to_dict()


@router.post("/api/v1/judging/disagreements", summary="Save a final grade", responses=PROBLEMS)
def settle_by_program(request: Request, workspace: CurrentWorkspace, body: GradeForm) -> dict[str, Any]:
    """Store a final grade, as a label of the judge "adjudicator"."""
    store = _store_of_adjudicator(request, workspace)
    store.add(ADJUDICATOR, body.topic, body.doc_id, body.grade, note=body.note)
    return {"saved": 1}


def _check_judge(request: Request, judge: str) -> str:
    """Return the name of the judge; raise InputError if it is empty or the token is another judge's."""
    token_judge = request.scope.get(JUDGE, judge)
    if judge != token_judge:
        fix = f"judge as {token_judge}, or use the link of {judge}"
        raise InputError(f"the token belongs to {token_judge}, not to {judge}", fix=fix)
    if not judge.strip():
        raise InputError("no judge is logged in", fix="pass the name of a judge, or choose a name at /judging")
    return judge


def _store(workspace: Workspace) -> LabelStore:
    if workspace.labels is None:
        raise InputError("no label store is open", fix="open a store: judged serve --labels STORE")
    return workspace.labels


def _is_adjudicator(request: Request) -> bool:
    """Return whether the user may see the labels of others: judges with open tasks must not."""
    return request.scope.get(JUDGE, ADJUDICATOR) == ADJUDICATOR


def _store_of_adjudicator(request: Request, workspace: Workspace) -> LabelStore:
    """Return the store; raise InputError if the user may not see the labels of others."""
    if not _is_adjudicator(request):
        fix = f"log in as {ADJUDICATOR!r}, or open the workbench on the machine that runs it"
        raise InputError("judges are not allowed to see the labels of other judges", fix=fix)
    return _store(workspace)


labels_router = APIRouter(tags=["labels"])
_TABS = {
    "/judging": "Judging",
    "/judging/disagreements": "Disagreements",
    "/labels/quality": "Agreement",
    "/labels/calibration": "Models and people",
}
_CLOSED = NotOpenError(
    "no labels are open",
    "judged serve QRELS RUN --labels STORE",
    "Labels are grades of documents by single judges. Open a store of labels, alone or with judgments and runs:",
)
_answer_route = partial(answer_page, labels_router, "labels.html", label="Labels", tabs=_TABS)


class LabelQualityParams(Parameters):
    """Query parameters of the quality and calibration pages."""

    measure: str = text_field(
        "Measure that runs are scored by. The measure must be a mean over topics.", limit=200, default=DEFAULT_MEASURE
    )


@_answer_route("/labels/quality", "Agreement", "Quality of labels")
def trust(workspace: CurrentWorkspace, params: Annotated[LabelQualityParams, Query()]) -> LabelQuality:
    """Measure agreement between judges, consistency of each judge, and effects of judges on system scores."""
    labels, runs = _labels_and_runs(workspace)
    # Labels are only appended, so their number identifies the state of the store.
    key = "label quality", len(labels), params.measure
    return workspace.cached(key, lambda: quality(workspace.labels, runs, params.measure))


@_answer_route("/labels/calibration", "Models and people", "Model judges compared with people")
def calibration(workspace: CurrentWorkspace, params: Annotated[LabelQualityParams, Query()]) -> Calibration:
    """Compare models as judges with people, and estimate the value of their labels."""
    labels, runs = _labels_and_runs(workspace)
    if "model" not in labels.table["kind"].unique().to_pylist():
        hint = "A language model can grade the open tasks of a store, at an endpoint with the API of OpenAI:"
        raise NotOpenError("no model has graded documents", "judged labels ask STORE", hint)
    key = "calibration", len(labels), params.measure
    return workspace.cached(key, lambda: calibrate(labels, None, runs, params.measure))


def _labels_and_runs(workspace: Workspace) -> tuple[Labels, list[Run]]:
    """Return the labels of the store, and the open runs if they share topics with the labels."""
    if workspace.labels is None:
        raise _CLOSED
    labels = workspace.labels.labels()
    shared_topics = set(labels.table["query_id"].unique().to_pylist()) & set(workspace.query_ids)
    return labels, [judged_list.run for judged_list in workspace.lists.values()] if shared_topics else []
