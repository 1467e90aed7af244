"""The form by which files are opened in the browser, and the same for programs."""

from __future__ import annotations

import logging
import lzma
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import IO, TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, File, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from judged.data import files
from judged.data.attributes import Attributes
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run, run_ids, split_runs
from judged.data.sources import source_name
from judged.data.text_rows import TextRows
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.interface.pages.answers import page
from judged.interface.pages.home import open_data_overview
from judged.interface.pages.problems import PROBLEMS, Problem, problem_response
from judged.interface.pages.workspace import LockedFolder, Workspace, open_sample, open_workspace, workspace_holder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence


_CHUNK = 1 << 16  # bytes; fewer where lines may not be as long
_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xml", ".txt")  # those by which readers tell formats
_XZ_MEMORY = 256 << 20  # bytes; what xz files ask for, when no one had harm in mind, is less
_BY_NAME = "open it by name: judged serve QRELS RUN"
_FOREIGN = (  # the first bytes of what is not text, once it is unpacked
    ((b"PK\x03\x04",), "this is a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV"),
    ((b"PK\x05\x06",), "this is an empty zip archive", "choose the file that should be in it"),
    ((b"PAR1", b"ARROW1"), "Parquet and Arrow are not read here, as their size cannot be known beforehand", _BY_NAME),
    ((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"), "it is packed twice", "unpack it once"),
    ((b"\xff\xfe", b"\xfe\xff"), "this is UTF-16 (Windows PowerShell writes it)", "save it as UTF-8"),
)


@dataclass(frozen=True)
class Limits:
    """How much may be opened in the browser; there is no limit for files that are named on the command line."""

    runs: int = 50
    file: int = 512 << 20  # bytes of one file as it is sent
    total: int = 1 << 30  # bytes of all that is sent at once
    unpacked: int = 2 << 30  # bytes of all files after they are unpacked
    whole: int = 128 << 20  # bytes of a file that is read at once: topics, attributes, JSON
    line: int = 1 << 20  # bytes of a line of text
    long_line: int = 64 << 20  # the same for documents, and for JSON, all of which may stand in one line
    name: int = 80  # characters of a name


@dataclass(frozen=True)
class Stored:
    """A file that was sent."""

    path: Path  # where it stands, under a name of ours
    shown: str  # what it is called
    size: int  # its bytes, unpacked


def shown_name(given: str | None, otherwise: str, most: int = Limits.name) -> str:
    """Make a name that can be shown of what a browser says: no folders, nothing that does not print, not too long.

    >>> shown_name("../../etc/passwd", "qrels"), shown_name(None, "qrels"), shown_name("a" * 200, "")[35:45]
    ('passwd', 'qrels', 'aaaaa...aa')
    """
    base = (given or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in base if char.isprintable()).strip()
    if not name.strip("."):
        return otherwise
    return name if len(name) <= most else f"{name[: most // 2]}...{name[-(most - most // 2 - 3) :]}"


def store(sent: IO[bytes], shown: str, place: Path, limits: Limits, *, room: int, documents: bool = False) -> Stored:
    """Write a file that was sent to disk, unpacked."""
    plain = Path(f"{place}{_ending(shown)}")
    packed = Path(f"{place}.sent")
    try:
        step = min(_CHUNK, limits.line)  # so that only the ends of chunks need to be looked at
        _copied(iter(partial(sent.read, step), b""), packed, limits.file, shown, "as it is sent")
        _refuse_greedy(packed, shown)
        with files.opened(packed) as unpacked:
            lines = _checked(iter(partial(unpacked.read, step), b""), shown, limits, documents=documents)
            size = _copied(lines, plain, room, shown, "unpacked")
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=shown) from None
    except OSError as error:
        fix = "make room in the folder of temporary files"
        raise InputError(f"it cannot be kept ({error.strerror or error})", fix=fix, path=shown) from None
    finally:
        packed.unlink(missing_ok=True)
    return Stored(plain, shown, size)


def _ending(shown: str) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(shown).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix in _ENDINGS), "")


