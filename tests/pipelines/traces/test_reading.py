"""One pipeline in every layout gives the same stages; what cannot be read is counted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spans_made as made
from command_line import process
from judged.comparison.fusion import fuse
from judged.data.run import Run
from judged.errors import InputError
from judged.pipelines.traces import Document, Span, Traces, funnel, read_traces, traces_of_runs, write_traces
from judged.scoring.judging.align import align
from shared_data import SHARED, needs_shared

Row = dict[str, Any]


def lines(rows: list[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def of(tmp_path: Path, rows: list[Row], **options: Any) -> Traces:
    path = tmp_path / "spans.jsonl"
    path.write_text(lines(rows))
    return read_traces(path, **options)


def stage(traces: Traces, name: str) -> Span:
    return next(span for span in traces.spans if span.stage == name)


def ids(span: Span) -> str | None:
    return None if span.documents is None else "".join(one.doc_id for one in span.documents)


def phoenix(rows: list[Row], path: Path) -> None:
    """Write the data frame of Phoenix: a column an attribute, lists of documents as they are."""
    flat = [
        {
            "name": row["name"],
            "context.trace_id": row["context"]["trace_id"],
            "context.span_id": row["context"]["span_id"],
            "parent_id": row["parent_id"],
            "start_time": pd.Timestamp(row["start_time"]),
            "end_time": pd.Timestamp(row["end_time"]),
            **{f"attributes.{key}": value for key, value in row["attributes"].items()},
        }
        for row in rows
    ]
    pd.DataFrame(flat).to_parquet(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "flat lines": lambda path: path.write_text(lines(made.pipeline())) and None,
    "nested lines": lambda path: path.write_text(lines(made.pipeline(nested=True))) and None,
    "a list": lambda path: path.write_text(json.dumps(made.pipeline(), indent=1)) and None,
    "javascript": lambda path: path.write_text(json.dumps(made.javascript(made.pipeline()))) and None,
    "console": lambda path: path.write_text("\n".join(json.dumps(row, indent=4) for row in made.pipeline())) and None,
    "dump": lambda path: path.write_text(lines([{"_index": "s", "_source": row} for row in made.pipeline()])) and None,
    "bulk": lambda path: (
        path.write_text("".join(lines([{"index": {"_id": "1"}}, row]) for row in made.pipeline())) and None
    ),
    "otlp": lambda path: path.write_text(json.dumps(made.otlp(made.pipeline()), indent=1)) and None,
    "otlp nested": lambda path: path.write_text(json.dumps(made.otlp(made.pipeline(nested=True)))) and None,
    "otlp lines": lambda path: path.write_text(lines([made.otlp([row]) for row in made.pipeline()])) and None,
    "phoenix's api": lambda path: path.write_text(json.dumps({"data": made.pipeline(), "next_cursor": None})) and None,
    "gzip": lambda path: path.write_bytes(gzip.compress(lines(made.pipeline()).encode())) and None,
    "parquet": lambda path: phoenix(made.pipeline(nested=True), path),
    "parquet flat": lambda path: phoenix(made.pipeline(), path),
    "out of order": lambda path: path.write_text(lines(made.pipeline()[::-1])) and None,
}


@pytest.mark.parametrize("layout", WRITERS)
def test_every_layout_gives_the_same_stages(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "spans"
    WRITERS[layout](path)
    traces = read_traces(path)
    assert [(one.name, one.kind, one.parents) for one in traces.stages] == [
        ("bm25", "candidates", ()),
        ("dense", "candidates", ()),
        ("rerank input", "candidates", ("bm25", "dense")),
        ("rerank", "rerank", ("rerank input",)),
    ]
    assert [ids(stage(traces, name)) for name in ("bm25", "dense", "rerank input", "rerank")] == [
        "xac", "yb", "xaybc", "xba"
    ]  # fmt: skip
    last = stage(traces, "rerank")
    assert (last.query_id, last.query, last.model, last.trace_id) == ("cheap flights", "Cheap  Flights", "cross", "t1")
    assert [(one.rank, one.score) for one in last.documents or ()] == [(1, 0.9), (2, 0.8), (3, pytest.approx(0.7))]
    assert last.latency_ms == pytest.approx(500)
    assert last.facts == {
        "session_id": "s1",
        "top_k": 2,
        "feedback": [{"name": "helpful", "score": 1.0, "annotator_kind": "HUMAN"}],
    }
    assert [note.text for note in traces.notes] == [
        "2 spans of other kinds: 1 LLM, 1 CHAIN"
    ] or layout == "out of order"
    assert funnel({"cheap flights": {"c": 1}}, traces, "R@5").lost == (("cheap flights", "c", "rerank", 1.0),)


def test_an_input_that_is_what_was_passed_on_is_no_stage(tmp_path: Path) -> None:
    rows = [made.span("search", 0, 1, made.retriever("abc")), made.span("rerank", 1, 2, made.reranker("abc", "b"))]
    assert [one.name for one in of(tmp_path, rows).stages] == ["search", "rerank"]
    again = [made.span("search", 0, 1, made.retriever("abc", "other"), trace="t2"),
             made.span("rerank", 1, 2, made.reranker("ab", "b"), trace="t2")]  # fmt: skip
    traces = of(tmp_path, rows + again)
    assert [one.name for one in traces.stages] == ["search", "rerank input", "rerank"]
    assert len(traces.run("rerank input").table) == 3 + 2


def test_the_tree_tells_which_retriever_a_reranker_follows(tmp_path: Path) -> None:
    """Two tools of an agent, each with a retriever and a reranker; in the second one a retriever inside another."""
    kind = {"openinference.span.kind": "TOOL"}
    rows = [
        made.span("search", 0.1, 1, made.retriever("ab"), inside="one"),
        made.span("rerank", 1, 1.5, made.reranker("ab", "b"), inside="one"),
        made.span("one", 0, 1.5, kind),
        made.span("vector", 2.1, 2.5, made.retriever("cd"), inside="search"),
        made.span("search", 0, 3, made.retriever("dc"), inside="two"),
        made.span("rerank", 3, 3.5, made.reranker("cd", "d"), inside="two"),
        made.span("two", 0, 4, kind),
        made.span("root", 0, 5, made.chain(), inside=""),
    ]
    got = {one.name: one.parents for one in of(tmp_path, rows).stages}
    assert got == {
        "search": (), "vector": (), "rerank": ("search",), "search 2": ("vector",), "rerank 2": ("search 2",)
    }  # fmt: skip


def test_a_second_reranker_follows_the_first(tmp_path: Path) -> None:
    rows = [
        made.span("search", 0, 1, made.retriever("abc")),
        made.span("light", 1, 2, made.reranker("abc", "ab")),
        made.span("heavy", 2, 3, made.reranker("ab", "b")),
    ]
    assert {one.name: one.parents for one in of(tmp_path, rows).stages} == {
        "search": (), "light": ("search",), "heavy": ("light",)
    }  # fmt: skip


def test_stages_of_two_kinds_with_one_name_are_told_apart(tmp_path: Path) -> None:
    rows = [made.span("run", 0, 1, made.retriever("ab")), made.span("run", 1, 2, made.reranker("ab", "b"))]
    assert [one.name for one in of(tmp_path, rows).stages] == ["run (candidates)", "run (rerank)"]


def test_the_topic_is_an_attribute_or_a_text(tmp_path: Path) -> None:
    rows = made.pipeline()
    assert of(tmp_path, rows, topic_from="metadata.topic").query_ids == ("t7",)
    assert of(tmp_path, rows, topics={"9": "cheap flights", "8": "else"}).query_ids == ("9",)
    unknown = of(tmp_path, rows, topics={"9": "trains"})
    assert unknown.query_ids == ("cheap flights",)
    assert any("no topic" in note.text for note in unknown.notes)
    twice = of(tmp_path, rows, topics={"9": "cheap flights", "8": "Cheap Flights"})
    assert twice.query_ids == ("cheap flights",)
    absent = of(tmp_path, rows, topic_from="metadata.nothing")
    assert absent.query_ids == ("cheap flights",)
    assert any("without metadata.nothing" in note.text for note in absent.notes)


def test_of_a_rewritten_query_the_first_text_counts(tmp_path: Path) -> None:
    rows = [
        made.span("search", 1, 2, made.retriever("ab", "flight ticket low price")),
        made.span("root", 0, 3, made.chain(), inside=""),
    ]
    assert of(tmp_path, rows).query_ids == ("cheap flights",)
    assert of(tmp_path, rows, topics={"9": "flight ticket low price"}).query_ids == ("9",)
    wrapped = [made.span("search", 1, 2, made.retriever("ab", '{"query": "Jazz", "top_k": 3}'))]
    assert of(tmp_path, wrapped).query_ids == ("jazz",)


def genai(operation: str, name: str = "op", **attributes: Any) -> list[Row]:
    known = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return [made.span(name, 0, 1, {"gen_ai.operation.name": operation, **known}, inside="")]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25, "extra": 1}], [("a", 1, 0.5), ("b", 2, 0.25)]),
        ([{"content": "text", "source_id": "a"}], [("a", 1, None)]),
        ([{"name": "a"}], [("a", 1, None)]),
        ([{"document": {"id": "a", "content": "c"}, "score": 1}], [("a", 1, 1.0)]),
        ([{"document": {"document_id": "a"}}, {"document": {"doc_id": "b"}}], [("a", 1, None), ("b", 2, None)]),
        ([{"content": "no id"}, {"id": 7}], [("7", 2, None)]),
        (["a", "b", "a"], [("a", 1, None), ("b", 2, None)]),
        ([], []),
    ],
)
@pytest.mark.parametrize("encoded", ["", "whole", "each"])
def test_documents_of_genai(documents: list[Any], expected: list[Any], encoded: str, tmp_path: Path) -> None:
    given: Any = json.dumps(documents) if encoded == "whole" else documents
    if encoded == "each":
        given = [json.dumps(one) if isinstance(one, dict) else one for one in documents]
    rows = genai("retrieval", data_source__id="kb", retrieval__query__text="Jazz", retrieval__documents=given)
    [span] = of(tmp_path, rows).spans
    assert [(one.doc_id, one.rank, one.score) for one in span.documents or ()] == expected
    assert (span.stage, span.kind, span.query_id) == ("kb", "candidates", "jazz")


@pytest.mark.parametrize("key", ["retrieval__top_k", "request__top_k"])
def test_both_names_of_top_k(key: str, tmp_path: Path) -> None:
    given = {key: 3.0, "retrieval__query__text": "q", "retrieval__documents": [{"id": "a", "score": 1}]}
    assert of(tmp_path, genai("retrieval", **given)).spans[0].facts == {"top_k": 3.0}


def test_reranking_of_genai(tmp_path: Path) -> None:
    """As proposed without documents; and Alibaba's, whose documents may be indices into what was given."""
    proposed = genai("rerank", rerank__candidate__count=3, rerank__top_n=2, rerank__scores=[0.9, 0.1])
    first = genai("retrieval", "search", retrieval__query__text="q", retrieval__documents=[{"id": "a", "score": 1}])
    proposed[0] |= {"start_time": first[0]["end_time"], "end_time": "2026-02-03T15:20:00Z"}
    traces = of(tmp_path, first + proposed)
    assert [(one.stage, ids(one), one.parents, one.facts) for one in traces.spans] == [
        ("search", "a", (), {}), ("op", None, ("search",), {"top_k": 2})
    ]  # fmt: skip
    alibaba = genai(
        "rerank_documents",
        request__model="gte-rerank",
        rerank__query__text="q",
        rerank__input_documents=json.dumps([{"id": "a"}, {"id": "b"}, {"id": "c"}]),
        rerank__output_documents=[
            {"index": 2, "relevance_score": 0.9},
            {"index": 0, "relevance_score": 0.2, "id": "a"},
        ],
    )
    traces = of(tmp_path, alibaba)
    assert [(one.stage, ids(one)) for one in traces.spans] == [("op input", "abc"), ("op", "ca")]
    assert [one.score for one in traces.spans[1].documents or ()] == [0.9, 0.2]
    assert traces.spans[1].model == "gte-rerank"


