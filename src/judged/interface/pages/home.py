"""The first page: what is open, what to look at next, and which page answers which question."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field

from judged.errors import JudgedError
from judged.interface.pages.answers import NAVIGATION, PageAnswer, page
from judged.interface.pages.filters import link, query
from judged.interface.pages.pagination import order_by
from judged.interface.pages.problems import Parameters
from judged.interface.pages.slices import AskedSlices, slices
from judged.interface.pages.workspace import LEVEL, Opened, Workspace
from judged.results import COUNT, NUMBER, TEXT, Column, Table, counted
from judged.results.decimals import decimal, p_text, percent
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation.facts import qrels_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged.scoring.evaluation import Estimate

LOW = 0.9
"""A smaller share of judged documents is worth a look."""
DEPTH, HALF = 100, 0.5
router = APIRouter(tags=["What is open"])


class AskedHome(Parameters):
    """The order of the runs."""

    sort: str = Field("-value", pattern="^-?(name|value|n|missing|documents)$", description="With -, descending.")


class Open(PageAnswer):
    """What is open."""

    kind: ClassVar[str] = "open"


def what_is_open(workspace: Workspace) -> Open:
    """Tell what is open.

    >>> from judged.interface.pages.workspace import open_workspace
    >>> told = what_is_open(open_workspace({"q1": {"d1": 1}}, {"mine": {"q1": {"d2": 0.9, "d1": 0.8}}}))
    >>> told.about["judgments"], told.table("runs").column("documents").values
    (1, [2])
    """
    return workspace.remember(("open",), lambda: _told(workspace))


def _told(workspace: Workspace) -> Open:
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
    links = [f"/topics{query({'runs': name})}" for name in workspace.run_names]
    columns = (
        Column("name", workspace.run_names, TEXT, "Run", links=links),
        Column(
            "value",
            [row and row.value for row in rows],
            NUMBER,
            DEFAULT_MEASURE,
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
    of = f" the highest {DEFAULT_MEASURE} of {counted(len(known), 'run')}:" if len(known) > 1 else f" {DEFAULT_MEASURE}"
    cell = Column("value", [best.value], NUMBER, ci=[best.ci]).cells()[0]
    return f"{who}{of} {cell}, over {counted(best.n, 'topic')}."


def findings(workspace: Workspace, most: int = 3) -> tuple[tuple[str, str], ...]:
    """Say what to look at next, and where: what the data lack, then where the best run is weak."""
    found: list[tuple[str, str]] = []
    for look in (_lacking, _weak_slice, _losses, _not_found):
        try:
            found += look(workspace) if len(found) < most and workspace.lists else ()
        except JudgedError:  # a run without scores, or topics that cannot be sliced: nothing is found there
            continue
    return tuple(found)


def _lacking(workspace: Workspace) -> Iterator[tuple[str, str]]:
    lacking = {name: int((~judged.present).sum()) for name, judged in workspace.lists.items()}
    if some := [name for name, topics in lacking.items() if topics]:
        worst = max(some, key=lacking.__getitem__)
        more = f", and {counted(len(some) - 1, 'other run')} also lack some" if len(some) > 1 else ""
        said = f"{worst} returned nothing for {counted(lacking[worst], 'topic')}: 0 counts there{more}."
        yield (said, link("/topics", {}, runs=[worst], sort=f"run:{worst}"))
        return
    share = {row.run: row.value for row in workspace.scores("Judged@10").estimates(ci="none")}
    worst = min(share, key=share.__getitem__)
    if share[worst] < LOW:
        said = f"Of the first 10 documents of {worst}, {percent(share[worst])} are judged: the others count as bad."
        yield (said, link("/leaderboard", {}, sort="judged"))


def _weak_slice(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best = workspace.ranked()[0]
    page = slices(workspace, AskedSlices.model_validate({"run": best, "measures": DEFAULT_MEASURE}))
    found = page.scores.tested if page.scores else ()
    row = min((row for row in found if row.better is False), key=attrgetter("value"), default=None)
    if row is not None and row.contrast is not None:
        gap = f"{decimal(row.contrast.difference, 3, '+')} against the other topics, p {p_text(row.adjusted, 0.05)}."
        said = (
            f"{best} is weak on {counted(row.n, 'topic')}, {row.part}: {DEFAULT_MEASURE} {decimal(row.value, 3)}, {gap}"
        )
        yield (said, link("/slices", {}, run=best, by=page.asked.by))


def _losses(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best, other = workspace.ranked()[:2] if len(workspace.lists) > 1 else ("", "")
    if best:
        values = workspace.scores(DEFAULT_MEASURE, (best, other)).values[:, 0]
        lost, topics = int((values[0] < values[1]).sum()), counted(values.shape[1], "topic")
        if not lost or np.nanmean(values[0]) <= np.nanmean(values[1]):
            return
        said = f"{best} is ahead on average, but {other} is better on {lost:,} of {topics}."
        yield (said, link("/compare", {}, baseline=other, run=best, outcome="losses"))


def _not_found(workspace: Workspace) -> Iterator[tuple[str, str]]:
    best, x = workspace.ranked()[0], f"R@{DEPTH}"
    few = int(np.nansum(workspace.scores(x, (best,)).values[0, 0] < HALF))
    if few:
        said = f"On {counted(few, 'topic')}, {best} finds less than half of what is relevant in its first {DEPTH}."
        yield (said, link("/matrix", {}, run=best, x=x, cuts=f"{HALF},{HALF}"))


@router.get("/", include_in_schema=False)
def home(request: Request, workspace: Opened, asked: Annotated[AskedHome, Query()]) -> HTMLResponse:
    """Show what is open."""
    answer = what_is_open(workspace)
    runs, name = answer.table("runs"), asked.sort.removeprefix("-")
    keys = {column.name: column.name for column in runs.shown}
    runs = runs.take(order_by(runs.column(name).values, falling=asked.sort.startswith("-")))
    values: dict[str, Any] = {"answer": answer, "asked": asked, "runs": runs, "keys": keys, "pages": NAVIGATION}
    return page(request, "home.html", title="What is open", **values)


@router.get("/favicon.ico", include_in_schema=False)
def icon() -> RedirectResponse:
    """Lead to the picture of the tab, which browsers look for beside JSON as well."""
    return RedirectResponse("/static/icon.svg")


@router.get("/api/v1/open", summary="What is open")
def home_data(workspace: Opened) -> dict[str, Any]:
    """Judgments, runs and what else is known, with one number per run and what to know before it is used."""
    return what_is_open(workspace).to_dict()
