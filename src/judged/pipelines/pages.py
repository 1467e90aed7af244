"""Pages of experiments, generated answers, and traces, and their JSON versions."""

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
    listed_page,
    rows_of_page,
    with_links,
)
from judged.interface.pages.filters import query_string
from judged.interface.pages.pagination import PageNumber, Paging, ScoredQuery, shaded
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.slices import SlicedQuery, SlicingQuery
from judged.interface.pages.workspace import CurrentWorkspace, Workspace, cached_in_workspace
from judged.pipelines.experiments import conclude
from judged.pipelines.experiments.conclusions import Conclusions
from judged.pipelines.rag import evaluate, explain, waterfall
from judged.pipelines.rag.overview import SystemScores
from judged.pipelines.traces import (
    DocumentPaths,
    Failures,
    Gaps,
    TraceFunnel,
    Traces,
    explain_document,
    failures,
    funnel,
    gaps,
    traces_of_runs,
)
from judged.results import TEXT, Answer, Chart, Column, Table
from judged.scoring.default_measures import DEFAULT_MEASURE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from judged.pipelines.experiments.trial import QueryTrial, TrialEngines
    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.rag.waterfall_answer import Waterfall

    LossAnswer = TypeVar("LossAnswer", TraceFunnel, Failures)


router = APIRouter(tags=["experiment"])
_TABS = {"/experiment": "Results", "/experiment/try": "Try a query"}
_page = partial(answer_page, router, "experiment.html", label="Experiment", tabs=_TABS)
_SETTINGS = 100  # at most, in the form of a trial


class ConclusionsQuery(SlicingQuery):
    """Measure, costs, and slicing attributes."""

    measure: str = text_field("Measure. Default: the first measure of the plan.", limit=200)
    cost: str = text_field("Cost for the Pareto front. Default: p50_ms, the median latency.", limit=200)


class TrialQuery(Parameters):
    """Topic, and the settings or query to try."""

    topic: str = text_field("Topic id. Default: the first topic.")
    query: str = text_field("Text of the query. Default: the query of the topic.", limit=2000)
    engine: str = text_field(
        "Engine or pipeline of the plan. Default: the engine of the control configuration.", limit=200
    )
    setting: list[str] = text_field("Names of settings.", limit=_SETTINGS, default=[])
    value: list[str] = text_field("Values of the settings, in the order of `setting`.", limit=_SETTINGS, default=[])
    measures: str = text_field("Measures, separated by commas. Default: the measures of the plan.", limit=500)
    cutoff: int = Field(10, ge=1, le=100, description="Number of documents shown from each list.")


def _link_conclusions(_: Workspace, _params: ConclusionsQuery, answer: Answer | None) -> dict[str, Any]:
    """Link configurations to their comparison with the control, and topics to both lists."""
    if not isinstance(answer, Conclusions):
        return {}
    baseline = answer.baseline

    def link_runs(table: Table) -> Table:
        pages = {run: f"/compare{query_string({'first': baseline, 'second': run})}" for run in answer.comparison.ranked}
        return table.changed("run", links=["" if run == baseline else page for run, page in pages.items()])

    def link_topics(table: Table) -> Table:
        lists = {"first": baseline, "second": answer.best}
        return with_links(table, "query_id", lambda row: f"/topic{query_string({'topic': row['query_id'], **lists})}")

    def without_chart(block: Table | Chart) -> Table | None:
        """Remove the chart of effects, whose numbers the table of effects draws."""
        return block if isinstance(block, Table) else None

    pairs = partial(_hide, names=("baseline", "dz", "detectable"))
    changes = {"leaderboard": link_runs, "pairs": pairs, "effects": without_chart, "effect_topics": link_topics}
    return {"block_changes": changes}


