"""The first page: what is open, and which page answers which question."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field

from judged.answer import COUNT, NUMBER, TEXT, Column, Table, counted
from judged.evaluation.provenance import qrels_facts
from judged.web.answers import NAVIGATION, PageAnswer, page
from judged.web.desk import Opened
from judged.web.filters import query
from judged.web.findings import findings
from judged.web.pagination import order_by
from judged.web.problems import Parameters
from judged.web.workspace import LEVEL, MEASURE, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Estimate

router = APIRouter()


class AskedHome(Parameters):
    """The order of the runs."""

    sort: str = Field("-value", pattern="^-?(name|value|n|missing|documents)$", description="With -, descending.")


class Open(PageAnswer):
    """What is open."""

    kind: ClassVar[str] = "open"


def what_is_open(workspace: Workspace) -> Open:
    """Tell what is open.

    >>> from judged.web.workspace import open_workspace
    >>> told = what_is_open(open_workspace({"q1": {"d1": 1}}, {"mine": {"q1": {"d2": 0.9, "d1": 0.8}}}))
    >>> told.about["judgments"], told.table("runs").column("documents").values
    (1, [2])
    """
    return workspace.remember(("open",), lambda: _told(workspace))


def _told(workspace: Workspace) -> Open:
    facts, (grades, counts) = qrels_facts(workspace.qrels), np.unique(workspace.qrels.grades, return_counts=True)
    ranked = [name for name, judged in workspace.lists.items() if judged.ranked]
    scores = workspace.scores(MEASURE, ranked) if ranked else None
    estimates = scores.estimates(level=LEVEL) if scores else []
    about = {
        "title": workspace.title,
        "qrels": facts.name,
        "n": facts.n,
        "judgments": facts.judgments,
        "measure": MEASURE,
        "level": LEVEL,
        "best": _best(estimates),
        "next": [{"sentence": said, "address": where} for said, where in findings(workspace)],
        "queries": sum(bool(workspace.query(query_id)) for query_id in workspace.query_ids),
        "attributes": workspace.known().names,
        "documents": 0 if workspace.texts is None else len(workspace.texts),
    }
    judgments = Table("grades", (Column("grade", grades.tolist()), Column("judgments", counts.tolist())))
    return Open(about, (_runs(workspace, estimates), judgments), scores.notes if scores else ())


def _runs(workspace: Workspace, estimates: Sequence[Estimate]) -> Table:
    known, lists = {row.run: row for row in estimates}, workspace.lists.values()
    rows = [known.get(name) for name in workspace.run_names]
    topics = [int(np.count_nonzero(judged.returned)) for judged in lists]
    missing = [len(judged.query_ids) - found for judged, found in zip(lists, topics, strict=True)]
    columns = (
        Column(
            "name",
            workspace.run_names,
            TEXT,
            "Run",
            links=[f"/topics{query({'runs': name})}" for name in workspace.run_names],
        ),
        Column(
            "value",
            [row and row.value for row in rows],
            NUMBER,
            MEASURE,
            ci=[row and row.ci for row in rows],
            beside=["" if judged.ranked else "a set, no ranking" for judged in lists],
        ),
        Column("n", topics, COUNT, "Topics"),
        Column("missing", missing, COUNT, "Missing"),
        Column("documents", [int(judged.returned.sum()) for judged in lists], COUNT, "Documents"),
        Column("ranked", [judged.ranked for judged in lists], only="data"),
        Column("extra", [len(judged.extra) for judged in lists], only="data"),  # topics beyond those of the judgments
    )
    return Table("runs", columns, "Runs")


def _best(estimates: Sequence[Estimate]) -> str:
    """Say which run is best, and how sure its own number is."""
    known = [row for row in estimates if not np.isnan(row.value)]
    if not known:
        return ""
    best = max(known, key=attrgetter("value"))
    equal = sum(row.value == best.value for row in known) - 1
    who = f"{best.run} and {counted(equal, 'other run')} have" if equal else f"{best.run} has"
    of = f" the highest {MEASURE} of {counted(len(known), 'run')}:" if len(known) > 1 else f" {MEASURE}"
    cell = Column("value", [best.value], NUMBER, ci=[best.ci]).cells()[0]
    return f"{who}{of} {cell}, over {counted(best.n, 'topic')}."


@router.get("/", include_in_schema=False)
def home(request: Request, workspace: Opened, asked: Annotated[AskedHome, Query()]) -> HTMLResponse:
    """Show what is open."""
    answer = what_is_open(workspace)
    runs, name = answer.table("runs"), asked.sort.removeprefix("-")
    keys = {column.name: column.name for column in runs.shown}
    runs = runs.take(order_by(runs.column(name).values, falling=asked.sort.startswith("-")))
    values = {"answer": answer, "asked": asked, "runs": runs, "keys": keys, "pages": NAVIGATION}
    return page(request, "home.html", title="What is open", **values)


@router.get("/favicon.ico", include_in_schema=False)
def icon() -> RedirectResponse:
    """Lead to the picture of the tab, which browsers look for beside JSON as well."""
    return RedirectResponse("/static/icon.svg")


@router.get("/api/v1/open", tags=["What is open"], summary="What is open")
def home_data(workspace: Opened) -> dict[str, Any]:
    """Judgments, runs and what else is known, with one number per run and what to know before it is used."""
    return what_is_open(workspace).to_dict()
