"""Render answers as JSON or, with a template, as a page. Both get the same data.

Every table of a page can be downloaded: append its name and format to the path, as in /topics.topics.csv?q=x.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2.ext import Extension

from judged.components import Page, all_components
from judged.errors import InputError
from judged.interface.pages.filters import CARRIED, FILTERS, link, shared_choices
from judged.interface.pages.shared_files import PACKAGES, VERSION
from judged.interface.pages.workspace import JUDGE, Workspace, current_workspace
from judged.results import Answer, Block, Chart, Headline, Table, plain
from judged.results.blocks import Note, flat
from judged.results.escaping import isolate_directions
from judged.results.files import cache_folder
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from jinja2.bccache import Bucket
    from starlette.types import ASGIApp, Receive, Scope, Send


HOME_PATH = "judged.home"
"""Key in the ASGI scope: the start page of users who see only one part of judged."""
_PAGES = [page for component in all_components() for page in component.pages if page.path]
NAVIGATION = {page.path: (page.name, page.question) for page in _PAGES}
"""Pages of the navigation, in order: path, name, and the question that the page answers."""
GROUPS = ("Quality", "Diagnosis", "Users", "Judging", "")
"""Headings of the navigation, in order; pages of the last group have no heading."""

FORMS = {
    "csv": ("text/csv", Table.csv),
    "tsv": ("text/tab-separated-values", lambda table: table.csv("\t")),
    "json": ("application/json", lambda table: json.dumps(table.records(), indent=2, ensure_ascii=False)),
    "tex": ("application/x-tex", lambda table: table.with_intervals_apart().latex()),
    "md": ("text/markdown", lambda table: table.with_intervals_apart().markdown()),
}
"""Media type and writer of each download format."""
UPLOADED_OPTIONS = ("log", "traces", "rag", "trajectories")
"""Options of `judged serve` whose files can be uploaded. Plans and configurations cannot: they name other files of this
machine, and functions to call."""
CARRIED_CHOICES = "judged.carried"
"""Key in the ASGI scope: parameters that the page does not use, but keeps for its links."""
TABLE_REQUEST = "judged.table"
"""Key in the ASGI scope: name and format of the requested table."""
NAVIGATED = {"/topic": "/topics", "/choose": "/learn", "/labels/calibration": "/labels/quality"}
"""Entries of the navigation of pages whose addresses do not begin with that of their entry."""
_HOME = Page("", "/", "Overview")
_OPEN = Page("", "/open", "Open files", group="")
_FILE = re.compile(rf"(?P<page>/[\w/-]*)\.(?P<table>.+)\.(?P<form>{'|'.join(FORMS)})", re.DOTALL)


class _VersionedUrls(Extension):
    """Put the version prefix before URLs of static files, so that browsers may cache them."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Rewrite the source of a template, once."""
        del name, filename
        return re.sub(r'\b(href|src)="(?=/(?:static|shared)/)', rf'\1="{VERSION}', source)


