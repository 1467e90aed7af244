"""`disagree`: each kind of reason on small hand-made lists; pulls and tables by hand."""

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
    return {"q": {doc: -float(i) for i, doc in enumerate(docs)}}


def reasons_by_kind(grades: dict[str, int], a: str, b: str, first: str, second: str) -> dict[str, Reason]:
    """Return the reasons by kind. Documents are letters; those without a grade are unjudged."""
    lists = tuple(judge({"q": grades}, run_of(docs.split())) for docs in (a, b))
    return {reason.kind: reason for reason in reasons((lists[0], lists[1]), (parse(first), parse(second)))}


BINARY = {"a": 1, "b": 1, "c": 1, "d": 1, "n": 0, "m": 0, "o": 0, "p": 0, "q": 0}


def test_below_the_cutoff() -> None:
    result = reasons_by_kind(BINARY, "a b n m o p", "n a m b c d", "nDCG@2", "R@6")
    reason = result["below the cutoff"]
    assert (reason.measure, reason.system, reason.documents) == ("R@6", "the second run", ("c", "d"))
    assert (
        "has 2 more relevant documents at ranks deeper than 2: R@6 counts these documents, but nDCG@2 does not"
        in reason.text
    )


def test_what_the_deeper_measure_does_not_see_is_no_reason() -> None:
    result = reasons_by_kind(BINARY, "n a m o", "a n b c", "P@1", "RR")  # b and c come behind the first
    assert "below the cutoff" not in result


def test_what_speaks_against_the_preference_of_a_measure_is_no_reason() -> None:
    more = BINARY | {"e": 1}  # the first has two below rank 2, the second one; but that has a and b above
    assert "below the cutoff" not in reasons_by_kind(more, "n m c d", "a b o e", "nDCG@2", "R@6")
    assert not reasons_by_kind(
        {"a": 2, "b": 1, "n": 0, "m": 0}, "a b n m", "b n a m", "nDCG@4", "DCG@4"
    )  # both see the order
    result = reasons_by_kind(
        BINARY, "a b c", "n a b", "P@2", "R@3"
    )  # b falls below 2, and c is lost: both prefer the first
    assert "across the cutoff" not in result


def test_across_the_cutoff() -> None:
    result = reasons_by_kind(BINARY, "a b n m o", "a n m b c", "P@2", "R@5")
    reason = result["across the cutoff"]
    assert (reason.measure, reason.system, reason.documents) == ("P@2", "the first run", ("b",))
    assert reason.text.startswith("the first run has 1 relevant document in the top 2 that the second run ranks lower")
    assert reason.text.endswith("R@5 counts them equally")
    assert result["below the cutoff"].documents == ("c",)


def test_steps_across_the_cutoff_are_counted_both_ways() -> None:
    """`a` and `b` leave the first two, `c` enters them."""
    reason = reasons_by_kind(BINARY, "a b n c", "c n a b", "P@2", "R@4")["across the cutoff"]
    assert reason.documents == ("a", "b")
    assert reason.text == (
        "the first run has 2 relevant documents in the top 2 that the second run ranks lower, and the second run has 1"
        " relevant document in the top 2 that the first run ranks lower. P@2 counts only documents in the top 2, but"
        " R@4 counts them equally"
    )


def test_first_relevant_and_what_the_other_measure_sees() -> None:
    result = reasons_by_kind(BINARY, "a n m o b c d", "n a b c d m o", "RR", "P@5")
    reason = result["first relevant"]
    assert (reason.measure, reason.system, reason.documents) == ("RR", "the first run", ("a", "b", "c", "d"))
    assert "RR depends only on the first relevant document" in reason.text
    assert "P@5 also counts 3 other documents that the second run ranks higher" in reason.text


def test_first_relevant_where_the_other_list_has_none() -> None:
    result = reasons_by_kind(BINARY, "n m a b c", "n a m o p", "RR@2", "P@5")
    assert (
        "is at rank 2 of the second run, and the first run has no relevant document in the top 2"
        in result["first relevant"].text
    )


def test_first_relevant_goes_by_the_level_of_its_measure() -> None:
    grades = {"a": 2, "b": 1, "c": 1, "d": 2, "n": 0, "m": 0}
    reason = reasons_by_kind(grades, "b a n m", "n m a c b", "RR(rel=2)@4", "P@5")["first relevant"]
    assert (reason.system, reason.documents[0]) == ("the first run", "a")
    assert (
        "is at rank 2 of the first run, and at rank 3 of the second run" in reason.text
    )  # b, of grade 1, is none for it