@_page("/experiment", "Experiment", "Conclusions", _link_conclusions)
@cached_in_workspace
def experiment(workspace: CurrentWorkspace, params: Annotated[ConclusionsQuery, Query()]) -> Answer:
    """Return the best configuration, costs, and effects of factors; before a run, return the plan."""
    results = workspace.parts.get("results")
    if results is None:
        return _trial_engines(workspace).plan
    attributes = workspace.topic_attributes(params.names) if params.names else None
    queries = {topic: workspace.query(topic) for topic in workspace.query_ids}
    options: dict[str, Any] = {"measure": params.measure or None, "cost": params.cost or None}
    return conclude(results, attributes=attributes, by=params.names or None, queries=queries, **options)


def _trial_form(workspace: Workspace, params: TrialQuery, _: Answer | None) -> dict[str, Any]:
    """Return the fields of the settings form; invalid settings are replaced by those of the control."""
    trials = _trial_engines(workspace)
    try:
        settings = trials.settings(_changed_settings(params), params.engine)
    except JudgedError:
        settings = {**trials.plan.control}
    params = params.model_copy(update={"topic": params.topic or workspace.query_ids[0]})
    return {"fields": trials.fields(settings), "query": params}


@_page("/experiment/try", "Try a query", "Try a query", _trial_form)
def trial(workspace: CurrentWorkspace, params: Annotated[TrialQuery, Query()]) -> QueryTrial:
    """Search with other settings or another query, and compare the list with the list of the control."""
    return _trial_engines(workspace).attempt(
        params.topic or workspace.query_ids[0],
        _changed_settings(params),
        engine=params.engine,
        query=params.query,
        measure=params.measures or None,
        cutoff=params.cutoff,
    )


def _trial_engines(workspace: Workspace) -> TrialEngines:
    if "trials" not in workspace.parts:
        hint = (
            "A plan names documents, queries, judgments, engines, and settings. With a plan, you can try single"
            " queries on this page. After `judged experiment run PLAN.toml`, this page also shows the conclusions."
        )
        raise NotOpenError("no experiment is open", "judged serve --experiment PLAN.toml", hint)
    return workspace.parts["trials"]


def _changed_settings(params: TrialQuery) -> dict[str, str]:
    if len(params.setting) != len(params.value):
        problem = f"each setting needs one value, got {len(params.setting)} settings and {len(params.value)} values"
        raise InputError(problem, fix="give one `value` for each `setting`, in the order of the settings")
    return dict(zip(params.setting, params.value, strict=True))


rag_router = APIRouter(tags=["rag"])
_RAG_TABS = {"/rag": "Loss of evidence", "/rag/scores": "Scores", "/rag/topic": "One answer"}


class WaterfallQuery(SlicedQuery):
    """Topics, and the run that retrieved the context."""

    run: str = text_field(
        "Run with the documents that were retrieved for the answers. Default: the traces of the workbench."
    )
    page: PageNumber = 1


class AnswerScoresQuery(Parameters):
    """Measures of answers."""

    measures: str = text_field("Measures, separated by commas. Default: all measures that apply.", limit=500)


class SingleAnswerQuery(Parameters):
    """One answer of one system."""

    topic: str = text_field("Topic id. Default: the first topic with an answer.")
    system: str = text_field("System that generated the answer. Default: the first system.")


def _link_answers(_: Workspace, params: WaterfallQuery, answer: Waterfall | None) -> dict[str, Any]:
    """Link topics to their answers, and list the lost items."""

    def link_topics(table: Table) -> Table:
        def answer_url(row: Mapping[str, Any]) -> str:
            return f"/rag/topic{query_string({'topic': row['query_id'], 'system': row['run']})}"

        return with_links(table, "query_id", answer_url)

    if answer is None:
        return {}
    hide = partial(_hide, names=("overall", "reappeared", "if_perfect"))
    changes: dict[str, Callable[[Table], Table | None]] = {"main_steps": hide, "lost": _remove}
    changes["topics"] = lambda table: rows_of_page(link_topics(table), params.page)
    lost = replace(link_topics(answer.table("lost")), note="")
    return {"block_changes": changes, **listed_page(lost, params.page, answer.table("topics"))}


