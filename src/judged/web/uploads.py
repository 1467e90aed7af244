"""Uploads: opening files in the browser or by the API."""

from __future__ import annotations

import logging
import lzma
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import IO, TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from judged.components import serve_modules, workspace_arguments
from judged.data import files
from judged.data.attributes import Attributes
from judged.data.column_names import parse_columns, use_columns
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run, run_ids, split_runs
from judged.data.sources import source_name
from judged.data.text_rows import TextRows
from judged.data.topics import Topics
from judged.errors import InputError, JudgedError, MissingExtraError
from judged.interface.options import options_by_name
from judged.interface.pages.answers import UPLOADED_OPTIONS, page
from judged.interface.pages.home import open_data_overview
from judged.interface.pages.problems import PROBLEMS, Problem, problem_response
from judged.interface.pages.workspace import (
    CurrentWorkspace,
    LockedFolder,
    Workspace,
    open_sample,
    open_workspace,
    workspace_holder,
)
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence


_CHUNK = 1 << 16  # bytes; smaller if the limit of a line is smaller
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xml", ".txt")  # from which readers detect formats
_XZ_MEMORY = 256 << 20  # bytes; more than the highest preset of xz needs
_BY_NAME = "open the file on the command line: judged serve QRELS RUN"
_UNSUPPORTED_FORMATS = (  # first bytes after decompression, problem, and fix
    (
        (b"PK\x03\x04",),
        "zip archives and Excel workbooks are not supported",
        "unpack the archive, or save the sheet as CSV",
    ),
    ((b"PK\x05\x06",), "the zip archive is empty", "select another file"),
    (
        (b"PAR1", b"ARROW1"),
        "Parquet and Arrow files cannot be uploaded, because their unpacked size is unknown",
        _BY_NAME,
    ),
    ((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"), "the file is compressed twice", "decompress it once"),
    ((b"\xff\xfe", b"\xfe\xff"), "the encoding is UTF-16, as written by Windows PowerShell", "save the file as UTF-8"),
)


@dataclass(frozen=True)
class Limits:
    """Limits of uploads; files on the command line have no limits."""

    runs: int = 50
    file: int = 512 << 20  # bytes of a file as sent
    total: int = 1 << 30  # bytes of all files as sent
    unpacked: int = 2 << 30  # bytes of all files after decompression
    in_memory: int = 128 << 20  # bytes of a file that is loaded completely: topics, attributes, JSON
    line: int = 1 << 20  # bytes of a line of text
    long_line: int = 64 << 20  # bytes of a line of documents or JSON, which may have one line only
    name: int = 80  # characters of a name


@dataclass(frozen=True)
class StoredFile:
    """Uploaded file on disk."""

    path: Path  # with a generated name
    display_name: str  # name from the browser, for messages
    size: int  # bytes after decompression


def display_name(file_name: str | None, default: str, max_length: int = Limits.name) -> str:
    """Return a safe file name from that of a browser: without folders and unprintable characters, and shortened.

    >>> display_name("../../etc/passwd", "qrels"), display_name(None, "qrels"), display_name("a" * 200, "")[35:45]
    ('passwd', 'qrels', 'aaaaa...aa')
    """
    # Browsers on Windows send backslashes.
    base = (file_name or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(char for char in base if char.isprintable()).strip()
    if not name.strip("."):
        return default
    head = max_length // 2
    return name if len(name) <= max_length else f"{name[:head]}...{name[-(max_length - head - 3) :]}"


def store(
    upload: IO[bytes], name: str, prefix: Path, limits: Limits, *, max_size: int, documents: bool = False
) -> StoredFile:
    """Decompress an upload into a file whose path starts with `prefix`; check its size and lines."""
    plain, packed = Path(f"{prefix}{_suffix(name)}"), Path(f"{prefix}.sent")
    try:
        step = min(_CHUNK, limits.line)  # no line within a chunk can exceed the limit, so check the ends only
        _copy_chunks(iter(partial(upload.read, step), b""), packed, limits.file, name, "as uploaded")
        _check_xz_memory(packed, name)
        # Decompression streams, so a small file that expands to gigabytes stops at the limit.
        with files.opened(packed) as unpacked:
            lines = _check_chunks(iter(partial(unpacked.read, step), b""), name, limits, documents=documents)
            size = _copy_chunks(lines, plain, max_size, name, "after decompression")
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=name) from None
    except OSError as error:
        fix = "free space in the folder of temporary files"
        raise InputError(f"the file cannot be stored ({error.strerror or error})", fix=fix, path=name) from None
    finally:
        packed.unlink(missing_ok=True)
    return StoredFile(plain, name, size)


def _suffix(name: str) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix in _SUFFIXES), "")


