"""The pages on which people judge, and their twins in JSON."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import pvariance
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from judged.errors import InputError
from judged.interface.pages.answer_pages import NotOpenError, answer_page
from judged.interface.pages.answers import PageAnswer, page
from judged.interface.pages.filters import query_string
from judged.interface.pages.guard import JUDGE_COOKIE, NAME_COOKIE, judge_of
from judged.interface.pages.pagination import Paging
from judged.interface.pages.problems import PROBLEMS, Parameters, Text
from judged.interface.pages.workspace import JUDGE, CurrentWorkspace, LockedFolder, workspace_holder
from judged.labels.calibration import Calibration, calibrate
from judged.labels.labels import ADJUDICATOR
from judged.labels.pages.tasks import NewLabel, NewLabels, keep, scale, taken_back, tasks, trial_store
from judged.labels.trust import LabelQuality, quality
from judged.results import ANY, TEXT, Table, columns_of, significant
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged.data.run import Run
    from judged.interface.pages.workspace import Workspace
    from judged.labels.labels import Labels
    from judged.labels.store import LabelStore
    from judged.results import Answer


State: TypeAlias = Literal["no-shared-pair", "too-few-pairs", "no-disagreement", "disagreement"]


class Disagreements(PageAnswer):
    """Pairs that judges grade differently, the largest difference first, those that are settled last.

    ``shared`` counts the pairs with grades of several judges, ``state`` says what follows: ``no-shared-pair`` (nothing
    can be compared), ``too-few-pairs`` (the same grades, on too few pairs to say that judges agree),
    ``no-disagreement``, or ``disagreement``.
    """

    kind: ClassVar[str] = "disagreements"


def disagreements(store: LabelStore | None) -> Disagreements:
    """Find the pairs that several judges grade differently."""
    rows: list[dict[str, Any]] = []
    shared = 0
    for (query_id, doc_id), given in _by_pair(store).items():
        final = next((label["grade"] for label in given if label["judge"] == ADJUDICATOR), None)
        others = sorted((label for label in given if label["judge"] != ADJUDICATOR), key=lambda label: -label["grade"])
        grades = [label["grade"] for label in others]
        shared += len(grades) > 1
        if len(set(grades)) > 1:
            labels = [{name: label[name] for name in ("judge", "kind", "grade", "note", "seconds")} for label in others]
            row = {"query_id": query_id, "doc_id": doc_id, "spread": grades[0] - grades[-1]}
            rows.append(row | {"variance": pvariance(grades), "final": final, "labels": labels})
    rows.sort(
        key=lambda row: (row["final"] is not None, -row["spread"], -row["variance"], row["query_id"], row["doc_id"])
    )
    pair = (("query_id", TEXT, "Topic"), ("doc_id", TEXT, "Document"))
    grade = significant()
    columns = columns_of(rows, *pair, ("spread", grade, "Spread"), ("final", grade, "Final"), ("labels", ANY, "Labels"))
    about = {
        "n": len({row["query_id"] for row in rows}),
        "open": sum(row["final"] is None for row in rows),
        "shared": shared,
        "state": _state(shared, len(rows)),
    }
    return Disagreements(about, (Table("pairs", columns, only="data"),))


def _state(shared: int, different: int) -> State:
    if different:
        return "disagreement"
    if not shared:
        return "no-shared-pair"
    return "too-few-pairs" if insufficiency(shared, "verdict") else "no-disagreement"


def _by_pair(store: LabelStore | None) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Give what was said of each pair when judges saw it first; nothing where no label is there."""
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with suppress(InputError):
        for label in [] if store is None else store.labels().graded.to_pylist():
            if label["repeat"] == 0:
                pairs.setdefault((label["query_id"], label["doc_id"]), []).append(label)
    return pairs


router = APIRouter(tags=["judging"])
_BATCH = 20  # tasks that a page holds
_PAIRS = 20  # on a page of disagreements
_SEE_OTHER = 303