_rag_page = partial(answer_page, rag_router, "rag.html", label="Answers", tabs=_RAG_TABS)


@_rag_page("/rag", "Answers", "Loss of evidence", _link_answers)
def evidence(workspace: CurrentWorkspace, params: Annotated[WaterfallQuery, Query()]) -> Waterfall:
    """Follow evidence from the corpus to the answer: loss at each step, and the step to improve."""
    return _waterfall(workspace, params.model_copy(update={"page": 1}))


@cached_in_workspace
def _waterfall(workspace: Workspace, params: WaterfallQuery) -> Waterfall:
    responses = _responses(workspace)
    run_names = [params.run] if params.run else [name for name in workspace.run_names if name in responses.run_names]
    if params.where.strip():
        responses = responses.of_topics([*compress(workspace.query_ids, workspace.mask(params.where))])
    runs = {name: workspace.judged(name).run for name in run_names} or None
    slicing = build_slicing(workspace, params) if params.names else None
    return waterfall(
        responses, workspace.qrels, runs=runs, traces=None if runs else workspace.parts.get("traces"), slicing=slicing
    )


@_rag_page("/rag/scores", "Scores", "Scores of answers")
@cached_in_workspace
def scores_of_answers(workspace: CurrentWorkspace, params: Annotated[AnswerScoresQuery, Query()]) -> SystemScores:
    """Score answers by their content, citations, and support, and compare systems with the first one."""
    measures = [name.strip() for name in params.measures.split(",") if name.strip()] or None
    scores = evaluate(_responses(workspace), measures, qrels=workspace.qrels)
    return SystemScores(scores, scores.notes)


def _show_topic(workspace: Workspace, params: SingleAnswerQuery, _: Answer | None) -> dict[str, Any]:
    """Fill the form with the topic and system that are shown, and give the text of the answer a title."""
    responses = _responses(workspace)
    topic = params.topic or responses["answers"]["query_id"][0].as_py()
    query = params.model_copy(update={"topic": topic, "system": params.system or responses.run_names[0]})
    return {"query": query, "block_changes": {"sentences": lambda text: replace(text, title="Answer")}}


@_rag_page("/rag/topic", "One answer", "One answer", _show_topic)
def one_answer(workspace: CurrentWorkspace, params: Annotated[SingleAnswerQuery, Query()]) -> Answer:
    """Show one answer with its support, context, and references."""
    responses = _responses(workspace)
    topic: str = params.topic or responses["answers"]["query_id"][0].as_py()
    qrels = workspace.qrels if topic in workspace.query_ids else None
    return explain(
        responses, topic=topic, run=params.system or responses.run_names[0], qrels=qrels, queries=workspace.topics
    )


def _responses(workspace: Workspace) -> Responses:
    if "responses" not in workspace.parts:
        hint = "Open answers with citations and verdicts, together with judgments and runs:"
        raise NotOpenError("no answers are open", "judged serve QRELS RUN --rag RESPONSES", hint)
    return workspace.parts["responses"]


traces_router = APIRouter(tags=["traces"])
_TRACES_TABS = {
    "/traces": "Loss by stage",
    "/traces/failures": "Kinds of failure",
    "/traces/gaps": "Content gaps",
    "/traces/topic": "One topic",
}
_traces_page = partial(
    answer_page,
    traces_router,
    "traces.html",
    label="Traces",
    tabs=_TRACES_TABS,
    same_query=("/traces", "/traces/failures"),
)
_SNIPPET = 60  # characters of a document


class FunnelQuery(SlicedQuery, ScoredQuery):
    """Measure whose loss is split, and topics."""

    measure: str = text_field(
        "Measure whose loss (best possible score minus score) is split by pipeline stage.",
        limit=200,
        default=DEFAULT_MEASURE,
    )
    page: PageNumber = 1


