"""Invariants of the measures of answers: range, order of pieces, and score bounds."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judged
from judged.errors import MeasureError
from judged.scoring.judging.answers import judge_answer
from judged.scoring.measures.base import AnswerMeasure
from judged.scoring.measures.registry import REGISTRY
from variants import SHARES, shares, variants

ALL: list[Any] = [
    measure for name, entry in REGISTRY.items() if entry.properties.reads == "answers" for measure in variants(name)
]
WORDS = ("not", "partial", "support")
ROUNDING = 1e-12
verdicts = st.sampled_from([None, "failed", "contradicts", *WORDS])
texts = st.sampled_from([None, "", "the cat", "a dog and a cat"])


@st.composite
def answers(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an answer with verdicts, some of them missing."""
    sentences = draw(st.lists(st.lists(verdicts, max_size=3), max_size=4))
    context = draw(st.lists(st.sampled_from([None, 0, 1, 2]), max_size=5))
    vital, okay = draw(st.lists(verdicts, max_size=3)), draw(st.lists(verdicts, max_size=3))
    numbers = st.lists(st.integers(0, max(len(vital) + len(okay) - 1, 0)), max_size=2, unique=True)
    return {
        "vital": vital,
        "okay": okay,
        "sentences": sentences,
        "grounded": draw(st.lists(verdicts, min_size=len(sentences), max_size=len(sentences))),
        "correct": draw(verdicts),
        "abstained": draw(st.sampled_from([None, True, False])),
        "answerable": draw(st.sampled_from([None, True, False])),
        "words": draw(st.none() | st.integers(0, 50)),
        "context": context,
        "cited": draw(st.lists(st.integers(1, max(len(context), 1)), max_size=2, unique=True)),
        "missing": draw(st.lists(st.sampled_from([0, 1, 2]), max_size=2)),
        "holds": [draw(numbers) for _ in context] if vital or okay else [],
        "answer": draw(texts),
        "references": draw(st.lists(st.sampled_from(["", "a cat", "Cat", "dog."]), max_size=2)),
        "passages": draw(st.none() | st.lists(st.sampled_from(["", "The cat.", "dog"]), max_size=2)),
        "sentence_texts": draw(st.lists(texts, min_size=len(sentences), max_size=len(sentences))),
    }


def with_verdicts(parts: dict[str, Any], verdict: Any, grade: Any, abstained: Any) -> dict[str, Any]:
    """Fill in every missing verdict, and every missing grade of the context."""
    filled = {
        name: [verdict() if current in {None, "failed"} else current for current in parts[name]]
        for name in ("vital", "okay", "grounded")
    }
    filled["sentences"] = [
        [verdict() if current in {None, "failed"} else current for current in sentence]
        for sentence in parts["sentences"]
    ]
    filled["correct"] = verdict() if parts["correct"] in {None, "failed"} else parts["correct"]
    filled["context"] = [grade() if current is None else current for current in parts["context"]]
    filled["abstained"] = abstained() if parts["abstained"] is None else parts["abstained"]
    return {**parts, **filled}


@settings(max_examples=100)
@given(parts=answers(), share=shares)
def test_scores_lie_in_the_declared_range_and_within_their_bounds(parts: dict[str, Any], share: int) -> None:
    answered = judge_answer(**parts)
    for measure in ALL[share::SHARES]:
        score, (low, high) = measure(answered), measure.score_bounds(answered)
        properties = measure.properties
        assert score.shape == low.shape == high.shape == (1,)
        if not math.isnan(score[0]):
            assert properties.low is None or score[0] >= properties.low - ROUNDING, measure
            assert properties.high is None or score[0] <= properties.high + ROUNDING, measure
            assert low[0] - ROUNDING <= score[0] <= high[0] + ROUNDING, measure


