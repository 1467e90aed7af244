"""The pages of an experiment, and their twins in JSON."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from judged.errors import InputError, JudgedError
from judged.interface.pages.answer_pages import (
    NotOpenError,
    answer_page,
    build_slicing,
    first_rows,
    replace_tables,
    with_links,
)
from judged.interface.pages.filters import query_string
from judged.interface.pages.pagination import LONGEST, ScoredQuery
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import SlicedQuery, SlicingQuery
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace
from judged.pipelines.experiments import conclude
from judged.pipelines.experiments.conclusions import Conclusions
from judged.pipelines.rag import explain, waterfall
from judged.pipelines.traces import DocumentPaths, Failures, TraceFunnel, Traces, failures, funnel, why
from judged.results import TEXT, Answer, Column, RankedLists, Table
from judged.scoring.default_measures import DEFAULT_MEASURE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.interface.pages.workspace import Workspace
    from judged.pipelines.experiments.trial import Trial, Trials
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.rag.waterfall_answer import Waterfall

    Given = TypeVar("Given", TraceFunnel, Failures)


router = APIRouter(tags=["experiment"])
_TABS = {"/experiment": "Conclusions", "/experiment/try": "Try a query"}
_page = partial(answer_page, router, "experiment.html", label="Experiment", tabs=_TABS)
_SETTINGS = 100  # of a form


class AskedExperiment(SlicingQuery):
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
        pages = {run: f"/compare{query_string({'first': base, 'second': run})}" for run in answer.comparison.ranked}
        return table.changed("run", links=["" if run == base else page for run, page in pages.items()])

    def topics(table: Table) -> Table:
        lists = {"first": base, "second": answer.best}
        return with_links(table, "query_id", lambda row: f"/topic{query_string({'topic': row['query_id'], **lists})}")

    return {"blocks": replace_tables(answer.blocks(), leaderboard=runs, effect_topics=topics)}


@_page("/experiment", "Experiment", "What may be concluded", _concluded)
@cached_in_workspace
def experiment(workspace: CurrentWorkspace, asked: Annotated[AskedExperiment, Query()]) -> Answer:
    """Say which configuration is best, what it costs, what factors do, what is luck; before it was run, the plan."""
    results = workspace.parts.get("results")
    if results is None:
        return _trials(workspace).plan
    known = workspace.topic_attributes(asked.names) if asked.names else None
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
    return {"fields": trials.fields(settings), "query": asked}


@_page("/experiment/try", "Try a query", "A query tried live", _form)
def trial(workspace: CurrentWorkspace, asked: Annotated[AskedTrial, Query()]) -> Trial:
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


rag_router = APIRouter(tags=["rag"])
_RAG_TABS = {"/rag": "Where evidence is lost", "/rag/scores": "Scores", "/rag/topic": "One answer"}


class AskedWaterfall(SlicedQuery):
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
            return f"/rag/topic{query_string({'topic': row['query_id'], 'system': row['run']})}"

        return first_rows(with_links(table, "query_id", address))

    blocks = replace_tables(answer.blocks() if answer else (), topics=topics, lost=topics)
    beside = [block for block in blocks if isinstance(block, RankedLists)]
    return {"beside": beside, "blocks": [block for block in blocks if block not in beside]}


_rag_page = partial(answer_page, rag_router, "rag.html", page_values=_shown, label="Answers", tabs=_RAG_TABS)


@_rag_page("/rag", "Where evidence is lost", "Where evidence is lost")
@cached_in_workspace
def evidence(workspace: CurrentWorkspace, asked: Annotated[AskedWaterfall, Query()]) -> Waterfall:
    """Follow evidence from the corpus to the answer: what each step passes on, and which one to work on."""
    given = _given(workspace)
    named = [asked.run] if asked.run else [name for name in workspace.run_names if name in given.run_names]
    if asked.where.strip():
        given = given.of_topics([*compress(workspace.query_ids, workspace.mask(asked.where))])
    runs = {name: workspace.judged(name).run for name in named} or None
    slicing = build_slicing(workspace, asked) if asked.names else None
    return waterfall(
        given, workspace.qrels, runs=runs, traces=None if runs else workspace.parts.get("traces"), slicing=slicing
    )


@_rag_page("/rag/scores", "Scores of answers", "Scores of answers")
@cached_in_workspace
def scores_of_answers(workspace: CurrentWorkspace, asked: Annotated[AskedScores, Query()]) -> Answer:
    """Score answers by what they say, cite and rest on."""
    from judged.pipelines.rag import evaluate

    measures = [name.strip() for name in asked.measures.split(",") if name.strip()] or None
    return evaluate(_given(workspace), measures, qrels=workspace.qrels)


@_rag_page("/rag/topic", "One answer", "One answer")
def one_answer(workspace: CurrentWorkspace, asked: Annotated[AskedAnswer, Query()]) -> Answer:
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


traces_router = APIRouter(tags=["traces"])
_TRACES_TABS = {"/traces": "Stages", "/traces/failures": "Kinds of failure", "/traces/topic": "One topic"}
_traces_page = partial(
    answer_page, traces_router, "traces.html", label="Traces", tabs=_TRACES_TABS, alike=("/traces", "/traces/failures")
)
_SNIPPET = 60  # characters of a document


class AskedFunnel(SlicedQuery, ScoredQuery):
    """What is lost of a measure, over which topics."""

    measure: str = Field(DEFAULT_MEASURE, max_length=200, description="What is lost of.")


class AskedWay(Parameters):
    """A topic, and documents whose way is shown."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first one that was traced without it.")
    doc: list[str] = Field([], max_length=2, description="A document; of two, their features are compared.")