def _copy_chunks(chunks: Iterator[bytes], path: Path, max_size: int, name: str, state: str) -> int:
    """Write chunks to a new file, and return their size; raise InputError if it exceeds `max_size`."""
    size = 0
    with path.open("xb") as out:
        for chunk in chunks:
            size += len(chunk)
            if size > max_size:
                fix = f"select smaller files, or {_BY_NAME}"
                raise InputError(f"the file must have at most {max_size:,} bytes {state}", fix=fix, path=name)
            out.write(chunk)
    return size


def _check_chunks(chunks: Iterator[bytes], name: str, limits: Limits, *, documents: bool) -> Iterator[bytes]:
    """Yield chunks; raise InputError if they are no lines of text within the limits."""
    max_line, max_json, line_size, size = limits.line, 0, 0, 0
    for chunk in chunks:
        if not size:
            _check_format(chunk, name)
            start = chunk.removeprefix(files.BOM).lstrip()[:1]
            max_line = limits.long_line if documents or start in {b"{", b"["} else limits.line
            max_json = limits.in_memory if start == b"[" or (start == b"{" and not documents) else 0
        size += len(chunk)
        if 0 < max_json < size:
            fix = f"write one record per line, or {_BY_NAME}"
            raise InputError(f"JSON must have at most {max_json:,} bytes", fix=fix, path=name)
        if b"\0" in chunk:
            fix = "select a text, CSV, or JSON file"
            raise InputError("the file must be text, but contains NUL bytes", fix=fix, path=name)
        line_ends = [chunk.find(b"\n"), chunk.find(b"\r")]
        first_end = min((end for end in line_ends if end >= 0), default=len(chunk))
        if line_size + first_end > max_line:
            problem = f"a line must have at most {max_line:,} bytes"
            raise InputError(problem, fix="select a file with shorter lines", path=name)
        last_end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        line_size = line_size + len(chunk) if last_end < 0 else len(chunk) - last_end - 1
        yield chunk
    if not size:
        raise InputError("the file is empty", fix="select a file with at least one line", path=name)


def _check_format(head: bytes, name: str) -> None:
    for signatures, problem, fix in _UNSUPPORTED_FORMATS:
        if head.startswith(signatures):
            raise InputError(problem, fix=fix, path=name)
    if head[257:262] == b"ustar":
        raise InputError("tar archives are not supported", fix="unpack the archive, and select its files", path=name)


def _check_xz_memory(packed: Path, name: str) -> None:
    # The header of xz data can demand gigabytes of memory before the first byte is decompressed.
    if files.compression(packed) != "xz":
        return
    with packed.open("rb") as file:
        try:
            lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(file.read(_CHUNK), max_length=1)
        except lzma.LZMAError as error:
            raise InputError(f"the file cannot be decompressed ({error})", fix="compress it again", path=name) from None


_LOG = logging.getLogger("judged.web")


