"""The routes of the list of topics, of one topic, and of the texts of documents."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.problems import PROBLEMS
from judged.web.topics.asked import AskedDocument, AskedExplanation, AskedList, AskedTopic
from judged.web.topics.documents import DocumentText, document
from judged.web.topics.explained import FullExplanation, full_explanation
from judged.web.topics.listing import TopicList, topics
from judged.web.topics.topic import TopicView, topic

router = APIRouter()
_TAGS: list[str | Enum] = ["topics"]


@router.get("/topics", include_in_schema=False)
def topics_page(request: Request, workspace: Opened, asked: Annotated[AskedList, Query()]) -> Response:
    """Show the list of topics."""
    return page(request, "topics.html", title="Topics", data=topics(workspace, asked), asked=asked)


@router.get("/api/v1/topics", tags=_TAGS, summary="A page of the list of topics", responses=PROBLEMS)
def topics_data(workspace: Opened, asked: Annotated[AskedList, Query()]) -> TopicList:
    """Give ids, texts, counts of judgments, and the scores of the runs: sorted, searched, filtered, 50 at a time."""
    return topics(workspace, asked)


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