class AskedPage(Parameters):
    """Who judges, and what."""

    token: str | None = Field(None, alias="as", max_length=200, description="The token of a judge.")
    task: int | None = Field(None, ge=0, le=2**53, description="The task that is shown first.")
    switch: bool = Field(default=False, description="Whether to choose another name.")


class AskedTasks(Parameters):
    """Whose tasks, and how many."""

    judge: Text = Field("", max_length=200, description="Who judges; who is logged in, without it.")
    limit: int = Field(_BATCH, ge=1, le=200, description="So many tasks at most.")


class AskedPairs(Parameters):
    """Which disagreements."""

    page: int = Field(1, ge=0, le=1_000_000, description="Which page of the pairs; 0 for all.")


class Judge(BaseModel):
    """A judge by name."""

    judge: Text = Field(min_length=1, max_length=200, pattern=r"\S", description="Who judges.")


class Answered(Judge):
    """The form of a task."""

    task: int = Field(ge=0, le=2**53)
    answer: str = Field(max_length=40)
    note: Text = Field("", max_length=10_000)


class Graded(BaseModel):
    """A grade of a pair, whether or not it is a task."""

    topic: Text = Field(min_length=1, max_length=8192, description="The topic's id.")
    doc_id: Text = Field(min_length=1, max_length=8192, description="The document's id.")
    grade: float = Field(allow_inf_nan=False, description="One of the scale.")
    note: Text = Field("", max_length=10_000, description="A remark.")


class GradedInPlace(Graded, Judge):
    """The form on the page of a topic."""

    back: str = Field("", max_length=20_000)


@router.get("/judging", include_in_schema=False)
def judging_page(request: Request, workspace: CurrentWorkspace, asked: Annotated[AskedPage, Query()]) -> Response:
    """Show the next task; or let somebody in, or choose a name."""
    store = workspace.labels
    if asked.token is not None:
        if store is None or store.judge_of(asked.token) is None:
            raise InputError("no judge has this token", fix="ask whoever sent the link for a new one")
        answer = RedirectResponse("/judging", _SEE_OTHER)
        answer.delete_cookie(NAME_COOKIE)
        # A link in a letter leads here from another site: such a request must have the cookie when it is sent on.
        answer.set_cookie(JUDGE_COOKIE, asked.token, httponly=True, samesite="lax", path="/", max_age=90 * 86_400)
        return answer
    judge = judge_of(request, store) if store else ""
    values: dict[str, Any] = {"title": "Judging", "judge": judge, "own": JUDGE in request.scope, "batch": None}
    if store is not None and judge and not asked.switch:
        batch = tasks(store, judge, _BATCH, asked.task)
        batch["scale"] = values["scale"] = scale(store)
        values |= {"batch": batch, "task": next(iter(batch["tasks"]), None), "settles": _settles(request)}
    return page(request, "judging.html", **values)


@router.post("/judging", include_in_schema=False)
def answer_by_form(request: Request, workspace: CurrentWorkspace, given: Annotated[Answered, Form()]) -> Response:
    """Keep an answer, and show the next task."""
    store, judge = _store(workspace), _checked(request, given.judge)
    if given.answer == "undo":
        back = taken_back(store, judge)
        return RedirectResponse(f"/judging?task={back['task']['task']}" if back else "/judging", _SEE_OTHER)
    grades = {str(one.grade): one.grade for one in store.scale} | {"skip": None, "later": None}
    if given.answer not in grades:
        raise InputError(f"no answer {given.answer!r}", fix=f"use one of {', '.join(grades)}, undo")
    valid = given.answer != "later"
    label = NewLabel(task=given.task, grade=grades[given.answer], note=given.note, valid=valid, seconds=None)
    keep(store, judge, [label])
    return RedirectResponse("/judging", _SEE_OTHER)


@router.post("/judging/trial", include_in_schema=False)
def try_judging(request: Request, workspace: CurrentWorkspace) -> Response:
    """Make labels to try judging with, where none are open."""
    if workspace.labels is None:
        desk = workspace_holder(request)
        desk.trial = desk.trial or LockedFolder()
        desk.workspace = replace(desk.workspace, labels=trial_store(workspace, desk.trial.path / "labels.db"))
    return RedirectResponse("/judging", _SEE_OTHER)


