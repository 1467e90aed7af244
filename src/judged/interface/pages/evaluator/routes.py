"""The routes of the evaluator: a page, its data, and its other forms."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.write import write_qrels, write_run
from judged.errors import InputError, MeasureError
from judged.interface.pages.answers import page
from judged.interface.pages.evaluator.explanation import explained
from judged.interface.pages.evaluator.paste import pasted
from judged.interface.pages.evaluator.scores import LIST, evaluation, worlds_of
from judged.interface.pages.evaluator.state import (
    AskedEvaluation,
    AskedExport,
    AskedMeasure,
    AskedPaste,
    Pasted,
    read_state,
)
from judged.interface.pages.problems import PROBLEMS
from judged.interface.pages.workspace import Opened
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value

if TYPE_CHECKING:
    from judged.interface.pages.workspace import Workspace

_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_TO_ENCODE = re.compile(r"[\s%\x00-\x1f\x7f]")


def _trec(workspace: Workspace, asked: AskedExport) -> bytes:
    """Write judgments or a run in TREC format."""
    worlds, topic = worlds_of(read_state(workspace, asked)), asked.topic or LIST
    world = next((world for world in worlds if world.name == asked.which), None)
    if world is None:
        raise InputError("there is no second list", fix=f"give which={LIST}")
    rows = worlds[0].grades if asked.format == "qrels" else world.run
    if not rows:
        what, needed = ("judgments", "grade") if asked.format == "qrels" else ("run", "document")
        raise InputError(f"there is no {needed}, and so no {what}", fix=f"give at least one {needed}")
    # Names have no blanks there. Where one has, blanks and percent signs are percent-encoded in all of them, so that
    # different names stay different and qrels and run go together; otherwise names stay as they are.
    if any(map(_BLANK.search, (topic, *(doc for world in worlds for doc in (*world.docs, *world.grades))))):
        encoded = partial(_TO_ENCODE.sub, lambda found: quote(found[0], safe=""))
        topic, rows = encoded(topic), {encoded(doc): number for doc, number in rows.items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.txt"
        if asked.format == "qrels":
            write_qrels(Qrels.of({topic: rows}), path, "trec")
        else:
            write_run(Run.of({topic: rows}), path, "trec")
        return path.read_bytes()


router = APIRouter(tags=["evaluator"])
_API = "/api/v1/evaluator"
_FILE = {200: {"description": "The file.", "content": {"text/plain": {}, "text/markdown": {}}}}


@router.get("/evaluator", include_in_schema=False)
def evaluator_page(request: Request, opened: Opened, asked: Annotated[AskedEvaluation, Query()]) -> HTMLResponse:
    """Show the evaluator."""
    values = _shown(opened, asked)
    names = {row["key"]: row["name"] for row in values["data"]["measures"]}
    try:
        measure = names[values["focus"]] if names else ""
        given = asked.model_dump(exclude_unset=True)  # without a list, what was not given is that of the example
        working = explained(opened, AskedMeasure(**given, measure=measure)) if measure else None
    except MeasureError:
        working = None  # its row says why
    return page(request, "evaluator.html", title="Evaluator", working=working, **values)


# Parts of pages, for their scripts; below the API, so that a problem is told as JSON.


@router.get(f"{_API}/numbers", include_in_schema=False)
def evaluator_numbers(request: Request, opened: Opened, asked: Annotated[AskedEvaluation, Query()]) -> HTMLResponse:
    """Give what changes on the page when its list does."""
    return page(request, "evaluator-numbers.html", **_shown(opened, asked))


@router.get(f"{_API}/working", include_in_schema=False)
def evaluator_working(request: Request, opened: Opened, asked: Annotated[AskedMeasure, Query()]) -> HTMLResponse:
    """Give the part of a page that explains one measure."""
    return page(request, "working.html", working=explained(opened, asked))


@router.get(f"{_API}/example", include_in_schema=False)
def evaluator_example(request: Request, opened: Opened, asked: Annotated[AskedMeasure, Query()]) -> HTMLResponse:
    """Give a list to edit with one measure of it, for pages that teach; its name says what it is to assume."""
    measure = parse(asked.measure)
    named = {name: getattr(measure, name, None) for name in ("cutoff", "gain", "discount", "base", "rel", "max")}
    named |= {"gain": named["gain"] and format_value(named["gain"]), "only": "none"}
    asked = asked.model_copy(update={name: value for name, value in named.items() if value is not None})
    data = evaluation(opened, asked).to_dict()
    return page(request, "evaluator-example.html", working=explained(opened, asked), data=data, asked=asked)


def _shown(opened: Workspace, asked: AskedEvaluation) -> dict[str, Any]:
    """Give what the page shows: its data, which measure is explained, and which are large."""
    answer = evaluation(opened, asked)
    data = answer.to_dict()
    keys = [row["key"] for row in data["measures"]]
    focus = asked.focus if asked.focus in keys or not keys else keys[0]  # `only` may name none
    pins = [key for key in dict.fromkeys(asked.pin.split(",")) if key in keys]
    return {"answer": answer, "asked": asked, "data": data, "focus": focus, "pins": pins, "two": "other" in data}


@router.get(_API, summary="Score a typed list by every measure", responses=PROBLEMS)
def evaluator(opened: Opened, asked: Annotated[AskedEvaluation, Query()]) -> JSONResponse:
    """Score a list, and a second one beside it, by every measure that a list is enough for."""
    return JSONResponse(evaluation(opened, asked).to_dict())  # plain values already, and this must be fast


@router.get(f"{_API}/measure", summary="Explain one measure of a list", responses=PROBLEMS)
def evaluator_measure(opened: Opened, asked: Annotated[AskedMeasure, Query()]) -> dict[str, Any]:
    """Show step by step how one score is computed, and what each document contributes to it."""
    return explained(opened, asked).to_dict()


@router.get(f"{_API}/export", summary="Write a list to a file", responses=PROBLEMS | _FILE, response_class=Response)
def evaluator_export(opened: Opened, asked: Annotated[AskedExport, Query()]) -> Response:
    """Give the list as TREC qrels or run, or with its scores as Markdown."""
    if asked.format == "markdown":
        name, media = "list.md", "text/markdown"
        content = f"# A ranked list and its measures\n\n{evaluation(opened, asked).markdown()}\n".encode()
    else:
        name, media = f"{asked.which}.run" if asked.format == "run" else "list.qrels", "text/plain"
        content = _trec(opened, asked)
    return Response(content, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.post(f"{_API}/paste", summary="Read a list from a text", responses=PROBLEMS)
def evaluator_paste(opened: Opened, asked: Annotated[AskedPaste, Query()], given: Pasted) -> dict[str, Any]:
    """Put a list from grades, documents with grades, lines of a run or JSON into the state, and say how it was read."""
    return pasted(opened, asked, given.text)
