"""Funnel, differences, document paths, and failures: hand calculations, and sums of parts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from command_line import process
from judged.comparison.slicing.topic_slices import slice_topics
from judged.errors import InputError, MeasureError
from judged.pipelines.traces import (
    Document,
    Span,
    TraceFunnel,
    Traces,
    diff,
    explain_document,
    failures,
    funnel,
    read_traces,
    traces_of_runs,
    write_traces,
)

QRELS = {"q": {"a": 3, "b": 2, "c": 1, "d": 1, "x": 0}}


def span(stage: str, kind: str, ids: str, parents: tuple[str, ...] = (), query: str = "q") -> Span:
    documents = tuple(Document(doc, rank, 10.0 - rank) for rank, doc in enumerate(ids, 1))
    return Span("t", query, stage, kind, parents, documents)  # type: ignore[arg-type]


def branched() -> Traces:
    """Return two sources, their fusion, a reranker, and a final list; no source has *d*, the reranker removes *c*."""
    return Traces((
        span("sparse", "candidates", "xac"),
        span("dense", "candidates", "yb"),
        span("fuse", "fuse", "xaybc", ("sparse", "dense")),
        span("rerank", "rerank", "xba", ("fuse",)),
        span("shown", "shown", "xb", ("rerank",)),
    ))  # fmt: skip


def test_a_branched_pipeline_by_hand() -> None:
    """R@5 with four relevant documents: sources have a, b, and c; the reranker loses c, the final list a."""
    result = funnel(QRELS, branched(), "R@5")
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "sparse + dense": [0.25], "fuse": [0.0], "rerank": [0.25], "shown": [0.25], "order": [0.0]
    }  # fmt: skip
    assert result.lost == (
        ("q", "a", "shown", 3.0), ("q", "c", "rerank", 1.0), ("q", "d", "sparse + dense", 1.0)
    )  # fmt: skip
    counts = {loss.stage.name: (loss.n_relevant[0], loss.n_kept[0], loss.n_input_relevant[0]) for loss in result.losses}
    assert counts == {
        "sparse": (2, 2, 4),
        "dense": (1, 1, 4),
        "fuse": (3, 3, 3),
        "rerank": (2, 2, 3),
        "shown": (1, 1, 2),
    }


def test_documents_outside_the_corpus_are_a_separate_part() -> None:
    result = funnel(QRELS, branched(), "R@5", corpus="abcxy")
    assert result.parts["corpus"].tolist() == [0.25]
    assert result.parts["sparse + dense"].tolist() == [0.0]
    assert ("q", "d", "corpus", 1.0) in result.lost


def test_parts_that_cannot_be_negative_have_no_interval_below_0() -> None:
    qrels = {f"q{i}": {"a": 1, "c": 1} for i in range(30)}
    traces = traces_of_runs({"bm25": {query: ["a"] if query == "q0" else ["a", "c"] for query in qrels}})
    judgments = {query: {"b": 1} if query == "q1" else docs for query, docs in qrels.items()}
    result = funnel(judgments, traces, "R@5", corpus="ac")
    intervals = dict(zip(result.table("parts").column("part").values, result.table("parts").column("value").ci or (),
                         strict=True))  # fmt: skip
    assert result.parts["corpus"].mean() == pytest.approx(1 / 30)
    assert intervals["not in the corpus"][0] == 0
    assert intervals["in the final order"] is None  # the loss is 0 on all topics: it has no variance


def test_stages_can_have_the_names_of_parts() -> None:
    traces = Traces((span("corpus", "candidates", "xab"), span("order", "rerank", "xa", ("corpus",))))
    result = funnel(QRELS, traces, "R@5", corpus="abcxy")
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "corpus": [0.25], "corpus (stage)": [0.25], "order (stage)": [0.25], "order": [0.0]
    }  # fmt: skip


def test_a_step_that_adds_documents_has_a_negative_part() -> None:
    traces = Traces((span("first", "candidates", "x"), span("second", "rerank", "ab", ("first",))))
    result = funnel(QRELS, traces, "R@5")
    assert {name: part.tolist() for name, part in result.parts.items()} == {
        "first": [1.0],
        "second": [-0.5],
        "order": [0.0],
    }


@st.composite
def pipelines(draw: st.DrawFn) -> Traces:
    """Generate stages with random parents among earlier ones, and random documents."""
    count = draw(st.integers(1, 5))
    spans: list[Span] = []
    for query in draw(st.lists(st.sampled_from("qrs"), min_size=1, unique=True)):
        for i in range(count):
            parents = draw(st.lists(st.sampled_from([f"s{j}" for j in range(i)]), unique=True)) if i else []
            ids = "".join(draw(st.lists(st.sampled_from("abcdefxyz"), unique=True)))
            spans.append(span(f"s{i}", "rerank", ids, tuple(parents), query))
    return Traces((*spans, *(span(f"s{i}", "rerank", "a", (), "judged") for i in range(count))))


JUDGMENTS = {"q": {"a": 3, "b": 2, "c": 1, "d": 0}, "r": {"a": 1, "e": 1}, "s": {"x": 1, "f": 2}, "judged": {"a": 1}}


@settings(max_examples=60, deadline=None)
@given(pipelines(), st.sampled_from(["nDCG@3", "nDCG", "AP", "RR", "P@2", "R@3", "RBP(p=0.8)", "ERR(max=3)@3"]))
def test_parts_add_up_to_the_loss(traces: Traces, measure: str) -> None:
    result = funnel(JUDGMENTS, traces, measure)
    total = np.sum(list(result.parts.values()), axis=0)
    assert total == pytest.approx(result.best - result.score, abs=1e-12, nan_ok=True)
    assert (~np.isnan(result.score)).tolist() == [query in traces.query_ids for query in result.query_ids]


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
@settings(max_examples=30, deadline=None)
@given(pipelines())
def test_stages_have_the_scores_of_their_runs(traces: Traces) -> None:
    result = funnel(JUDGMENTS, traces, "nDCG@3")
    for loss in result.losses:
        scores = judged.evaluate(JUDGMENTS, traces.run(loss.stage.name), "nDCG@3")
        is_traced = np.isin(result.query_ids, traces.query_ids)
        assert loss.score[is_traced].tolist() == scores.values[0, 0][is_traced].tolist()
        assert np.isnan(loss.score[~is_traced]).all()


def test_measures_without_a_known_best_order_raise() -> None:
    for measure in ("SetP", "Bpref", "infAP"):
        with pytest.raises(MeasureError):
            funnel(QRELS, branched(), measure)


def test_two_stages_have_the_parts_of_the_command_stages() -> None:
    """Truncated candidates and their ranking have the parts of `judged.stages`."""
    candidates, final = {"q": ["x", "a", "c", "b"]}, {"q": ["c", "x", "a"]}
    loss = judged.stages(QRELS, candidates, final, "nDCG@10", cutoff=3).trace
    result = funnel(QRELS, traces_of_runs({"first": {"q": ["x", "a", "c"]}, "final": final}), "nDCG@10")
    assert result.parts["first"] == pytest.approx(loss.parts[0], abs=1e-12)
    assert result.parts["final"] + result.parts["order"] == pytest.approx(loss.parts[1], abs=1e-12)


def test_written_traces_are_read_unchanged(tmp_path: Path) -> None:
    traces = branched()
    write_traces(traces, tmp_path / "traces.jsonl")
    loaded = read_traces(tmp_path / "traces.jsonl")
    assert loaded.spans == traces.spans
    rows = loaded.table().to_pylist()
    assert len(rows) == 3 + 2 + 5 + 3 + 2
    assert (rows[5]["stage"], rows[5]["seq"], rows[5]["parents"], rows[5]["features"]) == (
        "fuse", 3, ["sparse", "dense"], None
    )  # fmt: skip


def test_unreadable_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    write_traces(branched(), path)
    path.write_text(path.read_text() + '[1]\n{"stage": "s", "query_id": 1, "kind": "guess"}\n{"stage": "half", "que')
    loaded = read_traces(path)
    assert loaded.spans == branched().spans
    assert [note.text.split(",")[0] for note in loaded.notes] == ["2 records skipped", "1 record skipped"]
    assert f"{path}:6" in loaded.notes[0].text
    assert f"{path}:7" in loaded.notes[1].text
    (tmp_path / "none.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="no stage of a trace could be read"):
        read_traces(tmp_path / "none.jsonl")


def test_the_last_trace_of_a_query_is_used() -> None:
    spans = [span("s", "candidates", "a"), Span("u", "q", "s", "candidates", (), (Document("b", 1),))]
    from judged.pipelines.traces.traces import last_trace_per_query

    traces = last_trace_per_query(spans, "traces")
    assert [span.trace_id for span in traces.spans] == ["u"]
    assert [note.rule for note in traces.notes] == ["repeated-queries"]
    assert traces.times == {"q": 2}


def test_cycles_and_stages_of_two_kinds_raise() -> None:
    with pytest.raises(InputError, match="form a cycle"):
        _ = Traces((span("a", "rerank", "x", ("b",)), span("b", "rerank", "x", ("a",)))).stages
    with pytest.raises(InputError, match="has kind 'candidates' in one trace and kind 'rerank' in another"):
        _ = Traces((span("a", "candidates", "x"), span("a", "rerank", "x"))).stages


def test_the_path_of_a_lost_document() -> None:
    result = explain_document(branched(), "q", "c", qrels=QRELS)
    visits = {visit.stage.name: visit for visit in result.paths["c"]}
    assert (visits["sparse"].document, visits["dense"].document) == (Document("c", 3, 7.0), None)
    assert visits["fuse"].document == Document("c", 5, 5.0)
    assert (visits["rerank"].is_input, visits["rerank"].document, visits["rerank"].lowest_score) == (True, None, 7.0)
    assert (visits["shown"].is_input, visits["shown"].lowest_score) == (False, None)
    assert result.grades["c"] == 1
    with pytest.raises(InputError, match="no trace of topic"):
        explain_document(branched(), "unknown")


def test_paths_start_with_the_final_list() -> None:
    result = explain_document(branched(), "q", qrels=QRELS)
    assert list(result.paths) == ["x", "b", "a", "c", "d"]
    assert all(visit.document is None for visit in result.paths["d"])


def test_feature_gaps_by_hand() -> None:
    """The variance of bm25 (7, 3, 5) is 8/3, that of age (4, 1, 1) is 2."""
    features = [{"bm25": 7.0, "age": 4, "kind": "x"}, {"bm25": 3.0, "age": 1, "kind": "y"}, {"bm25": 5.0, "age": 1}]
    documents = tuple(Document(doc, rank, 1 / rank, "", features[rank - 1]) for rank, doc in enumerate("abc", 1))
    traces = Traces((Span("t", "q", "ltr", "rerank", (), documents), span("shown", "shown", "", ("ltr",))))
    rows = explain_document(traces, "q", ["a", "b"]).table("features").records()
    values = [(row["feature"], row["first"], row["second"]) for row in rows]
    assert values == [("bm25", 7.0, 3.0), ("age", 4, 1), ("kind", "x", "y")]
    assert [row["gap"] for row in rows[:2]] == pytest.approx([4 / (8 / 3) ** 0.5, 3 / 2**0.5])
    assert [row["feature"] for row in explain_document(traces, "q", "c").table("features").records()] == ["bm25", "age"]


def test_stages_back_to_the_query_with_user_actions() -> None:
    facts = {"clicks": ["a", "a"], "feedback": [{"name": "helpful", "score": 0, "annotator_kind": "HUMAN"}], "top_k": 2}
    documents = (Document("x", 1), Document("a", 2))
    final = Span("t", "q", "shown", "shown", ("bm25",), documents, "new", None, "v2", facts)
    retrieval = Span("t", "q", "bm25", "candidates", (), (Document("a", 1),), "new", 12.5)
    rewrite = Span("t", "q", "rewrite", "rewrite", (), None, "new")
    traces = Traces((rewrite, retrieval, final, span("cited", "cited", "x", ("shown",))))
    result = explain_document(traces, "q", qrels=QRELS)
    rows = result.table("stages").records()
    assert [row["stage"] for row in rows] == ["cited", "shown", "bm25", "rewrite"]
    names = ("documents", "relevant", "latency_ms", "model", "facts")
    assert [tuple(row[name] for name in names) for row in rows[1:3]] == [
        (2, 1, None, "v2", "top_k: 2"), (1, 1, 12.5, None, None)
    ]  # fmt: skip
    assert result.user_actions == ("Clicks: a (2).", "Feedback on shown: helpful: 0, HUMAN.")
    assert explain_document(traces, "q", "a").sentences[0].endswith("at rank 2 of 2.")


def test_kinds_of_failure_by_hand() -> None:
    """The final list lacks *a*, the reranker *c*, all sources *d*; topic s has no records."""
    traces = Traces((*branched().spans, Span("u", "s", "sparse", "candidates")))
    result = failures(QRELS | {"s": {"z": 1}}, traces, "R@1", corpus="abcdxyz")
    kinds = {(topic, doc): (kind, step) for topic, doc, kind, step, _ in result.documents}
    assert kinds == {
        ("q", "a"): ("scoring", "shown"),
        ("q", "b"): ("scoring", "order"),
        ("q", "c"): ("scoring", "rerank"),
        ("q", "d"): ("candidate", "sparse + dense"),
        ("s", "z"): ("debugging", "unrecorded"),
    }
    without = failures(QRELS, branched(), "R@1", corpus="abcxy")
    assert {(doc, kind) for _, doc, kind, _, _ in without.documents if kind == "missing content"} == {
        ("d", "missing content")
    }
    total = sum(part for part in result.recoverable.values())
    assert total == pytest.approx(result.funnel.best - result.funnel.score, abs=1e-12, nan_ok=True)
    assert result.bounds("debugging", np.array([False, True])) == (0.0, 1.0)


@settings(max_examples=25, deadline=None)
@given(pipelines(), pipelines())
def test_gains_add_up_to_the_change(first: Traces, second: Traces) -> None:
    result = diff(JUDGMENTS, first, second, "nDCG@3", resamples=200)
    total = np.sum([gains for name, gains in result.gains.items() if name != "score"], axis=0)
    assert total == pytest.approx(result.gains["score"], abs=1e-12, nan_ok=True)


def sliced(rng: np.random.Generator, extra_loss: float) -> TraceFunnel:
    """Simulate sixty topics of three classes; a reranker removes the relevant document of class 0 more often."""
    attributes = {f"q{i}": {"kind": f"k{i % 3}"} for i in range(60)}
    is_removed = [rng.random() < 0.3 + (extra_loss if i % 3 == 0 else 0) for i in range(60)]
    candidates = {f"q{i}": ["a", "b"] if rng.random() < 0.8 else ["b"] for i in range(60)}
    reranked = {
        topic: ["b"] if removed else docs for (topic, docs), removed in zip(candidates.items(), is_removed, strict=True)
    }
    traces = traces_of_runs({"first": candidates, "second": reranked})
    return funnel({topic: {"a": 1} for topic in candidates}, traces, "RR", slicing=slice_topics(attributes, "kind"))


def test_false_positives_of_slices_stay_at_the_significance_level() -> None:
    rng = np.random.default_rng(5)

    def significant(extra_loss: float) -> set[tuple[str, str]]:
        return {key for key, (_, p) in sliced(rng, extra_loss).against_others.items() if p <= 0.05}

    has_false_positive = [bool(significant(0)) for _ in range(60)]
    assert np.mean(has_false_positive) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)
    detected = [significant(0.7) for _ in range(10)]
    assert sum(("kind=k0", "at second") in keys for keys in detected) >= 9
    result = sliced(rng, 0.7)
    row = next(
        row for row in result.table("parts").records() if (row["slice"], row["part"]) == ("kind=k0", "at second")
    )
    part, is_class_0 = result.parts["second"], np.array([int(topic[1:]) % 3 == 0 for topic in result.query_ids])
    assert row["difference"] == pytest.approx(part[is_class_0].mean() - part[~is_class_0].mean())


def test_differences_between_two_sets_of_traces() -> None:
    """In the other set the reranker returns *c* and loses *b*, and the final list is complete."""
    unchanged = [old for old in branched().spans if old.stage not in ("rerank", "shown")]
    changed = (span("rerank", "rerank", "cxa", ("fuse",)), span("shown", "shown", "cxa", ("rerank",)))
    result = diff(QRELS, branched(), Traces((*unchanged, *changed), "new"), "R@5", resamples=200)
    rows = {row["stage"]: (row["baseline_n_relevant"], row["n_relevant"]) for row in result.table("stages").records()}
    assert rows == {"sparse": (2, 2), "dense": (1, 1), "fuse": (3, 3), "rerank": (2, 2), "shown": (1, 2)}
    assert [tuple(row.values()) for row in result.table("documents").records()] == [
        ("q", "a", "at shown", None), ("q", "c", "at rerank", None), ("q", "b", None, "at rerank")
    ]  # fmt: skip


def test_the_corpus_can_be_a_compressed_file_of_documents(tmp_path: Path) -> None:
    """The parts equal those of a list of the same ids."""
    write_traces(branched(), tmp_path / "traces.jsonl")
    (tmp_path / "qrels.txt").write_text("".join(f"q 0 {doc} {grade}\n" for doc, grade in QRELS["q"].items()))
    docs = "".join(f"{json.dumps({'doc_id': doc, 'text': 'words'})}\n" for doc in "abcxy")
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(docs.encode()))
    (tmp_path / "ids.txt").write_text("\n".join("abcxy"))
    command = ("traces", "funnel", str(tmp_path / "qrels.txt"), str(tmp_path / "traces.jsonl"), "-m", "R@5")
    results = [
        process(*command, "--lost", "--format", "csv", "--corpus", str(tmp_path / name))
        for name in ("docs.jsonl.gz", "ids.txt")
    ]
    assert results[0].code == 0, results[0].err
    assert results[0].out == results[1].out
    assert "corpus" in results[0].out  # the corpus lacks d
