"""Web application: all pages and API routes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.middleware.gzip import GZipMiddleware

import judged
from judged.components import all_components, load
from judged.interface.pages.answers import Json, page, serve_tables
from judged.interface.pages.guard import Rules, configure_app
from judged.interface.pages.workspace import CurrentWorkspace, Workspace, WorkspaceHolder
from judged.results import TEXT, Column, Table
from judged.web.uploads import ADD_PATH, API_OPEN_PATH, OPEN_PATH, Limits, reject_concurrent_opens
from judged.web.uploads import router as opening

router = APIRouter(include_in_schema=False)
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
}


def describe_routes(document: Mapping[str, Any], workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    """Return the routes of an OpenAPI document by tag.

    A route is its OpenAPI operation with `method`, `path`, `meaning`, a table of its parameters (`parameter_table`),
    an `example` with values of the open data, and an `anchor` for links.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = _route_parameters(operation, document)
            route = {
                **operation,
                "method": method.upper(),
                "path": path,
                "meaning": operation["description"].partition("\n\n")[0],
                "parameter_table": _parameter_table(parameters),
                "example": _example_address(path, parameters, workspace),
                "anchor": f"{method}{path}".translate({ord("/"): "-", ord("{"): None, ord("}"): None}),
            }
            # Each route has one tag, which is its heading on the page.
            name = operation["tags"][0]
            groups.setdefault(name[:1].upper() + name[1:], []).append(route)
    return groups


def _route_parameters(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the parameters of a route, with `name`, `in` (query, path, body), and `required`."""
    resolved = _resolve_references({name: operation.get(name, {}) for name in ("parameters", "requestBody")}, document)
    schemas = [{"required": False} | parameter["schema"] | parameter for parameter in resolved["parameters"]]
    for media in resolved["requestBody"].get("content", {}).values():
        body = media["schema"]
        for name, schema in body["properties"].items():
            schemas.append(schema | {"name": name, "in": "body", "required": name in body.get("required", ())})
    return schemas


def _resolve_references(part: Any, document: Mapping[str, Any]) -> Any:
    """Replace references (`$ref`) by the schemas that they refer to."""
    if isinstance(part, list):
        return [_resolve_references(element, document) for element in part]
    if not isinstance(part, Mapping):
        return part
    if "$ref" in part:
        return _resolve_references(document["components"]["schemas"][part["$ref"].rpartition("/")[2]], document)
    return {key: _resolve_references(value, document) for key, value in part.items()}


def _parameter_table(schemas: list[dict[str, Any]]) -> Table:
    defaults = ["required" if schema["required"] else _format_value(schema.get("default")) for schema in schemas]
    columns = (
        Column("name", [schema["name"] for schema in schemas], TEXT, "Parameter"),
        Column("type", list(map(_describe_type, schemas)), TEXT, "Type"),
        Column("default", defaults, TEXT, "Default"),
        Column("meaning", [schema.get("description", "") for schema in schemas], TEXT, "Description"),
        Column("location", [schema["in"] for schema in schemas], only="data"),
    )
    return Table("parameters", columns, "Parameters")


def _describe_type(schema: Mapping[str, Any]) -> str:
    """Describe the type of a schema.

    >>> _describe_type({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer, at least 1, or null'
    >>> _describe_type({"type": "array", "items": {"enum": ["a", "b"]}})
    'list of: a | b'
    """
    if alternatives := schema.get("anyOf"):
        return ", or ".join(dict.fromkeys(map(_describe_type, alternatives)))
    if values := schema.get("enum"):
        return " | ".join(map(_format_value, values))
    if "contentMediaType" in schema:
        return "file"
    if schema.get("type") == "array":
        return f"list of: {_describe_type(schema['items'])}"
    type_name = schema["title"] if "properties" in schema else schema.get("type", "anything")
    return ", ".join([type_name, *(words.format(schema[name]) for name, words in _BOUNDS.items() if name in schema)])


def _format_value(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _example_address(path: str, parameters: list[dict[str, Any]], workspace: Workspace) -> str:
    """Return an address that works with the open data."""
    documents = workspace.qrels.index.doc_names if workspace.texts is None else workspace.texts.documents
    examples = {
        "topic": next(iter(workspace.query_ids), ""),
        "run": next(iter(workspace.run_names), ""),
        "doc_id": next(iter(documents), ""),
        "measure": "AP",
        "name": "nDCG",
        "key": "ties",
    }
    required = {schema["name"]: schema for schema in parameters if schema["required"]}
    values = {name: examples.get(name, next(iter(schema.get("enum", ())), "")) for name, schema in required.items()}
    query = {name: values[name] for name, schema in required.items() if schema["in"] == "query"}
    path = path.format_map({name: quote(value, safe="") for name, value in values.items()})
    return f"{path}?{urlencode(query)}" if query else path


@router.get("/api")
def api_page(request: Request, workspace: CurrentWorkspace) -> HTMLResponse:
    """Show the routes of the API with their parameters."""
    document = request.app.openapi()
    return page(request, "api.html", title="API", groups=describe_routes(document, workspace), info=document["info"])


ROUTERS = (opening, router, *(load(page.router) for component in all_components() for page in component.pages))
"""All pages and API routes."""

_API_DESCRIPTION = "The data of the workbench as JSON. Each page has a route in this API with the same data."
_FORM_BYTES = 1 << 20  # allowed for a form in addition to its files


def make_app(
    workspace: Workspace, rules: Rules | None = None, limits: Limits | None = None, *, opens_paths: bool = False
) -> FastAPI:
    """Create the web application for a workspace.

    With `opens_paths`, users can also open files by their paths on this machine.

    >>> from judged.interface.pages.workspace import open_sample
    >>> make_app(open_sample()).title
    'judged'
    """
    app = FastAPI(
        title="judged",
        version=judged.__version__,
        description=_API_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # FastAPI's pages would load scripts from other servers
        redoc_url=None,
        default_response_class=Json,
        lifespan=_lifespan,
    )
    app.state.holder, app.state.limits = WorkspaceHolder(workspace), limits or Limits()
    app.state.opens_paths = opens_paths
    uploads = dict.fromkeys((OPEN_PATH, API_OPEN_PATH, ADD_PATH), app.state.limits.total + _FORM_BYTES)
    # Compression blocks other requests, so use the fastest level.
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=1)
    app.add_middleware(serve_tables)
    app.add_middleware(reject_concurrent_opens)

    # Requests of judges are authenticated by the label store.
    def judge_of(token: str) -> str | None:
        labels = app.state.holder.workspace.labels
        return None if labels is None else labels.judge_with_token(token)

    return configure_app(app, ROUTERS, replace(rules or Rules(), bodies=uploads, judge_of=judge_of))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Remove uploaded files when the server ends."""
    yield
    app.state.holder.close()
