"""`disagreement` and its reasons: each kind on small hand-made lists; pulls and tables by hand."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import evaluate, judge
from judged.comparison.slicing.topic_slices import slice_topics
from judged.data import sample
from judged.diagnosis.disagreement.disagree import disagree
from judged.diagnosis.disagreement.reasons import Reason, reasons
from judged.errors import InputError, JudgedWarning
from judged.scoring.measures import parse

if TYPE_CHECKING:
    from collections.abc import Sequence


def run_of(docs: Sequence[str]) -> dict[str, dict[str, float]]:
    return {"q": {doc: -float(at) for at, doc in enumerate(docs)}}


def why(grades: dict[str, int], a: str, b: str, first: str, second: str) -> dict[str, Reason]:
    """Give the reasons by kind; documents are letters, those without a grade unjudged."""
    lists = tuple(judge({"q": grades}, run_of(docs.split())) for docs in (a, b))
    return {one.kind: one for one in reasons((lists[0], lists[1]), (parse(first), parse(second)))}


BINARY = {"a": 1, "b": 1, "c": 1, "d": 1, "n": 0, "m": 0, "o": 0, "p": 0, "q": 0}


def test_below_the_cutoff() -> None:
    found = why(BINARY, "a b n m o p", "n a m b c d", "nDCG@2", "R@6")
    one = found["below the cutoff"]
    assert (one.measure, one.system, one.documents) == ("R@6", "the second", ("c", "d"))
    assert "finds 2 more relevant documents below rank 2: R@6 looks there, nDCG@2 does not" in one.text


def test_what_the_deeper_measure_does_not_see_is_no_reason() -> None:
    found = why(BINARY, "n a m o", "a n b c", "P@1", "RR")  # b and c come behind the first
    assert "below the cutoff" not in found


def test_what_speaks_against_the_preference_of_a_measure_is_no_reason() -> None:
    more = BINARY | {"e": 1}  # the first has two below rank 2, the second one; but that has a and b above
    assert "below the cutoff" not in why(more, "n m c d", "a b o e", "nDCG@2", "R@6")
    assert not why({"a": 2, "b": 1, "n": 0, "m": 0}, "a b n m", "b n a m", "nDCG@4", "DCG@4")  # both see the order
    both = why(BINARY, "a b c", "n a b", "P@2", "R@3")  # b falls below 2, and c is lost: both prefer the first
    assert "across the cutoff" not in both


def test_across_the_cutoff() -> None:
    found = why(BINARY, "a b n m o", "a n m b c", "P@2", "R@5")
    one = found["across the cutoff"]
    assert (one.measure, one.system, one.documents) == ("P@2", "the first", ("b",))
    assert one.text.startswith("the first has 1 relevant document in the first 2 that the second has below")
    assert one.text.endswith("R@5 counts the same in both lists")
    assert found["below the cutoff"].documents == ("c",)


def test_steps_across_the_cutoff_are_counted_both_ways() -> None:
    """`a` and `b` leave the first two, `c` enters them."""
    found = why(BINARY, "a b n c", "c n a b", "P@2", "R@4")["across the cutoff"]
    assert found.documents == ("a", "b")
    assert found.text == (
        "the first has 2 relevant documents in the first 2 that the second has below, 1 the other way round: P@2"
        " sees the step, R@4 counts the same in both lists"
    )


def test_first_relevant_and_what_the_other_measure_sees() -> None:
    found = why(BINARY, "a n m o b c d", "n a b c d m o", "RR", "P@5")
    one = found["first relevant"]
    assert (one.measure, one.system, one.documents) == ("RR", "the first", ("a", "b", "c", "d"))
    assert "stands at 1 rather than 2, and RR looks at no other" in one.text
    assert "the second has 3 other ones higher, which P@5 sees" in one.text


def test_first_relevant_where_the_other_list_has_none() -> None:
    found = why(BINARY, "n m a b c", "n a m o p", "RR@2", "P@5")
    assert "stands at 2 where the first has none" in found["first relevant"].text


def test_first_relevant_goes_by_the_level_of_its_measure() -> None:
    grades = {"a": 2, "b": 1, "c": 1, "d": 2, "n": 0, "m": 0}
    one = why(grades, "b a n m", "n m a c b", "RR(rel=2)@4", "P@5")["first relevant"]
    assert (one.system, one.documents[0]) == ("the first", "a")
    assert "stands at 2 rather than 3" in one.text  # b, of grade 1, is none for it


def test_grades() -> None:
    grades = {"a": 3, "b": 1, "c": 1, "n": 0, "m": 0}
    one = why(grades, "a n m", "b c n", "nDCG@3", "P@3")["grades"]
    assert (one.measure, one.system, set(one.documents)) == ("nDCG@3", "the first", {"a", "b", "c"})
    assert one.text == (
        "in the first 3 the second has 2 of grade 1 more, the first has 1 of grade 3 more: nDCG@3 weighs grades,"
        " P@3 sees only whether they are relevant"
    )


def test_grades_that_only_one_measure_counts() -> None:
    grades = {"a": 2, "b": 1, "c": 1, "n": 0, "m": 0}
    one = why(grades, "a n m", "b c n", "P(rel=2)@3", "P@3")["grades"]
    assert (one.measure, one.system, one.documents) == ("P@3", "the second", ("b", "c"))
    assert "2 more documents of a grade below 2: P@3 counts such documents, P(rel=2)@3 does not" in one.text


def test_number_against_place() -> None:
    one = why(BINARY, "a n m o", "n m b c", "nDCG@4", "P@4")["number against place"]
    assert (one.measure, one.system, one.documents) == ("nDCG@4", "the first", ("a",))
    assert "has 1 more relevant document, the first has its first at 1 rather than 3" in one.text


def test_order_within_the_first_k_is_asked_of_the_measures() -> None:
    grades = {"a": 2, "b": 1, "n": 0, "m": 0}
    one = why(grades, "a b n m", "b n a m", "nDCG@4", "R@4")["order within the first k"]
    ideal = 2 + 1 / math.log2(3)
    worth = (1 + 2 / 2) / ideal - 1
    assert (one.measure, one.system, one.documents) == ("nDCG@4", "the first", ("a", "b"))
    assert f"nDCG@4 gives {worth:+.3f} for it, R@4 does not see it" in one.text


def test_unjudged_documents() -> None:
    one = why({"a": 1, "b": 1, "n": 0}, "a n b", "x y a b", "P@2", "R@4")
    assert one["unjudged documents"].documents == ("x", "y")
    assert "2 of the first 2 of the second have no judgment, 0 of the first" in one["unjudged documents"].text
    skipped = why({"a": 1, "b": 1, "n": 0}, "a n b", "x a b", "nDCG@2", "nDCG(judged_only=true)@2")
    assert skipped["unjudged documents"].measure == "nDCG@2"


@given(
    data=st.data(),
    names=st.sampled_from([("nDCG@3", "R@6"), ("RR", "P@5"), ("AP", "P@2"), ("nDCG@5", "P@5"), ("P(rel=2)@4", "AP")]),
)
def test_reasons_speak_for_the_system_that_their_measure_prefers(data: Any, names: tuple[str, str]) -> None:
    docs = "abcdefgh"
    grades = {doc: data.draw(st.integers(0, 3)) for doc in docs[:6]}
    grades["a"] = 3
    orders_of = [data.draw(st.permutations(list(docs)))[: data.draw(st.integers(1, 8))] for _ in range(2)]
    lists = [judge({"q": grades}, run_of(order)) for order in orders_of]
    measures = (parse(names[0]), parse(names[1]))
    sides = {str(one): float(one(lists[1])[0] - one(lists[0])[0]) for one in measures}
    for one in reasons((lists[0], lists[1]), measures):
        assert sides[one.measure] * (1 if one.system == "the second" else -1) > 0
        assert set(one.documents) <= set(docs)


QRELS = {f"q{at}": {"a": 1, "b": 1, "c": 1, "n": 0} for at in range(4)}
EARLY = {f"q{at}": {"a": 3.0, "n": 2.0} for at in range(4)}
MANY = {f"q{at}": {"n": 4.0, "a": 3.0, "b": 2.0, "c": 1.0} for at in range(3)} | {"q3": {"a": 2.0, "n": 1.0}}


def test_differences_signs_and_pulls_by_hand() -> None:
    found = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"])
    assert found.systems == ("early", "many")
    assert found.differences == pytest.approx((-0.375, 0.5))
    assert found.opposite
    assert found.agreement == ((0, 0, 0), (0, 1, 0), (3, 0, 0))
    # RR: -.5 three times and 0, deviation .25; recall: 2/3 three times and 0, deviation 1/3; both in errors of n = 4
    pull = 0.5 / (0.25 * 2) + (2 / 3) / ((1 / 3) * 2)
    assert [one.pull for one in found.topics] == pytest.approx([pull] * 3 + [0.0])
    assert found.rests_on == 3
    assert [one.query_id for one in found.causes] == ["q0", "q1", "q2"]
    assert {reason.kind for reason in found.causes[0].reasons} == {"first relevant"}
    assert found.orders is None


def test_pulls_add_up_to_the_distance_of_the_means() -> None:
    runs = {run.name: run for run in sample.runs()}
    found = disagree(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    distance = abs(found.means[0].in_errors - found.means[1].in_errors)
    assert sum(one.pull for one in found.topics) == pytest.approx(distance)
    scores = evaluate(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    gaps = scores.values[1] - scores.values[0]
    assert found.differences == pytest.approx(gaps.mean(axis=1).tolist())
    assert found.means[0].error == pytest.approx(gaps[0].std(ddof=1) / math.sqrt(gaps.shape[1]))


def test_what_it_rests_on_is_the_least_number_from_the_top() -> None:
    runs = {run.name: run for run in sample.runs()}
    found = disagree(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    count = found.rests_on
    assert count is not None
    for left_out in range(count + 1):
        sums = np.array([one.differences for one in found.topics[left_out:]]).sum(axis=0)
        assert (sums[0] * sums[1] < 0) == (left_out < count)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ([0.1, 0.2, 0.1, 0.2], ""),  # both beyond doubt
        ([0.9, -0.8, 0.7, -0.6], " The difference in R@100 is not twice its standard error: it may be luck"),
        ([0.1] * 4, ""),  # the same on every topic: its standard error is 0
    ],
)
def test_a_difference_that_may_be_luck_is_named(second: list[float], said: str) -> None:
    values = np.array([[[0.5] * 4, [0.0] * 4], [[0.3, 0.2, 0.3, 0.2], second]])
    qrels = {f"q{at}": {"d": 1} for at in range(4)}
    scores = evaluate(qrels, {run: {query: ["d"] for query in qrels} for run in "ab"}, ["nDCG@10", "R@100"])
    found = replace(scores, values=values).disagree(measures=["nDCG@10", "R@100"])
    text = " ".join(found.sentences)
    assert found.opposite
    assert ("may be luck" in text) == bool(said)
    assert said in text


def test_fewer_topics_than_those_that_pull_most_may_turn_the_means() -> None:
    """Pulls put q1 first, then q2: without both, the means agree; without q2 alone they do, too."""
    values = np.array([[[0.5] * 3] * 2, [[0.0, 0.0, 0.4], [0.4, 0.5, 1.0]]])
    qrels = {f"q{at}": {"d": 1} for at in range(3)}
    scores = evaluate(qrels, {run: {query: ["d"] for query in qrels} for run in "ab"}, ["nDCG@10", "R@100"])
    found = replace(scores, values=values).disagree(measures=["nDCG@10", "R@100"])
    assert [one.query_id for one in found.topics] == ["q1", "q2", "q0"]
    assert found.rests_on == 2
    assert (values[1] - values[0])[:, :2].sum(axis=1) == pytest.approx([-1.0, -0.1])
    said = "It rests on 2 topics or fewer: without those that pull most the means no longer disagree."
    assert any(said in one for one in found.sentences)


def test_of_many_systems_the_pair_most_pulled_apart_and_tau() -> None:
    found = disagree(sample.qrels(), sample.runs(), ["nDCG@10", "RR"])
    assert found.chosen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # a run lacks a topic
        scores = evaluate(sample.qrels(), sample.runs(), ["nDCG@10", "RR"])
    assert found.orders == scores.orders().pairs[0]
    assert found.orders is not None
    assert found.orders.tau.discordant == 2
    assert set(found.systems) in [set(pair) for pair in found.orders.swapped]
    named = scores.disagree(measures=["nDCG@10", "RR"], pair=("tfidf", "bm25"))
    assert named.systems == ("tfidf", "bm25")
    assert not named.chosen
    assert not any(one.reasons for one in named.topics)
    assert "give qrels and runs" in named.sentences[-1]


def test_slices() -> None:
    kinds = slice_topics({"q0": {"k": "x"}, "q1": {"k": "x"}, "q3": {"k": "y"}}, "k", min_topics=2)
    found = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], slicing=kinds)
    rows = found.table("slices").grid().rows
    assert rows[0] == ("k=x", "2", "-0.5000", "+0.6667", "early / many", "0", "2")
    assert rows[1] == ("k=y", "1", "+0.0000", "+0.0000", "too few topics", "0", "0")


def test_where_less_is_better_the_sides_turn() -> None:
    qrels = {"q": {"a": 1, "n": 0}, "r": {"a": 1, "n": 0}}
    short, long = (dict.fromkeys(qrels, docs) for docs in ({"n": 2.0}, {"n": 2.0, "a": 1.0, "x": 0.5}))
    found = disagree(qrels, {"short": short, "long": long}, ["NumNonrelRet", "RR"])
    assert found.means[0].side == 0
    worse = disagree(qrels, {"a": {q: {"a": 1.0} for q in qrels}, "n": short}, ["NumNonrelRet", "RR"])
    assert [one.side for one in worse.means] == [-1, -1]
    assert worse.differences == (1.0, -1.0)
    assert not worse.opposite
    assert worse.rests_on is None


def test_forms_hold_the_same() -> None:
    found = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], queries={"q0": "cats"})
    made = json.loads(found.json())
    assert made["agreement"][2] == {"topics": "RR down", "up": 3, "same": 0, "down": 0, "all": 3}
    assert (made["reasons"][0]["query_id"], made["reasons"][0]["kind"]) == ("q0", "first relevant")
    assert made["measures"][0]["difference"] == pytest.approx(-0.375)
    assert "RR prefers early to many by 0.3750 (3.0 standard errors)" in found.text()
    assert "### q0: cats" in found.markdown()
    assert found.table("agreement").grid().rows[-1] == ("all", "3", "1", "0", "4")
    assert len(found.table()) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": ["RR", "RR"]}, "1 measures"),
        ({"runs": {"early": EARLY}}, "one run"),
        ({"pair": ("early", "late")}, "no run 'late'"),
        ({"pair": ("early", "early")}, "not two runs"),
        ({"limit": 0}, "limit must be a whole number of at least 1"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"qrels": QRELS, "runs": {"early": EARLY, "many": MANY}, "measures": ["RR", "R@4"]} | change
    with pytest.raises(InputError, match=message):
        disagree(**arguments)


@pytest.mark.parametrize(
    "policies",
    [{"dialect": "trec_eval-9"}, {"ties": "expected"}, {"ties": "docid-rising", "depth": 3}, {"topics": "both"}],
)
def test_policies_go_for_scores_and_reasons_alike(policies: dict[str, Any]) -> None:
    found = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], **policies)
    scores = evaluate(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], **policies)
    assert found.scores.policies == scores.policies
    assert found.differences == pytest.approx((scores.values[1] - scores.values[0]).mean(axis=1).tolist())
    assert found.causes[0].reasons[0].kind == "first relevant"


def test_a_topic_that_one_run_lacks_is_an_empty_list() -> None:
    found = disagree(QRELS, {"early": {"q0": EARLY["q0"]}, "many": MANY}, ["RR", "R@4"])
    assert found.means[0].better == 3
    assert all(one.scores[0][0] == 0 for one in found.topics if one.query_id != "q0")
    json.dumps(found.to_dict())


def test_the_picture_has_every_topic_in_its_place() -> None:
    pytest.importorskip("altair")
    from judged.results.charts import specification

    found = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"])
    points = next(one for one in specification(found.chart())["datasets"].values() if "t0" in one[0])
    assert [(one["t0"], one["x"], round(one["y"], 3), one["colour"]) for one in points] == [
        *((f"q{at}", -0.5, 0.667, "opposite sides") for at in range(3)),
        ("q3", 0.0, 0.0, "one sees no difference"),
    ]
    assert [one["label"] for one in points] == ["q0", "q1", "q2", ""]


def test_identical_systems_are_said_to_be() -> None:
    found = disagree(QRELS, {"early": EARLY, "again": EARLY}, ["RR", "R@4"])
    text = " ".join(found.sentences)
    assert found.identical
    assert "They have the same scores on every topic: there is nothing to disagree on." in text
    assert "one sees no difference" not in text


def test_a_measure_of_the_first_document_does_not_look_at_both_places() -> None:
    """The first has a and b among three, the second c alone, which stands first there."""
    found = why(BINARY, "n a b m", "c m n a b", "P@3", "RR")
    assert found["across the cutoff"].text.endswith("P@3 sees the step, RR looks at the first relevant document alone")
    assert found["first relevant"].text.startswith("the second's first relevant document stands at 1 rather than 2")


def test_slices_must_be_a_slicing() -> None:
    with pytest.raises(InputError, match="must be slices or a table, got 'k'"):
        disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], slicing="k")


def test_the_document_has_the_head_of_evaluate() -> None:
    document = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"]).to_dict()
    scores = evaluate(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"]).to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == scores[name]