class GapsQuery(ScoredQuery):
    """Measure, and the source of the entities of topics."""

    measure: str = text_field(
        "Measure. Searches need a relevant document above its cutoff.", limit=200, default=DEFAULT_MEASURE
    )
    by: str = text_field("Topic attribute with entities. Default: the entities that the workbench opened.", limit=200)
    run: str = text_field("Run with the lists, if no traces are open. Default: the first run.")
    page: PageNumber = 1


class DocumentPathQuery(Parameters):
    """A topic, and documents whose path is shown."""

    topic: str = text_field("Topic id. Default: the first topic with a trace.")
    doc: list[str] = text_field(
        "Document id. Repeat once to compare the features of two documents.", limit=2, default=[]
    )


def _list_topics_by_loss(workspace: Workspace, params: FunnelQuery, answer: TraceFunnel | None) -> dict[str, Any]:
    """List the topics, the largest loss first; the chart is omitted, because the table of parts draws its numbers."""
    if answer is None:
        return {}
    table = with_links(answer.table("topics"), "query_id", lambda row: _topic_url(topic=row["query_id"]))
    table = shaded(table, [f"lost_{name}" for name in answer.parts])
    changes: dict[str, Any] = dict.fromkeys(("losses", "topics", "documents"), _remove)
    changes["stages"] = partial(_hide, names=("kind", "headroom"))
    return {"block_changes": changes, **listed_page(_with_queries(workspace, table), params.page)}


@_traces_page("/traces", "Traces", "Loss by stage", _list_topics_by_loss)
def loss_by_stage(workspace: CurrentWorkspace, params: Annotated[FunnelQuery, Query()]) -> TraceFunnel:
    """Show how much each stage of the pipeline contributes to the loss of a topic (best possible score minus score)."""
    return _analyze_losses(workspace, params.model_copy(update={"page": 1}), funnel)


def _list_failures(workspace: Workspace, params: FunnelQuery, answer: Failures | None) -> dict[str, Any]:
    """List the documents, with links to their paths."""
    if answer is None:
        return {}
    table = answer.table("documents")
    table = with_links(table, "doc_id", lambda row: _topic_url(topic=row["query_id"], doc=row["doc_id"]))
    return {"block_changes": {"documents": _remove}, **listed_page(_with_queries(workspace, table), params.page)}


@_traces_page("/traces/failures", "Kinds of failure", "Kinds of failure", _list_failures)
def kinds_of_failure(workspace: CurrentWorkspace, params: Annotated[FunnelQuery, Query()]) -> Failures:
    """Classify missed relevant documents by kind of failure, and recommend a first action."""
    return _analyze_losses(workspace, params.model_copy(update={"page": 1}), failures)


def _link_gaps(workspace: Workspace, params: GapsQuery, answer: Gaps | None) -> dict[str, Any]:
    """Show the queries of lost searches, and link the topics with missing content."""
    if answer is None:
        return {}
    traced = set(workspace.parts["traces"].query_ids) if "traces" in workspace.parts else set[str]()

    def topic_url(row: Mapping[str, Any]) -> str:
        return _topic_url(topic=row["query_id"]) if row["query_id"] in traced else ""

    tables = answer.tables() | {"missing_content": with_links(answer.table("missing_content"), "query_id", topic_url)}
    if "content_gaps" in tables:
        tables["content_gaps"] = tables["content_gaps"].changed("queries", only="")
    pages = {name: rows_of_page(table, params.page) for name, table in tables.items()}
    paging = Paging.for_page(params.page, max(map(len, tables.values())))
    return {"block_changes": {name: lambda table: pages[table.name] for name in pages}, "paging": paging}


@_traces_page("/traces/gaps", "Content gaps", "Content gaps", _link_gaps)
def content_gaps(workspace: CurrentWorkspace, params: Annotated[GapsQuery, Query()]) -> Gaps:
    """Count searches, documents, and lost searches of each entity, and classify its gap."""
    return _find_gaps(workspace, params.model_copy(update={"page": 1}))


