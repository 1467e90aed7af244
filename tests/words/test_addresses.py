"""Pages and their twins in JSON take parameters by the same words as functions and commands."""

from __future__ import annotations

import copy
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Query
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from judged.interface.pages.workspace import open_sample
from judged.web.app import make_app
from word_list import listed

JSON_TYPES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "tuple": "array"}


def faults_of_addresses(document: dict[str, Any]) -> list[str]:
    """Say which query parameters have a name that another word stands for, or take something else than their word."""
    words, never = listed()
    faults = list[str]()
    for path, methods in document["paths"].items():
        for parameter in (each for operation in methods.values() for each in operation.get("parameters", ())):
            name = parameter["name"]
            if name in never and name not in words:
                faults.append(f"{path}?{name}: the word is {never[name]}")
            kinds = words[name].kinds if name in words else ()
            fits = {JSON_TYPES[kind] for kind in kinds} | ({"integer"} if "float" in kinds else set())
            if fits and not types_of(parameter["schema"]) <= fits | {"null"}:
                faults.append(f"{path}?{name}: the list says {' or '.join(kinds)}")
    return faults


def types_of(schema: dict[str, Any]) -> set[str]:
    return {branch["type"] for branch in schema.get("anyOf", [schema]) if "type" in branch}


def described(app: FastAPI) -> dict[str, Any]:
    """Describe every route, pages too, which the workbench's own description leaves out."""
    routers = (getattr(route, "original_router", None) for route in app.routes)
    routes = [*app.routes, *(route for router in routers if router for route in router.routes)]
    named = {route.unique_id: route for route in routes if isinstance(route, APIRoute)}  # files have two addresses
    shown = [copy.copy(route) for route in named.values()]
    for route in shown:
        route.include_in_schema = True
    return get_openapi(title="every route", version="1", routes=shown)


def test_every_query_parameter_is_called_by_its_word() -> None:
    document = described(make_app(open_sample()))
    assert {"/api/v1/matrix", "/matrix", "/topic", "/leaderboard", "/evaluator"} <= set(document["paths"])
    assert faults_of_addresses(document) == []


@pytest.mark.parametrize(
    ("parameter", "kind", "fault"),
    [
        ("against", str, "the word is baseline"),
        ("k", int, "the word is cutoff"),
        ("show", str, "the word is limit"),
        ("id", str, "the word is topic"),
        ("cutoff", float, "the list says int"),
        ("min_topics", float | None, "the list says int"),
        ("rel", str, "the list says float or int"),
    ],
)
@pytest.mark.parametrize("listed_in_schema", [True, False])
def test_a_planted_query_parameter_is_found(parameter: str, kind: Any, fault: str, *, listed_in_schema: bool) -> None:
    def planted(value: Any) -> None: ...

    planted.__annotations__["value"], app = Annotated[kind, Query(alias=parameter)], FastAPI()
    app.get("/planted", include_in_schema=listed_in_schema)(planted)
    assert faults_of_addresses(described(app)) == [f"/planted?{parameter}: {fault}"]