def workspace_of(files: Mapping[str, Sequence[StoredFile]], limits: Limits) -> Workspace:
    """Open a workspace from uploaded files by role: qrels, runs, queries, attributes, documents."""
    with _use_display_names([file for role_files in files.values() for file in role_files]):
        (qrels_file,) = files["qrels"]
        with _use_display_names([qrels_file]):
            name = qrels_file.display_name
            qrels = replace(Qrels.read(qrels_file.path, name=source_name(name)), where=name)
        runs = [run for file in files.get("runs", ()) for run in _runs(file, limits.runs)]
        if len(runs) > limits.runs:
            problem = f"the files must have at most {limits.runs} runs, got {len(runs):,}"
            raise InputError(problem, fix="open fewer runs")
        for run in runs:
            if len(run.name) > limits.name or not run.name.isprintable():
                problem = f"a run name must have at most {limits.name} printable characters, got {run.name[:40]!r}..."
                raise InputError(problem, fix="rename the run", path=run.where)
        topic_files: dict[str, Any] = {}
        for role, read in (("queries", Topics.read), ("attributes", Attributes.read)):
            for file in files.get(role, ()):
                with _use_display_names([file]):
                    topic_files[role] = replace(read(file.path), where=file.display_name)
        (documents,) = files.get("documents", (None,))
        workspace = open_workspace(qrels, runs, texts=documents and documents.path, **topic_files)
        if documents is None or workspace.texts is None:
            return workspace
        return replace(workspace, texts=replace(workspace.texts, where=documents.display_name))


def _runs(file: StoredFile, max_runs: int) -> list[Run]:
    """Read the runs of a file; check their number before splitting them, which is slow."""
    with _use_display_names([file]):
        source: Any = Run.scan(file.path).rows
        rows: Any = replace(source, where=file.display_name)
        if isinstance(rows, TextRows) and rows.layout.header and "run_id" in rows.layout.names:
            rows = TableRows(Run(rows).table, rows.where)
        if (count := len(run_ids(rows))) > max_runs:
            problem = f"the file must have at most {max_runs} runs, got {count:,}"
            raise InputError(problem, fix="open fewer runs", path=file.display_name)
        return split_runs(rows, source_name(file.display_name))


@contextmanager
def _use_display_names(files: Sequence[StoredFile]) -> Generator[None]:
    """Replace generated paths in errors by display names; convert unexpected errors to InputError, and log them."""
    try:
        yield
    except InputError as error:
        problem, fix, path = (_replace_paths(text, files) for text in (error.problem, error.fix, error.path))
        raise InputError(problem, fix=fix, path=path, line=error.line) from None
    except MissingExtraError:
        raise
    except JudgedError as error:
        raise InputError(_replace_paths(str(error), files)) from None
    except Exception as error:  # noqa: BLE001  a damaged file can raise any error in a reader
        _LOG.exception("an uploaded file could not be read")
        problem = f"the file cannot be read ({type(error).__name__})"
        path = files[0].display_name if len(files) == 1 else "the files"
        raise InputError(problem, fix="check its format with 'judged check'", path=path) from None


def _replace_paths(text: str, files: Iterable[StoredFile]) -> str:
    for file in files:
        text = text.replace(str(file.path), file.display_name).replace(file.path.name, file.display_name)
    return text


def open_data(workspace: Workspace, option: str, source: str) -> Workspace:
    """Open a file as an option of `judged serve` does, in addition to the open data."""
    options = {name: option for module in serve_modules() for name, option in options_by_name(module.OPTIONS).items()}
    if option not in options:
        raise InputError(f"unknown kind of data: {option!r:.60}", fix=use_one_of(options))
    values: dict[str, Any] = {name: () if parameter.multiple else None for name, parameter in options.items()}
    judgments = None if option == "experiment" else workspace.qrels  # a plan has its own judgments
    values |= {"qrels": judgments, "queries": workspace.topics, "texts": None}
    values[option] = (source,) if options[option].multiple else source
    keywords = workspace_arguments(values)
    keywords["parts"] = {**workspace.parts, **keywords["parts"]}
    if "qrels" in keywords:  # an experiment opens its judgments and runs
        return replace(open_workspace(**keywords), labels=workspace.labels)
    return replace(workspace, **keywords)


