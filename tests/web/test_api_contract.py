"""The API against its own description, and pages against nonsense: nothing that is asked makes the server fail."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from judged.interface.pages.answers import NAVIGATION
from judged.interface.pages.compare import ComparisonQuery, compare_page
from judged.interface.pages.home import open_data_overview
from judged.interface.pages.leaderboard import LeaderboardQuery, leaderboard
from judged.interface.pages.workspace import open_sample, open_workspace
from judged.labels import LabelStore
from judged.web.app import ROUTERS, make_app

ADDRESS = "/api/v1/openapi.json"
PATIENT = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

APP = make_app(open_sample())
DOCUMENT: dict[str, Any] = APP.openapi()
OPERATIONS = sorted((path, method) for path, parts in DOCUMENT["paths"].items() for method in parts)
PAGES = ["/", "/open", "/api", *NAVIGATION, "/topic", "/learn/nDCG"]

QRELS = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d3": 1.0}, "q3": {"d4": 0.0}}
RUNS = {"mine": {"q1": {"d2": 2.0, "d1": 1.0}}, "<b>&": {"q1": {"d1": 1.0}, "q2": {"d9": 1.0}}}
STATES = {
    "sample": lambda: APP,
    "no run": lambda: make_app(open_workspace(QRELS, {})),
    "one run": lambda: make_app(open_workspace(QRELS, {"mine": RUNS["mine"]})),
    "two runs": lambda: make_app(open_workspace(QRELS, RUNS)),
    "no relevant documents": lambda: make_app(open_workspace({"q3": {"d4": 0.0}}, {"a": {"q3": {"d4": 1.0}}})),
    "texts of other documents": lambda: make_app(open_workspace(QRELS, RUNS, texts={"of another": "collection"})),
    "a set": lambda: make_app(open_workspace(QRELS, {"set": {"q1": ["d1"]}})),
}


@pytest.fixture(scope="module")
def states() -> dict[str, Any]:
    return {name: make() for name, make in STATES.items()}


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_asgi(ADDRESS, APP)


@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], ids=str)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_api_is_as_it_is_described(schema, path, method, mode):
    operation = schema[path][method]
    has_parameters = operation.query or operation.path_parameters or operation.body
    if mode is schemathesis.GenerationMode.NEGATIVE and not has_parameters:
        pytest.skip("it takes nothing that could be wrong")

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(PATIENT, max_examples=8)
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_route_is_described(path, method):
    operation = DOCUMENT["paths"][path][method]
    assert path.startswith("/api/v1/")
    assert operation["tags"]
    assert operation["summary"]
    assert operation["description"]
    answers = operation["responses"]
    if operation.get("parameters") or operation.get("requestBody"):
        for code in ("400", "422"):
            assert answers[code]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")
    for row in operation.get("parameters", ()):
        assert row.get("description") or row["schema"].get("description"), row["name"]


@pytest.mark.parametrize("path", [path for path, method in OPERATIONS if method == "get" and "{" not in path])
def test_an_unknown_parameter_is_refused_by_name(path):
    parameters = DOCUMENT["paths"][path]["get"].get("parameters", ())
    required = {parameter["name"]: "x" for parameter in parameters if parameter["required"]}
    answer = TestClient(APP).get(path, params={**required, "outcom": "losses"})
    assert not parameters or (answer.status_code == 422 and "'outcom'" in answer.json()["problem"])


def test_names_of_operations_are_unique():
    names = [DOCUMENT["paths"][path][method]["operationId"] for path, method in OPERATIONS]
    assert len(set(names)) == len(names)


TEXTS = st.one_of(
    st.sampled_from([
        "", " ", "0", "-1", "1e999", "nan", "99999999999999999999", "true", "bm25", "rrf", "mine", "<b>&", "t01", "q1",
        "q3", "nDCG@10", "AP", "RR", "nDCG@0", "nDCG@999999999", "P(", "Rprec@5", "kind == 'law'", "length == 'short'",
        "x ==", "((((", "../../etc/passwd", "%00", "\0", "\ud7ff", "é", "<script>alert(1)</script>", "' OR 1=1",
        "{{7*7}}", "a" * 3000, "(" * 2000, "not " * 500 + "x", "1" * 400, "-nDCG@10", "[]", "{}", "null", "1,2",
        "2,0,1", "d1 d2 d3", "\n", "\t",
    ]),
    st.text(max_size=12),
    st.integers(-(10**20), 10**20).map(str),
)  # fmt: skip


def queries_of(path: str) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Parameters that the route knows: it would look at no other."""
    routes = [route for router in ROUTERS for route in router.routes if route.path == path and "GET" in route.methods]
    models = [param.field_info.annotation for route in routes for param in route.dependant.query_params]
    names = [field.alias or name for model in models for name, field in model.model_fields.items()]
    return st.lists(st.tuples(st.sampled_from(names or ["x"]), TEXTS), max_size=6)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("page", PAGES)
