"""The funnel: parts that add up, stages that are runs, and hand counts."""

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
    failures,
    funnel,
    read_traces,
    traces_of_runs,
    why,
    write_traces,
)

QRELS = {"q": {"a": 3, "b": 2, "c": 1, "d": 1, "x": 0}}


def span(stage: str, kind: str, ids: str, parents: tuple[str, ...] = (), query: str = "q") -> Span:
    listed = tuple(Document(doc, rank, 10.0 - rank) for rank, doc in enumerate(ids, 1))
    return Span("t", query, stage, kind, parents, listed)  # type: ignore[arg-type]


def branched() -> Traces:
    """Two sources, their fusion, a reranker that cuts, what is shown: *d* is nowhere, *c* is cut by the reranker."""
    return Traces((
        span("sparse", "candidates", "xac"),
        span("dense", "candidates", "yb"),
        span("fuse", "fuse", "xaybc", ("sparse", "dense")),
        span("rerank", "rerank", "xba", ("fuse",)),
        span("shown", "shown", "xb", ("rerank",)),
    ))  # fmt: skip


def test_a_branched_pipeline_by_hand() -> None:
    """R@5: four are relevant; the sources hold a, b, c; the reranker loses c, what is shown a."""
    found = funnel(QRELS, branched(), "R@5")
    assert {name: part.tolist() for name, part in found.parts.items()} == {
        "sparse + dense": [0.25], "fuse": [0.0], "rerank": [0.25], "shown": [0.25], "order": [0.0]
    }  # fmt: skip
    assert found.lost == (
        ("q", "a", "shown", 3.0), ("q", "c", "rerank", 1.0), ("q", "d", "sparse + dense", 1.0)
    )  # fmt: skip
    held = {loss.stage.name: (loss.held[0], loss.kept[0], loss.offered[0]) for loss in found.losses}
    assert held == {"sparse": (2, 2, 4), "dense": (1, 1, 4), "fuse": (3, 3, 3), "rerank": (2, 2, 3), "shown": (1, 1, 2)}


def test_what_the_corpus_does_not_hold_is_told_apart() -> None:
    found = funnel(QRELS, branched(), "R@5", corpus="abcxy")
    assert found.parts["corpus"].tolist() == [0.25]
    assert found.parts["sparse + dense"].tolist() == [0.0]
    assert ("q", "d", "corpus", 1.0) in found.lost


def test_what_is_never_negative_has_no_interval_below_0() -> None:
    qrels = {f"q{at}": {"a": 1, "c": 1} for at in range(30)}
    traces = traces_of_runs({"bm25": {query: ["a"] if query == "q0" else ["a", "c"] for query in qrels}})
    lost = {query: {"b": 1} if query == "q1" else docs for query, docs in qrels.items()}
    found = funnel(lost, traces, "R@5", corpus="ac")
    intervals = dict(zip(found.table("parts").column("part").values, found.table("parts").column("value").ci or (),
                         strict=True))  # fmt: skip
    assert found.parts["corpus"].mean() == pytest.approx(1 / 30)
    assert intervals["not in the corpus"][0] == 0
    assert intervals["in the final order"] is None  # the loss is 0 on all topics: it has no variance


def test_stages_may_be_called_as_parts_are() -> None:
    traces = Traces((span("corpus", "candidates", "xab"), span("order", "rerank", "xa", ("corpus",))))
    found = funnel(QRELS, traces, "R@5", corpus="abcxy")
    assert {name: part.tolist() for name, part in found.parts.items()} == {
        "corpus": [0.25], "corpus (stage)": [0.25], "order (stage)": [0.25], "order": [0.0]
    }  # fmt: skip


def test_a_step_that_adds_documents_has_a_negative_part() -> None:
    traces = Traces((span("first", "candidates", "x"), span("second", "rerank", "ab", ("first",))))
    found = funnel(QRELS, traces, "R@5")
    assert {name: part.tolist() for name, part in found.parts.items()} == {
        "first": [1.0],
        "second": [-0.5],
        "order": [0.0],
    }


@st.composite
def pipelines(draw: st.DrawFn) -> Traces:
    """Stages that are given documents of any earlier ones, and pass any documents on."""
    count = draw(st.integers(1, 5))
    spans: list[Span] = []
    for query in draw(st.lists(st.sampled_from("qrs"), min_size=1, unique=True)):
        for at in range(count):
            parents = draw(st.lists(st.sampled_from([f"s{one}" for one in range(at)]), unique=True)) if at else []
            ids = "".join(draw(st.lists(st.sampled_from("abcdefxyz"), unique=True)))
            spans.append(span(f"s{at}", "rerank", ids, tuple(parents), query))
    return Traces((*spans, *(span(f"s{at}", "rerank", "a", (), "judged") for at in range(count))))


