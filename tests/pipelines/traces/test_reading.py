"""Readers: a pipeline has the same stages in all formats, and unreadable records are counted."""

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

import spans_made as sample_spans
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


def read(tmp_path: Path, rows: list[Row], **options: Any) -> Traces:
    path = tmp_path / "spans.jsonl"
    path.write_text(lines(rows))
    return read_traces(path, **options)


def stage(traces: Traces, name: str) -> Span:
    return next(span for span in traces.spans if span.stage == name)


def ids(span: Span) -> str | None:
    return None if span.documents is None else "".join(document.doc_id for document in span.documents)


def phoenix(rows: list[Row], path: Path) -> None:
    """Write a data frame as Phoenix does: one column for each attribute, with nested lists of documents."""
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
    "flat lines": lambda path: path.write_text(lines(sample_spans.pipeline())) and None,
    "nested lines": lambda path: path.write_text(lines(sample_spans.pipeline(nested=True))) and None,
    "a list": lambda path: path.write_text(json.dumps(sample_spans.pipeline(), indent=1)) and None,
    "javascript": lambda path: path.write_text(json.dumps(sample_spans.javascript(sample_spans.pipeline()))) and None,
    "console": lambda path: (
        path.write_text("\n".join(json.dumps(row, indent=4) for row in sample_spans.pipeline())) and None
    ),
    "dump": lambda path: (
        path.write_text(lines([{"_index": "s", "_source": row} for row in sample_spans.pipeline()])) and None
    ),
    "bulk": lambda path: (
        path.write_text("".join(lines([{"index": {"_id": "1"}}, row]) for row in sample_spans.pipeline())) and None
    ),
    "otlp": lambda path: path.write_text(json.dumps(sample_spans.otlp(sample_spans.pipeline()), indent=1)) and None,
    "otlp nested": lambda path: (
        path.write_text(json.dumps(sample_spans.otlp(sample_spans.pipeline(nested=True)))) and None
    ),
    "otlp lines": lambda path: (
        path.write_text(lines([sample_spans.otlp([row]) for row in sample_spans.pipeline()])) and None
    ),
    "phoenix's api": lambda path: (
        path.write_text(json.dumps({"data": sample_spans.pipeline(), "next_cursor": None})) and None
    ),
    "gzip": lambda path: path.write_bytes(gzip.compress(lines(sample_spans.pipeline()).encode())) and None,
    "parquet": lambda path: phoenix(sample_spans.pipeline(nested=True), path),
    "parquet flat": lambda path: phoenix(sample_spans.pipeline(), path),
    "out of order": lambda path: path.write_text(lines(sample_spans.pipeline()[::-1])) and None,
}


