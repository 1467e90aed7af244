"""PairAccuracy, RR(which=last), Fallout, and Generality compared with plain counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judged
from judged import RR, MeasureError, SetP, SetR
from judged.scoring.measures import Accuracy, Fallout, Generality, PairAccuracy, parse
from strategies import Qrels, Run, collections, ranked

# --- pairs in the right order ---------------------------------------------------------------------------


@given(collections(), st.none() | st.integers(1, 6), st.sampled_from([1.0, 2.0]))
def test_every_pair_is_looked_at(pair: tuple[Qrels, Run], cutoff: int | None, rel: float) -> None:
    qrels, run = pair
    judged_list = judged.judge(qrels, run)
    scores = PairAccuracy(cutoff=cutoff, rel=rel)(judged_list)
    for topic_index, topic in enumerate(judged_list.query_ids):
        relevant = [qrels[topic].get(doc, -1.0) >= rel for doc in ranked(run.get(topic, {}))][:cutoff]
        relevant_ranks = [rank for rank, is_relevant in enumerate(relevant) if is_relevant]
        nonrelevant_ranks = [rank for rank, is_relevant in enumerate(relevant) if not is_relevant]
        in_order = [first < second for first in relevant_ranks for second in nonrelevant_ranks]
        expected = sum(in_order) / len(in_order) if in_order else float(bool(relevant_ranks))
        assert scores[topic_index] == pytest.approx(expected, rel=1e-14, abs=1e-15)


PRINTED = {
    # ir_measures 0.4.3, Accuracy, for the relevant a, d and m, the others b and e, c unjudged, ranked a b c d e
    None: 0.6666666666666667,
    4: 0.5,
    2: 1.0,
}


@pytest.mark.parametrize("cutoff", PRINTED)
def test_it_is_the_accuracy_of_ir_measures(cutoff: int | None) -> None:
    assert PairAccuracy(cutoff=cutoff).of_list([1, 0, None, 1, 0], missing=[1]) == PRINTED[cutoff]


def test_where_there_is_no_pair() -> None:
    """The score is 1 if all documents are relevant (ir_measures divides by 0), and 0 if none is."""
    assert PairAccuracy().of_list([1, 1]) == 1.0
    assert PairAccuracy().of_list([0, None], missing=[1]) == 0.0
    assert PairAccuracy(undefined="skip").of_list([0, 1]) == 0.0
    assert parse("PairAccuracy(undefined=0.5)").of_list([0]) == 0.5


def test_finding_more_can_lower_it() -> None:
    assert PairAccuracy().of_list([1, 0, 0]) == 1.0
    assert PairAccuracy().of_list([1, 0, 1]) == 0.5


def test_the_two_accuracies_are_different_things() -> None:
    """The first counts pairs of returned documents, the second documents of the collection: TP 1, TN 995."""
    assert PairAccuracy().of_list([0, 0, 1, 0], missing=[1]) == 1 - 2 / 3
    assert Accuracy(n=1000).of_list([0, 0, 1, 0], missing=[1]) == (1 + 995) / 1000


# --- first and last ---------------------------------------------------------------------------------------


@given(collections(), st.none() | st.integers(1, 6))
def test_the_last_relevant_document(pair: tuple[Qrels, Run], cutoff: int | None) -> None:
    qrels, run = pair
    judged_list = judged.judge(qrels, run)
    for topic_index, topic in enumerate(judged_list.query_ids):
        docs = ranked(run.get(topic, {}))[:cutoff]
        ranks = [rank for rank, doc in enumerate(docs, 1) if qrels[topic].get(doc, -1) >= 1]
        assert RR(cutoff=cutoff)(judged_list)[topic_index] == (1 / min(ranks) if ranks else 0.0)
        assert RR(cutoff=cutoff, which="last")(judged_list)[topic_index] == (1 / max(ranks) if ranks else 0.0)


def test_names_of_first_and_last() -> None:
    assert str(parse("RR(which=first)@10")) == "RR@10"
    assert str(parse("mrr(which=last)@10")) == "RR(which=last)@10"
    assert parse("RR(which=last)").of_list([0, 1, 0, 1, None], missing=[1]) == 1 / 4
    with pytest.raises(MeasureError, match=r"RR: which='both' is not allowed\. Fix: use one of first, last"):
        parse("RR(which=both)")


# --- collection size ----------------------------------------------------------------------------------------


@given(collections())
def test_precision_recall_fallout_and_generality_hold_each_other(pair: tuple[Qrels, Run]) -> None:
    """P = R G / (R G + F (1 - G)), the identity of the Cranfield report."""
    judged_list = judged.judge(*pair)
    precision, recall, fallout, generality = (
        measure(judged_list) for measure in (SetP(), SetR(), Fallout(n=50), Generality(n=50))
    )
    numerator = recall * generality
    denominator = numerator + fallout * (1 - generality)
    assert precision.tolist() == pytest.approx(
        [a / b if b else 0.0 for a, b in zip(numerator, denominator, strict=True)], rel=1e-12
    )


def test_fallout_by_hand() -> None:
    assert Fallout(n=100).of_list([1, 0, None, 2], missing=[1, 0]) == 2 / 97
    assert Fallout(n=100, rel=2).of_list([1, 0, None, 2], missing=[1, 0]) == 3 / 99
    assert Fallout(n=100, cutoff=2).of_list([1, 0, None, 2]) == 1 / 98
    assert Generality(n=8, rel=2).of_list([1, 0, None, 2], missing=[2, 0]) == 2 / 8
    assert Fallout(n=2).of_list([1, 1]) == 0.0  # nothing is not relevant


@pytest.mark.parametrize("written", ["Fallout(n=3)", "Accuracy(n=3)", "Generality(n=1)"])
def test_a_collection_smaller_than_what_was_seen_is_refused(written: str) -> None:
    with pytest.raises(MeasureError, match=r"more documents are returned or relevant than n=\d+\. Fix: use a higher n"):
        parse(written).of_list([0, 0, 1], missing=[1])