ALL = {"q": {"a": 3, "b": 2, "c": 1, "d": 0}, "r": {"a": 1, "e": 1}, "s": {"x": 1, "f": 2}, "judged": {"a": 1}}


@settings(max_examples=60, deadline=None)
@given(pipelines(), st.sampled_from(["nDCG@3", "nDCG", "AP", "RR", "P@2", "R@3", "RBP(p=0.8)", "ERR(max=3)@3"]))
def test_parts_add_up_to_the_loss(traces: Traces, measure: str) -> None:
    found = funnel(ALL, traces, measure)
    total = np.sum(list(found.parts.values()), axis=0)
    assert total == pytest.approx(found.best - found.score, abs=1e-12, nan_ok=True)
    assert (~np.isnan(found.score)).tolist() == [query in traces.query_ids for query in found.query_ids]


@pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")
@settings(max_examples=30, deadline=None)
@given(pipelines())
def test_a_stage_is_an_ordinary_run(traces: Traces) -> None:
    found = funnel(ALL, traces, "nDCG@3")
    for loss in found.losses:
        scores = judged.evaluate(ALL, traces.run(loss.stage.name), "nDCG@3")
        traced = np.isin(found.query_ids, traces.query_ids)
        assert loss.score[traced].tolist() == scores.values[0, 0][traced].tolist()
        assert np.isnan(loss.score[~traced]).all()


def test_measures_without_a_best_order_are_refused() -> None:
    for measure in ("SetP", "Bpref", "infAP"):
        with pytest.raises(MeasureError):
            funnel(QRELS, branched(), measure)


def test_two_stages_are_those_of_the_command_stages() -> None:
    """Candidates cut at a depth and their ranking: the same parts as of `judged.stages`."""
    candidates, final = {"q": ["x", "a", "c", "b"]}, {"q": ["c", "x", "a"]}
    loss = judged.stages(QRELS, candidates, final, "nDCG@10", cutoff=3).trace
    found = funnel(QRELS, traces_of_runs({"first": {"q": ["x", "a", "c"]}, "final": final}), "nDCG@10")
    assert found.parts["first"] == pytest.approx(loss.parts[0], abs=1e-12)
    assert found.parts["final"] + found.parts["order"] == pytest.approx(loss.parts[1], abs=1e-12)


def test_written_and_read_again(tmp_path: Path) -> None:
    traces = branched()
    write_traces(traces, tmp_path / "traces.jsonl")
    again = read_traces(tmp_path / "traces.jsonl")
    assert again.spans == traces.spans
    rows = again.table().to_pylist()
    assert len(rows) == 3 + 2 + 5 + 3 + 2
    assert (rows[5]["stage"], rows[5]["seq"], rows[5]["parents"], rows[5]["features"]) == (
        "fuse", 3, ["sparse", "dense"], None
    )  # fmt: skip