def test_one_of_two_conventions_can_be_asked_for(tmp_path: Path) -> None:
    [second] = genai("retrieval", data_source__id="kb", retrieval__query__text="q", retrieval__documents=["c"])
    both = made.retriever("ab", "q") | second["attributes"]
    rows = [made.span("search", 0, 1, both)]
    assert [(one.stage, ids(one)) for one in of(tmp_path, rows, format="openinference").spans] == [("search", "ab")]
    assert [(one.stage, ids(one)) for one in of(tmp_path, rows, format="opentelemetry").spans] == [("kb", "c")]
    with pytest.raises(InputError, match="not of the format ubi"):
        of(tmp_path, rows, format="ubi")


def test_ubi_queries_are_what_was_shown(tmp_path: Path) -> None:
    page = {"query_id": "p1", "client_id": "u", "user_query": "Jazz ", "timestamp": "2026-01-01T00:00:00Z",
            "query_attributes": {"topic": 4}}  # fmt: skip
    rows = [
        page | {"query_response_hit_ids": ["d1", "d2"]},
        page | {"query_id": "p2", "user_query": "blues", "query_response_hit_ids": []},
        page | {"query_id": "p3", "user_query": "soul"},
        {"action_name": "click", "query_id": "p1", "timestamp": "2026-01-01T00:00:01Z"},
    ]
    traces = of(tmp_path, rows)
    got = [
        (one.query_id, one.trace_id, one.kind, None if one.documents is None else len(one.documents))
        for one in traces.spans
    ]
    assert got == [("jazz", "p1", "shown", 2), ("blues", "p2", "shown", 0), ("soul", "p3", "shown", None)]
    assert traces.spans[0].facts == {"user_id": "u"}
    assert [note.rule for note in traces.notes] == ["odd-records"]
    assert of(tmp_path, rows[:1], topic_from="query_attributes.topic").query_ids == ("4",)


