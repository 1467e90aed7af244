"""The form by which files are opened in the browser, and the same for programs."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, File, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from judged.errors import InputError
from judged.web.answers import page
from judged.web.desk import Folder, desk_of
from judged.web.home import what_is_open
from judged.web.problems import PROBLEMS, Problem, answer
from judged.web.uploads.contents import workspace_of
from judged.web.uploads.storage import Limits, Stored, shown_name, store
from judged.web.workspace import Workspace, open_sample

if TYPE_CHECKING:
    from pathlib import Path


OPEN, API_OPEN = "/open", "/api/v1/open"
OPENING = frozenset({OPEN, API_OPEN, "/open/sample", "/api/v1/open/sample"})
"""Where another workspace is opened; nothing but `one_at_a_time` keeps two from doing so at once."""
_BUSY: dict[int | str, dict[str, Any]] = {409: {"model": Problem, "description": "Other files are being opened."}}
_UPLOAD: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    400: {"model": Problem, "description": "A file cannot be read, or the files do not fit together."},
    408: {"model": Problem, "description": "The rest of the files did not come in time."},
    **_BUSY,
}
router = APIRouter(tags=["What is open"])


def one_at_a_time(app: ASGIApp) -> ASGIApp:
    """Refuse to open files while others are opened, before they are sent: an ASGI application around another."""
    busy = Lock()

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in OPENING:
            await app(scope, receive, send)
        elif not busy.acquire(blocking=False):
            said = "other files are being opened", "wait until they are open"
            await answer(Request(scope), HTTPStatus.CONFLICT, *said)(scope, receive, send)
        else:
            try:
                await app(scope, receive, send)
            finally:
                busy.release()

    return answering


def _sent(
    qrels: Annotated[UploadFile, File(description="The judgments.")],
    runs: Annotated[list[UploadFile] | None, File(description="Runs; each is called like its file.")] = None,
    queries: Annotated[UploadFile | None, File(description="The texts of the queries.")] = None,
    attributes: Annotated[UploadFile | None, File(description="A table of facts about the topics.")] = None,
    documents: Annotated[UploadFile | None, File(description="Titles or texts of documents.")] = None,
) -> dict[str, list[UploadFile]]:
    """Give the files that were chosen: a browser sends an empty one without a name where none was."""
    single = {"qrels": qrels, "queries": queries, "attributes": attributes, "documents": documents}
    sent = {"runs": runs or [], **{role: [file] for role, file in single.items() if file}}
    return {role: [file for file in files if file.filename or file.size] for role, files in sent.items()}


Files = Annotated[dict[str, list[UploadFile]], Depends(_sent)]


@router.get(OPEN, include_in_schema=False)
def form(request: Request) -> HTMLResponse:
    """Show the form."""
    return _form(request)


@router.post(OPEN, include_in_schema=False)
def open_by_form(request: Request, sent: Files) -> Response:
    """Open what was sent, and show it; or say what is wrong beside the form."""
    try:
        _open(request, sent)
    except InputError as error:
        return _form(request, error, status=400)
    return RedirectResponse("/", 303)


@router.post(
    API_OPEN,
    summary="Open other files",
    responses=_UPLOAD,
    openapi_extra={"x-example": "curl -F qrels=@qrels.txt -F runs=@bm25.run -F runs=@dense.run"},
)
def open_by_program(request: Request, sent: Files) -> dict[str, Any]:
    """Open judgments and runs, which replaces what is open for everybody. If it fails, all stays as it was."""
    return what_is_open(_open(request, sent)).to_dict()


@router.post("/open/sample", include_in_schema=False)
def open_sample_by_form(request: Request) -> Response:
    """Go back to the sample."""
    desk_of(request).replace(open_sample())
    return RedirectResponse("/", 303)


@router.post("/api/v1/open/sample", summary="Open the sample", responses=_BUSY)
def open_sample_by_program(request: Request) -> dict[str, Any]:
    """Open the sample that ships with judged, which replaces what is open for everybody."""
    return what_is_open(desk_of(request).replace(open_sample())).to_dict()


def _form(request: Request, error: InputError | None = None, status: int = 200) -> HTMLResponse:
    limits = request.app.state.limits
    return page(request, "open.html", status=status, title="Open files", limits=limits, error=error)


def _open(request: Request, sent: dict[str, list[UploadFile]]) -> Workspace:
    """Open what was sent; what is open stays open until all could be read."""
    limits, folder = request.app.state.limits, Folder()
    try:
        workspace = workspace_of(_stored(sent, folder.path, limits), limits)
    except BaseException:
        folder.remove()
        raise
    return desk_of(request).replace(replace(workspace, sent=folder))


def _stored(sent: dict[str, list[UploadFile]], folder: Path, limits: Limits) -> dict[str, list[Stored]]:
    """Put every file on disk."""
    if len(sent["runs"]) > limits.runs:
        raise InputError(f"{len(sent['runs']):,} runs were sent", fix=f"open at most {limits.runs}")
    if not sent["qrels"]:
        raise InputError("no judgments were chosen", fix="choose a file of qrels")
    room, stored = limits.unpacked, dict[str, list[Stored]]()
    for role, files in sent.items():
        for number, file in enumerate(files):
            most = min(room, limits.whole) if role in {"queries", "attributes"} else room
            shown = shown_name(file.filename, f"{role}{number}", limits.name)
            place = folder / f"sent-{role}{number}"  # no word of a message, which may hold "qrels"
            kept = store(file.file, shown, place, limits, room=most, documents=role == "documents")
            stored.setdefault(role, []).append(kept)
            room -= kept.size
    return stored