@cached_in_workspace
def _find_gaps(workspace: Workspace, params: GapsQuery) -> Gaps:
    if "traces" not in workspace.parts and workspace.lists:
        run = params.run or workspace.run_names[0]
        traces = traces_of_runs({run: workspace.judged(run).run})
    else:
        traces = _open_traces(workspace)
    by, measure = params.by.strip() or None, params.read(params.measure)
    if by is None and "entities" not in workspace.parts:
        hint = "Name the things that users search for, and the documents about them:"
        command = "judged serve QRELS RUN --queries FILE --entities FILE --documents FILE"
        raise NotOpenError("no entities are open", command, hint)
    return gaps(
        workspace.qrels,
        traces,
        measure,
        entities=None if by else workspace.parts["entities"],
        by=by,
        queries=workspace.topics,
        attributes=workspace.topic_attributes((by,)) if by else workspace.attributes,
        documents=workspace.parts.get("documents"),
    )


def _link_documents(workspace: Workspace, params: DocumentPathQuery, _: DocumentPaths | None) -> dict[str, Any]:
    """Link to the paths of single documents, and show the beginnings of their texts."""
    texts = workspace.texts

    def link_ranks(table: Table) -> Table:
        table = with_links(table, "doc_id", lambda row: _topic_url(topic=params.topic, doc=row["doc_id"]))
        docs = table.column("doc_id").values
        if texts is None:
            return table
        return _insert_text_column(
            table, "text", [texts.snippet(doc, _SNIPPET) if doc in texts else "" for doc in docs]
        )

    params = params.model_copy(update={"topic": params.topic or _open_traces(workspace).query_ids[0]})
    return {"title": f"Topic {params.topic}", "query": params, "block_changes": {"ranks": link_ranks}}


@_traces_page("/traces/topic", "One topic", "Paths of documents", _link_documents)
def paths_of_documents(workspace: CurrentWorkspace, params: Annotated[DocumentPathQuery, Query()]) -> DocumentPaths:
    """Show the path of documents of a topic through the stages. Default: the first documents of the final list."""
    traces, docs = _open_traces(workspace), [*filter(None, params.doc)]
    return explain_document(traces, params.topic or traces.query_ids[0], docs or None, qrels=workspace.qrels)


def _open_traces(workspace: Workspace) -> Traces:
    if "traces" not in workspace.parts:
        hint = (
            "Traces record the documents that each stage of a pipeline returned. Open traces with judgments and runs:"
        )
        raise NotOpenError("no traces are open", "judged serve QRELS RUN --traces FILE", hint)
    return workspace.parts["traces"]


@cached_in_workspace
def _analyze_losses(workspace: Workspace, params: FunnelQuery, analyze: Callable[..., LossAnswer]) -> LossAnswer:
    traces, measure = _open_traces(workspace), params.read(params.measure)
    workspace.mask(params.where)
    slicing = build_slicing(workspace, params) if params.names else None
    filters = {"attributes": workspace.topic_attributes(params.names), "where": params.where.strip() or None}
    return analyze(workspace.qrels, traces, measure, slicing=slicing, **filters)


def _remove(_: object) -> None:
    """Remove a block from a page."""


def _hide(table: Table, names: Sequence[str]) -> Table:
    """Hide columns that the page shows elsewhere."""
    return replace(table, columns=tuple(column for column in table.columns if column.name not in names))


def _topic_url(**parameters: str) -> str:
    return f"/traces/topic{query_string(parameters)}"


def _with_queries(workspace: Workspace, table: Table) -> Table:
    """Insert the texts of queries after the topics."""
    return _insert_text_column(table, "query", [workspace.query(topic) for topic in table.column("query_id").values])


def _insert_text_column(table: Table, name: str, texts: list[str]) -> Table:
    """Insert a column of texts after the first column."""
    first, *other_columns = table.columns
    return replace(table, columns=(first, Column(name, texts, TEXT), *other_columns))
