"""`needs`: statistics by hand, judgments of needs, consistency against the literature, and tests over needs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import evaluate
from judged.data import Qrels, Run
from judged.data.attributes import Attributes
from judged.data.topics import Topics
from judged.diagnosis.needs.needs import (
    consistency,
    expand_qrels,
    expand_to_variants,
    needs,
    needs_of,
    ranking_similarity,
)
from judged.errors import InputError
from judged.stats.paired import paired_test
from judged.stats.rank_biased_overlap import rbo

if TYPE_CHECKING:
    from pathlib import Path

QRELS = {"7": {"a": 1}, "8": {"a": 1}, "9": {"a": 1}}
MAPPING = {"7-1": "7", "7-2": "7", "7-3": "7", "8-1": "8", "8-2": "8", "9-1": "9"}


def run_with_relevant_at(rank: int) -> dict[str, float]:
    """Return a ranking with the relevant document at `rank`."""
    return {("a" if i == rank else f"x{i}"): -float(i) for i in range(1, rank + 1)}


OLD = {
    "7-1": run_with_relevant_at(1),
    "7-2": run_with_relevant_at(2),
    "7-3": run_with_relevant_at(4),
    "8-1": run_with_relevant_at(2),
    "8-2": run_with_relevant_at(2),
    "9-1": run_with_relevant_at(1),
}
NEW = {
    "7-1": run_with_relevant_at(1),
    "7-2": run_with_relevant_at(1),
    "7-3": run_with_relevant_at(1),
    "8-1": run_with_relevant_at(1),
    "8-2": run_with_relevant_at(4),
    "9-1": run_with_relevant_at(2),
}


def test_every_number_by_hand() -> None:
    result = needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, "RR")
    assert result.needs == ("7", "8", "9")
    assert result.query_ids == (("7-1", "7-2", "7-3"), ("8-1", "8-2"), ("9-1",))
    assert result.mean[0, 0].tolist() == pytest.approx([(1 + 0.5 + 0.25) / 3, 0.5, 1.0])
    assert result.worst[:, 0].tolist() == [[0.25, 0.5, 1.0], [1.0, 0.25, 0.5]]
    assert result.best[:, 0].tolist() == [[1.0, 0.5, 1.0], [1.0, 1.0, 0.5]]
    assert result.variants[0, 0].tolist() == [3, 2, 1]
    mean = 1.75 / 3
    deviation = math.sqrt(((1 - mean) ** 2 + (0.5 - mean) ** 2 + (0.25 - mean) ** 2) / 2)
    assert result.deviation[0, 0, :2].tolist() == pytest.approx([deviation, 0.0])
    assert math.isnan(result.deviation[0, 0, 2])  # one wording has no spread
    old = result.summary("old", "RR")
    assert old.mean == pytest.approx((mean + 0.5 + 1) / 3)  # each need counts once, 7 no more than 9
    assert old.worst == pytest.approx((0.25 + 0.5 + 1) / 3)
    assert old.best == pytest.approx((1 + 0.5 + 1) / 3)
    assert old.deviation == pytest.approx(deviation / 2)
    assert (
        "the judgments are for information needs: each of 6 query variants gets the judgments of its need"
        in result.warnings
    )
    assert "1 of 3 needs has only one wording: its variation is unknown" in result.warnings


def test_systems_are_compared_over_needs() -> None:
    result = needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, "RR")
    assert result.comparison is not None
    (pair,) = result.comparison.pairs
    expected = paired_test(result.mean[0, 0], result.mean[1, 0])
    assert pair.result.n == 3
    assert (pair.result.difference, pair.result.p) == (expected.difference, expected.p)
    assert "over 3 needs" in result.sentences[-1]


def test_scores_that_were_already_made_give_the_same() -> None:
    scores = evaluate(expand_qrels(QRELS, MAPPING), {"old": OLD, "new": NEW}, ["RR", "P@1"])
    from_scores, direct = scores.needs(MAPPING), needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, ["RR", "P@1"])
    assert from_scores.mean.tolist() == direct.mean.tolist()
    assert np.isnan(from_scores.overlap).all()
    assert not np.isnan(direct.overlap[:, :2]).any()
    for row, run in enumerate(("old", "new")):
        summary = direct.summary(run, "P@1")
        assert (summary.overlap, summary.rbo) == (np.nanmean(direct.overlap[row]), np.nanmean(direct.rbo[row]))
    assert direct.summary("old").overlap != direct.summary("new").overlap


def test_one_run_has_nothing_to_be_compared_with() -> None:
    result = needs(QRELS, OLD, MAPPING, "RR")
    assert result.comparison is None
    assert "pairs" not in result.to_dict()


def test_where_less_is_better_the_highest_is_the_worst() -> None:
    qrels = {"7": {"a": 1, "n": 0, "m": 0}, "8": {"a": 1}}
    run = {"7-1": {"n": 2.0, "m": 1.0}, "7-2": {"a": 1.0}, "8-1": {"a": 1.0}}
    result = needs(qrels, run, {"7-1": "7", "7-2": "7", "8-1": "8"}, ["RR", "Fallout(n=10)"])
    assert result.worst[0, 1, 0] == pytest.approx(2 / 9)
    assert result.best[0, 1, 0] == 0.0


def test_sums_are_left_out_and_alone_refused() -> None:
    result = needs(QRELS, OLD, MAPPING, ["RR", "NumRel"])
    assert result.scores.measure_names == ("RR",)
    assert "excluded because they are not means over topics: NumRel" in result.warnings
    with pytest.raises(InputError, match="NumRel is not a mean"):
        needs(QRELS, OLD, MAPPING, "NumRel")


def test_topics_without_a_need_are_left_out_and_named() -> None:
    qrels = expand_qrels(QRELS, MAPPING)
    mapping = {query: need for query, need in MAPPING.items() if need != "9"}
    result = needs(qrels, OLD, mapping, "RR")
    assert result.needs == ("7", "8")
    assert "excluded because their information need is unknown: 1 of 6 topics: 9-1" in result.warnings
    with pytest.raises(InputError, match="no topic has an information need"):
        needs(qrels, OLD, {"z": "1"}, "RR")


def test_consistency_is_the_intraclass_correlation() -> None:
    # Shrout and Fleiss (1979), table 2: six targets, four ratings each; their ICC(1,1) is .17
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
    result = consistency(ratings.ravel(), np.repeat(np.arange(6), 4))
    assert round(result.value, 2) == 0.17
    assert result.interval is not None
    assert 0 <= result.interval[0] <= result.value <= result.interval[1] <= 1


def test_consistency_of_groups_of_unequal_size_by_hand() -> None:
    scores, need = np.array([0.0, 0.2, 0.4, 1.0, 0.8]), np.array([0, 0, 0, 1, 1])
    between = 3 * (0.2 - 0.48) ** 2 + 2 * (0.9 - 0.48) ** 2  # one degree of freedom
    within = (0.08 + 0.02) / 3
    typical_size = 5 - (9 + 4) / 5
    variance = (between - within) / typical_size
    assert consistency(scores, need).value == pytest.approx(variance / (variance + within))


@pytest.mark.parametrize(
    ("scores", "need", "value"),
    [
        ([0.1, 0.1, 0.7, 0.7], [0, 0, 1, 1], 1.0),  # wording does not matter
        ([0.1, 0.7, 0.1, 0.7], [0, 0, 1, 1], 0.0),  # needs do not differ
        ([0.3, 0.3, 0.3, 0.3], [0, 0, 1, 1], math.nan),  # nothing varies
        ([0.1, 0.2, 0.3], [0, 1, 2], math.nan),  # one wording each
        ([0.1, 0.2, 0.3], [0, 0, 0], math.nan),  # one need
        ([0.1, 0.1, 0.7, 0.7, math.nan], [0, 0, 1, 1, 1], 1.0),
    ],
)
def test_consistency_at_its_ends(scores: list[float], need: list[int], value: float) -> None:
    assert consistency(np.array(scores), np.array(need)).value == pytest.approx(value, nan_ok=True)


@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    shift=st.floats(-5, 5),
    scale=st.floats(0.1, 10),
    seed=st.integers(0, 1000),
)
def test_consistency_is_invariant_to_shift_and_scale(sizes: list[int], shift: float, scale: float, seed: int) -> None:
    need = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.random.default_rng(seed).random(len(need))
    original, transformed = (consistency(values, need) for values in (scores, scores * scale + shift))
    assert original.value == pytest.approx(transformed.value, nan_ok=True, abs=1e-7)
    assert math.isnan(original.value) or 0 <= original.value <= 1


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """100 needs with 3 wordings, and half of the variance between needs. Wordings as topics would be overconfident."""
    rng = np.random.default_rng(5)
    need = np.repeat(np.arange(100), 3)
    hits = 0
    for _ in range(200):
        scores = rng.normal(size=100)[need] + rng.normal(size=300)
        interval = consistency(scores, need).interval
        assert interval is not None
        hits += interval[0] <= 0.5 <= interval[1]
    assert 184 <= hits <= 197  # 95 %


def test_likeness_of_rankings_by_hand() -> None:
    run = Run.of({"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"b": 3.0, "a": 2.0, "d": 1.0}, "3": {}, "4": {"a": 1.0}})
    overlap, biased = ranking_similarity(run, [["1", "2", "3"], ["4"], ["3", "4"]], cutoff=3)
    assert overlap[0] == pytest.approx(2 / 3)
    assert biased[0] == rbo(np.array([1, 2, 3, 0]), np.array([2, 1, 0, 3])).value
    assert np.isnan(overlap[1:]).all()  # one wording, or one that returned something
    shallow, _ = ranking_similarity(run, [["1", "2"]], cutoff=1)
    assert shallow.tolist() == [0.0]


def test_likeness_of_many_wordings_is_that_of_some_pairs() -> None:
    run = Run.of({str(query): {"a": 2.0, f"d{query % 2}": 1.0} for query in range(40)})
    overlap, _ = ranking_similarity(run, [[str(query) for query in range(40)]], cutoff=2)
    share = 2 * (20 * 19 / 2) / (40 * 39 / 2)  # of the pairs that have both documents in common
    assert overlap[0] == pytest.approx(share + (1 - share) / 2, abs=0.05)


def test_judgments_of_needs_become_those_of_queries() -> None:
    qrels = Qrels.of([{"query_id": "7", "doc_id": "a", "relevance": 2, "iteration": "s1"},
                      {"query_id": "7", "doc_id": "a", "relevance": 0, "iteration": "s2"},
                      {"query_id": "5", "doc_id": "b", "relevance": 1, "iteration": "s1"}])  # fmt: skip
    expanded = expand_qrels(qrels, {"7-1": "7", "7-2": "7", "6-1": "6"})
    assert expanded.table.to_pylist() == [
        {"query_id": query, "doc_id": "a", "relevance": grade, "iteration": part}
        for query in ("7-1", "7-2")
        for grade, part in ((2.0, "s1"), (0.0, "s2"))
    ]
    with pytest.raises(InputError, match="no information need in the file has judgments"):
        expand_qrels(qrels, {"x": "y"})


def test_qrels_are_expanded_where_they_are_of_needs_only() -> None:
    by_query = Qrels.of({"7-1": {"a": 1}, "7-2": {"a": 1}})
    assert expand_to_variants(by_query, {"7-1": "7", "7-2": "7"}) == (by_query, "")
    original, note = expand_to_variants(
        Qrels.of({"7": {"a": 1}}), {"7": "7", "7-2": "7"}
    )  # the query itself is a wording
    assert original.topics == ("7", "7-2")
    assert note
    with pytest.raises(InputError, match="'2' is both a query id and the name of a need"):
        expand_to_variants(Qrels.of({"1": {"a": 1}, "2": {"a": 1}}), {"1": "1", "2": "1", "3": "2", "4": "2"})


def test_where_needs_are_named(tmp_path: Path) -> None:
    expected = {"q1": "7", "q2": "7", "q3": "8"}
    (tmp_path / "needs.csv").write_text("query_id,topic_id,words\nq1,7,3\nq2,7,4\nq3,8,5\n")
    assert needs_of(tmp_path / "needs.csv") == expected
    (tmp_path / "zeros.tsv").write_text("query_id\tneed\nq1\t007\nq2\t008\n")
    assert needs_of(tmp_path / "zeros.tsv") == {"q1": "007", "q2": "008"}
    topics = Topics.of(
        {"q1": {"text": "a", "info": "7"}, "q2": {"text": "b", "info": "7"}, "q3": {"text": "c", "info": "8"}}
    )
    assert needs_of(topics) == expected  # the only attribute
    assert needs_of(Attributes.of({"q1": {"b": 7, "need": "x"}, "q2": {"b": 8}}), "b") == {"q1": "7", "q2": "8"}
    assert needs_of({1: 7, "q2": "8"}) == {"1": "7", "q2": "8"}
    with pytest.raises(InputError, match="it is unclear which column contains the information needs"):
        needs_of({"q1": {"a": 1, "b": 2}})
    with pytest.raises(InputError, match="no attribute 'c'"):
        needs_of({"q1": {"a": 1, "b": 2}}, "c")


def test_the_widest_needs_stand_first_with_their_wordings() -> None:
    result = needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, "RR", queries={"7-3": "cats", "8-2": "dogs"})
    table = result.needs_table("old", worst=2)
    assert [row[:6] for row in table.grid().rows] == [
        ("7", "7-3", "cats", "7-1", "", "3"), ("8", "8-1", "", "8-1", "", "2"),
    ]  # fmt: skip
    assert [row[0] for row in result.needs_table("new").grid().rows] == ["8", "7", "9"]
    with pytest.raises(InputError, match="'other' does not exist"):
        result.needs_table("other")


def test_forms_hold_the_same() -> None:
    result = needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, ["RR", "P@1"], queries={"7-3": "cats", "8-2": "dogs"})
    document: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    assert [row["mean"] for row in document["results"]] == [summary.mean for summary in result.summaries]
    assert document["by_need"][2]["deviation"] is None
    assert [row["measure"] for row in document["pairs"]] == ["RR", "P@1"]
    assert len(result.table()) == 2 * 2 * 3
    text = result.text(width=100)
    assert "3 information needs, worded by 6 queries" in text
    assert "    worst: dogs" in text.splitlines()  # of the run with the higher mean
    assert "| new |" in result.markdown()


def test_one_need_and_one_query_are_called_one() -> None:
    result = needs({"7": {"a": 1}}, at_rank_two(), {"7-1": "7"}, "RR")
    assert result.sentences[0].startswith("1 information need, worded by 1 query: each need counts once")
    assert result.title == "1 need in several wordings"
    with pytest.raises(InputError, match=r"Fix: set column= \(--column\) to one of a, b"):
        needs_of({"q1": {"a": 1, "b": 2}})


def at_rank_two() -> dict[str, dict[str, float]]:
    return {"7-1": run_with_relevant_at(2)}


def test_the_head_of_the_document_is_that_of_evaluate() -> None:
    qrels = expand_qrels(QRELS, MAPPING)
    document = needs(qrels, {"old": OLD, "new": NEW}, MAPPING, "RR", ties="stable").to_dict()
    expected = evaluate(qrels, {"old": OLD, "new": NEW}, "RR", ties="stable").to_dict()
    assert {name: document[name] for name in ("judged", "versions", "qrels", "runs")} == {
        name: expected[name] for name in ("judged", "versions", "qrels", "runs")
    }
    assert document["policies"]["ties"] == "stable"


def test_the_picture_goes_from_worst_to_best() -> None:
    pytest.importorskip("altair")
    from judged.results.charts import specification

    result = needs(QRELS, {"old": OLD, "new": NEW}, MAPPING, "RR")
    rows = next(iter(specification(result.chart("new RR"))["datasets"].values()))
    assert [(row["y"], row["x_low"], row["x"], row["x_high"]) for row in rows] == [
        ("7", 1.0, 1.0, 1.0), ("8", 0.25, 0.625, 1.0), ("9", 0.5, 0.5, 0.5),
    ]  # fmt: skip