OPEN_PATH, API_OPEN_PATH, ADD_PATH = "/open", "/api/v1/open", "/open/data"
OPEN_PATHS = frozenset({OPEN_PATH, API_OPEN_PATH, ADD_PATH, "/open/sample", "/api/v1/open/sample"})
"""Paths that replace the workspace; `reject_concurrent_opens` serializes their requests."""
_BUSY: dict[int | str, dict[str, Any]] = {
    409: {"model": Problem, "description": "Other files are currently being opened."}
}
_UPLOAD: dict[int | str, dict[str, Any]] = {
    **PROBLEMS,
    400: {"model": Problem, "description": "A file cannot be read, or the files do not match."},
    408: {"model": Problem, "description": "The files were not received in time."},
    **_BUSY,
}
router = APIRouter(tags=["open data"])


def reject_concurrent_opens(app: ASGIApp) -> ASGIApp:
    """Return ASGI middleware that rejects requests to open files, before their upload, while files are being opened."""
    busy = Lock()

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in OPEN_PATHS:
            await app(scope, receive, send)
        # Waiting would keep a large upload in memory; the client can retry.
        elif not busy.acquire(blocking=False):
            problem, fix = "other files are being opened", "try again later"
            await problem_response(Request(scope), HTTPStatus.CONFLICT, problem, fix)(scope, receive, send)
        else:
            try:
                await app(scope, receive, send)
            finally:
                busy.release()

    return middleware


def _uploaded_files(
    qrels: Annotated[UploadFile, File(description="Judgments.")],
    runs: Annotated[list[UploadFile] | None, File(description="Runs. Each run has the name of its file.")] = None,
    queries: Annotated[UploadFile | None, File(description="Query texts.")] = None,
    attributes: Annotated[UploadFile | None, File(description="Table of topic attributes.")] = None,
    documents: Annotated[UploadFile | None, File(description="Titles and texts of documents.")] = None,
) -> dict[str, list[UploadFile]]:
    """Return the uploaded files by role."""
    single = {"qrels": qrels, "queries": queries, "attributes": attributes, "documents": documents}
    uploads = {"runs": runs or [], **{role: [file] for role, file in single.items() if file}}
    # For an empty file input, browsers send an empty file without a name.
    return {role: [file for file in files if file.filename or file.size] for role, files in uploads.items()}


Files = Annotated[dict[str, list[UploadFile]], Depends(_uploaded_files)]
Columns = Annotated[str, Form(max_length=2000, description="Names of columns, such as doc_id=sku,query_id=search.")]


@router.get(OPEN_PATH, include_in_schema=False)
def show_form(request: Request) -> HTMLResponse:
    """Show the form for files."""
    return _form_response(request)


@router.post(OPEN_PATH, include_in_schema=False)
def open_by_form(request: Request, uploads: Files, columns: Columns = "") -> Response:
    """Open the uploaded files, and redirect to the home page; show errors in the form."""
    try:
        _open_upload(request, uploads, columns)
    except InputError as error:
        return _form_response(request, error, columns, status=400)
    return RedirectResponse("/", 303)


@router.post(
    API_OPEN_PATH,
    summary="Open other files",
    responses=_UPLOAD,
    openapi_extra={"x-example": "curl -F qrels=@qrels.txt -F runs=@bm25.run -F runs=@dense.run"},
)
def open_by_program(request: Request, uploads: Files, columns: Columns = "") -> dict[str, Any]:
    """Open judgments and runs. If there is no error, the new data replace the current data for all users."""
    return open_data_overview(_open_upload(request, uploads, columns)).to_dict()