@settings(max_examples=100)
@given(parts=answers(), share=shares, chance=st.randoms(use_true_random=False))
def test_no_verdict_that_is_missing_could_leave_the_bounds(
    parts: dict[str, Any], chance: random.Random, share: int
) -> None:
    answered = judge_answer(**parts)
    highest = int(answered.highest)
    filled = with_verdicts(
        parts,
        lambda: chance.choice(["contradicts", *WORDS]),
        lambda: chance.randint(0, highest),
        lambda: chance.random() < 0.5,
    )
    fully_judged = judge_answer(**filled)
    for measure in ALL[share::SHARES]:
        (low, high), score = measure.score_bounds(answered), measure(fully_judged)
        if measure.entry.name == "CitationRecall":  # uncited documents may get a judgment too, and make the task harder
            may_be_relevant = [
                grade is None and rank not in parts["cited"] for rank, grade in enumerate(parts["context"], 1)
            ]
            if any(may_be_relevant):
                continue
        assert math.isnan(score[0]) or low[0] - ROUNDING <= score[0] <= high[0] + ROUNDING, measure
        if measure.entry.name != "AnswerLength":
            assert np.array_equal(measure.score_bounds(fully_judged)[0], score, equal_nan=True), (
                measure
            )  # nothing is open any more
            assert (
                math.isnan(measure.decided_share(fully_judged))
                or measure.decided_share(fully_judged) == 1
                or not measure.exact
            )


@settings(max_examples=100)
@given(parts=answers(), share=shares, chance=st.randoms(use_true_random=False))
def test_the_order_of_pieces_does_not_matter(parts: dict[str, Any], chance: random.Random, share: int) -> None:
    """Shuffle sentences with their verdicts, and nuggets of the same importance."""
    order = chance.sample(range(len(parts["sentences"])), len(parts["sentences"]))
    mixed = {
        **parts,
        **{name: [parts[name][position] for position in order] for name in ("sentences", "grounded", "sentence_texts")},
    }
    mixed |= {name: chance.sample(parts[name], len(parts[name])) for name in ("vital", "okay")}
    for measure in ALL[share::SHARES]:
        assert measure.of_answer(**mixed) == pytest.approx(measure.of_answer(**parts), rel=1e-12, nan_ok=True), measure


@settings(max_examples=100)
@given(parts=answers(), share=shares, chance=st.randoms(use_true_random=False))
def test_a_better_verdict_never_lowers_a_monotone_measure(
    parts: dict[str, Any], chance: random.Random, share: int
) -> None:
    def better(current: str | None) -> str | None:
        if current in WORDS[:-1] and chance.random() < 0.3:
            return WORDS[WORDS.index(current) + 1]
        return current

    raised = {**parts, **{name: [better(current) for current in parts[name]] for name in ("vital", "okay", "grounded")}}
    raised["sentences"] = [[better(current) for current in sentence] for sentence in parts["sentences"]]
    raised["correct"] = better(parts["correct"])
    raised["context"] = [
        2 if grade == 1 and rank in parts["cited"] else grade for rank, grade in enumerate(parts["context"], 1)
    ]
    for measure in ALL[share::SHARES]:
        before, after = measure.of_answer(**parts), measure.of_answer(**raised)
        if measure.properties.monotone and not math.isnan(before):
            assert after >= before - ROUNDING, measure


def test_measures_see_what_they_are_of() -> None:
    """The worst and the best answer get the worst and the best score of every share."""
    worst = {
        "vital": ["not"], "sentences": [["contradicts"]], "grounded": ["contradicts"], "correct": "not",
        "context": [0], "cited": [1], "missing": [2], "answerable": False,
        "answer": "x", "references": ["y"], "passages": ["z"], "sentence_texts": ["x"],
    }  # fmt: skip
    best = {
        "vital": ["support"], "sentences": [["support"]], "grounded": ["support"], "correct": "support",
        "context": [2], "cited": [1], "answerable": False, "abstained": True,
        "answer": "x", "references": ["x"], "passages": ["x"], "sentence_texts": ["x"],
    }  # fmt: skip
    for measure in ALL:
        if measure.entry.name in {"WrongAbstention", "AnswerLength", "EvidencePosition", "ContextRedundancy"}:
            continue
        scores = [measure.of_answer(**parts) for parts in (worst, best)]
        limits = [measure.properties.low, measure.properties.high]
        assert scores == (limits if measure.properties.higher_is_better else limits[::-1]), measure