@pytest.mark.parametrize("layout", WRITERS)
def test_every_layout_gives_the_same_stages(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "spans"
    WRITERS[layout](path)
    traces = read_traces(path)
    assert [(recorded.name, recorded.kind, recorded.parents) for recorded in traces.stages] == [
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
    assert [(recorded.rank, recorded.score) for recorded in last.documents or ()] == [
        (1, 0.9),
        (2, 0.8),
        (3, pytest.approx(0.7)),
    ]
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


def test_an_input_equal_to_the_previous_output_is_no_stage(tmp_path: Path) -> None:
    rows = [
        sample_spans.span("search", 0, 1, sample_spans.retriever("abc")),
        sample_spans.span("rerank", 1, 2, sample_spans.reranker("abc", "b")),
    ]
    assert [recorded.name for recorded in read(tmp_path, rows).stages] == ["search", "rerank"]
    different = [sample_spans.span("search", 0, 1, sample_spans.retriever("abc", "other"), trace="t2"),
             sample_spans.span("rerank", 1, 2, sample_spans.reranker("ab", "b"), trace="t2")]  # fmt: skip
    traces = read(tmp_path, rows + different)
    assert [recorded.name for recorded in traces.stages] == ["search", "rerank input", "rerank"]
    assert len(traces.run("rerank input").table) == 3 + 2


def test_parents_of_rerankers_follow_the_tree_of_spans(tmp_path: Path) -> None:
    """Two tools of an agent, each with a retriever and a reranker; the second one has nested retrievers."""
    kind = {"openinference.span.kind": "TOOL"}
    rows = [
        sample_spans.span("search", 0.1, 1, sample_spans.retriever("ab"), inside="one"),
        sample_spans.span("rerank", 1, 1.5, sample_spans.reranker("ab", "b"), inside="one"),
        sample_spans.span("one", 0, 1.5, kind),
        sample_spans.span("vector", 2.1, 2.5, sample_spans.retriever("cd"), inside="search"),
        sample_spans.span("search", 0, 3, sample_spans.retriever("dc"), inside="two"),
        sample_spans.span("rerank", 3, 3.5, sample_spans.reranker("cd", "d"), inside="two"),
        sample_spans.span("two", 0, 4, kind),
        sample_spans.span("root", 0, 5, sample_spans.chain(), inside=""),
    ]
    parents = {recorded.name: recorded.parents for recorded in read(tmp_path, rows).stages}
    assert parents == {
        "search": (), "vector": (), "rerank": ("search",), "search 2": ("vector",), "rerank 2": ("search 2",)
    }  # fmt: skip


def test_a_second_reranker_follows_the_first(tmp_path: Path) -> None:
    rows = [
        sample_spans.span("search", 0, 1, sample_spans.retriever("abc")),
        sample_spans.span("light", 1, 2, sample_spans.reranker("abc", "ab")),
        sample_spans.span("heavy", 2, 3, sample_spans.reranker("ab", "b")),
    ]
    assert {recorded.name: recorded.parents for recorded in read(tmp_path, rows).stages} == {
        "search": (), "light": ("search",), "heavy": ("light",)
    }  # fmt: skip


def test_stages_of_two_kinds_with_the_same_name_are_renamed(tmp_path: Path) -> None:
    rows = [
        sample_spans.span("run", 0, 1, sample_spans.retriever("ab")),
        sample_spans.span("run", 1, 2, sample_spans.reranker("ab", "b")),
    ]
    assert [recorded.name for recorded in read(tmp_path, rows).stages] == ["run (candidates)", "run (rerank)"]


def test_topics_come_from_an_attribute_or_a_text(tmp_path: Path) -> None:
    rows = sample_spans.pipeline()
    assert read(tmp_path, rows, topic_from="metadata.topic").query_ids == ("t7",)
    assert read(tmp_path, rows, topics={"9": "cheap flights", "8": "else"}).query_ids == ("9",)
    unknown = read(tmp_path, rows, topics={"9": "trains"})
    assert unknown.query_ids == ("cheap flights",)
    assert any("no topic" in note.text for note in unknown.notes)
    ambiguous = read(tmp_path, rows, topics={"9": "cheap flights", "8": "Cheap Flights"})
    assert ambiguous.query_ids == ("cheap flights",)
    absent = read(tmp_path, rows, topic_from="metadata.nothing")
    assert absent.query_ids == ("cheap flights",)
    assert any("without metadata.nothing" in note.text for note in absent.notes)


def test_rewritten_queries_have_the_topic_of_the_original_text(tmp_path: Path) -> None:
    rows = [
        sample_spans.span("search", 1, 2, sample_spans.retriever("ab", "flight ticket low price")),
        sample_spans.span("root", 0, 3, sample_spans.chain(), inside=""),
    ]
    assert read(tmp_path, rows).query_ids == ("cheap flights",)
    assert read(tmp_path, rows, topics={"9": "flight ticket low price"}).query_ids == ("9",)
    wrapped = [sample_spans.span("search", 1, 2, sample_spans.retriever("ab", '{"query": "Jazz", "top_k": 3}'))]
    assert read(tmp_path, wrapped).query_ids == ("jazz",)


def genai(operation: str, name: str = "op", **attributes: Any) -> list[Row]:
    prefixed = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return [sample_spans.span(name, 0, 1, {"gen_ai.operation.name": operation, **prefixed}, inside="")]


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
@pytest.mark.parametrize("encoded", ["", "list", "elements"])
def test_documents_of_genai(documents: list[Any], expected: list[Any], encoded: str, tmp_path: Path) -> None:
    recorded: Any = json.dumps(documents) if encoded == "list" else documents
    if encoded == "elements":
        recorded = [json.dumps(document) if isinstance(document, dict) else document for document in documents]
    rows = genai("retrieval", data_source__id="kb", retrieval__query__text="Jazz", retrieval__documents=recorded)
    [span] = read(tmp_path, rows).spans
    assert [(document.doc_id, document.rank, document.score) for document in span.documents or ()] == expected
    assert (span.stage, span.kind, span.query_id) == ("kb", "candidates", "jazz")


@pytest.mark.parametrize("key", ["retrieval__top_k", "request__top_k"])
def test_both_names_of_top_k(key: str, tmp_path: Path) -> None:
    attributes = {key: 3.0, "retrieval__query__text": "q", "retrieval__documents": [{"id": "a", "score": 1}]}
    assert read(tmp_path, genai("retrieval", **attributes)).spans[0].facts == {"top_k": 3.0}


def test_reranking_of_genai(tmp_path: Path) -> None:
    """Test the proposal without documents, and Alibaba's format, in which documents can be indices of the input."""
    proposed = genai("rerank", rerank__candidate__count=3, rerank__top_n=2, rerank__scores=[0.9, 0.1])
    retrieval = genai("retrieval", "search", retrieval__query__text="q", retrieval__documents=[{"id": "a", "score": 1}])
    proposed[0] |= {"start_time": retrieval[0]["end_time"], "end_time": "2026-02-03T15:20:00Z"}
    traces = read(tmp_path, retrieval + proposed)
    assert [(span.stage, ids(span), span.parents, span.facts) for span in traces.spans] == [
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
    traces = read(tmp_path, alibaba)
    assert [(span.stage, ids(span)) for span in traces.spans] == [("op input", "abc"), ("op", "ca")]
    assert [span.score for span in traces.spans[1].documents or ()] == [0.9, 0.2]
    assert traces.spans[1].model == "gte-rerank"


def test_format_selects_one_of_two_conventions(tmp_path: Path) -> None:
    [second] = genai("retrieval", data_source__id="kb", retrieval__query__text="q", retrieval__documents=["c"])
    attributes = sample_spans.retriever("ab", "q") | second["attributes"]
    rows = [sample_spans.span("search", 0, 1, attributes)]
    assert [(span.stage, ids(span)) for span in read(tmp_path, rows, format="openinference").spans] == [
        ("search", "ab")
    ]
    assert [(span.stage, ids(span)) for span in read(tmp_path, rows, format="opentelemetry").spans] == [("kb", "c")]
    with pytest.raises(InputError, match="not in the format ubi"):
        read(tmp_path, rows, format="ubi")


def test_ubi_queries_are_displayed_lists(tmp_path: Path) -> None:
    page = {"query_id": "p1", "client_id": "u", "user_query": "Jazz ", "timestamp": "2026-01-01T00:00:00Z",
            "query_attributes": {"topic": 4}}  # fmt: skip
    rows = [
        page | {"query_response_hit_ids": ["d1", "d2"]},
        page | {"query_id": "p2", "user_query": "blues", "query_response_hit_ids": []},
        page | {"query_id": "p3", "user_query": "soul"},
        {"action_name": "click", "query_id": "p1", "timestamp": "2026-01-01T00:00:01Z"},
    ]
    traces = read(tmp_path, rows)
    pages = [
        (
            page_span.query_id,
            page_span.trace_id,
            page_span.kind,
            None if page_span.documents is None else len(page_span.documents),
        )
        for page_span in traces.spans
    ]
    assert pages == [("jazz", "p1", "shown", 2), ("blues", "p2", "shown", 0), ("soul", "p3", "shown", None)]
    assert traces.spans[0].facts == {"user_id": "u"}
    assert [note.rule for note in traces.notes] == ["irregular-records"]
    assert read(tmp_path, rows[:1], topic_from="query_attributes.topic").query_ids == ("4",)


def test_redacted_values_are_unrecorded(tmp_path: Path) -> None:
    without_id = sample_spans.retriever("ab", "q") | {"retrieval.documents.0.document.id": "__REDACTED__"}
    without_list = {"openinference.span.kind": "RETRIEVER", "input.value": "r", "retrieval.documents": "__REDACTED__"}
    without_query = sample_spans.retriever("ab", "__REDACTED__")
    rows = [
        sample_spans.span("s", 0, 1, attributes, inside="", trace=f"t{i}")
        for i, attributes in enumerate((without_id, without_list, without_query))
    ]
    traces = read(tmp_path, rows)
    assert [(span.query_id, ids(span)) for span in traces.spans] == [("q", "b"), ("r", None)]
    assert sorted(note.text for note in traces.notes) == [
        "documents with a redacted id: 1", "redacted lists of documents: 1", "traces without a query text: 1",
    ]  # fmt: skip


def test_ids_from_metadata(tmp_path: Path) -> None:
    attributes = {
        key: value for key, value in sample_spans.retriever("ab", "q").items() if not key.endswith("document.id")
    }
    rows = [sample_spans.span("s", 0, 1, attributes)]
    unidentified = read(tmp_path, rows)
    assert [span.documents for span in unidentified.spans] == [None]
    assert any("--id-from" in note.text and note.text.endswith(": 2") for note in unidentified.notes)
    [span] = read(tmp_path, rows, id_from="source").spans
    assert [document.doc_id for document in span.documents or ()] == ["file-a", "file-b"]


def test_stages_missing_from_some_traces_are_mentioned_in_a_note(tmp_path: Path) -> None:
    rows = [sample_spans.span("s", 0, 1, sample_spans.retriever("a", "one"), trace="t1"),
            sample_spans.span("s", 0, 1, sample_spans.retriever("a", "Cheap flights"), trace="t2"),
            sample_spans.span("r", 1, 2, sample_spans.reranker("a", "a"), trace="t2")]  # fmt: skip
    [note] = read(tmp_path, rows).notes
    assert (note.rule, note.subject, note.weight) == ("missing-stages", "r", 1)


@needs_shared
def test_spans_without_retrieval_are_counted_by_kind() -> None:
    path = SHARED / "spans" / "openinference_vercel_all_spans.json"
    with pytest.raises(InputError, match="no stage of a trace could be read") as caught:
        read_traces(path)
    for kind in ("2 ai.generateText.doGenerate", "1 ai.embed ", "10 spans"):
        assert kind in str(caught.value)


def test_the_command_reads_spans(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps(sample_spans.otlp(sample_spans.pipeline())))
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


INVALID_VALUES = st.sampled_from(
    [None, 1, -1.5, "", True, [], {}, [None], {"a": 1}, "__REDACTED__", "[1", {"0": {}}, float("nan")]
)


def paths_of(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values of JSON."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(child_path for key, value in children for child_path in paths_of(value, (*path, key)))]


@settings(max_examples=200, deadline=None)
@given(
    st.data(),
    st.sampled_from(
        [sample_spans.pipeline(), sample_spans.pipeline(nested=True), [sample_spans.otlp(sample_spans.pipeline())]]
    ),
)
def test_invalid_values_are_read_or_counted(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: list[Row]
) -> None:
    rows = json.loads(json.dumps(rows))
    *parents, last = data.draw(st.sampled_from(paths_of(rows)[1:]))
    tree: Any = rows
    for key in parents:
        tree = tree[key]
    tree[last] = data.draw(INVALID_VALUES)
    try:
        traces = read(tmp_path_factory.mktemp("junk"), rows)
    except InputError:
        return
    sizes = [
        sum(len(span.documents or ()) for span in traces.spans if span.stage == stage.name) for stage in traces.stages
    ]
    assert [len(run.table) for run in traces.runs()] == [size for size in sizes if size]


def test_stages_without_recorded_documents_are_unrecorded(tmp_path: Path) -> None:
    without_documents = {"openinference.span.kind": "RERANKER", "reranker.query": "q"}
    rows = [
        sample_spans.span("search", 0, 1, sample_spans.retriever("ab", "q")),
        sample_spans.span("silent", 1, 2, without_documents),
        sample_spans.span("last", 2, 3, sample_spans.reranker("", "b")),
    ]
    traces = read(tmp_path, rows)
    assert stage(traces, "last").parents == ("silent",)
    assert [(recorded.name, recorded.parents) for recorded in traces.stages] == [
        ("search", ()), ("silent", ("search",)), ("last", ("silent",))
    ]  # fmt: skip
    assert traces.state("q", "silent") == "unrecorded"


def test_truncated_lists_are_read_up_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(sample_spans.pipeline())[:-10])
    traces = read_traces(path)
    assert [recorded.name for recorded in traces.stages] == ["bm25", "dense", "rerank input", "rerank"]
    assert traces.notes[0].text == f"1 record skipped, the first at {path}, record 5: not a JSON object"
    path.write_text("")
    with pytest.raises(InputError, match="empty"):
        read_traces(path)


def test_clicks_of_ubi_are_added_to_their_list(tmp_path: Path) -> None:
    """If there are click events, lists without any have no clicks; other events are counted."""
    pages = [
        {"query_id": f"u{number}", "user_query": f"text {number}", "query_response_hit_ids": ["a", "b"]}
        for number in (1, 2)
    ]
    objects = {"event_attributes": {"object": {"object_id": "b"}}}
    events = [{"action_name": name, "query_id": "u1", **objects} for name in ("click", "click", "impression")]
    for name, rows in (("pages", pages), ("both", [*events, *pages])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert all("clicks" not in span.facts for span in read_traces(tmp_path / "pages.jsonl").spans)
    traces = read_traces(tmp_path / "both.jsonl")
    assert [span.facts["clicks"] for span in traces.spans] == [{"b": 2}, {}]
    assert [note.text for note in traces.notes] == ["ignored events that are not clicks: 1"]


def test_files_in_other_formats_raise_with_their_line(tmp_path: Path) -> None:
    write_traces(traces_of_runs({"../a": {"q": ["x"]}}), tmp_path / "traces.jsonl")
    (tmp_path / "qrels").write_text("q 0 x 1\n")
    (tmp_path / "clicks.csv").write_text("query_id,grade\nq,1\n")
    traces, qrels = str(tmp_path / "traces.jsonl"), str(tmp_path / "qrels")
    for option, file, line in (("--corpus", "qrels", ":1:"), ("--clicks", "clicks.csv", ":2:")):
        result = process("traces", "failures", qrels, traces, option, str(tmp_path / file))
        assert (result.code, line in result.err) == (2, True), result.err
    assert process("traces", "runs", traces, "--to", qrels).code == 2
    assert process("traces", "runs", traces, "--to", str(tmp_path / "runs")).code == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".._a.run"]


@pytest.mark.parametrize(
    ("documents", "has_scores"),
    [
        ((("b", 7.5), ("a", 5.0)), True),
        ((("b", 5.0), ("a", 5.0)), True),  # equal scores by falling id, as in all runs
        ((("a", 5.0), ("b", 5.0)), False),
        ((("a", 5.0 + 1e-12), ("b", 5.0)), False),  # equal in single precision
        ((("a", 5.0), ("b", None)), False),
        ((("a", 5.0), ("b", 7.0)), False),
        ((("a", float("inf")), ("b", 7.0)), False),
    ],
)
def test_runs_have_recorded_scores_that_give_the_recorded_order(
    documents: tuple[tuple[str, float | None], ...], has_scores: bool
) -> None:
    """A single query in another order is enough for a stage to have ranks as scores."""
    ranked = tuple(Document(doc, rank, score) for rank, (doc, score) in enumerate(documents, 1))
    consistent = (Document("y", 1, 1.5), Document("x", 2, 0.5))
    spans = (Span("t1", "p", "s", "candidates", (), consistent), Span("t2", "q", "s", "candidates", (), ranked))
    traces = Traces(spans)
    run = traces.run("s")
    assert traces.has_scores("s") == has_scores
    expected = [1.5, 0.5, *(score for _, score in documents)] if has_scores else [-1.0, -2.0, -1.0, -2.0]
    assert run.table["score"].to_pylist() == expected
    for precision in ("double", "single"):
        aligned = align(run, run, precision=precision)
        assert aligned.doc.take([2, 3]).to_pylist() == [doc for doc, _ in documents]


def test_traced_runs_are_written_unchanged(tmp_path: Path) -> None:
    runs = {"one": {"q": {"a": 9.0, "b": 2.0, "c": 1.0}}, "two": {"q": {"c": 9.5, "b": 2.0}}}
    unscored = Span("q", "q", "bare", "rerank", ("two",), (Document("b", 1), Document("a", 2)))
    write_traces(Traces((*traces_of_runs(runs).spans, unscored)), tmp_path / "traces.jsonl")
    result = process("traces", "runs", str(tmp_path / "traces.jsonl"), "--to", str(tmp_path / "runs"))
    descriptions = [line.rpartition(": ")[2] for line in result.out.splitlines()]
    assert descriptions == ["recorded scores", "recorded scores", "negative ranks as scores"]
    fused = [
        fuse([Run.of(source) for source in sources], algorithm="sum").table.to_pylist()
        for sources in ([runs["one"], runs["two"]], [tmp_path / "runs" / "one.run", tmp_path / "runs" / "two.run"])
    ]
    assert fused[0] == fused[1]
