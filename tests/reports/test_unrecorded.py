"""An unrecorded stage is unknown: left out of means, counted, bounded, and of the kind debugging, everywhere alike.

The pipeline of these tests: bm25 passes x, a, b on for each of the queries 1 to 4, of which a and b are relevant;
rerank passes a, b on for query 1 and a, x for query 2; of queries 3 and 4 its documents are not recorded. By R@2:

==========  ======  ======  ===================  ==================================
query       1       2       3 and 4              all, at worst and at best
==========  ======  ======  ===================  ==================================
best        1       1       1                    1
score       1       1/2     from 0 to 1          (1 + 1/2 + 0 + 0) / 4, (1 + 1/2 + 1 + 1) / 4
bm25        0       0       0                    0
rerank      0       1/2     from 0 to 1          1/8, 5/8
order       0       0       from 0 to 1          0, 1/2
==========  ======  ======  ===================  ==================================
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import spans_made as made
from command_line import process
from judged.errors import InputError
from judged.pipelines.rag import waterfall
from judged.pipelines.traces import (
    Document,
    Span,
    Traces,
    check_traces,
    diff,
    explain_document,
    failures,
    funnel,
    gaps,
    read_traces,
    traces_of_runs,
    write_traces,
)
from judged.reports import report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

QUERIES = ("1", "2", "3", "4")
QRELS = {query: {"a": 1, "b": 1} for query in QUERIES}
FULL = {"1": "ab", "2": "ax", "3": "ab", "4": "xa"}


def span(query: str, stage: str, kind: Any, ids: str | None, parents: Sequence[str] = ()) -> Span:
    documents = None if ids is None else tuple(Document(doc, rank) for rank, doc in enumerate(ids, 1))
    return Span(query, query, stage, kind, tuple(parents), documents)


def traced(recorded: str = "12", *, absent: bool = False, name: str = "traces") -> Traces:
    """Trace the pipeline; the reranker's documents, or its span, are recorded for some queries only."""
    spans: list[Span] = []
    for query in QUERIES:
        spans.append(span(query, "bm25", "candidates", "xab"))
        if query in recorded or not absent:
            spans.append(span(query, "rerank", "rerank", FULL[query] if query in recorded else None, ["bm25"]))
    return Traces(tuple(spans), name)


HALF = [traced(), traced(absent=True)]


def nan(*values: float | None) -> Any:
    return pytest.approx([np.nan if value is None else value for value in values], nan_ok=True)


