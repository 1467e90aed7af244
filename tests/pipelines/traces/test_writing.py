"""What is written is read again; what is recorded is whole, whoever records beside it; chunks become documents."""

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


@st.composite
def spans(draw: st.DrawFn) -> tuple[Span, ...]:
    """Make traces of different queries, with whatever a stage may have."""
    made: list[Span] = []
    for query in draw(st.lists(TEXT.filter(str.strip), min_size=1, max_size=3, unique=True)):
        for at in range(draw(st.integers(1, 4))):
            rows = draw(st.none() | st.lists(TEXT, unique=True, max_size=12))
            listed = None if rows is None else tuple(
                Document(
                    doc,
                    place + draw(st.integers(0, 2)),
                    draw(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
                    draw(st.just("") | TEXT),
                    draw(st.just({}) | st.just({"bm25": 1.5})),
                )
                for place, doc in enumerate(rows, 1)
            )  # fmt: skip
            kind = draw(st.sampled_from(KINDS))
            parents = tuple(f"s{one}" for one in range(at)) if draw(st.booleans()) else ()
            latency = draw(st.none() | st.floats(0, 1e4))
            known = (draw(st.none() | TEXT), latency, draw(st.none() | TEXT), draw(FACTS))
            made.append(Span(f"t-{query}", query, f"s{at}", kind, parents, listed, *known))
    return tuple(made)


@settings(max_examples=80, deadline=None)
@given(spans(), st.sampled_from(["judged", "openinference"]))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, stages: tuple[Span, ...], layout: Any
) -> None:
    path = tmp_path_factory.mktemp("written") / "traces.jsonl"
    write_traces(Traces(stages), path, format=layout)
    assert read_traces(path).spans == stages


def test_spans_by_openinference_say_what_others_read(tmp_path: Path) -> None:
    """Without our attribute the spans tell the same stages, but for what the conventions have no word for."""
    path = tmp_path / "spans.jsonl"
    listed = (Document("a", 1, 2.0), Document("b", 2, 1.0))
    stages = (
        Span("t", "q7", "bm25", "candidates", (), listed, "jazz", 12.5),
        Span("t", "q7", "cross", "rerank", ("bm25",), listed[::-1], "jazz", 30.0, "mini", {"top_k": 2}),
    )
    write_traces(Traces(stages), path, format="openinference")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["attributes"].pop("judged.stage", None)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    again = read_traces(path)
    assert [(one.stage, one.kind, one.parents, one.query, one.latency_ms) for one in again.spans] == [
        ("bm25", "candidates", (), "jazz", 12.5), ("cross", "rerank", ("bm25",), "jazz", 30.0)
    ]  # fmt: skip
    assert [[(one.doc_id, one.score) for one in span.documents or ()] for span in again.spans] == [
        [("a", 2.0), ("b", 1.0)], [("b", 1.0), ("a", 2.0)]
    ]  # fmt: skip
    assert {len(row["context"]["trace_id"]) for row in rows} == {32}
    with pytest.raises(InputError, match="not written as"):
        write_traces(again, path, format="ubi")  # type: ignore[arg-type]


def test_a_recorder_takes_documents_as_they_are(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "traces.jsonl")
    with recorder.query("q", "jazz", trace_id="t") as trace:
        trace.stage("rewrite", "rewrite", query="jazz music")
        trace.stage("ids", "candidates", ["a", "b"])
        trace.stage("pairs", "candidates", [("a", np.float32(0.5)), ("c", 1)], latency_ms=3)
        trace.stage("scores", "score", {"a": 2.0, "c": 1.0}, parents=["pairs"], session_id="s")
        trace.stage("rows", "fuse", [{"id": "a", "score": 1, "features": {"bm25": np.int64(3)}}])
        trace.stage("documents", "rerank", [Document("a", 1, 0.5, "index")], model="mini")
        trace.stage("shown", "shown")
    got = read_traces(recorder.path)
    assert [(one.stage, one.parents) for one in got.spans] == [
        ("rewrite", ()), ("ids", ()), ("pairs", ()), ("scores", ("pairs",)), ("rows", ("ids", "scores")),
        ("documents", ("rows",)), ("shown", ("documents",)),
    ]  # fmt: skip
    by_name = {one.stage: one for one in got.spans}
    assert by_name["pairs"].documents == (Document("a", 1, 0.5), Document("c", 2, 1.0))
    assert by_name["scores"].facts == {"session_id": "s"}
    assert by_name["rows"].documents == (Document("a", 1, 1.0, "", {"bm25": 3}),)
    assert by_name["documents"].documents == (Document("a", 1, 0.5, "index"),)
    assert by_name["shown"].documents is None
    assert recorder.faults == 0
    assert set(get_args(Kind)) == set(KINDS)


