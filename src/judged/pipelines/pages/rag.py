"""The pages of answers, and their twins in JSON."""

from __future__ import annotations

from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from judged.interface.pages.answer_pages import NotOpenError, answer_page, first_rows, leading, with_tables
from judged.interface.pages.attributes import cut
from judged.interface.pages.filters import query
from judged.interface.pages.pagination import LONGEST
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import Sliced
from judged.interface.pages.workspace import Opened, remembered
from judged.pipelines.rag import explain, waterfall
from judged.results import Answer, Lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.interface.pages.workspace import Workspace
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.rag.waterfall_answer import Waterfall
    from judged.results import Table

router = APIRouter(tags=["rag"])
_TABS = {"/rag": "Where evidence is lost", "/rag/scores": "Scores", "/rag/topic": "One answer"}


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


def _shown(_: Workspace, _asked: Parameters, answer: Answer | None) -> dict[str, Any]:
    """Lead from topics to their answers; what an answer was given stands beside it."""

    def topics(table: Table) -> Table:
        def address(row: Mapping[str, Any]) -> str:
            return f"/rag/topic{query({'topic': row['query_id'], 'system': row['run']})}"

        return first_rows(leading(table, "query_id", address))

    blocks = with_tables(answer.blocks() if answer else (), topics=topics, lost=topics)
    beside = [block for block in blocks if isinstance(block, Lists)]
    return {"beside": beside, "blocks": [block for block in blocks if block not in beside]}


_page = partial(answer_page, router, "rag.html", shown=_shown, label="Answers", tabs=_TABS)


@_page("/rag", "Where evidence is lost", "Where evidence is lost")
@remembered
def evidence(workspace: Opened, asked: Annotated[AskedWaterfall, Query()]) -> Waterfall:
    """Follow evidence from the corpus to the answer: what each step passes on, and which one to work on."""
    given = _given(workspace)
    named = [asked.run] if asked.run else [name for name in workspace.run_names if name in given.run_names]
    if asked.where.strip():
        given = given.of_topics([*compress(workspace.query_ids, workspace.mask(asked.where))])
    runs = {name: workspace.judged(name).run for name in named} or None
    slicing = cut(workspace, asked) if asked.names else None
    return waterfall(
        given, workspace.qrels, runs=runs, traces=None if runs else workspace.parts.get("traces"), slicing=slicing
    )


@_page("/rag/scores", "Scores of answers", "Scores of answers")
@remembered
def scores_of_answers(workspace: Opened, asked: Annotated[AskedScores, Query()]) -> Answer:
    """Score answers by what they say, cite and rest on."""
    from judged.pipelines.rag import evaluate

    measures = [name.strip() for name in asked.measures.split(",") if name.strip()] or None
    return evaluate(_given(workspace), measures, qrels=workspace.qrels)


@_page("/rag/topic", "One answer", "One answer")
def one_answer(workspace: Opened, asked: Annotated[AskedAnswer, Query()]) -> Answer:
    """Lay one answer out: what it says, what supports that, what it was given, and what it should say."""
    given = _given(workspace)
    topic: str = asked.topic or given["answers"]["query_id"][0].as_py()
    known = workspace.qrels if topic in workspace.query_ids else None
    return explain(given, topic=topic, run=asked.system or given.run_names[0], qrels=known, queries=workspace.topics)


def _given(workspace: Workspace) -> Responses:
    if "responses" not in workspace.parts:
        about = "Open answers, with what they cite and what is known of it, together with judgments and runs:"
        raise NotOpenError("no answers are open", "judged serve QRELS RUN --rag RESPONSES", about)
    return workspace.parts["responses"]
