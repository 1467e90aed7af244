"""The pages of an experiment, and their twins in JSON."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from judged.errors import InputError, JudgedError
from judged.interface.pages.answer_pages import NotOpenError, answer_page, leading, with_tables
from judged.interface.pages.filters import query
from judged.interface.pages.pagination import LONGEST
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import By
from judged.interface.pages.workspace import Opened, remembered
from judged.pipelines.experiments import conclude
from judged.pipelines.experiments.conclusions import Conclusions
from judged.results import Answer

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace
    from judged.pipelines.experiments.trial import Trial, Trials
    from judged.results import Table

router = APIRouter(tags=["experiment"])
_TABS = {"/experiment": "Conclusions", "/experiment/try": "Try a query"}
_page = partial(answer_page, router, "experiment.html", label="Experiment", tabs=_TABS)
_SETTINGS = 100  # of a form


class AskedExperiment(By):
    """By which measure and cost is concluded, and by which slices."""

    measure: str = Field("", max_length=200, description="One of the plan; the first one without it.")
    cost: str = Field("", max_length=200, description="What the front is made of; the median latency without it.")


class AskedTrial(Parameters):
    """A topic, and what is tried on it."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first one without it.")
    query: str = Field("", max_length=2000, description="In which words is asked; the topic's own without it.")
    engine: str = Field("", max_length=200, description="An engine or pipeline of the plan; the control's without it.")
    setting: list[str] = Field([], max_length=_SETTINGS, description="Names of settings.")
    value: list[str] = Field([], max_length=_SETTINGS, description="Their values, in the same order.")
    measures: str = Field("", max_length=500, description="Measures, with commas between; the plan's without it.")
    cutoff: int = Field(10, ge=1, le=100, description="How far down both lists are shown.")


def _concluded(_: Workspace, _asked: AskedExperiment, answer: Answer | None) -> dict[str, Any]:
    """Lead from configurations to their comparison with the control, and from topics to both lists."""
    if not isinstance(answer, Conclusions):
        return {}
    base = answer.baseline

    def runs(table: Table) -> Table:
        pages = {run: f"/compare{query({'first': base, 'second': run})}" for run in answer.comparison.ranked}
        return table.changed("run", links=["" if run == base else page for run, page in pages.items()])

    def topics(table: Table) -> Table:
        lists = {"first": base, "second": answer.best}
        return leading(table, "query_id", lambda row: f"/topic{query({'topic': row['query_id'], **lists})}")

    return {"blocks": with_tables(answer.blocks(), leaderboard=runs, effect_topics=topics)}


@_page("/experiment", "Experiment", "What may be concluded", _concluded)
@remembered
def experiment(workspace: Opened, asked: Annotated[AskedExperiment, Query()]) -> Answer:
    """Say which configuration is best, what it costs, what factors do, what is luck; before it was run, the plan."""
    results = workspace.parts.get("results")
    if results is None:
        return _trials(workspace).plan
    known = workspace.known(asked.names) if asked.names else None
    queries = {topic: workspace.query(topic) for topic in workspace.query_ids}
    how: dict[str, Any] = {"measure": asked.measure or None, "cost": asked.cost or None}
    return conclude(results, attributes=known, by=asked.names or None, queries=queries, **how)


def _form(workspace: Workspace, asked: AskedTrial, _: Answer | None) -> dict[str, Any]:
    """Give the fields of the settings: those that were asked for, or those of the control where they make no sense."""
    trials = _trials(workspace)
    try:
        settings = trials.settings(_changes(asked), asked.engine)
    except JudgedError:
        settings = {**trials.plan.control}
    asked = asked.model_copy(update={"topic": asked.topic or workspace.query_ids[0]})
    return {"fields": trials.fields(settings), "asked": asked}


@_page("/experiment/try", "Try a query", "A query tried live", _form)
def trial(workspace: Opened, asked: Annotated[AskedTrial, Query()]) -> Trial:
    """Ask an engine of the plan with other settings or words, and set its list beside the control's."""
    return _trials(workspace).attempt(
        asked.topic or workspace.query_ids[0],
        _changes(asked),
        engine=asked.engine,
        query=asked.query,
        measure=asked.measures or None,
        cutoff=asked.cutoff,
    )


def _trials(workspace: Workspace) -> Trials:
    if "trials" not in workspace.parts:
        about = (
            "A plan names documents, queries, judgments, and the engines and settings to try. With it, single queries"
            " can be tried here; once it was run by `judged experiment run PLAN.toml`, its conclusions are here too."
        )
        raise NotOpenError("no experiment is open", "judged serve --experiment PLAN.toml", about)
    return workspace.parts["trials"]


def _changes(asked: AskedTrial) -> dict[str, str]:
    if len(asked.setting) != len(asked.value):
        problem = f"{len(asked.setting)} settings have {len(asked.value)} values"
        raise InputError(problem, fix="give a value for each setting, in the same order")
    return dict(zip(asked.setting, asked.value, strict=True))