@router.post("/judging/name", include_in_schema=False)
def choose_name(request: Request, given: Annotated[Judge, Form()]) -> Response:
    """Go on under a name; who has a token keeps theirs."""
    name = _checked(request, given.judge.strip())
    answer = RedirectResponse("/judging", _SEE_OTHER)
    answer.set_cookie(NAME_COOKIE, quote(name), httponly=True, samesite="strict", path="/", max_age=90 * 86_400)
    if JUDGE not in request.scope:
        answer.delete_cookie(JUDGE_COOKIE)
    return answer


@router.get("/judging/disagreements", include_in_schema=False)
def disagreements_page(
    request: Request, workspace: CurrentWorkspace, asked: Annotated[AskedPairs, Query()]
) -> HTMLResponse:
    """Show where judges disagree, and let an adjudicator decide."""
    store = _settled_in(request, workspace)
    found = disagreements(store)
    records = found.table("pairs").records()
    paging = Paging.for_page(asked.page, len(records), _PAIRS)
    rows = [
        row | {"topic": store.topic(row["query_id"]), "document": store.document(row["doc_id"])}
        for row in paging.of(records)
    ]
    values: dict[str, Any] = {"rows": rows, "asked": asked, "paging": paging, "scale": scale(store)}
    return page(request, "disagreements.html", title="Disagreements", about=found.about, **values)


@router.post("/judging/disagreements", include_in_schema=False)
def settle_by_form(request: Request, workspace: CurrentWorkspace, given: Annotated[Graded, Form()]) -> Response:
    """Keep the final grade of a pair, and show what is left."""
    settle_by_program(request, workspace, given)
    return RedirectResponse("/judging/disagreements", _SEE_OTHER)


@router.post("/judging/label", include_in_schema=False)
def label_in_place(request: Request, workspace: CurrentWorkspace, given: Annotated[GradedInPlace, Form()]) -> Response:
    """Keep a grade that was given on the page of a topic."""
    if JUDGE in request.scope:
        raise InputError("only tasks can be judged with a token", fix="go to /judging")
    _store(workspace).add(given.judge.strip(), given.topic, given.doc_id, given.grade, note=given.note)
    back = query_string({"topic": given.topic, "saved": "true"}) if not given.back else f"?{given.back}&saved=true"
    answer = RedirectResponse(f"/topic{back}#graded", _SEE_OTHER)
    answer.set_cookie(NAME_COOKIE, quote(given.judge.strip()), httponly=True, samesite="strict", path="/")
    return answer


@router.get("/api/v1/judging", summary="The next tasks of a judge", responses=PROBLEMS)
def tasks_as_json(
    request: Request, workspace: CurrentWorkspace, asked: Annotated[AskedTasks, Query()]
) -> dict[str, Any]:
    """Give tasks in the order of the judge, with texts, the scale, and how many are done.

    Titles and texts are lists of pieces: those at odd places, from 0, are words of the query.
    """
    if workspace.labels is None:
        return {"judge": asked.judge, "store": "", "done": 0, "assigned": 0, "tasks": [], "scale": []}
    judge = _checked(request, asked.judge or judge_of(request, workspace.labels))
    return tasks(workspace.labels, judge, asked.limit) | {"scale": scale(workspace.labels)}


@router.post("/api/v1/judging", summary="Keep labels", responses=PROBLEMS)
def answer_by_program(request: Request, workspace: CurrentWorkspace, given: NewLabels) -> dict[str, Any]:
    """Keep what a judge says of tasks; sent twice it counts once, as the last label of a task counts."""
    return {"kept": keep(_store(workspace), _checked(request, given.judge), given.labels)}


@router.post("/api/v1/judging/undo", summary="Take the last label back", responses=PROBLEMS)
def undo_by_program(request: Request, workspace: CurrentWorkspace, given: Judge) -> dict[str, Any]:
    """Open the task again that a judge did last, and give it with what they said; null if none is done."""
    return {"taken_back": taken_back(_store(workspace), _checked(request, given.judge))}