def test_a_line_that_cannot_be_read_costs_one_line(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    write_traces(branched(), path)
    path.write_text(path.read_text() + '[1]\n{"stage": "s", "query_id": 1, "kind": "guess"}\n{"stage": "half", "que')
    again = read_traces(path)
    assert again.spans == branched().spans
    assert [note.text.split(",")[0] for note in again.notes] == ["2 records left out", "1 record left out"]
    assert f"{path}:6" in again.notes[0].text
    assert f"{path}:7" in again.notes[1].text
    (tmp_path / "none.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="no stage of a trace"):
        read_traces(tmp_path / "none.jsonl")


def test_queries_traced_twice_count_once() -> None:
    path_spans = [span("s", "candidates", "a"), Span("u", "q", "s", "candidates", (), (Document("b", 1),))]
    from judged.pipelines.traces.traces import one_trace_a_query

    kept = one_trace_a_query(path_spans, "traces")
    assert [one.trace_id for one in kept.spans] == ["u"]
    assert [note.rule for note in kept.notes] == ["repeated-queries"]
    assert kept.times == {"q": 2}


def test_circles_and_two_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="their own ancestors"):
        _ = Traces((span("a", "rerank", "x", ("b",)), span("b", "rerank", "x", ("a",)))).stages
    with pytest.raises(InputError, match="is candidates in one trace and rerank in another"):
        _ = Traces((span("a", "candidates", "x"), span("a", "rerank", "x"))).stages


def test_why_a_document_is_not_shown() -> None:
    found = why(branched(), "q", "c", qrels=QRELS)
    way = {station.stage.name: station for station in found.ways["c"]}
    assert (way["sparse"].document, way["dense"].document) == (Document("c", 3, 7.0), None)
    assert way["fuse"].document == Document("c", 5, 5.0)
    assert (way["rerank"].given, way["rerank"].document, way["rerank"].needed) == (True, None, 7.0)
    assert (way["shown"].given, way["shown"].needed) == (False, None)
    assert found.grades["c"] == 1
    with pytest.raises(InputError, match="no trace of topic"):
        why(branched(), "nobody asked")


def test_a_topic_is_walked_back_from_what_was_shown() -> None:
    found = why(branched(), "q", qrels=QRELS)
    assert list(found.ways) == ["x", "b", "a", "c", "d"]
    assert all(station.document is None for station in found.ways["d"])


def test_features_that_put_one_above_the_other() -> None:
    """Of bm25 7, 3, 5 the variance is 8/3, of age 4, 1, 1 it is 2."""
    features = [{"bm25": 7.0, "age": 4, "kind": "x"}, {"bm25": 3.0, "age": 1, "kind": "y"}, {"bm25": 5.0, "age": 1}]
    listed = tuple(Document(doc, at, 1 / at, "", features[at - 1]) for at, doc in enumerate("abc", 1))
    traces = Traces((Span("t", "q", "ltr", "rerank", (), listed), span("shown", "shown", "", ("ltr",))))
    rows = why(traces, "q", ["a", "b"]).table("features").records()
    known = [(row["feature"], row["first"], row["second"]) for row in rows]
    assert known == [("bm25", 7.0, 3.0), ("age", 4, 1), ("kind", "x", "y")]
    assert [row["gap"] for row in rows[:2]] == pytest.approx([4 / (8 / 3) ** 0.5, 3 / 2**0.5])
    assert [row["feature"] for row in why(traces, "q", "c").table("features").records()] == ["bm25", "age"]


def test_the_walk_back_tells_what_was_asked_and_what_users_did() -> None:
    facts = {"clicks": ["a", "a"], "feedback": [{"name": "helpful", "score": 0, "annotator_kind": "HUMAN"}], "top_k": 2}
    documents = (Document("x", 1), Document("a", 2))
    shown = Span("t", "q", "shown", "shown", ("bm25",), documents, "new", None, "v2", facts)
    first = Span("t", "q", "bm25", "candidates", (), (Document("a", 1),), "new", 12.5)
    rewrite = Span("t", "q", "rewrite", "rewrite", (), None, "new")
    traces = Traces((rewrite, first, shown, span("cited", "cited", "x", ("shown",))))
    found = why(traces, "q", qrels=QRELS)
    rows = found.table("stages").records()
    assert [row["stage"] for row in rows] == ["cited", "shown", "bm25", "rewrite"]
    names = ("documents", "relevant", "latency_ms", "model", "facts")
    assert [tuple(row[name] for name in names) for row in rows[1:3]] == [
        (2, 1, None, "v2", "top_k: 2"), (1, 1, 12.5, None, None)
    ]  # fmt: skip
    assert found.did == ("Clicks: a (2).", "Feedback on shown: helpful: 0, HUMAN.")
    assert why(traces, "q", "a").sentences[0].endswith("at rank 2 of 2.")


def test_kinds_of_failure_by_hand() -> None:
    """*a* is cut before it is shown, *c* by the reranker, *d* no source has; of topic s nothing is known."""
    traces = Traces((*branched().spans, Span("u", "s", "sparse", "candidates")))
    found = failures(QRELS | {"s": {"z": 1}}, traces, "R@1", corpus="abcdxyz")
    kinds = {(topic, doc): (kind, step) for topic, doc, kind, step, _ in found.found}
    assert kinds == {
        ("q", "a"): ("scoring", "shown"),
        ("q", "b"): ("scoring", "order"),
        ("q", "c"): ("scoring", "rerank"),
        ("q", "d"): ("candidate", "sparse + dense"),
        ("s", "z"): ("debugging", "unrecorded"),
    }
    without = failures(QRELS, branched(), "R@1", corpus="abcxy")
    assert {(doc, kind) for _, doc, kind, _, _ in without.found if kind == "missing content"} == {
        ("d", "missing content")
    }
    total = sum(part for part in found.recoverable.values())
    assert total == pytest.approx(found.funnel.best - found.funnel.score, abs=1e-12, nan_ok=True)
    assert found.bounds("debugging", np.array([False, True])) == (0.0, 1.0)


@settings(max_examples=25, deadline=None)
@given(pipelines(), pipelines())
def test_what_changed_adds_up(first: Traces, second: Traces) -> None:
    found = diff(ALL, first, second, "nDCG@3", resamples=200)
    total = np.sum([gains for name, gains in found.gains.items() if name != "score"], axis=0)
    assert total == pytest.approx(found.gains["score"], abs=1e-12, nan_ok=True)


def sliced(rng: np.random.Generator, lost: float) -> TraceFunnel:
    """Sixty topics of three classes; a reranker cuts the one relevant document of class 0 so much more often."""
    attributes = {f"q{at}": {"kind": f"k{at % 3}"} for at in range(60)}
    gone = [rng.random() < 0.3 + (lost if at % 3 == 0 else 0) for at in range(60)]
    first = {f"q{at}": ["a", "b"] if rng.random() < 0.8 else ["b"] for at in range(60)}
    second = {topic: ["b"] if cut else docs for (topic, docs), cut in zip(first.items(), gone, strict=True)}
    traces = traces_of_runs({"first": first, "second": second})
    return funnel({topic: {"a": 1} for topic in first}, traces, "RR", slicing=slice_topics(attributes, "kind"))


def test_slices_are_tested_against_all_others_at_the_declared_rate() -> None:
    rng = np.random.default_rng(5)

    def told(lost: float) -> set[tuple[str, str]]:
        return {key for key, (_, p) in sliced(rng, lost).against_others.items() if p <= 0.05}

    false = [bool(told(0)) for _ in range(60)]
    assert np.mean(false) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)
    found = [told(0.7) for _ in range(10)]
    assert sum(("kind=k0", "at second") in some for some in found) >= 9
    one = sliced(rng, 0.7)
    row = next(row for row in one.table("parts").records() if (row["slice"], row["part"]) == ("kind=k0", "at second"))
    part, inside = one.parts["second"], np.array([int(topic[1:]) % 3 == 0 for topic in one.query_ids])
    assert row["difference"] == pytest.approx(part[inside].mean() - part[~inside].mean())


