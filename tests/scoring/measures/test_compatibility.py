"""Compat compared with the authors' script, with the formula computed with sets, and with ir_measures."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged import MeasureError
from judged.scoring.measures import Compat, parse
from shared_data import SHARED, needs_shared
from strategies import Qrels, Run, collections

FIXTURE = SHARED / "tool_fixtures" / "ir_measures"

PRINTED = {
    # what compatibility.py (claclark/Compatibility, commit 89ff27c) prints for compat.qrels and compat.run; ir_measures
    # 0.4.3 gives the same doubles here: both topics have some 1000 documents, no ties, and positive scores
    "Compat": {"31_1": 0.51779512165509, "31_2": 0.018400100569017922},
    "Compat(p=0.8)": {"31_1": 0.16723008845234535, "31_2": 0.00022806427320561776},
    "Compat(normalize=false)": {"31_1": 0.5169193697957316, "31_2": 0.018336027961735724},
    "Compat(p=0.5,normalize=false)": {"31_1": 0.008836478195067629, "31_2": 1.6399675229238614e-09},
}


@needs_shared
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_every_digit_that_the_authors_script_prints() -> None:
    scores = judged.evaluate(
        FIXTURE / "compat.qrels", FIXTURE / "compat.run", list(PRINTED), ties="docid-rising", topics="both"
    )
    assert scores.per_topic()[scores.run_names[0]] == PRINTED


def overlap(first: list[str], second: list[str], p: float) -> float:
    """Compute the rank-biased overlap by its definition: to depth 1000, divided by the sum of the weights."""
    weight, score, weights = 1.0, 0.0, 0.0
    for depth in range(1, 1001):
        shared = len(set(first[:depth]) & set(second[:depth]))
        score += weight * shared / depth
        weights += weight
        weight *= p
    return score / weights


@settings(max_examples=25)
@given(collections(), st.sampled_from([0.0, 0.5, 0.95, 1.0]), st.booleans())
def test_the_overlap_is_that_of_the_sets_to_the_last_bit(pair: tuple[Qrels, Run], p: float, normalize: bool) -> None:
    qrels, run = pair
    judged_list = judged.judge(qrels, run, ties="docid-rising")
    scores = Compat(p=p, normalize=normalize)(judged_list)
    for topic_index, topic in enumerate(judged_list.query_ids):
        docs = run.get(topic, {})
        ranking = sorted(sorted(docs, key=str.encode), key=lambda doc: -docs[doc])
        positions = {doc: rank for rank, doc in enumerate(ranking)}
        ideal = sorted(
            (doc for doc, grade in qrels[topic].items() if grade > 0),
            key=lambda doc: (-qrels[topic][doc], positions.get(doc, math.inf)),
        )
        expected = overlap(ranking, ideal, p)
        if normalize:
            expected = expected / overlap(ideal, ideal, p) if ideal else 0.0
        assert scores[topic_index] == expected, topic


def test_documents_of_one_grade_are_ordered_in_favor_of_the_ranking() -> None:
    """b, a of two equals is as good as a, b; of a better and a worse it is not: half of depth 1 is lost."""
    assert Compat(p=0.5).of_list([1, 1]) == 1.0
    assert Compat(p=0.5).of_list([2, 1]) == 1.0
    # shared: 0 of 1, then 2 of d. Sums with 0.5: 2 x (2 ln 2 - 1) over 1 + 2 x (2 ln 2 - 1)
    tail_sum = 2 * (2 * math.log(2) - 1)
    assert Compat(p=0.5).of_list([1, 2]) == pytest.approx(tail_sum / (1 + tail_sum), rel=1e-14)


def test_what_was_not_returned_comes_after_what_was_of_its_grade() -> None:
    """Unreturned equals stand last in the ideal: rank 1 is shared at every depth. 2 ln 2 / (1 + 2 (2 ln 2 - 1))."""
    series = 2 * math.log(2)
    assert Compat(p=0.5).of_list([1], missing=[1]) == pytest.approx(series / (1 + 2 * (series - 1)), rel=1e-14)


@pytest.mark.parametrize("added", [-10.0, 0.0, 10.0])
def test_a_constant_added_to_all_scores_changes_nothing(added: float) -> None:
    """ir_measures 0.4.3 prints 0.2436 where the one score is -1, and 0.7564 where it is 9: it compares the score
    with 0 for the document that was not returned, and ends its sums at depth 2. By its rule for positive scores:
    (1 + 0.95 / 2) / (1 + 0.95) = 0.7564; the authors go on to depth 1000."""
    value = judged.evaluate({"q": {"a": 1, "b": 1}}, {"q": {"a": added - 1}}, "Compat").value("Compat")
    assert value == overlap(["a"], ["a", "b"], 0.95) / overlap(["a", "b"], ["a", "b"], 0.95)
    assert round(value, 4) == 0.5942
    assert round((1 + 0.95 / 2) / (1 + 0.95), 4) == 0.7564


def test_depth_ends_at_1000() -> None:
    deep: list[Any] = [None] * 1000 + [1]
    assert Compat().of_list(deep) == 0.0
    assert Compat().of_list(deep[1:]) > 0.0


def test_many_topics_are_scored_as_one() -> None:
    """More topics than are held at a time: each has its own ideal."""
    qrels = {f"{number}": {"a": 1 + number % 2, "b": 1, "c": 0} for number in range(600)}
    run = {topic: {"b": 2.0, "a": 1.0} for topic in qrels}
    judged_list = judged.judge(qrels, run)
    even, odd = Compat().of_list([1, 1]), Compat().of_list([1, 2])
    assert even != odd
    assert Compat()(judged_list).tolist() == [odd if int(topic) % 2 else even for topic in judged_list.query_ids]


@pytest.mark.parametrize("wrong", ["p=1.5", "p=-0.1", "p=nan", "normalize=2"])
def test_wrong_parameters_are_refused(wrong: str) -> None:
    with pytest.raises(MeasureError, match=r"Compat: .* is not allowed\. Fix: "):
        parse(f"Compat({wrong})")
