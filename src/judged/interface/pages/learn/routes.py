"""Routes of the learning pages."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from judged.errors import MeasureError
from judged.interface.pages.answers import page
from judged.interface.pages.learn import advice as chooser
from judged.interface.pages.learn import catalog as listing
from judged.interface.pages.learn.catalog import measure_page
from judged.interface.pages.learn.lessons import STEPS, LessonPage, lesson_page, prose
from judged.interface.pages.problems import PROBLEMS, UnknownError
from judged.interface.pages.workspace import CurrentWorkspace
from judged.scoring.advice.rules import SOURCES
from judged.scoring.measures.base import Entry
from judged.scoring.measures.grammar import find_entry

router = APIRouter(tags=["learning"])
AdviceParameters = Annotated[chooser.AdviceQuery, Query()]

_NONE = {**PROBLEMS, 404: {**PROBLEMS[400], "description": "There is no measure or lesson with this name."}}


def _measure_by_name(
    name: Annotated[str, Path(max_length=100, description="Name of a measure, possibly with parameters, or an alias.")],
) -> Entry:
    try:
        return find_entry(name)
    except MeasureError as error:
        raise UnknownError(str(error)) from None


def _lesson(key: Annotated[str, Path(max_length=100, description="Key of a lesson.")]) -> LessonPage:
    return lesson_page(key)


@router.get("/learn", include_in_schema=False)
def catalog_page(request: Request, query: Annotated[listing.CatalogQuery, Query()]) -> HTMLResponse:
    """Show the lessons and the catalog."""
    answer = listing.catalog(query)
    groups = groupby(answer.table().records(), key=lambda row: row["family"])
    measures = {family: list(rows) for family, rows in groups}
    values: dict[str, Any] = {"measures": measures, "query": query, "steps": STEPS, "prose": prose, **answer.about}
    return page(request, "learn.html", title="Learn", common_measures=listing.common_measures_table(), **values)


@router.get("/learn/lessons", include_in_schema=False)
def lessons_page() -> RedirectResponse:
    """Redirect to the table of contents."""
    return RedirectResponse("/learn#start")


@router.get("/learn/lessons/{key}", include_in_schema=False)
def lesson_to_read(request: Request, lesson: Annotated[LessonPage, Depends(_lesson)]) -> HTMLResponse:
    """Show a lesson."""
    table = lesson.table()
    table = table.changed("measure", links=[f"/learn/{name}" for name in table.column("family").values])
    return page(request, "lesson.html", **lesson.about, table=table, tables=lesson.tables(), prose=prose)


@router.get("/learn/{name}", include_in_schema=False)
def measure(request: Request, entry: Annotated[Entry, Depends(_measure_by_name)]) -> Response:
    """Show a measure; other names, and names with parameters, redirect to its page."""
    if entry.name != request.path_params["name"]:
        return RedirectResponse(f"/learn/{quote(entry.name)}")
    answer = measure_page(entry.cls)
    return page(request, "measure.html", **answer.about, tables=answer.tables(), prose=prose)


@router.get("/choose", include_in_schema=False)
def choose_page(request: Request, workspace: CurrentWorkspace, query: AdviceParameters) -> HTMLResponse:
    """Show the chooser."""
    advice = chooser.advice_on(workspace, query)
    values: dict[str, Any] = {"choices": chooser.choices(workspace, query, advice), "sources": SOURCES}
    return page(request, "choose.html", title="Choose measures", advice=advice, query=query, **values)


@router.get("/api/v1/measures", summary="Find measures", responses=PROBLEMS)
def measures(query: Annotated[listing.CatalogQuery, Query()]) -> dict[str, Any]:
    """Return the catalog by family: all measures, or the matching ones."""
    return listing.catalog(query).to_dict()


@router.get("/api/v1/measures/{name}", summary="One measure", responses=_NONE)
def measure_data(entry: Annotated[Entry, Depends(_measure_by_name)]) -> dict[str, Any]:
    """Return definition, parameters, and properties of a measure, an example, and its names in other tools."""
    return measure_page(entry.cls).to_dict()


@router.get("/api/v1/lessons", summary="Lessons")
def lessons() -> list[dict[str, Any]]:
    """Return the lessons, in teaching order."""
    return STEPS


@router.get("/api/v1/lessons/{key}", summary="One lesson", responses=_NONE)
def lesson(lesson: Annotated[LessonPage, Depends(_lesson)]) -> dict[str, Any]:
    """Return a lesson with its list, its scores, and common errors."""
    return lesson.to_dict()


@router.get("/api/v1/advice", summary="Advice on measures", responses=PROBLEMS)
def advice(workspace: CurrentWorkspace, query: AdviceParameters) -> dict[str, Any]:
    """Return recommended measures for the open data or for described judgments, measures to avoid, and the reasons."""
    report = chooser.advice_on(workspace, query)
    values = report.to_dict() | chooser.choices(workspace, query, report)
    return {name: value for name, value in values.items() if name != "profile" or query.about == "open"}