def test_grades() -> None:
    grades = {"a": 3, "b": 1, "c": 1, "n": 0, "m": 0}
    reason = reasons_by_kind(grades, "a n m", "b c n", "nDCG@3", "P@3")["grades"]
    assert (reason.measure, reason.system, set(reason.documents)) == ("nDCG@3", "the first run", {"a", "b", "c"})
    assert reason.text == (
        "In the top 3, the second run has 2 more documents of grade 1, and the first run has 1 more document of"
        " grade 3: nDCG@3 weights grades,"
        " but P@3 uses only binary relevance"
    )


def test_grades_that_only_one_measure_counts() -> None:
    grades = {"a": 2, "b": 1, "c": 1, "n": 0, "m": 0}
    reason = reasons_by_kind(grades, "a n m", "b c n", "P(rel=2)@3", "P@3")["grades"]
    assert (reason.measure, reason.system, reason.documents) == ("P@3", "the second run", ("b", "c"))
    assert (
        "2 more documents of a grade below 2: P@3 counts documents of these grades, but P(rel=2)@3 does not"
        in reason.text
    )


def test_number_against_place() -> None:
    reason = reasons_by_kind(BINARY, "a n m o", "n m b c", "nDCG@4", "P@4")["count or rank"]
    assert (reason.measure, reason.system, reason.documents) == ("nDCG@4", "the first run", ("a",))
    assert "the first relevant document is at rank 1 of the first run, and at rank 3 of the second run" in reason.text


def test_order_within_the_first_k_is_asked_of_the_measures() -> None:
    grades = {"a": 2, "b": 1, "n": 0, "m": 0}
    reason = reasons_by_kind(grades, "a b n m", "b n a m", "nDCG@4", "R@4")["order in the top k"]
    ideal = 2 + 1 / math.log2(3)
    gain = (1 + 2 / 2) / ideal - 1
    assert (reason.measure, reason.system, reason.documents) == ("nDCG@4", "the first run", ("a", "b"))
    assert f"this changes nDCG@4 by {gain:+.3f}, and R@4 not at all" in reason.text


def test_unjudged_documents() -> None:
    result = reasons_by_kind({"a": 1, "b": 1, "n": 0}, "a n b", "x y a b", "P@2", "R@4")
    assert result["unjudged documents"].documents == ("x", "y")
    assert (
        "In the top 2, the second run has 2 unjudged documents, and the first run has 0."
        in result["unjudged documents"].text
    )
    skipped = reasons_by_kind({"a": 1, "b": 1, "n": 0}, "a n b", "x a b", "nDCG@2", "nDCG(judged_only=true)@2")
    assert skipped["unjudged documents"].measure == "nDCG@2"


@given(
    data=st.data(),
    names=st.sampled_from([("nDCG@3", "R@6"), ("RR", "P@5"), ("AP", "P@2"), ("nDCG@5", "P@5"), ("P(rel=2)@4", "AP")]),
)
def test_reasons_speak_for_the_system_that_their_measure_prefers(data: Any, names: tuple[str, str]) -> None:
    docs = "abcdefgh"
    grades = {doc: data.draw(st.integers(0, 3)) for doc in docs[:6]}
    grades["a"] = 3
    orders = [data.draw(st.permutations(list(docs)))[: data.draw(st.integers(1, 8))] for _ in range(2)]
    lists = [judge({"q": grades}, run_of(order)) for order in orders]
    measures = (parse(names[0]), parse(names[1]))
    gains = {str(measure): float(measure(lists[1])[0] - measure(lists[0])[0]) for measure in measures}
    for reason in reasons((lists[0], lists[1]), measures):
        assert gains[reason.measure] * (1 if reason.system == "the second run" else -1) > 0
        assert set(reason.documents) <= set(docs)


QRELS = {f"q{i}": {"a": 1, "b": 1, "c": 1, "n": 0} for i in range(4)}
EARLY = {f"q{i}": {"a": 3.0, "n": 2.0} for i in range(4)}
MANY = {f"q{i}": {"n": 4.0, "a": 3.0, "b": 2.0, "c": 1.0} for i in range(3)} | {"q3": {"a": 2.0, "n": 1.0}}


def test_differences_signs_and_pulls_by_hand() -> None:
    result = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"])
    assert result.systems == ("early", "many")
    assert result.differences == pytest.approx((-0.375, 0.5))
    assert result.opposite
    assert result.agreement == ((0, 0, 0), (0, 1, 0), (3, 0, 0))
    # RR: -.5 three times and 0, deviation .25; recall: 2/3 three times and 0, deviation 1/3; both in errors of n = 4
    pull = 0.5 / (0.25 * 2) + (2 / 3) / ((1 / 3) * 2)
    assert [topic.contribution for topic in result.topics] == pytest.approx([pull] * 3 + [0.0])
    assert result.n_decisive_topics == 3
    assert [topic.query_id for topic in result.causes] == ["q0", "q1", "q2"]
    assert {reason.kind for reason in result.causes[0].reasons} == {"first relevant"}
    assert result.orders is None


