"""Ties: lists on which the score is certain, depths, facts of all documents, and how much is tied."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from judged import RR, InputError, MeasureError, judge
from judged.scoring.judging.unjudged import repeat_topics
from judged.scoring.measures import parse
from judged.scoring.uncertainty.ties import tie_expected, tie_range, tied_share
from scoring.uncertainty.enumeration import tied

# --- what is certain --------------------------------------------------------------------------------------


def test_without_ties_the_score_is_the_score() -> None:
    judged = judge({"q": {"a": 1, "b": 2, "c": 0}}, {"q": {"b": 3.0, "x": 2.0, "c": 1.0, "a": 0.5}})
    for one in (parse("nDCG"), parse("AP"), parse("Q@2"), parse("ERR(max=2)")):
        mean, ends = tie_expected(judged, one), tie_range(judged, one)
        assert mean.values.tolist() == ends.low.tolist() == ends.high.tolist() == one(judged).tolist()
        assert mean.kind.tolist() == ends.kind.tolist() == ["exact"]


def test_documents_that_are_alike_leave_it_certain() -> None:
    judged = judge({"q": {"a": 1, "b": 1}}, {"q": {"x": 3.0, "y": 3.0, "a": 2.0, "b": 2.0}})
    for one in (parse("nDCG"), parse("Q"), parse("InfAP")):
        assert tie_range(judged, one, max_orders=0).low.tolist() == one(judged).tolist()
        assert tie_range(judged, one, max_orders=0).kind.tolist() == ["exact"]


def test_where_the_rank_column_orders_there_are_no_ties() -> None:
    rows = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1.0, 1.0], "rank": [1, 2]}
    judged = judge({"q": {"b": 1}}, pa.table(rows), ties="rank")
    assert tie_range(judged, RR()).high.tolist() == [0.5]
    assert tie_expected(judged, RR()).values.tolist() == [0.5]


def test_a_run_without_scores_has_scores_of_sets_alone() -> None:
    judged = judge({"q": {"a": 1}}, pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"]}))
    assert tie_expected(judged, parse("SetP")).values.tolist() == [0.5]
    assert tie_range(judged, parse("SetP")).kind.tolist() == ["exact"]
    with pytest.raises(MeasureError, match="requires a ranking"):
        tie_expected(judged, RR())
    with pytest.raises(InputError, match=r"requires scores, but this run has no scores\. Fix: leave out depth"):
        tie_expected(judged, parse("SetP"), depth=1)


def test_a_topic_that_is_left_out_stays_out() -> None:
    judged = judge({"p": {"a": 0}, "q": {"a": 1}}, {"p": {"a": 1.0, "b": 1.0}, "q": {"a": 1.0, "b": 1.0}})
    mean = tie_expected(judged, parse("AP(undefined=skip)"))
    assert np.isnan(mean.values).tolist() == [True, False]
    assert mean.kind.tolist() == ["exact", "exact"]
    assert np.isnan(tie_range(judged, parse("Q(undefined=skip)")).low).tolist() == [True, False]
    assert tie_range(judged, parse("RR(undefined=-1)")).low.tolist() == [-1.0, 0.5]


def test_a_depth_cuts_every_order() -> None:
    """One of three tied documents is above depth 2, and so in every third order the relevant one."""
    judged = judge({"q": {"a": 1}}, {"q": {"z": 2.0, "a": 1.0, "b": 1.0, "c": 1.0}})
    assert tie_expected(judged, RR(), depth=2).values[0] == pytest.approx(1 / 2 * 1 / 3)
    assert tie_expected(judged, parse("SetR"), depth=2).values[0] == pytest.approx(1 / 3)
    assert tie_expected(judged, parse("SetP"), depth=2).values[0] == pytest.approx(1 / 2 * 1 / 3)
    ends = tie_range(judged, parse("SetP"), depth=2)
    assert (ends.low[0], ends.high[0]) == (0.0, 0.5)


def test_a_depth_within_a_group_changes_what_holds_of_a_measure() -> None:
    """One relevant document at rank 1, one tied with two others; at depth 3, the worst for AP is to find it there."""
    judged = judge({"q": {"a": 1, "b": 1, "c": 0}}, {"q": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0}})
    orders = [(1 + 1) / 2, (1 + 2 / 3) / 2, 1.0]
    ends = tie_range(judged, parse("AP(norm=returned)"), depth=3)
    assert (ends.low[0], ends.high[0]) == pytest.approx((min(orders), max(orders)), rel=1e-15)
    found = tie_expected(judged, parse("AP(norm=returned)"), depth=3, max_orders=0)
    assert found.values[0] == pytest.approx(sum(orders) / 3)
    pairs = judge({"q": {"a": 1, "b": 1, "c": 0}}, {"q": {"a": 2.0, "b": 1.0, "d": 1.0}})
    assert tie_expected(pairs, parse("Bpref"), depth=2).values[0] == (1.0 + 0.5) / 2  # in one of two orders b is lost


def test_how_many_are_judged_above_a_depth_is_open() -> None:
    """Below ``a`` three share a score: b not relevant, c relevant, d unjudged; two of them are above depth 3."""
    judged = judge({"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0}})
    orders = [(1 + 2 / 3) / 2, 1 / 2, (1 + 1) / 2, (1 + 1) / 2, 1 / 2, (1 + 1) / 2]  # bc(d), bd(c), cb, cd, db, dc
    for limit in (0, 100):
        found = tie_expected(judged, parse("AP(judged_only=true)"), depth=3, max_orders=limit, samples=4000)
        assert found.values[0] == pytest.approx(sum(orders) / 6, rel=0.02 if limit == 0 else 1e-14)
        assert found.kind[0] == ("exact" if limit else "sampled")
    ends = tie_range(judged, parse("AP(judged_only=true)"), depth=3)
    assert (ends.low[0], ends.high[0]) == (0.5, 1.0)


def test_a_budget_is_no_cutoff() -> None:
    """BPMD's budget grows with what is found, so that ranks below k are read in some orders."""
    one = parse("BPMD(medium=0,max=4)@5")
    judged = judge({"q": {"d": 1, "f": 1}}, {"q": {"a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0, "e": 5.0, "f": 5.0}})
    orders = [one.of_list([None, None, None, 1, *last]) for last in ((None, 1), (1, None))]
    assert tie_expected(judged, one).values[0] == pytest.approx(sum(orders) / 2, rel=1e-12)
    assert one.of_list([None, None, None, 1, None, None]) < min(orders)


@pytest.mark.parametrize("labels", [{"b": 1}, {"a": 1}])
def test_a_list_that_was_cut_within_a_tie_is_refused(labels: dict[str, int]) -> None:
    """``b`` stands above the cut, ``a`` below it, where the list does not show it."""
    run = {"q": {"z": 2.0, "a": 1.0, "b": 1.0}}
    with pytest.raises(
        InputError, match=r"tied documents, but depth 2 .*topic q.*`judge` without a depth, and use depth=2"
    ):
        tie_range(judge({"q": labels}, run, depth=2), RR())
    assert tie_range(judge({"q": {"z": 1}}, run, depth=1), RR()).high.tolist() == [1.0]


# --- facts of all documents -------------------------------------------------------------------------------


def test_ties_among_unjudged_documents_count_where_they_are_seen() -> None:
    """Two unjudged documents of two groups share a score: the first rank gets all the attention with p = 0."""
    documents = {"x": {"group": "a"}, "y": {"group": "b"}, "z": {"group": "a"}}
    judged = judge({"q": {"z": 1}}, {"q": {"x": 2.0, "y": 2.0, "z": 1.0}}, documents=documents)
    fair = parse("AWRF(p=0)")
    ends = tie_range(judged, fair)
    assert (ends.low[0], ends.high[0]) == pytest.approx((1 - math.log(2), 1.0))
    assert tie_expected(judged, fair).values[0] == pytest.approx(1 - math.log(2) / 2)


def test_a_list_that_knows_its_documents_is_not_read_again() -> None:
    """Copies of a topic have no ids of their own; where they are judged documents, ties are known there too."""
    documents = {"x": {"group": "a"}, "y": {"group": "b"}}
    judged = judge({"q": {"x": 1, "y": 0}}, {"q": {"x": 1.0, "y": 1.0}}, documents=documents)
    both = repeat_topics(replace(judged, stored_docs=judged.returned_docs), np.array([0, 0]))
    ends = tie_range(both, parse("AWRF(p=0)"))
    assert ends.low.tolist() == pytest.approx([1 - math.log(2)] * 2)
    assert ends.high.tolist() == [1.0, 1.0]


def test_what_was_left_out_at_a_depth_stays_out() -> None:
    documents = {doc: {"group": doc} for doc in "xyz"}
    qrels, run = {"q": {"x": 1}}, {"q": {"x": 2.0, "y": 1.0, "z": 1.0}}
    whole, first = (judge(qrels, run, documents=documents, depth=depth) for depth in (None, 1))
    fair = parse("AWRF(p=1)")
    assert tie_expected(first, fair).values.tolist() == tie_expected(whole, fair, depth=1).values.tolist() == [1.0]
    assert tie_expected(first, fair, depth=3).values.tolist() == [1.0]


def test_holes_are_counted_over_all_rotations() -> None:
    judged = tied(1, *[None] * 9)
    found = tie_expected(judged, parse("Hole@3"), max_orders=0)
    assert found.kind[0] == "exact"
    assert found.values[0] == pytest.approx(9 / 10)  # each of three places holds one of the nine in ten


# --- how much is tied -------------------------------------------------------------------------------------


def test_the_share_of_what_is_tied() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 1, "d": 2, "e": 2}, "r": {"a": 1}, "s": {"a": 0, "b": -1}, "t": {"a": 1}}
    run = {
        "q": {"a": 9.0, "b": 8.0, "c": 8.0, "x": 8.0, "d": 7.0, "e": 7.0},
        "r": {"x": 2.0, "y": 2.0, "a": 1.0},
        "s": {"a": 1.0, "b": 1.0, "x": 1.0},
    }
    judged = judge(qrels, run)
    whole, first = tied_share(judged, None), tied_share(judged, 1)
    assert whole.share.tolist() == [4 / 5, 0.0, 1.0, 0.0]
    assert whole.matters.tolist() == [True, False, False, False]
    assert first.share.tolist() == [0.0, 0.0, 1.0 if judged.rank[judged.topic == 2][0] == 1 else 0.0, 0.0]
    assert first.matters.tolist() == [False] * 4
    below = tied_share(judge({"q": {"a": 1}}, {"q": {"b": 1.0, "a": 1.0}}), 1)
    assert (below.share.tolist(), below.matters.tolist()) == ([0.0], [True])  # b is first, and a could be
