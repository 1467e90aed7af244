"""Writing and recording of traces, also by several threads and processes, and documents of chunks."""

from __future__ import annotations

import json
import logging
import threading
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import process
from judged.errors import InputError
from judged.pipelines.traces import Document, Recorder, Span, Traces, read_traces, traces_of_runs, write_traces
from judged.pipelines.traces.traces import KINDS, Kind

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=5)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "session_id": TEXT,
        "top_k": st.integers(1, 9),
        "feedback": st.just([{"name": "helpful", "score": 1.0}]),
        "index": TEXT,
    },
)


SETTINGS = st.dictionaries(TEXT, st.integers() | TEXT | st.lists(TEXT, max_size=2), max_size=2)


@st.composite
def spans(draw: st.DrawFn) -> tuple[Span, ...]:
    """Generate traces of several queries, with all optional fields of a stage."""
    all_spans: list[Span] = []
    for query in draw(st.lists(TEXT.filter(str.strip), min_size=1, max_size=3, unique=True)):
        for i in range(draw(st.integers(1, 4))):
            rows = draw(st.none() | st.lists(TEXT, unique=True, max_size=12))
            documents = None if rows is None else tuple(
                Document(
                    doc,
                    rank + draw(st.integers(0, 2)),
                    draw(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
                    draw(st.just("") | TEXT),
                    draw(st.just({}) | st.just({"bm25": 1.5})),
                )
                for rank, doc in enumerate(rows, 1)
            )  # fmt: skip
            kind = draw(st.sampled_from(KINDS))
            parents = tuple(f"s{j}" for j in range(i)) if draw(st.booleans()) else ()
            latency = draw(st.none() | st.floats(0, 1e4))
            details = (draw(st.none() | TEXT), latency, draw(st.none() | TEXT), draw(FACTS), draw(SETTINGS))
            all_spans.append(Span(f"t-{query}", query, f"s{i}", kind, parents, documents, *details))
    return tuple(all_spans)


@settings(max_examples=80, deadline=None)
@given(spans(), st.sampled_from(["judged", "openinference"]))
def test_written_traces_are_read_unchanged(
    tmp_path_factory: pytest.TempPathFactory, stages: tuple[Span, ...], layout: Any
) -> None:
    path = tmp_path_factory.mktemp("written") / "traces.jsonl"
    write_traces(Traces(stages), path, format=layout)
    assert read_traces(path).spans == stages


def test_openinference_spans_can_be_read_without_our_attribute(tmp_path: Path) -> None:
    """Without our attribute, the spans have the same stages, except for fields that OpenInference does not define."""
    path = tmp_path / "spans.jsonl"
    documents = (Document("a", 1, 2.0), Document("b", 2, 1.0))
    stages = (
        Span("t", "q7", "bm25", "candidates", (), documents, "jazz", 12.5),
        Span("t", "q7", "cross", "rerank", ("bm25",), documents[::-1], "jazz", 30.0, "mini", {"top_k": 2}),
    )
    write_traces(Traces(stages), path, format="openinference")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["attributes"].pop("judged.stage", None)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    loaded = read_traces(path)
    assert [(span.stage, span.kind, span.parents, span.query, span.latency_ms) for span in loaded.spans] == [
        ("bm25", "candidates", (), "jazz", 12.5), ("cross", "rerank", ("bm25",), "jazz", 30.0)
    ]  # fmt: skip
    assert [[(document.doc_id, document.score) for document in span.documents or ()] for span in loaded.spans] == [
        [("a", 2.0), ("b", 1.0)], [("b", 1.0), ("a", 2.0)]
    ]  # fmt: skip
    assert {len(row["context"]["trace_id"]) for row in rows} == {32}
    with pytest.raises(InputError, match="unknown format 'ubi'"):
        write_traces(loaded, path, format="ubi")  # type: ignore[arg-type]


def test_a_recorder_accepts_documents_in_several_forms(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "traces.jsonl")
    with recorder.query("q", "jazz", trace_id="t") as trace:
        trace.stage("rewrite", "rewrite", query="jazz music")
        trace.stage("ids", "candidates", ["a", "b"], settings={"depth": np.int64(2)})
        trace.stage("pairs", "candidates", [("a", np.float32(0.5)), ("c", 1)], latency_ms=3)
        trace.stage("scores", "score", {"a": 2.0, "c": 1.0}, parents=["pairs"], session_id="s")
        trace.stage("rows", "fuse", [{"id": "a", "score": 1, "features": {"bm25": np.int64(3)}}])
        trace.stage("documents", "rerank", [Document("a", 1, 0.5, "index")], model="mini")
        trace.stage("shown", "shown")
    traces = read_traces(recorder.path)
    assert [(span.stage, span.parents) for span in traces.spans] == [
        ("rewrite", ()), ("ids", ()), ("pairs", ()), ("scores", ("pairs",)), ("rows", ("ids", "scores")),
        ("documents", ("rows",)), ("shown", ("documents",)),
    ]  # fmt: skip
    by_name = {span.stage: span for span in traces.spans}
    assert by_name["pairs"].documents == (Document("a", 1, 0.5), Document("c", 2, 1.0))
    assert by_name["scores"].facts == {"session_id": "s"}
    assert (by_name["ids"].settings, by_name["ids"].facts) == ({"depth": 2}, {})
    assert by_name["rows"].documents == (Document("a", 1, 1.0, "", {"bm25": 3}),)
    assert by_name["documents"].documents == (Document("a", 1, 0.5, "index"),)
    assert by_name["shown"].documents is None
    assert recorder.faults == 0
    assert set(get_args(Kind)) == set(KINDS)


def _record(path: Path, worker: int) -> None:
    recorder = Recorder(path)
    for i in range(20):
        with recorder.query(f"q{worker}-{i}") as trace:
            trace.stage("s", "candidates", [f"{worker}-{i}-{'x' * 50}-{j}" for j in range(300)])
    assert recorder.faults == 0


def test_threads_and_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    workers: list[Any] = [threading.Thread(target=_record, args=(path, worker)) for worker in range(3)]
    workers += [get_context("spawn").Process(target=_record, args=(path, worker)) for worker in range(3, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    traces = read_traces(path)
    assert traces.notes == ()
    assert len(traces.query_ids) == 5 * 20
    assert all(len(span.documents or ()) == 300 for span in traces.spans)


def test_a_recorder_counts_errors_and_logs_the_first_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(tmp_path / "no folder" / "traces.jsonl")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with recorder.query("q") as trace:
                trace.stage("s", "candidates", 7)
                trace.stage("s", "candidates", ["a"])
    assert recorder.faults == 6
    assert len(caplog.records) == 1


def test_errors_of_a_pipeline_are_raised(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "traces.jsonl")

    def fail() -> None:
        with recorder.query("q") as trace:
            trace.stage("s", "candidates", ["a"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [span.stage for span in read_traces(recorder.path).spans] == ["s"]


def test_chunks_become_documents() -> None:
    """Chunks a#1, b#1, a#2, c become a, b, c at ranks 1, 2, 3; a#2 repeats a; c is not in the mapping."""
    traces = traces_of_runs({"bm25": {"q": ["a#1", "b#1", "a#2", "c"]}, "rerank": {"q": ["a#2", "b#1"]}})
    unified = traces.unified({"a#1": "a", "a#2": "a", "b#1": "b"})
    documents = {
        span.stage: [(document.doc_id, document.rank) for document in span.documents or ()] for span in unified.spans
    }
    assert documents == {"bm25": [("a", 1), ("b", 2), ("c", 3)], "rerank": [("a", 1), ("b", 2)]}
    assert [(note.rule, note.subject, note.weight) for note in unified.notes] == [
        ("unified-documents", "", 0), ("unmapped-documents", "bm25", 1)
    ]  # fmt: skip
    assert unified.notes[0].text == "5 document ids replaced by the mapping; 1 removed as a later chunk of a document"


@pytest.mark.parametrize("text", ["a#1\ta\na#2\ta\n", "a#1,a\na#2,a", "a#1  a\n\na#2 a\n", '{"a#1": "a",\n"a#2": "a"}'])
def test_files_of_chunks(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chunks"
    path.write_text(text)
    [span] = traces_of_runs({"bm25": {"q": ["a#2", "a#1"]}}).unified(path).spans
    assert [document.doc_id for document in span.documents or ()] == ["a"]


@pytest.mark.parametrize("text", ["a#1\ta\na#2\n", "a#1,a\na#1,b\n"])
def test_invalid_files_of_chunks_raise(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chunks"
    path.write_text(text)
    with pytest.raises(InputError, match="chunks:2"):
        traces_of_runs({"bm25": {"q": ["a"]}}).unified(path)


def test_the_command_maps_chunks_to_documents(tmp_path: Path) -> None:
    (tmp_path / "chunks").write_text("a#1 a\n")
    write_traces(traces_of_runs({"bm25": {"q": ["a#1"]}}), tmp_path / "traces.jsonl")
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    paths = [str(tmp_path / name) for name in ("qrels", "traces.jsonl", "chunks")]
    result = process("traces", "funnel", *paths[:2], "-m", "R@5", "--documents-of", paths[2], "--format", "json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["topics"][0]["score"] == 1