def test_pulls_add_up_to_the_distance_of_the_means() -> None:
    runs = {run.name: run for run in sample.runs()}
    result = disagree(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    distance = abs(result.means[0].in_errors - result.means[1].in_errors)
    assert sum(topic.contribution for topic in result.topics) == pytest.approx(distance)
    scores = evaluate(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    differences = scores.values[1] - scores.values[0]
    assert result.differences == pytest.approx(differences.mean(axis=1).tolist())
    assert result.means[0].error == pytest.approx(differences[0].std(ddof=1) / math.sqrt(differences.shape[1]))


def test_what_it_rests_on_is_the_least_number_from_the_top() -> None:
    runs = {run.name: run for run in sample.runs()}
    result = disagree(sample.qrels(), [runs["bm25"], runs["rrf"]], ["nDCG@10", "RR"])
    count = result.n_decisive_topics
    assert count is not None
    for removed in range(count + 1):
        sums = np.array([topic.differences for topic in result.topics[removed:]]).sum(axis=0)
        assert (sums[0] * sums[1] < 0) == (removed < count)


@pytest.mark.parametrize(
    ("second", "caveat"),
    [
        ([0.1, 0.2, 0.1, 0.2], ""),  # both beyond doubt
        ([0.9, -0.8, 0.7, -0.6], " The difference in R@100 is less than twice its standard error"),
        ([0.1] * 4, ""),  # the same on every topic: its standard error is 0
    ],
)
def test_a_difference_that_may_be_luck_is_named(second: list[float], caveat: str) -> None:
    values = np.array([[[0.5] * 4, [0.0] * 4], [[0.3, 0.2, 0.3, 0.2], second]])
    qrels = {f"q{i}": {"d": 1} for i in range(4)}
    scores = evaluate(qrels, {run: {topic: ["d"] for topic in qrels} for run in "ab"}, ["nDCG@10", "R@100"])
    result = replace(scores, values=values).disagree(measures=["nDCG@10", "R@100"])
    text = " ".join(result.sentences)
    assert result.opposite
    assert ("twice its standard error" in text) == bool(caveat)
    assert caveat in text


def test_fewer_topics_than_those_that_pull_most_may_turn_the_means() -> None:
    """Pulls put q1 first, then q2: without both, the means agree; without q2 alone they do, too."""
    values = np.array([[[0.5] * 3] * 2, [[0.0, 0.0, 0.4], [0.4, 0.5, 1.0]]])
    qrels = {f"q{i}": {"d": 1} for i in range(3)}
    scores = evaluate(qrels, {run: {topic: ["d"] for topic in qrels} for run in "ab"}, ["nDCG@10", "R@100"])
    result = replace(scores, values=values).disagree(measures=["nDCG@10", "R@100"])
    assert [topic.query_id for topic in result.topics] == ["q1", "q2", "q0"]
    assert result.n_decisive_topics == 2
    assert (values[1] - values[0])[:, :2].sum(axis=1) == pytest.approx([-1.0, -0.1])
    text = (
        "The mean scores of the two measures prefer different systems only because of at most 2 topics: without these"
        " topics, which have the largest contributions, the mean scores would not prefer different systems."
    )
    assert any(text in sentence for sentence in result.sentences)


def test_of_many_systems_the_pair_most_pulled_apart_and_tau() -> None:
    result = disagree(sample.qrels(), sample.runs(), ["nDCG@10", "RR"])
    assert result.auto_selected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # a run lacks a topic
        scores = evaluate(sample.qrels(), sample.runs(), ["nDCG@10", "RR"])
    assert result.orders == scores.orders().pairs[0]
    assert result.orders is not None
    assert result.orders.tau.discordant == 2
    assert set(result.systems) in [set(pair) for pair in result.orders.swapped]
    selected = scores.disagree(measures=["nDCG@10", "RR"], pair=("tfidf", "bm25"))
    assert selected.systems == ("tfidf", "bm25")
    assert not selected.auto_selected
    assert not any(topic.reasons for topic in selected.topics)
    assert "Pass qrels and runs" in selected.sentences[-1]


def test_slices() -> None:
    kinds = slice_topics({"q0": {"k": "x"}, "q1": {"k": "x"}, "q3": {"k": "y"}}, "k", min_topics=2)
    result = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], slicing=kinds)
    rows = result.table("slices").grid().rows
    assert rows[0] == ("k=x", "2", "-0.5000", "+0.6667", "early / many", "0", "2")
    assert rows[1] == ("k=y", "1", "+0.0000", "+0.0000", "too few topics", "0", "0")


