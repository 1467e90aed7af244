"""Result of `failures` for given losses and tests: sentences and tables."""

from __future__ import annotations

import inspect
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judged.comparison.slicing.topic_slices import slice_topics
from judged.pipelines.traces import Document, Failures, Span, Traces, failures
from judged.pipelines.traces.failure_tests import SLICE_TEST, FailureTest, ScoreBand, Untested
from judged.pipelines.traces.failures import FAILURES

NAN = math.nan
TOPICS = ("t0", "t1", "t2", "t3")


def failures_of(
    losses: Any = None,
    bounds: Any = None,
    *,
    topics: Any = TOPICS,
    slicing: Any = None,
    documents: Any = (),
    **fields: Any,
) -> Failures:
    """Return a result; without bounds the losses are exact."""
    losses = {"candidate": [0.0] * 4, "scoring": [0.0] * 4, "debugging": [0.0] * 4} if losses is None else losses
    recoverable = {kind: np.array(values, dtype=float) for kind, values in losses.items()}
    exact = {kind: np.stack([values, values]) for kind, values in recoverable.items()}
    limits = exact | {kind: np.array(kind_limits, dtype=float) for kind, kind_limits in (bounds or {}).items()}
    funnel: Any = SimpleNamespace(
        traces=SimpleNamespace(name="log"), measure="RR", query_ids=tuple(topics), slicing=slicing
    )
    return Failures(funnel, tuple(documents), recoverable, limits, **fields)


def cells(table: Any) -> list[tuple[str, ...]]:
    grid = table.grid()
    return [tuple(grid.header), *(tuple(map(str, row)) for row in grid.rows)]


@pytest.mark.parametrize(
    ("candidate", "scoring", "debugging", "first"),
    [
        ((0.25, 0.25), (0.5, 0.5), (0.0, 0.0), "scoring"),
        ((0.25, 0.5), (0.5, 0.75), (0.0, 0.9), "scoring"),  # its lowest loss is the highest one of the other
        ((0.25, 0.51), (0.5, 0.75), (0.0, 0.0), None),
        ((0.5, 0.5), (0.5, 0.5), (0.0, 0.0), "candidate"),
        ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), None),
        ((0.0, 0.0), (0.0, 0.0), (0.1, 0.2), "debugging"),
        ((0.0, 0.2), (0.0, 0.0), (0.1, 0.2), None),
    ],
)
def test_the_first_kind_loses_most_within_all_bounds(
    candidate: Any, scoring: Any, debugging: Any, first: str | None
) -> None:
    bounds = {"candidate": candidate, "scoring": scoring, "debugging": debugging}
    result = failures_of(
        bounds={kind: [[2 * low, 0.0], [high, high]] for kind, (low, high) in bounds.items()}, topics=TOPICS[:2]
    )
    assert result.first == first
    mask = np.array([True, False])
    for kind, (low, high) in bounds.items():
        assert result.bounds(kind) == pytest.approx((low, high))
        assert result.bounds(kind, mask) == (2 * low, high)


def test_the_first_sentence() -> None:
    failure = FAILURES["scoring"]
    fix = f" Typical fix: {failure.remedy}. Cost: {failure.cost}."
    losses = {"candidate": [0.0] * 4, "scoring": [0.5, 0.0, 0.25, 0.25], "debugging": [0.0] * 4}
    assert failures_of(losses).sentences == (
        f"Work first on failures of the kind `scoring`: these failures lose 0.2500 of RR.{fix}",
    )
    wide = {"scoring": [[0.5, 0, 0, 0], [0.5, 0.5, 0, 0]]}
    assert failures_of(losses, wide).sentences == (
        f"Work first on failures of the kind `scoring`: these failures lose 0.1250 to 0.2500 of RR.{fix}",
    )
    narrow = {"scoring": [[0.5] * 4, [0.5 + 1e-13] * 4]}  # but for rounding
    assert (
        failures_of(losses, narrow)
        .sentences[0]
        .startswith("Work first on failures of the kind `scoring`: these failures lose 0.5000 of RR.")
    )
    rounded = {"scoring": [[0.5] * 4, [0.5 + 1e-11] * 4]}
    assert (
        failures_of(losses, rounded)
        .sentences[0]
        .startswith("Work first on failures of the kind `scoring`: these failures lose 0.5000 to 0.5000 of RR.")
    )
    unknown = {
        "scoring": [[0.0] * 4, [0.5] * 4],
        "candidate": [[0.0] * 4, [0.5] * 4],
        "debugging": [[0.0] * 4, [0.5] * 4],
    }
    assert failures_of(losses, unknown).sentences == (
        (
            f"Work on debugging failures first: {FAILURES['debugging'].remedy}. Up to 0.5000 of RR is lost at"
            " stages that are not recorded, so the kind of failure with the largest loss is unknown."
        ),
    )
    assert failures_of().sentences == ("There is no recoverable loss of RR.",)
    assert failures_of().title == "log: kinds of failure, RR"