class TemplateCache(FileSystemBytecodeCache):
    """Bytecode cache of templates. Without it, rendering the first page of a kind takes twice as long."""

    def get_source_checksum(self, source: str) -> str:
        """Return a checksum of the source and of everything it is rendered with."""
        return super().get_source_checksum(f"{VERSION}{source}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the bytecode, unless the disk is full or read-only."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


_FOLDER = cache_folder()
_TEMPLATES = Environment(
    extensions=[_VersionedUrls],
    bytecode_cache=TemplateCache(str(_FOLDER)) if _FOLDER else None,
    loader=FileSystemLoader([str(files(package).joinpath("templates")) for package in PACKAGES]),
    autoescape=select_autoescape(default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= FILTERS


@dataclass(frozen=True, eq=False, repr=False)
class PageAnswer(Answer):
    """Answer of a page that no command returns; each page has its own kind."""

    about: Mapping[str, Any]  # facts, or objects with `to_dict`
    parts: tuple[Block, ...] = ()
    notes: tuple[Note, ...] = ()
    verdict: Headline | None = None

    @property
    def headline(self) -> Headline | None:
        """Status, main number, and short sentence."""
        return self.verdict

    def facts(self) -> Mapping[str, Any]:
        """Return the facts that are not in tables."""
        return {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self.about.items()}

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks of the page."""
        return self.parts


class Json(JSONResponse):
    """JSON response in which NaN and infinity are null."""

    def render(self, content: Any) -> bytes:
        """Serialize the content."""
        return json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page, or one of its tables. Links keep the shared choices of the address, unless it is invalid."""
    table_request = request.scope.get(TABLE_REQUEST)
    if table_request is not None and status == HTTPStatus.OK:
        return _download(table_request, values)
    workbench = hasattr(request.app.state, "holder")
    parameters = [*request.query_params.multi_items(), *request.scope.get(CARRIED_CHOICES, ())]
    choices = shared_choices(request.url.path, parameters) if status == HTTPStatus.OK else {}
    shared: Mapping[str, Any] = {
        "request": request,
        "open": current_workspace(request) if workbench else None,
        "here": request.url.path,
        "navigated": NAVIGATED.get(request.url.path, request.url.path),
        "home": request.scope.get(HOME_PATH, "/judging"),
        "missing": _page_without_data(request) if workbench else None,
        "uploaded_options": UPLOADED_OPTIONS,
        "opens_paths": getattr(request.app.state, "opens_paths", False),
        "status": status,
        "version": request.app.version,
        "link": partial(link, choices=choices),
        # Judges with a judge token, and participants of a study, must not see systems.
        "navigation": _navigation(current_workspace(request), choices)
        if workbench and JUDGE not in request.scope
        else {},
    }
    layout = _TEMPLATES.get_template(template)
    context = layout.new_context({**shared, **values})
    markup = "".join(layout.root_render_func(context))
    context.parent.clear()  # macros and their context are a reference cycle that would hold all data of the page
    return HTMLResponse(isolate_directions(markup), status_code=status)


def _page_without_data(request: Request) -> Page | None:
    """Return the page of the navigation that contains this address, if its data are not open."""
    here, opened = NAVIGATED.get(request.url.path, request.url.path), current_workspace(request).open_data
    pages = [page for page in _PAGES if here == page.path or here.startswith(f"{page.path}/")]
    page = max(pages, key=lambda page: len(page.path), default=None)
    return page if page is not None and page.option not in {"", *opened} else None


def _navigation(workspace: Workspace, choices: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return the entries of the navigation by group: name, path, address with the shared choices, and missing data."""
    groups: dict[str, list[dict[str, str]]] = {group: [] for group in GROUPS}
    for page in (_HOME, *_PAGES, _OPEN):
        needs = "" if page.option in {"", *workspace.open_data} else page.data
        entry = {"name": page.name, "path": page.path, "address": link(page.path, choices), "needs": needs}
        groups.setdefault(page.group, []).append(entry)
    return groups


def serve_tables(app: ASGIApp) -> ASGIApp:
    """Wrap an ASGI application: a request for a table of a page becomes a request for that page."""

    async def middleware(scope: Scope, receive: Receive, send: Send) -> None:
        match = _FILE.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if scope["type"] == "http" and CARRIED.encode() in scope["query_string"]:
            scope = {**scope, **_without_carried_choices(scope["query_string"])}
        if match is not None and not match["page"].startswith(("/api/", "/static/", "/shared/", "/files-")):
            scope = {**scope, "path": match["page"], "raw_path": match["page"].encode()}
            scope[TABLE_REQUEST] = (match["table"], match["form"])
        await app(scope, receive, send)

    return middleware


def _without_carried_choices(query_string: bytes) -> dict[str, Any]:
    """Return the query string without shared choices that the page does not use, and these choices."""
    parameters = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    carried = [pair for pair in parameters if pair[0].startswith(CARRIED)]
    used = [pair for pair in parameters if pair not in carried]
    return {"query_string": urlencode(used).encode(), CARRIED_CHOICES: carried}


def _download(table_request: tuple[str, str], values: Mapping[str, Any]) -> HTMLResponse:
    """Return a table of a page as a file."""
    name, file_format = table_request
    tables: dict[str, Table] = {}
    for table in _tables(list(values.values())):
        tables.setdefault(table.name, table)
    if name not in tables:
        fix = use_one_of(tables) if tables else "open a page that has this table"
        raise InputError(f"this page has no table {name!r:.200}", fix=fix)
    media_type, write = FORMS[file_format]
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}.{file_format}"}
    return HTMLResponse(f"{write(tables[name])}\n".encode(), media_type=f"{media_type}; charset=utf-8", headers=headers)


def _tables(value: Any) -> Iterator[Table]:
    """Yield the tables of answers first, which are complete, then those that the page built from them."""
    values = list(value.values()) if isinstance(value, Mapping) else value
    for child in values:
        if isinstance(child, Answer):
            yield from child.tables().values()
            for block in flat(child.blocks()):
                if isinstance(block, (Chart, Table)):
                    yield (block.numbers or block.table) if isinstance(block, Chart) else block
    for child in values:
        if isinstance(child, Table):
            yield child
        elif isinstance(child, (Mapping, list, tuple)):
            yield from _tables(child)
