"""The pages of answers, and their twins in JSON."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.answer import Lists, Table
from judged.errors import InputError, JudgedError
from judged.rag import explain, waterfall
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import query
from judged.web.pagination import LONGEST
from judged.web.problems import PROBLEMS, Parameters
from judged.web.slices.answer import Sliced
from judged.web.slices.attributes import attributes, cut, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.answer import Answer
    from judged.rag.responses import Responses
    from judged.rag.waterfall_answer import Waterfall
    from judged.web.workspace import Workspace

router = APIRouter()
_ROWS = 100  # of a long table on a page; the twin has all


class AskedWaterfall(Sliced):
    """Over which topics, and what stands before the context."""

    run: str = Field("", max_length=LONGEST, description="The run behind the answers; left out, the traces, if open.")


class AskedScores(Parameters):
    """By which measures."""

    measures: str = Field("", max_length=500, description="Measures, with commas between; left out, those that apply.")


class AskedAnswer(Parameters):
    """Which answer."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first that was answered without it.")
    system: str = Field("", max_length=LONGEST, description="The system; the first one without it.")


@router.get("/api/v1/rag", tags=["rag"], summary="Where evidence is lost", responses=PROBLEMS)
def waterfall_as_json(workspace: Opened, asked: Annotated[AskedWaterfall, Query()]) -> dict[str, Any]:
    """Follow evidence from the corpus to the answer: what each step passes on, and which one to work on."""
    return _waterfall(workspace, asked).to_dict()


@router.get("/api/v1/rag/scores", tags=["rag"], summary="Scores of answers", responses=PROBLEMS)
def scores_as_json(workspace: Opened, asked: Annotated[AskedScores, Query()]) -> dict[str, Any]:
    """Score answers by what they say, cite and rest on."""
    return _scores(workspace, asked).to_dict()


@router.get("/api/v1/rag/topic", tags=["rag"], summary="One answer", responses=PROBLEMS)
def answer_as_json(workspace: Opened, asked: Annotated[AskedAnswer, Query()]) -> dict[str, Any]:
    """Lay one answer out: what it says, what supports that, what it was given, and what it should say."""
    return _answer(workspace, asked).to_dict()


@router.get("/rag", include_in_schema=False)
def waterfall_page(request: Request, workspace: Opened, asked: Annotated[AskedWaterfall, Query()]) -> HTMLResponse:
    """Show where evidence is lost, with ways to answers."""
    return _page(request, workspace, asked, _waterfall, "Where evidence is lost")


@router.get("/rag/scores", include_in_schema=False)
def scores_page(request: Request, workspace: Opened, asked: Annotated[AskedScores, Query()]) -> HTMLResponse:
    """Show the scores of answers."""
    return _page(request, workspace, asked, _scores, "Scores of answers")


@router.get("/rag/topic", include_in_schema=False)
def answer_page(request: Request, workspace: Opened, asked: Annotated[AskedAnswer, Query()]) -> HTMLResponse:
    """Show one answer beside its context."""
    return _page(request, workspace, asked, _answer, "One answer")


def _given(workspace: Workspace) -> Responses:
    if workspace.responses is None:
        raise InputError("no answers are open", fix="open them: judged serve QRELS RUN --rag RESPONSES")
    return workspace.responses


def _waterfall(workspace: Workspace, asked: AskedWaterfall) -> Waterfall:
    given, where = _given(workspace), asked.where.strip()
    if asked.run and asked.run not in workspace.run_names:
        raise InputError(f"no run {asked.run!r} is open", fix=f"use one of {', '.join(workspace.run_names)}")

    def new() -> Waterfall:
        own = given
        if where:
            mask = workspace.mask(where).tolist()
            own = own.of_topics([topic for topic, kept in zip(workspace.query_ids, mask, strict=True) if kept])
        named = [asked.run] if asked.run else [name for name in workspace.run_names if name in given.run_names]
        runs = {name: workspace.judged(name).run for name in named} or None
        slicing = cut(workspace, asked) if asked.names else None
        return waterfall(own, workspace.qrels, runs=runs, traces=None if runs else workspace.traces, slicing=slicing)

    return workspace.remember(("waterfall", asked.run, asked.names, where, asked.least), new)


def _scores(workspace: Workspace, asked: AskedScores) -> Answer:
    from judged.rag import evaluate

    measures = [name.strip() for name in asked.measures.split(",") if name.strip()] or None
    key = ("scores of answers", *(measures or ()))
    return workspace.remember(key, lambda: evaluate(_given(workspace), measures, qrels=workspace.qrels))


def _answer(workspace: Workspace, asked: AskedAnswer) -> Answer:
    given = _given(workspace)
    topic: str = asked.topic or given["answers"]["query_id"][0].as_py()
    known = workspace.qrels if topic in workspace.query_ids else None
    system = asked.system or given.run_names[0]
    return explain(given, topic=topic, run=system, qrels=known, queries=workspace.topics)


def _page(
    request: Request, workspace: Workspace, asked: Any, make: Callable[[Workspace, Any], Answer], title: str
) -> HTMLResponse:
    """Lay the blocks of an answer out below the form of answers."""
    values: dict[str, Any] = {"problem": None, "blocks": (), "beside": (), "answer": None}
    if workspace.responses is not None:
        try:
            answer = make(workspace, asked)
            blocks = [_linked(block) for block in answer.blocks()]
            beside = [block for block in blocks if isinstance(block, Lists)]
            values |= {"answer": answer, "beside": beside}
            values["blocks"] = [block for block in blocks if block not in beside]
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, getattr(asked, "where", ""))
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    known = attributes(workspace).records()
    return page(request, "rag.html", status=status, asked=asked, attributes=known, title=title, **values)


def _linked(block: Any) -> Any:
    """Lead from topics to their answers, and show the first rows of a long table."""
    if not isinstance(block, Table) or block.name not in {"topics", "lost"}:
        return block
    rows = block.records()
    ways = [f"/rag/topic{query({'topic': row['query_id'], 'system': row['run']})}" for row in rows]
    more = f"the first {_ROWS} of {len(block):,}" if len(block) > _ROWS else ""
    return replace(block.changed("query_id", links=ways), note=more).take(range(min(len(block), _ROWS)))