def test_what_was_redacted_is_not_recorded(tmp_path: Path) -> None:
    hidden = made.retriever("ab", "q") | {"retrieval.documents.0.document.id": "__REDACTED__"}
    whole = {"openinference.span.kind": "RETRIEVER", "input.value": "r", "retrieval.documents": "__REDACTED__"}
    silent = made.retriever("ab", "__REDACTED__")
    rows = [made.span("s", 0, 1, one, inside="", trace=f"t{at}") for at, one in enumerate((hidden, whole, silent))]
    traces = of(tmp_path, rows)
    assert [(one.query_id, ids(one)) for one in traces.spans] == [("q", "b"), ("r", None)]
    assert sorted(note.text for note in traces.notes) == [
        "documents whose id was redacted: 1", "lists of documents that were redacted: 1",
        "traces without the text of a query: 1",
    ]  # fmt: skip


def test_ids_from_metadata(tmp_path: Path) -> None:
    bare = {key: value for key, value in made.retriever("ab", "q").items() if not key.endswith("document.id")}
    rows = [made.span("s", 0, 1, bare)]
    without = of(tmp_path, rows)
    assert [one.documents for one in without.spans] == [None]
    assert "documents without an id: 2" in [note.text for note in without.notes]
    [span] = of(tmp_path, rows, id_from="source").spans
    assert [one.doc_id for one in span.documents or ()] == ["file-a", "file-b"]


