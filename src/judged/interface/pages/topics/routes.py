"""The routes of the list of topics, of one topic, and of the texts of documents."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.errors import InputError
from judged.interface.pages.answer_pages import answer_page, with_links
from judged.interface.pages.answers import page
from judged.interface.pages.filters import blocks, query_string, split_at_matches
from judged.interface.pages.guard import judge_of
from judged.interface.pages.pagination import Paging, shaded
from judged.interface.pages.problems import PROBLEMS
from judged.interface.pages.topics.judged_topic import check_topics_independent, judged_topic
from judged.interface.pages.topics.topic import labels_with_topic, topic
from judged.interface.pages.topics.topic_list import (
    ExplanationQuery,
    TopicDocumentQuery,
    TopicList,
    TopicListQuery,
    TopicQuery,
    topics,
)
from judged.interface.pages.workspace import CurrentWorkspace, Workspace
from judged.results import TEXT, Axis, Table, number, significant, truncated
from judged.scoring.explanation import explain_list
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


router = APIRouter(tags=["topics"])
_MAX_HIGHLIGHTED = 100_000  # characters of a text in which matches are highlighted


def _list_values(workspace: Workspace, query: TopicListQuery, answer: TopicList | None) -> dict[str, Any]:
    """Return the values of the template: the table with links, and the rendered chart."""
    if answer is None:
        return {"runs": query.runs or workspace.run_names, "lower_is_better": False, "figure": ""}
    about, table = answer.about, answer.table()
    pair = dict(zip(("first", "second"), query.runs, strict=True)) if len(query.runs) == 2 else {}
    table = with_links(
        table, "query_id", lambda row: f"/topic{query_string(query, page=None, topic=row['query_id'], **pair)}"
    )
    scores = {"mean", *(f"run:{run}" for run in about["runs"])} if about["lower_is_better"] else ()
    table = _with_drawings(table, [f"run:{run}" for run in about["runs"]], about["lower_is_better"])
    return {
        **about,
        "figure": blocks([*answer.charts().values(), answer.table("hardest")], ["topics"]) if about["runs"] else "",
        "table": table.changed("query_id", show=truncated(80)),
        "keys": {column.name: column.name for column in table.shown} | {"mean_drawing": "spread"},
        "rising": {"query_id", "query", *scores},
        "paging": Paging.for_page(about["page"], about["total"]),
    }


def _with_drawings(table: Table, names: Sequence[str], lower_is_better: bool) -> Table:
    """Draw the mean of each topic with the range of its runs, instead of the spread, and shade the scores."""
    if len(names) < 2:
        return table
    scores = [table.column(name).values for name in names]
    ranges = [(min(row), max(row)) if all(map(math.isfinite, row)) else None for row in zip(*scores, strict=True)]
    axis = Axis.over((), ranges, "Range of runs")
    table = shaded(table, names, lower_is_better=lower_is_better)
    for name in names:
        table = table.changed(name, show=number(3))
    return table.changed("mean", ci=ranges, axis=axis).changed("spread", only="data").changed("judged", only="data")


@answer_page(router, "topics.html", "/topics", "Topics", "List of topics", _list_values)
def list_of_topics(workspace: CurrentWorkspace, query: Annotated[TopicListQuery, Query()]) -> TopicList:
    """Return topics with their queries, counts of judgments, and scores of the runs, 50 per page."""
    return topics(workspace, query)


@router.get("/topic", include_in_schema=False)
def topic_page(request: Request, workspace: CurrentWorkspace, query: Annotated[TopicQuery, Query()]) -> Response:
    """Show one topic."""
    answer = topic(workspace, query)
    tables, facts = answer.tables(), answer.facts()
    links = [
        f"/topic{query_string(query, measure=name, explain=None)}" for name in tables["scores"].column("measure").values
    ]
    tables["scores"] = tables["scores"].changed("measure", links=links)
    if (regraded := tables.get("regraded")) is not None:
        pairs = zip(regraded.column("measure").values, regraded.column("difference").values, strict=True)
        changed = [i for i, (name, difference) in enumerate(pairs) if difference or name == query.measure]
        tables["regraded"] = regraded.take(changed)
    row_by_run = {row["run"]: row for row in tables["all_runs"].records()}
    documents = tables["documents"].records()
    lists: list[dict[str, Any]] = []
    for run in facts["runs"]:
        rows = [row for row in documents if 0 < (row[f"position:{run}"] or 0) <= query.cutoff]
        lists.append({**row_by_run[run], "documents": sorted(rows, key=itemgetter(f"position:{run}"))})
    store = labels_with_topic(workspace, query.topic)
    values: dict[str, Any] = {
        "scale": store.scale if store is not None else (),
        "judge": judge_of(request, store) if store is not None else "",
        "title": f"Topic {query.topic[:80]}",
        "tables": tables,
        "lists": lists,
        "missed": _missed(tables["documents"], lists),
    }
    values |= {"query": query, "query_text": facts["query"]}
    return page(request, "topic.html", answer=answer, **{**facts, **values})


def _missed(documents: Table, lists: Sequence[dict[str, Any]]) -> Table:
    """Return the relevant documents that no list shows, with their positions in each list."""
    is_visible = documents.column("shown").values
    missed = documents.take([row for row, is_listed in enumerate(is_visible) if not is_listed])
    for row in lists:
        name = f"position:{row['run']}"
        positions = missed.column(name).values
        returned = "rank {:,}" if row["ranked"] else "returned"
        texts = [returned.format(position) if position else "not returned" for position in positions]
        missed = missed.changed(name, values=texts, show=TEXT, title=row["run"])
    missed = missed.changed("doc_id", title="Document", show=TEXT).changed("grade", title="Grade", show=significant())
    return missed.showing("doc_id", "grade", *(f"position:{row['run']}" for row in lists))


@router.get("/api/v1/topic", summary="One topic", responses=PROBLEMS)
def topic_data(workspace: CurrentWorkspace, query: Annotated[TopicQuery, Query()]) -> dict[str, Any]:
    """Return the judged lists of one or two runs, their scores, losses by stage, and score ranges."""
    return topic(workspace, query).to_dict()


@router.get("/api/v1/topic/explain", summary="Explanation of a score", responses=PROBLEMS)
def explanation_data(workspace: CurrentWorkspace, query: Annotated[ExplanationQuery, Query()]) -> dict[str, Any]:
    """Return each step of the computation, with full precision."""
    measure = parse(query.measure)
    check_topics_independent(measure)
    return explain_list(judged_topic(workspace, query.topic, query.run), measure, query.topic).to_dict()


@router.get("/api/v1/document", summary="Text of a document", responses=PROBLEMS)
def document_data(workspace: CurrentWorkspace, query: Annotated[TopicDocumentQuery, Query()]) -> dict[str, Any]:
    """Return the title and the text of a judged or returned document, as plain text up to a maximum length."""
    texts = workspace.texts
    if texts is None:
        fix = "open a collection: judged serve --texts FILE"
        raise InputError("no document texts are open", fix=fix)
    if query.doc_id not in texts:
        fix = "use a document of the collection that is judged or returned by a run"
        raise InputError(f"the document {query.doc_id!r} has no text", fix=fix)
    text = texts.text(query.doc_id)
    start = text[: query.length]
    document: dict[str, Any] = {"doc_id": query.doc_id, "title": texts.title(query.doc_id), "text": start}
    document["characters"] = len(text)
    if query_text := workspace.query(query.topic):
        *pieces, last = split_at_matches(start[:_MAX_HIGHLIGHTED], query_text)
        document["pieces"] = [*pieces, last + start[_MAX_HIGHLIGHTED:]]
    return document
