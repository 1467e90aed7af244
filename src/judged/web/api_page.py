"""The API for people: every route with its parameters, and an address that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from judged.answer import TEXT, Table, columns_of
from judged.web.answers import page
from judged.web.desk import Opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.web.workspace import Workspace

router = APIRouter(include_in_schema=False)
_METHODS = ("get", "post", "put", "patch", "delete")
_BOUNDS = {"minimum": "from", "maximum": "to", "minLength": "at least", "maxLength": "at most", "maxItems": "at most"}


@dataclass(frozen=True)
class Route:
    """One address of the API."""

    anchor: str  # by which it can be linked
    method: str
    path: str
    summary: str
    meaning: str
    parameters: Table
    example: str  # an address that works now; empty for a route that changes something
    command: str  # how such a route is called from a shell


def described(document: Mapping[str, Any], workspace: Workspace, address: str = "") -> dict[str, list[Route]]:
    """Lay out the description of an API by groups, in the order in which it names them."""
    groups: dict[str, list[Route]] = {}
    known = _known(workspace)
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method in operations:
                name = (operations[method].get("tags") or ["Other"])[0]
                route = _route(document, path, method, operations[method], known, address)
                groups.setdefault(name[:1].upper() + name[1:], []).append(route)
    return groups


def _route(
    document: Mapping[str, Any], path: str, method: str, operation: dict[str, Any], known: dict[str, str], address: str
) -> Route:
    example = _example(document, path, operation.get("parameters", []), known) if method == "get" else ""
    command = "" if method == "get" else f"{operation.get('x-example', f'curl -X {method.upper()}')} {address}{path}"
    return Route(
        anchor=f"{method}{path}".replace("/", "-").replace("{", "").replace("}", ""),
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        meaning=operation.get("description", "").partition("\n\n")[0],
        parameters=_parameters(document, operation),
        example=example,
        command=command,
    )


def _parameters(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Table:
    """Lay out what a route takes: in its address, and the fields of its body."""
    rows = [
        _parameter(document, given["name"], given["in"], given.get("schema", {}) | given, given.get("required", False))
        for given in operation.get("parameters", [])
    ]
    for media in operation.get("requestBody", {}).get("content", {}).values():
        body = _resolved(document, media.get("schema", {}))
        for name, schema in body.get("properties", {}).items():
            rows.append(_parameter(document, name, "body", schema, name in body.get("required", ())))
    names = {"name": "Parameter", "kind": "What it is", "default": "Default", "meaning": "Meaning"}
    columns = columns_of(rows, *((name, TEXT, title) for name, title in names.items()), "place")
    return Table("parameters", columns, "Parameters")


def _parameter(
    document: Mapping[str, Any], name: str, place: str, schema: Mapping[str, Any], needed: bool
) -> dict[str, str]:
    return {
        "name": name,
        "place": place,
        "kind": _kind(document, schema),
        "default": "required" if needed else _written(schema.get("default")),
        "meaning": schema.get("description", ""),
    }


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to what it names."""
    if "$ref" not in schema:
        return schema
    return document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]


def _kind(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Say in words what a value is.

    >>> _kind({}, {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer, from 1, or null'
    >>> _kind({}, {"type": "array", "items": {"enum": ["a", "b"]}})
    'list of: a | b'
    """
    found = _resolved(document, schema)
    if several := found.get("anyOf") or found.get("oneOf"):
        return ", or ".join(dict.fromkeys(_kind(document, one) for one in several))
    if "const" in found:
        return _written(found["const"])
    if values := found.get("enum"):
        return " | ".join(map(_written, values))
    if found.get("contentMediaType") or found.get("format") == "binary":
        return "file"
    if found.get("type") == "array":
        return f"list of: {_kind(document, found.get('items', {}))}"
    bounds = [f"{words} {found[name]}" for name, words in _BOUNDS.items() if name in found]
    if "maxLength" in found or "minLength" in found:
        bounds[-1] += " characters"
    kind = str(found.get("title", "object")) if "properties" in found else str(found.get("type", "anything"))
    return ", ".join([kind, *bounds])


def _written(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _example(document: Mapping[str, Any], path: str, taken: list[dict[str, Any]], known: Mapping[str, str]) -> str:
    """Make an address of values that are there now."""
    query: list[tuple[str, str]] = []
    for one in taken:
        name, schema = one["name"], _resolved(document, one.get("schema", {}))
        usual = known.get(name, next(iter(schema.get("enum", ())), ""))
        value = str(next(iter([*schema.get("examples", ()), one.get("example", usual)])))
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(value, safe=""))
        elif one.get("required"):
            query.append((one["name"], value))
    return f"{path}?{urlencode(query)}" if query else path


def _known(workspace: Workspace) -> dict[str, str]:
    """Name values that parameters of the usual names can have."""
    runs = [*workspace.run_names, "", ""]
    second = runs[1] or runs[0]
    of_topic = dict.fromkeys(("topic", "query_id", "query"), workspace.query_ids[0])
    of_run = dict.fromkeys(("run", "first", "baseline"), runs[0])
    texts = [] if workspace.texts is None else workspace.texts.documents
    document = next(iter(texts), workspace.qrels.index.doc_names[0])
    return {
        **of_topic,
        **of_run,
        "doc_id": str(document),
        "second": second,
        "measure": "AP",
        "family": "nDCG",
        "name": "nDCG",
    }


@router.get("/api")
def api_page(request: Request, workspace: Opened) -> HTMLResponse:
    """Show what can be asked."""
    document = request.app.openapi()
    groups = described(document, workspace, str(request.base_url).rstrip("/"))
    return page(request, "api.html", title="API", groups=groups, about=document["info"])
