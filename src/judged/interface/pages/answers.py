"""How what was computed goes out: as JSON, or laid out by a template. Both get the same data.

Every table of a page is a file, too: the page's address with the table and the form behind it, /topics.topics.csv?q=x.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, select_autoescape
from jinja2.ext import Extension

from judged.components import all_components
from judged.errors import InputError
from judged.interface.pages.filters import FILTERS, chosen, link
from judged.interface.pages.shared_files import PACKAGES, VERSION
from judged.interface.pages.workspace import JUDGE, opened
from judged.results import Answer, Chart, Table, plain
from judged.results.blocks import flat
from judged.results.escaping import isolated
from judged.results.files import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2.bccache import Bucket
    from starlette.types import ASGIApp, Receive, Scope, Send

    from judged.results import Block
    from judged.results.blocks import Note

HOME = "judged.home"
"""Where a request says which page somebody begins at who sees one part of judged alone."""
NAVIGATION = {
    page.path: (page.name, page.question) for component in all_components() for page in component.pages if page.path
}
"""The pages, in the order in which they are named at the top of each, with the question that each answers."""

FORMS = {
    "csv": ("text/csv", Table.csv),
    "json": ("application/json", lambda table: json.dumps(table.records(), indent=2, ensure_ascii=False)),
    "tex": ("application/x-tex", Table.latex),
    "md": ("text/markdown", Table.markdown),
}
"""The type of a form, and who writes it."""
WANTED = "judged.table"
"""Where a request says which table it wants, and in which form."""
_FILE = re.compile(rf"(?P<page>/[\w/-]*)\.(?P<table>.+)\.(?P<form>{'|'.join(FORMS)})", re.DOTALL)


class _Versioned(Extension):
    """Name the files of pages below the address by which browsers keep them."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Write the source of a template so, once."""
        del name, filename
        return re.sub(r'\b(href|src)="(?=/(?:static|shared)/)', rf'\1="{VERSION}', source)


class Compiled(FileSystemBytecodeCache):
    """Keeps for the next start what templates become: making the first page of a kind takes twice as long without."""

    def get_source_checksum(self, source: str) -> str:
        """Tell templates apart by all that they are made of."""
        return super().get_source_checksum(f"{VERSION}{source}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write one, where there is room."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


_FOLDER = cache_folder()
_TEMPLATES = Environment(
    extensions=[_Versioned],
    bytecode_cache=Compiled(str(_FOLDER)) if _FOLDER else None,
    loader=FileSystemLoader([str(files(package).joinpath("templates")) for package in PACKAGES]),
    autoescape=select_autoescape(default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= FILTERS


@dataclass(frozen=True, eq=False, repr=False)
class PageAnswer(Answer):
    """What a page shows that no command gives; each page has its own kind."""

    about: Mapping[str, Any]  # facts, and what has some of its own to give
    parts: tuple[Block, ...] = ()
    notes: tuple[Note, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Give what is known beside the tables."""
        return {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self.about.items()}

    def blocks(self) -> tuple[Block, ...]:
        """Give all that the page shows."""
        return self.parts


class Json(JSONResponse):
    """JSON in which a number that does not exist is null."""

    def render(self, content: Any) -> bytes:
        """Write it."""
        return json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Lay a page out, or give one of its tables; what its address chose goes along with links, unless refused."""
    wanted = request.scope.get(WANTED)
    if wanted is not None and status == HTTPStatus.OK:
        return _download(wanted, values)
    workbench = hasattr(request.app.state, "desk")
    known = chosen(request.url.path, request.query_params.multi_items()) if status == HTTPStatus.OK else {}
    shared: Mapping[str, Any] = {
        "request": request,
        "open": opened(request) if workbench else None,
        "here": request.url.path,
        "home": request.scope.get(HOME, "/judging"),
        "status": status,
        "version": request.app.version,
        "link": partial(link, known=known),
        # A judge who was let in by a token of their own sees nothing of systems; nor does who takes part in a study.
        "navigation": [(path, link(path, known).removeprefix(path), name) for path, (name, _) in NAVIGATION.items()]
        if workbench and JUDGE not in request.scope
        else (),
    }
    layout = _TEMPLATES.get_template(template)
    context = layout.new_context({**shared, **values})
    made = "".join(layout.root_render_func(context))
    context.parent.clear()  # macros and their context hold each other, and all that is shown, until it is looked for
    return HTMLResponse(isolated(made), status_code=status)


def downloads(app: ASGIApp) -> ASGIApp:
    """Ask for the page where one of its tables is asked for: an ASGI application around another."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        found = _FILE.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if found is not None and not found["page"].startswith(("/api/", "/static/", "/shared/", "/files-")):
            scope = {**scope, "path": found["page"], "raw_path": found["page"].encode()}
            scope[WANTED] = (found["table"], found["form"])
        await app(scope, receive, send)

    return answering


def _download(wanted: tuple[str, str], values: Mapping[str, Any]) -> HTMLResponse:
    """Write a table of what a page shows."""
    name, form = wanted
    tables: dict[str, Table] = {}
    for table in _tables(list(values.values())):
        tables.setdefault(table.name, table)
    if name not in tables:
        known = ", ".join(tables) or "those of another page"
        raise InputError(f"this page has no table {name!r:.200}", fix=f"use one of {known}")
    kind, write = FORMS[form]
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}.{form}"}
    return HTMLResponse(f"{write(tables[name])}\n".encode(), media_type=f"{kind}; charset=utf-8", headers=headers)


def _tables(value: Any) -> Iterator[Table]:
    """Give the tables of answers first, which are whole, then those that a page made of them."""
    values = list(value.values()) if isinstance(value, Mapping) else value
    for one in values:
        if isinstance(one, Answer):
            yield from one.tables().values()
            for block in flat(one.blocks()):
                if isinstance(block, (Chart, Table)):
                    yield (block.numbers or block.table) if isinstance(block, Chart) else block
    for one in values:
        if isinstance(one, Table):
            yield one
        elif isinstance(one, (Mapping, list, tuple)):
            yield from _tables(one)
