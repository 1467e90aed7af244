"""Pages of traces as a person uses them, over the sample's pipeline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from judged.data import sample
from judged.data.topics import Topics
from judged.interface.pages.workspace import open_workspace
from judged.pipelines.commands.serve import workspace_arguments
from judged.pipelines.traces import (
    Document,
    Entities,
    Span,
    Traces,
    explain_document,
    failures,
    funnel,
    gaps,
    read_traces,
)
from judged.pipelines.traces.recorder import sample_traces
from judged.web.app import make_app

HOSTILE = "<img src=x onerror=alert(1)>"


def test_three_clicks_from_the_first_page_to_why_a_document_is_not_shown(serve: Any, tab: Any, sample: Any) -> None:
    shown = tab(serve(sample) + "/")
    page = shown.page
    page.get_by_label("Workbench").get_by_role("link", name="Traces").click()
    expect(page.locator("h1")).to_have_text("Traces")
    shown.accessible()
    shown.fits()
    page.get_by_role("link", name="t34", exact=True).click()
    page.get_by_role("link", name="gzip.compress").click()
    expect(page.locator("h1")).to_have_text("Topic t34")
    expect(page.get_by_role("row", name="gzip.compress tfidf_char")).to_contain_text("47 of 50")
    expect(page.locator("main")).to_contain_text("removed by stage rrf")
    page.get_by_label("Compared with").fill("zlib.compress")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("row", name="zlib.compress shown")).to_contain_text("3 of 10")
    expect(page.get_by_role("row", name="gzip.compress tfidf_char")).to_contain_text("47 of 50")
    shown.accessible()
    shown.fits()
    shown.clean()


def test_failures_lead_to_documents_without_a_script(serve: Any, tab: Any, sample: Any) -> None:
    shown = tab(serve(sample) + "/traces/failures?by=query_class", java_script_enabled=False)
    page = shown.page
    page.get_by_role("link", name="heapq.nlargest").click()
    expect(page.locator("h1")).to_have_text("Topic t01")
    expect(page.locator("main")).to_contain_text("no stage returned the document")


def test_the_first_topic_is_shown_with_its_query_where_none_is_named(sample: Any) -> None:
    shown = TestClient(make_app(sample), base_url="http://127.0.0.1").get("/traces/topic").text
    topic = sample.parts["traces"].query_ids[0]
    assert f'<p class="note">{sample.query(topic)} · <a href="/topic?topic={topic}">' in shown


def test_wrong_measures_and_topics_say_what_to_do(serve: Any, tab: Any, sample: Any) -> None:
    for path in (
        "/traces?measure=bpref",
        "/traces/failures?measure=nDGC",
        "/traces/gaps?by=nothing",
        "/traces/topic?topic=t99",
        "/traces?where=x==",
    ):
        shown = tab(serve(sample) + path)
        expect(shown.page.get_by_role("alert")).to_be_visible()


def test_twins_are_the_answers_of_python() -> None:
    from judged.interface.pages.workspace import open_sample

    opened, client = open_sample(), TestClient(make_app(open_sample()), base_url="http://127.0.0.1")
    traces = sample_traces()
    parts = client.get("/api/v1/traces?measure=AP").json()["parts"]
    answer = funnel(opened.qrels, traces, "AP")
    assert {row["part"]: row["value"] for row in parts} == pytest.approx(
        {row["part"]: row["value"] for row in answer.table("parts").records()}
    )
    sorted_out = client.get("/api/v1/traces/failures").json()
    assert len(sorted_out["documents"]) == len(failures(opened.qrels, traces).documents)
    entities, documents = (opened.parts[name] for name in ("entities", "documents"))
    answer = gaps(opened.qrels, traces, "P@5", entities=entities, queries=opened.topics, documents=documents)
    assert client.get("/api/v1/traces/gaps?measure=P@5").json()["content_gaps"] == answer.to_dict()["content_gaps"]
    way = client.get("/api/v1/traces/topic?topic=t34&doc=gzip.compress&doc=bz2.compress").json()
    assert way["sentences"] == list(
        explain_document(traces, "t34", ["gzip.compress", "bz2.compress"], qrels=opened.qrels).sentences
    )


def test_spans_find_their_topics_by_the_texts_of_queries(tmp_path: Path) -> None:
    span = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "Cheap  flights",
        "retrieval.documents": [{"id": "a"}],
    }
    row = {"name": "bm25", "trace_id": "t", "span_id": "s", "attributes": span}
    (tmp_path / "spans.json").write_text(json.dumps([row]))
    queries = {"7": "cheap flights"}
    traces = read_traces([tmp_path / "spans.json"], topics=Topics.of(queries))
    opened = open_workspace({"7": {"a": 1}}, {}, queries=queries, parts={"traces": traces})
    client = TestClient(make_app(opened), base_url="http://127.0.0.1")
    (topic,) = client.get("/api/v1/traces?measure=RR").json()["topics"]
    assert (topic["query_id"], topic["score"]) == ("7", 1.0)


def test_without_traces_pages_say_what_to_do_and_names_stay_text(serve: Any, tab: Any) -> None:
    qrels, runs = {HOSTILE: {HOSTILE: 1}}, {HOSTILE: {HOSTILE: {HOSTILE: 1.0}}}
    client = TestClient(make_app(open_workspace(qrels, runs)), base_url="http://127.0.0.1")
    assert client.get("/traces").status_code == 200
    assert client.get("/api/v1/traces").status_code == 400
    span = Span("t", HOSTILE, HOSTILE, "candidates", (), (Document("x", 1), Document(HOSTILE, 2)))
    opened = open_workspace(qrels, runs, parts={"traces": Traces((span,))})
    for path in ("/traces", "/traces/failures?measure=nDCG@1", "/traces/gaps", "/traces/topic"):
        shown = tab(serve(opened) + path)
        expect(shown.page.locator("main img")).to_have_count(0)
        shown.clean()


def test_content_gaps_of_a_run_without_traces(serve: Any, tab: Any, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text(f"entity,alias\n{HOSTILE},zip\ntar,\n")
    (tmp_path / "documents.csv").write_text("sku,title\na,Zip it\n")
    options = dict.fromkeys(("experiment", "results", "traces", "queries", "rag", "trajectories"))
    files = {"entities": str(tmp_path / "names.csv"), "documents": str(tmp_path / "documents.csv")}
    parts = workspace_arguments(options | files | {"qrels": "qrels.txt"})["parts"]
    queries, run = {"q1": "a zip", "q2": "a tar"}, {"mine": {"q1": {"a": 1.0}, "q2": {"a": 1.0}}}
    opened = open_workspace({"q1": {"b": 1}, "q2": {"a": 0}}, run, queries=queries, parts=parts)
    shown = tab(serve(opened) + "/traces/gaps")
    expect(shown.page.get_by_role("row", name="tar no document")).to_contain_text("a tar")
    expect(shown.page.get_by_role("row", name=f"{HOSTILE} not judged")).to_contain_text("a zip")
    shown.accessible()
    shown.fits()
    shown.clean()
    closed = TestClient(make_app(open_workspace({"q1": {"b": 1}}, run)), base_url="http://127.0.0.1")
    assert "--entities" in closed.get("/traces/gaps").text
    assert closed.get("/api/v1/traces/gaps").status_code == 400


def test_content_gaps_have_pages() -> None:
    names = [f"e{number}" for number in range(120)]
    run = {"mine": {name: {"a": 1.0} for name in names}}
    parts = {"entities": Entities.of([{"entity": name} for name in names])}
    opened = open_workspace({name: {"b": 1} for name in names}, run, queries={n: n for n in names}, parts=parts)
    client = TestClient(make_app(opened), base_url="http://127.0.0.1")
    shown = [client.get("/traces/gaps", params={"page": page}).text for page in (1, 2, 3, 4, 0)]
    rows = [re.findall(r'class="label"><bdi>(e\d+)</bdi></th>', text.split("Entities")[-1]) for text in shown]
    assert [len(names) for names in rows] == [50, 50, 20, 20, 120]
    assert rows[0] + rows[1] + rows[2] == rows[4]
    assert rows[2] == rows[3]
    assert "rows 51 to 100 of 120" in shown[1]
    assert client.get("/traces/gaps.entities.csv?page=2").text.count("\n") == 121


def test_the_sample_s_stages_are_what_they_say() -> None:
    traces = sample_traces()
    runs = {run.name: run for run in sample.runs()}
    for name in ("bm25", "tfidf_char", "rrf"):
        pairs = zip(*(runs[name].table[column].to_pylist() for column in ("query_id", "doc_id")), strict=True)
        mine = zip(*(traces.run(name).table[column].to_pylist() for column in ("query_id", "doc_id")), strict=True)
        assert set(pairs) == set(mine)
    given = {name: {query: {one.doc_id for one in traces.spans_of(query)[name].documents or ()} for query in
             traces.query_ids} for name in ("bm25", "tfidf_char", "rrf", "shown")}  # fmt: skip
    for query in traces.query_ids:
        assert given["rrf"][query] <= given["bm25"][query] | given["tfidf_char"][query]
        assert given["shown"][query] <= given["rrf"][query]
