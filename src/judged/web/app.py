"""The application: every page and every route of the API in one place."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware

import judged
from judged.components import all_components, load
from judged.interface.pages.answers import Json, page, serve_tables
from judged.interface.pages.guard import Rules, configure_app
from judged.interface.pages.workspace import CurrentWorkspace, WorkspaceHolder
from judged.results import TEXT, Column, Table
from judged.web.uploads import API_OPEN, OPEN, Limits, one_at_a_time
from judged.web.uploads import router as opening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from judged.interface.pages.workspace import Workspace


router = APIRouter(include_in_schema=False)
_BOUNDS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "minLength": "at least {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}


def described(document: Mapping[str, Any], workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    """Lay out the description of an API by groups, in the order in which it names them.

    A route is what OpenAPI says of it, with its `method`, `path` and `meaning`, a table of what it is `asked`, in its
    address and in its body, an `example` that works now, and an `anchor` by which it can be linked.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            asked = list(_asked(operation, document))
            route = {
                **operation,
                "method": method.upper(),
                "path": path,
                "meaning": operation["description"].partition("\n\n")[0],
                "asked": _table(asked),
                "example": _example(path, asked, workspace),
                "anchor": f"{method}{path}".translate({ord("/"): "-", ord("{"): None, ord("}"): None}),
            }
            name = operation["tags"][0]
            groups.setdefault(name[:1].upper() + name[1:], []).append(route)
    return groups


def _asked(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give what a route takes: schemas, each with its name, where it stands, and whether it is required."""
    known = _inlined({name: operation.get(name, {}) for name in ("parameters", "requestBody")}, document)
    found = [{"required": False} | one["schema"] | one for one in known["parameters"]]
    for media in known["requestBody"].get("content", {}).values():
        body = media["schema"]
        for name, schema in body["properties"].items():
            found.append(schema | {"name": name, "in": "body", "required": name in body.get("required", ())})
    return found


def _inlined(part: Any, document: Mapping[str, Any]) -> Any:
    """Put what references name in their places."""
    if isinstance(part, list):
        return [_inlined(one, document) for one in part]
    if not isinstance(part, Mapping):
        return part
    if "$ref" in part:
        return _inlined(document["components"]["schemas"][part["$ref"].rpartition("/")[2]], document)
    return {key: _inlined(value, document) for key, value in part.items()}


def _table(asked: list[dict[str, Any]]) -> Table:
    defaults = ["required" if one["required"] else _written(one.get("default")) for one in asked]
    columns = (
        Column("name", [one["name"] for one in asked], TEXT, "Parameter"),
        Column("kind", list(map(_kind, asked)), TEXT, "What it is"),
        Column("default", defaults, TEXT, "Default"),
        Column("meaning", [one.get("description", "") for one in asked], TEXT, "Meaning"),
        Column("place", [one["in"] for one in asked], only="data"),
    )
    return Table("parameters", columns, "Parameters")


def _kind(schema: Mapping[str, Any]) -> str:
    """Say in words what a value is.

    >>> _kind({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer, from 1, or null'
    >>> _kind({"type": "array", "items": {"enum": ["a", "b"]}})
    'list of: a | b'
    """
    if several := schema.get("anyOf"):
        return ", or ".join(dict.fromkeys(map(_kind, several)))
    if values := schema.get("enum"):
        return " | ".join(map(_written, values))
    if "contentMediaType" in schema:
        return "file"
    if schema.get("type") == "array":
        return f"list of: {_kind(schema['items'])}"
    kind = schema["title"] if "properties" in schema else schema.get("type", "anything")
    return ", ".join([kind, *(words.format(schema[name]) for name, words in _BOUNDS.items() if name in schema)])


def _written(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _example(path: str, asked: list[dict[str, Any]], workspace: Workspace) -> str:
    """Make an address of values that are there now."""
    documents = workspace.qrels.index.doc_names if workspace.texts is None else workspace.texts.documents
    known = {
        "topic": workspace.query_ids[0],
        "run": next(iter(workspace.run_names), ""),
        "doc_id": next(iter(documents), ""),
        "measure": "AP",
        "name": "nDCG",
        "key": "ties",
    }
    values = {
        one["name"]: known.get(one["name"], next(iter(one.get("enum", ())), "")) for one in asked if one["required"]
    }
    query = {one["name"]: values[one["name"]] for one in asked if one["required"] and one["in"] == "query"}
    path = path.format_map({name: quote(value, safe="") for name, value in values.items()})
    return f"{path}?{urlencode(query)}" if query else path


@router.get("/api")
def api_page(request: Request, workspace: CurrentWorkspace) -> HTMLResponse:
    """Show what can be asked."""
    document = request.app.openapi()
    return page(request, "api.html", title="API", groups=described(document, workspace), about=document["info"])


ROUTERS = (
    opening,
    router,
    *(load(page.router) for component in all_components() for page in component.pages),
)
"""Every page, and every route of the API."""

_ABOUT = "Everything that the workbench shows, as JSON: each page has a twin here, made from the same data."
_FRAME = 1 << 20  # bytes of a form beside its files


def make_app(workspace: Workspace, rules: Rules | None = None, limits: Limits | None = None) -> FastAPI:
    """Make the workbench over what is open.

    >>> from judged.interface.pages.workspace import open_sample
    >>> make_app(open_sample()).title
    'judged'
    """
    app = FastAPI(
        title="judged",
        version=judged.__version__,
        description=_ABOUT,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # these pages fetch scripts from elsewhere
        redoc_url=None,
        default_response_class=Json,
        lifespan=_until_closed,
    )
    app.state.holder, app.state.limits = WorkspaceHolder(workspace), limits or Limits()
    uploads = dict.fromkeys((OPEN, API_OPEN), app.state.limits.total + _FRAME)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=1)  # this holds up other pages: the least work
    app.add_middleware(serve_tables)
    app.add_middleware(one_at_a_time)
    judge_of = None if workspace.labels is None else workspace.labels.judge_with_token
    return configure_app(app, ROUTERS, replace(rules or Rules(), bodies=uploads, judge_of=judge_of))


@asynccontextmanager
async def _until_closed(app: FastAPI) -> AsyncGenerator[None]:
    """Remove what was uploaded when the server ends."""
    yield
    app.state.holder.close()