def test_where_less_is_better_the_sides_turn() -> None:
    qrels = {"q": {"a": 1, "n": 0}, "r": {"a": 1, "n": 0}}
    short, long = (dict.fromkeys(qrels, docs) for docs in ({"n": 2.0}, {"n": 2.0, "a": 1.0, "x": 0.5}))
    result = disagree(qrels, {"short": short, "long": long}, ["NumNonrelRet", "RR"])
    assert result.means[0].side == 0
    worse = disagree(qrels, {"a": {topic: {"a": 1.0} for topic in qrels}, "n": short}, ["NumNonrelRet", "RR"])
    assert [mean.side for mean in worse.means] == [-1, -1]
    assert worse.differences == (1.0, -1.0)
    assert not worse.opposite
    assert worse.n_decisive_topics is None


def test_forms_hold_the_same() -> None:
    result = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], queries={"q0": "cats"})
    document = json.loads(result.json())
    assert document["agreement"][2] == {"topics": "RR down", "up": 3, "same": 0, "down": 0, "all": 3}
    assert (document["reasons"][0]["query_id"], document["reasons"][0]["kind"]) == ("q0", "first relevant")
    assert document["measures"][0]["difference"] == pytest.approx(-0.375)
    assert "RR prefers early to many by 0.3750 (3.0 standard errors)" in result.text()
    assert "### q0: cats" in result.markdown()
    assert result.table("agreement").grid().rows[-1] == ("all", "3", "1", "0", "4")
    assert len(result.table()) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": ["RR", "RR"]}, "exactly two measures are required, got 1"),
        ({"runs": {"early": EARLY}}, "at least two runs are required"),
        ({"pair": ("early", "late")}, "no run 'late'"),
        ({"pair": ("early", "early")}, "must be two different runs"),
        ({"limit": 0}, "limit must be an integer of at least 1"),
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
    result = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], **policies)
    scores = evaluate(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], **policies)
    assert result.scores.policies == scores.policies
    assert result.differences == pytest.approx((scores.values[1] - scores.values[0]).mean(axis=1).tolist())
    assert result.causes[0].reasons[0].kind == "first relevant"


def test_a_topic_that_one_run_lacks_is_an_empty_list() -> None:
    result = disagree(QRELS, {"early": {"q0": EARLY["q0"]}, "many": MANY}, ["RR", "R@4"])
    assert result.means[0].better == 3
    assert all(topic.scores[0][0] == 0 for topic in result.topics if topic.query_id != "q0")
    json.dumps(result.to_dict())


def test_the_picture_has_every_topic_in_its_place() -> None:
    pytest.importorskip("altair")
    from judged.results.charts import specification

    result = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"])
    points = next(points for points in specification(result.chart())["datasets"].values() if "t0" in points[0])
    assert [(point["t0"], point["x"], round(point["y"], 3), point["color"]) for point in points] == [
        *((f"q{i}", -0.5, 0.667, "opposite preferences") for i in range(3)),
        ("q3", 0.0, 0.0, "at least one measure prefers neither system"),
    ]
    assert [point["label"] for point in points] == ["q0", "q1", "q2", ""]


def test_identical_systems_are_said_to_be() -> None:
    result = disagree(QRELS, {"early": EARLY, "again": EARLY}, ["RR", "R@4"])
    text = " ".join(result.sentences)
    assert result.identical
    assert "Both systems have the same scores on every topic, so the measures cannot disagree." in text
    assert "at least one measure prefers neither system" not in text


def test_a_measure_of_the_first_document_does_not_look_at_both_places() -> None:
    """The first has a and b among three, the second c alone, which stands first there."""
    result = reasons_by_kind(BINARY, "n a b m", "c m n a b", "P@3", "RR")
    assert result["across the cutoff"].text.endswith("RR depends only on the first relevant document")
    assert result["first relevant"].text.startswith(
        "The first relevant document is at rank 1 of the second run, and at rank 2 of the first run"
    )


def test_slices_must_be_a_slicing() -> None:
    with pytest.raises(InputError, match="must be slices or a table, got 'k'"):
        disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"], slicing="k")


def test_the_document_has_the_head_of_evaluate() -> None:
    document = disagree(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"]).to_dict()
    scores = evaluate(QRELS, {"early": EARLY, "many": MANY}, ["RR", "R@4"]).to_dict()
    for name in ("judged", "versions", "qrels", "runs"):
        assert document[name] == scores[name]
