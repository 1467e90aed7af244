"""The routes of the pages to learn from."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from judged.errors import MeasureError
from judged.interface.pages.answers import page
from judged.interface.pages.learn import advice as chooser
from judged.interface.pages.learn import catalogue as listing
from judged.interface.pages.learn.catalogue import measure_page
from judged.interface.pages.learn.lessons import STEPS, LessonPage, lesson_page, prose
from judged.interface.pages.problems import PROBLEMS, UnknownError
from judged.interface.pages.workspace import Opened
from judged.scoring.advice.rules import SOURCES
from judged.scoring.measures.base import Entry
from judged.scoring.measures.grammar import find_entry

router = APIRouter(tags=["learning"])

_NONE = {**PROBLEMS, 404: {**PROBLEMS[400], "description": "There is none of this name."}}


def _named(
    name: Annotated[str, Path(max_length=100, description="A measure's name, in any form that is understood.")],
) -> Entry:
    try:
        return find_entry(name)
    except MeasureError as error:
        raise UnknownError(str(error)) from None


def _lesson(key: Annotated[str, Path(max_length=100, description="The key of a lesson.")]) -> LessonPage:
    return lesson_page(key)


@router.get("/learn", include_in_schema=False)
def catalogue_page(request: Request, asked: Annotated[listing.AskedCatalogue, Query()]) -> HTMLResponse:
    """Show the lessons and the catalogue."""
    found = listing.catalogue(asked)
    groups = groupby(found.table().records(), key=lambda row: row["family"])
    measures = {family: list(rows) for family, rows in groups}
    values: dict[str, Any] = {"measures": measures, "asked": asked, "steps": STEPS, "prose": prose, **found.about}
    return page(request, "learn.html", title="Learn", usual=listing.usual(), **values)


@router.get("/learn/lessons", include_in_schema=False)
def lessons_page() -> RedirectResponse:
    """Lead to the table of contents."""
    return RedirectResponse("/learn#start")


@router.get("/learn/lessons/{key}", include_in_schema=False)
def lesson_to_read(request: Request, lesson: Annotated[LessonPage, Depends(_lesson)]) -> HTMLResponse:
    """Show a lesson."""
    table = lesson.table()
    table = table.changed("measure", links=[f"/learn/{name}" for name in table.column("family").values])
    return page(request, "lesson.html", **lesson.about, table=table, prose=prose)


@router.get("/learn/{name}", include_in_schema=False)
def measure(request: Request, entry: Annotated[Entry, Depends(_named)]) -> Response:
    """Show a measure; other names of it, and names with parameters, lead to the page of the measure."""
    if entry.name != request.path_params["name"]:
        return RedirectResponse(f"/learn/{quote(entry.name)}")
    about = measure_page(entry.cls)
    return page(request, "measure.html", **about.about, tables=about.tables(), prose=prose)


@router.get("/choose", include_in_schema=False)
def choose_page(request: Request, opened: Opened, asked: Annotated[chooser.AskedAdvice, Query()]) -> HTMLResponse:
    """Show the chooser."""
    advice = chooser.advice_on(opened, asked)
    values: dict[str, Any] = {"choices": chooser.choices(opened, asked, advice), "sources": SOURCES}
    return page(request, "choose.html", title="Choose measures", advice=advice, asked=asked, **values)


@router.get("/api/v1/measures", summary="Find measures", responses=PROBLEMS)
def measures(asked: Annotated[listing.AskedCatalogue, Query()]) -> dict[str, Any]:
    """Give the catalogue, family by family: all measures, or those that are looked for."""
    return listing.catalogue(asked).to_dict()


@router.get("/api/v1/measures/{name}", summary="All about one measure", responses=_NONE)
def measure_data(entry: Annotated[Entry, Depends(_named)]) -> dict[str, Any]:
    """Give a measure's definition, parameters and properties, a worked example, and its names in other tools."""
    return measure_page(entry.cls).to_dict()


@router.get("/api/v1/lessons", summary="The lessons")
def lessons() -> list[dict[str, Any]]:
    """Name the lessons, in the order in which the ideas build on one another."""
    return STEPS


@router.get("/api/v1/lessons/{key}", summary="One lesson", responses=_NONE)
def lesson(lesson: Annotated[LessonPage, Depends(_lesson)]) -> dict[str, Any]:
    """Give a lesson with its list, its numbers, and the errors that it warns of."""
    return lesson.to_dict()


@router.get("/api/v1/advice", summary="Which measures suit the data", responses=PROBLEMS)
def advice(opened: Opened, asked: Annotated[chooser.AskedAdvice, Query()]) -> dict[str, Any]:
    """Say which measures suit what is open, or judgments as they are described, and which do not, with reasons."""
    found = chooser.advice_on(opened, asked)
    made = found.to_dict() | chooser.choices(opened, asked, found)
    return {name: value for name, value in made.items() if name != "profile" or asked.about == "open"}