@router.post(ADD_PATH, include_in_schema=False)
def add_by_form(
    request: Request,
    workspace: CurrentWorkspace,
    option: Annotated[str, Form(max_length=40)],
    page_path: Annotated[str, Form(max_length=200, pattern=r"^/(\w[\w/-]*)?$")],
    path: Annotated[str, Form(max_length=4096)] = "",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Open a file that a page needs beside the open data, as the option of `judged serve` does; return to the page."""
    has_file = file is not None and bool(file.filename or file.size)
    if not has_file and not (path and request.app.state.opens_paths):
        raise InputError("a file is required", fix="select a file")
    limits, folder = request.app.state.limits, workspace.upload_folder or LockedFolder()
    if file is None or not has_file:
        added = open_data(workspace, option, path)
    else:
        if option not in UPLOADED_OPTIONS:
            raise InputError(f"{option!r:.60} cannot be uploaded", fix=use_one_of(UPLOADED_OPTIONS))
        name = display_name(file.filename, option, limits.name)
        # In a folder of its own, because pages show the name of the file. Its start has no characters of other systems.
        file_folder = folder.path / f"sent-{option}{len(list(folder.path.iterdir()))}"
        file_folder.mkdir()
        prefix = file_folder / (re.sub(r"[^\w-]", "_", name.partition(".")[0]) or option)
        try:
            stored = store(file.file, name, prefix, limits, max_size=limits.unpacked)
            with _use_display_names([stored]):
                added = open_data(workspace, option, str(stored.path))
        except BaseException:
            shutil.rmtree(file_folder)
            raise
    workspace_holder(request).replace(replace(added, upload_folder=folder), labels=added.labels)
    return RedirectResponse(page_path, 303)


@router.post("/open/sample", include_in_schema=False)
def open_sample_by_form(request: Request) -> Response:
    """Open the sample, and redirect to the home page."""
    workspace_holder(request).replace(open_sample())
    return RedirectResponse("/", 303)


@router.post("/api/v1/open/sample", summary="Open the sample", responses=_BUSY)
def open_sample_by_program(request: Request) -> dict[str, Any]:
    """Open the sample data of `judged`. The sample data replace the current data for all users."""
    return open_data_overview(workspace_holder(request).replace(open_sample())).to_dict()


def _form_response(
    request: Request, error: InputError | None = None, columns: str = "", status: int = 200
) -> HTMLResponse:
    values = {"limits": request.app.state.limits, "error": error, "columns": columns}
    return page(request, "open.html", status=status, title="Open files", **values)


def _open_upload(request: Request, uploads: dict[str, list[UploadFile]], columns: str) -> Workspace:
    """Open uploaded files; the current workspace stays open until all files are read."""
    limits, folder = request.app.state.limits, LockedFolder()
    try:
        with use_columns(parse_columns(columns) if columns.strip() else None):
            workspace = workspace_of(_store_files(uploads, folder.path, limits), limits)
    # Also for KeyboardInterrupt: uploaded files must not stay on the disk.
    except BaseException:
        folder.remove()
        raise
    return workspace_holder(request).replace(replace(workspace, upload_folder=folder))


def _store_files(uploads: dict[str, list[UploadFile]], folder: Path, limits: Limits) -> dict[str, list[StoredFile]]:
    if len(uploads["runs"]) > limits.runs:
        problem = f"an upload must have at most {limits.runs} run files, got {len(uploads['runs']):,}"
        raise InputError(problem, fix="open fewer files")
    if not uploads["qrels"]:
        raise InputError("judgments are required", fix="select a file of qrels")
    free_bytes, stored = limits.unpacked, dict[str, list[StoredFile]]()
    for role, role_uploads in uploads.items():
        for number, upload in enumerate(role_uploads):
            max_size = min(free_bytes, limits.in_memory) if role in {"queries", "attributes"} else free_bytes
            name = display_name(upload.filename, f"{role}{number}", limits.name)
            # `_replace_paths` replaces this name in messages, so it must not be a word of a message, such as "qrels".
            prefix = folder / f"sent-{role}{number}"
            file = store(upload.file, name, prefix, limits, max_size=max_size, documents=role == "documents")
            stored.setdefault(role, []).append(file)
            free_bytes -= file.size
    return stored