FRESHNESS = FailureTest("freshness", "all topics", "pairs", 10, 0.25, (0.125, 0.375), 0.0123, values={"t0": 0.5},
                    adjusted=0.0246, significant=True)  # fmt: skip
UNLIKELY = FailureTest("intent", "kind=a", "loss", 25, -0.5, None, 0.7, 0.125, {"t0": 0.5}, frozenset(["t0"]), 0.9)
SIGNIFICANT = FailureTest("intent", "kind=b", "loss", 100, 0.5, (0.25, 0.75), 0.001, -0.125, {"t0": 0.5},
                          frozenset(["t1"]), 0.003, True)  # fmt: skip
SUBTOPICS = FailureTest(
    "intent", "subtopics", "share", 12, 0.375, None, 0.02, values={"t0": 0.5}, adjusted=0.03, significant=True
)


def test_sentences_of_tests_over_topics() -> None:
    untested = (Untested("feedback", "clicks", "no-data", "none"), Untested("feedback", "labels", "no-data", "none"),
               Untested("calibration", "merged sources", "no-data", "none"))  # fmt: skip
    sentences = failures_of(tests=(UNLIKELY, FRESHNESS, SIGNIFICANT), untested=untested).sentences[1:]
    assert sentences == (
        (
            "Significant kinds of failure (3 tests over topics, false discovery rate 0.05): freshness: all topics"
            " +0.250 [+0.125, +0.375] (adjusted p = 0.025, n = 10); intent (other possible causes: feedback and"
            " freshness): kind=b +0.500 [+0.250, +0.750] (adjusted p = 0.003, n = 100)."
        ),
        (
            "These kinds of failure were not tested, for the reasons in the table 'Not tested': feedback (clicks,"
            " labels) and calibration (merged sources)."
        ),
    )
    assert failures_of(tests=(SIGNIFICANT, SUBTOPICS), fdr=0.1).sentences[1:] == (
        (
            "Significant kinds of failure (2 tests over topics, false discovery rate 0.1): intent: kind=b +0.500"
            " [+0.250, +0.750] (adjusted p = 0.003, n = 100), subtopics +0.375 (adjusted p = 0.03, n = 12)."
        ),
    )
    assert failures_of(tests=(UNLIKELY,)).sentences[1:] == (
        "Significant kinds of failure (1 test over topics, false discovery rate 0.05): none.",
    )
    class_result = failures_of(tests=(SIGNIFICANT._replace(failure=SLICE_TEST),), untested=untested[:1])
    assert f"{SLICE_TEST} (other possible causes: feedback): kind=b" in class_result.sentences[1]
    assert class_result.alternatives == ("feedback",)
    assert failures_of(tests=(FRESHNESS._replace(significant=False), SUBTOPICS)).alternatives == ()
    assert failures_of(tests=(SIGNIFICANT._replace(failure=SLICE_TEST),)).alternatives == ()


def test_the_table_of_tests() -> None:
    """Significant tests come first, then by adjusted p-value; other significant kinds are alternatives of a class."""
    untested = (Untested("feedback", "clicks", "no-data", "none"),)
    result = failures_of(
        tests=(UNLIKELY, FRESHNESS, SUBTOPICS, SIGNIFICANT, UNLIKELY._replace(failure=SLICE_TEST, adjusted=0.8)),
        untested=untested,
    )
    table = result.table("tests")
    assert table.labels == 2
    alternatives, yes, no = "feedback, freshness", "failure", "no significant failure"
    assert cells(table) == [
        (
            "failure",
            "where",
            "topics",
            "difference",
            "result",
            "adjusted p",
            "recoverable RR",
            "other possible causes",
            "quantity",
        ),
        ("intent", "kind=b", "100", "+0.5000 [+0.250, +0.750]", yes, "0.003 *", "-0.1250", alternatives, "loss"),
        ("freshness", "all topics", "10", "+0.2500 [+0.125, +0.375]", yes, "0.025 *", "-", "", "pairs"),
        ("intent", "subtopics", "12", "+0.3750", yes, "0.03 *", "-", "", "share"),
        (SLICE_TEST, "kind=a", "25", "-0.5000", no, "0.8", "+0.1250", alternatives, "loss"),
        ("intent", "kind=a", "25", "-0.5000", no, "0.9", "+0.1250", alternatives, "loss"),
    ]
    rows = table.records()
    assert [row["p"] for row in rows] == [0.001, 0.0123, 0.02, 0.7, 0.7]
    assert [row["significant"] for row in rows] == [True, True, True, False, False]
    # the share of all topics that a sample of n misses in 5 of 100 cases
    assert [(1 - row["missed"]) ** row["n"] for row in rows] == pytest.approx([0.05] * 5)
    assert [row["remedy"] for row in rows] == [
        FAILURES[kind].remedy if kind in FAILURES else None
        for kind in ("intent", "freshness", "intent", SLICE_TEST, "intent")
    ]
    assert rows[1]["cost"] == FAILURES["freshness"].cost
    assert rows[3]["cost"] is None
    assert [column.name for column in table.columns if column.below] == ["quantity"]
    assert "other possible causes" not in cells(failures_of(tests=(SIGNIFICANT,)).table("tests"))[0]  # no alternatives
    assert (
        "other possible causes" not in cells(failures_of(tests=(SUBTOPICS,), untested=untested).table("tests"))[0]
    )  # no class