def _copied(chunks: Iterator[bytes], place: Path, most: int, shown: str, how: str) -> int:
    """Write chunks to a new file as long as there is room, and count their bytes."""
    size = 0
    with place.open("xb") as out:
        for chunk in chunks:
            size += len(chunk)
            if size > most:
                fix = f"choose smaller files, or {_BY_NAME}"
                raise InputError(f"it has more than {most:,} bytes {how}", fix=fix, path=shown)
            out.write(chunk)
    return size


def _checked(chunks: Iterator[bytes], shown: str, limits: Limits, *, documents: bool) -> Iterator[bytes]:
    """Pass chunks on as long as they look like lines of text."""
    longest, most, line, size = limits.line, 0, 0, 0
    for chunk in chunks:
        if not size:
            _refuse_foreign(chunk, shown)
            start = chunk.removeprefix(files.BOM).lstrip()[:1]
            longest = limits.long_line if documents or start in {b"{", b"["} else limits.line
            most = limits.whole if start == b"[" or (start == b"{" and not documents) else 0
        size += len(chunk)
        if 0 < most < size:
            fix = f"write one record a line of text, or {_BY_NAME}"
            raise InputError(f"JSON of more than {most:,} bytes", fix=fix, path=shown)
        if b"\0" in chunk:
            raise InputError("this is not text: it holds zero bytes", fix="choose text, CSV or JSON", path=shown)
        ends = [chunk.find(b"\n"), chunk.find(b"\r")]
        begins = min((end for end in ends if end >= 0), default=len(chunk))
        if line + begins > longest:
            raise InputError(f"a line has more than {longest:,} bytes", fix="choose a file of lines", path=shown)
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        line = line + len(chunk) if last < 0 else len(chunk) - last - 1
        yield chunk
    if not size:
        raise InputError("the file is empty", fix="choose a file with at least one line", path=shown)


def _refuse_foreign(head: bytes, shown: str) -> None:
    for marks, problem, fix in _FOREIGN:
        if head.startswith(marks):
            raise InputError(problem, fix=fix, path=shown)
    if head[257:262] == b"ustar":
        raise InputError("this is a tar archive", fix="unpack it and choose the files in it", path=shown)


def _refuse_greedy(packed: Path, shown: str) -> None:
    """Refuse xz data that wants much memory before the first byte comes out."""
    if files.compression(packed) != "xz":
        return
    with packed.open("rb") as file:
        try:
            lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(file.read(_CHUNK), max_length=1)
        except lzma.LZMAError as error:
            raise InputError(f"it cannot be unpacked ({error})", fix="pack it anew", path=shown) from None


_LOG = logging.getLogger("judged.web")


def workspace_of(files: Mapping[str, Sequence[Stored]], limits: Limits) -> Workspace:
    """Read what was sent, by what it is: the judgments, and beside them runs, queries, attributes and documents."""
    with _names_of([file for several in files.values() for file in several]):
        (sent,) = files["qrels"]
        with _names_of([sent]):
            qrels = replace(Qrels.read(sent.path, name=source_name(sent.shown)), where=sent.shown)
        runs = [run for file in files.get("runs", ()) for run in _runs(file, limits.runs)]
        if len(runs) > limits.runs:
            raise InputError(f"there are {len(runs):,} runs in these files", fix=f"open at most {limits.runs}")
        for run in runs:
            if len(run.name) > limits.name or not run.name.isprintable():
                fix = f"name runs with at most {limits.name} printable characters"
                raise InputError(f"{run.name[:40]!r}... is not a name for a run", fix=fix, path=run.where)
        beside: dict[str, Any] = {}
        for role, read in (("queries", Topics.read), ("attributes", Attributes.read)):
            for file in files.get(role, ()):
                with _names_of([file]):
                    beside[role] = replace(read(file.path), where=file.shown)
        (documents,) = files.get("documents", (None,))
        workspace = open_workspace(qrels, runs, texts=documents and documents.path, **beside)
        if documents is None or workspace.texts is None:
            return workspace
        return replace(workspace, texts=replace(workspace.texts, where=documents.shown))