@router.get("/api/v1/judging/disagreements", summary="Where judges disagree", responses=PROBLEMS)
def disagreements_as_json(request: Request, workspace: CurrentWorkspace) -> dict[str, Any]:
    """Give the pairs that judges grade differently, the most telling first, with what each said."""
    return disagreements(_settled_in(request, workspace) if workspace.labels else None).to_dict()


@router.post("/api/v1/judging/disagreements", summary="Settle a disagreement", responses=PROBLEMS)
def settle_by_program(request: Request, workspace: CurrentWorkspace, given: Graded) -> dict[str, Any]:
    """Keep the grade that is final: a label of the judge "adjudicator"."""
    store = _settled_in(request, workspace)
    store.add(ADJUDICATOR, given.topic, given.doc_id, given.grade, note=given.note)
    return {"kept": 1}


def _checked(request: Request, judge: str) -> str:
    """Refuse to judge under a name that somebody else has."""
    own = request.scope.get(JUDGE, judge)
    if judge != own:
        raise InputError(f"this token is that of {own}", fix=f"judge as {own}, or open the link of {judge}")
    if not judge.strip():
        raise InputError("nobody is logged in", fix="name a judge, or choose a name at /judging")
    return judge


def _store(workspace: Workspace) -> LabelStore:
    if workspace.labels is None:
        raise InputError("no labels are open", fix="open a store of them: judged serve --labels STORE")
    return workspace.labels


def _settles(request: Request) -> bool:
    """Tell whether somebody may see what others said: a judge who has a task before them must not."""
    return request.scope.get(JUDGE, ADJUDICATOR) == ADJUDICATOR


def _settled_in(request: Request, workspace: Workspace) -> LabelStore:
    """Give the store to somebody who may see what others said."""
    if not _settles(request):
        fix = f"only the judge {ADJUDICATOR!r}, and whoever runs the workbench, sees and settles what others said"
        raise InputError("judges do not see the labels of others", fix=fix)
    return _store(workspace)


labels_router = APIRouter(tags=["labels"])
_TABS = {
    "/labels/quality": "Judges",
    "/labels/calibration": "Models against people",
    "/judging/disagreements": "Disagreements to settle",
    "/judging": "Judge",
}


def _title(_: Workspace, _asked: Parameters, answer: Answer | None) -> dict[str, Any]:
    return {"title": answer.title} if answer else {}


_page = partial(answer_page, labels_router, "labels.html", page_values=_title, label="Labels", tabs=_TABS)


class AskedLabels(Parameters):
    """By which measure systems are scored under each judge."""

    measure: str = Field(DEFAULT_MEASURE, max_length=200, description="A mean over topics.")


@_page("/labels/quality", "How far labels can be trusted", "How far labels can be trusted")
def trust(workspace: CurrentWorkspace, asked: Annotated[AskedLabels, Query()]) -> LabelQuality:
    """Say how far judges agree, with the others and with themselves, and what it does to systems."""
    labels, runs = _given(workspace)
    key = "label quality", len(labels), asked.measure
    return workspace.cached(key, lambda: quality(workspace.labels, runs, asked.measure))


@_page("/labels/calibration", "Models against people", "Models against people")
def calibration(workspace: CurrentWorkspace, asked: Annotated[AskedLabels, Query()]) -> Calibration:
    """Set models as judges against people, and say what their labels are worth."""
    labels, runs = _given(workspace)
    key = "calibration", len(labels), asked.measure
    return workspace.cached(key, lambda: calibrate(labels, None, runs, asked.measure))


def _given(workspace: Workspace) -> tuple[Labels, list[Run]]:
    """Give the labels of the store, and the runs that are open if they are of the same topics."""
    if workspace.labels is None:
        about = "Labels say who graded which document. Open a store of them, alone or with judgments and runs:"
        raise NotOpenError("no labels are open", "judged serve QRELS RUN --labels STORE", about)
    labels = workspace.labels.labels()
    shared = set(labels.table["query_id"].unique().to_pylist()) & set(workspace.query_ids)
    return labels, [one.run for one in workspace.lists.values()] if shared else []
