"""Home page: open data, suggested next steps, and the question that each page answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from judged.errors import JudgedError
from judged.interface.pages.answers import NAVIGATION, PageAnswer, page
from judged.interface.pages.filters import link, query_string
from judged.interface.pages.leaderboard import LeaderboardQuery, leaderboard
from judged.interface.pages.pagination import order_by
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import SlicesQuery, slices
from judged.interface.pages.workspace import LEVEL, CurrentWorkspace, Workspace, cached_in_workspace
from judged.results import COUNT, NUMBER, TEXT, Axis, Column, Table, counted
from judged.results.decimals import percent
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation.facts import qrels_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.scoring.evaluation import Estimate

MIN_JUDGED_SHARE = 0.9
"""A suggestion is shown for a smaller share of judged documents."""
DEPTH, MIN_RECALL = 100, 0.5
router = APIRouter(tags=["open data"])


class HomeQuery(Parameters):
    """Parameter of the home page: order of the runs."""

    sort: str = Field(
        "-value",
        pattern="^-?(name|value|n|missing|documents)$",
        description="Column by which the runs are sorted. A minus sign in front of the name means descending order.",
    )


class HomePage(PageAnswer):
    """Overview of the open data."""

    kind: ClassVar[str] = "open"


@cached_in_workspace
def open_data_overview(workspace: Workspace) -> HomePage:
    """Return an overview of the open data.

    >>> from judged.interface.pages.workspace import open_workspace
    >>> overview = open_data_overview(open_workspace({"q1": {"d1": 1}}, {"mine": {"q1": {"d2": 0.9, "d1": 0.8}}}))
    >>> overview.about["judgments"], overview.table("runs").column("documents").values
    (1, [2])
    """
    facts, (grades, counts) = qrels_facts(workspace.qrels), np.unique(workspace.qrels.grades, return_counts=True)
    ranked = [name for name, judged in workspace.lists.items() if judged.ranked]
    scores = workspace.scores(DEFAULT_MEASURE, ranked) if ranked else None
    estimates = scores.estimates(level=LEVEL) if scores else []
    about = {
        "title": workspace.title,
        "qrels": facts.name,
        "n": facts.n,
        "judgments": facts.judgments,
        "measure": DEFAULT_MEASURE,
        "level": LEVEL,
        "suggestions": [{"sentence": sentence, "address": address} for sentence, address in suggestions(workspace)],
        "queries": sum(bool(workspace.query(query_id)) for query_id in workspace.query_ids),
        "attributes": workspace.topic_attributes().names,
        "documents": 0 if workspace.texts is None else len(workspace.texts),
    }
    judgments = Table("grades", (Column("grade", grades.tolist()), Column("judgments", counts.tolist())))
    board = leaderboard(workspace, LeaderboardQuery.model_validate({"measures": [DEFAULT_MEASURE]})) if scores else None
    board = board if board and str(board.lead) == DEFAULT_MEASURE else None  # None if a run has no ranking
    runs = _runs(workspace, estimates, board.board() if board else Table("board", ()))
    return HomePage(about, (runs, judgments), scores.notes if scores else (), board and board.headline)


def _runs(workspace: Workspace, estimates: Sequence[Estimate], board: Table) -> Table:
    """Return the table of runs; intervals and verdicts have the colors and the words of the leaderboard."""
    estimate_by_run, lists = {estimate.run: estimate for estimate in estimates}, workspace.lists.values()
    run_estimates = [estimate_by_run.get(name) for name in workspace.run_names]
    topics = [int(np.count_nonzero(judged.returned)) for judged in lists]
    missing = [len(judged.query_ids) - n_topics for judged, n_topics in zip(lists, topics, strict=True)]
    links = [f"/topics{query_string({'runs': name})}" for name in workspace.run_names]
    values = [estimate and estimate.value for estimate in run_estimates]
    intervals = [estimate and estimate.ci for estimate in run_estimates]
    rows = [board.column("run").values.index(name) for name in workspace.run_names] if len(board) else []
    verdicts = [column.take(rows) for column in board.columns if column.name == "status"]
    statuses = board.column(DEFAULT_MEASURE).take(rows).statuses if rows else ()
    axis = Axis.over(values, intervals) if estimates else None
    column = Column("value", values, NUMBER, DEFAULT_MEASURE, ci=intervals, axis=axis)
    columns = (
        Column("name", workspace.run_names, TEXT, "Run", links=links),
        replace(column, details=["" if judged.ranked else "unranked set" for judged in lists], statuses=statuses),
        *verdicts,
        Column("n", topics, COUNT, "Topics", only="data"),
        Column("missing", missing, COUNT, "Missing"),
        Column("documents", [int(judged.returned.sum()) for judged in lists], COUNT, "Documents"),
        Column("ranked", [judged.ranked for judged in lists], only="data"),
        Column("extra", [len(judged.extra) for judged in lists], only="data"),  # topics beyond those of the judgments
    )
    return Table("runs", columns, "Runs")


def suggestions(workspace: Workspace, limit: int = 3) -> tuple[tuple[str, str], ...]:
    """Return suggestions with links: missing data first, then weaknesses of the best run."""
    suggestions: list[tuple[str, str]] = []
    for find_suggestions in (_coverage_warnings, _weak_slice, _lost_topics, _low_recall):
        try:
            suggestions += find_suggestions(workspace) if len(suggestions) < limit and workspace.lists else ()
        except JudgedError:  # a run without scores, or topics that cannot be sliced
            continue
    return tuple(suggestions)


def _coverage_warnings(workspace: Workspace) -> Iterator[tuple[str, str]]:
    missing_topics = {name: int((~judged.present).sum()) for name, judged in workspace.lists.items()}
    if incomplete := [name for name, topics in missing_topics.items() if topics]:
        worst = max(incomplete, key=missing_topics.__getitem__)
        more = (
            f" Topics are also missing from {counted(len(incomplete) - 1, 'other run')}." if len(incomplete) > 1 else ""
        )
        sentence = f"{worst} returned nothing for {counted(missing_topics[worst], 'topic')}, whose score is 0.{more}"
        yield (sentence, link("/topics", {}, runs=[worst], sort=f"run:{worst}"))
        return
    shares = {row.run: row.value for row in workspace.scores("Judged@10").estimates(ci="none")}
    worst = min(shares, key=shares.__getitem__)
    if shares[worst] < MIN_JUDGED_SHARE:
        judged = percent(shares[worst])
        sentence = f"{judged} of the top-10 documents of {worst} are judged. Unjudged documents count as not relevant."
        yield (sentence, link("/leaderboard", {}, sort="judged"))


def _weak_slice(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best = workspace.ranked_run_names()[0]
    page = slices(workspace, SlicesQuery.model_validate({"run": best, "measures": DEFAULT_MEASURE}))
    if (headline := page.headline) is not None and headline.status == "worse":
        yield (headline.sentence, link("/slices", {}, run=best, by=page.query.by))


def _lost_topics(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best, other = workspace.ranked_run_names()[:2] if len(workspace.lists) > 1 else ("", "")
    if best:
        values = workspace.scores(DEFAULT_MEASURE, (best, other)).values[:, 0]
        lost, topics = int((values[0] < values[1]).sum()), counted(values.shape[1], "topic")
        if not lost or np.nanmean(values[0]) <= np.nanmean(values[1]):
            return
        sentence = f"{best} has a higher mean, but {other} is better on {lost:,} of {topics}."
        yield (sentence, link("/compare", {}, baseline=other, run=best, outcome="losses"))


def _low_recall(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best, x = workspace.ranked_run_names()[0], f"R@{DEPTH}"
    n_topics = int(np.nansum(workspace.scores(x, (best,)).values[0, 0] < MIN_RECALL))
    if n_topics:
        text = f"On {counted(n_topics, 'topic')}, {x} of the run {best} is below {MIN_RECALL:g}."
        yield (text, link("/matrix", {}, run=best, x=x, cuts=f"{MIN_RECALL},{MIN_RECALL}"))


@router.get("/", include_in_schema=False, response_model=None)
def home(request: Request, workspace: CurrentWorkspace, query: Annotated[HomeQuery, Query()]) -> Response:
    """Show the home page; with labels only, the page to judge."""
    if not workspace.query_ids:
        return RedirectResponse("/judging")
    answer = open_data_overview(workspace)
    runs, name = answer.table("runs"), query.sort.removeprefix("-")
    keys = {column.name: column.name for column in runs.shown}
    runs = runs.take(order_by(runs.column(name).values, descending=query.sort.startswith("-")))
    values: dict[str, Any] = {"answer": answer, "query": query, "runs": runs, "keys": keys, "pages": NAVIGATION}
    return page(request, "home.html", title="Overview", **values)


@router.get("/favicon.ico", include_in_schema=False)
def icon() -> RedirectResponse:
    """Redirect to the icon, which browsers request at this path for JSON pages."""
    return RedirectResponse("/static/icon.svg")


@router.get("/api/v1/open", summary="Open data")
def home_data(workspace: CurrentWorkspace) -> dict[str, Any]:
    """Return judgments, runs, and other open data, with a score per run and notes."""
    return open_data_overview(workspace).to_dict()