SLICING = slice_topics({topic: {"k": "xy"[i % 2]} for i, topic in enumerate(TOPICS)}, "k", min_topics=1)
LOST = (("t0", "a", "scoring", "rerank", 2.0), ("t0", "b", "scoring", "order", 1.0),
        ("t1", "a", "candidate", "bm25", 1.0), ("t2", "a", "scoring", "rerank", 1.0))  # fmt: skip
LOSSES = {"candidate": [0.0, 0.5, 0.0, 0.0], "scoring": [1.0, 0.0, 0.25, 0.0], "debugging": [0.0] * 4}


def test_the_table_of_kinds() -> None:
    result = failures_of(LOSSES, documents=LOST)
    table = result.table("kinds")
    assert (table.labels, table.note) == (1, "")
    assert [row[:4] for row in cells(table)] == [
        ("failure", "documents", "topics", "recoverable RR"), ("scoring", "3", "2", "0.3125"),
        ("candidate", "1", "1", "0.1250"), ("debugging", "0", "0", "0.0000"),
    ]  # fmt: skip
    assert cells(table)[0][4:] == ("typical fix",)
    assert cells(table)[1][4] == f"{FAILURES['scoring'].remedy} (cost: {FAILURES['scoring'].cost})"
    keys = ("slice", "failure", "traffic", "recoverable", "low", "high", "remedy", "cost")
    rows = [tuple(row[key] for key in keys) for row in table.records()]
    assert rows[0] == (
        "all topics", "scoring", 2.0, 0.3125, 0.3125, 0.3125, FAILURES["scoring"].remedy, FAILURES["scoring"].cost
    )  # fmt: skip
    assert "remedy_and_cost" not in table.records()[0]
    document = result.table("documents")
    assert (document.title, document.labels, document.folded) == (
        "4 relevant documents that users did not see",
        4,
        True,
    )
    assert cells(document)[:2] == [
        ("topic", "document", "failure", "lost at", "grade"), ("t0", "a", "scoring", "rerank", "2"),
    ]  # fmt: skip
    assert (
        failures_of(LOSSES, documents=LOST[:1]).table("documents").title == "1 relevant document that users did not see"
    )


def test_the_table_of_kinds_by_slice_and_traffic() -> None:
    """Slices have the kinds that occur; unrecorded losses have bounds, and no mean of debugging."""
    losses = {**LOSSES, "scoring": [1.0, 0.0, NAN, 0.0], "debugging": [0.0, 0.0, NAN, 0.0]}
    bounds = {"scoring": [[1, 0, 0, 0], [1, 0, 0.5, 0]], "debugging": [[0] * 4, [0, 0, 0.5, 0]]}
    result = failures_of(losses, bounds, slicing=SLICING, documents=LOST, traffic=np.array([10.0, 5.0, 2.0, 1.0]))
    table = result.table("kinds")
    assert table.labels == 2
    assert table.note.startswith("recoverable: mean over the topics with a known loss")
    assert [row[:8] for row in cells(table)] == [
        ("slice", "failure", "documents", "topics", "traffic", "recoverable RR", "lower bound", "upper bound"),
        ("all topics", "scoring", "3", "2", "12", "0.3333", "0.2500", "0.3750"),
        ("all topics", "candidate", "1", "1", "5", "0.1250", "0.1250", "0.1250"),
        ("all topics", "debugging", "0", "0", "0", "-", "0.0000", "0.1250"),
        ("k=x", "scoring", "3", "2", "12", "1.0000", "0.5000", "0.7500"),
        ("k=x", "candidate", "0", "0", "0", "0.0000", "0.0000", "0.0000"),
        ("k=y", "scoring", "0", "0", "0", "0.0000", "0.0000", "0.0000"),
        ("k=y", "candidate", "1", "1", "5", "0.2500", "0.2500", "0.2500"),
    ]
    fixes = [row[8] for row in cells(table)[1:]]
    assert [text == "-" for text in fixes] == [False] * 3 + [True] * 4