def test_two_sets_of_traces_side_by_side() -> None:
    """In the other set the reranker keeps *c* and loses *b*, and what is shown is all of it."""
    other = [one for one in branched().spans if one.stage not in ("rerank", "shown")]
    ways = (span("rerank", "rerank", "cxa", ("fuse",)), span("shown", "shown", "cxa", ("rerank",)))
    found = diff(QRELS, branched(), Traces((*other, *ways), "new"), "R@5", resamples=200)
    rows = {row["stage"]: (row["baseline_held"], row["held"]) for row in found.table("stages").records()}
    assert rows == {"sparse": (2, 2), "dense": (1, 1), "fuse": (3, 3), "rerank": (2, 2), "shown": (1, 2)}
    assert [tuple(row.values()) for row in found.table("documents").records()] == [
        ("q", "a", "at shown", None), ("q", "c", "at rerank", None), ("q", "b", None, "at rerank")
    ]  # fmt: skip


def test_the_corpus_may_be_the_documents_themselves_compressed(tmp_path: Path) -> None:
    """The parts are those of a list of the same ids."""
    write_traces(branched(), tmp_path / "traces.jsonl")
    (tmp_path / "qrels.txt").write_text("".join(f"q 0 {doc} {grade}\n" for doc, grade in QRELS["q"].items()))
    docs = "".join(f"{json.dumps({'doc_id': doc, 'text': 'words'})}\n" for doc in "abcxy")
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(docs.encode()))
    (tmp_path / "ids.txt").write_text("\n".join("abcxy"))
    asked = ("traces", "funnel", str(tmp_path / "qrels.txt"), str(tmp_path / "traces.jsonl"), "-m", "R@5")
    given = [
        process(*asked, "--lost", "--format", "csv", "--corpus", str(tmp_path / name))
        for name in ("docs.jsonl.gz", "ids.txt")
    ]
    assert given[0].code == 0, given[0].err
    assert given[0].out == given[1].out
    assert "corpus" in given[0].out  # which lacks d
