"""Every order of documents, on both ways into the hits, against the plainest possible ranking."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import InputError, judge
from judged.scoring.judging import Precision, TiePolicy
from strategies import Qrels, Run, collections

TIES: list[TiePolicy] = ["docid", "docid-rising", "stable"]


def single(score: float) -> float:
    """Keep what 32 bits hold of a score."""
    try:
        return struct.unpack("f", struct.pack("f", score))[0]
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def plain(docs: dict[str, float], ties: TiePolicy, precision: Precision) -> list[str]:
    """Rank one topic with nothing but `sorted`."""
    ids = list(docs)
    if ties != "stable":
        ids.sort(key=lambda doc: doc.encode(), reverse=ties == "docid")
    return sorted(ids, key=lambda doc: -(single(docs[doc]) if precision == "single" else docs[doc]))


def table_of(run: Run) -> Any:
    rows = [(topic, doc, score) for topic, docs in run.items() for doc, score in docs.items()]
    names = ("query_id", "doc_id", "score")
    types = (pa.string(), pa.string(), pa.float64())
    return pa.table({name: pa.array([row[at] for row in rows], types[at]) for at, name in enumerate(names)})


@settings(max_examples=120)
@given(collections(), st.sampled_from(TIES), st.sampled_from(["double", "single"]), st.none() | st.integers(1, 5))
def test_hits_stand_where_a_plain_ranking_puts_them(
    pair: tuple[Qrels, Run], ties: TiePolicy, precision: Precision, depth: int | None
) -> None:
    qrels, run = pair
    given_runs: list[Any] = [run] + ([table_of(run)] if any(run.values()) else [])
    for given_run in given_runs:
        found = judge(qrels, given_run, ties=ties, precision=precision, depth=depth)
        hits = list(zip([found.query_ids[at] for at in found.topic], found.doc, found.rank.tolist(), strict=True))
        expected = [
            (topic, doc, rank)
            for topic in sorted(qrels, key=str.encode)
            for rank, doc in enumerate(plain(run.get(topic, {}), ties, precision)[:depth], 1)
            if doc in qrels[topic]
        ]
        assert hits == expected
        every = found.returned_docs
        assert list(zip(every.topic.tolist(), every.rank.tolist(), every.doc.to_pylist(), strict=True)) == [
            (code, rank, doc)
            for code, topic in enumerate(found.query_ids)
            for rank, doc in enumerate(plain(run.get(topic, {}), ties, precision)[:depth], 1)
        ]


def test_scores_that_differ_below_32_bits_tie_in_single_precision_only() -> None:
    # trec_eval 9.0.8 prints recip_rank 1.0 for this, trec_eval 10 prints 0.5 (the two scores are one float)
    qrels, run = {"q": {"b": 1}}, {"q": {"a": 0.100000002, "b": 0.100000001}}
    assert judge(qrels, run).rank.tolist() == [2]
    assert judge(qrels, run, precision="single").rank.tolist() == [1]
    assert judge({"q": {"b": 1}}, {"q": {"a": 16777217.0, "b": 16777216.0}}, precision="single").rank.tolist() == [1]
    assert judge({"q": {"b": 1}}, {"q": {"a": 1e300, "b": 1e299}}, precision="single").rank.tolist() == [1]  # both inf


def test_the_rank_column_can_order_all(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q Q0 a 3 9.0 x\nq Q0 b 1 1.0 x\nq Q0 c 2 5.0 x\n")
    qrels = {"q": {"a": 1, "b": 2, "c": 3}}
    assert judge(qrels, path).doc == ["a", "c", "b"]
    found = judge(qrels, path, ties="rank")
    assert found.doc == ["b", "c", "a"]
    assert found.returned_docs.doc.to_pylist() == ["b", "c", "a"]
    assert judged.evaluate(qrels, path, "RR(rel=2)", ties="rank").value("RR(rel=2)") == 1.0


def test_an_order_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"ties=rank requires a rank column\. Fix: use another"):
        judge({"q": {"a": 1}}, {"q": {"a": 1.0}}, ties="rank")
    with pytest.raises(InputError, match="unknown value of `ties`: 'random'"):
        judge({"q": {"a": 1}}, {"q": {"a": 1.0}}, ties="random")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"unknown precision .half.\. Fix: use one of double, single"):
        judge({"q": {"a": 1}}, {"q": {"a": 1.0}}, precision="half")  # type: ignore[arg-type]


def test_an_ideal_ranking_has_no_unjudged_documents() -> None:
    found = judge({"q": {"a": 1, "c": 0}}, {"q": {"a": 1.0, "b": 2.0}})
    assert found.returned_docs.doc.to_pylist() == ["b", "a"]
    for other in (found.ideal, found.condensed):
        with pytest.raises(judged.MeasureError, match="has no unjudged documents"):
            _ = other.returned_docs


def test_topics_that_do_not_count_are_left_out_of_everything() -> None:
    found = judge({"1": {"a": 1}, "2": {"a": 1}}, {"2": {"b": 1.0}, "3": {"c": 1.0}})
    assert found.returned_docs.topic.tolist() == [1]
    assert found.over("both").returned_docs.topic.tolist() == [0]
    assert found.over("run").returned_docs.doc.to_pylist() == ["b", "c"]


def test_a_policy_travels_with_the_result() -> None:
    scores = judged.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR", ties="stable", precision="single", depth=3)
    assert scores.to_dict()["policies"]["ties"] == "stable"
    assert scores.to_dict()["policies"]["precision"] == "single"
    assert np.array_equal(scores.values, [[[1.0]]])


def test_nobody_can_change_a_judged_list() -> None:
    found = judge({"q": {"a": 1}}, {"q": {"a": 1.0}})
    for one in (found, found.ideal, found.condensed, found.over("both")):
        with pytest.raises(ValueError, match="read-only"):
            one.grade[:] = 5
