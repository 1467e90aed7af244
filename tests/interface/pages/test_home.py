"""Home page and its JSON: overview of the open data, checked by hand."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from judged import Run, evaluate
from judged.errors import JudgedWarning
from judged.interface.pages.answers import NAVIGATION
from judged.interface.pages.home import open_data_overview
from judged.interface.pages.leaderboard import LeaderboardQuery, leaderboard
from judged.interface.pages.workspace import open_workspace
from judged.web.app import describe_routes, make_app

QRELS = {"q1": {"d1": 2.0, "d2": 0.0, "d3": 0.0}, "q2": {"d3": 1.0}, "q3": {"d4": 1.0}}
GOOD = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 1.0}, "q3": {"d9": 2.0, "d4": 1.0}}
POOR = {"q1": {"d2": 2.0}, "q9": {"d1": 1.0}}


def cells(text: str, run: str) -> list[str]:
    """Return the cells in the row of a run."""
    row = re.search(rf"<tr><th[^>]*><a[^>]*><bdi>{re.escape(run)}</bdi></a></th>(.*?)</tr>", text, re.DOTALL)[1]
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]


def test_facts_are_those_of_the_files():
    runs, queries = {"good": GOOD, "poor": POOR}, {"q1": "tax", "q7": "x"}
    overview = open_data_overview(open_workspace(QRELS, runs, title="mine", queries=queries))
    about, (good, poor) = overview.about, overview.table("runs").records()
    assert (about["title"], about["n"], about["judgments"]) == ("mine", 3, 5)
    assert [tuple(row.values()) for row in overview.table("grades").records()] == [(0.0, 2), (1.0, 2), (2.0, 1)]
    assert (good["n"], good["missing"], good["extra"], good["documents"]) == (3, 0, 0, 5)
    assert (poor["n"], poor["missing"], poor["extra"], poor["documents"]) == (1, 2, 1, 1)
    assert good["value"] == pytest.approx((1 + 1 + 1 / np.log2(3)) / 3)
    assert poor["value"] == 0.0
    assert (about["queries"], about["documents"], about["attributes"]) == (1, 0, ())
    assert any("poor: no documents returned for 2 of 3 topics" in text for text in overview.warnings)


def test_numbers_of_the_sample_are_those_of_evaluate(sample):
    from judged.data.sample import qrels, runs

    with pytest.warns(JudgedWarning):
        scores = evaluate(qrels(), runs(), ["nDCG@10"])
    text = TestClient(make_app(sample)).get("/").text
    for estimate in scores.estimates():
        assert cells(text, estimate.run)[0] == f"{estimate.value:.4f}"
    overview = open_data_overview(sample)
    intervals = {row["name"]: tuple(row["ci"]) for row in overview.table("runs").records()}
    assert intervals == {estimate.run: estimate.ci for estimate in scores.estimates()}
    assert cells(text, "bm25_title")[-2:] == ["1", "1,508"]  # missing topics, documents


def test_the_headline_and_verdicts_are_those_of_the_leaderboard(sample):
    overview, board = open_data_overview(sample), leaderboard(sample, LeaderboardQuery())
    assert overview.headline.to_dict() == board.headline.to_dict()
    words = dict(zip(board.board().column("run").values, board.board().column("status").values, strict=True))
    assert dict(zip(sample.run_names, overview.table("runs").column("status").values, strict=True)) == words
    assert set(words.values()) == {"baseline", "no significant difference", "worse"}


def test_without_a_ranking_there_is_no_headline():
    unscored = pa.table({"query_id": ["q1"], "doc_id": ["d1"]})
    unranked = open_workspace(QRELS, [Run.of(unscored, name="S"), Run.of(GOOD, name="good")])
    for workspace in (unranked, open_workspace(QRELS, {})):
        assert open_data_overview(workspace).headline is None
        assert TestClient(make_app(workspace)).get("/").status_code == 200


def test_suggestions_link_to_pages_that_show_them(sample):
    client, lead = TestClient(make_app(sample)), open_data_overview(sample).about["suggestions"]
    assert len(lead) == 3
    assert lead[0]["sentence"].startswith("bm25_title returned nothing for 1 topic")
    for row in lead:
        assert client.get(row["address"]).status_code == 200
        assert row["sentence"] in unescape(client.get("/").text).replace("\N{MINUS SIGN}", "-")
    values = {run: sample.scores("nDCG@10", [run]).values[0, 0] for run in sample.run_names}
    best, other = sample.ranked_run_names()[:2]
    lost = int((values[best] < values[other]).sum())
    sentence = f"{best} has a higher mean, but {other} is better on {lost} of 48 topics."
    assert sentence in [row["sentence"] for row in lead]


def test_runs_are_sorted_by_the_requested_column(sample):
    client = TestClient(make_app(sample))

    def runs(address):
        return re.findall(r'<th scope="row" class="label"><a[^>]*><bdi>(.*?)</bdi>', client.get(address).text)

    assert runs("/") == list(sample.ranked_run_names())
    assert runs("/?sort=name") == sorted(sample.run_names)
    assert runs("/?sort=documents")[0] == "bm25_title"
    assert client.get("/?sort=color").status_code == 422


def test_a_single_run_is_not_called_best():
    headline = open_data_overview(open_workspace({"q1": {"d1": 1.0}}, {"a": {"q1": {"d1": 1.0}}})).headline
    assert (headline.status, headline.word, headline.value) == ("info", "not compared", 1.0)


def test_navigation_lists_the_question_of_each_page(sample):
    text = TestClient(make_app(sample)).get("/").text
    for path, (name, question) in NAVIGATION.items():
        assert f'<dt><a href="{path}">{name}</a></dt><dd>{question}' in text


def test_hostile_names_are_texts():
    bad = "<img src=x onerror=alert(1)>\"'&"
    workspace = open_workspace({"q": {"d": 1.0}}, {bad: {"q": {"d": 1.0}}}, title=bad)
    text = TestClient(make_app(workspace)).get("/").text
    assert "<img" not in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= 3
    assert "/topics?runs=%3Cimg+src%3Dx+onerror" in text


def test_json_contains_no_nan(sample):
    workspace = open_workspace({"q": {"d": 0.0}}, {"a": {"q": {"d": 1.0}}})
    overview = TestClient(make_app(workspace)).get("/api/v1/open")
    assert "NaN" not in overview.text
    assert TestClient(make_app(sample)).get("/api/v1/open").json()["judgments"] == 1613


def taken(name: str, schema: dict[str, object], place: str = "query", **more: object) -> dict[str, object]:
    return {"name": name, "in": place, "schema": schema, **more}


BY = {"$ref": "#/components/schemas/By"}
THING = {
    "tags": ["things"],
    "summary": "Give a thing",
    "description": "All of it.\n\nNot shown.",
    "parameters": [
        taken("measure", {"type": "string"}, "path", required=True),
        taken("run", {"type": "string", "maxLength": 9}, required=True),
        taken("page", {"type": "integer", "minimum": 1, "maximum": 5, "default": 1}),
        taken("by", BY, required=True),
        taken("all", {"type": "boolean", "default": False}, description="All?"),
    ],
}
DOCUMENT = {
    "paths": {"/api/v1/thing/{measure}": {"get": THING}},
    "components": {"schemas": {"By": {"enum": ["name", "score"]}}},
}


def test_a_route_is_described_in_words():
    workspace = open_workspace({"q": {"d": 1.0}}, {"my run": {"q": {"d": 1.0}}})
    (route,) = describe_routes(DOCUMENT, workspace)["Things"]
    assert route["anchor"] == "get-api-v1-thing-measure"
    assert (route["method"], route["summary"], route["meaning"]) == ("GET", "Give a thing", "All of it.")
    assert route["example"] == "/api/v1/thing/AP?run=my+run&by=name"
    assert route["parameter_table"].column("type").values == [
        "string", "string, at most 9 characters", "integer, at least 1, at most 5", "name | score", "boolean",
    ]  # fmt: skip
    assert route["parameter_table"].column("default").values == ["required", "required", "1", "required", "false"]
    assert route["parameter_table"].column("meaning").values[4] == "All?"


def test_a_route_that_changes_something_is_called_from_a_shell(sample):
    text = TestClient(make_app(sample)).get("/api").text
    command = "curl -F qrels=@qrels.txt -F runs=@bm25.run -F runs=@dense.run http://testserver/api/v1/open"
    assert f"<pre>{command}</pre>" in text
    assert "<pre>curl -X POST http://testserver/api/v1/open/sample</pre>" in text


def test_attributes_other_than_query_texts_are_listed():
    workspace = open_workspace(QRELS, {"good": GOOD}, queries={"q1": {"text": "tax", "kind": "law"}})
    assert open_data_overview(workspace).about["attributes"] == ("kind",)


def test_every_run_links_to_a_page(sample):
    client = TestClient(make_app(sample))
    links = re.findall(r'<th scope="row" class="label"><a href="([^"]+)"', client.get("/").text)
    assert len(links) == len(sample.run_names)
    assert [client.get(unescape(address)).status_code for address in links] == [200] * len(links)