def _record(path: Path, who: int) -> None:
    recorder = Recorder(path)
    for at in range(20):
        with recorder.query(f"q{who}-{at}") as trace:
            trace.stage("s", "candidates", [f"{who}-{at}-{'x' * 50}-{one}" for one in range(300)])
    assert recorder.faults == 0


def test_threads_and_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    workers: list[Any] = [threading.Thread(target=_record, args=(path, who)) for who in range(3)]
    workers += [get_context("spawn").Process(target=_record, args=(path, who)) for who in range(3, 5)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    got = read_traces(path)
    assert got.notes == ()
    assert len(got.query_ids) == 5 * 20
    assert all(len(span.documents or ()) == 300 for span in got.spans)


def test_a_recorder_raises_nothing_and_says_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(tmp_path / "no folder" / "traces.jsonl")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with recorder.query("q") as trace:
                trace.stage("s", "candidates", 7)
                trace.stage("s", "candidates", ["a"])
    assert recorder.faults == 6
    assert len(caplog.records) == 1


def test_the_fault_of_a_pipeline_stays_its_own(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "traces.jsonl")

    def fail() -> None:
        with recorder.query("q") as trace:
            trace.stage("s", "candidates", ["a"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [one.stage for one in read_traces(recorder.path).spans] == ["s"]


def test_chunks_become_documents() -> None:
    """Of a#1 b#1 a#2 c: a, b, c at ranks 1, 2, 3; a#2 stood behind a#1; c is not in the mapping."""
    made = traces_of_runs({"bm25": {"q": ["a#1", "b#1", "a#2", "c"]}, "rerank": {"q": ["a#2", "b#1"]}})
    unified = made.unified({"a#1": "a", "a#2": "a", "b#1": "b"})
    got = {span.stage: [(one.doc_id, one.rank) for one in span.documents or ()] for span in unified.spans}
    assert got == {"bm25": [("a", 1), ("b", 2), ("c", 3)], "rerank": [("a", 1), ("b", 2)]}
    assert [(note.rule, note.subject, note.weight) for note in unified.notes] == [
        ("unified-documents", "", 0), ("unmapped-documents", "bm25", 1)
    ]  # fmt: skip
    assert unified.notes[0].text == "5 documents renamed by the mapping; 1 dropped behind another chunk of the same"


@pytest.mark.parametrize("text", ["a#1\ta\na#2\ta\n", "a#1,a\na#2,a", "a#1  a\n\na#2 a\n", '{"a#1": "a",\n"a#2": "a"}'])
def test_files_of_chunks(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chunks"
    path.write_text(text)
    [span] = traces_of_runs({"bm25": {"q": ["a#2", "a#1"]}}).unified(path).spans
    assert [one.doc_id for one in span.documents or ()] == ["a"]


@pytest.mark.parametrize("text", ["a#1\ta\na#2\n", "a#1,a\na#1,b\n"])
def test_files_of_chunks_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chunks"
    path.write_text(text)
    with pytest.raises(InputError, match="chunks:2"):
        traces_of_runs({"bm25": {"q": ["a"]}}).unified(path)


def test_the_command_unites_chunks(tmp_path: Path) -> None:
    (tmp_path / "chunks").write_text("a#1 a\n")
    write_traces(traces_of_runs({"bm25": {"q": ["a#1"]}}), tmp_path / "traces.jsonl")
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    paths = [str(tmp_path / name) for name in ("qrels", "traces.jsonl", "chunks")]
    result = process("traces", "funnel", *paths[:2], "-m", "R@5", "--documents-of", paths[2], "--format", "json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["topics"][0]["score"] == 1
