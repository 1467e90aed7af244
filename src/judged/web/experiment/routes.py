"""The pages of an experiment, and their twins in JSON."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.answer import Section, Table
from judged.errors import InputError, JudgedError
from judged.experiments import conclude
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import query
from judged.web.pagination import LONGEST
from judged.web.problems import PROBLEMS, Parameters
from judged.web.slices.attributes import attributes, problem_of
from judged.web.workspace import RESAMPLES

if TYPE_CHECKING:
    from judged.answer import Block
    from judged.experiments.conclusions import Conclusions
    from judged.experiments.trial import Trial, Trials
    from judged.web.workspace import Workspace

router = APIRouter()
_SETTINGS = 100  # of a form


class AskedExperiment(Parameters):
    """By which measure and cost is concluded, and by which slices."""

    measure: str = Field("", max_length=200, description="One of the plan; the first one without it.")
    cost: str = Field("", max_length=200, description="What the front is made of; the median latency without it.")
    by: str = Field("", max_length=500, description="Attributes, with commas between: what factors do on each slice.")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(dict.fromkeys(name for part in self.by.split(",") if (name := part.strip())))


class AskedTrial(Parameters):
    """A topic, and what is tried on it."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first one without it.")
    query: str = Field("", max_length=2000, description="In which words is asked; the topic's own without it.")
    engine: str = Field("", max_length=200, description="An engine or pipeline of the plan; the control's without it.")
    setting: list[str] = Field([], max_length=_SETTINGS, description="Names of settings.")
    value: list[str] = Field([], max_length=_SETTINGS, description="Their values, in the same order.")
    measures: str = Field("", max_length=500, description="Measures, with commas between; the plan's without it.")
    cutoff: int = Field(10, ge=1, le=100, description="How far down both lists are shown.")


@router.get("/api/v1/experiment", tags=["experiment"], summary="What may be concluded", responses=PROBLEMS)
def experiment_as_json(workspace: Opened, asked: Annotated[AskedExperiment, Query()]) -> dict[str, Any]:
    """Say which configuration is best, what it costs, what factors do, what is luck; before it was run, the plan."""
    return _trials(workspace).plan.to_dict() if workspace.results is None else _concluded(workspace, asked).to_dict()


@router.get("/api/v1/experiment/try", tags=["experiment"], summary="A query tried live", responses=PROBLEMS)
def trial_as_json(workspace: Opened, asked: Annotated[AskedTrial, Query()]) -> dict[str, Any]:
    """Ask an engine of the plan with other settings or words, and set its list beside the control's."""
    return _tried(workspace, asked).to_dict()


@router.get("/experiment", include_in_schema=False)
def experiment_page(request: Request, workspace: Opened, asked: Annotated[AskedExperiment, Query()]) -> HTMLResponse:
    """Show what may be concluded, or what is planned."""
    values: dict[str, Any] = {"problem": None, "blocks": (), "answer": None}
    if workspace.trials is not None and workspace.results is None:
        values["blocks"] = workspace.trials.plan.blocks()
    elif workspace.results is not None:
        try:
            answer = _concluded(workspace, asked)
            values |= {"answer": answer, "blocks": [_linked(answer, block) for block in answer.blocks()]}
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
    values["attributes"] = attributes(workspace).records()
    return _page(request, asked, values, "Experiment")


@router.get("/experiment/try", include_in_schema=False)
def trial_page(request: Request, workspace: Opened, asked: Annotated[AskedTrial, Query()]) -> HTMLResponse:
    """Show both lists, below the settings."""
    values: dict[str, Any] = {"problem": None, "blocks": (), "answer": None, "fields": {}}
    if workspace.trials is not None:
        trials = workspace.trials
        asked = asked.model_copy(update={"topic": asked.topic or workspace.query_ids[0]})
        try:
            settings = trials.settings(_changes(asked), asked.engine)
            values["fields"] = trials.fields(settings)
            answer = _tried(workspace, asked)
            values |= {"answer": answer, "blocks": answer.blocks()}
        except JudgedError as error:
            values["problem"] = problem_of(workspace, error, "")
            values["fields"] = values["fields"] or trials.fields({**trials.plan.control})
    return _page(request, asked, values, "Try a query")


def _trials(workspace: Workspace) -> Trials:
    if workspace.trials is None:
        raise InputError("no engine is configured", fix="name a plan: judged serve --experiment PLAN.toml")
    return workspace.trials


def _concluded(workspace: Workspace, asked: AskedExperiment) -> Conclusions:
    results = workspace.results
    if results is None:
        raise InputError("no results of an experiment are open", fix="open them: judged serve --experiment PLAN.toml")

    def new() -> Conclusions:
        known = workspace.known(asked.names) if asked.names else None
        queries = {topic: workspace.query(topic) for topic in workspace.query_ids}
        how: dict[str, Any] = {"measure": asked.measure or None, "cost": asked.cost or None, "resamples": RESAMPLES}
        return conclude(results, attributes=known, by=asked.names or None, queries=queries, **how)

    return workspace.remember(("experiment", asked.measure, asked.cost, asked.names), new)


def _linked(answer: Conclusions, block: Block) -> Block:
    """Lead from configurations to their comparison with the control, and from topics to both lists."""
    base = answer.baseline
    if isinstance(block, Section):
        return replace(block, blocks=tuple(_linked(answer, part) for part in block.blocks))
    if isinstance(block, Table) and block.name == "leaderboard":
        pages = {run: f"/compare{query({'first': base, 'second': run})}" for run in answer.comparison.ranked}
        return block.changed("run", links=["" if run == base else page for run, page in pages.items()])
    if isinstance(block, Table) and block.name == "effect_topics":
        topics, lists = block.column("query_id").values, {"first": base, "second": answer.best}
        return block.changed("query_id", links=[f"/topic{query({'topic': topic, **lists})}" for topic in topics])
    return block


def _changes(asked: AskedTrial) -> dict[str, str]:
    if len(asked.setting) != len(asked.value):
        problem = f"{len(asked.setting)} settings have {len(asked.value)} values"
        raise InputError(problem, fix="give a value for each setting, in the same order")
    return dict(zip(asked.setting, asked.value, strict=True))


def _tried(workspace: Workspace, asked: AskedTrial) -> Trial:
    return _trials(workspace).attempt(
        asked.topic or workspace.query_ids[0],
        _changes(asked),
        engine=asked.engine,
        query=asked.query,
        measure=asked.measures or None,
        cutoff=asked.cutoff,
    )


def _page(request: Request, asked: Any, values: dict[str, Any], title: str) -> HTMLResponse:
    status = HTTPStatus.OK if values["problem"] is None else HTTPStatus.BAD_REQUEST
    return page(request, "experiment.html", status=status, asked=asked, title=title, **values)