def test_a_stage_that_some_traces_lack_is_named(tmp_path: Path) -> None:
    rows = [made.span("s", 0, 1, made.retriever("a", "one"), trace="t1"),
            made.span("s", 0, 1, made.retriever("a", "Cheap flights"), trace="t2"),
            made.span("r", 1, 2, made.reranker("a", "a"), trace="t2")]  # fmt: skip
    [note] = of(tmp_path, rows).notes
    assert (note.rule, note.subject, note.weight) == ("absent-stages", "r", 1)


@needs_shared
def test_spans_without_retrieval_are_counted_by_kind() -> None:
    path = SHARED / "spans" / "openinference_vercel_all_spans.json"
    with pytest.raises(InputError, match="no stage of a trace") as caught:
        read_traces(path)
    for kind in ("2 ai.generateText.doGenerate", "1 ai.embed ", "10 spans"):
        assert kind in str(caught.value)


def test_the_command_reads_spans(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps(made.otlp(made.pipeline())))
    (tmp_path / "topics.jsonl").write_text('{"query_id": "9", "text": "cheap flights"}\n')
    arguments = [
        "traces",
        "check",
        str(tmp_path / "spans.json"),
        "--topics",
        str(tmp_path / "topics.jsonl"),
        "--format",
        "json",
    ]
    result = process(*arguments)
    assert result.code == 0, result.err
    assert "rerank input" in result.out


