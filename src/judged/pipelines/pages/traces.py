"""The pages of traces, and their twins in JSON."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from pydantic import Field

from judged.interface.pages.answer_pages import NotOpenError, answer_page, first_rows, leading, with_tables
from judged.interface.pages.attributes import cut
from judged.interface.pages.filters import query
from judged.interface.pages.pagination import LONGEST, Scored
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import Sliced
from judged.interface.pages.workspace import Opened, remembered
from judged.pipelines.traces import Failures, TraceFunnel, Traces, Why, failures, funnel, why
from judged.results import TEXT, Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.interface.pages.workspace import Workspace

    Given = TypeVar("Given", TraceFunnel, Failures)

router = APIRouter(tags=["traces"])
_TABS = {"/traces": "Stages", "/traces/failures": "Kinds of failure", "/traces/topic": "One topic"}
_page = partial(answer_page, router, "traces.html", label="Traces", tabs=_TABS, alike=("/traces", "/traces/failures"))
_SNIPPET = 60  # characters of a document


class AskedFunnel(Sliced, Scored):
    """What is lost of a measure, over which topics."""

    measure: str = Field("nDCG@10", max_length=200, description="What is lost of.")


class AskedWay(Parameters):
    """A topic, and documents whose way is shown."""

    topic: str = Field("", max_length=LONGEST, description="The topic; the first one that was traced without it.")
    doc: list[str] = Field([], max_length=2, description="A document; of two, their features are compared.")


def _lost(workspace: Workspace, _: AskedFunnel, answer: TraceFunnel | None) -> dict[str, Any]:
    """Lead to the topics that lost most."""

    def topics(table: Table) -> Table:
        return _with_queries(workspace, leading(table, "query_id", lambda row: _to(topic=row["query_id"])))

    blocks = answer.blocks() if answer else ()
    return {"blocks": with_tables(blocks, topics=topics, documents=lambda table: replace(table, only="data"))}


@_page("/traces", "Where it is lost", "What each stage lost", _lost)
@remembered
def what_is_lost(workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> TraceFunnel:
    """Split what each topic lost of a measure into the stages of its pipeline: the parts add up to the loss."""
    return _made(workspace, asked, funnel)


def _failed(workspace: Workspace, _: AskedFunnel, answer: Failures | None) -> dict[str, Any]:
    """Lead to the ways of documents."""

    def documents(table: Table) -> Table:
        table = leading(table, "doc_id", lambda row: _to(topic=row["query_id"], doc=row["doc_id"]))
        return replace(_with_queries(workspace, table), title="Relevant documents that were not seen")

    return {"blocks": with_tables(answer.blocks() if answer else (), documents=documents)}


@_page("/traces/failures", "Kinds of failure", "Kinds of failure", _failed)
@remembered
def kinds_of_failure(workspace: Opened, asked: Annotated[AskedFunnel, Query()]) -> Failures:
    """Sort the relevant documents that people did not see by kind of failure, and say what to do first."""
    return _made(workspace, asked, failures)


def _went(workspace: Workspace, asked: AskedWay, answer: Why | None) -> dict[str, Any]:
    """Lead to the ways of single documents, and show how their texts begin."""
    texts = workspace.texts

    def ranks(table: Table) -> Table:
        table = leading(table, "doc_id", lambda row: _to(topic=asked.topic, doc=row["doc_id"]))
        docs = table.column("doc_id").values
        if texts is None:
            return table
        return _beside(table, "text", [texts.snippet(doc, _SNIPPET) if doc in texts else "" for doc in docs])

    asked = asked.model_copy(update={"topic": asked.topic or _traces(workspace).query_ids[0]})
    blocks = with_tables(answer.blocks() if answer else (), ranks=ranks)
    return {"title": f"Topic {asked.topic}", "asked": asked, "blocks": blocks}


@_page("/traces/topic", "One topic", "The way of documents", _went)
def way_of_documents(workspace: Opened, asked: Annotated[AskedWay, Query()]) -> Why:
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
    slicing = cut(workspace, asked) if asked.names else None
    over = {"attributes": workspace.known(asked.names), "where": asked.where.strip() or None}
    return make(workspace.qrels, traces, measure, slicing=slicing, **over)


def _to(**way: str) -> str:
    return f"/traces/topic{query(way)}"


def _with_queries(workspace: Workspace, table: Table) -> Table:
    """Show the first rows of a table, with the texts of queries."""
    table = first_rows(replace(table, folded=False))
    return _beside(table, "query", [workspace.query(topic) for topic in table.column("query_id").values])


def _beside(table: Table, name: str, texts: list[str]) -> Table:
    """Put a column of texts behind the first one."""
    first, *rest = table.columns
    return replace(table, columns=(first, Column(name, texts, TEXT), *rest))