@pytest.mark.parametrize("measure", ALL, ids=str)
def test_a_ranking_is_refused_in_a_sentence(measure: AnswerMeasure) -> None:
    with pytest.raises(MeasureError, match=r"is a measure of answers, not of rankings\. Fix: pass answers"):
        judged.evaluate({"q": {"d": 1}}, {"q": ["d"]}, measure)
    with pytest.raises(MeasureError, match="not of rankings"):
        measure.of_list([1])


def test_verdicts_that_are_missing_and_what_they_leave_open() -> None:
    """One of three nuggets failed: 1/2 over the others, bounds 1/3 and 2/3; AutoNuggetizer counts 1/3."""
    recall: Any = judged.measures.NuggetRecall()
    answered = judge_answer(vital=["support", "not", "failed"])
    assert recall(answered)[0] == 0.5
    assert [bound[0] for bound in recall.score_bounds(answered)] == pytest.approx([1 / 3, 2 / 3])
    assert recall.decided_share(answered) == pytest.approx(2 / 3)
    assert math.isnan(recall.of_answer(vital=["failed", None]))


def test_a_document_that_may_yet_count_is_not_judged() -> None:
    """Of the documents that are relevant or may be, one has a judgment; the other one moves the score."""
    answered = judge_answer(context=[1, None, 0], cited=[2])
    recall, position = judged.measures.CitationRecall(), judged.measures.EvidencePosition()
    assert [bound[0] for bound in recall.score_bounds(answered)] == [0.0, 0.5]
    assert recall.decided_share(answered) == position.decided_share(answered) == 0.5
    assert recall.decided_share(judge_answer(context=[1, 0, 0], cited=[2])) == 1


def test_no_vital_nugget_is_no_zero() -> None:
    """AutoNuggetizer scores 0.0 where a topic has no vital nugget, and the mean sinks."""
    strict = judged.measures.NuggetRecall(vital=True, partial=0)
    assert math.isnan(strict.of_answer(okay=["support", "support"]))
    assert all(math.isnan(bound[0]) for bound in strict.score_bounds(judge_answer(okay=["support"])))


def test_sentences_of_several_citations() -> None:
    measures = judged.measures
    sentences = [["not", "support", None], ["partial", "partial"], [None], []]
    assert measures.SupportR().of_answer(sentences=sentences) == pytest.approx((1 + 0.5 + 0) / 3)
    assert measures.SentencePrecision().of_answer(sentences=sentences) == 0.0
    assert measures.SentencePrecision(partial=0.5).of_answer(sentences=sentences) == 0.25
    assert measures.ArgueF(partial=0.5).of_answer(sentences=sentences, vital=["support", "not"]) == pytest.approx(1 / 3)


def test_a_distractor_takes_away_and_is_never_clipped() -> None:
    measures = judged.measures
    assert measures.ContextUtility(distractor=-1).of_answer(context=[0, 0, 1]) == pytest.approx(-1 / 3)
    assert measures.CG(gain={0: -0.5}).of_list([0, 0, 1]) == 0.0
    assert measures.DCG(gain={0: -1}).of_list([0]) == -1.0


def test_evidence_in_the_middle_of_the_context() -> None:
    position = judged.measures.EvidencePosition()
    answered = judge_answer(context=[0, None, 1, 0, None])
    assert position(answered)[0] == 0.5
    assert [bound[0] for bound in position.score_bounds(answered)] == [0.25, 1.0]
    assert math.isnan(position.of_answer(context=[1]))