def test_other_tables_and_facts() -> None:
    assert [block.name for block in failures_of(documents=LOST).blocks()] == ["sentences", "kinds", "documents"]
    curves = (ScoreBand("s at merge", 5, 0.5, 2.25, 0.4),)
    untested = (Untested("feedback", "clicks", "no-data", "no clicks are given"),)
    result = failures_of(documents=LOST, tests=(FRESHNESS,), untested=untested, curves=curves)
    assert [block.name for block in result.blocks()] == [
        "sentences",
        "kinds",
        "untested",
        "tests",
        "curves",
        "documents",
    ]
    assert cells(result.table("curves")) == [
        ("where", "lowest score", "highest score", "documents", "relevant"),
        ("s at merge", "0.5000", "2.2500", "5", "40%"),
    ]  # fmt: skip
    table = result.table("untested")
    assert table.labels == 2
    assert cells(table) == [("failure", "where", "reason"), ("feedback", "clicks", "no clicks are given")]
    assert table.records()[0]["code"] == "no-data"
    facts = result.facts()
    assert (facts["traces"], facts["measure"], facts["fdr"]) == ("log", "RR", 0.05)
    assert facts["definitions"].keys() == FAILURES.keys()
    assert [name for name, kind in FAILURES.items() if kind.over_topics] == [
        "calibration", "freshness", "intent", "feedback",
    ]  # fmt: skip
    assert facts["definitions"]["scoring"]["over_topics"] is False


def span(topic: str, stage: str, kind: Any, ids: str, parents: Any = ()) -> Span:
    documents = tuple(Document(doc, rank) for rank, doc in enumerate(ids, 1))
    return Span(topic, topic, stage, kind, tuple(parents), documents)


def test_losses_of_a_pipeline_by_kind() -> None:
    """R@2 of a, b, c, d for t1: the corpus lacks d, bm25 c, the reranker b; a has rank 3."""
    spans = [
        span("t2", "bm25", "candidates", "xyab"), span("t2", "rerank", "rerank", "abxy", ["bm25"]),
        span("t1", "bm25", "candidates", "xyab"), span("t1", "rerank", "rerank", "xya", ["bm25"]),
    ]  # fmt: skip
    qrels = {"t1": dict.fromkeys("abcd", 1), "t2": {"b": 2, "a": 1}}
    traces = Traces(tuple(spans))
    result = failures(qrels, traces, "R@2", corpus="abcxy")
    assert result.documents == (
        ("t1", "a", "scoring", "order", 1.0), ("t1", "b", "scoring", "rerank", 1.0),
        ("t1", "c", "candidate", "bm25", 1.0), ("t1", "d", "missing content", "corpus", 1.0),
    )  # fmt: skip
    # the best two of four are half of the relevant ones, with or without d and c; the reranker lost one of two
    assert {kind: losses.tolist() for kind, losses in result.recoverable.items()} == {
        "missing content": [0.0, 0.0], "candidate": [0.0, 0.0], "scoring": [0.5, 0.0], "debugging": [0.0, 0.0],
    }  # fmt: skip
    assert {kind: kind_limits.tolist() for kind, kind_limits in result.limits.items()} == {
        kind: [losses.tolist()] * 2 for kind, losses in result.recoverable.items()
    }
    assert (result.cutoff, result.fdr, result.notes) == (2, 0.05, result.funnel.notes)
    assert result.traffic is None  # each query was traced once
    defaults = {name: parameter.default for name, parameter in inspect.signature(failures).parameters.items()}
    assert [defaults[name] for name in ("fdr", "level", "seed")] == [0.05, 0.95, 0]
    without = failures(qrels, traces, "RR")
    assert without.cutoff == math.inf
    assert "missing content" not in without.recoverable
    assert "missing content" not in without.limits
    with_traffic = failures(
        qrels, traces, "R@2", attributes={"t1": {"traffic": 7}, "t2": {"traffic": None}, "t3": {"traffic": 2}}
    )
    assert with_traffic.traffic is not None
    assert with_traffic.traffic.tolist() == [7.0, 0.0]
    without_traffic = failures(qrels, traces, "R@2", attributes={"t1": {"kind": "x"}, "t2": {"kind": "y"}})
    assert without_traffic.traffic is None