JUNK = st.sampled_from(
    [None, 1, -1.5, "", True, [], {}, [None], {"a": 1}, "__REDACTED__", "[1", {"0": {}}, float("nan")]
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the path of every value of JSON."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(one for key, value in inner for one in places(value, (*path, key)))]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([made.pipeline(), made.pipeline(nested=True), [made.otlp(made.pipeline())]]))
def test_whatever_stands_somewhere_is_read_or_counted(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: list[Row]
) -> None:
    rows = json.loads(json.dumps(rows))
    *above, last = data.draw(st.sampled_from(places(rows)[1:]))
    tree: Any = rows
    for key in above:
        tree = tree[key]
    tree[last] = data.draw(JUNK)
    try:
        traces = of(tmp_path_factory.mktemp("junk"), rows)
    except InputError:
        return
    sizes = [
        sum(len(one.documents or ()) for one in traces.spans if one.stage == stage.name) for stage in traces.stages
    ]
    assert [len(run.table) for run in traces.runs()] == [size for size in sizes if size]


def test_a_stage_that_records_no_documents_is_a_stage_whose_documents_are_unknown(tmp_path: Path) -> None:
    silent = {"openinference.span.kind": "RERANKER", "reranker.query": "q"}
    rows = [
        made.span("search", 0, 1, made.retriever("ab", "q")),
        made.span("silent", 1, 2, silent),
        made.span("last", 2, 3, made.reranker("", "b")),
    ]
    traces = of(tmp_path, rows)
    assert stage(traces, "last").parents == ("silent",)
    assert [(one.name, one.parents) for one in traces.stages] == [
        ("search", ()), ("silent", ("search",)), ("last", ("silent",))
    ]  # fmt: skip
    assert traces.state("q", "silent") == "unrecorded"


def test_a_list_that_breaks_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(made.pipeline())[:-10])
    traces = read_traces(path)
    assert [one.name for one in traces.stages] == ["bm25", "dense", "rerank input", "rerank"]
    assert traces.notes[0].text == f"1 record left out, first {path}, record 5: no JSON object"
    path.write_text("")
    with pytest.raises(InputError, match="empty"):
        read_traces(path)


