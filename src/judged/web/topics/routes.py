"""The routes of the list of topics, of one topic, and of the texts of documents."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import query, short
from judged.web.problems import PROBLEMS
from judged.web.topics.asked import AskedDocument, AskedExplanation, AskedList, AskedTopic
from judged.web.topics.documents import DocumentText, document
from judged.web.topics.explained import FullExplanation, full_explanation
from judged.web.topics.listing import topics
from judged.web.topics.topic import TopicView, topic

router = APIRouter()
_TAGS: list[str | Enum] = ["topics"]


@router.get("/topics", include_in_schema=False)
def topics_page(request: Request, workspace: Opened, asked: Annotated[AskedList, Query()]) -> Response:
    """Show the list of topics."""
    answer, pairs = topics(workspace, asked), asked.order_pairs()
    links = [f"/topic{query([('id', query_id), *pairs])}" for query_id in answer.topics.column("query_id").values]
    table = answer.topics.changed("query_id", links=links, show=short(80)).changed("query", show=short(200))
    keys = {column.name: column.name for column in table.shown} | {"query_id": "id"}
    lower = answer.facts()["lower_is_better"]
    rising = [key for key in keys.values() if key in {"id", "query"} or (lower and key.startswith(("mean", "run:")))]
    values = {"answer": answer, "table": table, "keys": keys, "rising": rising, "asked": asked, "pairs": pairs}
    return page(request, "topics.html", title="Topics", **values, **answer.facts())


@router.get("/api/v1/topics", tags=_TAGS, summary="A page of the list of topics", responses=PROBLEMS)
def topics_data(workspace: Opened, asked: Annotated[AskedList, Query()]) -> dict[str, Any]:
    """Give ids, texts, counts of judgments, and the scores of the runs: sorted, searched, filtered, 50 at a time."""
    return topics(workspace, asked).to_dict()


@router.get("/topic", include_in_schema=False)
def topic_page(request: Request, workspace: Opened, asked: Annotated[AskedTopic, Query()]) -> Response:
    """Show one topic."""
    data = topic(workspace, asked)
    return page(request, "topic.html", title=f"Topic {asked.id[:80]}", data=data, asked=asked)


@router.get("/api/v1/topic", tags=_TAGS, summary="Everything about one topic", responses=PROBLEMS)
def topic_data(workspace: Opened, asked: Annotated[AskedTopic, Query()]) -> TopicView:
    """Give the judged lists of one or two runs, their scores, where these were lost, and how far they could move."""
    return topic(workspace, asked)


@router.get("/api/v1/topic/explain", tags=_TAGS, summary="How one score comes about", responses=PROBLEMS)
def explanation_data(workspace: Opened, asked: Annotated[AskedExplanation, Query()]) -> FullExplanation:
    """Give every step of the calculation, in full precision and as text."""
    return full_explanation(workspace, asked)


@router.get("/api/v1/document", tags=_TAGS, summary="The text of one document", responses=PROBLEMS)
def document_data(workspace: Opened, asked: Annotated[AskedDocument, Query()]) -> DocumentText:
    """Give title and text of a document that was judged or returned; plain text, cut at a length."""
    return document(workspace, asked)
