"""The pages of traces, and their twins in JSON."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import Field

from judged.answer import TEXT, Column, Table
from judged.errors import InputError, JudgedError
from judged.traces import Failures, TraceFunnel, Traces, Why, failures, funnel, why
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import query
from judged.web.pagination import LONGEST, Scored
from judged.web.problems import PROBLEMS, Parameters
from judged.web.slices.answer import Sliced
from judged.web.slices.attributes import attributes, cut, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.answer import Block
    from judged.web.workspace import Workspace

    Given = TypeVar("Given", TraceFunnel, Failures)

router = APIRouter()
_SNIPPET = 60  # characters of a document
_ROWS = 100  # of a long table on a page; the twin has all


class AskedFunnel(Sliced, Scored):
    """What is lost of a measure, over which topics."""

    measure: str = Field("nDCG@10", max_length=200, description="What is lost of.")


class AskedWay(Parameters):
    """A topic, and documents whose way is shown."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first one that was traced without it.")
    doc: list[str] = Field([], max_length=2, description="A document; of two, their features are compared.")


@router.get("/api/v1/traces", tags=["traces"], summary="What each stage lost", responses=PROBLEMS)
def funnel_as_json(workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> dict[str, Any]:
    """Split what each topic lost of a measure into the stages of its pipeline: the parts add up to the loss."""
    return _made(workspace, asked, funnel).to_dict()


@router.get("/api/v1/traces/failures", tags=["traces"], summary="Kinds of failure", responses=PROBLEMS)
def failures_as_json(workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> dict[str, Any]:
    """Sort the relevant documents that people did not see by kind of failure, and say what to do first."""
    return _made(workspace, asked, failures).to_dict()


@router.get("/api/v1/traces/topic", tags=["traces"], summary="The way of documents", responses=PROBLEMS)
def way_as_json(workspace: Opened, asked: Annotated[AskedWay, Query()]) -> dict[str, Any]:
    """Walk documents of a topic through the stages; without documents, back from the list that people saw."""
    return _way(workspace, asked).to_dict()


@router.get("/traces", include_in_schema=False)
def funnel_page(request: Request, workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> HTMLResponse:
    """Show the funnel, with ways to the topics that lost most."""

    def blocks() -> list[Block]:
        answer = _made(workspace, asked, funnel)
        topics = _linked(workspace, answer.topics_table(), [{"topic": topic} for topic in _topics(answer)])
        return [topics if block.name == "topics" else block for block in answer.blocks() if block.name != "documents"]

    return _page(request, workspace, asked, blocks, "Where it is lost")


@router.get("/traces/failures", include_in_schema=False)
def failures_page(request: Request, workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> HTMLResponse:
    """Show the kinds of failure, with ways to the documents."""

    def blocks() -> list[Block]:
        answer = _made(workspace, asked, failures)
        ways = [{"topic": topic, "doc": doc} for topic, doc, *_ in answer.found]
        documents = answer.table("documents")
        documents = replace(documents, title="Relevant documents that were not seen")
        linked = _linked(workspace, documents, ways, "doc_id")
        return [linked if block.name == "documents" else block for block in answer.blocks()]

    return _page(request, workspace, asked, blocks, "Kinds of failure")


@router.get("/traces/topic", include_in_schema=False)
def way_page(request: Request, workspace: Opened, asked: Annotated[AskedWay, Query()]) -> HTMLResponse:
    """Show the way of documents."""

    def blocks() -> list[Block]:
        answer = _way(workspace, asked)
        links = [f"/traces/topic{query({'topic': answer.query_id, 'doc': doc})}" for doc in answer.ways]
        linked = [
            block.changed("doc_id", links=links) if isinstance(block, Table) and block.name == "ranks" else block
            for block in answer.blocks()
        ]
        if (texts := workspace.texts) is None:
            return linked
        snippets = Column("text", [texts.snippet(doc, _SNIPPET) if doc in texts else "" for doc in answer.ways], TEXT)
        return [_beside(one, snippets) if isinstance(one, Table) and one.name == "ranks" else one for one in linked]

    return _page(request, workspace, asked, blocks, f"Topic {asked.topic or _first(workspace)}")


def _traces(workspace: Workspace) -> Traces:
    if workspace.traces is None:
        raise InputError("no traces are open", fix="open them: judged serve QRELS RUN --traces FILE")
    return workspace.traces


def _first(workspace: Workspace) -> str:
    return workspace.traces.query_ids[0] if workspace.traces else ""


def _made(workspace: Workspace, asked: AskedFunnel, make: Callable[..., Given]) -> Given:
    """Split or sort what was lost, once."""
    traces, measure = _traces(workspace), asked.read(asked.measure)

    def new() -> Given:
        known = workspace.known((*asked.names,))
        slicing = cut(workspace, asked) if asked.names else None
        over = {"attributes": known, "where": asked.where.strip() or None}
        return make(workspace.qrels, traces, measure, slicing=slicing, **over)

    return workspace.remember((make.__name__, measure, asked.names, asked.where.strip(), asked.least), new)


def _way(workspace: Workspace, asked: AskedWay) -> Why:
    return why(
        _traces(workspace), asked.topic or _first(workspace), [*filter(None, asked.doc)] or None, qrels=workspace.qrels
    )


def _topics(answer: TraceFunnel) -> list[str]:
    return list(answer.topics_table().column("query_id").values)


def _linked(workspace: Workspace, table: Table, ways: Sequence[dict[str, str]], column: str = "query_id") -> Table:
    """Show the first rows of a table, with the texts of queries, and links to the ways of topics and documents."""
    shown = list(range(min(len(table), _ROWS)))
    table = table.changed(column, links=[f"/traces/topic{query(way)}" for way in ways])
    texts = Column("query", [workspace.query(way["topic"]) for way in ways], TEXT)
    more = f"the first {_ROWS} of {len(table):,}" if len(table) > _ROWS else ""
    return replace(_beside(table, texts), folded=False, note=more).take(shown)


def _beside(table: Table, column: Column) -> Table:
    """Put a column behind the first one."""
    first, *rest = table.columns
    return replace(table, columns=(first, column, *rest))


def _page(
    request: Request, workspace: Workspace, asked: Any, blocks: Callable[[], list[Block]], title: str
) -> HTMLResponse:
    """Lay out the blocks of an answer below the form of traces."""
    problem, shown = None, list[Any]()
    if workspace.traces is not None:
        try:
            shown = blocks()
        except JudgedError as error:
            problem = problem_of(workspace, error, getattr(asked, "where", ""))
    status = HTTPStatus.OK if problem is None else HTTPStatus.BAD_REQUEST
    known = attributes(workspace).records()
    values = {"asked": asked, "blocks": shown, "problem": problem, "attributes": known, "title": title}
    return page(request, "traces.html", status=status, **values)
