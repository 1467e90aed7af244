"""How far scores could move: in the result, its table, its document, and on file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from judged import InputError, JudgedWarning, Qrels, Scores, evaluate

if TYPE_CHECKING:
    from pathlib import Path

TIED = {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}
"""The order of a and b is open, and b is not judged."""
QRELS = {"q": {"a": 1, "c": 0}}


def test_the_mean_over_all_orders() -> None:
    scores = evaluate(QRELS, TIED, ["RR", "AP", "P@1", "nDCG@2"], ties="expected")
    expected = {"RR": 3 / 4, "AP": 3 / 4, "P@1": 1 / 2, "nDCG@2": (1 + 1 / math.log2(3)) / 2}
    assert scores.aggregate()["run"] == pytest.approx(expected)
    assert scores.policies.ties == "expected"
    assert (
        scores.notes[-1].text
        == "ties among the judged documents, with scores averaged over all orders of tied documents; share of judged"
        " documents with a tie: run 50%"
    )
    assert scores.ranges == ()


def test_bounds_over_all_orders() -> None:
    scores = evaluate(QRELS, TIED, ["RR", "P@1"], ties="bounds")
    assert scores.aggregate() == evaluate(QRELS, TIED, ["RR", "P@1"]).aggregate()
    (ties,) = scores.ranges
    assert (ties.reason, ties.low.tolist(), ties.high.tolist()) == ("ties", [[[0.5], [0.0]]], [[[1.0], [1.0]]])
    assert set(ties.kind.ravel()) == {"exact"}
    reach = scores.estimates()[0].ranges[0]
    assert (reach.reason, reach.low, reach.high, reach.kind) == ("ties", 0.5, 1.0, "exact")


def test_a_depth_cuts_after_the_order_is_chosen() -> None:
    """Of the two tied documents one stands among the first 1: either."""
    scores = evaluate(QRELS, TIED, ["RR", "SetP"], ties="bounds", depth=1)
    assert [[one.low, one.high] for one in (e.ranges[0] for e in scores.estimates())] == [[0.0, 1.0], [0.0, 1.0]]
    assert evaluate(QRELS, TIED, "RR", ties="expected", depth=1).value("RR") == 0.5


def test_grades_of_unjudged_documents() -> None:
    """The example of the issue: 1, 0, 0, 0 and an unjudged one; its grade 0 to 3 gives 1, 0.850, 0.674, 0.595."""
    qrels = {"q": {"a": 1, "b": 0, "c": 0, "d": 0}, "r": {"a": 3}}
    run = {"q": {doc: -float(at) for at, doc in enumerate("abcde")}, "r": {"a": 1.0}}
    scores = evaluate(qrels, run, "nDCG@5", unjudged=True)
    (unjudged,) = scores.ranges
    assert unjudged.low[0, 0].tolist() == pytest.approx([0.5950, 1.0], abs=5e-4)
    assert unjudged.high[0, 0].tolist() == pytest.approx([1.0, 1.0])
    reach = scores.estimates()[0].ranges[0]
    assert (reach.low, reach.high) == pytest.approx(((0.5950 + 1) / 2, 1.0), abs=5e-4)


def test_the_table_and_the_document() -> None:
    scores = evaluate(QRELS, TIED, ["RR", "SetP"], ties="bounds", unjudged=True)
    assert scores.summary(ci="none").runs().grid().rows == (
        (
            "run",
            "0.5000 ties 0.500-1.000 unjudged 0.500-1.000 (67% judged)",
            "0.3333 ties 0.333-0.333 unjudged 0.333-0.667 (67% judged)",
        ),
    )
    result = scores.to_dict()["results"][0]
    assert [result[f"ties_{part}"] for part in ("low", "high", "kind")] == [0.5, 1.0, "exact"]
    assert [result[f"unjudged_{part}"] for part in ("low", "high", "kind", "judged")] == [0.5, 1.0, "exact", 2 / 3]


def test_scores_on_file_keep_their_ranges(tmp_path: Path) -> None:
    scores = evaluate(QRELS, TIED, ["RR", "SetP"], ties="bounds", unjudged=True)
    scores.save(tmp_path / "scores.parquet")
    again = Scores.load(tmp_path / "scores.parquet")
    assert again.to_dict() == scores.to_dict()
    assert [one.reason for one in again.ranges] == ["ties", "unjudged"]
    assert again.ranges[0].low.tolist() == scores.ranges[0].low.tolist()


def test_a_skipped_topic_has_no_range() -> None:
    scores = evaluate({"q": {"a": 0}, "r": {"a": 1}}, {"q": {"a": 1.0}, "r": {"a": 1.0}}, "AP(undefined=skip)",
                      ties="bounds", unjudged=True)  # fmt: skip
    assert [reach.low for reach in scores.estimates()[0].ranges] == [1.0, 1.0]


def test_topics_of_several_runs() -> None:
    with pytest.warns(JudgedWarning, match="no documents returned"):
        scores = evaluate({"q": {"a": 1}, "r": {"b": 1}}, {"one": TIED, "two": {"r": {"b": 1.0, "x": 1.0}}}, "RR",
                          ties="bounds", topics="both")  # fmt: skip
    assert [e.ranges[0].low for e in scores.estimates()] == [0.5, 0.5]


def test_an_unknown_treatment_of_ties_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown value of `ties`: 'best'.*one of docid"):
        evaluate(QRELS, TIED, "RR", ties="best")  # type: ignore[arg-type]


def test_a_topic_that_would_count_with_other_grades_joins_where_it_moves_the_mean() -> None:
    """q2 has nothing relevant today and does not count; if x were relevant, its nDCG would be 1 / log2(3)."""
    qrels, run = {"q1": {"a": 1}, "q2": {"b": 0}}, {"q1": {"a": 1.0}, "q2": {"b": 2.0, "x": 1.0}}
    scores = evaluate(qrels, run, "nDCG(undefined=skip)@10", unjudged=True)
    reach = scores.estimates()[0].ranges[0]
    assert (reach.low, reach.high) == pytest.approx(((1 + 1 / math.log2(3)) / 2, 1.0))
    assert scores.value("nDCG(undefined=skip)@10") == 1.0


def test_the_order_that_stands_is_within_sampled_bounds() -> None:
    """Ten tied documents of 55 labels: too many orders to try them all."""
    labels = [(9 - k, j, 1 + (k * 7) % 10) for k in range(10) for j in range(10 - k)]
    qrels = pa.table(
        {
            "query_id": ["q"] * len(labels),
            "doc_id": [f"d{doc}" for doc, _, _ in labels],
            "iteration": [f"s{aspect}" for _, aspect, _ in labels],
            "relevance": [float(grade) for _, _, grade in labels],
        }
    )
    scores = evaluate(Qrels.of(qrels), {"q": {f"d{at}": 1.0 for at in range(10)}}, ["NRBP", "APIA"], ties="bounds")
    for one in scores.estimates():
        assert one.ranges[0].kind == "sampled"
        assert one.ranges[0].low <= one.value <= one.ranges[0].high


def test_the_mean_over_orders_has_no_range_of_unjudged_documents() -> None:
    with pytest.raises(InputError, match="Fix: use ties=docid or ties=bounds with unjudged"):
        evaluate(QRELS, TIED, "RR", ties="expected", unjudged=True)


def test_measures_about_judging_have_no_range_of_unjudged_documents() -> None:
    scores = evaluate(QRELS, TIED, ["RBPResidual(p=0.8)", "Judged@2", "Unjudged@2", "RR"], unjudged=True)
    assert [len(one.ranges) for one in scores.estimates()] == [0, 0, 0, 1]


def test_ranges_in_csv_and_by_topic() -> None:
    scores = evaluate(QRELS, TIED, ["RR", "Judged@2"], ties="bounds", unjudged=True)
    summary = scores.summary(ci="none").csv().splitlines()
    assert summary[0].endswith("ties_kind,unjudged_low,unjudged_high,unjudged_kind,unjudged_judged")
    assert summary[1] == "run,RR,mean,0.5,,,1,0.5,1.0,exact,0.5,1.0,exact,0.6666666666666666"
    assert summary[2].endswith(",0.5,0.5,exact,,,,")
    by_topic = scores.csv().splitlines()
    assert by_topic[1] == "run,RR,q,0.5,0.5,1.0,exact,0.5,1.0,exact"
    rows = scores.summary(per_topic=True).topics().grid().rows
    assert rows[0][1] == "0.5000 ties 0.500-1.000 unjudged 0.500-1.000"
