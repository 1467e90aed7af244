"""The first page: what is open, and which page answers which question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from judged.evaluation.provenance import qrels_facts
from judged.web.answers import page
from judged.web.desk import Opened
from judged.web.filters import count, interval, score
from judged.web.workspace import LEVEL, Workspace

if TYPE_CHECKING:
    from judged.evaluation import Estimate
    from judged.judging import Judged

MEASURE = "nDCG@10"
"""By which the first page tells runs apart."""
QUESTIONS = {
    "/evaluator": "How does a score come about? Change judgments or the ranking of a topic, and see every step.",
    "/leaderboard": "Which run is best, by which measures, and how sure is that?",
    "/compare": "Do two runs differ, on which topics, and could it be chance?",
    "/topics": "Which topics are hard? What did each run return for one, and why does it score so?",
    "/matrix": "Is it the candidates that fail or their ranking, on which topics and slices?",
    "/slices": "On which kinds of topics is a run strong or weak?",
    "/learn": "What does a measure count, when does it fit, and where does it mislead?",
}
"""What each page of the navigation answers."""
router = APIRouter()


@dataclass(frozen=True)
class GradeCount:
    """How often a grade was given."""

    grade: float
    judgments: int


@dataclass(frozen=True)
class OpenQrels:
    """The judgments that are open."""

    name: str
    topics: int
    judgments: int
    grades: list[GradeCount]  # rising


@dataclass(frozen=True)
class OpenRun:
    """A run that is open."""

    name: str
    ranked: bool  # False for one without scores: measures of rankings cannot be asked of it
    topics: int  # for how many topics of the judgments it returned something
    missing: int  # for how many it returned nothing
    extra: int  # how many topics it has beyond them
    documents: int  # how many documents it returned for the topics of the judgments
    value: float | None  # its mean score; None where it has none
    interval: tuple[float, float] | None  # of this mean


@dataclass(frozen=True)
class Open:
    """What is open."""

    title: str
    qrels: OpenQrels
    runs: list[OpenRun]  # as they were given
    measure: str  # by which they are told apart here
    level: float  # of intervals
    best: str  # the best run in a sentence; empty where there is none
    queries: int  # how many topics of the judgments have a text
    attributes: list[str]  # the names of what else is known of topics
    documents: int  # how many documents have a text
    warnings: list[str]  # what should be known before the numbers are used


def what_is_open(workspace: Workspace) -> Open:
    """Tell what is open.

    >>> from judged.web.workspace import open_workspace
    >>> told = what_is_open(open_workspace({"q1": {"d1": 1}}, {"mine": {"q1": {"d2": 0.9, "d1": 0.8}}}))
    >>> told.qrels.judgments, told.runs[0].documents, round(told.runs[0].value, 4)
    (1, 2, 0.6309)
    """
    made: Open = workspace.remember(("open",), lambda: _told(workspace))
    return made


def _told(workspace: Workspace) -> Open:
    facts = qrels_facts(workspace.qrels)
    grades, counts = np.unique(workspace.qrels.grades, return_counts=True)
    ranked = [name for name, judged in workspace.lists.items() if judged.ranked]
    scores = workspace.scores(MEASURE, ranked) if ranked else None
    estimates = {} if scores is None else {one.run: one for one in scores.estimates(level=LEVEL)}
    return Open(
        title=workspace.title,
        qrels=OpenQrels(
            facts.name,
            facts.topics,
            facts.judgments,
            [GradeCount(*pair) for pair in zip(grades.tolist(), counts.tolist(), strict=True)],
        ),
        runs=[_run(name, judged, estimates.get(name)) for name, judged in workspace.lists.items()],
        measure=MEASURE,
        level=LEVEL,
        best=_best(list(estimates.values())),
        queries=sum(bool(workspace.query(query_id)) for query_id in workspace.query_ids),
        attributes=list(workspace.known().names),
        documents=0 if workspace.texts is None else len(workspace.texts),
        warnings=[] if scores is None else list(scores.warnings),
    )


def _run(name: str, judged: Judged, estimate: Estimate | None) -> OpenRun:
    returned = int(np.count_nonzero(judged.returned))
    return OpenRun(
        name=name,
        ranked=judged.ranked,
        topics=returned,
        missing=len(judged.query_ids) - returned,
        extra=len(judged.extra),
        documents=int(judged.returned.sum()),
        value=None if estimate is None or np.isnan(estimate.value) else estimate.value,
        interval=None if estimate is None else estimate.ci,
    )


def _best(estimates: list[Estimate]) -> str:
    """Say which run is best, and how sure its own number is."""
    known = [one for one in estimates if not np.isnan(one.value)]
    if not known:
        return ""
    most = max(one.value for one in known)
    names = [one.run for one in known if one.value == most]
    first = next(one for one in known if one.value == most)
    who = names[0] if len(names) == 1 else f"{names[0]} and {count(len(names) - 1, 'other run', 'other runs')}"
    if len(known) == 1:
        said = f"{who} has {MEASURE}"
    else:
        said = f"{who} {'has' if len(names) == 1 else 'have'} the highest {MEASURE} of {count(len(known), 'run')}:"
    bounds = "" if first.ci is None else f" ({LEVEL:.0%} interval {interval(first.ci)})"
    return f"{said} {score(most)}{bounds}, over {count(first.topics, 'topic')}."


@router.get("/", include_in_schema=False)
def home(request: Request, workspace: Opened) -> HTMLResponse:
    """Show what is open."""
    return page(request, "home.html", title="What is open", data=what_is_open(workspace), questions=QUESTIONS)


@router.get("/favicon.ico", include_in_schema=False)
def icon() -> RedirectResponse:
    """Lead to the picture of the tab, which browsers look for beside JSON as well."""
    return RedirectResponse("/static/icon.svg")


_TAGS: list[Any] = ["What is open"]


@router.get("/api/v1/open", tags=_TAGS, summary="What is open")
def home_data(workspace: Opened) -> Open:
    """Judgments, runs and what else is known, with one number a run and what to know before it is used."""
    return what_is_open(workspace)