@pytest.mark.parametrize("traces", HALF)
def test_the_funnel_leaves_them_out_counts_them_and_bounds_them(traces: Traces) -> None:
    result = funnel(QRELS, traces, "R@2")
    assert result.score.tolist() == nan(1, 0.5, None, None)
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "bm25": nan(0, 0, 0, 0), "rerank": nan(0, 0.5, None, None), "order": nan(0, 0, None, None)
    }  # fmt: skip
    assert result.complete.tolist() == [True, True, False, False]
    assert result.bounds("score") == (0.375, 0.875)
    assert [result.bounds(name) for name in result.parts] == [(0, 0), (0.125, 0.625), (0, 0.5)]
    assert result.lost == (
        ("2", "b", "rerank", 1.0), *(("34"[i // 2], "ab"[i % 2], "unrecorded", 1.0) for i in range(4))
    )  # fmt: skip
    rows = {row["stage"]: row for row in result.table("stages").records()}
    columns = ("unrecorded", "n_relevant", "recall", "lost", "score")
    assert [rows["rerank"][name] for name in columns] == [2, 3, 0.75, 1, 0.75]
    assert [rows["bm25"][name] for name in columns] == [0, 8, 1.0, 0, 0.5]
    (part,) = (row for row in result.table("parts").records() if row["part"] == "at rerank")
    assert (part["value"], part["n"], part["low"], part["high"]) == (0.25, 2, 0.125, 0.625)
    (note,) = (note for note in result.notes if note.rule == "unrecorded-stages")
    assert (note.subject, note.weight) == ("rerank", 2)
    assert not [note for note in result.notes if "score 0" in note.text]  # they did not return nothing


@pytest.mark.parametrize("traces", HALF)
def test_kinds_of_failure_agree_with_the_funnel(traces: Traces) -> None:
    result = failures(QRELS, traces, "R@2", corpus="abx")
    assert {(topic, doc): (kind, step) for topic, doc, kind, step, _ in result.documents} == {
        ("2", "b"): ("scoring", "rerank"),
        **{(query, doc): ("debugging", "unrecorded") for query in "34" for doc in "ab"},
    }
    assert {kind: loss.tolist() for kind, loss in result.recoverable.items()} == {
        "missing content": nan(0, 0, 0, 0),
        "candidate": nan(0, 0, None, None),
        "scoring": nan(0, 0.5, None, None),
        "debugging": nan(0, 0, None, None),
    }
    bounds = {kind: result.bounds(kind) for kind in result.recoverable}
    assert bounds == {
        "missing content": (0, 0), "candidate": (0, 0), "scoring": (0.125, 0.625), "debugging": (0, 0.5)
    }  # fmt: skip
    assert result.first == "scoring"  # at worst it loses 1/8, and no other known kind loses anything
    rows = {row["failure"]: row for row in result.table("kinds").records()}
    assert (rows["debugging"]["documents"], rows["debugging"]["recoverable"]) == (4, None)


@pytest.mark.parametrize("traces", HALF)
def test_why_and_the_difference_agree_with_the_funnel(traces: Traces) -> None:
    outcomes = {query: explain_document(traces, query, qrels=QRELS).outcomes for query in QUERIES}
    assert outcomes["1"] == {"a": "shown", "b": "shown"}
    assert outcomes["2"] == {"a": "shown", "x": "shown", "b": "removed by rerank"}
    assert outcomes["3"] == outcomes["4"] == dict.fromkeys("ab", "unknown: rerank is not recorded")
    way = {station.stage.name: station for station in explain_document(traces, "3", "a").paths["a"]}
    assert (way["rerank"].state, way["rerank"].is_input, way["rerank"].document) == ("unrecorded", True, None)

    result = diff(QRELS, traced("1234", name="full"), traces, "R@2", resamples=200)
    # with everything recorded the scores are 1, 1/2, 1, 1/2
    assert {name: gains.tolist() for name, gains in result.gains.items()} == {
        "score": nan(0, 0, None, None), "bm25": nan(0, 0, 0, 0),
        "rerank": nan(0, 0, None, None), "order": nan(0, 0, None, None),
    }  # fmt: skip
    assert result.bounds("score") == (-1.5 / 4, 0.5 / 4)
    assert result.bounds("rerank") == (-1.5 / 4, 0.5 / 4)
    assert [change.result.n for change in result.changes] == [2, 2, 2, 2]
    assert all(np.isnan(change.result.p) for change in result.changes)
    moved = {(row["query_id"], row["doc_id"]): row["lost"] for row in result.table("documents").records()}
    assert moved == {(query, doc): "not recorded" for query in "34" for doc in "ab"}


def test_a_last_stage_that_is_never_recorded_is_not_replaced_by_the_one_before_it() -> None:
    traces = traced("")
    assert traces.final.name == "rerank"
    result = funnel(QRELS, traces, "R@2")
    assert np.isnan(result.score).all()
    assert result.bounds("score") == (0, 1)
    assert [result.bounds(name) for name in result.parts] == [(0, 0), (0, 1), (0, 1)]
    sorted_out = failures(QRELS, traces, "R@2", corpus="abx")
    assert {kind for _, _, kind, _, _ in sorted_out.documents} == {"debugging"}
    assert (sorted_out.first, sorted_out.bounds("debugging")) == (None, (0, 1))
    assert len(result.table("topics").records()) == 4
    with pytest.raises(InputError, match="not recorded"):
        traces.run("rerank")
    assert [run.name for run in traces.runs()] == ["bm25"]
    assert funnel(QRELS, traces, "R@2", final="bm25").score.tolist() == [0.5] * 4


def test_stages_behind_an_unrecorded_one_are_known_together() -> None:
    """Never recorded between bm25 and what is shown: both lose b together, on each of the queries."""
    spans = [
        row
        for query in QUERIES
        for row in (span(query, "bm25", "candidates", "xab"), span(query, "rerank", "rerank", None, ["bm25"]),
                    span(query, "shown", "shown", "a", ["rerank"]))
    ]  # fmt: skip
    result = funnel(QRELS, Traces(tuple(spans)), "R@2")
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "bm25": [0.0] * 4, "rerank + shown": [0.5] * 4, "order": [0.0] * 4
    }  # fmt: skip
    sorted_out = failures(QRELS, Traces(tuple(spans)), "R@2")
    assert sorted_out.recoverable["debugging"].tolist() == [0.5] * 4
    assert (sorted_out.first, sorted_out.bounds("scoring")) == ("scoring", (0.5, 0.5))  # whichever of both lost it
    other = diff(QRELS, traces_of_runs({"bm25": {query: ["x", "a", "b"] for query in QUERIES},
                                        "shown": {query: ["a"] for query in QUERIES}}), Traces(tuple(spans)), "R@2",
                 resamples=200)  # fmt: skip
    assert other.gains["score"].tolist() == [0.0] * 4
    assert np.isnan(other.gains["shown"]).all()  # it lost nothing more, or the reranker did


def test_a_recorded_branch_of_an_unrecorded_set_bounds_it() -> None:
    """Of two sources one is recorded, which holds a: the best order of what both hold scores from 1/2 to 1."""
    spans = [span("1", "sparse", "candidates", "xa"), span("1", "dense", "candidates", None),
             span("1", "fuse", "fuse", "ax", ["sparse", "dense"]), span("2", "sparse", "candidates", "a"),
             span("2", "dense", "candidates", "b"), span("2", "fuse", "fuse", "ab", ["sparse", "dense"])]  # fmt: skip
    qrels = {query: {"a": 1, "b": 1} for query in "12"}
    result = funnel(qrels, Traces(tuple(spans)), "R@2")
    assert result.limits["sparse + dense"].tolist() == [[0.0, 0.0], [0.5, 0.0]]
    assert result.limits["fuse"].tolist() == [[0.0, 0.0], [0.5, 0.0]]
    assert result.score.tolist() == [0.5, 1.0]
    assert [row[2] for row in result.lost] == ["unrecorded"]  # b
    (loss,) = (loss for loss in result.losses if loss.stage.name == "fuse")
    assert np.isnan([loss.input_attainable[0], loss.n_kept[0], loss.n_input_relevant[0]]).all()
    sorted_out = failures(qrels, Traces(tuple(spans)), "R@2")
    assert sorted_out.recoverable["debugging"].tolist() == [0.5, 0.0]
    assert [sorted_out.bounds(kind) for kind in ("candidate", "scoring")] == [(0.0, 0.25), (0.0, 0.25)]
    assert sorted_out.first == "debugging"  # its 1/4 is at least what any other kind can lose


@pytest.mark.parametrize(
    ("parents", "recorded_stages", "state"),
    [((), "rerank shown", "empty"), (("rerank",), "shown", "unrecorded"), (("rerank",), "", "unrecorded")],
)
def test_a_stage_without_a_span_was_skipped_or_is_unknown(
    parents: tuple[str, ...], recorded_stages: str, state: str
) -> None:
    """It was skipped if the trace goes on without naming it; it is unknown if it is named, or nothing follows."""
    spans = [span("1", "bm25", "candidates", "a"), span("1", "rerank", "rerank", "a", ["bm25"]),
             span("1", "shown", "shown", "a", ["rerank"]), span("2", "bm25", "candidates", "a")]  # fmt: skip
    if "shown" in recorded_stages:
        spans.append(span("2", "shown", "shown", "a", parents or ("bm25",)))
    assert Traces(tuple(spans)).state("2", "rerank") == state


def test_what_follows_a_stage_that_returned_nothing_returned_nothing() -> None:
    spans = [span("1", "bm25", "candidates", "a"), span("1", "rerank", "rerank", "a", ["bm25"]),
             span("2", "bm25", "candidates", "")]  # fmt: skip
    traces = Traces(tuple(spans))
    assert [traces.state("2", stage) for stage in ("bm25", "rerank")] == ["empty", "empty"]
    assert traces.state("3", "bm25") == "unrecorded"  # never traced
    assert funnel({"1": {"a": 1}, "2": {"a": 1}}, traces, "R@1").score.tolist() == [1.0, 0.0]


def test_a_parent_without_any_span_is_an_unrecorded_stage() -> None:
    traces = Traces((span("1", "bm25", "candidates", "a"), span("1", "shown", "shown", "a", ["rerank"])))
    assert [stage.name for stage in traces.stages] == ["bm25", "rerank", "shown"]
    assert traces.state("1", "rerank") == "unrecorded"


def test_runs_record_everything_so_a_query_that_one_lacks_has_an_empty_list() -> None:
    traces = traces_of_runs({"bm25": {"1": ["a"], "2": ["a"]}, "rerank": {"1": ["a"]}})
    result = funnel({"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}}, traces, "R@1")
    assert result.score.tolist() == [1.0, 0.0, 0.0]
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "bm25": [0.0, 0.0, 1.0], "rerank": [0.0, 1.0, 0.0], "order": [0.0, 0.0, 0.0]
    }  # fmt: skip


def openinference(query: str, output: str | None) -> list[dict[str, Any]]:
    attributes = made.reranker("xab", output or "")
    if output is None:
        attributes = {key: value for key, value in attributes.items() if "output" not in key}
        attributes["reranker.output_documents"] = "__REDACTED__"
    return [made.span("search", 0, 1, made.retriever("xab", query), trace=query),
            made.span("rerank", 1, 2, attributes, trace=query)]  # fmt: skip


def opentelemetry(query: str, output: str | None) -> list[dict[str, Any]]:
    documents = [{"score": 0.5}] if output is None else [{"id": doc} for doc in output]
    search = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": query,
              "gen_ai.retrieval.documents": json.dumps([{"id": doc} for doc in "xab"])}  # fmt: skip
    rerank = {"gen_ai.operation.name": "rerank", "gen_ai.rerank.output_documents": json.dumps(documents)}
    return [made.span("search", 0, 1, search, trace=query), made.span("rerank", 1, 2, rerank, trace=query)]


@pytest.mark.parametrize("spans", [openinference, opentelemetry])
@pytest.mark.parametrize("recorded", ["12", ""])
def test_outputs_that_were_redacted_or_cannot_be_read_are_unknown(tmp_path: Path, spans: Any, recorded: str) -> None:
    rows = [row for query in QUERIES for row in spans(query, FULL[query] if query in recorded else None)]
    (tmp_path / "spans.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    traces = read_traces(tmp_path / "spans.jsonl")
    result = funnel(QRELS, traces, "R@2")
    expected_scores = (1, 0.5) if recorded else (None, None)
    assert result.score.tolist() == nan(*expected_scores, None, None)
    assert result.bounds("score") == ((0.375, 0.875) if recorded else (0, 1))
    kinds = {topic: kind for topic, _, kind, _, _ in failures(QRELS, traces, "R@2").documents}
    assert [kinds.get(query) for query in "34"] == ["debugging", "debugging"]
    (row,) = (row for row in check_traces(traces).table("stages").records() if row["stage"] == "rerank")
    assert row["unrecorded"] == (2 if recorded else 4)


def test_written_and_read_again_what_is_unknown_stays_unknown(tmp_path: Path) -> None:
    for layout in ("judged", "openinference"):
        write_traces(traced(), tmp_path / layout, format=layout)
        again = read_traces(tmp_path / layout)
        assert [again.state(query, "rerank") for query in QUERIES] == ["documents"] * 2 + ["unrecorded"] * 2


def test_gaps_know_neither_a_score_nor_an_empty_list_of_what_is_not_recorded() -> None:
    attributes = {query: {"about": "zip"} for query in QUERIES}
    for traces in HALF:
        (row,) = gaps(QRELS, traces, "R@2", by="about", attributes=attributes).rows
        assert (row.n, row.judged, row.unrecorded, row.empty) == (4, 2, 2, 0)
        assert (row.score, row.lowest, row.highest) == (0.75, 0.375, 0.875)
        assert (row.listed, row.relevant) == (3, 4)


def test_the_waterfall_of_answers_takes_what_is_not_recorded_as_unjudged() -> None:
    answers = {"answers": [{"query_id": query} for query in QUERIES],
               "context": [{"query_id": query, "doc_id": "a"} for query in QUERIES]}  # fmt: skip
    steps = {step.step: step for step in waterfall(answers, QRELS, traces=traced()).steps if step.unit == "document"}
    assert (steps["retrieved"].n_reached, steps["retrieved"].n) == (8, 8)
    assert (steps["ranked"].n, steps["ranked"].unjudged) == (3, 4)


def test_answers_of_traces_have_no_context_that_is_not_recorded() -> None:
    from judged.pipelines.rag.readers import responses_of_traces

    spans = tuple(
        replace(row, facts={"answer": "yes"}) if row.stage == "rerank" else row for row in traced().spans
    )  # fmt: skip
    made_of = responses_of_traces(Traces(spans))
    assert set(made_of["context"]["query_id"].to_pylist()) == {"1", "2"}


def test_the_report_shows_the_same_numbers() -> None:
    runs = {"rerank": {query: list(FULL[query]) for query in QUERIES}}
    parts = report(QRELS, runs, "R@2", traces=traced()).results
    assert parts["funnel"].bounds("score") == (0.375, 0.875)
    assert parts["failures"].bounds("scoring") == (0.125, 0.625)


def test_runs_written_by_stage_count_the_queries_that_are_not_recorded(tmp_path: Path) -> None:
    write_traces(traced(), tmp_path / "traces.jsonl")
    done = process("traces", "runs", str(tmp_path / "traces.jsonl"), "--to", str(tmp_path / "runs"))
    first, second = done.out.splitlines()
    assert done.code == 0
    assert ("are missing" in first, "2 of 4 queries are missing" in second) == (False, True)