def _lost(workspace: Workspace, _: AskedFunnel, answer: TraceFunnel | None) -> dict[str, Any]:
    """Lead to the topics that lost most."""

    def topics(table: Table) -> Table:
        return _with_queries(workspace, with_links(table, "query_id", lambda row: _to(topic=row["query_id"])))

    blocks = answer.blocks() if answer else ()
    return {"blocks": replace_tables(blocks, topics=topics, documents=lambda table: replace(table, only="data"))}


@_traces_page("/traces", "Where it is lost", "What each stage lost", _lost)
@cached_in_workspace
def what_is_lost(workspace: CurrentWorkspace, asked: Annotated[AskedFunnel, Query()]) -> TraceFunnel:
    """Split what each topic lost of a measure into the stages of its pipeline: the parts add up to the loss."""
    return _made(workspace, asked, funnel)


def _failed(workspace: Workspace, _: AskedFunnel, answer: Failures | None) -> dict[str, Any]:
    """Lead to the ways of documents."""

    def documents(table: Table) -> Table:
        table = with_links(table, "doc_id", lambda row: _to(topic=row["query_id"], doc=row["doc_id"]))
        return replace(_with_queries(workspace, table), title="Relevant documents that were not seen")

    return {"blocks": replace_tables(answer.blocks() if answer else (), documents=documents)}


@_traces_page("/traces/failures", "Kinds of failure", "Kinds of failure", _failed)
@cached_in_workspace
def kinds_of_failure(workspace: CurrentWorkspace, asked: Annotated[AskedFunnel, Query()]) -> Failures:
    """Sort the relevant documents that people did not see by kind of failure, and say what to do first."""
    return _made(workspace, asked, failures)


def _went(workspace: Workspace, asked: AskedWay, answer: DocumentPaths | None) -> dict[str, Any]:
    """Lead to the ways of single documents, and show how their texts begin."""
    texts = workspace.texts

    def ranks(table: Table) -> Table:
        table = with_links(table, "doc_id", lambda row: _to(topic=asked.topic, doc=row["doc_id"]))
        docs = table.column("doc_id").values
        if texts is None:
            return table
        return _beside(table, "text", [texts.snippet(doc, _SNIPPET) if doc in texts else "" for doc in docs])

    asked = asked.model_copy(update={"topic": asked.topic or _traces(workspace).query_ids[0]})
    blocks = replace_tables(answer.blocks() if answer else (), ranks=ranks)
    return {"title": f"Topic {asked.topic}", "query": asked, "blocks": blocks}


@_traces_page("/traces/topic", "One topic", "The way of documents", _went)
def way_of_documents(workspace: CurrentWorkspace, asked: Annotated[AskedWay, Query()]) -> DocumentPaths:
    """Walk documents of a topic through the stages; without documents, back from the list that people saw."""
    traces, docs = _traces(workspace), [*filter(None, asked.doc)]
    return why(traces, asked.topic or traces.query_ids[0], docs or None, qrels=workspace.qrels)


def _traces(workspace: Workspace) -> Traces:
    if "traces" not in workspace.parts:
        about = "Traces say which documents each stage of a system passed on. Open them, with judgments and runs:"
        raise NotOpenError("no traces are open", "judged serve QRELS RUN --traces FILE", about)
    return workspace.parts["traces"]


def _made(workspace: Workspace, asked: AskedFunnel, make: Callable[..., Given]) -> Given:
    """Split or sort what was lost."""
    traces, measure = _traces(workspace), asked.read(asked.measure)
    workspace.mask(asked.where)
    slicing = build_slicing(workspace, asked) if asked.names else None
    over = {"attributes": workspace.topic_attributes(asked.names), "where": asked.where.strip() or None}
    return make(workspace.qrels, traces, measure, slicing=slicing, **over)


def _to(**way: str) -> str:
    return f"/traces/topic{query_string(way)}"


def _with_queries(workspace: Workspace, table: Table) -> Table:
    """Show the first rows of a table, with the texts of queries."""
    table = first_rows(replace(table, folded=False))
    return _beside(table, "query", [workspace.query(topic) for topic in table.column("query_id").values])


def _beside(table: Table, name: str, texts: list[str]) -> Table:
    """Put a column of texts behind the first one."""
    first, *rest = table.columns
    return replace(table, columns=(first, Column(name, texts, TEXT), *rest))
