"""Pages of agents: lost evidence, scores, effort, stated confidence, and one question; and their JSON versions."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from judged.errors import JudgedError
from judged.interface.pages.answer_pages import NotOpenError, answer_page, build_slicing, listed_page, with_links
from judged.interface.pages.filters import query_string
from judged.interface.pages.pagination import PageNumber, ScoredQuery
from judged.interface.pages.problems import Parameters, text_field
from judged.interface.pages.slices import SlicedQuery
from judged.interface.pages.workspace import CurrentWorkspace, cached_in_workspace
from judged.pipelines.rag.overview import SystemScores
from judged.pipelines.trajectories import EvidenceLoss, StatedConfidence, Timeline, evaluate, explain, where
from judged.pipelines.trajectories import confidence as stated_confidence
from judged.pipelines.trajectories.evaluation import compare_effort
from judged.pipelines.trajectories.where import Required
from judged.results import TEXT, Chart, Section, Table
from judged.results.blocks import flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from judged.data.qrels import Qrels
    from judged.diagnosis.tradeoff import Tradeoff
    from judged.interface.pages.workspace import Workspace
    from judged.pipelines.trajectories import Trajectories
    from judged.results import Answer

router = APIRouter(tags=["agents"])
_TABS = {
    "/agents": "Overview",
    "/agents/scores": "Scores",
    "/agents/effort": "Accuracy and effort",
    "/agents/confidence": "Stated confidence",
    "/agents/question": "One question",
}
_page = partial(answer_page, router, "agents.html", label="Agents", tabs=_TABS)
_REQUIRED = "Evidence that a question without hops requires: any relevant document, or all of them."


class AgentsQuery(Parameters):
    """Questions, and which answers are right."""

    accuracy: str = text_field(
        "Measure that decides which answers are right. Default: verdicts or ExactMatch.", limit=200
    )
    where: str = text_field("Condition on topic attributes, such as kind == 'law'.")

    @property
    def options(self) -> dict[str, Any]:
        """Options of functions of trajectories."""
        options = {name: getattr(self, name, None) for name in ("accuracy", "rel", "required")}
        return {name: value for name, value in options.items() if value not in ("", None)}


class AgentScoresQuery(AgentsQuery, ScoredQuery):
    """Measures of agents."""

    measures: str = text_field("Measures, separated by commas. Default: those with data.", limit=500)


class EffortQuery(AgentsQuery, ScoredQuery):
    """Measure and effort that are compared."""

    measure: str = text_field("Measure that is compared with the effort.", limit=200, default="AnswerAccuracy")
    effort: str = text_field("Measure of effort, such as Effort(of=cost).", limit=200, default="NumSearches")


class EvidenceQuery(AgentsQuery, ScoredQuery):
    """Evidence that questions require."""

    required: Required = Field("any", description=_REQUIRED)


class LossQuery(SlicedQuery, EvidenceQuery):
    """Slices of questions, and the page of wrong trials."""

    page: PageNumber = 1


class QuestionQuery(EvidenceQuery):
    """One question, and one system or all systems."""

    topic: str = text_field("Query id. Default: the first question.")
    system: str = text_field("System whose trials are shown. Default: all systems.")


def _overview(workspace: Workspace, params: LossQuery, answer: EvidenceLoss | None) -> dict[str, Any]:
    """Add the scores, the charts of effort and confidence, and links from wrong trials to their questions."""
    if answer is None:
        return {}

    same = params.model_dump(include={"accuracy", "rel", "required"}, exclude_defaults=True)

    def question_url(row: Mapping[str, Any]) -> str:
        return f"/agents/question{query_string({'topic': row['query_id'], 'system': row['run'], **same})}"

    others = tuple(_other_answers(workspace, params))
    kinds = [(Table if isinstance(other, SystemScores) else Chart, flat(other.blocks())) for other in others]
    shown = tuple(block for kind, blocks in kinds for block in blocks if isinstance(block, kind) and not block.folded)

    def add_section(_: Table) -> Section:  # instead of right answers without evidence, which the sentences state
        return Section("overview", "Scores, effort, and confidence", shown)

    trials = with_links(answer.table("trials"), "query_id", question_url)
    changes: dict[str, Any] = {"unsupported": add_section, "trials": lambda _: None}
    return {"block_changes": changes, "others": others, **listed_page(trials, params.page)}


def _other_answers(workspace: Workspace, params: LossQuery) -> Iterator[Answer]:
    """Yield the scores, effort, and confidence; skip those without data, which the tabs explain."""
    others: dict[Callable[..., Answer], type[AgentsQuery]] = {
        scores: AgentScoresQuery, accuracy_and_effort: EffortQuery, confidence: AgentsQuery,
    }  # fmt: skip
    for compute, query in others.items():
        names = {"accuracy", "where", "rel"} & set(query.model_fields)
        with suppress(JudgedError):
            yield compute(workspace, query(**params.model_dump(include=names)))


@_page("/agents", "Agents", "Where agents lose evidence", _overview)
def lost_evidence(workspace: CurrentWorkspace, params: Annotated[LossQuery, Query()]) -> EvidenceLoss:
    """Assign each wrong answer to the first stage at which required evidence was lost."""
    return _lost_evidence(workspace, params.model_copy(update={"page": 1}))


@cached_in_workspace
def _lost_evidence(workspace: Workspace, params: LossQuery) -> EvidenceLoss:
    trajectories, qrels = _open_trajectories(workspace, params)
    slicing = build_slicing(workspace, params) if params.names else None
    return where(trajectories, qrels, slicing=slicing, **params.options)


@_page("/agents/scores", "Scores", "Scores of agents")
@cached_in_workspace
def scores(workspace: CurrentWorkspace, params: Annotated[AgentScoresQuery, Query()]) -> SystemScores:
    """Score the searches, answers, and effort of agents, and compare agents with the first one."""
    trajectories, qrels = _open_trajectories(workspace, params)
    measures = [name.strip() for name in params.measures.split(",") if name.strip()] or None
    agent_scores = evaluate(trajectories, measures, qrels=qrels, **params.options)
    return SystemScores(agent_scores, agent_scores.notes)


@_page("/agents/effort", "Accuracy and effort", "Accuracy and effort of agents")
@cached_in_workspace
def accuracy_and_effort(workspace: CurrentWorkspace, params: Annotated[EffortQuery, Query()]) -> Tradeoff:
    """Compare the accuracy of agents with their effort: agents that no other agent dominates."""
    trajectories, qrels = _open_trajectories(workspace, params)
    measures = [params.measure, params.effort]
    return compare_effort(evaluate(trajectories, measures, qrels=qrels, unjudged=False, **params.options))


@_page("/agents/confidence", "Stated confidence", "Stated confidence of agents")
@cached_in_workspace
def confidence(workspace: CurrentWorkspace, params: Annotated[AgentsQuery, Query()]) -> StatedConfidence:
    """Compare the confidence that agents state with their accuracy."""
    return stated_confidence(_open_trajectories(workspace, params)[0], **params.options)


def _mark_searches(workspace: Workspace, params: QuestionQuery, _: Timeline | None) -> dict[str, Any]:
    """Fill the form with the question, and show new and wasted searches, and right answers, as labels."""

    def mark_steps(table: Table) -> Table:
        new = [f"+{count}" if count else "" for count in table.column("new").values]
        table = table.changed("new", values=new, show=TEXT, statuses=["better"] * len(new))
        return table.changed("flags", statuses=["worse"] * len(new))

    topic = params.topic or _open_trajectories(workspace, params)[0].query_ids[0]
    return {"query": params.model_copy(update={"topic": topic}), "block_changes": {"steps": mark_steps}}


@_page("/agents/question", "One question", "Trials of one question", _mark_searches)
def one_question(workspace: CurrentWorkspace, params: Annotated[QuestionQuery, Query()]) -> Timeline:
    """Show the steps of the trials of one question: documents, new relevant documents, and wasted searches."""
    trajectories, qrels = _open_trajectories(workspace, params)
    runs = [params.system] if params.system else None
    return explain(trajectories, params.topic or trajectories.query_ids[0], qrels, runs=runs, **params.options)


def _open_trajectories(workspace: Workspace, params: AgentsQuery) -> tuple[Trajectories, Qrels | None]:
    """Return the trajectories of the selected questions, and the judgments; None if no question has judgments."""
    if "trajectories" not in workspace.parts:
        hint = "Open searches and answers of agents, together with judgments:"
        raise NotOpenError("no trajectories are open", "judged serve QRELS --trajectories FILE", hint)
    trajectories: Trajectories = workspace.parts["trajectories"]()
    qrels = None if {*workspace.query_ids}.isdisjoint(trajectories.query_ids) else workspace.qrels
    if params.where.strip():
        trajectories = trajectories.of_topics(compress(workspace.query_ids, workspace.mask(params.where)))
    return trajectories, qrels