def test_no_page_fails_whatever_is_asked(states, state, page):
    tried = TestClient(states[state])

    @given(query=queries_of(page))
    @settings(PATIENT, max_examples=8 if state == "sample" else 3)
    def ask(query: list[tuple[str, str]]) -> None:
        answer = tried.get(f"{page}?{urlencode(query, errors='replace')}", follow_redirects=False)
        assert answer.status_code < 500, (query, answer.text)
        assert "<script>alert" not in answer.text
        assert "Traceback" not in answer.text

    ask()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("path", [path for path, method in OPERATIONS if method == "get" and "{" not in path])
def test_no_route_fails_whatever_is_asked(states, state, path):
    tried = TestClient(states[state])

    @given(query=queries_of(path))
    @settings(PATIENT, max_examples=6 if state == "sample" else 2)
    def ask(query: list[tuple[str, str]]) -> None:
        answer = tried.get(f"{path}?{urlencode(query, errors='replace')}")
        assert answer.status_code in {200, 400, 422}, (query, answer.text)
        if answer.headers["content-type"] == "application/json":
            assert isinstance(answer.json(), (dict, list))
        else:  # a table as a file
            assert answer.status_code == 200
            assert answer.headers["content-disposition"].startswith("attachment")

    ask()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_something_in_every_state(states, state, page):
    answer = TestClient(states[state]).get(page)
    assert answer.status_code in {200, 400, 404, 422}, answer.text
    assert len(re.findall(r"<h1[ >]", answer.text)) == 1
    assert "<title>" in answer.text


@pytest.mark.parametrize("page", ["/", "/open", "/api", *NAVIGATION])
def test_no_page_has_anything_inline(states, page):
    """The policy would refuse it: scripts, styles, handlers."""
    for app in states.values():
        text = TestClient(app).get(page).text
        assert not re.search(r"<script(?![^>]*\b(src=|type=\"application/json\"))", text)
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", text)
        assert "<style" not in text
        assert "javascript:" not in text


def test_the_page_of_the_api_names_every_route_and_its_examples_work(tmp_path):
    store = LabelStore.open(tmp_path / "labels.db")
    rows = [(judge, kind, doc) for judge, kind in (("ann", "human"), ("bob", "human"), ("m", "model")) for doc in "ab"]
    store.add_many(
        {"judge": judge, "kind": kind, "query_id": "q", "doc_id": doc, "grade": 1} for judge, kind, doc in rows
    )
    (tmp_path / "days.csv").write_text("date,numerator,denominator\n2026-03-01,1,9\n")
    watched = "[watch]\nbaseline_from = 2026-03-01\nbaseline_to = 2026-03-20\n[[series]]\nname = 'wrong'\n"
    (tmp_path / "watch.toml").write_text(f"{watched}table = 'days.csv'\n")
    opened = open_sample()
    more = replace(opened, labels=store, parts={**opened.parts, "watch": str(tmp_path / "watch.toml")})
    tried, labeled = TestClient(APP), TestClient(make_app(more))
    page = tried.get("/api").text
    for path, method in OPERATIONS:
        assert f">{method.upper()}</span> {path}<" in page
    examples = re.findall(r'class="example">Example: <a href="([^"]+)"', page)
    assert len(examples) == sum(method == "get" for _, method in OPERATIONS)
    for example in examples:
        client = labeled if "/labels/" in example or "/watch" in example else tried
        answer = client.get(example.replace("&amp;", "&"))
        assert answer.status_code == 200, (example, answer.text)
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert page.count(f'id="{anchor}"') == 1, anchor


def test_keys_of_pages_are_one_thing_each(sample):
    pages = (
        leaderboard(sample, LeaderboardQuery(curve="nDCG", details="difference")),
        compare_page(sample, ComparisonQuery(by="query_class")),
        open_data_overview(sample),
    )
    for answer in pages:
        head = {} if answer.provenance is None else answer.provenance.to_dict()
        names = [*head, *answer.facts(), *answer.tables(), "notes", "sentences", "schema"]
        assert len(set(names)) == len(names)
        for table in answer.tables().values():
            keys = [key for column in table.data for key, _, _ in column.data()]
            assert len(set(keys)) == len(keys)
        assert answer.text(80)
        assert answer.html()
