"""Routes of the evaluator: the page, its parts, its data, and exports."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.write import write_qrels, write_run
from judged.errors import InputError, MeasureError
from judged.interface.pages.answers import page
from judged.interface.pages.evaluator.explanation import explain_measure
from judged.interface.pages.evaluator.paste import replace_list
from judged.interface.pages.evaluator.scores import LIST, evaluation, lists_of_state
from judged.interface.pages.evaluator.state import (
    EvaluationQuery,
    ExportQuery,
    MeasureQuery,
    Pasted,
    PasteQuery,
    read_state,
)
from judged.interface.pages.problems import PROBLEMS
from judged.interface.pages.workspace import CurrentWorkspace, Workspace
from judged.scoring.measures.grammar import parse
from judged.scoring.measures.parameters import format_value

_WHITESPACE = re.compile(r"[\s\x00-\x1f\x7f]")
_CHARACTERS_TO_ENCODE = re.compile(r"[\s%\x00-\x1f\x7f]")


def _trec(workspace: Workspace, query: ExportQuery) -> bytes:
    rankings, topic = lists_of_state(read_state(workspace, query)), query.topic or LIST
    ranking = next((ranking for ranking in rankings if ranking.name == query.which), None)
    if ranking is None:
        raise InputError("there is no second list", fix=f"use which={LIST}")
    rows = rankings[0].grades if query.format == "qrels" else ranking.run
    if not rows:
        file_kind, required = ("qrels", "grade") if query.format == "qrels" else ("run", "document")
        raise InputError(f"the {file_kind} must contain at least one {required}", fix=f"add a {required}")
    # TREC formats do not allow blanks in names. If any name has one, blanks and percent signs are percent-encoded in
    # all names, so that different names stay different and qrels and run match.
    docs = {doc for ranking in rankings for doc in (*ranking.docs, *ranking.grades)}
    if any(map(_WHITESPACE.search, (topic, *docs))):
        encode = partial(_CHARACTERS_TO_ENCODE.sub, lambda match: quote(match[0], safe=""))
        topic, rows = encode(topic), {encode(doc): number for doc, number in rows.items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "list.txt"
        if query.format == "qrels":
            write_qrels(Qrels.of({topic: rows}), path, "trec")
        else:
            write_run(Run.of({topic: rows}), path, "trec")
        return path.read_bytes()


router = APIRouter(tags=["evaluator"])
EvaluationParameters = Annotated[EvaluationQuery, Query()]
MeasureParameters = Annotated[MeasureQuery, Query()]
_API = "/api/v1/evaluator"
_FILE = {200: {"description": "File with the list.", "content": {"text/plain": {}, "text/markdown": {}}}}


@router.get("/evaluator", include_in_schema=False)
def evaluator_page(request: Request, workspace: CurrentWorkspace, query: EvaluationParameters) -> HTMLResponse:
    """Show the evaluator."""
    values = _page_values(workspace, query)
    names = {row["key"]: row["name"] for row in values["data"]["measures"]}
    try:
        measure = names[values["focus"]] if names else ""
        params = query.model_dump(exclude_unset=True)  # unset parameters default to those of the example
        calculation = explain_measure(workspace, MeasureQuery(**params, measure=measure)) if measure else None
    except MeasureError:
        calculation = None  # the row of the measure shows the reason
    return page(request, "evaluator.html", title="Evaluator", calculation=calculation, **values)


# Parts of pages, for their scripts; below the API path, so that errors are JSON.


@router.get(f"{_API}/numbers", include_in_schema=False)
def evaluator_numbers(request: Request, workspace: CurrentWorkspace, query: EvaluationParameters) -> HTMLResponse:
    """Return the parts of the page that depend on the list."""
    return page(request, "evaluator-numbers.html", **_page_values(workspace, query))


@router.get(f"{_API}/calculation", include_in_schema=False)
def evaluator_calculation(request: Request, workspace: CurrentWorkspace, query: MeasureParameters) -> HTMLResponse:
    """Return the part of the page that explains one measure."""
    return page(request, "calculation.html", calculation=explain_measure(workspace, query))


@router.get(f"{_API}/example", include_in_schema=False)
def evaluator_example(request: Request, workspace: CurrentWorkspace, query: MeasureParameters) -> HTMLResponse:
    """Return an editable list with one measure, for learning pages; options are read from the measure name."""
    measure = parse(query.measure)
    options = {name: getattr(measure, name, None) for name in ("cutoff", "gain", "discount", "base", "rel", "max")}
    options |= {"gain": options["gain"] and format_value(options["gain"]), "only": "none"}
    query = query.model_copy(update={name: value for name, value in options.items() if value is not None})
    data = evaluation(workspace, query).to_dict()
    return page(
        request, "evaluator-example.html", calculation=explain_measure(workspace, query), data=data, query=query
    )


def _page_values(workspace: Workspace, query: EvaluationQuery) -> dict[str, Any]:
    """Return the data of the page, the explained measure, and the pinned ones."""
    answer = evaluation(workspace, query)
    data = answer.to_dict()
    keys = [row["key"] for row in data["measures"]]
    focus = query.focus if query.focus in keys or not keys else keys[0]  # `only` may match no measure
    pins = [key for key in dict.fromkeys(query.pin.split(",")) if key in keys]
    return {"answer": answer, "query": query, "data": data, "focus": focus, "pins": pins, "two": "other" in data}


@router.get(_API, summary="Score a list by every measure", responses=PROBLEMS)
def evaluator(workspace: CurrentWorkspace, query: EvaluationParameters) -> JSONResponse:
    """Score a list, and an optional second one, by every measure that can be computed from a list."""
    return JSONResponse(evaluation(workspace, query).to_dict())  # faster than `Json`: values are plain already


@router.get(f"{_API}/measure", summary="Explain the score of a list by one measure", responses=PROBLEMS)
def evaluator_measure(workspace: CurrentWorkspace, query: MeasureParameters) -> dict[str, Any]:
    """Return step by step how a score is computed, and the contribution of each document."""
    return explain_measure(workspace, query).to_dict()


@router.get(
    f"{_API}/export",
    summary="Save a ranked list of documents as a file",
    responses=PROBLEMS | _FILE,
    response_class=Response,
)
def evaluator_export(workspace: CurrentWorkspace, query: Annotated[ExportQuery, Query()]) -> Response:
    """Return the list as TREC qrels or run, or with its scores as Markdown."""
    if query.format == "markdown":
        name, media = "list.md", "text/markdown"
        content = f"# A ranked list and its measures\n\n{evaluation(workspace, query).markdown()}\n".encode()
    else:
        name, media = f"{query.which}.run" if query.format == "run" else "list.qrels", "text/plain"
        content = _trec(workspace, query)
    return Response(content, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.post(f"{_API}/paste", summary="Read a list from a text", responses=PROBLEMS)
def evaluator_paste(workspace: CurrentWorkspace, query: Annotated[PasteQuery, Query()], body: Pasted) -> dict[str, Any]:
    """Replace a list by grades, documents with grades, lines of a run, or JSON; return the detected format."""
    return replace_list(workspace, query, body.text)