def test_clicks_of_ubi_go_with_the_list_they_are_of(tmp_path: Path) -> None:
    """A list that nobody clicked on has none, once there are clicks at all; other events are counted."""
    pages = [{"query_id": f"u{at}", "user_query": f"text {at}", "query_response_hit_ids": ["a", "b"]} for at in (1, 2)]
    objects = {"event_attributes": {"object": {"object_id": "b"}}}
    events = [{"action_name": name, "query_id": "u1", **objects} for name in ("click", "click", "impression")]
    for name, rows in (("pages", pages), ("both", [*events, *pages])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert all("clicks" not in span.facts for span in read_traces(tmp_path / "pages.jsonl").spans)
    traces = read_traces(tmp_path / "both.jsonl")
    assert [span.facts["clicks"] for span in traces.spans] == [{"b": 2}, {}]
    assert [note.text for note in traces.notes] == ["events other than clicks: 1"]


def test_files_that_are_something_else_are_refused_with_their_line(tmp_path: Path) -> None:
    write_traces(traces_of_runs({"../a": {"q": ["x"]}}), tmp_path / "traces.jsonl")
    (tmp_path / "qrels").write_text("q 0 x 1\n")
    (tmp_path / "clicks.csv").write_text("query_id,grade\nq,1\n")
    traces, qrels = str(tmp_path / "traces.jsonl"), str(tmp_path / "qrels")
    for option, file, line in (("--corpus", "qrels", ":1:"), ("--clicks", "clicks.csv", ":2:")):
        result = process("traces", "failures", qrels, traces, option, str(tmp_path / file))
        assert (result.code, line in result.err) == (2, True), result.err
    assert process("traces", "runs", traces, "--to", qrels).code == 2
    assert process("traces", "runs", traces, "--to", str(tmp_path / "runs")).code == 0
    assert [one.name for one in (tmp_path / "runs").iterdir()] == [".._a.run"]


@pytest.mark.parametrize(
    ("documents", "kept"),
    [
        ((("b", 7.5), ("a", 5.0)), True),
        ((("b", 5.0), ("a", 5.0)), True),  # equal scores stand by falling id, as every run is read
        ((("a", 5.0), ("b", 5.0)), False),
        ((("a", 5.0 + 1e-12), ("b", 5.0)), False),  # equal in single precision
        ((("a", 5.0), ("b", None)), False),
        ((("a", 5.0), ("b", 7.0)), False),
        ((("a", float("inf")), ("b", 7.0)), False),
    ],
)
def test_a_run_has_the_recorded_scores_where_they_give_the_recorded_order(
    documents: tuple[tuple[str, float | None], ...], kept: bool
) -> None:
    """One query that says otherwise decides for the whole stage, whose scores are then ranks."""
    listed = tuple(Document(doc, rank, score) for rank, (doc, score) in enumerate(documents, 1))
    usual = (Document("y", 1, 1.5), Document("x", 2, 0.5))
    spans = (Span("t1", "p", "s", "candidates", (), usual), Span("t2", "q", "s", "candidates", (), listed))
    traces = Traces(spans)
    run = traces.run("s")
    assert traces.has_scores("s") == kept
    expected = [1.5, 0.5, *(score for _, score in documents)] if kept else [-1.0, -2.0, -1.0, -2.0]
    assert run.table["score"].to_pylist() == expected
    for precision in ("double", "single"):
        both = align(run, run, precision=precision)
        assert both.doc.take([2, 3]).to_pylist() == [doc for doc, _ in documents]


def test_runs_that_were_traced_are_written_as_they_were_and_fuse_as_they_did(tmp_path: Path) -> None:
    runs = {"one": {"q": {"a": 9.0, "b": 2.0, "c": 1.0}}, "two": {"q": {"c": 9.5, "b": 2.0}}}
    bare = Span("q", "q", "bare", "rerank", ("two",), (Document("b", 1), Document("a", 2)))
    write_traces(Traces((*traces_of_runs(runs).spans, bare)), tmp_path / "traces.jsonl")
    result = process("traces", "runs", str(tmp_path / "traces.jsonl"), "--to", str(tmp_path / "runs"))
    said = [line.rpartition(": ")[2] for line in result.out.splitlines()]
    assert said == ["recorded scores", "recorded scores", "ranks as scores, negative"]
    fused = [
        fuse([Run.of(one) for one in sources], algorithm="sum").table.to_pylist()
        for sources in ([runs["one"], runs["two"]], [tmp_path / "runs" / "one.run", tmp_path / "runs" / "two.run"])
    ]
    assert fused[0] == fused[1]
