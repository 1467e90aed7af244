"""Every table of a page as a file: the page's address with the table and the form behind it, /topics.topics.csv?q=x."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse

from judged.answer import Answer, Chart, Table
from judged.answer.blocks import flat
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

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


def downloads(app: ASGIApp) -> ASGIApp:
    """Ask for the page where one of its tables is asked for: an ASGI application around another."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        found = _FILE.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if found is not None and not found["page"].startswith(("/api/", "/static/", "/shared/", "/files-")):
            scope = {**scope, "path": found["page"], "raw_path": found["page"].encode()}
            scope[WANTED] = (found["table"], found["form"])
        await app(scope, receive, send)

    return answering


def download(wanted: tuple[str, str], values: Mapping[str, Any]) -> HTMLResponse:
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