def _runs(file: Stored, most: int) -> list[Run]:
    """Name the runs of a file; how many there are is looked at before they are taken apart."""
    with _names_of([file]):
        found: Any = Run.scan(file.path).rows
        rows: Any = replace(found, where=file.shown)
        if isinstance(rows, TextRows) and rows.layout.header and "run_id" in rows.layout.names:
            rows = TableRows(Run(rows).table, rows.where)
        if (many := len(run_ids(rows))) > most:
            raise InputError(f"there are {many:,} runs in this file", fix=f"open at most {most}", path=file.shown)
        return split_runs(rows, source_name(file.shown))


@contextmanager
def _names_of(stored: Iterable[Stored]) -> Generator[None]:
    """Say what is wrong with the names that people gave; what no reader foresaw is said as well, and logged."""
    known = list(stored)
    try:
        yield
    except InputError as error:
        said = [_with_names(text, known) for text in (error.problem, error.fix, error.path)]
        raise InputError(said[0], fix=said[1], path=said[2], line=error.line) from None
    except MissingExtraError:
        raise
    except JudgedError as error:
        raise InputError(_with_names(str(error), known)) from None
    except Exception as error:  # noqa: BLE001  a file may make a reader do anything
        _LOG.exception("a file that was sent could not be read")
        what = f"it cannot be read ({type(error).__name__})"
        where = known[0].shown if len(known) == 1 else "the files"
        raise InputError(what, fix="check its format with 'judged check'", path=where) from None


def _with_names(text: str, stored: Iterable[Stored]) -> str:
    for file in stored:
        text = text.replace(str(file.path), file.shown).replace(file.path.name, file.shown)
    return text


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
            await problem_response(Request(scope), HTTPStatus.CONFLICT, *said)(scope, receive, send)
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
    return open_data_overview(_open(request, sent)).to_dict()


@router.post("/open/sample", include_in_schema=False)
def open_sample_by_form(request: Request) -> Response:
    """Go back to the sample."""
    workspace_holder(request).replace(open_sample())
    return RedirectResponse("/", 303)


@router.post("/api/v1/open/sample", summary="Open the sample", responses=_BUSY)
def open_sample_by_program(request: Request) -> dict[str, Any]:
    """Open the sample that ships with judged, which replaces what is open for everybody."""
    return open_data_overview(workspace_holder(request).replace(open_sample())).to_dict()


def _form(request: Request, error: InputError | None = None, status: int = 200) -> HTMLResponse:
    limits = request.app.state.limits
    return page(request, "open.html", status=status, title="Open files", limits=limits, error=error)


def _open(request: Request, sent: dict[str, list[UploadFile]]) -> Workspace:
    """Open what was sent; what is open stays open until all could be read."""
    limits, folder = request.app.state.limits, LockedFolder()
    try:
        workspace = workspace_of(_stored(sent, folder.path, limits), limits)
    except BaseException:
        folder.remove()
        raise
    return workspace_holder(request).replace(replace(workspace, upload_folder=folder))


def _stored(sent: dict[str, list[UploadFile]], folder: Path, limits: Limits) -> dict[str, list[Stored]]:
    """Put every file on disk."""
    if len(sent["runs"]) > limits.runs:
        raise InputError(f"{len(sent['runs']):,} runs were sent", fix=f"open at most {limits.runs}")
    if not sent["qrels"]:
        raise InputError("no judgments were chosen", fix="choose a file of qrels")
    room, stored = limits.unpacked, dict[str, list[Stored]]()
    for role, given_files in sent.items():
        for number, file in enumerate(given_files):
            most = min(room, limits.whole) if role in {"queries", "attributes"} else room
            shown = shown_name(file.filename, f"{role}{number}", limits.name)
            place = folder / f"sent-{role}{number}"  # no word of a message, which may hold "qrels"
            kept = store(file.file, shown, place, limits, room=most, documents=role == "documents")
            stored.setdefault(role, []).append(kept)
            room -= kept.size
    return stored
