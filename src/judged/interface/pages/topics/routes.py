"""The routes of the list of topics, of one topic, and of the texts of documents."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.errors import InputError
from judged.interface.pages.answer_pages import answer_page, leading
from judged.interface.pages.answers import page
from judged.interface.pages.filters import blocks, marked, query
from judged.interface.pages.guard import judge_of
from judged.interface.pages.pagination import Paging
from judged.interface.pages.problems import PROBLEMS
from judged.interface.pages.topics.judged_topic import check_apart, judged_topic
from judged.interface.pages.topics.topic import labels_of, topic
from judged.interface.pages.topics.topic_list import (
    AskedDocument,
    AskedExplanation,
    AskedList,
    AskedTopic,
    TopicList,
    topics,
)
from judged.interface.pages.workspace import Opened
from judged.results import TEXT, Table, beginning, significant
from judged.scoring.explanation import explain_list
from judged.scoring.measures.grammar import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.interface.pages.workspace import Workspace

router = APIRouter(tags=["topics"])
_MARKED = 100_000  # characters of a text in which words are marked


def _listed(workspace: Workspace, asked: AskedList, answer: TopicList | None) -> dict[str, Any]:
    """Lead to each topic; draw the means."""
    if answer is None:
        return {"runs": asked.runs or workspace.run_names, "lower_is_better": False, "figure": ""}
    about, table = answer.about, answer.table()
    pair = dict(zip(("first", "second"), asked.runs, strict=True)) if len(asked.runs) == 2 else {}
    table = leading(table, "query_id", lambda row: f"/topic{query(asked, page=None, topic=row['query_id'], **pair)}")
    scores = {"mean", *(f"run:{run}" for run in about["runs"])} if about["lower_is_better"] else ()
    return {
        **about,
        "figure": blocks(answer.charts().values(), ["topics"]) if about["runs"] else "",
        "table": table.changed("query_id", show=beginning(80)),
        "keys": {column.name: column.name for column in table.shown},
        "rising": {"query_id", "query", *scores},
        "paging": Paging.at(about["page"], about["total"]),
    }


@answer_page(router, "topics.html", "/topics", "Topics", "A page of the list of topics", _listed)
def list_of_topics(workspace: Opened, asked: Annotated[AskedList, Query()]) -> TopicList:
    """Give ids, texts, counts of judgments, and the scores of the runs: sorted, searched, filtered, 50 at a time."""
    return topics(workspace, asked)


@router.get("/topic", include_in_schema=False)
def topic_page(request: Request, workspace: Opened, asked: Annotated[AskedTopic, Query()]) -> Response:
    """Show one topic."""
    answer = topic(workspace, asked)
    tables, runs = answer.tables(), answer.facts()["runs"]
    links = [f"/topic{query(asked, measure=name, explain=None)}" for name in tables["scores"].column("measure").values]
    tables["scores"] = tables["scores"].changed("measure", links=links)
    if (moved := tables.get("regraded")) is not None:
        chosen = zip(moved.column("measure").values, moved.column("difference").values, strict=True)
        tables["regraded"] = moved.take([at for at, (name, by) in enumerate(chosen) if by or name == asked.measure])
    known = {row["run"]: row for row in tables["all_runs"].records()}
    documents = tables["documents"].records()
    lists: list[dict[str, Any]] = []
    for run in runs:
        shown = [row for row in documents if 0 < (row[f"place:{run}"] or 0) <= asked.cutoff]
        lists.append({**known[run], "documents": sorted(shown, key=itemgetter(f"place:{run}"))})
    store = labels_of(workspace, asked.topic)
    values = {
        "scale": store.scale if store is not None else (),
        "judge": judge_of(request, store) if store is not None else "",
        "title": f"Topic {asked.topic[:80]}",
        "tables": tables,
        "lists": lists,
        "missed": _missed(tables["documents"], lists),
    }
    return page(request, "topic.html", answer=answer, asked=asked, **values, **answer.facts())


def _missed(documents: Table, lists: Sequence[dict[str, Any]]) -> Table:
    """Lay out the relevant documents that no list shows, with where each list has them."""
    shown = documents.column("shown").values
    missed = documents.take([at for at, seen in enumerate(shown) if not seen])
    for row in lists:
        name = f"place:{row['run']}"
        places = missed.column(name).values
        said = [(f"rank {place:,}" if row["ranked"] else "returned") if place else "not returned" for place in places]
        missed = missed.changed(name, values=said, show=TEXT, title=row["run"])
    missed = missed.changed("doc_id", title="Document", show=TEXT).changed("grade", title="Grade", show=significant())
    return missed.showing("doc_id", "grade", *(f"place:{row['run']}" for row in lists))


@router.get("/api/v1/topic", summary="Everything about one topic", responses=PROBLEMS)
def topic_data(workspace: Opened, asked: Annotated[AskedTopic, Query()]) -> dict[str, Any]:
    """Give the judged lists of one or two runs, their scores, where these were lost, and how far they could move."""
    return topic(workspace, asked).to_dict()


@router.get("/api/v1/topic/explain", summary="How one score is computed", responses=PROBLEMS)
def explanation_data(workspace: Opened, asked: Annotated[AskedExplanation, Query()]) -> dict[str, Any]:
    """Give every step of the calculation, in full precision."""
    measure = parse(asked.measure)
    check_apart(measure)
    return explain_list(judged_topic(workspace, asked.topic, asked.run), measure, asked.topic).to_dict()


@router.get("/api/v1/document", summary="The text of one document", responses=PROBLEMS)
def document_data(workspace: Opened, asked: Annotated[AskedDocument, Query()]) -> dict[str, Any]:
    """Give title and text of a document that was judged or returned; plain text, cut at a length."""
    texts = workspace.texts
    if texts is None:
        fix = "open a collection as well: judged serve --texts FILE"
        raise InputError("no texts of documents are open", fix=fix)
    if asked.doc_id not in texts:
        fix = "texts are kept of documents that were judged or returned; the collection may lack it"
        raise InputError(f"no text of document {asked.doc_id!r} is known", fix=fix)
    text = texts.text(asked.doc_id)
    start = text[: asked.length]
    found: dict[str, Any] = {"doc_id": asked.doc_id, "title": texts.title(asked.doc_id), "text": start}
    found["characters"] = len(text)
    if query := workspace.query(asked.topic):
        *pieces, rest = marked(start[:_MARKED], query)  # every second piece is a word of the query
        found["pieces"] = [*pieces, rest + start[_MARKED:]]
    return found
